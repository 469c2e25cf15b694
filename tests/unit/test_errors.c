/* Every error code has its row, sentences are cut and never overrun, and the number of faults is bounded. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/errors.h"
#include "tests/lib/test.h"

static struct arena arena;

TEST(every_code_has_a_name_a_title_and_sound_numbers)
{
    for (int code = 0; code < ERR_COUNT; code++) {
        assert_true(strlen(err_name((enum err_code)code)) > 1);
        assert_true(strlen(err_title((enum err_code)code)) > 1);
        assert_in_range(err_http_status((enum err_code)code), 200, 599);
        assert_in_range(err_exit_code((enum err_code)code), 0, 9);
        assert_int_equal(err_exit_code((enum err_code)code) == 0, code == ERR_OK);
        for (int other = 0; other < code; other++) {
            assert_string_not_equal(err_name((enum err_code)code), err_name((enum err_code)other));
        }
    }
    assert_int_equal(err_http_status(ERR_MALFORMED), 400);
    assert_true(err_retryable(ERR_STORE));
    assert_false(err_retryable(ERR_INVALID));
}

/* Agents and their frameworks act by status, exit code and `retryable`, so these are part of the contract. */
TEST(refusals_of_calls_are_as_the_contract_has_them)
{
    static const struct {
        enum err_code code;
        const char *name;
        int status, exit_code;
        bool retryable;
    } rows[] = {
        {ERR_TAKEN, "id-taken", 409, 4, false},
        {ERR_IN_FLIGHT, "in-flight", 409, 7, true},
        {ERR_CALL_OUT, "call-under-way", 409, 7, true},
        {ERR_PROBE_OUT, "probe-under-way", 409, 7, true},
        {ERR_DUPLICATE, "duplicate-call", 409, 4, false},
        {ERR_OUTCOME_UNKNOWN, "outcome-unknown", 409, 4, true},
        {ERR_AWAITING, "awaiting-operator", 409, 9, true},
        {ERR_LOOP, "loop-detected", 409, 4, false},
        {ERR_SEALED, "saga-sealed", 409, 4, false},
        {ERR_CLOSED, "saga-closed", 409, 4, false},
        {ERR_UNSETTLED, "unsettled", 409, 4, true},
        {ERR_PAUSED, "paused", 409, 9, true},
        {ERR_PAST_RETURN, "past-point-of-no-return", 409, 4, false},
        {ERR_EXPIRED, "expired", 410, 4, false},
        {ERR_GONE, "gone", 410, 4, false},
        {ERR_DRIFT, "arguments-differ", 422, 4, false},
        {ERR_BLOCKED, "blocked-by-precheck", 422, 1, false},
        {ERR_OTHER_INPUT, "other-input", 422, 4, false},
        {ERR_BUDGET, "budget-exhausted", 403, 5, false},
        {ERR_TOOL_FAILED, "tool-failed", 424, 1, false},
        {ERR_RATE, "rate-limited", 429, 6, true},
        {ERR_QUOTA, "quota-exceeded", 429, 6, true},
        {ERR_BREAKER, "breaker-open", 503, 6, true},
        {ERR_HELD, "held", 503, 6, true},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_string_equal(err_name(rows[i].code), rows[i].name);
        assert_int_equal(err_http_status(rows[i].code), rows[i].status);
        assert_int_equal(err_exit_code(rows[i].code), rows[i].exit_code);
        assert_int_equal(err_retryable(rows[i].code), rows[i].retryable);
    }
}

TEST(setting_returns_the_code_and_clears_what_was_said_before)
{
    struct err err = {0};

    assert_int_equal(err_set(&err, ERR_STORE, "no %s", "database"), ERR_STORE);
    err_detail(&err, "port %d", 5432);
    err_hint(&err, "start it");
    assert_string_equal(err.message, "no database");
    assert_string_equal(err.detail, "port 5432");
    assert_string_equal(err.hint, "start it");
    assert_int_equal(err_set(&err, ERR_BUSY, "busy"), ERR_BUSY);
    assert_int_equal(err.code, ERR_BUSY);
    assert_string_equal(err.detail, "");
    assert_string_equal(err.hint, "");
}

TEST(context_goes_in_front_and_keeps_the_code)
{
    struct err err = {0};

    (void)err_set(&err, ERR_STORE, "no answer");
    err_detail(&err, "kept");
    assert_int_equal(err_context(&err, "loading shard %d", 7), ERR_STORE);
    assert_string_equal(err.message, "loading shard 7: no answer");
    assert_string_equal(err.detail, "kept");
}

TEST(long_sentences_are_cut)
{
    struct err err = {0};
    char text[2000];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    (void)err_set(&err, ERR_IO, "%s", text);
    err_detail(&err, "%s", text);
    err_hint(&err, "%s", text);
    assert_int_equal(err_context(&err, "%s", text), ERR_IO);
    assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
    assert_int_equal(strlen(err.detail), sizeof(err.detail) - 1);
    assert_int_equal(strlen(err.hint), sizeof(err.hint) - 1);
}

TEST(a_sentence_is_cut_between_characters)
{
    static const char *const characters[] = {"y", "\xc3\xa9", "\xe2\x82\xac", "\xf0\xa3\x9d\xa3"};

    for (size_t c = 0; c < COUNT_OF(characters); c++) {
        size_t bytes = strlen(characters[c]);

        for (int before = 0; before < 4; before++) {
            struct err err = {0};
            char text[1000] = "xxxx";
            size_t room = sizeof(err.message) - 1 - (size_t)before;

            for (size_t at = (size_t)before; at + bytes < sizeof(text); at += bytes) {
                memcpy(text + at, characters[c], bytes + 1);
            }
            err_set(&err, ERR_INVALID, "%s", text);
            assert_int_equal(strlen(err.message), (size_t)before + room / bytes * bytes);
            assert_memory_equal(err.message, text, strlen(err.message));
        }
    }
}

TEST(nobody_has_to_listen)
{
    assert_int_equal(err_set(NULL, ERR_IO, "unheard"), ERR_IO);
    err_detail(NULL, "unheard");
    err_hint(NULL, "unheard");
}

TEST(an_error_is_printed_with_its_detail_and_hint_below)
{
    struct err err = {0};
    char text[256];
    int ends[2], old = dup(STDERR_FILENO);

    assert_int_equal(pipe(ends), 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    (void)err_set(&err, ERR_CONFIG, "no such port");
    err_print(&err, "sagad");
    err_detail(&err, "99999");
    err_hint(&err, "take another");
    err_print(&err, "sagad");
    assert_true(dup2(old, STDERR_FILENO) >= 0);
    (void)close(old); /* the rest of the test does not need it */
    (void)close(ends[1]);
    ssize_t len = read(ends[0], text, sizeof(text) - 1);

    (void)close(ends[0]);
    assert_true(len > 0);
    text[len] = '\0';
    assert_string_equal(text, "sagad: no such port\nsagad: no such port\n  99999\n  take another\n");
}

TEST(faults_keep_place_and_sentence)
{
    struct faults faults;
    char pointer[] = "/sagas/0";

    faults_init(&faults, &arena);
    faults_add(&faults, slice_of(pointer), "%d is too many", 7);
    faults_add_not_supported(&faults, SLICE_NONE, "for_each");
    memset(pointer, 'x', sizeof(pointer) - 1); /* the faults hold copies */
    assert_int_equal(faults.count, 2);
    assert_true(slice_is(faults.items[0].pointer, "/sagas/0"));
    assert_true(slice_is(faults.items[0].detail, "7 is too many"));
    assert_false(faults.items[0].not_supported);
    assert_non_null(faults.items[1].pointer.ptr);
    assert_int_equal(faults.items[1].pointer.len, 0);
    assert_true(faults.items[1].not_supported);
    assert_non_null(strstr(faults.items[1].detail.ptr, "\"for_each\""));
}

TEST(faults_beyond_the_bound_are_counted_and_cost_nothing)
{
    struct faults faults;

    faults_init(&faults, &arena);
    assert_int_equal(faults.count_max, 200);
    for (int i = 0; i < 200; i++) {
        faults_add(&faults, SLICE("/a"), "fault %d", i);
    }
    size_t used = arena.used_bytes;

    for (int i = 0; i < 1000; i++) {
        faults_add(&faults, SLICE("/a"), "fault %d", i);
        faults_add_not_supported(&faults, SLICE("/a"), "b");
    }
    assert_int_equal(faults.count, 200);
    assert_int_equal(faults.dropped, 2000);
    assert_int_equal(arena.used_bytes, used);
    assert_true(slice_is(faults.items[199].detail, "fault 199"));
}

TEST_PROGRAM_ARENA(arena)
