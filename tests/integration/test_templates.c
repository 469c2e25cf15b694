/*
 * Templates with programs, in every place of a saga that may have one, and their results, through a whole engine with
 * its worker threads, its inbox and its locks.
 */
#include "tests/integration/engine_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/metric.h"
#include "io/process/jq.h"
#include "tests/lib/test.h"

/* clang-format off */
#define NAMED(name, steps) "{\"name\":\"" name "\",\"steps\":[" steps "]"

static const char document[] =
    "{\"sagas\":["
    NAMED("each", "{\"id\":\"all\",\"for_each\":\"${ [.input.names[] | ascii_upcase] }\","
                  "\"concurrency\":2,\"call\":\"greet\","
                  "\"scope\":\"${ .item | ascii_downcase }\",\"with\":{\"name\":\"${ .item + \\\"!\\\" }\"}}")
    ",\"output\":\"${ [.steps.all.result[].name] }\"},"
    NAMED("child", "{\"id\":\"one\",\"call\":\"greet\",\"with\":{\"name\":\"${ .input.name | ltrimstr(\\\"x\\\") }\"}}")
    ",\"output\":\"${ .steps.one.result.name + \\\"?\\\" }\"},"
    NAMED("parent", "{\"id\":\"kids\",\"for_each\":\"${ .input.names }\",\"saga\":\"child\","
    "\"with\":{\"name\":\"${ \\\"x\\\" + .item }\"}}")
    ",\"output\":\"${ .steps.kids.result }\"},"
    NAMED("sleeper", "{\"id\":\"s\",\"sleep\":\"${ (.input.ms | tostring) + \\\"ms\\\" }\"}") "},"
    NAMED("shown", "{\"id\":\"ok\",\"approve\":{\"show\":{\"twice\":\"${ .input.sum * 2 }\"},"
    "\"timeout\":\"500ms\"}}") "},"
    NAMED("locked", "{\"id\":\"drive\",\"signal\":{\"name\":\"parked\"}}")
    ",\"locks\":[{\"key\":\"${ \\\"car:\\\" + (.input.car | tostring) }\",\"when_taken\":\"fail\"}]},"
    NAMED("led", "{\"id\":\"a\",\"call\":\"greet\",\"with\":{\"name\":\"${ .input.name }\"}}") ","
    "\"output\":\"${ .steps.a.result.name }\"},"
    NAMED("leads", "{\"id\":\"a\",\"call\":\"greet\",\"with\":{\"name\":\"Kim\"}}")
    ",\"then\":[{\"saga\":\"led\",\"id\":\"${ \\\"led-\\\" + .input.id }\","
    "\"input\":{\"name\":\"${ .steps.a.result.name + \\\"!\\\" }\"}},"
    "{\"saga\":\"led\",\"input\":{\"name\":\"${ .input.id }\"}}]},"
    NAMED("misleads", "{\"id\":\"a\",\"call\":\"greet\",\"with\":{}}")
    ",\"then\":[{\"saga\":\"led\",\"input\":{\"name\":\"${ .input.id | error }\"}},{\"saga\":\"led\","
    "\"id\":\"good\",\"input\":{\"name\":\"good\"}}]}"
    "]}";
/* clang-format on */

static void assert_ends(struct saga_id id, const char *status, const char *member, const char *json)
{
    struct ask ask;

    ask_engine(&ask, engine_get_saga, .get = {.id = id, .wait_ms = 20000});
    ask_expect(&ask, ERR_OK);
    assert_member(ask.request.answer, "status", status);
    if (member) {
        assert_member(ask.request.answer, member, json);
    }
    ask_end(&ask);
}

TEST(elements_and_their_arguments_may_be_programs)
{
    assert_ends(start_saga("each", "{\"names\":[\"kim\",\"lee\",\"ann\"]}"), "\"completed\"", "output",
                "[\"KIM!\",\"LEE!\",\"ANN!\"]");
    assert_ends(start_saga("each", "{\"names\":[]}"), "\"completed\"", "output", "[]");
}

TEST(a_step_whose_elements_are_no_array_fails)
{
    assert_ends(start_saga("parent", "{\"names\":7}"), "\"compensated\"", NULL, NULL);
    assert_ends(start_saga("each", "{\"names\":[1]}"), "\"compensated\"", NULL, NULL);
}

TEST(a_child_has_an_output_of_its_own)
{
    assert_ends(start_saga("parent", "{\"names\":[\"a\",\"b\"]}"), "\"completed\"", "output", "[\"a?\",\"b?\"]");
}

TEST(a_sleep_may_be_a_program)
{
    assert_ends(start_saga("sleeper", "{\"ms\":30}"), "\"completed\"", NULL, NULL);
    assert_ends(start_saga("sleeper", "{\"ms\":\"long \"}"), "\"compensated\"", NULL, NULL);
}

TEST(the_text_that_a_person_is_shown_may_be_a_program)
{
    struct saga_id id = start_saga("shown", "{\"sum\":21}");

    assert_ends(id, "\"compensated\"", NULL, NULL); /* nobody decides */
    assert_string_equal(
        host_text(&host, "select status, convert_from(body, 'UTF8') like '%%{\"twice\":42}%%' from sagad.approval"),
        "expired|t\n");
}

static void park(struct saga_id id)
{
    struct ask ask;

    ask_change(&ask, VERB_SIGNAL, id, .input.signal.name = SLICE("parked"));
    ask_ends(&ask, ERR_OK);
}

static bool is_locked(void *context)
{
    bool *so = context;

    *so = *so || host_number(&host, "select count(*) from sagad.lock") == 1;
    return *so;
}

TEST(keys_of_locks_may_be_programs)
{
    struct saga_id first = start_saga("locked", "{\"car\":7}"), other_car;
    bool locked = false;

    host_run_until(&host, is_locked, &locked);
    assert_ends(start_saga("locked", "{\"car\":7}"), "\"compensated\"", NULL, NULL);
    other_car = start_saga("locked", "{\"car\":8}");
    park(other_car);
    assert_ends(other_car, "\"completed\"", NULL, NULL);
    park(first);
    assert_ends(first, "\"completed\"", NULL, NULL);
    first = start_saga("locked", "{\"car\":7}");
    park(first);
    assert_ends(first, "\"completed\"", NULL, NULL);
    assert_int_equal(host_number(&host, "select count(*) from sagad.lock"), 0);
}

static long led_count(void)
{
    return host_number(&host, "select count(*) from sagad.saga where name = 'led' and status = 'completed'");
}

struct led {
    long count;
    bool so;
};

static bool are_led(void *context)
{
    struct led *led = context;

    led->so = led->so || led_count() == led->count;
    return led->so;
}

TEST(sagas_follow_in_the_commit_that_ends_theirs)
{
    struct led led = {.count = led_count() + 2};
    struct saga_id id = start_saga("leads", "{\"id\":\"o1\"}");

    assert_ends(id, "\"completed\"", NULL, NULL);
    host_run_until(&host, are_led, &led);
    assert_string_equal(
        host_text(&host, "select business_id from sagad.saga where name = 'led' and business_id = 'led-o1'"),
        "led-o1\n");
    assert_int_equal(
        host_number(&host, "select count(*) from sagad.saga where name = 'led' and business_id like 'then:%%:1'"), 1);
    assert_int_equal(host_number(&host, "select count(*) from sagad.inbox"), 0);
}

TEST(a_follower_that_cannot_be_made_keeps_no_other_from_following)
{
    struct led led = {.count = led_count() + 1};

    assert_ends(start_saga("misleads", "{\"id\":\"o2\"}"), "\"completed\"", NULL, NULL);
    host_run_until(&host, are_led, &led);
    assert_int_equal(host_number(&host, "select count(*) from sagad.saga where business_id = 'good'"), 1);
}

ENGINE_RIG_PROGRAM(document, 0, 0)
