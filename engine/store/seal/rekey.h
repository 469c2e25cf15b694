/* `sagad rekey`: puts everything in the database under the active key. Engines may run meanwhile. */
#ifndef SAGAD_STORE_REKEY_H
#define SAGAD_STORE_REKEY_H

#include "base/errors.h"
#include "store/seal/payload_keys.h"

/*
 * Walks every table that holds payloads, page by page, and rewrites each row that is plain or under another key. A row
 * that changed meanwhile is left to the next run. Whoever is killed has done what it said: the next run finds those
 * rows under the active key and writes none of them again.
 *
 * Ends with ERR_CORRUPT when rows do not open: they stay as they are, all others are rewritten. Says at the end which
 * other keys nothing was found under.
 */
MUST_USE enum err_code rekey(const char *dsn, const struct payload_keys *keys, void (*progress)(const char *line),
                             struct err *err);

#endif
