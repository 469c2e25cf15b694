/* Checks definition files offline, as the service checks them, and finds their sagas. */
#ifndef SAGACTL_DOCUMENTS_H
#define SAGACTL_DOCUMENTS_H

#include "core/definition/definition.h"
#include "tools/sagactl/input_text.h"

struct known_documents { /* definitions of all files, for checks of sagas that come before their tools */
    struct document *items;
    size_t count;
};
/* Reads all texts once, whatever their faults; then `source` finds the definitions in them. `source` borrows
 * `known`. */
void documents_know(struct ctl *ctl, const struct input_text *texts, size_t count, struct known_documents *known,
                    struct tool_source *source);

/* Makes the whole check of one text. YAML that cannot be read is a fault, too. */
void documents_review(const struct input_text *text, const struct tool_source *source, struct arena *arena,
                      struct faults *faults, struct document *document);

/* Loads all files; each has one document. Gives EXIT_OK, or the exit code after it printed the faults. */
MUST_USE int documents_load_all(struct ctl *ctl, const struct arguments *files, struct document **out);

struct documents {
    const struct definition **sagas; /* in the order of the files */
    size_t count;
};

/*
 * Loads the sagas of files; tools and sagas of one file may be used by sagas of another. `only`: the name of the one
 * saga to load; NULL: all. Gives EXIT_OK, or the exit code after it printed the faults: EXIT_FAILED, or EXIT_NOT_FOUND
 * where there is no such saga.
 */
MUST_USE int documents_load(struct ctl *ctl, const struct arguments *files, const char *only, struct documents *out);

#endif
