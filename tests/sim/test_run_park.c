/*
 * Shards come and go, sagas leave memory and come back, and the database refuses requests in between. Nothing is lost
 * or done twice, and each refused request is repeated.
 */
#include "run/call/call_queue.h"
#include "run/saga/live.h"
#include "run/shard/shard.h"
#include "tests/sim/stage.h"

#include <stdio.h>

#include "base/json.h"
#include "base/metric.h"

static const char document[] =
    "{'tools':["
    "{'name':'act','builtin':{'tool':'act'},'effect':'idempotent','compensate':{'tool':'undo'}},"
    "{'name':'lose','builtin':{'tool':'lose'},'effect':'once','compensate':{'tool':'undo'}},"
    "{'name':'undo','builtin':{'tool':'undo'},'effect':'idempotent'}],"
    "'sagas':["
    "{'name':'listens','steps':[{'id':'a','signal':{'name':'paid'}}]},"
    "{'name':'listens-and-goes','retention':'20s','steps':[{'id':'a','signal':{'name':'paid'}}]},"
    "{'name':'listens-and-acts','steps':[{'id':'a','signal':{'name':'paid'}},{'id':'b','call':'act','with':{},'after':["
    "'a']}]},"
    "{'name':'sleeps','steps':[{'id':'a','sleep':'1m'},{'id':'b','call':'act','with':{}}]},"
    "{'name':'forgets','retention':'20s','steps':[{'id':'a','call':'act','with':{}}]},"
    "{'name':'acts','steps':[{'id':'a','call':'act','with':{}}]}"
    "]}";

static struct engine *engine_now(void)
{
    return nodes[0].engine;
}

static void assert_status(struct saga_id id, const char *status)
{
    struct slice shown = stage_saga(0, id);

    if (!json_string_is(json_member(shown, "status"), status)) {
        fail_msg("it is not %s: %.*s", status, SLICE_ARG(shown));
    }
}

static enum err_code signal_it(struct saga_id id)
{
    struct reply *a;

    a = stage_wait(stage_change(0, VERB_SIGNAL, id, .input.signal = {.name = SLICE("paid")}));
    return a->code;
}

static enum err_code get(struct saga_id id)
{
    struct reply *a;

    a = stage_wait(stage_ask(0, engine_get_saga, &(struct engine_request){.in.get.id = id}));
    return a->code;
}

static struct shard *shard_of(struct saga_id id)
{
    return &engine_now()->shards[saga_id_shard(id)];
}

/* --- leaving memory --- */

TEST(a_saga_whose_parking_is_refused_stays_and_is_parked_when_it_has_moved)
{
    struct saga_id id = stage_start(0, "listens", "{}");
    uint32_t parks;

    stage_refuse(STORE_PARK, ERR_STORE, 1);
    stage_run(10000);
    parks = stage_asked(STORE_PARK);
    assert_int_equal(parks, 1);
    assert_non_null(live_find(engine_now(), id));
    stage_run(10000);
    assert_int_equal(stage_asked(STORE_PARK), parks); /* not again and again */
    assert_int_equal(signal_it(id), ERR_OK);
    stage_until_saga(0, id, "completed");
}

static void lost(void *request, enum err_code *code)
{
    (void)request;
    *code = ERR_STORE;
}

/* The row left in due is replaced by the end of the saga, which must not expect that there is no row (the world checks
 * that). */
TEST(a_saga_whose_parking_was_done_and_counts_as_refused_is_forgotten_all_the_same)
{
    struct saga_id id = stage_start(0, "listens-and-goes", "{}");

    stage_on_answer(STORE_PARK, lost);
    stage_run(10000);
    assert_non_null(live_find(engine_now(), id));
    assert_int_equal(signal_it(id), ERR_OK);
    stage_until_saga(0, id, "completed");
    stage_run(60000);
    assert_int_equal(get(id), ERR_NOT_FOUND);
}

/* Recovery must not skip a saga that moves on because of that row. */
TEST(a_saga_whose_parking_was_done_and_counts_as_refused_is_found_after_a_crash)
{
    struct saga_id id = stage_start(0, "listens-and-acts", "{}");

    stage_tool("act")->delay_ms = 5000;
    stage_on_answer(STORE_PARK, lost);
    stage_run(10000);
    assert_int_equal(signal_it(id), ERR_OK);
    stage_run(1000);
    node_kill(&nodes[0]); /* the engine dies while the saga acts */
    stage_again(0);
    stage_run(30000);
    assert_status(id, "completed"); /* nobody has asked for the saga before */
}

TEST(a_saga_whose_parking_is_fenced_goes_to_the_next_owner)
{
    struct saga_id id = stage_start(0, "listens", "{}");

    stage_refuse(STORE_PARK, ERR_FENCED, 1);
    stage_run(30000); /* the shard is ours again by then */
    assert_null(live_find(engine_now(), id));
    assert_int_equal(signal_it(id), ERR_OK);
    stage_until_saga(0, id, "completed");
}

static void lose_its_shard(void *request, enum err_code *code)
{
    const struct park *park = request;

    (void)code;
    shard_lost(park->shard, park->epoch, engine_now());
}

TEST(a_saga_may_leave_with_its_shard_while_it_is_being_parked)
{
    struct saga_id id = stage_start(0, "listens", "{}");

    stage_on_answer(STORE_PARK, lose_its_shard);
    stage_run(5000);
    assert_null(live_find(engine_now(), id));
    assert_int_equal(shard_of(id)->state, SHARD_NONE);
    node_kill(&nodes[0]); /* the engine believes that it has lost what it holds */
}

static struct reply *waiting;

static void ask_meanwhile(void *request, enum err_code *code)
{
    const struct park *park = request;

    (void)code;
    waiting = stage_ask(0, engine_get_saga, &(struct engine_request){.in.get = {.id = park->saga, .wait_ms = 20000}});
}

TEST(a_saga_that_is_asked_for_while_it_is_parked_stays)
{
    struct saga_id id = stage_start(0, "listens", "{}");

    stage_on_answer(STORE_PARK, ask_meanwhile);
    stage_run(5000);
    assert_non_null(live_find(engine_now(), id));
    assert_int_equal(signal_it(id), ERR_OK);
    (void)stage_expect(waiting, ERR_OK);
    assert_true(json_string_is(json_member(waiting->answer, "status"), "completed"));
}

/* When the database refuses the saga's turns as data again and again, the saga waits for a person or for the next
 * engine. The engine stops asking and keeps the saga in sight. */
TEST(a_saga_whose_turns_are_refused_again_and_again_stands_still_in_memory)
{
    stage_tool("act")->delay_ms = 500;
    struct saga_id id = stage_start(0, "acts", "{}");
    uint32_t appends = stage_asked(STORE_APPEND);

    stage_refuse(STORE_APPEND, ERR_CORRUPT, REFUSALS_MAX);
    stage_run(60000);
    assert_true(stage_asked(STORE_APPEND) <= appends + REFUSALS_MAX + 1);
    assert_non_null(live_find(engine_now(), id));
    assert_int_equal(stage_asked(STORE_PARK), 0);
    node_kill(&nodes[0]);
    stage_again(0);
    stage_until_saga(0, id, "completed"); /* the next engine can */
}

TEST(memory_is_given_back_after_many_have_left)
{
    enum { MANY = 1001 };

    engine_now()->options.sagas_max = 2 * MANY;
    size_t before = memory_given_back;

    for (int i = 0; i < MANY; i++) {
        (void)stage_start(0, "listens", "{}");
    }
    stage_run(20000);
    assert_int_equal(lives_count(engine_now()), 0);
    assert_true(memory_given_back > before);
}

/* --- coming back --- */

TEST(due_sagas_are_looked_for_again_when_the_database_could_not_say)
{
    struct saga_id id = stage_start(0, "sleeps", "{}");

    stage_run(10000);
    assert_null(live_find(engine_now(), id));
    stage_refuse(STORE_DUE_TAKE, ERR_STORE, 3);
    stage_run(70000);
    assert_status(id, "completed");
}

TEST(a_sleeper_that_cannot_be_read_back_is_tried_again)
{
    static const enum err_code codes[] = {ERR_STORE, ERR_NOT_FOUND};

    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        struct saga_id id = stage_start(0, "sleeps", "{}");

        stage_run(10000);
        assert_null(live_find(engine_now(), id));
        stage_refuse(STORE_READ_SAGA, codes[i], 1);
        stage_run(58000);
        stage_run(codes[i] == ERR_NOT_FOUND ? 70000 : 0);
        assert_status(id, "completed");
    }
}

static void spoil_turn(void *request, enum err_code *code)
{
    struct read_saga *read = container_of(request, struct read_saga, read);

    assert_int_equal(*code, ERR_OK);
    read->turns[0].payload = SLICE("[7]");
}

TEST(a_sleeper_whose_log_makes_no_sense_is_left_alone_for_a_while)
{
    struct saga_id id = stage_start(0, "sleeps", "{}"), other;

    stage_run(10000);
    stage_on_answer(STORE_READ_SAGA, spoil_turn);
    stage_run(55000);
    uint32_t reads = stage_asked(STORE_READ_SAGA);

    assert_true(reads >= 1);
    /* Another saga is due meanwhile. This one is not read for that. */
    other = stage_start(0, "forgets", "{}");
    stage_run(25000);
    assert_int_equal(stage_asked(STORE_READ_SAGA), reads);
    stage_run(60000);
    assert_status(id, "completed"); /* the saga can be read now */
    (void)other;
}

TEST(a_saga_that_is_unreadable_again_and_again_is_told_of_once)
{
    struct saga_id id = stage_start(0, "sleeps", "{}");

    stage_run(10000);
    stage_on_answer(STORE_READ_SAGA, spoil_turn);
    stage_run(60000);
    stage_on_answer(STORE_READ_SAGA, spoil_turn);
    stage_run(65000);
    stage_run(70000);
    assert_status(id, "completed");
}

static size_t others_in_memory;

size_t __real_lives_count(const struct engine *engine);
size_t __wrap_lives_count(const struct engine *engine);

size_t __wrap_lives_count(const struct engine *engine)
{
    return __real_lives_count(engine) + others_in_memory;
}

TEST(more_that_is_due_than_memory_has_room_for_comes_when_there_is_room)
{
    struct saga_id ids[3];

    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        ids[i] = stage_start(0, "sleeps", "{}");
    }
    stage_run(10000);
    assert_int_equal(lives_count(engine_now()), 0);
    size_t max = engine_now()->options.sagas_max;

    /* The engine is as if full of other sagas. Due sagas have a little room of their own, here none. */
    others_in_memory = 2000;
    stage_run(58000);
    others_in_memory = 0;
    assert_int_equal(engine_now()->options.sagas_max, max);
    stage_run(5000);
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        assert_status(ids[i], "completed");
    }
}

TEST(many_that_are_due_at_once_all_come)
{
    enum { MANY = 700 };
    static struct saga_id ids[MANY];

    for (size_t i = 0; i < MANY; i++) {
        ids[i] = stage_start(0, "sleeps", "{}");
    }
    stage_run(10000);
    assert_int_equal(lives_count(engine_now()), 0);
    nodes[0].wall_offset_ms = 30000; /* a late clock is set right, so all sagas are due by then */
    stage_run(70000);
    for (size_t i = 0; i < MANY; i++) {
        assert_status(ids[i], "completed");
    }
}

static void stop_reading(void *request, enum err_code *code)
{
    (void)request;
    *code = ERR_STOPPING;
}

static void lose_while_reading(void *request, enum err_code *code)
{
    (void)request;
    (void)code;
    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        shard_lost(i, engine_now()->shards[i].epoch, engine_now());
    }
}

TEST(a_saga_that_is_due_in_the_moment_of_a_loss_is_for_the_next_owner)
{
    struct saga_id ids[2];

    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        ids[i] = stage_start(0, "sleeps", "{}");
        stage_run(10000);
    }
    stage_on_answer(STORE_READ_SAGA, stop_reading);
    stage_run(45000);
    stage_on_answer(STORE_READ_SAGA, lose_while_reading);
    stage_run(20000);
    node_kill(&nodes[0]);
    stage_again(0);
    stage_run(5000);
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        assert_status(ids[i], "completed");
    }
}

TEST(an_unreadable_saga_is_let_go_with_its_engine)
{
    struct saga_id id = stage_start(0, "sleeps", "{}");

    stage_run(10000);
    stage_on_answer(STORE_READ_SAGA, spoil_turn);
    stage_run(55000);
    node_drain(&nodes[0], 1000);
    stage_run(3000);
    assert_false(nodes[0].up); /* the engine has ended and freed everything */
    stage_again(0);
    stage_run(1000);
    assert_status(id, "completed"); /* the next engine can read the saga */
}

/* A promise of the stage itself: requests die with the engine that sent them, however often that happens. */
TEST(what_a_killed_engine_has_asked_is_not_waited_for)
{
    enum { LIVES = 70, ASKS = 64 };
    struct engine_request what = {0};

    for (int life = 0; life < LIVES; life++) {
        for (size_t i = 0; i < ASKS; i++) {
            what.in.get.id.uuid.bytes[0] = (uint8_t)(i + 1); /* nobody's */
            (void)stage_ask(0, engine_get_saga, &what);
        }
        node_kill(&nodes[0]);
        stage_again(0);
    }
    assert_status(stage_start(0, "acts", "{}"), "running");
}

/* --- forgetting --- */

enum { BATCH = 500, MANY_DUE = BATCH + 20 }; /* more than one read returns */

static size_t due_at_once; /* the most due sagas that one read found */

static void count_due(void *request, enum err_code *code)
{
    const struct due_take *take = container_of((struct store_read *)request, struct due_take, read);

    if (*code == ERR_OK && take->forget_limit > 0 && take->count > due_at_once) {
        due_at_once = take->count;
    }
    stage_on_answer(STORE_DUE_TAKE, count_due);
}

/* All of them are due once the database is asked again. */
static void start_many(struct saga_id ids[MANY_DUE])
{
    for (size_t i = 0; i < MANY_DUE; i++) {
        ids[i] = stage_start(0, "forgets", "{}");
    }
    stage_refuse(STORE_DUE_TAKE, ERR_STORE, 1000);
    stage_run(60000);
    stage_refuse(STORE_DUE_TAKE, ERR_OK, 0);
    due_at_once = 0;
    stage_on_answer(STORE_DUE_TAKE, count_due);
}

static void assert_all_gone(const struct saga_id ids[MANY_DUE])
{
    for (size_t i = 0; i < MANY_DUE; i++) {
        assert_int_equal(get(ids[i]), ERR_NOT_FOUND);
    }
}

TEST(all_sagas_whose_retention_is_over_are_forgotten_however_many)
{
    static struct saga_id ids[MANY_DUE];

    start_many(ids);
    stage_run(10000);
    assert_int_equal(due_at_once, BATCH);
    assert_int_equal(stage_asked(STORE_FORGET), MANY_DUE);
    assert_all_gone(ids);
}

/* The read returns a whole batch, and nothing of it has moved. */
TEST(a_refused_forgetting_is_tried_again)
{
    static struct saga_id ids[MANY_DUE];

    start_many(ids);
    stage_refuse(STORE_FORGET, ERR_STORE, BATCH);
    stage_run(10000);
    assert_int_equal(due_at_once, BATCH);
    assert_int_equal(stage_asked(STORE_FORGET), BATCH); /* not at once */
    stage_run(60000);
    assert_int_equal(stage_asked(STORE_FORGET), BATCH + MANY_DUE);
    assert_all_gone(ids);
}

TEST(a_fenced_forgetting_is_for_the_next_owner)
{
    struct saga_id id = stage_start(0, "forgets", "{}");

    stage_refuse(STORE_FORGET, ERR_FENCED, 1);
    stage_run(60000);
    assert_int_equal(get(id), ERR_NOT_FOUND);
}

static void forget_lost(void *request, enum err_code *code)
{
    const struct forget *forget = request;

    shard_lost(forget->shard, forget->epoch, engine_now());
    *code = ERR_FENCED;
}

static void stop_it(void *request, enum err_code *code)
{
    (void)request;
    *code = ERR_STOPPING;
}

TEST(what_a_shard_that_is_gone_already_says_of_forgetting_means_nothing)
{
    struct saga_id id = stage_start(0, "forgets", "{}");
    uint32_t owned = shards_owned(engine_now());

    stage_on_answer(STORE_FORGET, stop_it);
    (void)stage_start(0, "forgets", "{}");
    stage_run(25000);
    assert_int_equal(shards_owned(engine_now()), owned);
    id = stage_start(0, "forgets", "{}");
    stage_on_answer(STORE_FORGET, forget_lost);
    stage_run(25000);
    assert_int_equal(shard_of(id)->state, SHARD_NONE);
    assert_int_equal(shards_owned(engine_now()), owned - 1); /* only this shard, and only once */
    node_kill(&nodes[0]);                                    /* the engine believes that it has lost what it holds */
}

static void lose_all(struct engine *engine, void *context)
{
    (void)context;
    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        shard_lost(i, engine->shards[i].epoch, engine);
    }
}

static void lose_the_shard_of_what_is_due(void *request, enum err_code *code)
{
    (void)request;
    (void)code;
    lose_all(engine_now(), NULL);
}

TEST(a_due_saga_of_a_shard_that_was_lost_meanwhile_is_left_alone)
{
    uint32_t asked;

    (void)stage_start(0, "forgets", "{}");
    stage_run(10000);
    stage_on_answer(STORE_DUE_TAKE, lose_the_shard_of_what_is_due);
    stage_run(30000);
    assert_int_equal(stage_asked(STORE_FORGET), 0);
    asked = stage_asked(STORE_DUE_TAKE);
    stage_run(60000);
    assert_int_equal(stage_asked(STORE_DUE_TAKE), asked); /* no saga here can be due */
    node_kill(&nodes[0]);
}

TEST(a_clock_that_is_set_back_makes_nothing_due_early)
{
    struct saga_id id = stage_start(0, "sleeps", "{}");

    stage_run(10000);
    nodes[0].wall_offset_ms = -30000;
    stage_run(40000);
    assert_status(id, "waiting");
    stage_run(120000);
    assert_status(id, "completed");
}

/* --- shards --- */

TEST(a_shard_that_could_not_be_read_is_read_again_and_holds_each_saga_once)
{
    struct saga_id ids[8];

    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        ids[i] = stage_start(0, "listens", "{}");
    }
    node_kill(&nodes[0]);
    stage_refuse(STORE_LOAD_SHARD, ERR_STORE, 2);
    stage_again(0);
    stage_run(100);
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        assert_int_equal(signal_it(ids[i]), ERR_OK);
        stage_until_saga(0, ids[i], "completed");
    }
}

static uint32_t spoiled_loads;

static void spoil_load(void *request, enum err_code *code)
{
    (void)request;
    *code = ERR_STORE; /* the sagas were read, and the end of the answer was lost */
    if (++spoiled_loads < 64) {
        stage_on_answer(STORE_LOAD_SHARD, spoil_load);
    }
}

TEST(a_shard_whose_answer_broke_off_holds_each_saga_once)
{
    struct saga_id ids[8];

    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        ids[i] = stage_start(0, "listens", "{}");
    }
    node_kill(&nodes[0]);
    spoiled_loads = 0;
    stage_on_answer(STORE_LOAD_SHARD, spoil_load);
    stage_again(0);
    stage_run(500);
    assert_int_equal(lives_count(engine_now()), COUNT_OF(ids));
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        assert_int_equal(signal_it(ids[i]), ERR_OK);
        stage_until_saga(0, ids[i], "completed");
    }
}

static bool is_loading(void *context)
{
    const struct engine *engine = engine_now();

    (void)context;
    for (uint32_t i = 0; engine && i < SHARD_COUNT; i++) {
        if (engine->shards[i].state == SHARD_LOADING && engine->shards[i].load_running) {
            return true;
        }
    }
    return false;
}

static void begin_to_load(void)
{
    (void)stage_start(0, "listens", "{}");
    node_kill(&nodes[0]);
    node_start(&nodes[0], &stage_options);
    stage_until(is_loading, NULL, "a shard that is being read");
}

static void lose_and_gain_all(struct engine *engine, void *context)
{
    (void)context;
    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        if (engine->shards[i].state == SHARD_LOADING) {
            int64_t epoch = engine->shards[i].epoch;

            shard_lost(i, epoch - 1, engine); /* an older epoch means nothing */
            assert_int_equal(engine->shards[i].state, SHARD_LOADING);
            shard_lost(i, epoch, engine);
            assert_int_equal(engine->shards[i].state, SHARD_NONE);
            shard_lost(i, epoch, engine); /* told twice */
            shard_gained(i, epoch, engine);
        }
    }
}

TEST(a_shard_that_is_lost_and_gained_while_it_is_read_is_read_anew)
{
    begin_to_load();
    stage_inside(0, lose_and_gain_all, NULL);
    stage_run(5000);
    assert_int_equal(shards_owned(engine_now()), SHARD_COUNT);
    assert_int_equal(lives_count(engine_now()), 0); /* that saga is parked by now */
    struct saga_id id = stage_start(0, "listens", "{}");

    assert_int_equal(signal_it(id), ERR_OK);
    stage_until_saga(0, id, "completed");
}

TEST(a_shard_that_is_lost_while_it_is_read_is_not_ours)
{
    begin_to_load();
    stage_inside(0, lose_all, NULL);
    stage_run(3000);
    assert_int_equal(lives_count(engine_now()), 0);
    node_kill(&nodes[0]);
}

static struct stored_turn *turns_kept;
static size_t turns_count;

static void keep_turns(void *request, enum err_code *code)
{
    const struct read_saga *read = container_of(request, struct read_saga, read);
    static struct stored_turn kept[16];
    static char texts[16][4096];

    assert_int_equal(*code, ERR_OK);
    for (turns_count = 0; turns_count < read->turn_count && turns_count < COUNT_OF(kept); turns_count++) {
        kept[turns_count] = read->turns[turns_count];
        assert_true(kept[turns_count].payload.len < sizeof(texts[0]));
        memcpy(texts[turns_count], kept[turns_count].payload.ptr, kept[turns_count].payload.len);
        kept[turns_count].payload.ptr = texts[turns_count];
    }
    turns_kept = kept;
}

static void give_ended(struct engine *engine, void *context)
{
    struct saga_id id = *(const struct saga_id *)context;
    struct shard *shard = &engine->shards[saga_id_shard(id)];
    const struct stored_turn none = {.first_seq = 1, .payload = SLICE("[7]")};
    struct saga_id older = id;

    assert_int_equal(shard->state, SHARD_LOADING);
    shard->load.on_saga(&shard->load, id, SLICE("default"), turns_kept, turns_count);
    assert_null(live_find(engine, id));
    /* Adds two sagas that nobody can read. Recovery has to begin with the older of them. */
    shard->load.on_saga(&shard->load, id, SLICE("default"), &none, 1);
    older.uuid.bytes[0]--;
    shard->load.on_saga(&shard->load, older, SLICE("default"), &none, 1);
    assert_int_equal(shard->oldest_unreadable_ms, uuid_v7_ms(&older.uuid));
    shard->load.on_saga(&shard->load, id, SLICE("default"), &none, 1);
    assert_int_equal(shard->oldest_unreadable_ms, uuid_v7_ms(&older.uuid));
    assert_int_equal(shard_oldest_unfinished_ms(shard->number, engine), 0); /* not known before all are read */
}

TEST(a_saga_that_has_ended_is_not_gone_on_with_whatever_the_table_says)
{
    struct saga_id id = stage_start(0, "acts", "{}");

    stage_run(1000);
    stage_on_answer(STORE_READ_SAGA, keep_turns);
    assert_status(id, "completed");
    node_kill(&nodes[0]);
    node_start(&nodes[0], &stage_options);
    stage_until(is_loading, NULL, "a shard that is being read");
    /* Definitions are loaded before shards are read. */
    stage_inside(0, give_ended, &id);
    stage_run(3000);
}

static void gain_one(struct engine *engine, void *context)
{
    struct shard *shard = context;
    int64_t epoch = shard->epoch;

    shard_lost(shard->number, epoch, engine);
    engine->phase = ENGINE_DRAINING;
    shard_gained(shard->number, epoch, engine);
    engine->phase = ENGINE_RUNNING;
    assert_false(shard->load_running);
    assert_int_equal(shard->state, SHARD_NONE); /* given back at once */
}

TEST(a_shard_that_comes_while_an_engine_leaves_is_not_read)
{
    stage_inside(0, gain_one, &engine_now()->shards[5]);
    stage_run(1000);
    node_kill(&nodes[0]);
}

TEST(what_leaves_with_a_call_that_hangs_leaves_in_time)
{
    stage_tool("act")->delay_ms = 3600 * 1000;
    struct saga_id id = stage_start(0, "acts", "{}");

    stage_run(100);
    assert_int_equal(calls_under_way(engine_now()), 1);
    node_drain(&nodes[0], 1000);
    stage_run(5000);
    assert_false(nodes[0].up);
    stage_tool("act")->delay_ms = 1;
    stage_again(0);
    stage_until_saga(0, id, "completed");
}

STAGE_PROGRAM(.definitions = document, .node = {.park_after_ms = 1000}, .is_automatic = true)
