/* Records as text: a written record is read back the same, payloads byte for byte, and nonsense is refused. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/record/record_fields.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

static struct arena arena;
static const struct definition *definition;

static int set_up(void **state)
{
    (void)state;
    arena_init(&arena, 65536);
    definition =
        trial_compile(&arena, trial_json(&arena, TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'b','call':'keyed'}")));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

static struct slice written(const struct record *record)
{
    struct buffer out;
    struct slice text;

    buffer_init(&out, 1 << 20);
    record_write(record, definition, &out);
    assert_false(out.overflow);
    text = arena_slice(&arena, buffer_slice(&out));
    buffer_fini(&out);
    return text;
}

static struct record full(void) /* a record with every member of every type */
{
    static const uint32_t plan[] = {1, 0}, debts[] = {1};
    struct record record = {.step = 1,
                            .attempt = 3,
                            .generation = 2,
                            .due_ms = TRIAL_START_MS + 7,
                            .unsent = true,
                            .maybe = true,
                            .accept_double = true};

    record.key.uuid.bytes[0] = 0xab;
    record.key.uuid.bytes[15] = 0x01;
    memset(&record.fingerprint, 0x5c, sizeof(record.fingerprint));
    record.args = SLICE("{ \"n\" : 123456789012345678901234567890.10,\"s\":\"\\u00e4\" }");
    record.scope = SLICE("order \"7\"\n");
    record.error = SLICE("http-503");
    record.detail = SLICE("a \"quoted\" \xc3\xa4 sentence");
    record.source = SOURCE_PROBE;
    record.result = SLICE("[1, 2.50,  null]");
    record.undo_args = SLICE("{\"id\": 1e2}");
    record.undo_error = SLICE(".a is no object");
    record.saga_name = SLICE("trial");
    record.version = 4;
    record.namespace = SLICE("shop");
    record.business_id = SLICE("o-1");
    record.tags = SLICE("{\"k\":\"v\"}");
    record.input = SLICE("{\"order_id\": \"o-1\"}");
    record.tools = SLICE("{\"keyed\":1}");
    record.plan = plan;
    record.plan_count = COUNT_OF(plan);
    record.escalation = UINT64_C(9007199254740993);
    record.direction = DIRECTION_UNDO;
    record.reason = SLICE("unknown");
    record.action = SLICE("resolve");
    record.verdict = SLICE("happened");
    record.actor = SLICE("ann");
    record.note = SLICE("looked it up");
    record.debts = debts;
    record.debt_count = COUNT_OF(debts);
    record.cost_micros = -1500;
    record.conditional = true;
    record.effect = EFFECT_CHECKED;
    record.run = SLICE("order 7");
    record.budget = SLICE("{\"calls\":10}");
    record.loop = SLICE("{\"repeats\": 4}");
    record.on_timeout = SLICE("escalate");
    record.emission = SLICE("e-1");
    record.conversation_turn = SLICE("3");
    record.call_step = SLICE("charge");
    record.label = SLICE("charge~2");
    record.tool_name = SLICE("keyed");
    record.tool_version = 3;
    record.undo_name = SLICE("undo");
    record.undo_version = 2;
    record.earlier_key = record.key;
    record.decision = SLICE("bypass");
    record.pointers = SLICE("[\"/amount\"]");
    record.pattern = SLICE("[{\"tool\":\"keyed\",\"step\":\"charge\",\"scope\":\"\"}]");
    record.repeats = 3;
    record.sagas = SLICE("{\"payment\":2}");
    record.signal = SLICE("paid");
    record.approval = 192;
    record.lock = SLICE("order:\"7\"");
    record.followers = SLICE("[{\"saga\":\"thank\",\"input\":{ },\"business_id\":\"t-1\"}]");
    return record;
}

/* Clears the members around `data` that the type does not have, because they are written whenever they are there. */
static void keep_what_it_may_have(struct record *record)
{
    uint64_t may = record_shape(record->type)->may;

    record->step = may & FIELD_BIT(FIELD_STEP) ? record->step : STEP_NONE;
    record->key = may & FIELD_BIT(FIELD_KEY) ? record->key : (struct op_key){0};
    record->attempt = may & FIELD_BIT(FIELD_ATTEMPT) ? record->attempt : 0;
    record->actor = may & FIELD_BIT(FIELD_ACTOR) ? record->actor : SLICE_NONE;
}

TEST(every_type_is_read_back_as_it_was_written)
{
    for (unsigned type = 0; type < RECORD_TYPE_COUNT; type++) {
        struct record record = full(), again;
        struct err err;
        struct slice text;
        enum record_type parsed;

        record.type = (enum record_type)type;
        keep_what_it_may_have(&record);
        text = written(&record);
        if (record_read(text, definition, &arena, &again, &err) != ERR_OK) {
            fail_msg("%s\n%.*s", err.message, SLICE_ARG(text));
        }
        assert_int_equal(again.type, type);
        assert_true(slice_equal(written(&again), text));
        assert_int_equal(again.step, type == RECORD_STEP_CALLED ? definition->step_count
                                                                : record.step); /* a call makes the next step */
        assert_true(record_type_parse(slice_of(record_type_name((enum record_type)type)), &parsed));
        assert_int_equal(parsed, type);
    }
}

TEST(payloads_come_back_byte_for_byte)
{
    struct record record = full(), again;
    struct err err;

    record.type = RECORD_STEP_INTENT;
    record.actor = SLICE_NONE;
    assert_int_equal(record_read(written(&record), definition, &arena, &again, &err), ERR_OK);
    assert_true(slice_equal(again.args, record.args));
    assert_true(slice_equal(again.scope, record.scope));
    assert_memory_equal(&again.fingerprint, &record.fingerprint, sizeof(record.fingerprint));
    record.type = RECORD_STEP_COMPLETED;
    assert_int_equal(record_read(written(&record), definition, &arena, &again, &err), ERR_OK);
    assert_true(slice_equal(again.result, record.result));
    assert_true(slice_equal(again.undo_args, record.undo_args));
    record.type = RECORD_STEP_FAILED;
    assert_int_equal(record_read(written(&record), definition, &arena, &again, &err), ERR_OK);
    assert_true(slice_equal(again.detail, record.detail));
}

TEST(the_text_is_what_the_api_shows)
{
    struct record record = {.type = RECORD_STEP_COMPLETED, .step = 0, .attempt = 1, .result = SLICE("{\"id\":1}")};

    record.key.uuid.bytes[0] = 0xab;
    assert_string_equal(
        arena_text(&arena, written(&record)),
        "{\"type\":\"step.completed\",\"step\":\"a\",\"key\":\"ab000000-0000-0000-0000-000000000000\",\"attempt\":1,"
        "\"data\":{\"result\":{\"id\":1}}}");
}

TEST(a_new_record_reads_as_it_stands_in_the_log)
{
    struct record decided = {.type = RECORD_APPROVAL_DECIDED,
                             .step = 0,
                             .approval = 64,
                             .verdict = SLICE("refuse"),
                             .actor = SLICE("ann")},
                  waiting = {.type = RECORD_STEP_WAITING, .step = 1, .due_ms = TRIAL_START_MS},
                  signal = {.type = RECORD_SIGNAL_RECEIVED,
                            .step = STEP_NONE,
                            .signal = SLICE("paid"),
                            .args = SLICE("1"),
                            .emission = SLICE("s-1")},
                  lock = {.type = RECORD_LOCK_TAKEN, .step = STEP_NONE, .lock = SLICE("order:7")};

    assert_string_equal(arena_text(&arena, written(&decided)),
                        "{\"type\":\"approval.decided\",\"step\":\"a\",\"actor\":\"ann\",\"data\":{\"approval\":64,"
                        "\"as\":\"refuse\"}}");
    assert_string_equal(
        arena_text(&arena, written(&waiting)),
        "{\"type\":\"step.waiting\",\"step\":\"b\",\"data\":{\"due_at\":\"2023-11-14T22:13:20.000Z\"}}");
    assert_string_equal(
        arena_text(&arena, written(&signal)),
        "{\"type\":\"signal.received\",\"data\":{\"args\":1,\"emission\":\"s-1\",\"signal\":\"paid\"}}");
    assert_string_equal(arena_text(&arena, written(&lock)),
                        "{\"type\":\"lock.taken\",\"data\":{\"lock\":\"order:7\"}}");
}

TEST(seq_and_time_are_taken_when_they_are_there)
{
    struct record record;
    struct err err;
    struct slice text =
        trial_json(&arena, "{'seq':7,'at':'2026-01-31T09:05:00.250Z','type':'saga.compensated','data':{}}");

    assert_int_equal(record_read(text, definition, &arena, &record, &err), ERR_OK);
    assert_int_equal(record.seq, 7);
    assert_true(record.at_ms == INT64_C(1769850300250));
    assert_int_equal(record.step, STEP_NONE);
    assert_int_equal(record_read(SLICE(" {\"type\":\"saga.compensated\"} "), definition, &arena, &record, &err),
                     ERR_OK);
    assert_int_equal(record.seq, 0);
}

static const char *const corrupt[] = {
    "",
    "null",
    "[]",
    "{",
    "{'type':7,'data':{}}",
    "{'data':{}}",
    "{'type':'saga.compensated','data':{}",
    "{'type':'saga.compensated','data':[]}",
    "{'type':'saga.compensated','data':{},'more':1}",
    "{'type':'saga.compensated','data':{'result':1}}", /* a member of another type */
    "{'type':'saga.compensated','step':'a','data':{}}",
    "{'type':'saga.melted','data':{}}", /* a type of a later version */
    "{'type':'saga.compensated','type':'saga.completed','data':{}}",
    "{'type':'step.intent','step':'z','key':'ab000000-0000-0000-0000-000000000000','attempt':1,'data':{}}",
    "{'type':'step.intent','step':'a','key':'ab','attempt':1,'data':{}}",
    "{'type':'step.intent','step':'a','attempt':1,'data':{}}",
    "{'type':'step.intent','step':'a','key':'ab000000-0000-0000-0000-000000000000','data':{}}",
    "{'type':'step.intent','step':'a','key':'ab000000-0000-0000-0000-000000000000','attempt':-1,'data':{}}",
    "{'type':'step.intent','step':'a','key':'ab000000-0000-0000-0000-000000000000','attempt':'1','data':{}}",
    "{'type':'step.intent','step':'a','key':'ab000000-0000-0000-0000-000000000000','attempt':4294967296,'data':{}}",
    "{'type':'step.intent','step':'a','key':'ab000000-0000-0000-0000-000000000000','attempt':1,'data':{'fingerprint':'"
    "5c'}}",
    "{'type':'step.retrying','step':'a','key':'ab000000-0000-0000-0000-000000000000','attempt':1,'data':{'due_at':'"
    "soon'}}",
    "{'type':'step.retrying','step':'a','key':'ab000000-0000-0000-0000-000000000000','attempt':1,'data':{}}",
    "{'type':'step.failed','step':'a','data':{'error':'x','source':'rumour'}}",
    "{'type':'compensation.planned','data':{'plan':'a'}}",
    "{'type':'compensation.planned','data':{'plan':['a','b','a']}}",
    "{'type':'compensation.planned','data':{'plan':['a','z']}}",
    "{'type':'escalation.opened','step':'a','data':{'escalation':0,'reason':'unknown'}}",
    "{'type':'escalation.opened','step':'a','data':{'escalation':1,'direction':'sideways','reason':'unknown'}}",
    "{'type':'saga.started','data':{'saga':'trial','version':0,'tools':{},'input':{}}}",
    "{'type':'step.waiting','data':{}}",
    "{'type':'step.waiting','step':'a','data':{'result':1}}",
    "{'type':'step.opened','step':'a','data':{}}",
    "{'type':'step.failing','step':'a','data':{}}",
    "{'type':'signal.received','data':{'signal':'go'}}",
    "{'type':'signal.received','data':{'args':1}}",
    "{'type':'approval.decided','step':'a','actor':'ann','data':{'approval':1}}",
    "{'type':'approval.decided','step':'a','actor':'ann','data':{'approval':0,'as':'approve'}}",
    "{'type':'approval.decided','step':'a','data':{'approval':1,'as':'approve'}}",
    "{'type':'lock.wanted','data':{}}",
    "{'type':'lock.taken','data':{'lock':''}}",
};

TEST(a_senseless_record_is_refused_with_a_sentence)
{
    for (size_t i = 0; i < COUNT_OF(corrupt); i++) {
        struct record record = {.seq = 99};
        struct err err = {0};
        enum err_code code = record_read(trial_json(&arena, corrupt[i]), definition, &arena, &record, &err);

        if (code != ERR_CORRUPT || err.code != ERR_CORRUPT || !err.message[0] || record.seq != 99) {
            fail_msg("%s: %d %s", corrupt[i], (int)code, err.message);
        }
    }
}

TEST(any_byte_may_be_wrong_without_harm)
{
    struct record record = full(), again;
    struct slice text;

    record.type = RECORD_STEP_COMPLETED;
    text = written(&record);
    for (size_t i = 0; i < text.len; i++) {
        for (int flip = 1; flip < 256; flip <<= 1) {
            char *copy = arena_dup(&arena, text.ptr, text.len);
            struct err err;

            copy[i] = (char)(copy[i] ^ flip);
            (void)!record_read((struct slice){copy, text.len}, definition, &arena, &again,
                               &err); /* either result is fine */
        }
    }
    for (size_t len = 0; len < text.len; len++) { /* cuts the text at each place */
        struct err err;

        assert_int_equal(
            record_read((struct slice){arena_dup(&arena, text.ptr, len + 1), len}, definition, &arena, &again, &err),
            ERR_CORRUPT);
    }
}

TEST(the_start_is_readable_before_its_definition_is_at_hand)
{
    struct record record = full(), again;
    struct err err;

    record.type = RECORD_SAGA_STARTED;
    record.step = STEP_NONE;
    record.key = (struct op_key){0};
    record.attempt = 0;
    record.actor = SLICE_NONE;
    assert_int_equal(record_read_start(written(&record), &arena, &again, &err), ERR_OK);
    assert_true(slice_is(again.saga_name, "trial"));
    assert_int_equal(again.version, 4);
    assert_true(slice_is(again.tools, "{\"keyed\":1}"));
    record.type = RECORD_SAGA_COMPENSATED;
    assert_int_equal(record_read_start(written(&record), &arena, &again, &err), ERR_CORRUPT);
}

/* The codec should read 10^5 records in a second. This test only finds a codec that is slower by an order of magnitude,
 * on a busy machine with sanitizers. */
TEST(the_codec_is_fast)
{
    struct record record = full(), again;
    struct buffer out;
    struct arena scratch = {0};
    struct timespec from, to;
    double seconds;
    enum { ROUNDS = 20000 };

    record.type = RECORD_STEP_COMPLETED;
    buffer_init(&out, 1 << 20);
    arena_init(&scratch, 16384);
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    for (int i = 0; i < ROUNDS; i++) {
        struct err err;

        buffer_reset(&out);
        arena_reset(&scratch);
        record_write(&record, definition, &out);
        assert_int_equal(record_read(buffer_slice(&out), definition, &scratch, &again, &err), ERR_OK);
    }
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    (void)printf("           %.0f records a second, written and read\n", ROUNDS / seconds);
    assert_true(ROUNDS / seconds > 5000);
    buffer_fini(&out);
    arena_fini(&scratch);
}

TEST_PROGRAM(set_up, tear_down)
