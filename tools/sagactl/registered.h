/* The definitions that a service has, for the check of files: a tool or saga that is in no file is looked for in the
 * service. */
#ifndef SAGACTL_REGISTERED_H
#define SAGACTL_REGISTERED_H

#include "base/map.h"
#include "core/definition/definition.h"
#include "tools/sagactl/command.h"

struct registered {
    struct ctl *ctl;
    struct tool_source files; /* definitions of the files, which are looked at first */
    struct map names[2];      /* indexed by enum definition_kind */
    int code;                 /* the exit code of a request whose failure was printed; else EXIT_OK */
};

/*
 * Asks the service for the names of all registered definitions. Then `source` finds what is in `files` and what is in
 * the service; it fetches bodies when they are needed. Gives EXIT_OK, or the exit code after it printed the problem. It
 * borrows all three arguments.
 */
MUST_USE int registered_open(struct registered *registered, struct ctl *ctl, struct tool_source *source);
void registered_close(struct registered *registered);

#endif
