/* The values of Retry-After from servers, and what is made of them; also what the page about tools says of each
 * status. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/http_parts.h"
#include "tests/lib/test.h"

#define NOW_MS INT64_C(1700000000000) /* Tue, 14 Nov 2023 22:13:20 GMT */
#define WEEK_MS (INT64_C(7) * 24 * 3600 * 1000)

static const struct {
    const char *name, *value;
    int64_t ms;
} table[] = {
    {"seconds", "120", 120000},
    {"none", "", 0},
    {"zero", "0", 0},
    {"more than a week is a week", "604801", WEEK_MS},
    {"as many as there are", "9223372036854775807", WEEK_MS},
    {"the past is now", "-1", 0},
    {"the far past too", "-9223372036854775808", 0},
    {"a date", "Tue, 14 Nov 2023 22:13:30 GMT", 10000},
    {"a date in the past", "Tue, 14 Nov 2023 22:13:10 GMT", 0},
    {"a date in ten years", "Mon, 14 Nov 2033 22:13:20 GMT", WEEK_MS},
    {"words", "soon", 0},
    {"a date with more behind it", "Tue, 14 Nov 2023 22:13:30 GMT;", 0},
};

TEST(retry_after_is_honoured_within_bounds)
{
    struct arena arena;

    arena_init(&arena, 1024);
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        int64_t ms = http_retry_after_ms(slice_of(table[i].value), NOW_MS, &arena);

        if (ms != table[i].ms) {
            fail_msg("%s: %lld", table[i].name, (long long)ms);
        }
    }
    arena_fini(&arena);
}

/* --- schema/tools.md --- */

static const char *page_read(void)
{
    static char text[64 << 10];
    char path[512];
    const char *folder = getenv("SCHEMA_DIR");

    (void)snprintf(path, sizeof(path), "%s/tools.md", folder ? folder : "schema");
    FILE *file = fopen(path, "re");

    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
    return text;
}

/* Reads rows like "| 200–201, 425 | outcome |". Finds the outcome of `status` and returns how many rows have the
 * status. */
static size_t page_rows(const char *rows, int status, char outcome[32])
{
    size_t count = 0;

    for (const char *line = rows; strncmp(line, "| ", 2) == 0; line = strchr(line, '\n') + 1) {
        const char *at = line + 2;
        bool has = false;

        while (*at != '|') {
            char *end;
            long from = strtol(at, &end, 10), to = from;

            assert_ptr_not_equal(end, at);
            if (strncmp(end, "–", strlen("–")) == 0) {
                to = strtol(end + strlen("–"), &end, 10);
            }
            has |= status >= from && status <= to;
            at = end + strspn(end, ", ");
        }
        if (has) {
            count++;
            assert_int_equal(sscanf(at, "| %31[a-z_] |", outcome), 1);
        }
    }
    return count;
}

TEST(the_page_about_tools_has_the_outcome_of_each_status)
{
    static const char *const names[OUTCOME_KIND_COUNT] = {[OUTCOME_COMPLETED] = "completed",
                                                          [OUTCOME_RUNNING] = "running",
                                                          [OUTCOME_RETRY] = "retry",
                                                          [OUTCOME_FAILED] = "no_effect",
                                                          [OUTCOME_UNKNOWN] = "unknown"};
    const char *rows = strstr(page_read(), "| HTTP status | outcome |\n| --- | --- |\n");

    assert_non_null(rows);
    rows = strchr(strchr(rows, '\n') + 1, '\n') + 1;
    for (int status = 100; status < 600; status++) {
        char outcome[32] = "";

        if (page_rows(rows, status, outcome) != 1 || strcmp(outcome, names[http_status_outcome(status)]) != 0) {
            fail_msg("%d is %s, and in the page %s", status, names[http_status_outcome(status)], outcome);
        }
    }
}

TEST_PROGRAM(NULL, NULL)
