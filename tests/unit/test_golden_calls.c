/*
 * Logs of open sagas and runs as this release writes them, under tests/golden/calls: one record on each line, and at
 * the end the saga as the API shows it. The next release must still read them. REGENERATE=1 writes the files anew. Do
 * that only on purpose, and explain each changed line in the commit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/call_trial.h"
#include "tests/lib/json_holds.h"
#include "tests/lib/test.h"

#define FILE_BYTES_MAX ((size_t)1 << 20)

/* --- what happened --- */

static void open_saga(struct call_trial *t)
{
    call_trial_open(t, "{'calls':9,'micros':900}", "{'repeats':2,'max_cycle':2}", "escalate");
    CALL(t, "coalesce", "reserve", "{'amount':1}", .emission = "e-1", .turn = "1");
    CALL(t, "coalesce", "reserve", "{'amount':1}", .emission = "e-2", .turn = "1");
    call_trial_settle(t, "reserve", OUTCOME_COMPLETED, NULL);
    CALL(t, "coalesce", "reserve", "{'amount':2}", .turn = "2");
    CALL(t, "look", NULL, "{'id':7}");
    call_trial_settle(t, "~look", OUTCOME_COMPLETED, NULL);
    CALL(t, "look", NULL, "{'id':7}", .turn = "3");
    call_trial_settle(t, "~look", OUTCOME_COMPLETED, "{\"state\": \"other\"}");
    CALL(t, "paid", "charge", .scope = "order-7");
    call_trial_settle(t, "charge", OUTCOME_FAILED, NULL);
    CALL(t, "paid", "charge", .scope = "order-7", .turn = "4");
    call_trial_settle(t, "charge", OUTCOME_COMPLETED, NULL);
    CALL(t, "limited", "limit");
    call_trial_admit(t, "limit", ADMISSION_REFUSED);
    CALL(t, "limited", "limit", .turn = "5");
    call_trial_admit(t, "limit", ADMISSION_UNASKED);
    t->now_ms += 60000;
    call_trial_admit(t, "limit", ADMISSION_DONE);
    CALL(t, "checked", "ship");
    call_trial_timer(t, "ship");
    call_trial_settle(t, "ship", OUTCOME_UNKNOWN, NULL);
    t->now_ms += 60000;
    call_trial_probe(t, "ship", OUTCOME_COMPLETED);
    assert_int_equal(call_trial_abort(t), ERR_OK);
    call_trial_settle_undo(t, "ship");
    call_trial_settle_undo(t, "charge");
    call_trial_settle_undo(t, "reserve");
    assert_int_equal(t->saga.end, SAGA_COMPENSATED);
    CALL(t, "coalesce", "reserve", "{'amount':1}", .turn = "6");
}

static void run(struct call_trial *t)
{
    call_trial_run(t);
    CALL(t, "strict", "a", "{'n':1}", .emission = "e-1");
    call_trial_settle(t, "a", OUTCOME_COMPLETED, NULL);
    assert_int_equal(call_trial_bypass(t, "a"), ERR_OK);
    CALL(t, "strict", "a", "{'n':1}");
    call_trial_settle(t, "a~2", OUTCOME_COMPLETED, NULL);
    CALL(t, "strict", "a", "{'n':1}");
    for (int i = 0; i < 20 && !t->saga.paused.ptr; i++) {
        CALL(t, "strict", "a", "{'n':1}", .turn = i == 5 ? "2" : NULL);
    }
    assert_true(t->saga.paused.ptr != NULL);
    assert_int_equal(call_trial_resume(t), ERR_OK);
    t->now_ms += 60000;
    call_trial_due(t, SAGA_TIMER_REST);
    t->now_ms += INT64_C(25) * 3600 * 1000;
    CALL(t, "strict", "a", "{'n':1}", .turn = "9");
}

/* --- files --- */

static struct slice read_file(const char *path, struct arena *arena)
{
    char *text = arena_alloc(arena, FILE_BYTES_MAX);
    FILE *file = fopen(path, "rb");
    size_t len;

    if (!file) {
        fail_msg("%s cannot be read; REGENERATE=1 writes it", path);
    }
    len = fread(text, 1, FILE_BYTES_MAX, file);
    assert_true(len < FILE_BYTES_MAX);
    (void)fclose(file);
    return (struct slice){text, len};
}

static void write_file(const char *path, struct slice text)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(text.ptr, 1, text.len, file), text.len);
    assert_int_equal(fclose(file), 0);
}

/* Folds a log, whoever wrote it, and shows the saga. */
static void fold(struct saga *saga, struct slice log, struct slice *shown)
{
    struct arena scratch;

    arena_init(&scratch, 16384);
    while (log.len > 0) {
        const char *end = memchr(log.ptr, '\n', log.len);
        struct slice line = {log.ptr, end ? (size_t)(end - log.ptr) : log.len};
        struct record record;
        struct err err;

        if (slice_starts_with(line, "{\"id\":")) {
            *shown = line;
        } else if (record_read(line, saga->definition, &scratch, &record, &err) != ERR_OK ||
                   !record_check(saga, &record, &err)) {
            fail_msg("%s\n%.*s", err.message, SLICE_ARG(line));
        } else {
            saga_apply(saga, &record);
        }
        log.ptr += line.len + 1;
        log.len -= end ? line.len + 1 : line.len;
    }
    arena_fini(&scratch);
}

/* Compares the records byte by byte. The view behind them may have new members. */
static bool is_as_it_was(struct slice is, struct slice should, size_t log_bytes)
{
    return should.len > log_bytes && memcmp(is.ptr, should.ptr, log_bytes) == 0 &&
           json_holds((struct slice){is.ptr + log_bytes, is.len - log_bytes},
                      (struct slice){should.ptr + log_bytes, should.len - log_bytes});
}

static void check(const char *name, enum saga_kind kind, void (*happen)(struct call_trial *t))
{
    struct call_trial t;
    struct buffer out;
    struct saga saga;
    struct arena arena;
    struct slice file, shown = SLICE_NONE;
    char path[512];

    arena_init(&arena, 16384);
    (void)snprintf(path, sizeof(path), "%s/calls/%s.jsonl", getenv("GOLDEN_DIR"), name);
    happen(&t);
    buffer_init(&out, FILE_BYTES_MAX);
    buffer_put(&out, t.log.ptr, t.log.len);
    saga_write_json(&t.saga, &out);
    buffer_put_char(&out, '\n');
    if (getenv("REGENERATE")) {
        write_file(path, buffer_slice(&out));
    }
    file = read_file(path, &arena);
    if (!is_as_it_was(buffer_slice(&out), file, t.log.len)) {
        fail_msg("%s: this release writes\n%s", path, buffer_c(&out));
    }
    saga_init(&saga, &arena, t.saga.id, definition_open(kind, &t.shelf, &arena));
    fold(&saga, file, &shown);
    buffer_fini(&out);
    buffer_init(&out, FILE_BYTES_MAX);
    saga_write_json(&saga, &out);
    assert_true(json_holds(buffer_slice(&out), shown));
    buffer_fini(&out);
    call_trial_close(&t);
    arena_fini(&arena);
}

static struct call_trial t;

TEST(an_open_saga_is_written_and_read_as_ever)
{
    check("open_saga", SAGA_OPEN, open_saga);
}

TEST(a_run_is_written_and_read_as_ever)
{
    check("run", SAGA_RUN, run);
}

TEST_PROGRAM_CLOSING(t, call_trial_close)
