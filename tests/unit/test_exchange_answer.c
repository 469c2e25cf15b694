/* The answer of an owner reads the same on the engine whose client waits for it. */
#include <string.h>

#include "run/exchange/exchange.h"
#include "tests/lib/test.h"

static struct arena arena;
static struct engine_request told, heard;
static struct work work;
static struct buffer body;
static struct err err;

static enum err_code pass_on(void)
{
    buffer_reset(&body);
    exchange_answer_write(&told, &body);
    assert_false(body.overflow);
    return exchange_answer_read(buffer_slice(&body), &work, &err);
}

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, 4096);
    buffer_init(&body, 1 << 20);
    told = heard = (struct engine_request){.arena = &arena};
    work = (struct work){.request = &heard};
    arena_init(&work.arena, 1024);
    buffer_init(&work.out, 1 << 20);
    err = (struct err){0};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    buffer_fini(&work.out);
    arena_fini(&work.arena);
    buffer_fini(&body);
    arena_fini(&arena);
    return 0;
}

TEST(a_done_answer_comes_byte_for_byte)
{
    struct slice record = SLICE("{ \"result\": 123456789012345678901234567890.10, \"text\":\"\\u00e9\\\"\" }");

    told.answer = record;
    told.saga = saga_id_new(1, 7);
    told.created = true;
    told.call = (struct call_result){
        .replayed = true, .first_ms = INT64_C(1700000000123), .key = SLICE("00000000-0000-8000-8000-000000000001")};
    assert_int_equal(pass_on(), ERR_OK);
    assert_true(slice_equal(buffer_slice(&work.out), record));
    assert_true(uuid_equal(&heard.saga.uuid, &told.saga.uuid));
    assert_true(heard.created && heard.call.replayed && !heard.call.going_on);
    assert_int_equal(heard.call.first_ms, told.call.first_ms);
    assert_true(slice_equal(heard.call.key, told.call.key));
    assert_null(heard.call.operation.ptr);
    assert_null(heard.call.pointers.ptr);
}

TEST(a_refusal_comes_with_its_sentence_its_record_and_its_places)
{
    told.code = err_set(&told.err, ERR_DRIFT, "\"reserve\" was called before\nwith 100%% other arguments");
    err_detail(&told.err, "detail");
    err_hint(&told.err, "hint");
    faults_init(&told.faults, &arena);
    faults_add(&told.faults, SLICE("/args/qty"), "at least %d", 1);
    faults_add_not_supported(&told.faults, SLICE("/args"), "locks");
    told.call = (struct call_result){.retry_after_ms = 1500,
                                     .operation = SLICE("{\"state\":\"completed\"}"),
                                     .pointers = SLICE("[\"/qty\"]"),
                                     .pattern = SLICE("[]")};
    assert_int_equal(pass_on(), ERR_DRIFT);
    assert_int_equal(err.code, ERR_DRIFT);
    assert_string_equal(err.message, told.err.message);
    assert_string_equal(err.detail, "detail");
    assert_string_equal(err.hint, "hint");
    assert_int_equal(heard.faults.count, 2);
    assert_true(slice_is(heard.faults.items[0].pointer, "/args/qty"));
    assert_true(slice_is(heard.faults.items[0].detail, "at least 1"));
    assert_true(heard.faults.items[1].not_supported && !heard.faults.items[0].not_supported);
    assert_int_equal(heard.call.retry_after_ms, 1500);
    assert_true(slice_is(heard.call.operation, "{\"state\":\"completed\"}"));
    assert_true(slice_is(heard.call.pointers, "[\"/qty\"]"));
    assert_int_equal(work.out.len, 0);
}

TEST(places_of_another_version_are_read_as_far_as_they_make_sense)
{
    static const struct {
        const char *body;
        size_t faults;
    } cases[] = {
        {"{\"code\":\"invalid\",\"errors\":{}}", 0},
        {"{\"code\":\"invalid\",\"errors\":[{},{\"pointer\":\"/a\"},{\"detail\":\"d\"}]}", 3},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(exchange_answer_read(slice_of(cases[i].body), &work, &err), ERR_INVALID);
        assert_int_equal(heard.faults.count, cases[i].faults);
    }
    assert_true(slice_is(heard.faults.items[1].pointer, "/a") && slice_is(heard.faults.items[1].detail, ""));
    assert_true(slice_is(heard.faults.items[2].pointer, "") && slice_is(heard.faults.items[2].detail, "d"));
}

TEST(every_code_has_its_way_back)
{
    for (enum err_code code = 0; code < ERR_COUNT; code++) {
        told.code = told.err.code = code;
        assert_int_equal(pass_on(), code);
    }
}

TEST(nobody_may_be_listening_any_more)
{
    work.request = NULL;
    told.answer = SLICE("{}");
    assert_int_equal(pass_on(), ERR_OK);
    told.code = err_set(&told.err, ERR_LOOP, "round and round");
    assert_int_equal(pass_on(), ERR_LOOP);
}

TEST(a_senseless_answer_is_told_as_such)
{
    static const char *const bodies[] = {"",
                                         "{",
                                         "null",
                                         "[]",
                                         "{\"code\":7}",
                                         "{\"code\":\"no-such-code\"}",
                                         "{\"code\":\"ok\"}x",
                                         "{\"code\":\"\xff\"}"};

    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        assert_int_equal(exchange_answer_read(slice_of(bodies[i]), &work, &err), ERR_CORRUPT);
        assert_true(err.hint[0] != '\0');
    }
}

TEST_PROGRAM_EACH(setup, teardown)
