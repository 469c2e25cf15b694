/* See the table history_loss in schema/migrations. */
#ifndef SAGAD_STORE_LEASE_ACCEPT_HISTORY_H
#define SAGAD_STORE_LEASE_ACCEPT_HISTORY_H

#include "base/errors.h"

#define HISTORY_NOTE_BYTES_MAX 1000

/*
 * Accepts every loss that is not accepted yet; engines go on within a second or two. Blocks. `progress` gets a line for
 * each. ERR_CONFIG: the note is missing or too long; `progress` has got what waits. ERR_CONFLICT: there is nothing to
 * accept. ERR_BUSY: an engine of an earlier release runs, which would make forgotten calls again.
 */
MUST_USE enum err_code accept_history(const char *dsn, const char *who, const char *note,
                                      void (*progress)(const char *line), struct err *err);

#endif
