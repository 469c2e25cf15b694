/*
 * The driver of `bench-load`: keeps connections busy with requests of one kind, counts what came of them and how long
 * each took.
 *
 * Closed loop: each connection begins its next request when the one before has ended. Open loop (`rate`): requests are
 * due at fixed instants, and latency counts from the instant a request was due, also when no connection was free then;
 * a slow service cannot hide by slowing its driver down.
 *
 * 503 with Retry-After is no error: the request is sent again when that time is over, as a client should, and what was
 * lost by it is in the rate and in the latency.
 *
 * Where answers do not tell that what they began has ended, `watch` does: one more connection that asks for a page
 * while the driver has no room to begin more, or nothing left to begin.
 */
#ifndef TESTS_BENCH_LOAD_DRIVER_H
#define TESTS_BENCH_LOAD_DRIVER_H

#include "tests/bench/load_wire.h"
#include "tools/sagactl/command.h"

struct driver {
    struct ctl *ctl;
    const char *noun;    /* what one is, in the plural */
    int64_t concurrency; /* 10000 at most */
    int64_t rate;        /* begun a second; 0: closed loop */
    /* Begin number `number` (from 0 in each round) by driver_send(). */
    void (*begin)(struct driver *driver, struct wire_connection *connection, uint64_t number);
    /* An answer, status 0 when the connection was lost. True: it is over, and counted unless driver_fail() was called.
     * False: the function has sent the next request of the same thing. */
    bool (*answered)(struct driver *driver, struct wire_connection *connection, int status, struct slice body);

    /* NULL: no watch. The page to ask for, and what it tells; true when that is news. */
    const char *watch;
    bool (*watched)(struct driver *driver, struct slice body);
    bool (*has_room)(const struct driver *driver); /* for one more request */
    bool (*settled)(const struct driver *driver);  /* all that was begun has ended */

    /* of the last round */
    uint64_t begun, ended, errors, in_flight;
    uint64_t refused;   /* answers of 503 that were followed by a repeat */
    double cpu_seconds; /* of this process */
    int64_t begun_us, ended_us;
    uint32_t *latencies_us; /* sorted when the round is over */
    size_t latency_count, latency_capacity;
    int last_error_status;
    char last_error[200];

    struct wire *wire;
    struct slice head_tail; /* the lines of a request's head behind the first, up to the value of Content-Length */
    size_t *idle;           /* a stack of connection indexes */
    size_t idle_count;
    size_t *resting; /* indexes of those that were refused and wait for their time */
    size_t resting_count;
    int64_t rested_us;              /* the earliest of those times */
    int64_t hold_us;                /* nothing begins before */
    int64_t watch_us, watch_gap_us; /* when to ask next */
    bool watch_begins, watch_busy;  /* begins: the first answer of a round is its zero */
    int64_t stop_us, moved_us, seconds, count;
};

/* Connects; gives an exit code, after a sentence where it is not EXIT_OK. */
MUST_USE int driver_open(struct driver *driver);
void driver_close(struct driver *driver);
/* One round: `count` of them, or as many as begin within `seconds` when that is not 0. False:
 * nothing moved any more. */
MUST_USE bool driver_run(struct driver *driver, int64_t count, int64_t seconds);
void driver_send(struct driver *driver, struct wire_connection *connection, const char *method, struct slice path,
                 struct slice body);
void driver_fail(struct driver *driver, int status, struct slice body); /* inside answered(): this one is an error */
void driver_hold(struct driver *driver, int64_t seconds); /* inside answered(): begin nothing for so long */

double driver_seconds(const struct driver *driver);
double driver_per_second(const struct driver *driver);
double driver_percentile_ms(const struct driver *driver, double part);
void driver_tell_errors(const struct driver *driver);

#endif
