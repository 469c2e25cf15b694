/*
 * Three clients at the simulated PostgreSQL, each with transactions of simple statements. The tests test_pg*.c share
 * them.
 *
 * A statement is written ADD(&client, NAME, integers...), which calls say_NAME(). The names of shards, sagas and so on
 * are plain numbers.
 */
#ifndef SAGAD_TESTS_SIM_TEST_PG_TRIAL_H
#define SAGAD_TESTS_SIM_TEST_PG_TRIAL_H

#include "tests/sim/pg_state.h"

struct client {
    struct pg_session *session;
    const char *name;
    struct db_query queries[8];
    size_t count;
    size_t answered; /* answered statements of the transaction */
    int64_t last;    /* the first column of the last row that came */
    int64_t second;
    int over;
    enum db_outcome outcome;
    bool warned, is_gone;
    char sqlstate[6];
    size_t failed_query;
    char heard[128];
};

extern struct world the_world;
extern struct pg *pg;
extern struct client a, b, c;
extern enum commit_fate next_fate; /* fate of the next commit; afterwards COMMIT_OK */
extern int fates_asked;
extern char turns[256]; /* confirmed turns: SAGA/SEQ@EPOCH, and | after each commit */
extern const struct pg_client client_calls;

int trial_setup(void **state);
int trial_teardown(void **state);
void client_connect(struct client *client, const char *name);

/* Adds a statement with integers to the client's transaction. */
#define ADD(client, function, ...)                                                                                     \
    add(client, say_##function, (const int64_t[]){__VA_ARGS__},                                                        \
        sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

void add(struct client *client, pg_statement *function, const int64_t *numbers, size_t count);
const struct db_statement *statement_for(pg_statement *function);
void go(struct client *client);                      /* submits the added statements */
void go_part(struct client *client);                 /* submits them without the COMMIT, which never comes */
void run_to(struct client *client, size_t answered); /* runs until so many statements of the client were answered */
void run_for(int64_t us);
void run_out(struct client *client); /* runs until the transaction is over or the session gone */
void assert_committed(struct client *client);
void assert_refused(struct client *client, const char *sqlstate);
int64_t log_rows(int64_t shard); /* the number of committed rows */

enum pg_progress say_fence(struct pg_call *call);
enum pg_progress say_glance(struct pg_call *call);
enum pg_progress say_take(struct pg_call *call);
enum pg_progress say_renew(struct pg_call *call);
enum pg_progress say_hold(struct pg_call *call);
enum pg_progress say_look(struct pg_call *call);
enum pg_progress say_append(struct pg_call *call);
enum pg_progress say_count_log(struct pg_call *call);
enum pg_progress say_put_inbox(struct pg_call *call);
enum pg_progress say_upsert(struct pg_call *call);
enum pg_progress say_drop_inbox(struct pg_call *call);
enum pg_progress say_start(struct pg_call *call);
enum pg_progress say_advisory(struct pg_call *call);
enum pg_progress say_try_lock(struct pg_call *call);
enum pg_progress say_unlock(struct pg_call *call);
enum pg_progress say_tell(struct pg_call *call);
enum pg_progress say_end_b(struct pg_call *call);
enum pg_progress say_nothing(struct pg_call *call);
enum pg_progress say_write_and_hold(struct pg_call *call);

#endif
