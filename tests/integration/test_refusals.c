/* Impossible names and sizes: a run that is called like a saga, a run with the name of a saga, a result that is too
 * large. */
#include "tests/integration/engine_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/metric.h"
#include "io/process/jq.h"
#include "tests/lib/test.h"

enum { LARGE_BYTES = 200 * 1024 };

static const char document[] =
    "{\"tools\":["
    "{\"name\":\"twice\",\"effect\":\"idempotent\",\"builtin\":{\"do\":\"echo\"},\"compensate\":{\"tool\":\"forget\"},"
    "\"result\":{\"a\":\"${ .response }\",\"b\":\"${ .response }\"}},"
    "{\"name\":\"twice_paid\",\"effect\":\"idempotent\",\"builtin\":{\"do\":\"echo\"},\"compensate\":{\"tool\":"
    "\"forget\"},"
    "\"cost\":\"${ .result.price | tonumber }\"}],"
    "\"sagas\":[{\"name\":\"listens\",\"steps\":[{\"id\":\"paid\",\"signal\":{\"name\":\"paid\"}}]}]}";

TEST(a_run_is_called_by_its_name_and_not_by_its_id)
{
    struct saga_id id;
    struct ask ask;

    call(&ask, "by-name", "greet", "greet", "{}");
    ask_ends(&ask, ERR_OK);
    assert_true(uuid_parse((struct slice){host_text(&host, "select id from sagad.saga where business_id = 'by-name'"),
                                          UUID_TEXT_BYTES - 1},
                           &id.uuid));
    for (int i = 0; i < 2; i++) { /* in memory, and read back after the end of another engine */
        call_in(&ask, id, "greet", "greet", "{}", 20000);
        ask_ends(&ask, ERR_CONFLICT);
        engine_rig_end();
        engine_rig_begin();
    }
}

TEST(a_run_cannot_have_the_name_of_a_saga)
{
    struct ask ask;
    char name[UUID_TEXT_BYTES];

    ask_engine(&ask, engine_start_saga, .start = {.saga = SLICE("listens")});
    ask_expect(&ask, ERR_OK);
    uuid_text(&ask.request.saga.uuid, name);
    ask_end(&ask);
    call(&ask, name, "greet", "greet", "{}");
    ask_ends(&ask, ERR_INVALID);
    struct saga_id none = host_saga(3);

    uuid_text(&none.uuid, name);
    call(&ask, name, "greet", "greet", "{}");
    ask_ends(&ask, ERR_OK);
}

TEST(a_result_that_is_too_large_is_lost_and_the_effect_is_not)
{
    uint64_t lost = metric_value(METRIC_RESULTS_LOST);
    char *args = malloc(LARGE_BYTES + 64);
    static const char start[] = "{\"name\":\"";
    struct ask ask;

    assert_non_null(args);
    memset(args, 'x', LARGE_BYTES);
    (void)memcpy(args, start, strlen(start));
    (void)memcpy(args + LARGE_BYTES, "\"}", 3);
    call(&ask, "large", "twice", "twice", args);
    ask_ends(&ask, ERR_OK);
    assert_int_equal(metric_value(METRIC_RESULTS_LOST), lost + 1);
    free(args);
}

TEST(a_cost_that_is_no_number_is_none)
{
    struct ask ask;

    call(&ask, "priced", "paid", "twice_paid", "{\"price\":\"7\"}");
    ask_ends(&ask, ERR_OK);
    call(&ask, "priced", "unpaid", "twice_paid", "{\"price\":\"much\"}");
    ask_ends(&ask, ERR_OK);
}

ENGINE_RIG_PROGRAM(document, 0, 0)
