/*
 * A run that rests is stored in few bytes, and goes on from them as it would from its log. The trial compares the two
 * with each input of all tests of calls (tests/lib/call_trial.c). Here is what is not stored, and what the bytes may
 * be.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "core/saga/machine.h"
#include "core/saga/rest.h"
#include "tests/lib/call_trial.h"
#include "tests/lib/test.h"

static struct call_trial t;

static void rest(void)
{
    t.now_ms += 60000;
    call_trial_due(&t, SAGA_TIMER_REST);
    assert_int_equal(t.saga.phase, PHASE_ENDED);
}

static void call_and_rest(const char *args)
{
    call_trial_run(&t);
    CALL(&t, "coalesce", "a", args, .emission = "e-1");
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, "{\"id\":\"r-1\"}");
    rest();
}

/* What is stored of the run, in `out`. */
static bool write(struct buffer *out)
{
    buffer_init(out, (size_t)1 << 20);
    return saga_write_rest(&t.saga, out);
}

static bool is_stored(void)
{
    struct buffer out;
    bool stored = write(&out);

    assert_true(stored || out.len == 0);
    buffer_fini(&out);
    return stored;
}

static enum err_code read_as(struct slice bytes, struct slice namespace, uint64_t seq, struct tool_shelf *shelf)
{
    struct saga *saga = arena_alloc(&t.turn, sizeof(*saga));
    struct err err = {0};
    enum err_code code = saga_read_rest(saga, &t.turn, t.saga.id, definition_open(SAGA_RUN, shelf, &t.turn), namespace,
                                        seq, bytes, &err);

    assert_true(code == ERR_OK ? saga_is_sound(saga)
                               : err.message[0] != '\0' && (code == ERR_CORRUPT || code == ERR_UNSUPPORTED));
    return code;
}

static enum err_code read_now(struct slice bytes)
{
    return read_as(bytes, t.saga.namespace, t.saga.seq, &t.shelf);
}

TEST(repeats_are_decided_from_what_is_stored)
{
    call_and_rest("{'amount':1}");
    assert_int_equal(t.rests, 0);
    CALL(&t, "coalesce", "a", "{'amount':1}", .emission = "e-1");
    assert_string_equal(call_trial_records(&t), "run.woken, operation.duplicate a (replayed), run.rested");
    t.now_ms += 60000;
    CALL(&t, "coalesce", "a", "{'amount':1,'trace_id':'x'}", .emission = "e-2", .turn = "2");
    CALL(&t, "coalesce", "a", "{'amount':2}", .emission = "e-3", .turn = "3");
    assert_int_equal(t.saga.phase, PHASE_FORWARD); /* it came soon after the one before, and the run stays awake */
    CALL(&t, "coalesce", "a", "{'amount':1}", .emission = "e-4", .turn = "4");
    assert_int_equal(t.rests, 3);
}

TEST(a_verdict_is_in_what_is_stored_after_it)
{
    struct buffer before, after;

    call_and_rest("{'amount':1}");
    assert_true(write(&before));
    t.now_ms += INT64_C(25) * 3600 * 1000; /* its record expires: what a repeat gets is another answer */
    CALL(&t, "coalesce", "a", "{'amount':1}");
    rest();
    assert_true(write(&after));
    assert_false(slice_equal(buffer_slice(&before), buffer_slice(&after)));
    assert_int_equal(read_now(buffer_slice(&before)), ERR_CORRUPT); /* it is that of another record */
    assert_int_equal(read_now(buffer_slice(&after)), ERR_OK);
    buffer_fini(&before);
    buffer_fini(&after);
}

TEST(only_a_run_that_rests_is_stored)
{
    call_trial_run(&t);
    CALL(&t, "coalesce", "a", "{'amount':1}");
    assert_false(is_stored());
    call_trial_settle(&t, "a", OUTCOME_COMPLETED, NULL);
    assert_false(is_stored());
    rest();
    assert_true(is_stored());
    call_trial_close(&t);
    call_trial_open(&t, NULL, NULL, NULL);
    assert_int_equal(call_trial_complete(&t), ERR_OK);
    assert_false(is_stored());
}

TEST(a_run_that_a_person_was_asked_about_is_read_by_its_log)
{
    call_trial_run(&t);
    CALL(&t, "mail", "a", "{'n':1}");
    call_trial_admit(&t, "a", ADMISSION_GRANTED);
    call_trial_settle(&t, "a", OUTCOME_UNKNOWN, NULL);
    assert_int_not_equal(t.saga.escalation.number, 0);
    if (call_trial_operator(&t, OPERATOR_RESOLVE) != ERR_OK) {
        fail_msg("%s %s", t.err.message, t.err.detail);
    }
    rest();
    assert_false(is_stored());
}

TEST(a_run_with_much_in_it_is_read_by_its_log)
{
    static const char *const steps[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
    static char args[REST_BYTES_MAX + 64];
    char text[REST_BYTES_MAX + 1];

    call_trial_run(&t);
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        CALL(&t, "coalesce", steps[i], "{'amount':1}");
        call_trial_settle(&t, steps[i], OUTCOME_COMPLETED, NULL);
    }
    rest();
    assert_false(is_stored());
    call_trial_close(&t);
    memset(text, 'x', REST_BYTES_MAX);
    text[REST_BYTES_MAX] = '\0';
    (void)snprintf(args, sizeof(args), "{'amount':1,'text':'%s'}", text);
    call_and_rest(args);
    assert_false(is_stored());
}

TEST(what_is_stored_belongs_to_one_record_of_one_run)
{
    struct buffer out;

    call_and_rest("{'amount':1}");
    assert_true(write(&out));
    assert_int_equal(read_now(buffer_slice(&out)), ERR_OK);
    assert_int_equal(read_as(buffer_slice(&out), t.saga.namespace, t.saga.seq + 1, &t.shelf), ERR_CORRUPT);
    assert_int_equal(read_as(buffer_slice(&out), SLICE("other"), t.saga.seq, &t.shelf), ERR_CORRUPT);
    assert_int_equal(read_as(buffer_slice(&out), t.saga.namespace, t.saga.seq, NULL), ERR_UNSUPPORTED);
    t.saga.id.uuid.bytes[15]++;
    assert_int_equal(read_now(buffer_slice(&out)), ERR_CORRUPT);
    t.saga.id.uuid.bytes[15]--;
    assert_int_equal(saga_rest_form(buffer_slice(&out)), REST_FORM);
    assert_int_equal(saga_rest_form(SLICE("")), 0);
    out.ptr[0]++; /* the form of another release */
    assert_int_equal(read_now(buffer_slice(&out)), ERR_UNSUPPORTED);
    buffer_fini(&out);
}

TEST(damaged_bytes_are_refused)
{
    struct buffer out;

    call_and_rest("{'amount':1}");
    CALL(&t, "coalesce", "a", "{'amount':1}", .emission = "e-2");
    assert_true(write(&out));
    for (size_t len = 0; len < out.len; len++) {
        assert_int_equal(read_now((struct slice){out.ptr, len}), len ? ERR_CORRUPT : ERR_UNSUPPORTED);
    }
    for (size_t i = 0; i < out.len; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            out.ptr[i] ^= (char)(1u << bit);
            assert_int_equal(read_now(buffer_slice(&out)), i ? ERR_CORRUPT : ERR_UNSUPPORTED);
            out.ptr[i] ^= (char)(1u << bit);
        }
        arena_reset(&t.turn);
    }
    buffer_fini(&out);
}

TEST_PROGRAM_CLOSING(t, call_trial_close)
