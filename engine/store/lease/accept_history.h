/* See the table history_loss in schema/migrations. */
#ifndef SAGAD_STORE_LEASE_ACCEPT_HISTORY_H
#define SAGAD_STORE_LEASE_ACCEPT_HISTORY_H

#include "base/errors.h"

#define HISTORY_NOTE_BYTES_MAX 1000

/*
 * Accepts every loss that is not accepted yet. Engines go on within two seconds. Blocks. `progress` gets a line for
 * each loss. Ends with ERR_CONFIG when the note is missing or too long, after `progress` got the losses that wait; with
 * ERR_CONFLICT when there is nothing to accept; with ERR_BUSY while an engine of an earlier release runs, which would
 * repeat forgotten calls.
 */
MUST_USE enum err_code accept_history(const char *dsn, const char *who, const char *note,
                                      void (*progress)(const char *line), struct err *err);

#endif
