/* Sagas that are read back because of a request, and how these requests are answered. */
#include "tests/sim/stage.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/metric.h"
#include "run/saga/fold.h"
#include "run/saga/live.h"
#include "run/saga/summon.h"

static const char definitions[] =
    "{'tools':[{'name':'t','builtin':{'tool':'t'},'effect':'keyed','key':{'window':'1h'},"
    "'terminal':true,'timeout':'1h'},"
    "{'name':'look','builtin':{'tool':'look'},'effect':'read','timeout':'1h'},"
    "{'name':'look_again','builtin':{'tool':'look_again'},'effect':'read','timeout':'1h'}],"
    "'sagas':[{'name':'s','steps':[{'id':'a','call':'t','with':{}}]}]}";

/* These tests are about what is read, so nothing is kept that would make a read needless. */
static void keep_no_rests(struct engine_options *options)
{
    options->rests_bytes_max = 0;
}

static void begin(void)
{
    stage_begin(&(struct stage_plan){.definitions = definitions, .tweak = keep_no_rests, .is_automatic = true});
}

/* --- somebody who asks --- */

struct asker {
    struct summons summons;
    struct mail mail;
    bool answered;
    enum err_code code;
    const struct live *live;
};

static void on_summoned(struct summons *summons, struct live *live, enum err_code code, const struct err *err)
{
    struct asker *asker = container_of(summons, struct asker, summons);

    (void)err;
    assert_false(asker->answered);
    asker->answered = true;
    asker->code = code;
    asker->live = live;
}

static void on_mail(struct mail *mail, enum err_code code, const struct err *err)
{
    struct asker *asker = container_of(mail, struct asker, mail);

    (void)err;
    assert_false(asker->answered);
    asker->answered = true;
    asker->code = code;
}

struct asking {
    struct asker *asker;
    struct saga_id id;
    const char *namespace;
};

static void summon_it(struct engine *engine, void *context)
{
    const struct asking *asking = context;

    live_summon(engine, asking->id, slice_of(asking->namespace), &asking->asker->summons);
}

static void summon(struct asker *asker, struct saga_id id, const char *namespace)
{
    *asker = (struct asker){.summons = {.done = on_summoned}};
    stage_inside(0, summon_it, &(struct asking){asker, id, namespace});
}

static void send_it(struct engine *engine, void *context)
{
    const struct asking *asking = context;

    live_deliver(engine, asking->id, slice_of(asking->namespace), &asking->asker->mail);
}

static void send(struct asker *asker, struct saga_id id, const char *namespace)
{
    *asker = (struct asker){
        .mail = {.input = {.type = SAGA_INPUT_PAUSE, .pause = {.actor = SLICE("somebody")}}, .done = on_mail}};
    stage_inside(0, send_it, &(struct asking){asker, id, namespace});
}

static struct reply *call(struct saga_id saga, const char *run, const char *tool)
{
    struct reply *called =
        stage_ask(0, engine_call, run ? stage_call_of(run, tool, "{}", 60000) : stage_call_in(saga, tool, "{}", 60000));

    stage_run(100);
    return called;
}

/* Returns a saga that has ended and left memory. */
static struct saga_id ended(void)
{
    struct saga_id id = stage_start(0, "s", "{}");

    stage_until_saga(0, id, "completed");
    assert_null(live_find(nodes[0].engine, id));
    return id;
}

static struct saga_id nowhere(void)
{
    struct saga_id id = saga_id_new(1, 0);

    id.uuid.bytes[14] = 0xff; /* an id of a shard that does not exist */
    return id;
}

/* --- sagas --- */

TEST(a_client_is_told_why_the_saga_cannot_be_had)
{
    struct asker asker;
    struct reply *started;

    begin();
    stage_is_automatic = false;
    struct saga_id id = stage_start(0, "s", "{}"), gone = saga_id_new(1, 7);

    summon(&asker, id, "default");
    assert_int_equal(asker.code, ERR_OK);
    assert_non_null(asker.live);
    summon(&asker, nowhere(), "default");
    assert_int_equal(asker.code, ERR_NOT_FOUND);
    send(&asker, nowhere(), "default");
    assert_int_equal(asker.code, ERR_NOT_FOUND);
    summon(&asker, id, "of others"); /* other namespaces learn nothing about the saga */
    assert_int_equal(asker.code, ERR_NOT_FOUND);
    send(&asker, id, "of others");
    assert_int_equal(asker.code, ERR_NOT_FOUND);
    stage_lose(0, 7);
    summon(&asker, gone, "default");
    assert_int_equal(asker.code, ERR_FENCED);
    send(&asker, gone, "default");
    assert_int_equal(asker.code, ERR_FENCED);
    stage_gain(0, 7);
    /* A start is not durable yet. */
    stage_hold(STORE_APPEND);
    started = stage_ask(0, engine_start_saga,
                        &(struct engine_request){.in.start = {.saga = SLICE("s"), .business_id = SLICE("here")}});
    stage_settle();
    struct saga_id fresh = ((struct append *)stage_oldest(STORE_APPEND))->saga;

    summon(&asker, fresh, "default");
    assert_int_equal(asker.code, ERR_NOT_FOUND);
    send(&asker, fresh, "default"); /* the request is decided after the start */
    assert_false(asker.answered);
    stage_release(STORE_APPEND);
    (void)stage_expect(started, ERR_OK);
    assert_int_equal(asker.code, ERR_OK);
}

static void gain_anew(struct engine *engine, void *context)
{
    const uint32_t *shard = context;

    shard_gained(*shard, engine->shards[*shard].epoch + 1, engine);
}

TEST(a_log_that_was_read_under_another_lease_is_not_believed)
{
    struct asker summoned, sent;

    for (int i = 0; i < 2; i++) {
        begin();
        struct saga_id id = ended();
        uint32_t shard = saga_id_shard(id);

        stage_hold(STORE_READ_SAGA);
        summon(&summoned, id, "default");
        send(&sent, id, "default");
        assert_int_equal(stage_held(STORE_READ_SAGA), 1); /* both requests share one read */
        stage_lose(0, shard);
        if (i == 1) {
            stage_inside(0, gain_anew, &shard);
            stage_settle();
        }
        stage_let(STORE_READ_SAGA);
        assert_int_equal(summoned.code, ERR_FENCED);
        assert_int_equal(sent.code, ERR_FENCED);
        stage_end();
    }
}

TEST(a_read_that_fails_is_told_to_all_who_wait_for_it)
{
    static const enum err_code codes[] = {ERR_STORE, ERR_NOT_FOUND};
    struct asker summoned, sent;

    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        begin();
        struct saga_id id = ended();

        stage_hold(STORE_READ_SAGA);
        summon(&summoned, id, "default");
        send(&sent, id, "default");
        stage_fail(STORE_READ_SAGA, codes[i]);
        assert_int_equal(summoned.code, codes[i]);
        assert_int_equal(sent.code, codes[i]);
        stage_end();
    }
}

TEST(a_request_for_a_saga_that_begins_meanwhile_reaches_it)
{
    struct asker sent;

    begin();
    struct saga_id id = saga_id_new(WORLD_START_MS, 9);

    stage_is_automatic = false;
    stage_hold(STORE_READ_SAGA);
    send(&sent, id, "default"); /* the client started the saga elsewhere and knows its id */
    (void)stage_deliver(0, "start", 9, id,
                        "{'namespace':'default','actor':'a','saga':'s','version':1,'input':{},'tags':null}");
    stage_let(STORE_READ_SAGA);
    assert_int_equal(sent.code, ERR_OK);
    assert_non_null(strstr(stage_log(id), "saga.paused"));
}

TEST(memory_that_is_full_has_room_left_for_what_presses)
{
    struct asker asker, pressing;
    struct reply *called;

    stage_begin(&(struct stage_plan){.definitions = definitions, .node = {.sagas_max = 1}});
    struct saga_id ended = saga_id_new(1, 3);

    (void)stage_start(0, "s", "{}");
    summon(&asker, ended, "default");
    assert_int_equal(asker.code, ERR_BUSY);
    send(&pressing, ended, "default"); /* a person sends a verb */
    assert_false(pressing.answered);
    stage_settle();
    assert_int_equal(pressing.code, ERR_NOT_FOUND);
    called = call((struct saga_id){0}, "r", "t");
    assert_int_equal(called->code, ERR_BUSY);
    /* The number of such reads is bounded. */
    static struct asker many[100];
    int refused = 0;

    stage_hold(STORE_READ_SAGA);
    for (size_t i = 0; i < COUNT_OF(many); i++) {
        send(&many[i], saga_id_new(1, 3), "default");
        refused += many[i].answered && many[i].code == ERR_BUSY;
    }
    assert_in_range(refused, 30, 40);
    stage_release(STORE_READ_SAGA);
}

/* --- logs that make no sense --- */

/* Writes a turn as another writer would. The store accepts only the next seq: see misplace(). */
static void write_log(struct saga_id id, uint64_t first_seq, const char *payload)
{
    struct append_start start = {.namespace = SLICE("default"), .saga_name = SLICE("s"), .version = 1};

    stage_write(0, &(struct append){.saga = id,
                                    .namespace = SLICE("default"),
                                    .shard = saga_id_shard(id),
                                    .at_ms = WORLD_START_MS,
                                    .started_ms = WORLD_START_MS,
                                    .first_seq = first_seq,
                                    .record_count = 1,
                                    .payload = slice_of(payload),
                                    .start = first_seq == 1 ? &start : NULL,
                                    .status_changed = first_seq == 1});
}

static uint64_t last_seq; /* the seq of the last turn that is read back; 0 for the one that was written */

static void misplace(void *request, enum err_code *code)
{
    const struct read_saga *read = container_of((struct store_read *)request, struct read_saga, read);

    assert_int_equal(*code, ERR_OK);
    if (last_seq) {
        read->turns[read->turn_count - 1].first_seq = last_seq;
    }
    stage_on_answer(STORE_READ_SAGA, misplace);
}

TEST(a_log_that_cannot_be_read_is_told_apart_from_a_saga_that_is_not_there)
{
    static const char *const logs[] = {
        "[]",                              /* no beginning */
        "[{\"type\":\"no.such.record\"}]", /* no start */
        "[{\"type\":\"saga.started\",\"data\":{\"saga\":\"unknown\",\"version\":7,\"input\":{},\"namespace\":"
        "\"default\"}}]",
    };
    struct reply *asked;
    struct asker sent;

    begin();
    struct saga_id good = ended();
    static char first[4096];

    (void)snprintf(first, sizeof(first), "%s", stage_log(good));
    *strchr(first, '\n') = '\0';
    struct arena arena;
    struct err err = {0};

    arena_init(&arena, 1024);
    assert_null(fold_turns(nodes[0].engine, good, SLICE("default"), NULL, 0, &arena, &err));
    assert_int_equal(err.code, ERR_CORRUPT);
    arena_fini(&arena);
    for (size_t i = 0; i < COUNT_OF(logs) + 4; i++) {
        uint64_t unreadable = metric_value(METRIC_SAGAS_UNREADABLE);
        struct saga_id id = saga_id_new(1700000000000 + (int64_t)i, 5);

        last_seq = 0;
        if (i < COUNT_OF(logs)) {
            write_log(id, 1, logs[i]);
        } else if (i == COUNT_OF(logs)) {
            write_log(id, 1, first); /* the beginning is missing */
            last_seq = 3;
        } else if (i == COUNT_OF(logs) + 3) { /* the definition is missing */
            *(strstr(first, "\"saga\":\"s\"") + 8) = 'x';
            write_log(id, 1, first);
        } else {
            write_log(id, 1, first);
            write_log(id, 2,
                      i == COUNT_OF(logs) + 1 ? "[{\"type\":\"no.such.record\"}]"
                                              : "[{\"type\":\"saga.completed\",\"data\":{}}]");
            last_seq = 10;
        }
        stage_on_answer(STORE_READ_SAGA, misplace);
        asked = stage_ask(0, engine_get_saga, &(struct engine_request){.in.get.id = id});
        send(&sent, id, "default");
        stage_settle();
        if (asked->code != ERR_CORRUPT || sent.code != ERR_CORRUPT) {
            fail_msg("log %zu: %s, %s", i, err_name(asked->code), err_name(sent.code));
        }
        assert_true(metric_value(METRIC_SAGAS_UNREADABLE) > unreadable);
    }
}

/* --- runs --- */

static struct saga_id run_once(const char *run)
{
    struct reply *called;

    called = call((struct saga_id){0}, run, "look");
    assert_int_equal(called->code, ERR_OK);
    struct slice saga = json_string(json_member(called->answer, "saga"), &world->arena);
    struct saga_id id;

    assert_true(uuid_parse(saga, &id.uuid));
    stage_run(3600 * 1000); /* the saga comes to rest and leaves memory */
    assert_null(live_find(nodes[0].engine, id));
    return id;
}

static enum err_code call_it(struct saga_id saga, const char *run)
{
    struct reply *called;

    called = call(saga, run, "look_again");
    return called->done ? called->code : ERR_COUNT;
}

TEST(a_run_is_called_by_its_name_and_not_by_its_id)
{
    struct reply *called;

    begin();
    struct saga_id id = run_once("r");

    assert_int_equal(call_it(id, NULL), ERR_CONFLICT); /* the saga rests, and is read back for the call */
    stage_is_automatic = false;
    called = call((struct saga_id){0}, "other", "t");
    struct saga_id there =
        container_of(list_first(&nodes[0].engine->shards[run_shard(SLICE("default"), SLICE("other"))].sagas),
                     struct live, link)
            ->saga.id;

    assert_int_equal(call_it(there, NULL), ERR_CONFLICT);
    stage_answer_all();
    (void)stage_expect(called, ERR_OK);
}

TEST(a_run_has_not_the_name_of_a_saga)
{
    char name[UUID_TEXT_BYTES];

    begin();
    struct saga_id id = stage_start(0, "s", "{}"), free_id = saga_id_new(5, 5), other = nowhere();

    uuid_text(&id.uuid, name);
    assert_int_equal(call_it((struct saga_id){0}, name), ERR_INVALID);
    uuid_text(&free_id.uuid, name);
    assert_int_equal(call_it((struct saga_id){0}, name), ERR_OK); /* there is no such saga */
    uuid_text(&other.uuid, name);
    assert_int_equal(call_it((struct saga_id){0}, name), ERR_OK); /* there can be no such saga */
}

TEST(whether_a_run_has_the_name_of_a_saga_must_be_known)
{
    struct reply *called;
    char name[UUID_TEXT_BYTES];

    for (int i = 0; i < 2; i++) {
        begin();
        struct saga_id id = saga_id_new(5, 5);

        uuid_text(&id.uuid, name);
        stage_hold(STORE_READ_SAGA);
        called = call((struct saga_id){0}, name, "t");
        if (i == 0) {
            stage_fail(STORE_READ_SAGA, ERR_STORE);
            assert_int_equal(called->code, ERR_STORE);
        } else { /* the next owner is asked */
            stage_lose(0, run_shard(SLICE("default"), slice_of(name)));
            stage_let(STORE_READ_SAGA);
            assert_int_equal(stage_asked(STORE_INBOX_PUT), 1);
            assert_int_equal(stage_calls(NULL), 0);
        }
        stage_end();
    }
}

TEST(whether_a_run_has_begun_must_be_known)
{
    struct reply *called;

    for (int i = 0; i < 2; i++) {
        begin();
        stage_hold(STORE_READ_RUN);
        called = call((struct saga_id){0}, "r", "t");
        if (i == 0) {
            stage_fail(STORE_READ_RUN, ERR_STORE);
            assert_int_equal(called->code, ERR_STORE);
        } else {
            stage_lose(0, run_shard(SLICE("default"), SLICE("r")));
            stage_let(STORE_READ_RUN);
            assert_int_equal(stage_asked(STORE_INBOX_PUT), 1);
        }
        stage_end();
    }
}

TEST(a_run_that_rests_is_found_and_goes_on)
{
    begin();
    struct saga_id id = run_once("r");

    assert_int_equal(call_it((struct saga_id){0}, "r"), ERR_OK);
    assert_non_null(strstr(stage_log(id), "run.woken"));
}

TEST(a_repeat_to_a_run_that_sleeps_writes_a_turn_and_nothing_else)
{
    const struct append *turn;
    struct engine_request *request;
    struct reply *called;
    struct saga_id id;

    begin();
    called = call((struct saga_id){0}, "r", "t");
    assert_int_equal(called->code, ERR_OK);
    assert_true(uuid_parse(json_string(json_member(called->answer, "saga"), &world->arena), &id.uuid));
    stage_run(3600 * 1000);
    stage_hold(STORE_APPEND);
    called = call((struct saga_id){0}, "r", "t");
    turn = stage_oldest(STORE_APPEND);
    assert_int_equal(turn->record_count, 3);
    assert_int_equal(turn->awake, AWAKE_AS_IT_WAS);
    assert_false(turn->status_changed);
    assert_int_equal(turn->new_key_count + turn->escalation_count + turn->approval_count + turn->follower_count, 0);
    assert_int_equal(turn->forget_ms, 0);
    assert_false(called->done); /* the answer comes after the commit */
    stage_let(STORE_APPEND);
    assert_true(called->done);
    assert_int_equal(called->code, ERR_OK);
    assert_true(called->call.replayed);
    assert_null(live_find(nodes[0].engine, id));
    stage_release(STORE_APPEND);
    node_kill(&nodes[0]); /* recovery has nothing to do for it, and the next repeat finds all of it */
    stage_again(0);
    request = stage_call_of("r", "t", "{}", 60000);
    request->in.call.conversation_turn = SLICE("2"); /* so that it is no loop */
    called = stage_expect(stage_ask(0, engine_call, request), ERR_OK);
    assert_true(slice_is(json_trim(json_member(called->answer, "duplicates_seen")), "2"));
    assert_int_equal(stage_calls("t"), 1);
}

/* Calls the run of a keyed tool in a new turn, which makes it a repeat and no loop. */
static struct reply *repeat(const char *turn)
{
    struct engine_request *request = stage_call_of("r", "t", "{}", 60000);
    struct reply *repeated;

    request->in.call.conversation_turn = slice_of(turn);
    repeated = stage_ask(0, engine_call, request);
    stage_run(100);
    return repeated;
}

/* What was read of a run before its last turn must not be acted on. So a read is used only if the run did not leave
 * memory after somebody had asked for it. */
TEST(what_was_asked_for_before_a_run_came_and_left_is_read_again)
{
    struct reply *repeated;
    struct saga_id id;
    uint32_t reads;

    for (int i = 0; i < 2; i++) {
        begin();
        repeated = stage_expect(repeat("1"), ERR_OK);
        assert_true(uuid_parse(json_string(json_member(repeated->answer, "saga"), &world->arena), &id.uuid));
        stage_run(3600 * 1000);
        assert_null(live_find(nodes[0].engine, id));
        stage_hold(STORE_READ_RUN);
        repeated = repeat("2");
        assert_int_equal(stage_held(STORE_READ_RUN), 1);
        if (i == 0) { /* somebody else has the run read by its id, and it leaves again */
            (void)stage_change(0, VERB_PAUSE, id);
            stage_settle();
            assert_null(live_find(nodes[0].engine, id));
        }
        reads = stage_asked(STORE_READ_SAGA);
        stage_let(STORE_READ_RUN);
        stage_settle();
        assert_int_equal(repeated->code, ERR_OK);
        assert_true(repeated->call.replayed);
        assert_int_equal(stage_asked(STORE_READ_SAGA) - reads, i == 0 ? 1 : 0);
        stage_end();
    }
}

TEST(a_run_that_is_being_read_by_its_id_is_not_made_by_its_name)
{
    struct reply *repeated, *paused;
    struct saga_id id;

    begin();
    repeated = stage_expect(repeat("1"), ERR_OK);
    assert_true(uuid_parse(json_string(json_member(repeated->answer, "saga"), &world->arena), &id.uuid));
    stage_run(3600 * 1000);
    stage_hold(STORE_READ_SAGA);
    paused = stage_change(0, VERB_PAUSE, id);
    stage_settle();
    repeated = repeat("2");
    assert_false(repeated->done); /* it was read by its name, and waits for the other read */
    assert_null(live_find(nodes[0].engine, id));
    assert_int_equal(stage_held(STORE_READ_SAGA), 1);
    stage_let(STORE_READ_SAGA);
    stage_settle();
    assert_true(paused->done);
    assert_int_equal(repeated->code, ERR_OK);
}

TEST(two_calls_of_a_run_share_a_look_for_it)
{
    struct reply *first, *second;

    begin();
    stage_hold(STORE_READ_RUN);
    first = call((struct saga_id){0}, "r", "look");
    second = call((struct saga_id){0}, "r", "look_again");
    stage_settle();
    assert_int_equal(stage_asked(STORE_READ_RUN), 1);
    stage_let(STORE_READ_RUN);
    assert_int_equal(first->code, ERR_OK);
    assert_int_equal(second->code, ERR_OK);
}

TEST(a_run_that_comes_back_by_its_id_meanwhile_is_the_same)
{
    struct reply *called;
    struct asker sent;

    begin();
    struct saga_id id = run_once("r");

    stage_hold(STORE_READ_RUN);
    called = call((struct saga_id){0}, "r", "look_again");
    stage_hold(STORE_APPEND);
    send(&sent, id, "default");
    stage_settle();
    size_t turns = strlen(stage_log(id));

    stage_let(STORE_READ_RUN);
    stage_release(STORE_APPEND);
    stage_settle();
    assert_true(strlen(stage_log(id)) > turns);
    assert_true(called->done);
}

/* --- a state at rest that is damaged --- */

static enum { DAMAGED_FORM, DAMAGED_DIGEST, DAMAGED_RESULT, DAMAGED_COUNT } damaged;

static void damage(void *request, enum err_code *code)
{
    struct read_run *run = container_of((struct store_read *)request, struct read_run, read);
    char *bytes = arena_text(run->read.arena, run->rest), *result = memmem(bytes, run->rest.len, "aaaa", 4);

    assert_int_equal(*code, ERR_OK);
    assert_non_null(result);
    *(damaged == DAMAGED_RESULT ? result : bytes + damaged) ^= 1;
    run->rest.ptr = bytes;
}

TEST(a_run_whose_stored_state_is_damaged_is_answered_from_its_log)
{
    static const char *const runs[] = {"form", "digest", "result"};

    begin();
    stage_says("t", OUTCOME_COMPLETED, NULL, "{'receipt':'aaaa'}");
    for (damaged = DAMAGED_FORM; damaged < DAMAGED_COUNT; damaged++) {
        uint64_t told = metric_value(METRIC_RESTS_DAMAGED);
        struct reply *called = call((struct saga_id){0}, runs[damaged], "t");
        struct slice first = json_member(called->answer, "result");
        uint32_t calls = stage_calls("t");

        assert_true(called->code == ERR_OK && first.len > 2);
        stage_run(120 * 1000); /* it rests, and leaves memory */
        stage_on_answer(STORE_READ_RUN, damage);
        called = call((struct saga_id){0}, runs[damaged], "t");
        if (called->code != ERR_OK || !slice_equal(json_member(called->answer, "result"), first) ||
            stage_calls("t") != calls) {
            fail_msg("%s: %s, %.*s", runs[damaged], err_name(called->code), SLICE_ARG(called->answer));
        }
        /* Another form may be that of another release, and is no damage. */
        assert_int_equal(metric_value(METRIC_RESTS_DAMAGED) - told, damaged != DAMAGED_FORM);
    }
}

TEST_PROGRAM_EACH(NULL, stage_teardown)
