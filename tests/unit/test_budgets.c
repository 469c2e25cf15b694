/* The file of budgets: what is read from it, and the sentence for each fault. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/instant.h"
#include "run/call/budgets.h"
#include "tests/lib/scratch.h"
#include "tests/lib/test.h"

static void refuses(const char *text, const char *why)
{
    struct budgets budgets;
    struct err err = {0};

    assert_int_equal(budgets_parse(&budgets, slice_of(text), &err), ERR_CONFIG);
    if (!strstr(err.detail, why) && !strstr(err.message, why)) {
        fail_msg("%s: \"%s\" %s", text, err.message, err.detail);
    }
    assert_int_equal(budgets.count, 0);
}

TEST(whatever_is_wrong_is_refused_with_its_place)
{
    refuses("{", "the budgets file");
    refuses("{\"budgets\": {}}", "budgets");
    refuses("{\"budgets\": [7]}", "/budgets/0: must be an object");
    refuses("{\"budgets\": [{\"tool\": \"\", \"per\": \"day\", \"calls\": 1}]}", "/budgets/0/tool");
    refuses("{\"budgets\": [{\"tool\": 5, \"per\": \"day\", \"calls\": 1}]}", "/budgets/0/tool");
    refuses("{\"budgets\": [{\"tool\": \"a/b\", \"per\": \"day\", \"calls\": 1}]}", "/budgets/0/tool");
    refuses("{\"budgets\": [{\"namespace\": \"a*\", \"per\": \"day\", \"calls\": 1}]}", "/budgets/0/namespace");
    refuses("{\"budgets\": [{\"per\": \"day\", \"emissions\": -1}]}", "/budgets/0/emissions");
    refuses("{\"budgets\": [{\"per\": \"day\", \"calls\": 1}, {\"per\": \"day\", \"micros\": 1}]}", "already");
}

TEST(a_name_has_at_most_128_bytes)
{
    char text[512];

    (void)snprintf(text, sizeof(text), "{\"budgets\": [{\"tool\": \"%0129d\", \"per\": \"day\", \"calls\": 1}]}", 0);
    refuses(text, "/budgets/0/tool");
}

TEST(there_are_at_most_a_thousand)
{
    size_t size = 64 * 1024, at;
    char *text = malloc(size);

    assert_non_null(text);
    at = (size_t)snprintf(text, size, "{\"budgets\": [");
    for (int i = 0; i <= 1000; i++) {
        at += (size_t)snprintf(text + at, size - at, "%s{}", i ? "," : "");
    }
    (void)snprintf(text + at, size - at, "]}");
    refuses(text, "more than 1000 budgets");
    free(text);
}

TEST(a_day_and_a_month_begin_at_midnight_utc_and_ever_never_begins)
{
    int64_t now, day, month;

    assert_true(instant_parse(SLICE("2026-02-17T13:14:15.016Z"), &now));
    assert_true(instant_parse(SLICE("2026-02-17T00:00:00Z"), &day));
    assert_true(instant_parse(SLICE("2026-02-01T00:00:00Z"), &month));
    assert_true(budget_period_start(BUDGET_DAY, now) == day);
    assert_true(budget_period_start(BUDGET_MONTH, now) == month);
    assert_true(budget_period_start(BUDGET_EVER, now) == 0);
}

TEST(a_budget_counts_for_whom_it_names)
{
    static const char text[] =
        "{\"budgets\": [{\"namespace\": \"shop\", \"tool\": \"pay\", \"per\": \"month\", \"micros\": 5}]}";
    struct guard_budget found[GUARD_BUDGETS_MAX];
    struct budgets budgets;
    struct err err = {0};

    assert_int_equal(budgets_parse(&budgets, slice_of(text), &err), ERR_OK);
    assert_true(budgets_apply(&budgets, SLICE("shop"), SLICE("pay")));
    assert_false(budgets_apply(&budgets, SLICE("shop"), SLICE("mail")));
    assert_false(budgets_apply(&budgets, SLICE("office"), SLICE("pay")));
    assert_int_equal(budgets_match(&budgets, SLICE("office"), SLICE("pay"), 0, found), 0);
    assert_int_equal(budgets_match(&budgets, SLICE("shop"), SLICE("pay"), 0, found), 1);
    assert_true(found[0].calls_max == -1 && found[0].emissions_max == -1 && found[0].micros_max == 5);
    budgets_fini(&budgets);
}

TEST(budgets_are_loaded_from_a_file)
{
    struct budgets budgets;
    struct err err = {0};

    scratch_write("{\"budgets\": [{\"per\": \"ever\", \"calls\": 3}]}", 1);
    assert_int_equal(budgets_load(&budgets, scratch_file, &err), ERR_OK);
    assert_int_equal(budgets.count, 1);
    budgets_fini(&budgets);
    assert_int_equal(budgets_load(&budgets, "", &err), ERR_OK); /* no budgets are wanted */
    assert_int_equal(budgets.count, 0);
    budgets_fini(&budgets);
}

TEST(a_file_that_cannot_be_read_is_refused)
{
    struct budgets budgets;
    struct err err = {0};

    assert_int_equal(budgets_load(&budgets, "/nowhere/budgets.json", &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, "/nowhere/budgets.json"));
    assert_int_equal(budgets_load(&budgets, "/", &err), ERR_CONFIG); /* a folder can be opened but not read */
    scratch_write("                                                                ", (1 << 20) / 64 + 1);
    assert_int_equal(budgets_load(&budgets, scratch_file, &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, "larger than 1024 KiB"));
}

TEST_PROGRAM(scratch_make_file, scratch_remove_file)
