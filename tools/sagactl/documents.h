/* Definition files looked at offline: read, checked with what the service checks them with, and their sagas found. */
#ifndef SAGACTL_DOCUMENTS_H
#define SAGACTL_DOCUMENTS_H

#include "core/definition/definition.h"
#include "tools/sagactl/command.h"

struct known_documents { /* of all files, before they are checked: a saga may stand before its tools and children */
    struct document *items;
    size_t count;
};
/* Read all texts once, whatever is wrong with them; then `source` gives what is in them. It borrows `known`. */
void documents_know(struct ctl *ctl, const struct slice *texts, size_t count, struct known_documents *known,
                    struct tool_source *source);

struct text_position { /* from 1 on, in characters; 0: there is none, the text is no JSON */
    unsigned line, column;
};
/* Where in a document the value of a pointer begins, or of what is around it where it is missing. */
struct text_position documents_position(struct slice text, struct slice pointer);

/* FILE:LINE:COLUMN: POINTER: what is wrong, one line. `text` is the document. */
void documents_print_fault(const char *path, struct slice text, const struct fault *fault);

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
