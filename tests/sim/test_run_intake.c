/* What an engine measures before it accepts new work, and what a refused client is told. */
#include "base/metric.h"
#include "store/store.h"
#include "tests/sim/stage.h"

static const char definitions[] = "{'tools':[{'name':'t','builtin':{'tool':'t'},'effect':'keyed',"
                                  "'key':{'window':'1h'},'terminal':true,'timeout':'1h'}],"
                                  "'sagas':[{'name':'s','steps':[{'id':'a','call':'t','with':{}}]}]}";

#define MANY 4200
static struct reply *asked[MANY];

static void begin(uint32_t calls_max, void (*tweak)(struct engine_options *options))
{
    stage_begin(&(struct stage_plan){
        .definitions = definitions, .node = {.sagas_max = 100000, .calls_max = calls_max}, .tweak = tweak});
}

/* Starts `count` sagas and returns how many were refused. */
static size_t start_many(uint32_t node, size_t first, size_t count)
{
    size_t refused = 0;

    for (size_t i = first; i < first + count; i++) {
        asked[i] = stage_ask(node, engine_start_saga,
                             &(struct engine_request){.in.start = {.saga = SLICE("s"), .input = SLICE("{}")}});
    }
    stage_settle();
    for (size_t i = first; i < first + count; i++) {
        refused += asked[i]->done && asked[i]->code == ERR_BUSY;
    }
    return refused;
}

struct refusal {
    struct err err;
    int64_t retry_after_ms;
    bool refused;
};

static void look(struct engine *engine, void *context)
{
    struct refusal *refusal = context;

    refusal->refused = engine_refuses_new(engine, &refusal->err, &refusal->retry_after_ms);
}

static bool refuses(const char *message) /* refuses with this message; NULL for any message */
{
    struct refusal refusal = {0};

    stage_inside(0, look, &refusal);
    assert_int_equal(refusal.retry_after_ms > 0, refusal.refused);
    if (refusal.refused && message) {
        assert_non_null(strstr(refusal.err.message, message));
    }
    return refusal.refused;
}

static void look_for_a_while(int64_t ms)
{
    for (int64_t i = 0; i < ms; i += 100) {
        stage_run(100);
        (void)refuses(NULL);
    }
}

static void show(struct engine *engine, void *context)
{
    struct buffer out;

    (void)context;
    buffer_init(&out, 1 << 20);
    engine_write_tool_metrics(engine, SLICE_NONE, &out);
    buffer_fini(&out);
}

/* Returns the gauge that tells Prometheus whether new work is held back. */
static int64_t shown_shut(void)
{
    stage_inside(0, show, NULL);
    return gauge_value(GAUGE_INTAKE_SHUT);
}

TEST(new_work_is_told_when_commits_take_long)
{
    begin(0, NULL);
    stage_hold(STORE_APPEND);
    (void)start_many(0, 0, 700);
    for (int i = 0; i < 20; i++) { /* some starts are written, slowly */
        for (int k = 0; k < 5; k++) {
            stage_let(STORE_APPEND);
        }
        (void)refuses(NULL);
    }
    size_t refused = start_many(0, 700, 300);

    assert_true(refused > 250);
    assert_int_equal(asked[999]->code, ERR_BUSY);
    assert_non_null(strstr(asked[999]->err.detail, "commits take too long"));
    assert_int_equal(shown_shut(), 1);
}

TEST(where_the_oldest_turn_waits_long_it_speaks_for_all)
{
    begin(0, NULL);
    stage_hold(STORE_APPEND);
    (void)start_many(0, 0, 1);
    look_for_a_while(3000);
    assert_int_equal(shown_shut(), 1);
    assert_true(gauge_value(GAUGE_INTAKE_PERCENT) > 1000);
}

TEST(new_work_is_told_when_calls_wait_long_for_a_place)
{
    begin(2, NULL);
    (void)start_many(0, 0, 100);
    look_for_a_while(6000);
    size_t refused = start_many(0, 100, 50);

    assert_true(refused > 40);
    assert_non_null(strstr(asked[149]->err.detail, "calls wait too long"));
}

static void calls_may_wait_for_an_hour(struct engine_options *options)
{
    options->call_delay_ms = 3600000;
}

TEST(a_queue_of_calls_that_is_full_is_named)
{
    begin(1, calls_may_wait_for_an_hour);
    (void)start_many(0, 0, 66);
    stage_run(100);
    assert_true(refuses("too many calls"));
    stage_answer_all();
    stage_run(1000);
    assert_false(refuses(NULL));
}

static size_t more_appends; /* appends that wait, beside those of the engine */

size_t __real_store_appends_waiting(const struct store *store);
size_t __wrap_store_appends_waiting(const struct store *store);

size_t __wrap_store_appends_waiting(const struct store *store)
{
    return __real_store_appends_waiting(store) + more_appends;
}

TEST(new_work_is_told_when_too_much_waits_for_the_database)
{
    begin(0, NULL);
    more_appends = 20000;
    stage_run(100);
    assert_true(refuses("waits for the database"));
    assert_int_equal(shown_shut(), 1);
    more_appends = 0;
    stage_run(100);
    assert_false(refuses(NULL));
    assert_int_equal(shown_shut(), 0);
}

static void little_memory(struct engine_options *options)
{
    options->memory_bytes_max = 1 << 16;
}

/* Freed memory is returned to the system first. Memory is a reason to refuse starts only while something could leave
 * it. */
TEST(memory_stands_against_new_work_only_while_something_could_leave_it)
{
    begin(0, little_memory);
    stage_run(600);
    assert_false(refuses(NULL));
    (void)stage_start(0, "s", "{}");
    stage_run(600);
    assert_true(refuses("memory"));
    size_t before = memory_given_back;

    stage_run(600);
    assert_true(refuses("memory"));
    assert_int_equal(memory_given_back, before); /* memory is not returned each time */
    stage_run(6000);
    assert_true(refuses("memory"));
    assert_int_equal(memory_given_back, before + 1);
}

TEST(a_bounded_number_of_requests_waits_for_other_engines)
{
    stage_begin(&(struct stage_plan){.definitions = definitions, .node_count = 2, .node = {.standbys = 2}});
    stage_hold(STORE_INBOX_PUT);
    assert_int_equal(start_many(1, 0, 4096), 0);
    assert_int_equal(start_many(1, 4096, 4), 4);
    assert_non_null(strstr(asked[4099]->err.message, "wait for other engines"));
    assert_int_equal(asked[4099]->call.retry_after_ms, 1000);
    node_kill(&nodes[1]);
}

TEST_PROGRAM_EACH(NULL, stage_teardown)
