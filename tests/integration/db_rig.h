/*
 * What the tests of a database connection share: a loop that runs until a condition holds, a connection that counts its
 * reports, transactions that check how they end, and a second session that blocks.
 */
#ifndef SAGAD_TESTS_DB_RIG_H
#define SAGAD_TESTS_DB_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/postgres/db.h"
#include "tests/lib/cluster.h"
#include "tests/lib/test.h"

enum { QUERIES_MAX = 4, MANY = 5000 };

extern struct cluster cluster;
extern struct loop *loop;
extern struct db *db;
extern struct arena arena;

/* Counts of the reports so far. */
extern int ready_count, lost_count, closed_count, done_count, notify_count;
extern bool inside_submit; /* no transaction may end while it is set */
extern struct err lost_err;
extern char notified[64];

struct tx {
    struct db_transaction transaction;
    struct db_query queries[QUERIES_MAX];
    int done, rows_calls, serial;
    int64_t row_count, affected;
    void (*look)(const struct db_rows *rows);
};

/* Statements over the table that fresh_table() makes. */
extern const struct db_statement insert_item, divide, nap, one;

void run_until(bool (*condition)(void));
bool is_ready(void);
bool is_lost(void);
bool is_closed(void);
bool is_notified(void);
bool nothing_pending(void);
void on_state(struct db *which, enum db_state state, const struct err *err, void *context);
void on_closed(void *context);
void open_to(const char *dsn, bool reconnect);
void close_db(void);
int setup_loop(void **state);
int setup_db(void **state);
int teardown(void **state);
void tx_query(struct tx *tx, const struct db_statement *statement, struct db_args *args);
void tx_submit(struct tx *tx);
void tx_run(struct tx *tx);
void assert_committed(const struct tx *tx);
void assert_refused(const struct tx *tx, const char *sqlstate, size_t failed_query);
int64_t ask(const char *sql);
int64_t ask_of_backend(const char *function);
void wait_for_backend(const char *wait_event);
bool wait_for_backend_unless_done(const char *wait_event, const struct tx *tx); /* false: the transaction is done */
struct db_args *item_args(int64_t id, const char *note);
struct db_args *int4_args(int32_t value);
void fresh_table(void);

/* A test with a connection, and a test that has only the loop. */
#define TEST_CONNECTED(name) TEST_BETWEEN(name, setup_db, teardown)
#define TEST_ALONE(name) TEST_BETWEEN(name, setup_loop, teardown)

/* The main function: it makes the cluster and runs the tests. It returns 77, which means skipped, where there is no
 * PostgreSQL. */
#define TEST_PROGRAM_ON_A_CLUSTER                                                                                      \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        return rig_begin() ? rig_end(tests_run(NULL, NULL)) : 77;                                                      \
    }
bool rig_begin(void);
int rig_end(int failed);

#endif
