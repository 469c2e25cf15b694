/* What a start that exists already came to: start.c, and the inbox. */
#ifndef SAGAD_RUN_REQUEST_START_H
#define SAGAD_RUN_REQUEST_START_H

#include "store/store.h"

/* A start that ended with ERR_CONFLICT: ERR_OK, and the saga that it is a repeat of; or why it is none. */
enum err_code start_repeated(const struct append *append, struct saga_id *saga, struct err *err);

#endif
