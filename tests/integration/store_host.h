/*
 * What the tests of the store share: a private PostgreSQL with the schema, a loop that runs until a condition holds,
 * stores on it, and turns to append.
 */
#ifndef SAGAD_TESTS_STORE_HOST_H
#define SAGAD_TESTS_STORE_HOST_H

#include "store/store.h"
#include "tests/lib/cluster.h"

struct host {
    struct cluster cluster;
    struct loop *loop;
    struct err err; /* the newest error of on_away or on_refused */
    int ready_count, away_count, refused_count;
};

/* Makes a cluster with the schema; skips the program without PostgreSQL. */
void host_start(struct host *host, const char *const *settings);
void host_stop(struct host *host);

/* Opens a store and waits until it is ready. `options` NULL: the defaults. */
struct store *host_store(struct host *host, const struct store_options *options);
/* Opens a store without waiting until it is ready. */
struct store *host_store_begin(struct host *host, const struct store_options *options);
void host_store_close(struct host *host, struct store *store);

/* What most programs begin and end with: a cluster, a store on it, and an arena. All connections of the store are up:
 * one that came later would be checked against what the tests have put into the database meanwhile, and a store without
 * keys is refused where there are sealed rows. */
struct store *host_begin(struct host *host, const char *const *settings, struct arena *arena);
void host_end(struct host *host, struct store *store, struct arena *arena);
/* The main function of tests that need no more than that, in the statics `host`, `store` and `arena`. It needs
 * tests/lib/test.h. */
#define HOST_PROGRAM(settings)                                                                                         \
    static int begin_host(void **state __attribute__((unused)))                                                        \
    {                                                                                                                  \
        store = host_begin(&host, settings, &arena);                                                                   \
        return 0;                                                                                                      \
    }                                                                                                                  \
    static int end_host(void **state __attribute__((unused)))                                                          \
    {                                                                                                                  \
        host_end(&host, store, &arena);                                                                                \
        return 0;                                                                                                      \
    }                                                                                                                  \
    TEST_PROGRAM(begin_host, end_host)

/* Keys of payloads, as the file of --payload-keys has them. */
#define HOST_KEY_1 "\"k1\": \"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\""
#define HOST_KEY_2 "\"k2\": \"ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=\""
#define HOST_KEY_1_OTHER "\"k1\": \"YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODk=\""
struct payload_keys *host_payload_keys(const char *text);

/* Runs the loop until the condition holds; fails the test after a minute. */
void host_run_until(struct host *host, bool (*condition)(void *context), void *context);
bool host_is_set(void *context); /* a condition; `context` points at the bool */
void host_run_ms(struct host *host, int64_t ms);
/* Asks again and again until the statement gives the number; fails the test after a minute. It is for conditions that
 * no turn of the loop tells. */
void host_until_number(struct host *host, long number, const char *sql);

void host_sql(struct host *host, const char *format, ...) PRINTF_LIKE(2, 3);
long host_number(struct host *host, const char *format, ...) PRINTF_LIKE(2, 3); /* the first column of the last row */
/* Gives all rows as text, columns joined by '|', rows by newline. The text stays until the next one. */
char *host_text(struct host *host, const char *format, ...) PRINTF_LIKE(2, 3);

/* All keys of operations that are known, as a table (key, saga). */
#define KNOWN_KEYS                                                                                                     \
    "(select o.key, o.saga from sagad.operation_key o union all"                                                       \
    " select e.key, e.saga from sagad.key_bundle b cross join lateral unnest(b.keys, b.sagas) as e (key, saga))"

/* --- turns --- */

struct turn {
    struct append append;
    struct append_start start;
    struct append_escalation escalation;
    struct op_key keys[2];
    char payload[700];
    int done;        /* how often */
    int *done_count; /* also counted when not NULL */
    void (*after)(struct turn *turn);
    void *context;
};

/* Makes a turn of one record. Sagas of the tests live in namespace "default" and are named "order". The digest of their
 * input is that of "input". */
void turn_start(struct turn *turn, struct saga_id id, int64_t epoch, const char *business_id);
void turn_next(struct turn *turn, struct saga_id id, int64_t epoch, uint64_t seq, const char *type);
struct digest turn_business_digest(const char *business_id);
void turn_submit(struct store *store, struct turn *turn);
/* Appends the turn, waits for its end, and gives its code. */
enum err_code host_append(struct host *host, struct store *store, struct turn *turn);
bool turn_is_done(void *turn);
/* Starts a saga in that namespace. */
struct saga_id host_start_at(struct host *host, struct store *store, struct saga_id id, const char *namespace);

struct saga_id host_saga(uint32_t shard); /* a new id */
const char *id_text(struct saga_id id);   /* valid until the fourth call after it */

/* --- reads --- */

/* Sends a read with `call`, waits for its end, and gives its code. */
#define HOST_ASK(host, store, arena, call, request)                                                                    \
    (host_ask_begin(&(request)->read, arena), call(store, request), host_ask_end(host, &(request)->read))
void host_ask_begin(struct store_read *read, struct arena *arena);
enum err_code host_ask_end(struct host *host, struct store_read *read);

#endif
