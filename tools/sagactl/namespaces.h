/* Lists of all namespaces that the token of this user may name, merged in order of time. */
#ifndef SAGACTL_NAMESPACES_H
#define SAGACTL_NAMESPACES_H

#include "tools/sagactl/client.h"

/*
 * Asks for a list. With -A it asks in each namespace of the token: the answer then has the newest `limit` items by
 * their member `time`, each with a member "namespace", and no cursor. Returns an exit code.
 */
int namespaces_get(struct ctl *ctl, struct slice path, const char *time, const char *limit, struct answer *out);

#endif
