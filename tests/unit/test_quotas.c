/* Quotas of namespaces: the file, the sentence for each fault, and who may ask for how much when. */
#include <stdio.h>
#include <string.h>

#include "run/intake/quotas.h"
#include "tests/lib/test.h"

static void refuses(const char *text, const char *why)
{
    struct quotas quotas;
    struct err err = {0};

    assert_int_equal(quotas_parse(&quotas, slice_of(text), &err), ERR_CONFIG);
    if (!strstr(err.detail, why) && !strstr(err.message, why)) {
        fail_msg("%s: \"%s\" %s", text, err.message, err.detail);
    }
    assert_int_equal(quotas.count, 0);
}

static void takes(struct quotas *quotas, const char *text)
{
    struct err err = {0};

    if (quotas_parse(quotas, slice_of(text), &err) != ERR_OK) {
        fail_msg("%s: %s", err.message, err.detail);
    }
}

/* How many of `asked` requests at one instant are taken in. */
static int taken(struct quotas *quotas, enum quota_kind kind, const char *namespace, int asked, int64_t now_ms)
{
    int count = 0;

    for (int i = 0; i < asked; i++) {
        struct err err = {0};
        int64_t later_ms = 0;

        if (quotas_admit(quotas, kind, slice_of(namespace), 1, now_ms, &err, &later_ms)) {
            count++;
        } else {
            assert_int_equal(err.code, ERR_QUOTA);
            assert_true(later_ms > 0);
        }
    }
    return count;
}

TEST(whatever_is_wrong_is_refused_with_its_place)
{
    refuses("{", "the quotas file");
    refuses("[]", "one member \"quotas\"");
    refuses("{\"quotas\": {}}", "one member \"quotas\"");
    refuses("{\"quotas\": [7]}", "/quotas/0: must be an object");
    refuses("{\"quotas\": [{}]}", "/quotas/0: limits nothing");
    refuses("{\"quotas\": [{\"starts\": 5}]}", "/quotas/0/starts: is not known");
    refuses("{\"quotas\": [{\"starts_per_second\": -1}]}", "/quotas/0/starts_per_second");
    refuses("{\"quotas\": [{\"calls_per_second\": 1.5}]}", "/quotas/0/calls_per_second");
    refuses("{\"quotas\": [{\"calls_per_second\": 1000001}]}", "from 0 to 1000000");
    refuses("{\"quotas\": [{\"definitions\": 1000001}]}", "from 0 to 1000000");
    refuses("{\"quotas\": [{\"sagas_in_flight\": \"many\"}]}", "/quotas/0/sagas_in_flight");
    refuses("{\"quotas\": [{\"namespace\": \"*\", \"calls_per_second\": 1}]}", "/quotas/0/namespace");
    refuses("{\"quotas\": [{\"namespace\": \"a\", \"calls_per_second\": 1},"
            " {\"namespace\": \"a\", \"starts_per_second\": 1}]}",
            "/quotas/1: there is a quota of the same namespace");
    refuses("{\"quotas\": [{\"calls_per_second\": 1}, {\"calls_per_second\": 2}]}", "/quotas/1");
}

TEST(without_a_file_everything_is_taken)
{
    struct quotas quotas;
    struct err err = {0};

    assert_int_equal(quotas_load(&quotas, NULL, &err), ERR_OK);
    assert_int_equal(taken(&quotas, QUOTA_STARTS, "a", 1000, 5), 1000);
    quotas_fini(&quotas);
}

TEST(each_namespace_has_its_own_and_it_comes_back_by_and_by)
{
    struct quotas quotas;

    takes(&quotas, "{\"quotas\": [{\"starts_per_second\": 10}, {\"namespace\": \"big\", \"starts_per_second\": 100}]}");
    assert_int_equal(taken(&quotas, QUOTA_STARTS, "a", 50, 1000), 10);
    assert_int_equal(taken(&quotas, QUOTA_STARTS, "b", 50, 1000), 10);
    assert_int_equal(taken(&quotas, QUOTA_STARTS, "big", 500, 1000), 100);
    assert_int_equal(taken(&quotas, QUOTA_CALLS, "a", 50, 1000), 50); /* of these nothing was said */
    assert_int_equal(taken(&quotas, QUOTA_STARTS, "a", 50, 1099), 0);
    assert_int_equal(taken(&quotas, QUOTA_STARTS, "a", 50, 1100), 1);
    assert_int_equal(taken(&quotas, QUOTA_STARTS, "a", 50, 1600), 5);
    assert_int_equal(taken(&quotas, QUOTA_STARTS, "a", 50, 1000000), 10); /* and not more for having waited */
    quotas_fini(&quotas);
}

TEST(a_line_of_its_own_holds_alone)
{
    struct quotas quotas;

    takes(&quotas, "{\"quotas\": [{\"starts_per_second\": 1, \"calls_per_second\": 1},"
                   " {\"namespace\": \"free\", \"calls_per_second\": 3}]}");
    assert_int_equal(taken(&quotas, QUOTA_STARTS, "free", 50, 1000), 50);
    assert_int_equal(taken(&quotas, QUOTA_CALLS, "free", 50, 1000), 3);
    quotas_fini(&quotas);
}

TEST(nothing_at_all_is_a_quota_too)
{
    struct quotas quotas;
    struct err err = {0};
    int64_t later_ms = 0;

    takes(&quotas, "{\"quotas\": [{\"namespace\": \"shut\", \"starts_per_second\": 0}]}");
    assert_false(quotas_admit(&quotas, QUOTA_STARTS, SLICE("shut"), 1, 1, &err, &later_ms));
    assert_int_equal(later_ms, 60000);
    assert_non_null(strstr(err.message, "0 starts a second"));
    quotas_fini(&quotas);
}

TEST(bytes_of_a_day_come_back_by_and_by_and_the_refusal_says_when)
{
    const int64_t hour_ms = 3600000;
    struct quotas quotas;
    struct err err = {0};
    int64_t later_ms = 0;

    takes(&quotas, "{\"quotas\": [{\"payload_bytes_per_day\": 24000}]}");
    assert_true(quotas_admit(&quotas, QUOTA_BYTES, SLICE("a"), 20000, 1000, &err, &later_ms));
    assert_true(quotas_admit(&quotas, QUOTA_BYTES, SLICE("a"), 0, 1000, &err, &later_ms));
    assert_false(quotas_admit(&quotas, QUOTA_BYTES, SLICE("a"), 6000, 1000, &err, &later_ms));
    assert_true(later_ms > 2 * hour_ms - 10 && later_ms < 2 * hour_ms + 10);
    assert_non_null(strstr(err.message, "24000 bytes of payload a day"));
    assert_false(quotas_admit(&quotas, QUOTA_BYTES, SLICE("a"), 6000, 1000 + hour_ms, &err, &later_ms));
    assert_true(quotas_admit(&quotas, QUOTA_BYTES, SLICE("a"), 6000, 1001 + 2 * hour_ms, &err, &later_ms));
    assert_true(quotas_admit(&quotas, QUOTA_BYTES, SLICE("b"), 24000, 1000, &err, &later_ms));
    assert_false(quotas_admit(&quotas, QUOTA_BYTES, SLICE("c"), 24001, 1000, &err, &later_ms)); /* it never fits */
    assert_int_equal(later_ms, 60000);
    quotas_fini(&quotas);
}

static int64_t in_flight, counts;

static int64_t count_in_flight(void *context, struct slice namespace)
{
    (void)context;
    assert_true(slice_is(namespace, "a"));
    counts++;
    return in_flight;
}

TEST(sagas_in_flight_are_counted_now_and_then_and_never_more_than_may_be)
{
    const struct quota_sagas sagas = {count_in_flight, NULL};
    struct quotas quotas;
    struct err err = {0};
    int64_t later_ms = 0;

    takes(&quotas, "{\"quotas\": [{\"sagas_in_flight\": 3}]}");
    in_flight = 1;
    assert_true(quotas_admit_saga(&quotas, SLICE("a"), &sagas, 1000, &err, &later_ms));
    assert_true(quotas_admit_saga(&quotas, SLICE("a"), &sagas, 1001, &err, &later_ms));
    assert_false(quotas_admit_saga(&quotas, SLICE("a"), &sagas, 1002, &err, &later_ms));
    assert_int_equal(later_ms, 1000);
    assert_int_equal(counts, 1);
    in_flight = 2;
    assert_true(quotas_admit_saga(&quotas, SLICE("a"), &sagas, 1200, &err, &later_ms));
    assert_false(quotas_admit_saga(&quotas, SLICE("a"), &sagas, 1201, &err, &later_ms));
    assert_int_equal(counts, 2);
    quotas_fini(&quotas);
}

TEST(so_many_definitions_and_no_more)
{
    struct quotas quotas;
    struct err err = {0};
    int64_t later_ms = 0;

    takes(&quotas, "{\"quotas\": [{\"definitions\": 3}, {\"namespace\": \"free\", \"calls_per_second\": 1}]}");
    assert_true(quotas_allow(&quotas, QUOTA_DEFINITIONS, SLICE("a"), 3, &err, &later_ms));
    assert_false(quotas_allow(&quotas, QUOTA_DEFINITIONS, SLICE("a"), 4, &err, &later_ms));
    assert_non_null(strstr(err.message, "3 definitions"));
    assert_true(quotas_allow(&quotas, QUOTA_DEFINITIONS, SLICE("free"), 4000, &err, &later_ms));
    assert_true(quotas_bound(&quotas, QUOTA_DEFINITIONS, SLICE("a")));
    assert_false(quotas_bound(&quotas, QUOTA_DEFINITIONS, SLICE("free")));
    quotas_fini(&quotas);
}

/* Names of namespaces come from outside: a flood of them stays bounded, and quiet ones make room. */
TEST(names_without_end_take_no_memory_without_end)
{
    struct quotas quotas;
    char name[16];
    int count = 0;

    takes(&quotas, "{\"quotas\": [{\"starts_per_second\": 1}]}");
    for (int i = 0; i < 20000; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        count += taken(&quotas, QUOTA_STARTS, name, 1, 1000);
    }
    assert_int_equal(count, 10000);
    assert_int_equal(quotas.buckets.count, 10000);
    assert_int_equal(taken(&quotas, QUOTA_STARTS, "late", 1, 2000), 1);
    assert_int_equal(quotas.buckets.count, 1);
    quotas_fini(&quotas);
}

TEST_PROGRAM(NULL, NULL)
