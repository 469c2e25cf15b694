/* Names of sagas on the command line: an id, the beginning of an id, or NAME/BUSINESS_ID. */
#ifndef SAGACTL_SAGA_NAME_H
#define SAGACTL_SAGA_NAME_H

#include "tools/sagactl/client.h"

/*
 * Gives the path of the saga in the API, to which verbs are added. Gives EXIT_OK, or the exit code after it printed a
 * sentence. It looks the beginning of an id up first: where several sagas have it, it lists them and does nothing else.
 */
MUST_USE int saga_path(struct ctl *ctl, const char *name, struct slice *path);
/* Gives the whole id; asks the service where the name is not the whole id. */
MUST_USE int saga_id_of(struct ctl *ctl, const char *name, struct slice *id);

#endif
