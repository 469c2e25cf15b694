/* Tools with guards, and an engine that calls them: for the tests of limiter.c and of limiter_tell.c. */
#ifndef TESTS_UNIT_LIMITER_TRIAL_H
#define TESTS_UNIT_LIMITER_TRIAL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "run/query/health.h"
#include "tests/lib/run_trial.h"
#include "tests/lib/scratch.h"

#define RETRY "\"retry\":{\"max_attempts\":5,\"initial\":\"200ms\",\"max\":\"1s\"},\"timeout\":\"30s\""
#define KEPT "\"builtin\":{\"do\":\"act\"},\"effect\":\"keyed\",\"key\":{\"window\":\"1h\"}," RETRY
#define KEYED KEPT ",\"terminal\":true"
#define ONCE "\"builtin\":{\"do\":\"act\"},\"effect\":\"once\",\"terminal\":true,\"timeout\":\"30s\""
#define PROBE                                                                                                          \
    "\"probe\":{\"builtin\":{\"do\":\"probe\",\"key\":\"${ .key }\"},\"visibility\":\"0s\",\"give_up_after\":\"30s\"," \
    "\"outcome\":{\"completed\":\"${ .response.done }\",\"absent\":\"${ .response.absent }\"}}"
#define BREAKER "\"breaker\":{\"failures\":2,\"window\":\"60s\",\"cooldown\":\"1s\"}"
#define ONE(name) "{\"name\":\"run_" name "\",\"steps\":[{\"id\":\"a\",\"call\":\"" name "\",\"with\":{}}]}"

/* clang-format off */
static const char definitions[] =
    "{\"tools\":["
    "{\"name\":\"rated\"," KEYED ",\"rate\":{\"limit\":2,\"per\":\"1s\"}},"
    "{\"name\":\"narrow\"," KEYED ",\"concurrency\":1},"
    "{\"name\":\"broken\"," KEYED "," BREAKER "},"
    "{\"name\":\"asked\"," ONCE "," PROBE "," BREAKER "},"
    "{\"name\":\"mixed\",\"builtin\":{\"do\":\"act\"},\"effect\":{\"if\":\"${ .args.odd }\","
    "\"then\":\"keyed\",\"else\":\"once\"},\"key\":{\"window\":\"1h\"},\"terminal\":true,\"timeout\":\"30s\","
    BREAKER "},"
    "{\"name\":\"looked\"," KEYED ",\"rate\":{\"limit\":2,\"per\":\"1s\"},"
    "\"precheck\":{\"builtin\":{\"do\":\"look\"},\"done\":\"${ .response.done }\","
    "\"blocked\":\"${ .response.closed }\"}},"
    "{\"name\":\"peeked\"," KEYED ",\"precheck\":{\"builtin\":{\"do\":\"look\"},\"done\":\"${ .response.done }\"}},"
    "{\"name\":\"plain\"," KEYED "},"
    "{\"name\":\"slow_once\"," ONCE ",\"concurrency\":3},"
    "{\"name\":\"limited\"," KEYED "},"
    "{\"name\":\"costly\"," KEYED ",\"cost\":\"${ .result.price }\"},"
    "{\"name\":\"fixed\"," KEYED ",\"cost\":7},"
    "{\"name\":\"booked\"," KEPT ",\"compensate\":{\"tool\":\"unbooked\",\"with\":{}}},"
    "{\"name\":\"unbooked\",\"builtin\":{\"do\":\"undo\"},\"effect\":\"idempotent\",\"concurrency\":1," RETRY "},"
    "{\"name\":\"paid\"," KEPT ",\"compensate\":{\"tool\":\"unpaid\",\"with\":{}}},"
    "{\"name\":\"seat\"," KEPT ",\"rate\":{\"limit\":2,\"per\":\"1s\"},\"compensate\":{\"tool\":\"unpaid\",\"with\":{}}},"
    "{\"name\":\"unpaid\",\"builtin\":{\"do\":\"undo\"},\"effect\":\"idempotent\"," RETRY "},"
    "{\"name\":\"taken\"," KEPT ",\"compensate\":{\"tool\":\"untaken\",\"with\":{\"of\":\"${ .args.of }\"}}},"
    "{\"name\":\"untaken\",\"builtin\":{\"do\":\"undo\"},\"effect\":\"checked\"," RETRY "," PROBE "," BREAKER "},"
    "{\"name\":\"refused\"," ONCE "}],\"sagas\":["
    "{\"name\":\"given_back\",\"steps\":[{\"id\":\"a\",\"call\":\"taken\","
    "\"with\":{\"of\":\"${ .input.of }\"}},{\"id\":\"b\",\"call\":\"refused\",\"with\":{},\"after\":[\"a\"]}]},"
    ONE("rated") "," ONE("narrow") "," ONE("broken") "," ONE("asked") "," ONE("mixed") "," ONE("looked") ","
    ONE("peeked") "," ONE("plain") "," ONE("slow_once") "," ONE("limited") "," ONE("costly") ","
    ONE("fixed") ","
    "{\"name\":\"two\",\"steps\":[{\"id\":\"a\",\"call\":\"paid\",\"with\":{}},{\"id\":\"b\","
    "\"call\":\"seat\",\"with\":{},\"after\":[]}]},"
    "{\"name\":\"undone\",\"steps\":[{\"id\":\"a\",\"call\":\"booked\",\"with\":{}},{\"id\":\"b\","
    "\"call\":\"refused\",\"with\":{},\"after\":[\"a\"]}]},"
    "{\"name\":\"unpaid\",\"steps\":[{\"id\":\"a\",\"call\":\"paid\",\"with\":{}},{\"id\":\"b\","
    "\"call\":\"refused\",\"with\":{},\"after\":[\"a\"]}]}]}";
/* clang-format on */

static inline struct guard_ask *asked_now(void)
{
    return trial_oldest(ASKED_GUARD_ASK);
}

static inline void say(enum guard_verdict verdict, int64_t retry_after_ms)
{
    struct guard_ask *ask = asked_now();

    ask->verdict = verdict;
    ask->retry_after_ms = retry_after_ms;
    trial_let(ASKED_GUARD_ASK);
}

static inline struct tool_health *health(const char *tool)
{
    return tool_health_of(trial.engine, SLICE("n"), slice_of(tool));
}

#endif
