/*
 * One receiver of notifications, at work on the engine that owns its shard:
 *
 *     TAKING its cursor and what is due -> SENDING that -> SETTLING it, fenced
 *         -> READING the events behind the cursor -> PUTTING them and the cursor, fenced -> WAITING
 *
 * What is sent is an operation of the class `keyed` in the run `~notify`: its step is the id of the event, its row is
 * committed before the first attempt, and every attempt has the same `webhook-id` and the same key. An engine that dies
 * leaves the row, and the next owner of the shard sends it again.
 *
 * A breaker rests the receiver after failures in a row. It is in memory only, because one engine sends.
 */
#ifndef SAGAD_RUN_NOTIFY_RECEIVER_H
#define SAGAD_RUN_NOTIFY_RECEIVER_H

#include "io/http/client.h"
#include "run/engine_state.h"
#include "run/notify/targets.h"
#include "store/notify.h"

#define RECEIVER_BATCH 16
#define RECEIVER_AT_ONCE 4

enum receiver_stage {
    RECEIVER_WAITING,
    RECEIVER_TAKING,
    RECEIVER_SENDING,
    RECEIVER_SETTLING,
    RECEIVER_READING,
    RECEIVER_PUTTING
};

struct receiver;

struct attempt { /* the attempt to deliver one notification */
    struct receiver *receiver;
    struct notify_outcome *outcome;
    const struct notification_row *row;
    struct arena arena;
    struct http_request request;
    struct http_header headers[8];
    struct deferred over;
    bool sends; /* the request is under way */
};

struct receiver {
    struct engine *engine;
    const struct notify_target *target;
    enum receiver_stage stage;
    uint32_t shard;
    int64_t epoch; /* the epoch of the shard when this round began */
    struct timer timer;
    struct arena arena; /* the arena of the round */
    struct deferred next;

    bool is_known;               /* the cursor is read */
    int64_t read_tx, written_tx; /* read up to here; the cursor of the row */
    int64_t written_boot_ms;
    bool more, again; /* there is more to do at once; something could not be done */
    bool stopped;

    struct notify_take take;
    struct attempt attempts[RECEIVER_BATCH];
    struct notify_outcome outcomes[RECEIVER_BATCH];
    size_t begun, under_way, may_begin;
    struct notify_settle settle;
    struct engine_request asked;
    struct notify_put put;

    uint32_t failures; /* in a row */
    int64_t rest_ms, rests_until_boot_ms;
};

void receiver_init(struct receiver *receiver, struct engine *engine, const struct notify_target *target);
void receiver_fini(struct receiver *receiver);
void receiver_look(struct receiver *receiver);
void receiver_stop(struct receiver *receiver);
bool receiver_sends(const struct receiver *receiver);

/* attempt.c: sends one; attempt_over() of receiver.c follows. */
void attempt_begin(struct attempt *attempt);
void attempt_cancel(struct attempt *attempt);
void attempt_over(struct attempt *attempt, bool is_delivered);

#endif
