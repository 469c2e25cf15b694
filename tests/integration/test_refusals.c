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

static void begin_and_wait(struct ask *ask, void (*verb)(struct engine *engine, struct engine_request *request))
{
    verb(engine, &ask->request);
    ask_wait(ask);
}

static int set_up(void **state)
{
    int result = engine_rig_setup(state);
    struct ask ask;

    ask_begin(&ask);
    ask.request.in.define.document = slice_of(document);
    begin_and_wait(&ask, engine_define);
    for (size_t i = 0; i < ask.request.faults.count; i++) {
        print_message("%.*s: %.*s\n", SLICE_ARG(ask.request.faults.items[i].pointer),
                      SLICE_ARG(ask.request.faults.items[i].detail));
    }
    assert_code(&ask, ERR_OK);
    ask_end(&ask);
    return result;
}

TEST(a_run_is_called_by_its_name_and_not_by_its_id)
{
    struct saga_id id;
    struct ask ask;
    char text[64];

    call(&ask, "by-name", "greet", "greet", "{}");
    assert_code(&ask, ERR_OK);
    ask_end(&ask);
    host_text(&host, text, sizeof(text), "select id from sagad.saga where business_id = 'by-name'");
    assert_true(uuid_parse((struct slice){text, UUID_TEXT_BYTES - 1}, &id.uuid));
    for (int i = 0; i < 2; i++) { /* in memory, and read back after the end of another engine */
        call_in(&ask, id, "greet", "greet", "{}", 20000);
        ask_expect(&ask, ERR_CONFLICT);
        ask_end(&ask);
        engine_rig_end();
        engine_rig_begin();
    }
}

TEST(a_run_cannot_have_the_name_of_a_saga)
{
    struct ask ask;
    char name[UUID_TEXT_BYTES];

    ask_begin(&ask);
    ask.request.in.start.saga = SLICE("listens");
    begin_and_wait(&ask, engine_start_saga);
    assert_code(&ask, ERR_OK);
    uuid_text(&ask.request.saga.uuid, name);
    ask_end(&ask);
    call(&ask, name, "greet", "greet", "{}");
    assert_code(&ask, ERR_INVALID);
    ask_end(&ask);
    struct saga_id none = host_saga(3);

    uuid_text(&none.uuid, name);
    call(&ask, name, "greet", "greet", "{}");
    assert_code(&ask, ERR_OK);
    ask_end(&ask);
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
    assert_code(&ask, ERR_OK);
    ask_end(&ask);
    assert_int_equal(metric_value(METRIC_RESULTS_LOST), lost + 1);
    free(args);
}

TEST(a_cost_that_is_no_number_is_none)
{
    struct ask ask;

    call(&ask, "priced", "paid", "twice_paid", "{\"price\":\"7\"}");
    assert_code(&ask, ERR_OK);
    ask_end(&ask);
    call(&ask, "priced", "unpaid", "twice_paid", "{\"price\":\"much\"}");
    assert_code(&ask, ERR_OK);
    ask_end(&ask);
}

int main(void)
{
    jq_prepare(); /* while this process is small */
    return tests_run(set_up, engine_rig_teardown);
}
