/*
 * What reports of `sagactl hammer -o json` say about the tools of a document. A report is about one text of a tool: it
 * has the digest of that text, so a tool that was changed since has not been tried.
 */
#ifndef SAGACTL_HAMMER_TRIED_H
#define SAGACTL_HAMMER_TRIED_H

#include "core/definition/definition.h"
#include "tools/sagactl/command.h"

struct report {
    const char *path;
    struct slice json;
};

struct reports {
    struct report items[OPTION_REPEATS_MAX];
    size_t count;
};

/* EXIT_OK, or the exit code once a sentence was printed. */
MUST_USE int reports_load(struct ctl *ctl, const struct option_values *files, struct reports *out);

/* Adds a warning for each class of a tool that no report has tried, and for each claim that a report denies. `once`
 * claims nothing, and a builtin has no receiver. */
void tried_warn(const struct document *document, const struct reports *reports, struct faults *warnings);

#endif
