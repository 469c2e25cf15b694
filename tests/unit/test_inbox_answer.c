/* The answer of an owner reads the same on the engine whose client waits for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "run/exchange/inbox.h"

static struct arena arena;
static struct engine_request told, heard;
static struct work work;
static struct buffer body;
static struct err err;

static enum err_code pass_on(void)
{
    buffer_reset(&body);
    inbox_answer_write(&told, &body);
    assert_false(body.overflow);
    return inbox_answer_read(buffer_slice(&body), &work, &err);
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

static void what_was_done_comes_byte_for_byte(void **state)
{
    struct slice record = SLICE("{ \"result\": 123456789012345678901234567890.10, \"text\":\"\\u00e9\\\"\" }");

    (void)state;
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

static void a_refusal_comes_with_its_sentence_its_record_and_its_places(void **state)
{
    (void)state;
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

static void places_of_another_version_are_read_as_far_as_they_make_sense(void **state)
{
    static const struct {
        const char *body;
        size_t faults;
    } cases[] = {
        {"{\"code\":\"invalid\",\"errors\":{}}", 0},
        {"{\"code\":\"invalid\",\"errors\":[{},{\"pointer\":\"/a\"},{\"detail\":\"d\"}]}", 3},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(inbox_answer_read(slice_of(cases[i].body), &work, &err), ERR_INVALID);
        assert_int_equal(heard.faults.count, cases[i].faults);
    }
    assert_true(slice_is(heard.faults.items[1].pointer, "/a") && slice_is(heard.faults.items[1].detail, ""));
    assert_true(slice_is(heard.faults.items[2].pointer, "") && slice_is(heard.faults.items[2].detail, "d"));
}

static void every_code_has_its_way_back(void **state)
{
    (void)state;
    for (enum err_code code = 0; code < ERR_COUNT; code++) {
        told.code = told.err.code = code;
        assert_int_equal(pass_on(), code);
    }
}

static void nobody_may_be_listening_any_more(void **state)
{
    (void)state;
    work.request = NULL;
    told.answer = SLICE("{}");
    assert_int_equal(pass_on(), ERR_OK);
    told.code = err_set(&told.err, ERR_LOOP, "round and round");
    assert_int_equal(pass_on(), ERR_LOOP);
}

static void what_makes_no_sense_is_told_so(void **state)
{
    static const char *const bodies[] = {"",
                                         "{",
                                         "null",
                                         "[]",
                                         "{\"code\":7}",
                                         "{\"code\":\"no-such-code\"}",
                                         "{\"code\":\"ok\"}x",
                                         "{\"code\":\"\xff\"}"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        assert_int_equal(inbox_answer_read(slice_of(bodies[i]), &work, &err), ERR_CORRUPT);
        assert_true(err.hint[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_done_comes_byte_for_byte, setup, teardown),
        cmocka_unit_test_setup_teardown(a_refusal_comes_with_its_sentence_its_record_and_its_places, setup, teardown),
        cmocka_unit_test_setup_teardown(places_of_another_version_are_read_as_far_as_they_make_sense, setup, teardown),
        cmocka_unit_test_setup_teardown(every_code_has_its_way_back, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_may_be_listening_any_more, setup, teardown),
        cmocka_unit_test_setup_teardown(what_makes_no_sense_is_told_so, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
