/*
 * The shop's ledger: an append-only file with one JSON object on each line, and one line for each request. It is the
 * judge of the fault tests. So a line that tells of an effect is on disk before the answer leaves.
 *
 * The shop calls ledger_append() under its one lock, so that the order of lines is the order of effects. It calls
 * ledger_wait() without the lock, so that one fdatasync() serves all requests that came meanwhile.
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
    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t synced_more;
    uint64_t lines; /* in the file */
    uint64_t written_bytes, synced_bytes;
    bool syncing;
};

/*
 * Opens or creates the file and calls `line` for each complete line in it. It cuts off a torn last line, which a crash
 * in the middle of a write leaves: that request was never answered. Gives ERR_IO, or ERR_CORRUPT when `line` refuses a
 * line.
 */
MUST_USE enum err_code ledger_open(struct ledger *ledger, const char *path, bool sync,
                                   bool (*line)(void *context, struct slice text), void *context, struct err *err);
void ledger_close(struct ledger *ledger);

/* Appends one line (without its newline). Gives the position for ledger_wait(). A disk that refuses ends the
 * process. */
uint64_t ledger_append(struct ledger *ledger, struct slice line);
void ledger_wait(struct ledger *ledger, uint64_t position);
uint64_t ledger_lines(struct ledger *ledger); /* the number of lines in the file; may be called from any thread */

#endif
