/* How a saga is named on the command line: by its id, by the beginning of it, or by NAME/BUSINESS_ID. */
#ifndef SAGACTL_SAGA_NAME_H
#define SAGACTL_SAGA_NAME_H

#include "tools/sagactl/client.h"

/*
 * The path of the saga in the API, below which its verbs are; EXIT_OK, or the exit code after a sentence was printed.
 * The beginning of an id is looked up first: where several sagas have it they are listed, and nothing is done.
 */
MUST_USE int saga_path(struct ctl *ctl, const char *name, struct slice *path);
/* The whole id; asks the service where the name is another one. */
MUST_USE int saga_id_of(struct ctl *ctl, const char *name, struct slice *id);

#endif
