/* Instants are written and read without loss; a duration is one number and one unit. */
#include <string.h>

#include "base/instant.h"
#include "tests/lib/test.h"

static const struct {
    const char *text;
    int64_t ms;
    const char *written; /* NULL when the text stays the same */
} instants[] = {
    {"1970-01-01T00:00:00.000Z", 0, NULL},
    {"2026-01-31T09:05:00.250Z", INT64_C(1769850300250), NULL},
    {"2000-02-29T23:59:59.999Z", INT64_C(951868799999), NULL},
    {"1969-12-31T23:59:59.999Z", -1, NULL},
    {"0000-01-01T00:00:00.000Z", INT64_C(-62167219200000), NULL},
    {"9999-12-31T23:59:59.999Z", INT64_C(253402300799999), NULL},
    {"2026-01-31T09:05:00Z", INT64_C(1769850300000), "2026-01-31T09:05:00.000Z"},
    {"2026-01-31t09:05:00z", INT64_C(1769850300000), "2026-01-31T09:05:00.000Z"},
    {"2026-01-31 09:05:00.5Z", INT64_C(1769850300500), "2026-01-31T09:05:00.500Z"},
    {"2026-01-31T09:05:00.123456789Z", INT64_C(1769850300123), "2026-01-31T09:05:00.123Z"},
    {"2026-01-31T11:05:00.250+02:00", INT64_C(1769850300250), "2026-01-31T09:05:00.250Z"},
    {"2026-01-30T23:35:00.250-09:30", INT64_C(1769850300250), "2026-01-31T09:05:00.250Z"},
    {"2026-01-31T09:05:00-00:00", INT64_C(1769850300000), "2026-01-31T09:05:00.000Z"},
};

TEST(instants_go_both_ways)
{
    for (size_t i = 0; i < COUNT_OF(instants); i++) {
        char text[INSTANT_TEXT_BYTES];
        int64_t ms = 42;

        if (!instant_parse(slice_of(instants[i].text), &ms) || ms != instants[i].ms) {
            fail_msg("%s: %lld", instants[i].text, (long long)ms);
        }
        instant_text(ms, text);
        assert_string_equal(text, instants[i].written ? instants[i].written : instants[i].text);
    }
    for (int64_t ms = INT64_C(-62167219200000); ms < INT64_C(253402300799999); ms += INT64_C(86399999999)) {
        char text[INSTANT_TEXT_BYTES];
        int64_t back;

        instant_text(ms, text);
        assert_true(instant_parse(slice_of(text), &back));
        assert_true(back == ms);
    }
}

TEST(no_instant_breaks_the_writer)
{
    static const int64_t extremes[] = {INT64_MIN, INT64_MAX, INT64_C(-62167219200001), INT64_C(253402300800000)};

    for (size_t i = 0; i < COUNT_OF(extremes); i++) {
        char text[INSTANT_TEXT_BYTES];

        instant_text(extremes[i], text);
        assert_int_equal(strlen(text), 24);
    }
}

TEST(a_text_that_is_no_instant_is_refused)
{
    static const char *const texts[] = {
        "",
        "2026",
        "2026-01-31",
        "2026-01-31T09:05:00",
        "2026-01-31T09:05Z",
        "2026-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T09:60:00Z",
        "2026-01-31T09:05:61Z",
        "2026-01-31T09:05:00.Z",
        "2026-01-31T09:05:00.1234567890Z",
        "2026-01-31T09:05:00,5Z",
        "2026-01-31T09:05:00+2:00",
        "2026-01-31T09:05:00+02",
        "2026-01-31T09:05:00+24:00",
        "2026-01-31T09:05:00+02:60",
        "2026-01-31T09:05:00Zx",
        " 2026-01-31T09:05:00Z",
        "26-01-31T09:05:00Z",
        "2026-1-31T09:05:00Z",
        "-026-01-31T09:05:00Z",
        "9999-12-31T23:59:59-00:01",
        "0000-01-01T00:00:00+00:01",
    };
    int64_t ms = 42;

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        if (instant_parse(slice_of(texts[i]), &ms)) {
            fail_msg("%s", texts[i]);
        }
    }
    assert_false(instant_parse(SLICE_NONE, &ms));
    assert_int_equal(ms, 42);
}

static const struct {
    const char *text;
    int64_t ms; /* -1: refused */
    const char *said;
} durations[] = {
    {"0s", 0, "0ms"},
    {"200ms", 200, "200ms"},
    {"10s", 10000, "10s"},
    {"1500ms", 1500, "1.5s"},
    {"80s", 80000, "1m 20s"},
    {"15m", 900000, "15m 0s"},
    {"24h", 86400000, "1d 0h"},
    {"90m", 5400000, "1h 30m"},
    {"7d", 604800000, "7d 0h"},
    {"366d", DURATION_MS_MAX, "366d 0h"},
    {"367d", -1, NULL},
    {"99999999999999999999d", -1, NULL},
    {"999999999999999d", -1, NULL},
    {"", -1, NULL},
    {"10", -1, NULL},
    {"s", -1, NULL},
    {"-1s", -1, NULL},
    {"+1s", -1, NULL},
    {"1.5s", -1, NULL},
    {"1 s", -1, NULL},
    {"1S", -1, NULL},
    {"1m20s", -1, NULL},
    {"1w", -1, NULL},
    {"1sx", -1, NULL},
};

TEST(a_duration_is_a_number_and_a_unit)
{
    for (size_t i = 0; i < COUNT_OF(durations); i++) {
        char text[INSTANT_TEXT_BYTES];
        int64_t ms = -1;
        bool good = duration_parse(slice_of(durations[i].text), &ms);

        if (good != (durations[i].ms >= 0) || ms != durations[i].ms) {
            fail_msg("%s: %lld", durations[i].text, (long long)ms);
        }
        if (good) {
            duration_text(ms, text);
            assert_string_equal(text, durations[i].said);
        }
    }
    assert_false(duration_parse(SLICE_NONE, &(int64_t){0}));
}

TEST(no_duration_breaks_the_writer)
{
    char text[INSTANT_TEXT_BYTES];

    duration_text(-5, text);
    assert_string_equal(text, "0ms");
    duration_text(INT64_MAX, text);
    assert_string_equal(text, "106751991167d 7h");
}

TEST_PROGRAM(NULL, NULL)
