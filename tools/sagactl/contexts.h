/*
 * Named servers: sagactl/contexts.json below XDG_CONFIG_HOME (~/.config), written by `sagactl config`.
 * {"current": NAME or null, "contexts": [{"name", "server", "token_file" or null, "ca_file" or null}]}. Tokens
 * themselves are never in it.
 */
#ifndef SAGACTL_CONTEXTS_H
#define SAGACTL_CONTEXTS_H

#include "tools/sagactl/command.h"

#define CONTEXTS_MAX 100

struct context {
    struct slice name, server, token_file, ca_file; /* files: SLICE_NONE without one; absolute paths */
};

struct contexts {
    struct slice current; /* SLICE_NONE: none */
    struct context items[CONTEXTS_MAX];
    size_t count;
};

/* No file: no contexts. False: it cannot be read or is no such file, and a sentence was printed. */
MUST_USE bool contexts_read(struct ctl *ctl, struct contexts *out);
/* Before a change: waits for others that change the file, until this process ends. False: a sentence was printed. */
MUST_USE bool contexts_lock(struct ctl *ctl);
MUST_USE bool contexts_write(struct ctl *ctl, const struct contexts *contexts); /* false: a sentence was printed */
struct context *contexts_find(struct contexts *contexts, struct slice name);    /* NULL when absent */

#endif
