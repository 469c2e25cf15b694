/*
 * The driver of `bench-load`: it keeps connections busy with requests of one kind, counts their answers, and measures
 * how long each took.
 *
 * Closed loop: each connection begins its next request when the one before has ended. Open loop (`rate`): requests are
 * due at fixed instants. Latency counts from the instant at which a request was due, also when no connection was free
 * at that time. So a slow service cannot hide by slowing its driver down.
 *
 * An answer 503 with Retry-After is no error: the driver sends the request again when that time is over, as a client
 * should. The lost time shows in the rate and in the latency.
 *
 * Some answers do not tell whether the work that they began has ended. Then `watch` tells: one more connection asks for
 * a page while the driver has no room to begin more, or nothing left to begin.
 */
#ifndef TESTS_BENCH_LOAD_DRIVER_H
#define TESTS_BENCH_LOAD_DRIVER_H

#include "tests/bench/load_wire.h"
#include "tools/sagactl/command.h"

struct driver {
    struct ctl *ctl;
    const char *noun;    /* the name of what is counted, in the plural */
    int64_t concurrency; /* at most 10000 */
    int64_t rate;        /* requests begun in a second; 0: closed loop */
    /* Begins request number `number` (from 0 in each round) with driver_send(). */
    void (*begin)(struct driver *driver, struct wire_connection *connection, uint64_t number);
    /* Handles an answer; status 0 says that the connection was lost. True: this request is over, and counts as done
     * unless driver_fail() was called. False: the function has sent a follow-up request. */
    bool (*answered)(struct driver *driver, struct wire_connection *connection, int status, struct slice body);

    /* The page that the watch asks for; NULL: there is no watch. watched() reads the page, and is true when the page
     * tells something new. */
    const char *watch;
    bool (*watched)(struct driver *driver, struct slice body);
    bool (*has_room)(const struct driver *driver); /* whether one more request may begin */
    bool (*settled)(const struct driver *driver);  /* whether all begun work has ended */

    /* figures of the last round */
    uint64_t begun, ended, errors, in_flight;
    uint64_t refused;   /* answers 503 that a repeat followed */
    double cpu_seconds; /* processor time of this process */
    int64_t begun_us, ended_us;
    uint32_t *latencies_us; /* sorted when the round is over */
    size_t latency_count, latency_capacity;
    int last_error_status;
    char last_error[200];

    struct wire *wire;
    struct slice head_tail; /* the lines of a request's head after the first, up to the value of Content-Length */
    size_t *idle;           /* a stack of connection indexes */
    size_t idle_count;
    size_t *resting; /* indexes of connections that were refused and wait for their time */
    size_t resting_count;
    int64_t rested_us;              /* the earliest end of such a wait */
    int64_t hold_us;                /* no request begins before */
    int64_t watch_us, watch_gap_us; /* when the watch asks next */
    bool watch_begins, watch_busy;  /* watch_begins: the first answer of a round is the zero of its count */
    int64_t stop_us, moved_us, seconds, count;
};

/* Connects. Gives an exit code, and prints a sentence where that is not EXIT_OK. */
MUST_USE int driver_open(struct driver *driver);
void driver_close(struct driver *driver);
/* Runs one round: `count` requests, or as many as begin within `seconds` where that is not 0. False: nothing moved any
 * more. */
MUST_USE bool driver_run(struct driver *driver, int64_t count, int64_t seconds);
void driver_send(struct driver *driver, struct wire_connection *connection, const char *method, struct slice path,
                 struct slice body);
/* Inside answered(): counts this request as an error. */
void driver_fail(struct driver *driver, int status, struct slice body);
void driver_hold(struct driver *driver, int64_t seconds); /* inside answered(): no request begins for so long */

double driver_seconds(const struct driver *driver);
double driver_per_second(const struct driver *driver);
double driver_percentile_ms(const struct driver *driver, double part);
void driver_tell_errors(const struct driver *driver);

#endif
