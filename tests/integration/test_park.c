/*
 * Sagas that wait need no memory and no queries. They are there when their time comes, when an input comes for them,
 * and when another engine has their shard by then.
 */
#include "tests/integration/engine_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/instant.h"
#include "base/json.h"
#include "base/metric.h"
#include "io/process/jq.h"
#include "tests/lib/test.h"

enum { MANY = 500, FEW = 40, ROUNDS = 12, HOUR_MS = 3600 * 1000 };

static const char document[] =
    "{\"sagas\":["
    "{\"name\":\"stuck\",\"steps\":[{\"id\":\"lost\",\"call\":\"lose\",\"with\":{\"name\":\"${ .input.name }\"}},"
    "{\"id\":\"next\",\"call\":\"greet\",\"with\":{}}]},"
    "{\"name\":\"dozes\",\"steps\":[{\"id\":\"a\",\"call\":\"greet\",\"with\":{}},{\"id\":\"doze\",\"sleep\":"
    "\"1500ms\"},"
    "{\"id\":\"b\",\"call\":\"greet\",\"with\":{\"name\":\"b\"}}]},"
    "{\"name\":\"sleeps\",\"steps\":[{\"id\":\"sleep\",\"sleep\":\"1h\"},{\"id\":\"b\",\"call\":\"greet\",\"with\":{"
    "\"name\":\"b\"}}]},"
    "{\"name\":\"listens\",\"steps\":[{\"id\":\"paid\",\"signal\":{\"name\":\"paid\"}},"
    "{\"id\":\"b\",\"call\":\"greet\",\"with\":{\"name\":\"${ .steps.paid.result.by }\"}}],\"output\":\"${ "
    ".steps.b.result.name }\"},"
    "{\"name\":\"counts\",\"steps\":[{\"id\":\"n\",\"for_each\":\"${ .input }\",\"signal\":{\"name\":\"n\"}}],"
    "\"output\":\"${ .steps.n.result }\"},"
    "{\"name\":\"asks\",\"steps\":[{\"id\":\"ok\",\"approve\":{\"show\":{\"sum\":\"${ .input.sum }\"}}},"
    "{\"id\":\"b\",\"call\":\"greet\",\"with\":{\"name\":\"${ .steps.ok.result.decision }\"}}],\"output\":\"${ "
    ".steps.b.result.name }\"},"
    "{\"name\":\"hurries\",\"steps\":[{\"id\":\"ok\",\"approve\":{\"timeout\":\"1h\"}}]},"
    "{\"name\":\"holds\",\"locks\":[{\"key\":\"car:${ .input.car "
    "}\"}],\"steps\":[{\"id\":\"go\",\"signal\":{\"name\":\"go\"}}]},"
    "{\"name\":\"forgets\",\"retention\":\"1s\",\"steps\":[{\"id\":\"a\",\"call\":\"greet\",\"with\":{}}]}"
    "]}";

/* --- requests --- */

static void begin_get(struct ask *ask, struct saga_id id, int64_t wait_ms)
{
    ask_engine(ask, engine_get_saga, .get = {.id = id, .wait_ms = wait_ms});
}

/* A commit is in the database a little before the engine that sent it knows: so long a question may wait for that. */
#define ENGINE_KNOWS_MS 30000

static void assert_saga(struct saga_id id, int64_t wait_ms, const char *member, const char *json)
{
    struct ask ask;

    begin_get(&ask, id, wait_ms);
    ask_expect(&ask, ERR_OK);
    assert_member(ask.request.answer, member, json);
    ask_end(&ask);
}

static void send_signal(struct saga_id id, const char *name, const char *payload)
{
    struct ask ask;

    ask_change(&ask, VERB_SIGNAL, id, .input.signal = {.name = slice_of(name), .payload = slice_of(payload)});
    ask_ends(&ask, ERR_OK);
}

/* --- what there is --- */

static void wait_until_parked(long count)
{
    rig_until_memory_is_empty();
    assert_int_equal(host_number(&host, "select count(*) from sagad.due where what = 'parked'"), count);
}

struct ended {
    const char *status;
    long count;
    int64_t looked_ms;
    bool so;
};

static long ended_count(const char *status)
{
    return host_number(&host, "select count(*) from sagad.saga where status = '%s'", status);
}

/* Called in every turn of the loop; asks the database. */
static bool have_ended(void *context)
{
    struct ended *ended = context;

    if (!ended->so && loop_boot_ms(host.loop) - ended->looked_ms >= 100) {
        ended->looked_ms = loop_boot_ms(host.loop);
        ended->so = ended_count(ended->status) >= ended->count;
    }
    return ended->so;
}

static void wait_until_ended(const char *status, long count)
{
    struct ended ended = {.status = status, .count = count};

    host_run_until(&host, have_ended, &ended);
}

/* Waits until the sagas have left memory. */
static void assert_nothing_is_left(void)
{
    rig_until_memory_is_empty();
    assert_int_equal(host_number(&host, "select count(*) from sagad.due"), 0);
    assert_int_equal(host_number(&host, "select count(*) from sagad.awake"), 0);
}

/* Returns how many statements the server has run so far, as its log tells; see tell_statements(). */
static long statements(void)
{
    char path[128], *line = NULL;
    size_t room = 0;
    long count = 0;
    FILE *log;

    (void)snprintf(path, sizeof(path), "%s/log", host.cluster.directory);
    log = fopen(path, "r");
    assert_non_null(log);
    while (getline(&line, &room, log) >= 0) {
        count += strstr(line, "LOG:  execute ") || strstr(line, "LOG:  statement: ");
    }
    free(line);
    (void)fclose(log);
    return count;
}

static bool statement_is_told(void *context)
{
    return statements() > *(long *)context;
}

/* Statistics would not do, because PostgreSQL updates those of idle sessions only after ten seconds. */
static void tell_statements(bool told)
{
    long before = statements();

    host_sql(&host, "alter system set log_statement = %s", told ? "'all'" : "default");
    host_sql(&host, "select pg_reload_conf()");
    if (told) {
        host_run_until(&host, statement_is_told, &before); /* at the latest the renewal of a lease */
    }
}

static long statements_in(int64_t ms)
{
    long before = statements();

    host_run_ms(&host, ms);
    return statements() - before;
}

/* --- the promises --- */

TEST(an_escalated_saga_leaves_memory_and_can_be_resolved)
{
    struct saga_id id = start_saga("stuck", "{\"name\":\"Kim\"}");
    struct ask ask;
    long number;

    wait_until_parked(1);
    assert_int_equal(host_number(&host, "select count(*) from sagad.due where at = 'infinity'"), 1);
    assert_int_equal(gauge_value(GAUGE_ESCALATIONS_OPEN), 1);
    rig_take_shards_away();
    assert_int_equal(gauge_value(GAUGE_ESCALATIONS_OPEN), 1); /* although the saga is not read back */
    assert_int_equal(gauge_value(GAUGE_SAGAS_LOADED), 0);
    assert_saga(id, 0, "status", "\"escalated\"");
    assert_saga(id, 50, "status", "\"escalated\"");
    number = host_number(&host, "select max(number) from sagad.escalation");
    ask_engine(&ask, engine_change,
               .change = {.verb = VERB_RESOLVE,
                          .input.verdict = {.escalation = (uint64_t)number,
                                            .action = OPERATOR_RESOLVE,
                                            .happened = true,
                                            .result = SLICE("{\"ref\":7}"),
                                            .note = SLICE("seen in the books")}});
    ask_ends(&ask, ERR_OK);
    assert_saga(id, 20000, "status", "\"completed\"");
    assert_int_equal(gauge_value(GAUGE_ESCALATIONS_OPEN), 0);
    assert_nothing_is_left();
}

TEST(a_parked_saga_can_be_aborted)
{
    struct saga_id id = start_saga("sleeps", "{}");
    struct ask ask;

    wait_until_parked(1);
    ask_change(&ask, VERB_ABORT, id, .input.abort.note = SLICE("not wanted"));
    ask_ends(&ask, ERR_OK);
    assert_saga(id, 20000, "status", "\"compensated\"");
    assert_nothing_is_left();
}

TEST(a_sleeping_saga_leaves_memory_and_wakes_at_its_time)
{
    struct saga_id id = start_saga("dozes", "{}");
    long completed = ended_count("completed");

    wait_until_parked(1);
    assert_saga(id, 0, "status", "\"waiting\"");
    wait_until_ended("completed", completed + 1); /* nobody asks for the saga */
    assert_saga(id, ENGINE_KNOWS_MS, "status", "\"completed\"");
    assert_nothing_is_left();
}

TEST(a_client_that_waits_for_a_parked_saga_is_answered_at_its_end)
{
    struct saga_id id = start_saga("listens", "{}");
    struct ask ask;

    wait_until_parked(1);
    begin_get(&ask, id, 20000);
    host_run_ms(&host, 600);
    assert_false(ask.done);
    send_signal(id, "paid", "{\"by\":\"Kim\"}");
    ask_wait(&ask);
    assert_member(ask.request.answer, "status", "\"completed\"");
    assert_member(ask.request.answer, "output", "\"Kim\"");
    ask_end(&ask);
    assert_nothing_is_left();
}

TEST(a_signal_that_means_nothing_leaves_the_saga_parked)
{
    struct saga_id id = start_saga("listens", "{}");
    struct ask ask;

    wait_until_parked(1);
    ask_change(&ask, VERB_SIGNAL, id, .input.signal.name = SLICE("refunded"));
    ask_ends(&ask, ERR_INVALID);
    wait_until_parked(1);
    send_signal(id, "paid", "{\"by\":\"Lee\"}");
    assert_saga(id, 20000, "output", "\"Lee\"");
    assert_nothing_is_left();
}

TEST(an_approval_waits_without_its_saga)
{
    struct saga_id id = start_saga("asks", "{\"sum\":12}");
    struct ask ask;

    wait_until_parked(1);
    ask_engine(&ask, engine_get_approvals, .approvals = {.open_only = true, .limit = 10});
    ask_expect(&ask, ERR_OK);
    assert_int_equal(json_count(ask.request.answer), 1);
    ask_end(&ask);
    ask_engine(&ask, engine_change,
               .change = {.verb = VERB_DECIDE,
                          .input.decision = {.approval =
                                                 (uint64_t)host_number(&host, "select max(number) from sagad.approval"),
                                             .approve = true,
                                             .role = ROLE_OPERATOR}});
    ask_ends(&ask, ERR_OK);
    assert_saga(id, 20000, "status", "\"completed\"");
    assert_string_equal(host_text(&host, "select status from sagad.approval"), "approved\n");
    assert_nothing_is_left();
}

static void change(struct saga_id id, enum verb_id verb)
{
    struct ask ask;

    ask_change(&ask, verb, id);
    ask_ends(&ask, ERR_OK);
}

static int64_t instant_of(const struct ask *ask, struct slice entry)
{
    int64_t at_ms = 0;

    assert_true(instant_parse(json_string(json_member(entry, "at"), ask->request.arena), &at_ms));
    return at_ms;
}

/* Returns how long the saga was paused by its log. Our own wait may be longer, because the database's clock counts and
 * its answers may be late. */
static long paused_ms_of(struct saga_id id)
{
    struct ask ask;
    struct json_walk walk;
    struct slice entry;
    int64_t paused_at_ms = 0, resumed_at_ms = 0;

    ask_engine(&ask, engine_get_log, .log = {.id = id, .limit = 100});
    ask_expect(&ask, ERR_OK);
    walk = json_walk(ask.request.answer);
    while (json_next_element(&walk, &entry)) {
        if (slice_is(json_member(entry, "type"), "\"saga.paused\"")) {
            paused_at_ms = instant_of(&ask, entry);
        } else if (slice_is(json_member(entry, "type"), "\"saga.resumed\"")) {
            resumed_at_ms = instant_of(&ask, entry);
        }
    }
    ask_end(&ask);
    assert_true(paused_at_ms > 0 && resumed_at_ms > paused_at_ms);
    return (long)(resumed_at_ms - paused_at_ms);
}

TEST(an_approval_of_a_saga_that_was_paused_shows_the_time_that_is_left)
{
    struct saga_id id = start_saga("hurries", "{}");
    struct ask ask;

    wait_until_parked(1);
    change(id, VERB_PAUSE);
    host_run_ms(&host, 300);
    change(id, VERB_RESUME);
    assert_int_equal(host_number(&host,
                                 "select count(*) from sagad.approval where status = 'open' and ended_at is null"
                                 " and expires_at = opened_at + interval '1 hour' + interval '%ld ms'"
                                 " and convert_from(body, 'UTF8')::jsonb ->> 'status' = 'open'"
                                 " and (convert_from(body, 'UTF8')::jsonb ->> 'expires_at')::timestamptz = expires_at",
                                 paused_ms_of(id)),
                     1);
    ask_change(&ask, VERB_ABORT, id);
    ask_ends(&ask, ERR_OK);
    assert_saga(id, 20000, "status", "\"compensated\"");
    assert_int_equal(
        host_number(&host, "select count(*) from sagad.approval where status = 'cancelled' and ended_at is not null"),
        1);
    assert_nothing_is_left();
}

TEST(a_saga_in_line_for_a_lock_is_parked_and_told)
{
    struct saga_id first = start_saga("holds", "{\"car\":7}"), second, third;

    wait_until_parked(1);
    second = start_saga("holds", "{\"car\":7}");
    wait_until_parked(2);
    third = start_saga("holds", "{\"car\":7}");
    wait_until_parked(3);
    assert_saga(second, 0, "status", "\"waiting\"");
    send_signal(first, "go", "null");
    assert_saga(first, 20000, "status", "\"completed\"");
    send_signal(third, "go", "null"); /* kept until the saga has its lock */
    send_signal(second, "go", "null");
    assert_saga(second, 20000, "status", "\"completed\"");
    assert_saga(third, 20000, "status", "\"completed\"");
    assert_int_equal(host_number(&host, "select count(*) from sagad.lock"), 0);
    assert_nothing_is_left();
}

TEST(many_parked_sagas_survive_the_end_of_their_engine)
{
    static struct ask asks[MANY];
    long completed = ended_count("completed"), idle, resting;

    rig_until_memory_is_empty();
    tell_statements(true);
    idle = statements_in(3000);
    for (int i = 0; i < MANY; i++) {
        ask_engine(&asks[i], engine_start_saga, .start = {.saga = SLICE("sleeps"), .input = SLICE("{}")});
    }
    for (int i = 0; i < MANY; i++) {
        ask_expect(&asks[i], ERR_OK);
        ask_end(&asks[i]);
    }
    wait_until_parked(MANY);
    resting = statements_in(3000);
    tell_statements(false);
    print_message("in 3 s: %ld statements without parked sagas, %ld with %d of them\n", idle, resting, MANY);
    /* What an engine does once a minute may fall into the second measurement. One statement for each saga would be five
     * hundred. */
    assert_true(resting <= idle + MANY / 10);
    engine_rig_end();
    ahead_ms += HOUR_MS + 1000;
    engine_rig_begin();
    wait_until_ended("completed", completed + MANY);
    assert_nothing_is_left();
}

TEST(a_parked_saga_goes_on_where_its_shard_is_taken_over)
{
    struct saga_id id = start_saga("dozes", "{}");
    long completed = ended_count("completed");

    wait_until_parked(1);
    rig_take_shards_away();
    wait_until_ended("completed", completed + 1);
    assert_saga(id, ENGINE_KNOWS_MS, "status", "\"completed\"");
    assert_nothing_is_left();
}

TEST(a_saga_that_has_moved_again_is_found_after_a_crash)
{
    struct saga_id id = start_saga("stuck", "{\"name\":\"Ann\"}");
    struct ask ask;

    wait_until_parked(1);
    ahead_ms += HOUR_MS; /* much later than recovery would look at by itself */
    ask_engine(&ask, engine_change,
               .change = {.verb = VERB_RESOLVE,
                          .input.verdict = {
                              .escalation = (uint64_t)host_number(&host, "select max(number) from sagad.escalation"),
                              .action = OPERATOR_RESOLVE,
                              .happened = true,
                              .result = SLICE("1"),
                              .note = SLICE("seen")}});
    ask_ends(&ask, ERR_OK);
    rig_take_shards_away();
    assert_saga(id, 30000, "status", "\"completed\"");
    assert_nothing_is_left();
}

static bool is_forgotten(void *context)
{
    (void)context;
    return metric_value(METRIC_FORGOTTEN) == 1;
}

TEST(an_ended_saga_is_forgotten_when_its_retention_is_over)
{
    struct saga_id id = start_saga("forgets", "{}");
    struct ask ask;

    assert_saga(id, 20000, "status", "\"completed\"");
    host_run_until(&host, is_forgotten, NULL);
    begin_get(&ask, id, 0);
    ask_ends(&ask, ERR_NOT_FOUND);
    assert_int_equal(host_number(&host, "select count(*) from sagad.saga where name = 'forgets'"), 0);
    assert_nothing_is_left();
}

/* The sagas leave memory after a millisecond, so that inputs meet them at every stage of leaving and coming back. */
TEST(mail_that_meets_a_saga_on_its_way_out_or_in_is_not_lost)
{
    static struct ask asks[FEW];
    struct saga_id ids[FEW];
    uint64_t parked;

    engine_rig_end();
    park_after_ms = 1;
    engine_rig_begin();
    for (int i = 0; i < FEW; i++) {
        ids[i] = start_saga("counts", "[0,1,2,3,4,5,6,7,8,9,10,11]");
    }
    parked = metric_value(METRIC_PARKED);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < FEW; i++) {
            ask_begin(&asks[i]);
            asks[i].request.in.change.verb = VERB_SIGNAL;
            asks[i].request.in.change.saga = ids[i];
            asks[i].request.in.change.input.signal.name = SLICE("n");
            asks[i].request.in.change.input.signal.payload = arena_printf(&asks[i].arena, "%d", round);
            engine_change(engine, &asks[i].request);
            if (i % 8 == round % 8) {
                host_run_ms(&host, 1 + i % 3);
            }
        }
        for (int i = 0; i < FEW; i++) {
            ask_expect(&asks[i], ERR_OK);
            ask_end(&asks[i]);
        }
        if (round == ROUNDS / 2) {
            rig_take_shards_away();
        }
    }
    for (int i = 0; i < FEW; i++) {
        assert_saga(ids[i], 20000, "output", "[0,1,2,3,4,5,6,7,8,9,10,11]");
    }
    print_message("left memory %llu times\n", (unsigned long long)(metric_value(METRIC_PARKED) - parked));
    assert_true(metric_value(METRIC_PARKED) - parked > FEW);
    assert_nothing_is_left();
}

ENGINE_RIG_PROGRAM(document, 100, 500)
