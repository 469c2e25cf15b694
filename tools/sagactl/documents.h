/* Definition files looked at offline: read, checked with what the service checks them with, and their sagas found. */
#ifndef SAGACTL_DOCUMENTS_H
#define SAGACTL_DOCUMENTS_H

#include "core/definition/definition.h"
#include "tools/sagactl/input_text.h"

struct known_documents { /* of all files, before they are checked: a saga may stand before its tools and children */
    struct document *items;
    size_t count;
};
/* Read all texts once, whatever is wrong with them; then `source` gives what is in them. It borrows `known`. */
void documents_know(struct ctl *ctl, const struct input_text *texts, size_t count, struct known_documents *known,
                    struct tool_source *source);

/* The whole check of one; that its YAML cannot be read is a fault, too. */
void documents_review(const struct input_text *text, const struct tool_source *source, struct arena *arena,
                      struct faults *faults, struct document *document);

/* All of them, one for each file. Gives EXIT_OK, or the exit code once the faults were printed. */
MUST_USE int documents_load_all(struct ctl *ctl, const struct arguments *files, struct document **out);

struct documents {
    const struct definition **sagas; /* in the order of the files */
    size_t count;
};

/*
 * Tools and sagas of one file may be used by sagas of another. `only`: the saga with this name alone; NULL: all. Gives
 * EXIT_OK, or the exit code once the faults were printed: EXIT_FAILED, or EXIT_NOT_FOUND where there is no such saga.
 */
MUST_USE int documents_load(struct ctl *ctl, const struct arguments *files, const char *only, struct documents *out);

#endif
