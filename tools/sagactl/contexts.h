/*
 * Named servers, in the file sagactl/contexts.json below XDG_CONFIG_HOME (~/.config). `sagactl config` writes it:
 * {"current": NAME or null, "contexts": [{"name", "server", "token_file" or null, "ca_file" or null, "cert" or null,
 * "key" or null}]}. The file never holds tokens or keys themselves.
 */
#ifndef SAGACTL_CONTEXTS_H
#define SAGACTL_CONTEXTS_H

#include "tools/sagactl/command.h"

#define CONTEXTS_MAX 100

struct context {
    struct slice name, server, token_file, ca_file, cert, key; /* files: absolute paths; SLICE_NONE: no file */
};

struct contexts {
    struct slice current; /* SLICE_NONE: no context is current */
    struct context items[CONTEXTS_MAX];
    size_t count;
};

/* Reads the file; without a file there are no contexts. False: the file cannot be read or is no such file, and
 * contexts_read() has printed a sentence. */
MUST_USE bool contexts_read(struct ctl *ctl, struct contexts *out);
/* Locks the file for a change: other programs that change it wait until this process ends. False: it has printed a
 * sentence. */
MUST_USE bool contexts_lock(struct ctl *ctl);
MUST_USE bool contexts_write(struct ctl *ctl, const struct contexts *contexts); /* false: it has printed a sentence */
struct context *contexts_find(struct contexts *contexts, struct slice name);    /* NULL: there is no such context */

#endif
