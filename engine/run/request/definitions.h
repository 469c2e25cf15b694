/*
 * The registered tools and sagas in memory, and the compiled definitions made of them. Versions are immutable, so that
 * a compiled definition, once made, is good for ever: running sagas point at the one they were pinned to.
 */
#ifndef SAGAD_RUN_REQUEST_DEFINITIONS_H
#define SAGAD_RUN_REQUEST_DEFINITIONS_H

#include "base/map.h"
#include "core/definition/exposure.h"
#include "store/store.h"

struct definitions;

struct definitions *definitions_new(void);
void definitions_free(struct definitions *definitions);

/* Asked of every tool that is compiled from now on: do budgets of the settings apply, so that it is guarded whatever
 * its definition says? */
void definitions_set_guard(struct definitions *definitions,
                           bool (*applies)(void *context, struct slice namespace, struct slice tool), void *context);

/* Take over a row; the same (kind, namespace, name, version) again is ignored. Copies what it keeps. */
void definitions_add(struct definitions *definitions, const struct definition_row *row);

/* A registered version; 0 asks for the newest. NULL: there is none. */
const struct definition_row *definitions_row(const struct definitions *definitions, enum definition_kind kind,
                                             struct slice namespace, struct slice name, uint32_t version);
/* May sagas be started under this name? False with a sentence: its newest version is retired. */
bool definitions_lets_start(const struct definitions *definitions, struct slice namespace, struct slice name,
                            struct arena *arena, struct err *err);
/* Does the newest version under this name, or a tool or a child of it, declare something as sensitive? SLICE_NONE: does
 * any definition of the namespace, in any version? True where nobody can tell. */
bool definitions_declare(struct definitions *definitions, struct slice namespace, struct slice saga_name);
/* All newest versions of a namespace, by name, for lists. The array lies in the arena. */
const struct definition_row **definitions_list(const struct definitions *definitions, enum definition_kind kind,
                                               struct slice namespace, struct arena *arena, size_t *count);

/* What a namespace offers to agents over the Model Context Protocol. Lives until a definition is added. */
const struct offers *definitions_offers(struct definitions *definitions, struct slice namespace);
/* Names a fault for each definition of the document that would be offered under the name of another one. */
void definitions_check_offers(const struct definitions *definitions, struct slice namespace,
                              const struct document *document, struct arena *arena, struct faults *faults);

/* The saga compiled with the newest tools and children. NULL with a sentence when there is none or it no longer
 * compiles. */
const struct definition *definitions_newest(struct definitions *definitions, struct slice namespace, struct slice name,
                                            uint32_t version, struct err *err);
/* The saga compiled with just these tools and children ({name: version}, as saga.started records them; `sagas` may be
 * SLICE_NONE: it has none). */
const struct definition *definitions_pinned(struct definitions *definitions, struct slice namespace, struct slice name,
                                            uint32_t version, struct slice tools, struct slice sagas, struct err *err);
/*
 * Open sagas and runs have no document: they go by the names OPEN_SAGA_NAME and RUN_SAGA_NAME, which both functions
 * above know too. Their tools are compiled one by one and, once compiled, kept for good.
 */
const struct definition *definitions_open(struct definitions *definitions, enum saga_kind kind);
/* A tool compiled; 0 asks for the newest version. NULL with a sentence. */
const struct tool *definitions_tool(struct definitions *definitions, struct slice namespace, struct slice name,
                                    uint32_t version, struct err *err);
/* The newest version of a tool, also of one that a step defines itself, called SAGA.STEP. NULL: there is none that
 * compiles. */
const struct tool *definitions_find_tool(struct definitions *definitions, struct slice namespace, struct slice name);
/* The children at every depth as JSON {name: version}; {} without any. */
void definition_write_children(const struct definition *definition, struct buffer *out);

/* For document_check(): tools and sagas of this namespace. `source` borrows `definitions` and `namespace`. */
struct definitions_source {
    struct tool_source source;
    struct definitions *definitions;
    struct slice namespace;
    struct slice tools, sagas; /* SLICE_NONE: the newest */
};
void definitions_source_init(struct definitions_source *source, struct definitions *definitions, struct slice namespace,
                             struct slice tools, struct slice sagas);

#endif
