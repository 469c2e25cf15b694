/*
 * Schedules. The first byte says whether the rest is a cron expression, a document or a stored state. A readable input
 * has instants that go on, and is written and read again to the same value.
 */
#include "core/schedule/schedule.h"
#include "tests/fuzz/fuzz.h"

#define HOUR_MS INT64_C(3600000)
#define BYTES_MAX (1 << 20)

static const struct zone_offset offsets[] = {
    {0, HOUR_MS}, {INT64_C(1774746000000), 2 * HOUR_MS}, {INT64_C(1792890000000), HOUR_MS}};

static void instants(const struct timetable *timetable)
{
    struct zone zone = {offsets, 3, INT64_C(1893456000000)}; /* Berlin in 2026, known until 2030 */
    int64_t ms = INT64_C(1774700000000), next_ms;

    for (int i = 0; i < 40; i++, ms = next_ms) {
        next_ms = timetable_next(timetable, &zone, ms);
        MUST(next_ms > ms);
        if (next_ms == INT64_MAX) {
            return;
        }
        MUST(timetable_next(timetable, &zone, next_ms - 1) == next_ms);
    }
}

static void cron(struct slice text)
{
    struct timetable timetable = {.is_cron = true};
    struct err err = {0};

    if (cron_parse(text, &timetable.cron, &err) == ERR_OK) {
        instants(&timetable);
    } else {
        MUST(err.message[0] && err.hint[0]);
    }
}

static void document(struct slice text, struct arena *arena)
{
    struct schedule schedule, again;
    struct buffer out, out_again;
    struct faults faults;

    faults_init(&faults, arena);
    if (!schedule_read(text, arena, &faults, &schedule)) {
        MUST(faults.count > 0);
        return;
    }
    instants(&schedule.timetable);
    buffer_init(&out, BYTES_MAX);
    buffer_init(&out_again, BYTES_MAX);
    schedule_write(&schedule, &out);
    MUST(schedule_read(buffer_slice(&out), arena, &faults, &again));
    schedule_write(&again, &out_again);
    MUST(slice_equal(buffer_slice(&out), buffer_slice(&out_again)));
    buffer_fini(&out);
    buffer_fini(&out_again);
}

static void state(struct slice text, struct arena *arena)
{
    struct schedule_state *s = arena_alloc(arena, 2 * sizeof(*s));
    struct buffer out;

    if (!schedule_state_read(text, 0, arena, s)) {
        return;
    }
    buffer_init(&out, BYTES_MAX);
    schedule_state_write(s, &out);
    MUST(schedule_state_read(buffer_slice(&out), 0, arena, s + 1));
    MUST(s[0].queue_count == s[1].queue_count && s[0].started == s[1].started && s[0].missed == s[1].missed);
    MUST(uuid_equal(&s[0].saga.uuid, &s[1].saga.uuid));
    buffer_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = fuzz_input(data, size);
    struct arena *arena = fuzz_arena();
    uint8_t kind = fuzz_byte(&text) % 3;

    if (kind == 0) {
        cron(text);
    } else if (fuzz_is_json(text)) {
        if (kind == 1) {
            document(text, arena);
        } else {
            state(text, arena);
        }
    }
    return 0;
}
