/* Lists of all namespaces that the token of this user may name, merged in order of time. */
#ifndef SAGACTL_NAMESPACES_H
#define SAGACTL_NAMESPACES_H

#include "tools/sagactl/client.h"

/*
 * Asks for a list. With -A it asks in each namespace of the token: the answer then has the newest `limit` items by
 * their member `time`, each with a member "namespace", and no cursor; items without a `time` come in the order of their
 * text. Returns an exit code.
 */
int namespaces_get(struct ctl *ctl, struct slice path, const char *time, const char *limit, struct answer *out);

/*
 * Calls `visit` for each namespace of the token with -A, and makes requests be about that one meanwhile; else once,
 * with SLICE_NONE. Ends with the first exit code that is not EXIT_OK, and returns it.
 */
int namespaces_each(struct ctl *ctl, int (*visit)(struct ctl *ctl, struct slice namespace, void *context),
                    void *context);

#endif
