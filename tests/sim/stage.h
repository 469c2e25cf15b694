/*
 * A stage for directed tests of the run code: real engines in the simulated world, as in the campaigns, but it is the
 * test that asks, that answers the calls to tools, and that says what goes wrong and when. Time passes only in
 * stage_run(), stage_until() and stage_wait().
 *
 * Leaving a stage drains its engines: what one of them has not freed or not answered by then fails the test.
 */
#ifndef SAGAD_TESTS_SIM_STAGE_H
#define SAGAD_TESTS_SIM_STAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/adapter.h"
#include "tests/sim/node.h"
#include "tests/sim/pg.h"
#include "tests/sim/stage_store.h"

struct stage_plan {
    uint32_t node_count;                           /* 0: one */
    struct node_options node;                      /* what is 0 gets a usual value */
    const char *definitions;                       /* {'tools': [...], 'sagas': [...]} with ' for "; NULL: none */
    void (*tweak)(struct engine_options *options); /* what struct node_options has not; NULL: nothing */
    bool unready;                                  /* do not wait until the engines are ready */
};

/* Engines are ready, share the shards, and know the definitions. */
void stage_begin(const struct stage_plan *plan);
void stage_end(void);
void stage_again(uint32_t node); /* starts it: it was not there, or has gone */

struct slice stage_json(const char *text); /* with ' for " */

/* --- time --- */

void stage_run(int64_t ms);
void stage_until(bool (*is_so)(void *context), void *context, const char *what); /* fails after two minutes */

/* --- requests --- */

struct reply { /* texts stay until stage_end() */
    bool done;
    enum err_code code;
    struct err err;
    struct slice answer, next_cursor;
    struct saga_id saga;
    bool created;
    struct call_result call;
    size_t faults;
    struct slice fault; /* the first of them */
    /* of the request under way */
    struct node *node;
    uint32_t life;
    struct engine_request *request;
};

/* `send`: engine_call() and its like; of `what` the member `in` counts, and namespace and actor where they are set. */
struct reply *stage_ask(uint32_t node, void (*send)(struct engine *engine, struct engine_request *request),
                        const struct engine_request *what);
struct reply *stage_wait(struct reply *reply); /* until it is done */
void stage_hang_up(struct reply *reply);       /* the client leaves */

struct reply *stage_start(uint32_t node, const char *saga, const char *input); /* and waits */
struct reply *stage_define(uint32_t node, const char *document);               /* and waits */
/* The saga as the engine shows it. */
struct slice stage_saga(uint32_t node, struct saga_id id);
void stage_until_saga(uint32_t node, struct saga_id id, const char *status); /* until it has that status */

/* A call of an agent, in a run; what else is to be said of it is set in what it returns, before it is asked. */
struct engine_request *stage_call_of(const char *run, const char *tool, const char *args, int64_t wait_ms);
struct engine_request *stage_call_in(struct saga_id saga, const char *tool, const char *args, int64_t wait_ms);

/* --- whose is it? --- */

/* So many shards are one node's share too many, as if others had come; fewer than before: they have gone again. */
void stage_give(uint32_t node, size_t count);
const char *stage_run_at(uint32_t node);              /* the name of a run whose shard that node has */
void stage_until_has(uint32_t node, const char *run); /* it has the shard of that run */
void stage_until_lost(uint32_t node, const char *run);

/* --- tools --- */

struct staged_call { /* of a tool of the adapters "builtin" and "exec"; begun, and not answered */
    struct list_link link;
    struct node *node;
    uint32_t life;
    struct call *call; /* in the memory of the node */
    struct slice tool, args, key;
    bool cancelled; /* its answer is not awaited any more */
    struct message answer;
    struct outcome outcome;
    struct slice response;
};

extern bool stage_is_automatic; /* every call is answered well at once: {"ok":true} */
/* A call that is cancelled is settled as unknown at once; false: only by stage_answer(). */
extern bool stage_cancels;
uint32_t stage_calls(const char *tool);           /* how many of them have begun, answered ones too */
struct staged_call *stage_call(const char *tool); /* the first that is not answered; NULL: none */
struct staged_call *stage_until_call(const char *tool);
/* The answer is on its way; `response` with ' for ", NULL: no complete answer. */
void stage_answer(struct staged_call *call, struct outcome outcome, const char *response);
void stage_complete(struct staged_call *call, const char *response); /* the outcome is that it is done */

extern int64_t stage_program_ms; /* how long programs take at least */

/* --- what goes wrong --- */

extern int stage_server_version;    /* of PostgreSQL, as 150018; 0: the usual one */
extern bool stage_logs_are_corrupt; /* what is read back makes no sense */

/* Of the commits that write from now on the n-th, from 1, ends like that. */
void stage_commit(uint32_t n, enum commit_fate fate,
                  void (*then)(void)); /* `then` right at that moment; NULL: nothing */
void stage_freeze_first(void);         /* such a `then`: the process of the first node stands still for eight seconds */

#endif
