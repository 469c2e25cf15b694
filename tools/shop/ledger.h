/*
 * The shop's ledger: an append-only file, one JSON object a line, one line a request. It is the judge of the fault
 * tests, so a line that tells of an effect is on disk before the answer leaves.
 *
 * ledger_append() is called under the shop's one lock, so that the order of lines is the order of effects;
 * ledger_wait() is called without it, so that one fdatasync() serves all requests that came meanwhile.
 */
#ifndef SHOP_LEDGER_H
#define SHOP_LEDGER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"
#include "base/text.h"

struct ledger {
    int fd;
    bool sync;             /* false with --no-sync */
    pthread_mutex_t mutex; /* guards what is below */
    pthread_cond_t synced_more;
    uint64_t lines; /* in the file */
    uint64_t written_bytes, synced_bytes;
    bool syncing;
};

/*
 * Open or create the file and call `line` for each complete line in it. A torn last line, left by a crash in the middle
 * of a write, is cut off: its request was never answered. ERR_IO, or ERR_CORRUPT when `line` refuses one.
 */
MUST_USE enum err_code ledger_open(struct ledger *ledger, const char *path, bool sync,
                                   bool (*line)(void *context, struct slice text), void *context, struct err *err);
void ledger_close(struct ledger *ledger);

/* Append one line (without its newline). Returns the position to wait for. A disk that refuses ends the process. */
uint64_t ledger_append(struct ledger *ledger, struct slice line);
void ledger_wait(struct ledger *ledger, uint64_t position);
uint64_t ledger_lines(struct ledger *ledger); /* in the file; from any thread */

#endif
