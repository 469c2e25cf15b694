/* Tools with guards, and an engine that calls them: for the tests of limiter.c and of limiter_tell.c. */
#ifndef TESTS_SIM_LIMITER_STAGE_H
#define TESTS_SIM_LIMITER_STAGE_H

#include <stdio.h>

#include "run/query/health.h"
#include "store/guard.h"
#include "tests/sim/stage.h"

#define RETRY "'retry':{'max_attempts':5,'initial':'200ms','max':'1s'},'timeout':'30s'"
#define KEPT "'builtin':{'tool':'act'},'effect':'keyed','key':{'window':'1h'}," RETRY
#define KEYED KEPT ",'terminal':true"
#define ONCE "'builtin':{'tool':'act'},'effect':'once','terminal':true,'timeout':'30s'"
#define PROBE                                                                                                          \
    "'probe':{'builtin':{'tool':'probe','key':'${ .key }'},'visibility':'0s','give_up_after':'30s',"                   \
    "'outcome':{'completed':'${ .response.done }','absent':'${ .response.absent }'}}"
#define BREAKER "'breaker':{'failures':2,'window':'60s','cooldown':'1s'}"
#define ONE(name) "{'name':'run_" name "','steps':[{'id':'a','call':'" name "','with':{}}]}"

/* clang-format off */
static const char definitions[] =
    "{'tools':["
    "{'name':'rated'," KEYED ",'rate':{'limit':2,'per':'1s'}},"
    "{'name':'narrow'," KEYED ",'concurrency':1},"
    "{'name':'broken'," KEYED "," BREAKER "},"
    "{'name':'asked'," ONCE "," PROBE "," BREAKER "},"
    "{'name':'mixed','builtin':{'tool':'act'},'effect':{'if':'${ .args.odd }',"
    "'then':'keyed','else':'once'},'key':{'window':'1h'},'terminal':true,'timeout':'30s',"
    BREAKER "},"
    "{'name':'looked'," KEYED ",'rate':{'limit':2,'per':'1s'},"
    "'precheck':{'builtin':{'tool':'look'},'done':'${ .response.done }',"
    "'blocked':'${ .response.closed }'}},"
    "{'name':'peeked'," KEYED ",'precheck':{'builtin':{'tool':'look'},'done':'${ .response.done }'}},"
    "{'name':'plain'," KEYED "},"
    "{'name':'slow_once'," ONCE ",'concurrency':3},"
    "{'name':'limited'," KEYED "},"
    "{'name':'costly'," KEYED ",'cost':'${ .result.price }'},"
    "{'name':'fixed'," KEYED ",'cost':7},"
    "{'name':'booked'," KEPT ",'compensate':{'tool':'unbooked','with':{}}},"
    "{'name':'unbooked','builtin':{'tool':'undo'},'effect':'idempotent','concurrency':1," RETRY "},"
    "{'name':'paid'," KEPT ",'compensate':{'tool':'unpaid','with':{}}},"
    "{'name':'seat'," KEPT ",'rate':{'limit':2,'per':'1s'},'compensate':{'tool':'unpaid','with':{}}},"
    "{'name':'unpaid','builtin':{'tool':'undo'},'effect':'idempotent'," RETRY "},"
    "{'name':'taken'," KEPT ",'compensate':{'tool':'untaken','with':{'of':'${ .args.of }'}}},"
    "{'name':'untaken','builtin':{'tool':'undo'},'effect':'checked'," RETRY "," PROBE "," BREAKER "},"
    "{'name':'refused'," ONCE "}],'sagas':["
    "{'name':'given_back','steps':[{'id':'a','call':'taken',"
    "'with':{'of':'${ .input.of }'}},{'id':'b','call':'refused','with':{},'after':['a']}]},"
    ONE("rated") "," ONE("narrow") "," ONE("broken") "," ONE("asked") "," ONE("mixed") "," ONE("looked") ","
    ONE("peeked") "," ONE("plain") "," ONE("slow_once") "," ONE("limited") "," ONE("costly") ","
    ONE("fixed") ","
    "{'name':'two','steps':[{'id':'a','call':'paid','with':{}},{'id':'b',"
    "'call':'seat','with':{},'after':[]}]},"
    "{'name':'undone','steps':[{'id':'a','call':'booked','with':{}},{'id':'b',"
    "'call':'refused','with':{},'after':['a']}]},"
    "{'name':'unpaid','steps':[{'id':'a','call':'paid','with':{}},{'id':'b',"
    "'call':'refused','with':{},'after':['a']}]}]}";
/* clang-format on */

/* Starts a saga and lets all that follows from the start happen. */
static inline struct saga_id begin_saga(const char *name)
{
    struct saga_id id = stage_start(0, name, "{}");

    stage_settle();
    return id;
}

static inline struct reply *call_tool(const char *run, const char *tool)
{
    struct reply *called = stage_ask(0, engine_call, stage_call_of(run, tool, "{}", 60000));

    stage_settle();
    return called;
}

static inline struct guard_ask *asked_now(void)
{
    return container_of((struct store_read *)stage_oldest(STORE_GUARD_ASK), struct guard_ask, read);
}

/* The stage gives this verdict instead of the database's. */
static inline void say(enum guard_verdict verdict, int64_t retry_after_ms)
{
    struct guard_ask *ask = asked_now();

    ask->verdict = verdict;
    ask->retry_after_ms = retry_after_ms;
    stage_fail(STORE_GUARD_ASK, ERR_OK);
}

static inline struct guard_tell *told_now(void)
{
    return container_of((struct store_read *)stage_oldest(STORE_GUARD_TELL), struct guard_tell, read);
}

/* The first call fails without an effect and will be repeated. The tool asks for a pause of so long. */
static inline void answer_late(int status, int64_t retry_after_ms)
{
    char response[32];

    (void)snprintf(response, sizeof(response), "{'status':%d}", status);
    stage_answer(stage_until_call(NULL),
                 (struct outcome){.kind = OUTCOME_RETRY, .error = SLICE("http"), .retry_after_ms = retry_after_ms},
                 status ? response : NULL);
    stage_settle();
}

/* The first call fails and will be repeated. Not one byte of it left. */
static inline void answer_unsent(const char *error)
{
    stage_answer(stage_until_call(NULL),
                 (struct outcome){.kind = OUTCOME_RETRY, .unsent = true, .error = slice_of(error)}, NULL);
    stage_settle();
}

static inline struct tool_health *health(const char *tool)
{
    return tool_health_of(nodes[0].engine, SLICE("default"), slice_of(tool));
}

#endif
