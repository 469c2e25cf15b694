/*
 * An engine whose store, leases, adapters and clock are the test's: the real core and the real run code, in virtual
 * time.
 *
 * What the engine asks of the store is answered in the next step, as a store would that has all of it in memory. Where
 * a test wants something else to become of it, it holds that kind back, and says of each request what it came to.
 */
#ifndef SAGAD_TESTS_LIB_RUN_TRIAL_H
#define SAGAD_TESTS_LIB_RUN_TRIAL_H

#include "run/call/limiter_state.h"
#include "run/exchange/inbox.h"
#include "store/guard.h"
#include "store/store.h"

enum asked { /* of the store; ASKED_CALL: of a tool */
             ASKED_APPEND,
             ASKED_LOAD_SHARD,
             ASKED_INBOX_PUT,
             ASKED_ANSWER_PUT,
             ASKED_READ_SAGA,
             ASKED_FIND_SAGA,
             ASKED_FIND_OPERATION,
             ASKED_FIND_INPUT,
             ASKED_GUARD_ASK,
             ASKED_GUARD_TELL,
             ASKED_GUARD_PRICE,
             ASKED_CASE_PUT,
             ASKED_GUARD_COUNT,
             ASKED_GUARD_LIST,
             ASKED_PARK,
             ASKED_FORGET,
             ASKED_LOCK,
             ASKED_DUE,
             ASKED_DEFINITIONS,
             ASKED_PUT_DEFINITIONS,
             ASKED_SCHEDULES,
             ASKED_LIST,
             ASKED_QUESTIONS,
             ASKED_CALL,
             ASKED_COUNT
};

struct trial {
    struct engine *engine;
    int64_t now_us;              /* since the trial began, by both clocks */
    int64_t epochs[SHARD_COUNT]; /* of each shard, as last read */
    uint32_t asked[ASKED_COUNT]; /* how often */
    size_t turn_count;           /* in the log */
};
extern struct trial trial;

/* It owns these shards (bits), and knows the definitions of this document (NULL: none). */
void trial_begin(const struct engine_options *options, uint64_t shards, const char *definitions);
void trial_end(void);                  /* the engine leaves, and everything must have been freed */
void trial_drain(int64_t patience_ms); /* it begins to leave; trial_end() goes on with it */

void trial_run(int64_t ms); /* so much time passes; 0: what can happen without that */

/* --- what becomes of requests --- */

void trial_hold(enum asked kind);    /* those that come are kept */
void trial_release(enum asked kind); /* all of this kind that are kept, and come, are answered */
size_t trial_held(enum asked kind);
void *trial_oldest(enum asked kind); /* of those that are kept: the struct of store.h, or struct call */
void trial_let(enum asked kind);     /* the oldest that is kept is answered as usual */
void trial_fail(enum asked kind, enum err_code code); /* the same, and that is what it comes to */

/* --- the database --- */

void trial_row_of_next_put_vanishes(void);    /* it is told that it is there, and somebody has consumed it at once */
const struct inbox_row *trial_last_put(void); /* by the engine */
/* The owner of a row answers; the row is gone. */
void trial_answer_last_put(const char *body);
void trial_answer_put(const struct inbox_put *put, const char *body); /* ... that is still being put */
void trial_consume_last_put(void);
/* A turn that somebody else has written. */
void trial_log(struct saga_id saga, const char *namespace, uint64_t first_seq, const char *payload);
void trial_shard_to(uint32_t shard, int64_t epoch); /* another engine has it now */
void trial_shard_comes(uint32_t shard, int64_t epoch);
void trial_database(bool there);

/* --- requests of clients --- */

struct trial_request {
    struct engine_request request;
    struct arena arena;
    bool done;
};
void trial_request_init(struct trial_request *asked); /* namespace "n", actor "somebody" */
void trial_request_fini(struct trial_request *asked);
/* A saga of this name begins, and its start is durable. */
struct saga_id trial_start(const char *name, const char *input);
/* Without waiting: fills in and asks. */
void trial_ask_start(struct trial_request *asked, const char *name, const char *business_id);
void trial_ask_call(struct trial_request *asked, struct saga_id saga, const char *run, const char *tool,
                    const char *args);

#endif
