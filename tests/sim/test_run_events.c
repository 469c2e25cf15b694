/* The feed of events misses no event, however the transactions end, and keeps the order of each saga. */
#include "base/instant.h"
#include "tests/sim/stage.h"

#include <stdio.h>

static const char definitions[] =
    "{'tools':[{'name':'t','builtin':{'tool':'t'},'effect':'once','terminal':true,'timeout':'1h'}],"
    "'sagas':[{'name':'s','steps':[{'id':'a','call':'t','with':{}}]},"
    "{'name':'short','retention':'1s','steps':[{'id':'a','call':'t','with':{}}]},"
    "{'name':'asks','steps':[{'id':'ok','approve':{'timeout':'1h'}}]}]}";

static char seen[65536]; /* lines of "type id-of-saga/seq", in the order in which they came */
static char cursor[64];

static void begin_reading(const char *at)
{
    seen[0] = '\0';
    (void)snprintf(cursor, sizeof(cursor), "%s", at);
}

static void note(struct slice event)
{
    struct slice type = json_member(event, "type"), id = json_member(event, "id");
    size_t len = strlen(seen);

    (void)snprintf(seen + len, sizeof(seen) - len, "%.*s %.*s\n", (int)type.len - 2, type.ptr + 1, (int)id.len - 2,
                   id.ptr + 1);
}

static struct reply *ask(uint32_t node, const char *types, int64_t wait_ms)
{
    struct engine_request what = {.in.events = {.cursor = cursor[0] ? slice_of(cursor) : SLICE_NONE,
                                                .types = types ? slice_of(types) : SLICE_NONE,
                                                .limit = 2,
                                                .wait_ms = wait_ms}};

    return stage_ask(node, engine_get_events, &what);
}

/* Takes one page and returns the number of its events. */
static size_t take(struct reply *reply)
{
    struct slice event, answer = stage_expect(reply, ERR_OK)->answer;
    struct json_walk walk = json_walk(answer);

    while (json_next_element(&walk, &event)) {
        note(event);
    }
    (void)snprintf(cursor, sizeof(cursor), "%.*s", SLICE_ARG(reply->next_cursor));
    return json_count(answer);
}

static void read_all(uint32_t node)
{
    while (take(ask(node, NULL, 0)) > 0) {
    }
}

static const char *id_of(struct saga_id id)
{
    static char text[UUID_TEXT_BYTES];

    uuid_text(&id.uuid, text);
    return text;
}

static size_t count_of(const char *text)
{
    size_t count = 0;

    for (const char *at = seen; (at = strstr(at, text)) != NULL; at++) {
        count++;
    }
    return count;
}

TEST(events_of_a_saga_are_told_in_order)
{
    const char *unknown, *opened;

    begin_reading("");
    stage_says("t", OUTCOME_UNKNOWN, "timeout", NULL);
    struct saga_id id = stage_start(0, "s", "{}");

    stage_until_saga(0, id, "escalated");
    read_all(0);
    unknown = strstr(seen, "operation.unknown");
    opened = strstr(seen, "case.opened");
    assert_true(unknown && opened && unknown < opened);
    assert_null(strstr(seen, "saga.completed"));
    assert_non_null(strstr(seen, id_of(id)));
}

TEST(a_page_of_two_begins_where_the_last_one_ended)
{
    begin_reading("");
    for (int i = 0; i < 7; i++) {
        (void)stage_start((uint32_t)i % 2, "s", "{}");
    }
    stage_run(1000);
    read_all(0);
    assert_int_equal(count_of("saga.completed"), 7);
    read_all(1);
    assert_int_equal(count_of("saga.completed"), 7);
}

/* Transactions of two engines overlap: some that began earlier commit after others were read. */
TEST(an_event_that_commits_late_is_not_missed)
{
    struct reply *started[30];
    struct engine_request what = {.in.start.saga = SLICE("s")};

    begin_reading("now");
    (void)take(ask(0, NULL, 0));
    pg_set_slow(world->pg, 100000);
    for (size_t i = 0; i < COUNT_OF(started); i++) {
        started[i] = stage_ask((uint32_t)i % 2, engine_start_saga, &what);
        (void)take(ask((uint32_t)i % 2, NULL, 0)); /* reads the feed all the while */
    }
    for (int i = 0; i < 100; i++) {
        (void)take(ask((uint32_t)i % 2, NULL, 0));
    }
    pg_set_slow(world->pg, 0);
    stage_run(5000);
    read_all(0);
    for (size_t i = 0; i < COUNT_OF(started); i++) {
        (void)stage_expect(started[i], ERR_OK);
        assert_non_null(strstr(seen, id_of(started[i]->saga)));
    }
}

TEST(an_engine_that_dies_takes_no_event_with_it)
{
    struct saga_id ids[12];

    begin_reading("");
    for (int i = 0; i < 12; i++) {
        ids[i] = stage_start((uint32_t)i % 2, "s", "{}");
        if (i == 5) {
            node_kill(&nodes[0]);
            (void)take(ask(1, NULL, 0));
            stage_again(0);
        }
    }
    for (int i = 0; i < 12; i++) {
        stage_run(2000);
        read_all((uint32_t)i % 2);
    }
    for (int i = 0; i < 12; i++) {
        struct slice saga = stage_saga(1, ids[i]);
        bool ended = json_string_is(json_member(saga, "status"), "completed");

        assert_int_equal(
            count_of(arena_text(&world->arena, arena_printf(&world->arena, "saga.completed %s", id_of(ids[i])))),
            ended);
        assert_non_null(strstr(seen, id_of(ids[i]))); /* completed, or a person is asked */
    }
}

TEST(a_waiting_client_is_answered_by_the_next_event)
{
    begin_reading("now");
    (void)take(ask(0, NULL, 0));
    struct reply *waiting = ask(0, "case.*,saga.completed", 60000);

    stage_run(5000);
    assert_false(waiting->done);
    (void)stage_start(1, "s", "{}");
    stage_run(3000);
    assert_true(waiting->done);
    assert_int_equal(take(waiting), 1);
    waiting = ask(0, "case.*", 3000);
    (void)stage_start(1, "s", "{}");
    stage_run(2000);
    assert_false(waiting->done); /* the event has another type */
    stage_run(5000);
    assert_int_equal(take(waiting), 0);
}

TEST(an_approval_is_asked_for)
{
    begin_reading("");
    (void)stage_start(0, "asks", "{}");
    stage_run(1000);
    read_all(1);
    assert_int_equal(count_of("approval.requested"), 1);
}

static void place_hold(uint32_t node, const char *body, struct slice namespace)
{
    struct engine_request what = {.namespace = namespace, .actor = SLICE("ops"), .in.hold = {.body = slice_of(body)}};

    (void)stage_expect(stage_ask(node, engine_put_hold, &what), ERR_OK);
}

TEST(events_of_which_no_log_tells_stand_in_the_same_feed)
{
    struct engine_request release = {.actor = SLICE("ops"), .in.hold = {.number = 1, .note = SLICE("over")}};

    begin_reading("");
    place_hold(0, "{\"tool\":\"t\",\"note\":\"an outage\",\"undo\":true}", SLICE_NONE);
    place_hold(1, "{\"tag\":{\"k\":\"v\"},\"note\":\"not ours\"}", SLICE("another"));
    (void)stage_expect(stage_ask(1, engine_release_hold, &release), ERR_OK);
    (void)stage_start(0, "s", "{}");
    stage_run(1000);
    read_all(1);
    assert_int_equal(count_of("hold.placed"), 1);
    assert_int_equal(count_of("hold.released"), 1);
    assert_int_equal(count_of("saga.completed"), 1);
    assert_true(strstr(seen, "hold.placed") < strstr(seen, "hold.released"));
    begin_reading("");
    (void)take(ask(0, "hold.*", 0));
    (void)take(ask(0, "hold.*", 0));
    assert_int_equal(count_of("hold."), 2);
    assert_int_equal(count_of("saga."), 0);
}

static void place_hold_until(int64_t from_now_ms)
{
    char until[INSTANT_TEXT_BYTES], body[128];

    instant_text(WORLD_START_MS + world->now_us / 1000 + from_now_ms, until);
    (void)snprintf(body, sizeof(body), "{\"tool\":\"t\",\"note\":\"x\",\"until\":\"%s\"}", until);
    place_hold(0, body, SLICE_NONE);
}

TEST(a_hold_that_ends_by_its_time_is_told_once_by_two_engines)
{
    begin_reading("");
    for (int i = 0; i < 60; i++) { /* more than are told at a time */
        place_hold_until(60000);
    }
    stage_run(55000);
    read_all(0);
    assert_int_equal(count_of("hold.ended"), 0);
    stage_run(6000);
    read_all(0);
    assert_int_equal(count_of("hold.ended"), 60);
    stage_run(120000);
    read_all(1);
    assert_int_equal(count_of("hold.ended"), 60);
    assert_int_equal(count_of("hold.released"), 0);
}

TEST(a_hold_that_a_person_released_does_not_end_by_its_time)
{
    struct engine_request release = {.actor = SLICE("ops"), .in.hold = {.number = 1, .note = SLICE("over")}};

    begin_reading("");
    place_hold_until(60000);
    (void)stage_expect(stage_ask(1, engine_release_hold, &release), ERR_OK);
    stage_run(120000);
    read_all(0);
    assert_int_equal(count_of("hold.released"), 1);
    assert_int_equal(count_of("hold.ended"), 0);
}

TEST(a_hold_that_ended_while_no_engine_lived_is_told_by_the_next_one)
{
    begin_reading("");
    place_hold_until(60000);
    node_kill(&nodes[0]);
    node_kill(&nodes[1]);
    stage_run(100000);
    stage_again(1);
    stage_run(1000);
    read_all(1);
    assert_int_equal(count_of("hold.ended"), 1);
}

TEST(the_end_of_a_hold_is_told_after_the_database_was_away)
{
    begin_reading("");
    place_hold_until(10000);
    stage_refuse(STORE_HOLD_TELL_ENDED, ERR_STORE, 8);
    stage_run(30000);
    read_all(0);
    assert_int_equal(count_of("hold.ended"), 1);
}

TEST(another_namespace_hears_nothing)
{
    struct engine_request what = {.namespace = SLICE("another")};

    (void)stage_start(0, "s", "{}");
    stage_run(1000);
    assert_int_equal(json_count(stage_expect(stage_ask(0, engine_get_events, &what), ERR_OK)->answer), 0);
}

/* PostgreSQL gives numbers of transactions again that were not on disk when it crashed. A cursor that had moved on to
 * such a number would pass over the event that gets it. */
TEST(a_cursor_stays_at_the_last_event_while_nothing_comes)
{
    char last[64];

    begin_reading("now");
    (void)take(ask(0, NULL, 0));
    (void)stage_start(0, "s", "{}");
    stage_run(1000);
    read_all(0);
    assert_int_equal(count_of("saga.completed"), 1);
    (void)snprintf(last, sizeof(last), "%s", cursor);
    stage_run(20000); /* leases are renewed, each time by a transaction with a number */
    read_all(0);
    assert_string_equal(cursor, last);
}

TEST(a_client_that_comes_after_the_retention_is_told_where_to_go_on)
{
    char old[64];

    begin_reading("now");
    (void)take(ask(0, NULL, 0));
    (void)snprintf(old, sizeof(old), "%s", cursor);
    (void)stage_start(0, "short", "{}");
    stage_run(60000); /* the saga is forgotten */
    (void)stage_start(0, "s", "{}");
    stage_run(1000);
    struct reply *reply = stage_expect(ask(0, NULL, 0), ERR_GONE);

    (void)snprintf(cursor, sizeof(cursor), "%.*s", SLICE_ARG(reply->next_cursor));
    read_all(0);
    assert_int_equal(count_of("saga.completed"), 1);
    begin_reading("");
    read_all(0);
    assert_int_equal(count_of("saga.completed"), 1); /* the feed begins with the first event that is kept */
    (void)snprintf(cursor, sizeof(cursor), "999999999");
    (void)stage_expect(ask(0, NULL, 0), ERR_GONE); /* the cursor is from another database */
    (void)snprintf(cursor, sizeof(cursor), "x");
    (void)stage_expect(ask(0, NULL, 0), ERR_MALFORMED);
}

STAGE_PROGRAM(.definitions = definitions, .node_count = 2, .is_automatic = true)
