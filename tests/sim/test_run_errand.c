/*
 * Requests for shards of another engine: an engine puts them into the inbox, and the owner answers, or the asker finds
 * out otherwise. Node 0 owns all shards under a long lease and is frozen, so node 1, a standby, asks. The test answers
 * for the owner.
 */
#include "tests/sim/stage.h"

#include <stdlib.h>

#include "base/json.h"
#include "run/exchange/exchange.h"

#define LEASE_MS 60000
#define FROZEN_US INT64_C(86400000000)

static const char definitions[] = "{'tools':[{'name':'t','builtin':{'tool':'t'},'effect':'keyed','key':{'window':'1h'},"
                                  "'terminal':true,'timeout':'1h'},"
                                  "{'name':'look','builtin':{'tool':'look'},'effect':'read','timeout':'1h'}],"
                                  "'sagas':[{'name':'s','steps':[{'id':'a','call':'t','with':{}}]}]}";

static struct reply *asked;

/* --- what the asker puts, and who owns the shards --- */

static struct inbox_row last_put;
static bool vanishes;  /* each row that is put is consumed at once, without an answer */
static int64_t owners; /* how many owners came after the first one, as far as the asker's leases know */

int64_t __real_lease_last_epoch(const struct leases *leases, uint32_t shard);
int64_t __wrap_lease_last_epoch(const struct leases *leases, uint32_t shard);

int64_t __wrap_lease_last_epoch(const struct leases *leases, uint32_t shard)
{
    return __real_lease_last_epoch(leases, shard) + owners;
}

static void consume(struct engine *engine, void *context)
{
    (void)context;
    store_inbox_drop(engine->store, last_put.shard, &last_put.id);
}

static void consume_last_put(void)
{
    stage_inside(1, consume, NULL);
    stage_settle();
}

static void on_put(void *request, enum err_code *code)
{
    if (*code == ERR_OK) {
        last_put = ((const struct inbox_put *)request)->row;
        if (vanishes) {
            consume(nodes[1].engine, NULL);
        }
    }
    stage_on_answer(STORE_INBOX_PUT, on_put);
}

struct spoken { /* in the memory of the node */
    struct answer_put put;
    struct arena arena;
};

static void on_spoken(struct answer_put *put)
{
    struct spoken *spoken = container_of(put, struct spoken, put);

    CHECK(put->code == ERR_OK);
    arena_fini(&spoken->arena);
    free(spoken);
}

struct speech {
    uint32_t shard;
    struct uuid input;
    struct slice body;
};

static void speak(struct engine *engine, void *context)
{
    const struct speech *speech = context;
    struct spoken *spoken = memory_alloc(sizeof(*spoken));

    arena_init(&spoken->arena, 1024);
    spoken->put = (struct answer_put){.shard = speech->shard,
                                      .input = speech->input,
                                      .body = arena_slice(&spoken->arena, speech->body),
                                      .drop_input = true,
                                      .done = on_spoken};
    store_answer_put(engine->store, &spoken->put);
}

static void answer(const struct inbox_row *row, const char *body)
{
    stage_inside(1, speak, &(struct speech){row->shard, row->id, stage_json(body)});
    stage_settle();
}

static void answer_last_put(const char *body)
{
    answer(&last_put, body);
}

/* Writes a turn of a saga that cannot be read. Only its existence can be known. */
static void write_log(struct saga_id id)
{
    struct append_start start = {.namespace = SLICE("default"), .saga_name = SLICE("s"), .version = 1};

    stage_write(1, &(struct append){.saga = id,
                                    .namespace = SLICE("default"),
                                    .shard = saga_id_shard(id),
                                    .epoch = nodes[0].engine->shards[saga_id_shard(id)].epoch,
                                    .at_ms = WORLD_START_MS,
                                    .started_ms = WORLD_START_MS,
                                    .first_seq = 1,
                                    .record_count = 1,
                                    .payload = SLICE("[]"),
                                    .start = &start,
                                    .status_changed = true});
}

/* --- who asks --- */

static uint32_t puts_before;

static void owner_stands_still(void)
{
    node_freeze_now(&nodes[0], FROZEN_US);
    puts_before = stage_asked(STORE_INBOX_PUT);
}

static void begin_awake(uint32_t standbys)
{
    stage_begin(&(struct stage_plan){
        .definitions = definitions, .node_count = 2, .node = {.lease_ms = LEASE_MS, .standbys = standbys}});
    vanishes = false;
    owners = 0;
    last_put = (struct inbox_row){0};
    stage_on_answer(STORE_INBOX_PUT, on_put);
}

static void begin(void)
{
    begin_awake(2);
    owner_stands_still();
}

static uint32_t put_count(void)
{
    return stage_asked(STORE_INBOX_PUT) - puts_before;
}

static void end(enum err_code code)
{
    assert_true(asked->done);
    stage_expect(asked, code);
    node_kill(&nodes[0]);
    stage_end();
}

static void ask_pause(struct saga_id id)
{
    asked = stage_ask(1, engine_change, &(struct engine_request){.in.change = {.verb = VERB_PAUSE, .saga = id}});
    stage_settle();
}

static void ask_start(const char *business_id)
{
    asked =
        stage_ask(1, engine_start_saga,
                  &(struct engine_request){
                      .in.start = {.saga = SLICE("s"), .input = SLICE("{}"), .business_id = slice_of(business_id)}});
    stage_settle();
}

static struct reply *call(const struct engine_request *what)
{
    struct reply *reply = stage_ask(1, engine_call, what);

    stage_settle();
    return reply;
}

static void ask_call(struct saga_id saga)
{
    asked = call(stage_call_in(saga, "look", "{}", 0));
}

static void ask_call_of(const char *run, int64_t wait_ms)
{
    asked = call(stage_call_of(run, "look", "{}", wait_ms));
}

static struct saga_id some_saga(void)
{
    return saga_id_new(5, 9);
}

/* --- put --- */

TEST(the_owner_s_answer_is_the_answer)
{
    begin();
    ask_pause(some_saga());
    assert_true(slice_is(last_put.kind, "pause"));
    stage_run(100);
    assert_false(asked->done);
    answer_last_put("{'code':'ok','answer':{'x':1}}");
    assert_true(slice_is(asked->answer, "{\"x\":1}"));
    end(ERR_OK);
}

TEST(an_answer_that_comes_while_the_row_is_being_put_is_kept)
{
    begin();
    stage_hold(STORE_INBOX_PUT);
    ask_pause(some_saga());
    answer(&((const struct inbox_put *)stage_oldest(STORE_INBOX_PUT))->row, "{'code':'ended','message':'m'}");
    assert_false(asked->done);
    stage_let(STORE_INBOX_PUT);
    end(ERR_ENDED);
}

TEST(a_request_that_the_database_refuses_is_told)
{
    begin();
    stage_hold(STORE_INBOX_PUT);
    ask_pause(some_saga());
    stage_fail(STORE_INBOX_PUT, ERR_STORE);
    end(ERR_STORE);
}

TEST(an_owner_that_is_busy_is_left_alone_for_a_moment)
{
    struct reply *second;

    begin();
    ask_call_of("r", 0);
    answer_last_put("{'code':'busy','message':'m','call':{'retry_after_ms':700}}");
    uint32_t before = put_count();

    second = call(stage_call_of("r", "look", "{}", 60000));
    assert_int_equal(second->code, ERR_BUSY);
    assert_true(second->call.retry_after_ms > 0);
    assert_int_equal(put_count(), before);
    stage_run(1000);
    second = call(stage_call_of("r", "look", "{}", 60000));
    assert_int_equal(put_count(), before + 1);
    stage_hang_up(second);
    stage_settle();
    answer_last_put("{'code':'busy','message':'m','call':{'retry_after_ms':700}}"); /* nobody listens */
    end(ERR_BUSY);
}

static int64_t busy_until_ms(uint32_t shard)
{
    return nodes[1].engine->shards[shard].busy_until_ms;
}

TEST(an_owner_that_refuses_a_start_is_left_alone_too)
{
    begin();
    ask_start("b");
    answer_last_put("{'code':'busy','message':'m','call':{'retry_after_ms':700}}");
    assert_true(busy_until_ms(last_put.shard) > 0);
    end(ERR_BUSY);
}

TEST(a_pause_that_is_refused_for_want_of_room_says_nothing_of_new_work)
{
    begin();
    ask_pause(some_saga());
    answer_last_put("{'code':'busy','message':'m'}");
    assert_int_equal(busy_until_ms(9), 0);
    end(ERR_BUSY);
}

/* --- nobody answers --- */

TEST(a_request_that_nobody_answers_in_time_may_be_asked_again)
{
    begin();
    ask_pause(some_saga());
    stage_run(9000);
    assert_false(asked->done);
    stage_run(2000);
    end(ERR_BUSY);
}

TEST(a_client_that_has_gone_is_not_waited_for)
{
    begin();
    ask_pause(some_saga());
    stage_hang_up(asked);
    stage_run(3000);
    assert_true(errands_count(nodes[1].engine) == 0);
    end(ERR_TIMEOUT);
}

TEST(a_call_is_looked_for_in_its_log_when_its_time_is_over)
{
    for (int i = 0; i < 4; i++) {
        begin_awake(2);
        stage_is_automatic = true;
        struct saga_id id = {0};
        struct reply *first = stage_expect(stage_ask(0, engine_call, stage_call_of("r", "look", "{}", 60000)), ERR_OK);

        assert_true(uuid_parse(json_string(json_member(first->answer, "saga"), &world->arena), &id.uuid));
        owner_stands_still();
        if (i == 3) {
            ask_call(id);
        } else {
            ask_call_of(i == 1 ? "not begun" : "r", 0);
        }
        if (i == 2) {
            stage_hold(STORE_READ_SAGA);
        }
        stage_run(11000);
        if (i == 2) {
            stage_fail(STORE_READ_SAGA, ERR_STORE);
        }
        end(ERR_BUSY); /* no log has a call with this emission */
    }
}

TEST(a_call_that_was_taken_up_is_answered_from_its_log)
{
    struct engine_request *what;

    begin_awake(2);
    stage_is_automatic = true;
    what = stage_call_of("r", "look", "{}", 1000);
    what->in.call.emission = SLICE("mine");
    stage_expect(stage_ask(0, engine_call, what), ERR_OK);
    owner_stands_still();
    what = stage_call_of("r", "look", "{}", 0);
    what->in.call.emission = SLICE("mine"); /* the same emission */
    asked = call(what);
    stage_run(11000);
    assert_true(asked->answer.len > 0);
    end(ERR_OK);
}

TEST(a_log_that_cannot_be_read_then_says_nothing)
{
    begin();
    struct saga_id id = some_saga();

    write_log(id);
    ask_call(id);
    stage_run(11000);
    end(ERR_BUSY);
}

TEST(a_run_that_cannot_be_looked_for_then_is_not_known)
{
    begin();
    stage_hold(STORE_FIND_SAGA);
    ask_call_of("r", 0);
    stage_run(11000);
    stage_fail(STORE_FIND_SAGA, ERR_STORE);
    end(ERR_BUSY);
}

TEST(an_answer_that_comes_at_the_last_moment_counts)
{
    static const enum store_call last_looks[] = {STORE_READ_SAGA, STORE_FIND_SAGA};

    for (size_t i = 0; i < COUNT_OF(last_looks); i++) {
        begin();
        stage_hold(last_looks[i]);
        if (i == 0) {
            ask_call(some_saga());
        } else {
            ask_call_of("r", 0);
        }
        stage_run(11000);
        assert_int_equal(stage_held(last_looks[i]), 1);
        answer_last_put("{'code':'ok','answer':{'x':1}}");
        assert_false(asked->done);
        stage_let(last_looks[i]);
        end(ERR_OK);
    }
}

/* --- the shard changes hands --- */

TEST(the_next_owner_does_the_requests_that_the_last_one_did_not_take_up)
{
    begin();
    ask_pause(some_saga());
    owners++;
    stage_run(3000);
    assert_int_equal(stage_asked(STORE_FIND_INPUT), 1);
    assert_int_equal(put_count(), 1);
    answer_last_put("{'code':'ok','answer':{}}");
    end(ERR_OK);
}

TEST(a_look_that_fails_is_made_again)
{
    begin();
    stage_hold(STORE_FIND_INPUT);
    ask_pause(some_saga());
    owners++;
    stage_run(1100);
    stage_fail(STORE_FIND_INPUT, ERR_STORE);
    stage_run(1100);
    assert_int_equal(stage_held(STORE_FIND_INPUT), 1);
    answer_last_put("{'code':'ok','answer':{}}"); /* meanwhile */
    stage_let(STORE_FIND_INPUT);
    end(ERR_OK);
    begin();
    stage_hold(STORE_FIND_INPUT);
    ask_pause(some_saga());
    owners++;
    stage_run(12000); /* the wait is over when the database answers */
    assert_false(asked->done);
    stage_fail(STORE_FIND_INPUT, ERR_STORE);
    end(ERR_BUSY);
    begin();
    stage_hold(STORE_FIND_INPUT);
    ask_pause(some_saga());
    consume_last_put();
    owners++;
    stage_run(1100);
    stage_fail(STORE_FIND_INPUT, ERR_STORE); /* the answer says nothing about the row */
    stage_run(1100);
    stage_let(STORE_FIND_INPUT);
    assert_int_equal(stage_asked(STORE_READ_SAGA),
                     0); /* the row is missing for the first time, and its answer may still come */
    stage_run(1100);
    stage_let(STORE_FIND_INPUT);
    end(ERR_NOT_FOUND);
}

/* The row was most likely applied; the saga itself says so. */
TEST(a_word_that_was_consumed_is_not_said_twice)
{
    begin();
    ask_pause(some_saga());
    consume_last_put();
    owners++;
    stage_run(3000);
    assert_int_equal(put_count(), 1);
    assert_int_equal(stage_asked(STORE_READ_SAGA), 1);
    end(ERR_NOT_FOUND);
}

TEST(a_word_of_which_nobody_knows_whether_it_came_is_not_said_twice_either)
{
    begin();
    stage_hold(STORE_INBOX_PUT);
    ask_pause(some_saga());
    stage_fail(STORE_INBOX_PUT, ERR_LOST_COMMIT);
    stage_run(3000);
    assert_int_equal(put_count(), 1);
    end(ERR_LOST_COMMIT);
}

TEST(a_call_that_was_consumed_unanswered_is_put_again_and_not_for_ever)
{
    begin();
    vanishes = true;
    ask_call_of("r", 60000);
    for (int i = 0; i < 14 && !asked->done; i++) {
        owners++;
        stage_run(2500);
    }
    assert_int_equal(put_count(), 5);
    end(ERR_BUSY);
}

TEST(a_start_that_was_consumed_unanswered_is_looked_for_and_put_again)
{
    for (int i = 0; i < 5; i++) {
        begin();
        vanishes = true;
        ask_start("b");
        struct saga_id id = last_put.saga;

        vanishes = false;
        if (i == 0 || i == 3) { /* the saga was started */
            write_log(id);
        }
        owners++;
        if (i == 3) {
            stage_hang_up(asked);
            stage_hold(STORE_READ_SAGA);
        } else if (i == 2 || i == 4) {
            stage_hold(STORE_READ_SAGA);
        }
        stage_run(3000);
        if (i == 2) {
            stage_fail(STORE_READ_SAGA, ERR_STORE);
        } else if (i == 4) {
            answer_last_put("{'code':'ok','saga':'01890000-0000-7000-8000-000000000009','created':true}");
            stage_let(STORE_READ_SAGA);
        } else if (i == 1) { /* the saga was not started, and is put again */
            assert_int_equal(put_count(), 2);
            answer_last_put("{'code':'ok','created':true}");
        }
        end(i == 2 ? ERR_BUSY : i == 3 ? ERR_TIMEOUT : ERR_OK);
    }
}

TEST(a_start_that_nobody_takes_up_is_looked_for_when_its_time_is_over)
{
    for (int i = 0; i < 3; i++) {
        begin();
        ask_start("b");
        struct saga_id id = last_put.saga;

        stage_run(9500);
        if (i == 0) {
            write_log(id);
        } else if (i == 2) {
            stage_hold(STORE_READ_SAGA);
            stage_run(1000);
            stage_hang_up(asked);
            write_log(id);
            stage_let(STORE_READ_SAGA);
        }
        stage_run(1000);
        end(i == 0 ? ERR_OK : i == 1 ? ERR_BUSY : ERR_TIMEOUT);
    }
}

/* --- the engine leaves --- */

TEST(an_engine_that_leaves_tells_all_who_wait)
{
    static const enum store_call kinds[] = {STORE_INBOX_PUT, STORE_FIND_INPUT, STORE_READ_SAGA, STORE_FIND_SAGA,
                                            STORE_CALL_COUNT};

    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        begin();
        if (kinds[i] != STORE_CALL_COUNT) {
            stage_hold(kinds[i]);
        }
        if (kinds[i] == STORE_READ_SAGA) {
            ask_call(some_saga());
            stage_run(11000);
        } else if (kinds[i] == STORE_FIND_SAGA) {
            ask_call_of("r", 0);
            stage_run(11000);
        } else {
            ask_pause(some_saga());
            owners++;
            stage_run(1100);
        }
        node_drain(&nodes[1], 0);
        stage_settle();
        if (kinds[i] != STORE_CALL_COUNT) { /* the answer of the database comes back first */
            assert_false(asked->done);
            stage_fail(kinds[i], ERR_STORE);
        }
        end(ERR_STOPPING);
    }
}

TEST(a_start_that_is_looked_for_when_the_engine_leaves_is_told_so)
{
    begin();
    stage_hold(STORE_READ_SAGA);
    ask_start("b");
    stage_run(11000);
    node_drain(&nodes[1], 0);
    stage_settle();
    stage_fail(STORE_READ_SAGA, ERR_STORE);
    end(ERR_STOPPING);
}

/* The engine has given up its leases, and a call of a saga that it had has still to end. */
TEST(a_client_of_another_engine_waits_on_while_the_engine_leaves)
{
    begin_awake(0); /* both nodes own shards */
    stage_cancels = false;
    (void)stage_start(1, "s", "{}");
    struct staged_call *begun = stage_until_call("t");

    owner_stands_still();
    uint32_t others = 0;

    while (nodes[1].engine->shards[others].state == SHARD_OWNED) {
        others++;
    }
    ask_pause(saga_id_new(5, others));
    node_drain(&nodes[1], 100);
    stage_run(3000);
    assert_false(asked->done);
    answer_last_put("{'code':'ok','answer':{}}");
    stage_complete(begun, "{}");
    end(ERR_OK);
}

TEST_PROGRAM_EACH(NULL, stage_teardown)
