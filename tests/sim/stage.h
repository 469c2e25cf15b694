/*
 * A stage for directed tests of the run code: real engines in the simulated world, as in the campaigns, but it is the
 * test that asks, that answers the calls to tools, and that says what goes wrong and when. Time is the world's: it
 * passes only in stage_run() and in the functions that wait.
 *
 *     stage_begin(&(struct stage_plan){.definitions = "{'tools':[...],'sagas':[{'name':'pays',...}]}"});
 *     stage_refuse(STORE_APPEND, ERR_STORE, 1);                  // the database does not take the first turn
 *     struct saga_id id = stage_start(0, "pays", "{}")->saga;    // an engine is asked, and answers
 *     stage_complete(stage_until_call("pay"), "{'id':7}");       // the tool is asked, and answers
 *     stage_until_saga(0, id, "completed");
 *
 * The end of a test, stage_end(), drains the engines: the test fails when one of them has not freed or not answered
 * something by then. A broken CHECK of an engine fails the test too. With STAGE_TRACE in the environment the world
 * tells what happens.
 */
#ifndef SAGAD_TESTS_SIM_STAGE_H
#define SAGAD_TESTS_SIM_STAGE_H

#include <string.h>

#include "adapters/adapter.h"
#include "run/engine_state.h"
#include "tests/lib/test.h"
#include "tests/sim/node.h"
#include "tests/sim/pg.h"
#include "tests/sim/stage_store.h"

struct stage_plan {
    uint32_t node_count;                           /* 0: one */
    struct node_options node;                      /* members that are 0 get a usual value */
    const char *definitions;                       /* {'tools': [...], 'sagas': [...]} with ' for "; NULL: none */
    void (*tweak)(struct engine_options *options); /* sets options that struct node_options lacks; NULL: none */
    bool unready;                                  /* stage_begin() does not wait until the engines are ready */
    bool is_automatic;                             /* stage_is_automatic from the beginning */
};

/* Starts engines and waits until they are ready, share the shards, and know the definitions. */
void stage_begin(const struct stage_plan *plan);
void stage_end(void);
int stage_teardown(void **state); /* ends a stage that a test has left open: TEST_PROGRAM_EACH(NULL, stage_teardown) */
/* The main function of tests that all begin on one stage: STAGE_PROGRAM(.definitions = document). */
#define STAGE_PROGRAM(...)                                                                                             \
    static int begin_stage(void **state __attribute__((unused)))                                                       \
    {                                                                                                                  \
        stage_begin(&(struct stage_plan){__VA_ARGS__});                                                                \
        return 0;                                                                                                      \
    }                                                                                                                  \
    TEST_PROGRAM_EACH(begin_stage, stage_teardown)
/* Starts a node that was never up or has gone, and waits until it is ready. node_start() alone does not wait. */
void stage_again(uint32_t node);
extern struct node_options stage_options; /* for nodes that start from now on; stage_begin() sets them */
/* Calls `run` inside of the node. */
void stage_inside(uint32_t node, void (*run)(struct engine *engine, void *context), void *context);

struct slice stage_json(const char *text); /* `text` has ' for " */

/* --- time --- */

void stage_run(int64_t ms);
void stage_settle(void); /* gives work with the database time to end: some round trips */
void stage_until(bool (*is_so)(void *context), void *context, const char *what); /* the test fails after two minutes */

/* --- requests --- */

struct reply { /* the reply to a request; texts stay until stage_end() */
    bool done;
    enum err_code code;
    struct err err;
    struct slice answer, next_cursor;
    int64_t looked_ms, looked_count;
    struct saga_id saga;
    bool created;
    struct call_result call;
    size_t faults;
    struct slice fault; /* the first fault */
    /* For the request under way. */
    struct node *node;
    uint32_t life;
    struct engine_request *request;
};

typedef void request_verb(struct engine *engine, struct engine_request *request); /* engine_call() and its like */
/* Asks a node. It copies from `what` the member `in`, and namespace and actor where they are set. */
struct reply *stage_ask(uint32_t node, request_verb *verb, const struct engine_request *what);
/* Asks for a verb about a saga. The other members follow: stage_change(0, VERB_COMPLETE, saga, .wait_ms = 5000). */
#define stage_change(node, what, about, ...)                                                                           \
    stage_ask(node, engine_change,                                                                                     \
              &(struct engine_request){.in.change = {.verb = (what), .saga = (about), __VA_ARGS__}})
/* Settles the escalation with this number. The other members follow. */
#define stage_resolve(node, number, what, ...)                                                                         \
    stage_ask(node, engine_change,                                                                                     \
              &(struct engine_request){                                                                                \
                  .in.change = {.verb = VERB_RESOLVE,                                                                  \
                                .input.verdict = {.escalation = (number), .action = (what), __VA_ARGS__}}})
struct reply *stage_wait(struct reply *reply); /* waits until the request is done */
/* Waits, and fails the test at this line when the request ends with another code. */
#define stage_expect(reply, code) stage_expect_at(__FILE__, __LINE__, reply, code)
struct reply *stage_expect_at(const char *file, int line, struct reply *reply, enum err_code code);
void stage_hang_up(struct reply *reply); /* the client leaves */

/* Starts or opens a saga; the test fails when the engine refuses. */
struct saga_id stage_start(uint32_t node, const char *saga, const char *input);
struct saga_id stage_open(uint32_t node, const char *business_id);
struct reply *stage_define(uint32_t node, const char *document); /* and waits */
/* Gives the saga as the engine shows it. */
struct slice stage_saga(uint32_t node, struct saga_id id);
const char *stage_log(struct saga_id id); /* the text of the saga's committed turns */
void stage_until_saga(uint32_t node, struct saga_id id, const char *status); /* waits until the saga has that status */

/* Prepares a call of an agent in a run, or in an open saga. The test may set more members of the returned request
 * before it is asked. */
struct engine_request *stage_call_of(const char *run, const char *tool, const char *args, int64_t wait_ms);
struct engine_request *stage_call_in(struct saga_id saga, const char *tool, const char *args, int64_t wait_ms);

/* Asks for a call of an agent in a run, and waits until the tool was asked. */
struct reply *stage_call_begin(uint32_t node, const char *run, const char *tool, const char *args, int64_t wait_ms);

/* --- whose is it? --- */

/* Tells the engine that it has lost a shard, or has it (again). Its leases in PostgreSQL stay as they were. */
void stage_lose(uint32_t node, uint32_t shard);
void stage_gain(uint32_t node, uint32_t shard);
/* Tells the node that it has so many shards too many, as if other engines had come. A smaller count than before: they
 * have gone again. */
void stage_give(uint32_t node, size_t count);
const char *stage_run_at(uint32_t node);              /* the name of a run whose shard that node has */
void stage_until_has(uint32_t node, const char *run); /* waits until the node has the shard of that run */
void stage_until_lost(uint32_t node, const char *run);
void stage_until_owner(uint32_t node, uint32_t shard);
void stage_until_no_owner(uint32_t node, uint32_t shard);

/* --- tools --- */

/* A tool of the adapters "builtin" and "exec": {"tool": NAME}. It answers calls by itself, or leaves them to the
 * test. */
extern bool stage_is_automatic; /* tools answer by themselves as struct stage_tool says; at first all succeed at once */
struct stage_tool {
    char name[64];
    int64_t delay_ms;       /* the time from a call to its answer */
    struct outcome outcome; /* at first OUTCOME_COMPLETED; its result is the response */
    struct slice response;  /* at first {"ok":true} */
    uint32_t calls;         /* the number of calls that have begun */
    struct slice args;      /* the arguments of the last call */
};
struct stage_tool *stage_tool(const char *name);
/* Sets outcome and response. `error` and `response` may be NULL, and ' stands for ". OUTCOME_EGRESS_DENIED is
 * unsent. */
void stage_says(const char *tool, enum outcome_kind kind, const char *error, const char *response);
uint32_t stage_calls(const char *tool); /* the number of calls of the tool, answered or not; NULL: of all tools */

struct staged_call { /* a call that has begun and waits for its answer */
    struct list_link link;
    struct node *node;
    uint32_t life;
    struct call *call; /* lives in the memory of the node */
    struct stage_tool *tool;
    struct slice args, key;
    bool cancelled;    /* the engine does not await the answer any more */
    bool is_automatic; /* the tool answers, not the test */
    struct message answer;
    struct outcome outcome;
    struct slice response;
};
/* A cancelled call is settled as unknown at once. False: only stage_answer() settles it. */
extern bool stage_cancels;
/* Gives the first open call of a tool, or of any tool with NULL. stage_call() returns NULL where there is none;
 * stage_until_call() waits for one. */
struct staged_call *stage_call(const char *tool);
struct staged_call *stage_until_call(const char *tool);
size_t stage_open_calls(void); /* the number of calls that are not answered */
/* Sends the answer on its way. `response` has ' for "; NULL: no complete answer comes. */
void stage_answer(struct staged_call *call, struct outcome outcome, const char *response);
void stage_complete(struct staged_call *call, const char *response); /* answers that the call is done */
void stage_complete_all(const char *tool, const char *response); /* the same for all that wait; NULL: of all tools */
/* Answers the first open call of any tool, and waits until the engine has carried the outcome out. */
void stage_answer_first(enum outcome_kind kind, const char *error, const char *response);
void stage_answer_all(void); /* answers all calls with success; from now on tools answer by themselves */

extern int64_t stage_program_ms; /* the shortest time of a program */

/* --- what goes wrong --- */

extern int stage_server_version;    /* version of PostgreSQL, as 150018; 0: the usual version */
extern bool stage_logs_are_corrupt; /* logs that the engine reads back make no sense */

/* Decides the end of the n-th writing commit from now on, counted from 1. `then` is called right at that moment; NULL:
 * nothing. */
void stage_commit(uint32_t n, enum commit_fate fate, void (*then)(void));
void stage_freeze_first(void); /* a function for `then`: the process of the first node stands still for eight seconds */

#endif
