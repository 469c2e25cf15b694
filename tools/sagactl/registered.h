/* What is registered in a service, for the check of files: a tool or saga that no file brings is looked for there. */
#ifndef SAGACTL_REGISTERED_H
#define SAGACTL_REGISTERED_H

#include "base/map.h"
#include "core/definition/definition.h"
#include "tools/sagactl/command.h"

struct registered {
    struct ctl *ctl;
    struct tool_source files; /* what the files bring goes before */
    struct map names[2];      /* by enum definition_kind */
    int code;                 /* the exit code of a request that failed, once it was told of; else EXIT_OK */
};

/*
 * Asks the service for the names of all that is registered. `source` then finds what is in `files` and what is there;
 * bodies are fetched when they are needed. Gives EXIT_OK, or the exit code once the problem was printed. It borrows all
 * three.
 */
MUST_USE int registered_open(struct registered *registered, struct ctl *ctl, struct tool_source *source);
void registered_close(struct registered *registered);

#endif
