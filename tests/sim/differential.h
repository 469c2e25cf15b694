/*
 * Does the simulated PostgreSQL tell the truth? Scripts drawn from a seed run against the real server and against the
 * fake one. The two programs are of one source, and their transcripts must be the same.
 *
 * In a script up to three sessions execute transactions of the statements of store/sql.c. Gates stand between
 * statements: a gate is sql_gate on a number of its own, which the controlling session holds until the
 * script releases it. After each step the script waits until each session is idle, at a gate, or waits for another
 * session. So the script decides the interleaving. The transcript has the end of each transaction, who waits when,
 * notifications, and all tables at the end. Times of clocks and random ids are masked.
 */
#ifndef SAGAD_TESTS_SIM_DIFFERENTIAL_H
#define SAGAD_TESTS_SIM_DIFFERENTIAL_H

#include "base/arena.h"
#include "io/postgres/db.h"
#include "tests/property/chance.h"

enum {
    ACTORS = 4,       /* the first session controls the others */
    TRANSACTIONS = 4, /* the most transactions of each other session */
    QUERIES = 16,     /* the most statements of a transaction, gates included */
    GATE_CLASS = 77
};

#define T0_MS INT64_C(1600000000000)  /* times of scripts come after it, and before the clock of either side */
#define FAR_MS INT64_C(4102444800000) /* a time in the future of both sides */

/*
 * A statement with the kinds of its columns: i number, n number of which only the sign counts, u id, x id that may be
 * random, b bytes, t time, m time of a clock, v nothing.
 */
struct kind {
    const struct db_statement *statement;
    const char *columns;
    void (*put)(struct db_args *args, struct chance *chance); /* NULL: no parameters */
    bool unordered;                                           /* the order of the rows says nothing */
    bool affects;                                             /* the number of affected rows counts */
    const char *themes;                                       /* letters */
    uint32_t weight;
};

extern const struct kind kinds[];
extern const size_t kind_count;
extern const struct kind gate_kind, start_all_kind, park_all_kind, take_all_kind, renew_all_kind;
extern const struct kind dumps[];
extern const size_t dump_count;

struct transaction {
    struct db_query queries[QUERIES];
    const struct kind *kinds[QUERIES];
    size_t count;
};

void draw_begin(int epoch); /* the epoch of most shards when the script begins */
/* Draws a transaction. Half of the transactions keep to the order of an append, so that not every second one is a
 * deadlock. */
void transaction_draw(struct transaction *transaction, struct arena *arena, uint64_t seed, uint32_t actor,
                      uint32_t number, int *next_gate);
void transaction_add(struct transaction *transaction, const struct kind *kind, struct db_args *args);

/* --- the two sides --- */

enum actor_state { ACTOR_IDLE, ACTOR_AT_GATE, ACTOR_WAITS };

void side_begin(void); /* empties the tables and connects all actors, which are idle */
void side_end(void);   /* ends the script */
void side_submit(size_t actor, struct transaction *transaction);
/* Waits until nobody moves. A circle of waits is no such state, since it ends by itself. */
void side_settle(enum actor_state states[ACTORS]);
int64_t side_clock_ms(void);

/* Reports of the actors. */
void actor_rows(size_t actor, size_t query, const struct db_rows *rows);
void actor_over(size_t actor, enum db_outcome outcome, const char *sqlstate, size_t failed_query);
void actor_notified(struct slice channel, struct slice payload);

/* --- one script --- */

/*
 * Runs the script of a seed; the transcript is text.
 *
 * Where one commit frees two sessions that then race, either may be first. So the fake plays each script several times
 * with different chances, and the real server must be like one of them. The choice of the session that a deadlock ends
 * is chance, too, and the fake may see a deadlock before it is closed for the real server. So a script ends there, with
 * the line "deadlock".
 */
void script_run(uint64_t seed, struct buffer *transcript);

#endif
