/* Schedules: cron expressions, local times across changes of the clocks, and what becomes of an instant. */
#include <stdlib.h>
#include <string.h>

#include "base/instant.h"
#include "core/schedule/schedule.h"
#include "tests/lib/test.h"

#define HOUR_MS INT64_C(3600000)

static int64_t at(const char *text)
{
    int64_t ms;

    assert_true(instant_parse(slice_of(text), &ms));
    return ms;
}

/* --- zones, as PostgreSQL tells of them --- */

enum zone_name { UTC, BERLIN, LORD_HOWE, APIA, ZONE_COUNT };

static const struct {
    const char *from;
    int64_t offset_ms;
} changes[ZONE_COUNT][3] = {
    [UTC] = {{"1970-01-01T00:00:00Z", 0}},
    [BERLIN] = {{"1970-01-01T00:00:00Z", HOUR_MS},
                {"2026-03-29T01:00:00Z", 2 * HOUR_MS},
                {"2026-10-25T01:00:00Z", HOUR_MS}},
    [LORD_HOWE] = {{"1970-01-01T00:00:00Z", 11 * HOUR_MS},
                   {"2026-04-04T15:00:00Z", 21 * HOUR_MS / 2}, /* at 02:00 back to 01:30 */
                   {"2026-10-03T15:30:00Z", 11 * HOUR_MS}},    /* at 02:00 on to 02:30 */
    [APIA] = {{"1970-01-01T00:00:00Z", -10 * HOUR_MS},
              {"2011-12-30T10:00:00Z", 14 * HOUR_MS}}, /* without a 30th of December */
};

static struct zone zone_of(enum zone_name name, struct zone_offset offsets[3])
{
    size_t count = 0;

    for (; count < 3 && changes[name][count].from; count++) {
        offsets[count] = (struct zone_offset){at(changes[name][count].from), changes[name][count].offset_ms};
    }
    return (struct zone){offsets, count, at("2036-01-01T00:00:00Z")};
}

TEST(the_instants_of_a_cron_expression)
{
    static const struct {
        const char *what, *cron;
        enum zone_name zone;
        const char *after, *instants[5];
    } cases[] = {
        {"each quarter of an hour",
         "*/15 * * * *",
         UTC,
         "2026-11-25T10:07:00Z",
         {"2026-11-25T10:15:00Z", "2026-11-25T10:30:00Z", "2026-11-25T10:45:00Z", "2026-11-25T11:00:00Z"}},
        {"an instant itself is not after itself", "0 0 * * *", UTC, "2026-11-25T00:00:00Z", {"2026-11-26T00:00:00Z"}},
        {"a millisecond before it", "0 0 * * *", UTC, "2026-11-24T23:59:59.999Z", {"2026-11-25T00:00:00Z"}},
        {"working days, by name",
         "30 9 * * MON-fri",
         UTC,
         "2026-11-27T12:00:00Z",
         {"2026-11-30T09:30:00Z", "2026-12-01T09:30:00Z"}},
        {"Sunday is 0 and 7, and ends a range", "0 0 * * 7", UTC, "2026-11-25T00:00:00Z", {"2026-11-29T00:00:00Z"}},
        {"Friday to Sunday",
         "0 0 * * FRI-SUN",
         UTC,
         "2026-11-25T00:00:00Z",
         {"2026-11-27T00:00:00Z", "2026-11-28T00:00:00Z", "2026-11-29T00:00:00Z", "2026-12-04T00:00:00Z"}},
        {"both days are restricted: either will do",
         "0 0 13 * FRI",
         UTC,
         "2026-11-10T00:00:00Z",
         {"2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z", "2026-11-27T00:00:00Z", "2026-12-04T00:00:00Z",
          "2026-12-11T00:00:00Z"}},
        {"a field that begins with * restricts beside the other",
         "0 0 */2 * MON",
         UTC,
         "2026-11-01T00:00:00Z",
         {"2026-11-09T00:00:00Z", "2026-11-23T00:00:00Z", "2026-12-07T00:00:00Z"}},
        {"a range with a step, and a list",
         "10-40/15,55 3 1 jan,JUL *",
         UTC,
         "2026-11-25T00:00:00Z",
         {"2027-01-01T03:10:00Z", "2027-01-01T03:25:00Z", "2027-01-01T03:40:00Z", "2027-01-01T03:55:00Z",
          "2027-07-01T03:10:00Z"}},
        {"29th of February",
         "0 12 29 2 *",
         UTC,
         "2026-11-25T00:00:00Z",
         {"2028-02-29T12:00:00Z", "2032-02-29T12:00:00Z"}},
        {"Berlin in winter and in summer",
         "0 8 * * *",
         BERLIN,
         "2026-03-27T12:00:00Z",
         {"2026-03-28T07:00:00Z", "2026-03-29T06:00:00Z", "2026-03-30T06:00:00Z"}},
        {"Berlin: 02:30 does not exist, 03:00 is next",
         "30 2 * * *",
         BERLIN,
         "2026-03-28T12:00:00Z",
         {"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
        {"Berlin: all that does not exist is one instant",
         "*/20 1-3 * * *",
         BERLIN,
         "2026-03-29T00:30:00Z",
         {"2026-03-29T00:40:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:20:00Z", "2026-03-29T01:40:00Z",
          "2026-03-29T23:00:00Z"}},
        {"Berlin: 02:30 comes twice, the first counts",
         "30 2 * * *",
         BERLIN,
         "2026-10-24T12:00:00Z",
         {"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
        {"Berlin: asked between the two, the day is over",
         "30 2 * * *",
         BERLIN,
         "2026-10-25T00:45:00Z",
         {"2026-10-26T01:30:00Z"}},
        {"Berlin: asked after the second began",
         "30 2 * * *",
         BERLIN,
         "2026-10-25T01:10:00Z",
         {"2026-10-26T01:30:00Z"}},
        {"Berlin: each half hour, the hour that comes twice once",
         "*/30 * * * *",
         BERLIN,
         "2026-10-24T23:50:00Z",
         {"2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z", "2026-10-25T02:30:00Z"}},
        {"Lord Howe: 02:15 does not exist, 02:30 is next",
         "15 2 * * *",
         LORD_HOWE,
         "2026-10-03T00:00:00Z",
         {"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
        {"Lord Howe: 01:45 comes twice within half an hour",
         "45 1 * * *",
         LORD_HOWE,
         "2026-04-04T00:00:00Z",
         {"2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"}},
        {"Lord Howe: each quarter of an hour, once",
         "*/15 1,2 * * *",
         LORD_HOWE,
         "2026-04-04T14:29:00Z",
         {"2026-04-04T14:30:00Z", "2026-04-04T14:45:00Z", "2026-04-04T15:30:00Z", "2026-04-04T15:45:00Z"}},
        {"Apia: a day that does not exist is the next midnight",
         "0 9 * * *",
         APIA,
         "2011-12-29T12:00:00Z",
         {"2011-12-29T19:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T19:00:00Z"}},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct zone_offset offsets[3];
        struct zone zone = zone_of(cases[i].zone, offsets);
        struct timetable timetable = {.is_cron = true};
        int64_t ms = at(cases[i].after);

        assert_int_equal(cron_parse(slice_of(cases[i].cron), &timetable.cron, NULL), ERR_OK);
        for (size_t n = 0; n < 5 && cases[i].instants[n]; n++) {
            ms = timetable_next(&timetable, &zone, ms);
            if (ms != at(cases[i].instants[n])) {
                char text[INSTANT_TEXT_BYTES];

                instant_text(ms, text);
                fail_msg("%s: %s instead of %s", cases[i].what, text, cases[i].instants[n]);
            }
        }
    }
}

TEST(an_expression_that_nobody_can_read_is_refused)
{
    static const char *const wrong[] = {
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 8",
        "5-1 * * * *",
        "1- * * * *",
        "*/0 * * * *",
        "5/10 * * * *",
        "a * * * *",
        "* * * JUX *",
        "*, * * * *",
        ", * * * *",
        "-1 * * * *",
        "1-5-9 * * * *",
        "** * * * *",
        "0 0 30 2 *",
        "0 0 31 4,6 *",
        "0 0 * * MON-",
        "1 2 3 4 5;",
        "* * 5-0 * *",
        "* 9999999999 * * *",
    };

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct err err = {0};
        struct cron cron;

        if (cron_parse(slice_of(wrong[i]), &cron, &err) == ERR_OK) {
            fail_msg("`%s` was taken", wrong[i]);
        }
        assert_true(err.message[0] && err.hint[0]);
    }
}

/* In every zone the instants go on, and the clocks show a matching time unless that time was skipped. */
TEST(an_instant_comes_once_and_in_order)
{
    for (enum zone_name name = UTC; name < ZONE_COUNT; name++) {
        struct zone_offset offsets[3];
        struct zone zone = zone_of(name, offsets);
        struct timetable timetable = {.is_cron = true};
        int64_t ms = at(name == APIA ? "2011-12-01T00:00:00Z" : "2026-01-01T00:00:00Z"),
                end_ms = ms + 366 * 24 * HOUR_MS;
        int64_t locals[2] = {0, 0};

        assert_int_equal(cron_parse(SLICE("*/15 * * * *"), &timetable.cron, NULL), ERR_OK);
        while (ms < end_ms) {
            int64_t next_ms = timetable_next(&timetable, &zone, ms), offset_ms = 0;

            assert_true(next_ms > ms);
            /* A question at any earlier time gets the same instant. */
            assert_int_equal(timetable_next(&timetable, &zone, next_ms - 1), next_ms);
            for (size_t i = 0; i < zone.count && (i == 0 || zone.offsets[i].from_ms <= next_ms); i++) {
                offset_ms = zone.offsets[i].offset_ms;
            }
            locals[1] = next_ms + offset_ms;
            assert_true(locals[1] > locals[0]);
            assert_int_equal(locals[1] % (HOUR_MS / 4), 0);
            locals[0] = locals[1];
            ms = next_ms;
        }
    }
}

TEST(beyond_what_is_known_of_a_zone_there_is_nothing)
{
    struct zone_offset offset = {0, 0};
    struct zone zone = {&offset, 1, at("2026-01-02T00:00:00Z")};
    struct timetable timetable = {.is_cron = true};

    assert_int_equal(cron_parse(SLICE("0 0 * * *"), &timetable.cron, NULL), ERR_OK);
    assert_int_equal(timetable_next(&timetable, &zone, at("2026-01-01T00:00:00Z")), INT64_MAX);
    assert_int_equal(timetable_next(&timetable, &zone, at("2025-12-31T00:00:00Z")), at("2026-01-01T00:00:00Z"));
}

TEST(offsets_are_read_as_postgres_tells_them)
{
    static const char *const wrong[] = {
        "", "0", "0:x", "0:0 ", "a:0", "0:3600 1:999999", "-5:0", "99999999999999999:0"};
    struct arena arena;
    struct zone zone;

    arena_init(&arena, 65536);
    assert_true(zone_read_offsets(SLICE("0:3600 1774746000:7200 1792890000:3600"), 5, &arena, &zone));
    assert_true(zone.count == 3 && zone.until_ms == 5 && zone.offsets[1].offset_ms == 2 * HOUR_MS);
    assert_int_equal(zone.offsets[1].from_ms, at("2026-03-29T01:00:00Z"));
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_false(zone_read_offsets(slice_of(wrong[i]), 5, &arena, &zone));
    }
    arena_fini(&arena);
}

TEST(every_so_often_from_an_anchor)
{
    struct timetable timetable = {.every_ms = 15 * 60000, .anchor_ms = at("2026-01-01T00:05:00Z")};

    assert_int_equal(timetable_next(&timetable, NULL, at("2026-01-01T00:04:59Z")), at("2026-01-01T00:05:00Z"));
    assert_int_equal(timetable_next(&timetable, NULL, at("2026-01-01T00:05:00Z")), at("2026-01-01T00:20:00Z"));
    assert_int_equal(timetable_next(&timetable, NULL, at("2025-12-31T23:49:59Z")), at("2025-12-31T23:50:00Z"));
    assert_int_equal(timetable_next(&timetable, NULL, at("2025-12-31T23:50:00Z")), at("2026-01-01T00:05:00Z"));
}

/* --- documents --- */

TEST(a_written_schedule_is_read_again)
{
    static const char *const bodies[] = {
        "{\"name\":\"nightly\",\"saga\":\"report\",\"cron\":\"30 2 * * *\",\"zone\":\"Europe/Berlin\"}",
        "{\"name\":\"a.b-c_1\",\"saga\":\"s\",\"every\":\"15m\",\"input\":{\"x\":[1,2]},\"overlap\":\"queue\",\"catch_"
        "up\":\"all\"}",
        "{\"name\":\"n\",\"saga\":\"s\",\"every\":\"1s\",\"anchor\":\"2026-01-01T00:00:00+01:00\",\"overlap\":\"all\","
        "\"catch_up\":\"last\"}",
    };

    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        struct arena arena;
        struct faults faults;
        struct schedule schedule, again;
        struct buffer text, text_again;

        arena_init(&arena, 4096);
        faults_init(&faults, &arena);
        buffer_init(&text, 4096);
        buffer_init(&text_again, 4096);
        assert_true(schedule_read(slice_of(bodies[i]), &arena, &faults, &schedule));
        schedule_write(&schedule, &text);
        assert_true(schedule_read(buffer_slice(&text), &arena, &faults, &again));
        schedule_write(&again, &text_again);
        assert_true(slice_equal(buffer_slice(&text), buffer_slice(&text_again)));
        assert_true(again.timetable.every_ms == schedule.timetable.every_ms && again.overlap == schedule.overlap &&
                    again.catch_up == schedule.catch_up && again.timetable.anchor_ms == schedule.timetable.anchor_ms);
        buffer_fini(&text);
        buffer_fini(&text_again);
        arena_fini(&arena);
    }
}

TEST(a_wrong_document_is_told_its_place)
{
    static const struct {
        const char *body, *pointer;
    } cases[] = {
        {"[]", ""},
        {"{\"saga\":\"s\",\"every\":\"1m\"}", "/name"},
        {"{\"name\":\"A\",\"saga\":\"s\",\"every\":\"1m\"}", "/name"},
        {"{\"name\":\"n\",\"every\":\"1m\"}", "/saga"},
        {"{\"name\":\"n\",\"saga\":\"s\"}", ""},
        {"{\"name\":\"n\",\"saga\":\"s\",\"every\":\"1m\",\"cron\":\"* * * * *\"}", "/every"},
        {"{\"name\":\"n\",\"saga\":\"s\",\"every\":\"10ms\"}", "/every"},
        {"{\"name\":\"n\",\"saga\":\"s\",\"every\":5}", "/every"},
        {"{\"name\":\"n\",\"saga\":\"s\",\"cron\":5}", "/cron"},
        {"{\"name\":\"n\",\"saga\":\"s\",\"cron\":\"* *\"}", "/cron"},
        {"{\"name\":\"n\",\"saga\":\"s\",\"every\":\"1m\",\"zone\":\"UTC\"}", "/zone"},
        {"{\"name\":\"n\",\"saga\":\"s\",\"cron\":\"* * * * *\",\"zone\":\"Europe/Berlin'\"}", "/zone"},
        {"{\"name\":\"n\",\"saga\":\"s\",\"cron\":\"* * * * *\",\"anchor\":\"2026-01-01T00:00:00Z\"}", "/anchor"},
        {"{\"name\":\"n\",\"saga\":\"s\",\"every\":\"1m\",\"anchor\":\"today\"}", "/anchor"},
        {"{\"name\":\"n\",\"saga\":\"s\",\"every\":\"1m\",\"overlap\":\"never\"}", "/overlap"},
        {"{\"name\":\"n\",\"saga\":\"s\",\"every\":\"1m\",\"catch_up\":\"some\"}", "/catch_up"},
        {"{\"name\":\"n\",\"saga\":\"s\",\"every\":\"1m\",\"zones\":\"UTC\"}", "/zones"},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena;
        struct faults faults;
        struct schedule schedule;

        arena_init(&arena, 4096);
        faults_init(&faults, &arena);
        if (schedule_read(slice_of(cases[i].body), &arena, &faults, &schedule) || faults.count != 1 ||
            !slice_is(faults.items[0].pointer, cases[i].pointer)) {
            fail_msg("%s: %zu faults, the first at %.*s", cases[i].body, faults.count,
                     faults.count ? (int)faults.items[0].pointer.len : 0,
                     faults.count ? faults.items[0].pointer.ptr : "");
        }
        arena_fini(&arena);
    }
}

/* --- deciding --- */

#define MINUTE_MS INT64_C(60000)

TEST(what_becomes_of_instants)
{
    static const struct {
        const char *what;
        enum overlap overlap;
        enum catch_up catch_up;
        bool runs;
        int before;  /* minutes that are already in the queue */
        int minutes; /* minutes since the last instant; an instant comes each minute, and two minutes late is on time */
        int64_t queued, skipped, missed;
        int first, last; /* minutes of the queue */
    } cases[] = {
        {"nothing is due", OVERLAP_ALL, CATCH_UP_ALL, false, 0, 0, 0, 0, 0, 0, 0},
        {"one on time", OVERLAP_SKIP, CATCH_UP_NONE, false, 0, 1, 1, 0, 0, 1, 1},
        {"one on time while the one before runs", OVERLAP_SKIP, CATCH_UP_NONE, true, 0, 1, 0, 1, 0, 0, 0},
        {"it waits in line", OVERLAP_QUEUE, CATCH_UP_NONE, true, 0, 1, 1, 0, 0, 1, 1},
        {"it does not care", OVERLAP_ALL, CATCH_UP_NONE, true, 0, 1, 1, 0, 0, 1, 1},
        {"skip: the first of two is in the way of the second", OVERLAP_SKIP, CATCH_UP_NONE, false, 0, 2, 1, 1, 0, 1, 1},
        {"what was missed stays missed", OVERLAP_ALL, CATCH_UP_NONE, false, 0, 10, 3, 0, 7, 8, 10},
        {"the last of what was missed", OVERLAP_ALL, CATCH_UP_LAST, false, 0, 10, 4, 0, 6, 7, 10},
        {"all of it", OVERLAP_ALL, CATCH_UP_ALL, false, 0, 10, 10, 0, 0, 1, 10},
        {"at most a thousand", OVERLAP_ALL, CATCH_UP_ALL, false, 0, 5000, 1000, 0, 4000, 4001, 5000},
        {"at most a thousand with those that wait", OVERLAP_QUEUE, CATCH_UP_ALL, true, 5, 1000, 1000, 0, 5, 1, 1000},
        {"skip: what is caught up goes first", OVERLAP_SKIP, CATCH_UP_ALL, false, 0, 10, 7, 3, 0, 1, 7},
        {"longer ago than anybody looks", OVERLAP_ALL, CATCH_UP_NONE, false, 0, 2000000, 3, 0, 1999997, 1999998,
         2000000},
    };
    struct schedule_state *s = calloc(1, sizeof(*s));

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t start_ms = at("2026-01-01T00:00:00Z");
        struct schedule schedule = {
            .timetable = {.every_ms = MINUTE_MS}, .overlap = cases[i].overlap, .catch_up = cases[i].catch_up};

        *s = (struct schedule_state){.last_ms = start_ms};
        for (int n = cases[i].before; n > 0; n--) {
            s->queue[s->queue_count++] = start_ms - (n - 1) * MINUTE_MS;
        }
        schedule_decide(&schedule, NULL, start_ms + cases[i].minutes * MINUTE_MS, 2 * MINUTE_MS, cases[i].runs, s);
        if ((int64_t)s->queue_count != cases[i].queued || s->skipped != cases[i].skipped ||
            s->missed != cases[i].missed) {
            fail_msg("%s: %zu in the queue, %lld skipped, %lld missed", cases[i].what, s->queue_count,
                     (long long)s->skipped, (long long)s->missed);
        }
        assert_int_equal(s->last_ms, start_ms + cases[i].minutes * MINUTE_MS);
        assert_int_equal(s->next_ms, s->last_ms + MINUTE_MS);
        if (s->queue_count > 0) {
            assert_int_equal(s->queue[0], start_ms + cases[i].first * MINUTE_MS);
            assert_int_equal(s->queue[s->queue_count - 1], start_ms + cases[i].last * MINUTE_MS);
        }
    }
    free(s);
}

TEST(a_clock_that_goes_back_brings_no_instant_twice)
{
    struct schedule schedule = {.timetable = {.every_ms = MINUTE_MS}, .overlap = OVERLAP_ALL, .catch_up = CATCH_UP_ALL};
    struct schedule_state *s = calloc(1, sizeof(*s));
    int64_t start_ms = at("2026-01-01T00:00:00Z");

    *s = (struct schedule_state){.last_ms = start_ms};
    schedule_decide(&schedule, NULL, start_ms + 5 * MINUTE_MS, MINUTE_MS, false, s);
    assert_int_equal(s->queue_count, 5);
    schedule_decide(&schedule, NULL, start_ms + MINUTE_MS, MINUTE_MS, false, s);
    assert_int_equal(s->queue_count, 5);
    assert_int_equal(s->last_ms, start_ms + 5 * MINUTE_MS);
    schedule_decide(&schedule, NULL, start_ms + 6 * MINUTE_MS, MINUTE_MS, false, s);
    assert_int_equal(s->queue_count, 6);
    free(s);
}

TEST(a_year_of_minutes_is_counted)
{
    struct zone_offset offset = {0, 0};
    struct zone zone = {&offset, 1, at("2030-01-01T00:00:00Z")};
    struct schedule schedule = {.timetable = {.is_cron = true}, .overlap = OVERLAP_ALL, .catch_up = CATCH_UP_ALL};
    struct schedule_state *s = calloc(1, sizeof(*s));

    assert_int_equal(cron_parse(SLICE("* * * * *"), &schedule.timetable.cron, NULL), ERR_OK);
    *s = (struct schedule_state){.last_ms = at("2026-01-01T00:00:00Z")};
    schedule_decide(&schedule, &zone, at("2026-12-01T00:00:00Z"), MINUTE_MS, false, s);
    assert_int_equal(s->missed + (int64_t)s->queue_count, 334 * 24 * 60);
    assert_int_equal(s->queue_count, SCHEDULE_QUEUE_MAX);
    free(s);
}

TEST(the_state_is_read_as_it_was_written)
{
    struct schedule_state *s = calloc(1, sizeof(*s)), *again = calloc(1, sizeof(*again));
    struct arena arena;
    struct buffer text;

    arena_init(&arena, 4096);
    buffer_init(&text, 65536);
    assert_true(schedule_state_read(SLICE("{}"), 5, &arena, again));
    assert_true(again->last_ms == 5 && again->queue_count == 0 && uuid_is_nil(&again->saga.uuid) && !again->error.ptr);
    *s = (struct schedule_state){.last_ms = 7000,
                                 .queue = {5000, 6000, 7000},
                                 .queue_count = 3,
                                 .started = 1,
                                 .skipped = 2,
                                 .missed = 3,
                                 .refused = 4,
                                 .saga = {{{1, 2, 3}}},
                                 .saga_at_ms = 4000,
                                 .next_ms = 8000,
                                 .error = SLICE("the input does not fit"),
                                 .error_detail = SLICE("at /x"),
                                 .error_at_ms = 7100,
                                 .error_instant_ms = 5000};
    schedule_state_write(s, &text);
    assert_true(schedule_state_read(buffer_slice(&text), 7000, &arena, again));
    assert_true(again->queue_count == 3 && again->queue[1] == 6000 && again->started == 1 && again->skipped == 2 &&
                again->missed == 3 && again->refused == 4 && uuid_equal(&again->saga.uuid, &s->saga.uuid) &&
                again->saga_at_ms == 4000 && again->next_ms == 8000 && slice_equal(again->error, s->error) &&
                slice_equal(again->error_detail, s->error_detail) && again->error_at_ms == 7100 &&
                again->error_instant_ms == 5000 && again->last_ms == 7000);
    assert_false(schedule_state_read(SLICE("{\"queue\":[\"a\"]}"), 0, &arena, again));
    assert_false(schedule_state_read(SLICE("[]"), 0, &arena, again));
    assert_false(schedule_state_read(SLICE("{\"saga\":\"x\"}"), 0, &arena, again));
    buffer_fini(&text);
    arena_fini(&arena);
    free(s);
    free(again);
}

TEST(the_business_id_is_the_schedule_and_the_instant)
{
    char id[SCHEDULE_ID_BYTES_MAX], longest[SCHEDULE_NAME_BYTES_MAX];

    schedule_business_id(SLICE("nightly"), at("2026-01-31T01:30:00Z"), id);
    assert_string_equal(id, "schedule:nightly@2026-01-31T01:30:00.000Z");
    memset(longest, 'a', sizeof(longest));
    schedule_business_id((struct slice){longest, sizeof(longest)}, 0, id);
    assert_string_equal(strchr(id, '@'), "@1970-01-01T00:00:00.000Z");
}

TEST_PROGRAM(NULL, NULL)
