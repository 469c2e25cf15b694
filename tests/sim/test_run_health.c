/* The health of tools, as people and Prometheus see it. */
#include "run/saga/live.h"
#include "tests/lib/texts.h"
#include "tests/sim/stage.h"

#include <stdio.h>

#include "run/query/health.h"
#include "store/guard.h"

static const char definitions[] = "{'tools':[{'name':'t','builtin':{'tool':'t'},'effect':'once',"
                                  "'terminal':true,'timeout':'1h'}],"
                                  "'sagas':[{'name':'s','steps':[{'id':'a','call':'t','with':{}}]}]}";

static const char *text; /* the text that was written last */

static void keep(struct buffer *out)
{
    struct node *before = node_enter(NULL);

    text = arena_text(&world->arena, buffer_slice(out));
    node_leave(before);
    buffer_fini(out);
}

static void write_metrics(struct engine *engine, void *context)
{
    struct buffer out;

    (void)context;
    buffer_init(&out, 16 << 20);
    engine_write_tool_metrics(engine, SLICE_NONE, &out);
    keep(&out);
}

static const char *metrics(void)
{
    stage_inside(0, write_metrics, NULL);
    return text;
}

static void write_stats(struct engine *engine, void *context)
{
    struct json_writer w;
    struct buffer out;

    buffer_init(&out, 1 << 20);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    health_write_json(engine, slice_of(context), &w);
    json_object_end(&w);
    keep(&out);
}

static const char *stats(const char *namespace)
{
    stage_inside(0, write_stats, (void *)namespace);
    return text;
}

static struct tool_health *health_of(const char *namespace, const char *tool)
{
    struct node *before = node_enter(&nodes[0]);
    struct tool_health *health = tool_health_of(nodes[0].engine, slice_of(namespace), slice_of(tool));

    node_leave(before);
    return health;
}

TEST(beyond_some_hundred_tools_the_rest_is_one_line)
{
    assert_null(strstr(metrics(), "~other"));
    for (int i = 0; i < 510; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "x%03d", i);
        struct tool_health *health = health_of("default", name);

        health->calls = 3;
        health->breaker_state = i == 502; /* a gauge shows the worst of them */
    }
    const char *shown = metrics();

    assert_has(shown, "sagad_tool_calls_total{namespace=\"default\",tool=\"x499\"} 3\n");
    assert_has_none(shown, "x500");
    assert_has(shown, "sagad_tool_calls_total{namespace=\"~other\",tool=\"~other\"} 30\n",
               "sagad_tool_breaker_state{namespace=\"~other\",tool=\"~other\"} 1\n");
}

TEST(a_name_cannot_forge_a_line)
{
    health_of("a\"b\\c\nd", "t")->calls = 1;
    assert_non_null(strstr(metrics(), "sagad_tool_calls_total{namespace=\"a\\\"b\\\\c\\nd\",tool=\"t\"} 1\n"));
}

TEST(each_sees_the_tools_of_its_namespace)
{
    health_of("default", "b")->breaker_state = BREAKER_OPEN;
    health_of("default", "a")->breaker_state = BREAKER_HALF_OPEN;
    health_of("another", "c")->calls = 1;
    health_of("another", "a")->calls = 1;
    const char *all = metrics(), *ours = strstr(all, "{namespace=\"default\",tool=\"a\"}"),
               *theirs = strstr(all, "{namespace=\"another\",tool=\"c\"}");

    assert_true(ours && theirs && theirs < ours); /* in order */
    const char *shown = stats("default");
    const char *a = strstr(shown, "\"name\":\"a\""), *b = strstr(shown, "\"name\":\"b\"");

    assert_true(a && b && a < b);
    assert_has_none(shown, "\"name\":\"c\"");
    assert_has(a, "\"breaker\":\"half_open\"");
    assert_has(b, "\"breaker\":\"open\"");
    assert_non_null(strstr(stats("another"), "\"breaker\":\"closed\""));
}

/* Makes a call whose outcome is unknown. A person is asked, and the saga leaves memory. */
static struct saga_id unknown(void)
{
    struct saga_id id = stage_start(0, "s", "{}");

    stage_answer_first(OUTCOME_UNKNOWN, "timeout", NULL);
    return id;
}

/* A request for the figures does not look at every saga in memory. */
TEST(only_sagas_in_doubt_are_looked_at)
{
    (void)stage_start(0, "s", "{}");
    stage_run(10);
    assert_int_equal(health_doubt_count(nodes[0].engine), 0);
    stage_answer_first(OUTCOME_UNKNOWN, "timeout", NULL);
    stage_run(10);
    assert_int_equal(health_doubt_count(nodes[0].engine), 1);
    assert_non_null(strstr(metrics(), "sagad_tool_unknown_open{namespace=\"default\",tool=\"t\"} 1\n"));
    assert_int_equal(health_doubt_count(nodes[0].engine), 1);
}

TEST(unknown_outcomes_count_in_memory_and_at_rest)
{
    struct saga_id first = unknown();

    stage_run(1000);
    assert_non_null(strstr(metrics(), "sagad_tool_unknown_open{namespace=\"default\",tool=\"t\"} 1\n"));
    struct saga_id second = unknown();

    stage_run(10000);
    assert_null(live_find(nodes[0].engine, first));
    assert_null(live_find(nodes[0].engine, second));
    assert_has(metrics(), "sagad_tool_unknown_open{namespace=\"default\",tool=\"t\"} 2\n",
               "sagad_tool_unknown_oldest_seconds{namespace=\"default\",tool=\"t\"} 11\n");
    stage_lose(0, saga_id_shard(first)); /* another engine counts the saga now */
    assert_non_null(strstr(metrics(), "sagad_tool_unknown_open{namespace=\"default\",tool=\"t\"} 1\n"));
    for (int i = 0; i < 8; i++) { /* the oldest counts, whatever the order */
        (void)unknown();
        stage_run(1000);
    }
    assert_non_null(strstr(metrics(), "sagad_tool_unknown_oldest_seconds{namespace=\"default\",tool=\"t\"} 18\n"));
}

/* The call became unknown while the clock of PostgreSQL, which engines follow, was an hour ahead. */
TEST(a_clock_that_was_set_back_tells_no_age)
{
    node_kill(&nodes[0]);
    pg_set_clock(world->pg, 3600000);
    stage_again(0);
    (void)unknown();
    node_kill(&nodes[0]);
    pg_set_clock(world->pg, 0);
    stage_again(0);
    assert_has(metrics(), "sagad_tool_unknown_open{namespace=\"default\",tool=\"t\"} 1\n",
               "sagad_tool_unknown_oldest_seconds{namespace=\"default\",tool=\"t\"} 0\n");
}

TEST(a_start_that_is_not_durable_yet_counts_for_nothing)
{
    struct reply *started;

    stage_hold(STORE_APPEND);
    started = stage_ask(0, engine_start_saga, &(struct engine_request){.in.start.saga = SLICE("s")});
    stage_settle();
    assert_null(strstr(metrics(), "tool=\"t\"} 1\n"));
    stage_release(STORE_APPEND);
    (void)stage_expect(started, ERR_OK);
}

static bool has_left;

static void on_left(void *context)
{
    (void)context;
    has_left = true;
}

static void leave(struct engine *engine, void *context)
{
    (void)context;
    engine_drain(engine, 0, on_left, NULL);
}

static bool is_without_store(void *context)
{
    (void)context;
    return has_left;
}

/* The engine shows the figures as long as clients ask. */
TEST(figures_are_shown_while_the_engine_leaves_and_when_it_has_left)
{
    stage_inside(0, leave, NULL);
    assert_non_null(strstr(metrics(), "sagad_tool_calls_total"));
    stage_until(is_without_store, NULL, "an engine that has left");
    assert_null(nodes[0].engine->store);
    assert_non_null(strstr(metrics(), "sagad_tool_calls_total"));
    node_kill(&nodes[0]); /* a killed engine cannot leave again */
}

STAGE_PROGRAM(.definitions = definitions, .node = {.park_after_ms = 2000})
