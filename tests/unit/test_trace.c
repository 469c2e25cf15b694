/* A saga as a trace: which spans and events its log gives, and how they are written. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "core/show/trace.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

#define PARK_MS 2000
#define PARENT "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static struct trial trial;
static const struct trace_sampler all = {.asks_parent = true, .below = TRACE_SAMPLE_ALL};

/* Folds the log of the trial anew, as the exporter does. From record `taken_from` on another engine has the saga. */
static struct trace traced(struct saga *saga, uint64_t taken_from)
{
    struct trace trace = trace_new(&trial.arena, PARK_MS);
    struct slice lines[256];
    size_t count = slice_split(buffer_slice(&trial.log), '\n', lines, COUNT_OF(lines));

    saga_init(saga, &trial.arena, trial.saga.id, trial.definition);
    for (size_t i = 0; i < count; i++) {
        struct record record;
        struct err err = {0};

        if (slice_trim(lines[i]).len > 0) {
            assert_int_equal(record_read(lines[i], saga->definition, &trial.arena, &record, &err), ERR_OK);
            saga_apply(saga, &record);
            trace_add(&trace, saga, &record, taken_from && record.seq >= taken_from ? 8 : 7);
        }
    }
    return trace;
}

/* "keyed a do 1 completed +0..100; ..." and "+100 step.waiting b; ...": times count from the start. */
static const char *attempts_of(const struct trace *trace, const struct saga *saga)
{
    struct buffer out;

    buffer_init(&out, 4096);
    for (uint32_t i = 0; i < trace->attempt_count; i++) {
        const struct trace_attempt *a = &trace->attempts[i];

        buffer_printf(&out, "%s%.*s %.*s %s %u %s +%lld..%lld", i ? "; " : "", SLICE_ARG(a->tool),
                      SLICE_ARG(a->step_id), direction_name(a->direction), a->number, a->outcome,
                      (long long)(a->began_ms - saga->created_ms),
                      (long long)(a->ended_ms ? a->ended_ms - saga->created_ms : -1));
    }
    const char *text = arena_text(&trial.arena, buffer_slice(&out));

    buffer_fini(&out);
    return text;
}

static const char *events_of(const struct trace *trace, const struct saga *saga)
{
    struct buffer out;

    buffer_init(&out, 4096);
    for (uint32_t i = 0; i < trace->event_count; i++) {
        const struct trace_event *e = &trace->events[i];

        buffer_printf(&out, "%s+%lld %s", i ? "; " : "", (long long)(e->at_ms - saga->created_ms), e->name);
        if (e->step.len) {
            buffer_printf(&out, " %.*s", SLICE_ARG(e->step));
        }
        if (e->reason.len) {
            buffer_printf(&out, " %.*s", SLICE_ARG(e->reason));
        }
        if (e->number) {
            buffer_printf(&out, " %lld", (long long)e->number);
        }
    }
    const char *text = arena_text(&trial.arena, buffer_slice(&out));

    buffer_fini(&out);
    return text;
}

static void completes(void)
{
    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'}"), "{}");
    trial.now_ms += 100;
    trial_play(&trial, "a");
}

static void retries(void)
{
    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'idempotent','retry':{'max_attempts':3,'initial':'1s'}}"), "{}");
    trial_play(&trial, "a retry, timer a, a");
}

static void is_undone(void)
{
    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'b','call':'keyed'}"), "{}");
    trial_play(&trial, "a, b failed");
    trial.now_ms += 10;
    trial_play(&trial, "undo a");
}

static void sleeps(void)
{
    trial_begin(&trial, TRIAL_SAGA("{'id':'nap','sleep':'1h'},{'id':'a','call':'keyed'}"), "{}");
    trial_play(&trial, "timer nap, a");
}

static void is_asked_about(void)
{
    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'once'}"), "{}");
    trial_play(&trial, "timer a, a unknown");
    assert_int_equal(trial_resolve(&trial, true, "{'id':'a-1'}"), ERR_OK);
}

static const struct {
    const char *name;
    void (*play)(void);
    uint64_t taken_from;
    const char *attempts, *events;
} cases[] = {
    {"one call", completes, 0, "keyed a do 1 completed +0..100", ""},
    {"another engine takes it over", completes, 3, "keyed a do 1 completed +0..100", "+100 saga.taken_over 8"},
    {"a retry is a span of its own", retries, 0, "idempotent a do 1 retrying +0..0; idempotent a do 2 completed", NULL},
    {"an undo", is_undone, 0, "keyed a do 1 completed +0..0; keyed b do 1 failed +0..0; undo a undo 1 completed +0..10",
     "+0 saga.failing b step-failed; +0 compensation.planned"},
    {"a saga that sleeps leaves memory", sleeps, 0, "keyed a do 1 completed +3600000..3600000",
     "+0 step.waiting nap; +0 saga.parked 3600000; +3600000 step.completed nap"},
    {"a person says what happened", is_asked_about, 0, "once a do 1 unknown", NULL},
};

TEST(the_spans_of_a_saga_are_those_of_its_log)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct saga saga;

        cases[i].play();
        assert_int_equal(trial.saga.phase, PHASE_ENDED);
        struct trace trace = traced(&saga, cases[i].taken_from);
        const char *attempts = attempts_of(&trace, &saga), *events = events_of(&trace, &saga);

        if (strncmp(attempts, cases[i].attempts, strlen(cases[i].attempts)) != 0 ||
            (cases[i].events && strcmp(events, cases[i].events) != 0)) {
            fail_msg("%s:\n found %s\n       %s", cases[i].name, attempts, events);
        }
        assert_int_equal(trace.attempts_open, 0);
        trial_close_sound(&trial);
    }
}

static struct slice written(const struct trace *trace, const struct saga *saga)
{
    struct json_writer w;
    struct buffer out;
    struct err err = {0};

    buffer_init(&out, (size_t)1 << 20);
    json_writer_init(&w, &out);
    json_array_begin(&w, NULL);
    trace_write(trace, saga, &w);
    json_array_end(&w);
    struct slice text = arena_slice(&trial.arena, buffer_slice(&out));

    buffer_fini(&out);
    assert_int_equal(json_check(text, &json_limits_default, &err), ERR_OK);
    return text;
}

static struct slice text_of(struct slice span, const char *name)
{
    return json_string(json_member(span, name), &trial.arena);
}

TEST(ids_of_spans_are_hexadecimal_and_the_same_each_time)
{
    struct saga saga, again;
    char parent[TRACE_PARENT_BYTES];

    completes();
    struct trace trace = traced(&saga, 0), other = traced(&again, 0);
    struct slice spans = written(&trace, &saga), of_saga = json_element(spans, 0), attempt = json_element(spans, 1);

    assert_true(slice_equal(spans, written(&other, &again)));
    assert_int_equal(json_count(spans), 2);
    assert_int_equal(text_of(of_saga, "traceId").len, 32);
    assert_int_equal(text_of(of_saga, "spanId").len, 16);
    assert_false(json_member(of_saga, "parentSpanId").ptr);
    assert_true(slice_equal(text_of(attempt, "traceId"), text_of(of_saga, "traceId")));
    assert_true(slice_equal(text_of(attempt, "parentSpanId"), text_of(of_saga, "spanId")));
    assert_false(slice_equal(text_of(attempt, "spanId"), text_of(of_saga, "spanId")));
    assert_true(slice_is(text_of(of_saga, "startTimeUnixNano"), "1700000000000000000"));
    assert_true(slice_is(text_of(of_saga, "endTimeUnixNano"), "1700000000100000000"));
    /* The receiver was told the span before there was one. */
    struct slice told = trace_parent(&saga, &trace.attempts[0].key, 1, &all, parent);
    struct slice is = arena_printf(&trial.arena, "00-%.*s-%.*s-01", SLICE_ARG(text_of(attempt, "traceId")),
                                   SLICE_ARG(text_of(attempt, "spanId")));

    assert_true(slice_equal(told, is));
    trial_close(&trial);
}

TEST(an_undo_links_to_what_it_undoes_and_says_what_it_is)
{
    struct saga saga;

    is_undone();
    struct trace trace = traced(&saga, 0);
    struct slice spans = written(&trace, &saga), done = json_element(spans, 1), undo = json_element(spans, 3);
    struct slice link = json_element(json_member(undo, "links"), 0);

    assert_true(slice_equal(text_of(link, "spanId"), text_of(done, "spanId")));
    assert_true(slice_equal(text_of(link, "traceId"), text_of(done, "traceId")));
    assert_false(json_member(done, "links").ptr);
    assert_true(slice_is(text_of(undo, "name"), "undo"));
    assert_false(json_member(undo, "status").ptr);
    assert_true(slice_is(json_member(json_member(json_element(spans, 2), "status"), "code"), "2"));
    assert_true(slice_is(json_member(json_member(json_element(spans, 0), "status"), "code"), "2"));
    trial_close(&trial);
}

/* Plays a saga that was started with a `traceparent` and a `tracestate`. */
static struct trace traced_under(const char *parent, struct slice state, struct saga *saga)
{
    trial_open(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'}"));
    assert_int_equal(
        trial_input(&trial, (struct saga_input){.type = SAGA_INPUT_START,
                                                .start = {.input = SLICE("{}"), .trace = {slice_of(parent), state}}}),
        ERR_OK);
    trial_play(&trial, "a");
    return traced(saga, 0);
}

TEST(a_saga_goes_on_with_the_trace_of_whoever_started_it)
{
    static const struct {
        const char *parent;
        bool is_wanted;
    } flags[] = {{PARENT, true}, {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", false}};

    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        struct saga saga;
        char parent[TRACE_PARENT_BYTES];

        struct trace trace = traced_under(flags[i].parent, SLICE("a=b"), &saga);
        struct slice of_saga = json_element(written(&trace, &saga), 0);

        assert_true(slice_is(text_of(of_saga, "traceId"), "4bf92f3577b34da6a3ce929d0e0e4736"));
        assert_true(slice_is(text_of(of_saga, "parentSpanId"), "00f067aa0ba902b7"));
        assert_true(slice_is(text_of(of_saga, "traceState"), "a=b"));
        assert_int_equal(trace_is_wanted(&saga, &all), flags[i].is_wanted);
        struct slice told = trace_parent(&saga, NULL, 0, &all, parent);

        assert_int_equal(told.ptr[told.len - 1], flags[i].is_wanted ? '1' : '0');
        trial_close_sound(&trial);
    }
}

/* The last 64 bits of the trace id of PARENT are a3ce929d0e0e4736: of 2^64 they are 0.6399. */
TEST(a_sampler_records_a_part_of_the_traces_and_the_receiver_is_told)
{
    static const struct {
        const char *name;
        const char *parent;
        struct trace_sampler sampler;
        bool is_wanted;
    } samplers[] = {
        {"none", PARENT, {false, 0}, false},
        {"a ratio below", PARENT, {false, (uint64_t)(0.63 * (double)TRACE_SAMPLE_ALL)}, false},
        {"a ratio above", PARENT, {false, (uint64_t)(0.65 * (double)TRACE_SAMPLE_ALL)}, true},
        {"the parent, although the ratio is below", PARENT, {true, (uint64_t)(0.63 * (double)TRACE_SAMPLE_ALL)}, true},
        {"the parent, although there is none of them", PARENT, {true, 0}, true},
        {"all, although the parent is not recorded",
         "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
         {false, TRACE_SAMPLE_ALL},
         true},
    };

    for (size_t i = 0; i < COUNT_OF(samplers); i++) {
        struct saga saga;
        char parent[TRACE_PARENT_BYTES];

        (void)traced_under(samplers[i].parent, SLICE_NONE, &saga);
        struct slice told = trace_parent(&saga, NULL, 0, &samplers[i].sampler, parent);

        if (trace_is_wanted(&saga, &samplers[i].sampler) != samplers[i].is_wanted ||
            told.ptr[told.len - 1] != (samplers[i].is_wanted ? '1' : '0')) {
            fail_msg("%s: %s", samplers[i].name, parent);
        }
        trial_close_sound(&trial);
    }
}

TEST(a_ratio_records_about_so_many_sagas_of_their_own_traces)
{
    const struct trace_sampler tenth = {true, TRACE_SAMPLE_ALL / 10};
    struct saga saga;
    int recorded = 0;

    completes();
    (void)traced(&saga, 0);
    for (uint32_t i = 0; i < 10000; i++) {
        memcpy(saga.id.uuid.bytes, &i, sizeof(i));
        recorded += trace_is_wanted(&saga, &tenth);
    }
    assert_in_range(recorded, 900, 1100);
    trial_close_sound(&trial);
}

TEST(spans_and_events_have_a_bound_and_what_is_beyond_is_counted)
{
    struct saga saga;

    completes();
    struct trace trace = traced(&saga, 0);
    struct record intent = {.type = RECORD_STEP_INTENT, .step = 0, .attempt = 2, .at_ms = trial.now_ms};
    struct record waiting = {.type = RECORD_STEP_WAITING, .step = 0, .at_ms = trial.now_ms};

    for (uint32_t i = 0; i < TRACE_ATTEMPTS_MAX + 10; i++) {
        trace_add(&trace, &saga, &intent, 7);
        trace_add(&trace, &saga, &waiting, 7);
    }
    assert_int_equal(trace.attempt_count, TRACE_ATTEMPTS_MAX);
    assert_int_equal(trace.attempts_dropped, 11);
    assert_int_equal(trace.event_count, TRACE_EVENTS_MAX);
    assert_int_equal(trace.events_dropped, TRACE_ATTEMPTS_MAX + 10 - TRACE_EVENTS_MAX);
    assert_true(json_count(written(&trace, &saga)) == TRACE_ATTEMPTS_MAX + 1);
    trial_close(&trial);
}

TEST_PROGRAM(NULL, NULL)
