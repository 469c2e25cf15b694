/* Inputs that reached another engine, carried out by the owner of their shard: what happens to the row, and what is
 * answered. */
#include "tests/sim/stage.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "run/readiness.h"
#include "run/saga/summon.h"
#include "store/store.h"

#define WHO "'namespace':'default','actor':'a'"

static const char definitions[] =
    "{'tools':[{'name':'t','builtin':{'tool':'t'},'effect':'keyed','key':{'window':'1h'},"
    "'terminal':true,'timeout':'1h'},"
    "{'name':'look','builtin':{'tool':'look'},'effect':'read','timeout':'1h'}],"
    "'sagas':[{'name':'s','input':{'type':'object','properties':{'n':{'type':'integer'}}},"
    "'steps':[{'id':'a','call':'t','with':{}}]},"
    "{'name':'free','steps':[{'id':'a','call':'look','with':{}}]}]}";

/* --- what the engine does with rows --- */

static struct {
    void (*on_rows)(const struct inbox_row *rows, size_t count, void *context);
    void *context;
} watch;
static uint32_t dropped; /* the number of rows that the engine dropped */
static bool may_send;    /* the lease lasts long enough */
static char answer[4096];

void __real_store_inbox_watch(struct store *store, uint64_t shards,
                              void (*on_rows)(const struct inbox_row *rows, size_t count, void *context),
                              void *context);
void __wrap_store_inbox_watch(struct store *store, uint64_t shards,
                              void (*on_rows)(const struct inbox_row *rows, size_t count, void *context),
                              void *context);
void __real_store_inbox_drop(struct store *store, uint32_t shard, const struct uuid *id);
void __wrap_store_inbox_drop(struct store *store, uint32_t shard, const struct uuid *id);
bool __real_lease_allows_send(const struct leases *leases, uint32_t shard);
bool __wrap_lease_allows_send(const struct leases *leases, uint32_t shard);

void __wrap_store_inbox_watch(struct store *store, uint64_t shards,
                              void (*on_rows)(const struct inbox_row *rows, size_t count, void *context), void *context)
{
    watch.on_rows = on_rows;
    watch.context = context;
    __real_store_inbox_watch(store, shards, on_rows, context);
}

void __wrap_store_inbox_drop(struct store *store, uint32_t shard, const struct uuid *id)
{
    dropped++;
    __real_store_inbox_drop(store, shard, id);
}

bool __wrap_lease_allows_send(const struct leases *leases, uint32_t shard)
{
    return may_send && __real_lease_allows_send(leases, shard);
}

static void on_answer(void *request, enum err_code *code)
{
    if (*code == ERR_OK) {
        (void)snprintf(answer, sizeof(answer), "%.*s", SLICE_ARG(((const struct answer_put *)request)->body));
    }
    stage_on_answer(STORE_ANSWER_PUT, on_answer);
}

static void begin_with(size_t sagas_max)
{
    stage_begin(&(struct stage_plan){.definitions = definitions, .node = {.sagas_max = sagas_max}});
    stage_is_automatic = may_send = true;
    dropped = 0;
    answer[0] = '\0';
    stage_on_answer(STORE_ANSWER_PUT, on_answer);
}

static void begin(void)
{
    begin_with(0);
}

static size_t rows(void)
{
    return pg_inbox_rows(world->pg);
}

static bool is_answered(void)
{
    return answer[0] != '\0';
}

static const char *answered(void)
{
    static char code[64];
    struct slice name = json_string(json_member(slice_of(answer), "code"), NULL);

    (void)snprintf(code, sizeof(code), "%.*s", SLICE_ARG(name));
    return code;
}

static void deliver_again(void) /* delivers the remaining rows again */
{
    stage_run(600);
}

static struct saga_id fresh(void)
{
    return saga_id_new(1700000000000, 9);
}

static void hand_row(struct engine *engine, void *context)
{
    (void)engine;
    watch.on_rows(context, 1, watch.context);
}

/* Hands over a row that came out of the database before the engine lost the shard. */
static void hand_over(uint32_t shard)
{
    struct inbox_row row = {.id = uuid_v7(WORLD_START_MS),
                            .shard = shard,
                            .saga = fresh(),
                            .kind = SLICE("pause"),
                            .payload = stage_json("{" WHO "}")};

    stage_inside(0, hand_row, &row);
    stage_settle();
}

/* --- another engine registers something --- */

struct registering {
    struct arena arena;
    struct put_definitions put;
    struct definition_row row;
    bool created;
};

static void on_registered(struct store_read *read)
{
    struct registering *registering = read->context;

    CHECK(read->code == ERR_OK);
    arena_fini(&registering->arena);
    free(registering);
}

static void put_definition(struct engine *engine, void *context)
{
    struct registering *registering = memory_alloc(sizeof(*registering));

    arena_init(&registering->arena, 4096);
    registering->row = *(const struct definition_row *)context;
    registering->put =
        (struct put_definitions){.read = {.arena = &registering->arena, .done = on_registered, .context = registering},
                                 .rows = &registering->row,
                                 .created = &registering->created,
                                 .count = 1};
    store_put_definitions(engine->store, &registering->put);
}

static void registered(enum definition_kind kind, const char *name, const char *body)
{
    struct definition_row row = {
        .namespace = SLICE("default"), .kind = kind, .name = slice_of(name), .body = stage_json(body), .version = 1};

    stage_inside(0, put_definition, &row);
    stage_settle();
}

/* Writes a turn of a saga that cannot be read. */
static void write_nonsense(struct saga_id id)
{
    struct append_start start = {.namespace = SLICE("default"), .saga_name = SLICE("s"), .version = 1};

    stage_write(0, &(struct append){.saga = id,
                                    .namespace = SLICE("default"),
                                    .shard = saga_id_shard(id),
                                    .at_ms = WORLD_START_MS,
                                    .started_ms = WORLD_START_MS,
                                    .first_seq = 1,
                                    .record_count = 1,
                                    .payload = SLICE("[]"),
                                    .start = &start,
                                    .status_changed = true});
}

static bool log_has(struct saga_id saga, const char *text)
{
    return strstr(stage_log(saga), text) != NULL;
}

static void deliver(const char *kind, struct saga_id saga, const char *payload)
{
    (void)stage_deliver(0, kind, 9, saga, payload);
}

/* --- rows that mean nothing --- */

TEST(a_row_that_makes_no_sense_is_dropped)
{
    static const struct {
        const char *kind, *payload;
    } cases[] = {
        {"start", "{"},
        {"dance", "{" WHO "}"},
        {"resolve", "{" WHO ",'escalation':1,'action':'dance'}"},
        {"settled", "{" WHO ",'step':-1,'attempt':1,'outcome':'completed'}"},
        {"settled", "{" WHO ",'step':4294967295,'attempt':1,'outcome':'completed'}"},
        {"settled", "{" WHO ",'step':0,'attempt':0,'outcome':'completed'}"},
        {"settled", "{" WHO ",'step':0,'attempt':1,'outcome':'dance'}"},
        {"settled", "{" WHO ",'step':0,'attempt':1,'outcome':'absent'}"},
    };

    begin();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        deliver(cases[i].kind, fresh(), cases[i].payload);
        assert_int_equal(dropped, i + 1);
        assert_int_equal(rows(), 0);
        assert_false(is_answered());
    }
}

TEST(a_row_of_a_shard_that_is_not_ours_is_left_alone)
{
    begin();
    stage_lose(0, 9);
    deliver("pause", fresh(), "{" WHO "}");
    hand_over(9);
    hand_over(999);
    assert_int_equal(rows(), 1);
    assert_false(is_answered());
    node_drain(&nodes[0], 1000); /* an engine that leaves takes no input, either */
    hand_over(10);
    assert_false(is_answered());
}

TEST(a_row_that_comes_again_while_it_is_carried_out_is_carried_out_once)
{
    begin();
    struct saga_id id = fresh();

    stage_is_automatic = false;
    stage_hold(STORE_APPEND);
    deliver("start", id, "{" WHO ",'saga':'s','input':{}}");
    deliver_again();
    assert_int_equal(stage_held(STORE_APPEND), 1);
    stage_release(STORE_APPEND);
    assert_int_equal(rows(), 0);
    assert_string_equal(answered(), "ok");
    deliver("start", id, "{" WHO ",'saga':'s','input':{}}"); /* put twice, because the first answer was lost */
    assert_int_equal(rows(), 0);
}

/* --- starts --- */

TEST(a_start_that_is_there_is_found_and_one_with_other_input_refused)
{
    static const struct {
        const char *payload, *code;
    } cases[] = {
        {"{" WHO ",'saga':'s','business_id':'b','input':{'n':1}}", "ok"},
        {"{" WHO ",'saga':'s','business_id':'b','input':{'n':1}}", "ok"},
        {"{" WHO ",'saga':'s','business_id':'b','input':{'n':2}}", "other-input"},
    };

    begin();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        deliver("start", saga_id_new(1700000000000 + (int64_t)i, 9), cases[i].payload);
        assert_string_equal(answered(), cases[i].code);
        assert_int_equal(rows(), 0);
    }
}

TEST(a_start_of_what_was_registered_elsewhere_waits_for_the_news)
{
    begin();
    uint32_t loads = stage_asked(STORE_LOAD_DEFINITIONS);

    deliver("start", fresh(), "{" WHO ",'saga':'new','input':{}}");
    assert_int_equal(rows(), 1);
    assert_false(is_answered());
    assert_true(stage_asked(STORE_LOAD_DEFINITIONS) > loads);
}

TEST(a_start_whose_definition_does_not_compile_is_refused)
{
    begin();
    registered(DEFINITION_SAGA, "bad", "{'name':'bad','steps':[{'id':'a','call':'no_such_tool','with':{}}]}");
    deliver("start", fresh(), "{" WHO ",'saga':'bad','input':{}}");
    deliver_again();
    assert_int_equal(rows(), 0);
    assert_true(is_answered());
    assert_string_not_equal(answered(), "ok");
}

TEST(a_start_is_not_taken_in_where_there_is_too_much_work)
{
    begin_with(1);
    stage_is_automatic = false;
    (void)stage_start(0, "s", "{}");
    deliver("start", fresh(), "{" WHO ",'saga':'s','input':{}}");
    assert_string_equal(answered(), "busy");
    assert_int_equal(rows(), 0);
    /* The saga was promised the follower that it asked for at its end. */
    struct saga_id id = saga_id_new(1700000000001, 9);

    deliver("start", id, "{" WHO ",'saga':'s','input':{},'follows':'x'}");
    assert_true(log_has(id, "saga.started"));
}

/* --- followers: nobody waits for an answer --- */

TEST(a_follower_that_can_never_be_started_is_told_of_and_dropped)
{
    begin();
    deliver("start", fresh(),
            "{" WHO ",'saga':'s','input':{'n':'one'},'follows':'x'}"); /* the input does not fit the schema */
    assert_int_equal(rows(), 0);
    deliver("start", fresh(), "{" WHO ",'saga':'never','input':{},'follows':'x'}");
    assert_int_equal(rows(), 1); /* there may be news of it */
    stage_run(10000);
    deliver_again();
    assert_int_equal(rows(), 0);
    assert_false(is_answered());
}

TEST(a_follower_that_is_there_already_is_found)
{
    begin();
    struct saga_id first = fresh(), second = saga_id_new(1700000000001, 9);

    deliver("start", first, "{" WHO ",'saga':'free','business_id':'b','input':{},'follows':'x'}");
    assert_true(log_has(first, "saga.started"));
    deliver("start", second, "{" WHO ",'saga':'free','business_id':'b','input':{},'follows':'x'}");
    assert_int_equal(rows(), 0);
    assert_string_equal(stage_log(second), "");
}

TEST(a_follower_that_the_database_refuses_is_told_of_and_one_whose_shard_goes_stays)
{
    static const struct {
        enum err_code code;
        size_t rows;
    } cases[] = {{ERR_CORRUPT, 0}, {ERR_FENCED, 1}, {ERR_DECIDED, 1 /* removed by the engine that consumed it */}};

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin();
        stage_hold(STORE_APPEND);
        deliver("start", fresh(), "{" WHO ",'saga':'free','input':{},'follows':'x'}");
        stage_fail(STORE_APPEND, cases[i].code);
        assert_int_equal(rows(), cases[i].rows);
        stage_end();
    }
}

/* --- answers --- */

TEST(a_row_that_was_consumed_before_is_not_answered_again)
{
    begin();
    stage_is_automatic = false;
    struct saga_id id = stage_start(0, "s", "{}");

    stage_hold(STORE_APPEND);
    (void)stage_deliver(0, "pause", saga_id_shard(id), id, "{" WHO "}");
    stage_fail(STORE_APPEND, ERR_DECIDED); /* consumed by the owner at that time, which has answered */
    assert_false(is_answered());
}

TEST(a_row_that_cannot_be_done_now_is_left_for_an_engine_that_can)
{
    static const enum err_code codes[] = {ERR_STOPPING, ERR_FENCED, ERR_STORE};

    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        begin();
        stage_is_automatic = false;
        struct saga_id id = stage_start(0, "s", "{}");

        stage_hold(STORE_APPEND);
        (void)stage_deliver(0, "pause", saga_id_shard(id), id, "{" WHO "}");
        stage_fail(STORE_APPEND, codes[i]);
        assert_false(is_answered());
        assert_int_equal(rows(), 1);
        stage_end();
    }
}

static void gain_anew(struct engine *engine, void *context)
{
    (void)context;
    shard_gained(9, engine->shards[9].epoch + 1, engine);
}

TEST(a_refusal_of_an_engine_that_may_have_lost_the_shard_is_not_told)
{
    for (int i = 0; i < 3; i++) {
        begin();
        stage_hold(STORE_LIST_QUESTIONS);
        deliver("resolve", fresh(), "{" WHO ",'escalation':9,'action':'retry'}"); /* no such escalation exists */
        if (i == 0) {
            may_send = false;
        } else if (i == 1) {
            stage_lose(0, 9);
        } else {
            stage_lose(0, 9);
            stage_inside(0, gain_anew, NULL);
            stage_settle();
        }
        stage_let(STORE_LIST_QUESTIONS);
        assert_false(is_answered());
        assert_int_equal(rows(), 1);
        stage_end();
    }
}

TEST(a_refusal_of_an_engine_that_has_left_is_not_told)
{
    begin();
    stage_hold(STORE_LIST_QUESTIONS);
    deliver("resolve", fresh(), "{" WHO ",'escalation':9,'action':'retry'}");
    nodes[0].cut = true; /* the store closes before the database has said that there is none */
    stage_let(STORE_LIST_QUESTIONS);
    node_drain(&nodes[0], 0);
    stage_run(3000);
    assert_false(nodes[0].up);
    assert_false(is_answered());
    assert_int_equal(rows(), 1);
}

TEST(an_answer_that_is_not_written_is_given_again_for_the_row_that_is_left)
{
    begin();
    stage_hold(STORE_ANSWER_PUT);
    deliver("pause", fresh(), "{" WHO "}");
    stage_fail(STORE_ANSWER_PUT, ERR_STORE);
    assert_int_equal(rows(), 1);
    deliver_again();
    stage_let(STORE_ANSWER_PUT);
    assert_string_equal(answered(), "not-found");
    assert_int_equal(rows(), 0);
}

TEST(a_refusal_while_its_shard_is_given_away_is_still_ours)
{
    begin();
    stage_is_automatic = false;
    stage_hold(STORE_LIST_QUESTIONS);
    while (list_empty(&nodes[0].engine->shards[9].sagas)) { /* a call is under way there */
        (void)stage_start(0, "s", "{}");
    }
    deliver("resolve", fresh(), "{" WHO ",'escalation':9,'action':'retry'}");
    for (uint32_t i = 0; i < SHARD_COUNT; i++) { /* the other shards stay */
        nodes[0].engine->shards[i].keep_until_boot_ms = i == 9 ? 0 : INT64_MAX;
    }
    stage_give(0, 1);
    stage_run(100);
    assert_int_equal(nodes[0].engine->shards[9].state, SHARD_GIVING);
    stage_let(STORE_LIST_QUESTIONS);
    assert_string_equal(answered(), "not-found");
    assert_int_equal(rows(), 0);
}

/* A program that can read the saga will find the input. */
TEST(an_input_for_a_saga_that_cannot_be_read_stays)
{
    static const struct {
        const char *kind, *payload;
    } cases[] = {
        {"pause", "{" WHO "}"},
        {"settled", "{" WHO ",'step':0,'direction':'do','attempt':1,'outcome':'completed'}"},
        {"locked", "{'namespace':'default','key':'k'}"},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin();
        write_nonsense(fresh());
        struct saga_id id = saga_id_new(5, 9);

        write_nonsense(id);
        deliver(cases[i].kind, id, cases[i].payload);
        assert_int_equal(rows(), 1);
        uint32_t reads = stage_asked(STORE_READ_SAGA);

        deliver_again(); /* it is held */
        assert_int_equal(stage_asked(STORE_READ_SAGA), reads);
        stage_run(61000);
        deliver_again(); /* and it is tried again after a while */
        assert_int_equal(stage_asked(STORE_READ_SAGA), reads + 1);
        assert_int_equal(rows(), 1);
        stage_end();
    }
}

TEST(the_answer_about_it_is_given_again_where_it_was_not_written)
{
    begin();
    struct saga_id id = saga_id_new(5, 9);

    write_nonsense(id);
    stage_hold(STORE_ANSWER_PUT);
    deliver("pause", id, "{" WHO "}");
    stage_fail(STORE_ANSWER_PUT, ERR_STORE);
    deliver_again(); /* the input is not held */
    stage_let(STORE_ANSWER_PUT);
    assert_string_equal(answered(), "corrupt");
    assert_int_equal(rows(), 1);
}

/* --- evidence and locks: nobody waits for an answer --- */

TEST(evidence_that_nobody_can_take_now_stays)
{
    static const enum err_code codes[] = {ERR_STORE, ERR_FENCED};
    static const char *const kinds[] = {"settled", "locked"};

    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        for (size_t k = 0; k < COUNT_OF(kinds); k++) {
            begin();
            struct saga_id id = saga_id_new(5, 9);

            stage_hold(STORE_READ_SAGA);
            deliver(kinds[k], id, "{" WHO ",'key':'k','step':0,'direction':'undo','attempt':1,'outcome':'completed'}");
            if (codes[i] == ERR_FENCED) {
                stage_lose(0, 9);
                stage_let(STORE_READ_SAGA);
            } else {
                stage_fail(STORE_READ_SAGA, ERR_STORE);
            }
            assert_int_equal(rows(), 1);
            stage_end();
        }
    }
}

TEST(evidence_stays_while_memory_is_full)
{
    static const char *const kinds[] = {"settled", "locked"};

    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        begin_with(1);
        stage_hold(STORE_READ_SAGA);
        for (int i = 0; i < 70; i++) {
            deliver(kinds[k], saga_id_new(5, 9), "{" WHO ",'key':'k','step':0,'attempt':1,'outcome':'completed'}");
        }
        assert_int_equal(rows(), 70);
        stage_release(STORE_READ_SAGA); /* no saga exists for these, so they mean nothing */
        assert_in_range(rows(), 1, 10);
        stage_end();
    }
}

TEST(evidence_that_changes_nothing_is_dropped)
{
    begin();
    struct saga_id id = stage_start(0, "s", "{}"); /* the saga has ended */

    (void)stage_deliver(0, "settled", saga_id_shard(id), id,
                        "{" WHO ",'step':0,'direction':'do','attempt':1,'outcome':'completed'}");
    assert_int_equal(rows(), 0);
    deliver("locked", saga_id_new(5, 9), "{" WHO ",'key':'k'}"); /* no such saga exists */
    assert_int_equal(rows(), 0);
    stage_is_automatic = false;
    id = stage_start(0, "s", "{}"); /* the call is under way, and an attempt that was never made says nothing */
    (void)stage_deliver(0, "settled", saga_id_shard(id), id,
                        "{" WHO ",'step':0,'direction':'do','attempt':7,'outcome':'completed'}");
    assert_int_equal(rows(), 0);
    assert_false(log_has(id, "step.completed"));
}

TEST(evidence_settles_what_is_unknown)
{
    begin();
    stage_is_automatic = false;
    struct saga_id id = stage_start(0, "s", "{}");

    (void)stage_deliver(0, "settled", saga_id_shard(id), id,
                        "{" WHO ",'step':0,'direction':'do','attempt':1,'outcome':'completed','result':{}}");
    assert_int_equal(rows(), 0);
}

/* --- calls --- */

TEST(a_call_of_a_tool_that_was_registered_elsewhere_waits_for_the_news)
{
    static const char call[] = "{" WHO ",'run':'r','tool':'new','args':{},'wait_ms':10000}";

    begin();
    deliver("call", (struct saga_id){0}, call);
    stage_run(300);
    assert_false(is_answered());
    stage_run(10000); /* no such saga exists */
    assert_string_equal(answered(), "not-found");
    assert_int_equal(rows(), 0);
}

static void reload(struct engine *engine, void *context)
{
    (void)context;
    engine_reload_definitions(engine);
}

TEST(a_call_of_a_tool_that_does_not_compile_is_answered_at_once)
{
    begin();
    registered(DEFINITION_TOOL, "bad", "{'name':'bad','builtin':{'tool':'act'},'effect':'dance'}");
    stage_inside(0, reload, NULL);
    stage_settle();
    deliver("call", (struct saga_id){0}, "{" WHO ",'run':'r','tool':'bad','args':{},'wait_ms':10000}");
    assert_true(is_answered());
    assert_string_not_equal(answered(), "ok");
    assert_int_equal(rows(), 0);
}

TEST(a_call_that_waits_for_news_when_the_engine_ends_is_left_for_the_next)
{
    begin();
    deliver("call", (struct saga_id){0}, "{" WHO ",'run':'r','tool':'new','args':{},'wait_ms':10000}");
    node_drain(&nodes[0], 0);
    stage_run(1);
    assert_int_equal(rows(), 1);
    assert_false(is_answered());
}

TEST(a_call_whose_shard_went_while_it_waited_is_left_to_the_next_owner)
{
    begin();
    uint32_t shard = run_shard(SLICE("default"), SLICE("r"));

    (void)stage_deliver(0, "call", shard, (struct saga_id){0},
                        "{" WHO ",'run':'r','tool':'new','args':{},'wait_ms':10000}");
    registered(DEFINITION_TOOL, "new", "{'name':'new','builtin':{'tool':'act'},'effect':'read','timeout':'1h'}");
    stage_lose(0, shard);
    stage_run(1000);
    assert_int_equal(stage_calls(NULL), 0);
    assert_int_equal(rows(), 1);
}

/* --- clocks that are ahead: from here on this process makes ids of later --- */

TEST(a_follower_whose_clock_is_far_ahead_is_old_too)
{
    begin();
    stage_sender_ahead_ms = 3600000;
    deliver("start", fresh(), "{" WHO ",'saga':'never','input':{},'follows':'x'}");
    assert_int_equal(rows(), 0);
    assert_int_equal(dropped, 1);
}

TEST(a_caller_whose_clock_is_ahead_waits_no_longer_than_it_wanted)
{
    begin();
    stage_is_automatic = false;
    stage_sender_ahead_ms = 60000;
    (void)stage_deliver(0, "pause", 63, fresh(), "{" WHO "}"); /* later ids are made now */
    stage_sender_ahead_ms = 0;
    (void)stage_deliver(0, "call", run_shard(SLICE("default"), SLICE("r")), (struct saga_id){0},
                        "{" WHO ",'run':'r','tool':'look','args':{},'wait_ms':1000}");
    stage_run(900);
    assert_string_equal(answered(), "not-found"); /* the answer of the pause */
    stage_run(200);
    assert_string_equal(answered(), "ok"); /* it goes on */
}

TEST_PROGRAM_EACH(NULL, stage_teardown)
