/* The shop judges the fault tests, so the shop itself must be right. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "tests/lib/test.h"
#include "tools/shop/books.h"
#include "tools/shop/faults.h"
#include "tools/shop/ledger.h"

struct fixture {
    struct books books;
    struct arena arena;
};

static void begin(struct fixture *f, bool ignore_keys)
{
    books_init(&f->books, ignore_keys);
    arena_init(&f->arena, 4096);
}

static void end(struct fixture *f)
{
    books_fini(&f->books);
    arena_fini(&f->arena);
}

static struct books_answer ask(struct fixture *f, enum route route, enum entry_kind kind, const char *key,
                               const char *target, bool target_is_key, const char *body)
{
    struct books_request request = {route, kind, slice_of(key), slice_of(target), target_is_key, slice_of(body)};
    struct books_answer answer;

    books_decide(&f->books, &request, &f->arena, &answer);
    if (answer.effect) {
        books_apply(&f->books, answer.kind, slice_of(answer.id), request.key, request.target, request.body);
    }
    return answer;
}

static struct books_answer charge(struct fixture *f, const char *key, const char *body)
{
    return ask(f, ROUTE_CHARGES, ENTRY_CHARGE, key, NULL, false, body);
}

static const char bob[] = "{\"amount\": 500, \"customer\": \"bob\"}";

TEST(the_same_key_gets_the_same_answer_and_no_second_effect)
{
    struct fixture f;
    struct books_answer first, again;

    begin(&f, false);
    first = charge(&f, "k", bob);
    again = charge(&f, "k", bob);
    assert_true(first.effect);
    assert_int_equal(first.status, 201);
    assert_false(again.effect);
    assert_int_equal(again.status, 201);
    assert_true(slice_equal(first.body, again.body));
    assert_int_equal(f.books.sum.charges, 1);
    end(&f);
}

TEST(every_request_is_an_effect_and_shows_as_a_double_with_ignore_keys)
{
    struct fixture f;
    struct books_answer probe;

    begin(&f, true);
    assert_true(charge(&f, "k", bob).effect);
    assert_true(charge(&f, "k", bob).effect);
    probe = ask(&f, ROUTE_PROBES, ENTRY_CHARGE, NULL, "k", true, NULL);
    assert_true(json_string_is(json_member(probe.body, "id"), "ch-1"));
    assert_true(slice_is(json_member(probe.body, "times"), "2"));
    end(&f);
}

TEST(another_request_under_a_known_key_is_refused)
{
    struct fixture f;

    begin(&f, false);
    assert_true(charge(&f, "k", bob).effect);
    assert_int_equal(charge(&f, "k", "{\"amount\": 501, \"customer\": \"bob\"}").status, 422);
    assert_int_equal(ask(&f, ROUTE_MAILS, ENTRY_MAIL, "k", NULL, false, bob).status, 422);
    assert_int_equal(f.books.entries, 1);
    end(&f);
}

TEST(refusals_have_no_effect)
{
    static const struct {
        enum route route;
        enum entry_kind kind;
        const char *body;
        unsigned status;
    } cases[] = {
        {ROUTE_RESERVATIONS, ENTRY_RESERVATION, "{\"sku\": \"none\", \"qty\": 1}", 422},
        {ROUTE_RESERVATIONS, ENTRY_RESERVATION, "{\"sku\": \"cup\", \"qty\": 0}", 422},
        {ROUTE_RESERVATIONS, ENTRY_RESERVATION, "{\"qty\": 1}", 422},
        {ROUTE_RESERVATIONS, ENTRY_RESERVATION, "", 422},
        {ROUTE_CHARGES, ENTRY_CHARGE, "{\"amount\": 5, \"customer\": \"declined\"}", 402},
        {ROUTE_CHARGES, ENTRY_CHARGE, "{\"amount\": -5, \"customer\": \"bob\"}", 422},
        {ROUTE_REFUNDS, ENTRY_REFUND, "{\"charge_id\": \"ch-9\"}", 404},
        {ROUTE_MAILS, ENTRY_MAIL, "{\"to\": \"bounce@example.com\", \"subject\": \"s\"}", 422},
    };
    struct fixture f;

    begin(&f, false);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct books_answer answer = ask(&f, cases[i].route, cases[i].kind, "k", NULL, false, cases[i].body);

        assert_int_equal(answer.status, cases[i].status);
        assert_false(answer.effect);
    }
    assert_int_equal(f.books.entries, 0);
    end(&f);
}

TEST(a_release_is_idempotent_and_an_unknown_one_is_not_found)
{
    struct fixture f;

    begin(&f, false);
    ask(&f, ROUTE_RESERVATIONS, ENTRY_RESERVATION, "k", NULL, false, "{\"sku\": \"cup\", \"qty\": 3}");
    assert_int_equal(f.books.sum.standing_units, 3);
    assert_true(ask(&f, ROUTE_RELEASES, ENTRY_RESERVATION, NULL, "rs-1", false, NULL).effect);
    assert_false(ask(&f, ROUTE_RELEASES, ENTRY_RESERVATION, NULL, "rs-1", false, NULL).effect);
    assert_int_equal(ask(&f, ROUTE_RELEASES, ENTRY_RESERVATION, NULL, "rs-1", false, NULL).status, 200);
    assert_int_equal(ask(&f, ROUTE_RELEASES, ENTRY_RESERVATION, NULL, "rs-5", false, NULL).status, 404);
    assert_int_equal(f.books.sum.standing_units, 0);
    end(&f);
}

TEST(a_key_that_was_called_off_is_refused_when_it_comes_late)
{
    struct fixture f;

    begin(&f, false);
    assert_int_equal(ask(&f, ROUTE_RELEASES, ENTRY_RESERVATION, NULL, "late", true, NULL).status, 200);
    assert_int_equal(
        ask(&f, ROUTE_RESERVATIONS, ENTRY_RESERVATION, "late", NULL, false, "{\"sku\": \"cup\", \"qty\": 1}").status,
        410);
    assert_int_equal(f.books.sum.reserved, 0);
    end(&f);
}

TEST(a_refund_pays_back_once)
{
    struct fixture f;

    begin(&f, false);
    charge(&f, "c", bob);
    assert_int_equal(ask(&f, ROUTE_REFUNDS, ENTRY_REFUND, "r", NULL, false, "{\"charge_id\": \"ch-1\"}").status, 201);
    assert_false(ask(&f, ROUTE_REFUNDS, ENTRY_REFUND, "r", NULL, false, "{\"charge_id\": \"ch-1\"}").effect);
    assert_int_equal(ask(&f, ROUTE_REFUNDS, ENTRY_REFUND, "other", NULL, false, "{\"charge_id\": \"ch-1\"}").status,
                     422);
    assert_int_equal(f.books.sum.charged - f.books.sum.refunded, 0);
    end(&f);
}

/* --- the ledger --- */

static bool count_lines(void *context, struct slice line)
{
    *(size_t *)context += line.len > 0;
    return true;
}

TEST(effects_are_counted_by_request_whatever_the_key)
{
    struct fixture f;
    struct books_answer answer;

    begin(&f, false);
    answer = charge(&f, "k", "{\"amount\": 10.0, \"customer\": \"bob\", \"request\": \"r\"}");
    assert_true(slice_is(answer.request, "r"));
    assert_true(charge(&f, "l", "{\"amount\": 1e1, \"customer\": \"bob\", \"request\": \"r\"}").effect);
    answer = ask(&f, ROUTE_REFUNDS, ENTRY_CHARGE, NULL, "ch-1", false, NULL);
    assert_true(answer.effect);
    assert_true(slice_is(answer.request, "r"));
    assert_false(ask(&f, ROUTE_REFUNDS, ENTRY_CHARGE, "other", "ch-1", false, NULL).effect);
    answer = ask(&f, ROUTE_REQUESTS, ENTRY_NONE, NULL, "r", false, NULL);
    assert_true(slice_is(json_member(json_member(answer.body, "charge"), "done"), "2"));
    assert_true(slice_is(json_member(json_member(answer.body, "charge"), "undone"), "1"));
    assert_true(slice_is(json_member(json_member(answer.body, "mail"), "done"), "0"));
    end(&f);
}

TEST(a_tag_is_state_and_setting_it_again_is_no_effect)
{
    struct fixture f;
    const char *vip = "{\"tag\": \"vip\", \"request\": \"r\"}";

    begin(&f, true);
    assert_int_equal(ask(&f, ROUTE_PROBES, ENTRY_TAG, NULL, "bob", false, NULL).status, 404);
    assert_true(ask(&f, ROUTE_TAGS, ENTRY_TAG, "k", "bob", false, vip).effect);
    assert_false(ask(&f, ROUTE_TAGS, ENTRY_TAG, "l", "bob", false, vip).effect);
    assert_true(
        json_string_is(json_member(ask(&f, ROUTE_PROBES, ENTRY_TAG, NULL, "bob", false, NULL).body, "tag"), "vip"));
    assert_true(ask(&f, ROUTE_UNTAGS, ENTRY_TAG, "k", "bob", false, NULL).effect);
    assert_int_equal(ask(&f, ROUTE_UNTAGS, ENTRY_TAG, "k", "bob", false, NULL).status, 404);
    assert_int_equal(ask(&f, ROUTE_TAGS, ENTRY_TAG, "k", "bob", false, "{}").status, 422);
    assert_int_equal(f.books.sum.tags, 0);
    end(&f);
}

TEST(a_shop_without_status_reads_tells_nothing_of_a_key)
{
    struct fixture f;

    begin(&f, false);
    f.books.no_status = true;
    assert_true(charge(&f, "k", bob).effect);
    assert_int_equal(ask(&f, ROUTE_PROBES, ENTRY_CHARGE, NULL, "k", true, NULL).status, 405);
    assert_int_equal(ask(&f, ROUTE_PROBES, ENTRY_CHARGE, NULL, "nobody", true, NULL).status, 405);
    assert_int_equal(ask(&f, ROUTE_PROBES, ENTRY_CHARGE, NULL, "ch-1", false, NULL).status, 200);
    end(&f);
}

TEST(one_of_two_reads_changes_and_one_does_not)
{
    struct books_request request = {.route = ROUTE_SHIPMENTS, .target = SLICE("s"), .number = 1};
    struct books_answer first, second;
    struct fixture f;

    begin(&f, false);
    for (int pass = 0; pass < 2; pass++) {
        request.number++;
        books_decide(&f.books, &request, &f.arena, &first);
        request.number++;
        books_decide(&f.books, &request, &f.arena, &second);
        assert_int_equal(first.status, 200);
        assert_int_equal(slice_equal(first.body, second.body), pass == 1);
        request.route = ROUTE_PRICES;
    }
    end(&f);
}

TEST(a_torn_last_line_is_cut_off_and_the_rest_is_kept)
{
    char path[] = "/tmp/sagad-test-ledger-XXXXXX";
    int fd = mkstemp(path);
    struct ledger ledger;
    struct err err;
    size_t lines = 0;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "{\"n\":1}\n{\"n\":2}\n{\"n\":", 21), 21);
    close(fd);
    assert_int_equal(ledger_open(&ledger, path, true, count_lines, &lines, &err), ERR_OK);
    assert_int_equal(lines, 2);
    ledger_wait(&ledger, ledger_append(&ledger, SLICE("{\"n\":3}")));
    ledger_close(&ledger);
    lines = 0;
    assert_int_equal(ledger_open(&ledger, path, true, count_lines, &lines, &err), ERR_OK);
    assert_int_equal(lines, 3);
    ledger_close(&ledger);
    unlink(path);
}

/* --- faults --- */

TEST(a_rule_fires_as_often_as_it_says_and_only_where_it_matches)
{
    struct fault_plan plan;
    struct err err;
    struct slice rule =
        SLICE("{\"route\": \"charges\", \"mode\": \"reset-after-effect\", \"times\": 2, \"match\": \"bob\"}");

    fault_plan_init(&plan, 0, 1);
    assert_int_equal(fault_plan_add(&plan, rule, &err), ERR_OK);
    assert_int_equal(fault_plan_take(&plan, ROUTE_MAILS, SLICE("k"), slice_of(bob)).mode, FAULT_NONE);
    assert_int_equal(fault_plan_take(&plan, ROUTE_CHARGES, SLICE("k"), SLICE("{\"customer\": \"ann\"}")).mode,
                     FAULT_NONE);
    assert_int_equal(fault_plan_take(&plan, ROUTE_CHARGES, SLICE("k"), slice_of(bob)).mode, FAULT_RESET_AFTER);
    assert_int_equal(fault_plan_take(&plan, ROUTE_CHARGES, SLICE("k"), slice_of(bob)).mode, FAULT_RESET_AFTER);
    assert_int_equal(fault_plan_take(&plan, ROUTE_CHARGES, SLICE("k"), slice_of(bob)).mode, FAULT_NONE);
    fault_plan_fini(&plan);
}

TEST(a_rule_that_makes_no_sense_is_refused)
{
    static const char *const rules[] = {
        "{}",
        "{\"route\": \"charges\"}",
        "{\"route\": \"nowhere\", \"mode\": \"503\"}",
        "{\"route\": \"charges\", \"mode\": \"explode\"}",
        "{\"route\": \"charges\", \"mode\": \"slow-x\"}",
        "{\"route\": \"charges\", \"mode\": \"503\", \"times\": \"two\"}",
        "[]",
    };
    struct fault_plan plan;
    struct err err;

    fault_plan_init(&plan, 0, 1);
    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        assert_int_equal(fault_plan_add(&plan, slice_of(rules[i]), &err), ERR_INVALID);
    }
    assert_int_equal(plan.rule_count, 0);
    fault_plan_fini(&plan);
}

TEST(the_same_seed_makes_the_same_chaos_whatever_the_order)
{
    struct fault_plan forth, back;
    enum fault_mode modes[100];
    int faults = 0;
    char key[16];

    fault_plan_init(&forth, 30, 7);
    fault_plan_init(&back, 30, 7);
    for (int i = 0; i < 100; i++) {
        int len = snprintf(key, sizeof(key), "key-%d", i);

        modes[i] = fault_plan_take(&forth, ROUTE_CHARGES, (struct slice){key, (size_t)len}, SLICE_NONE).mode;
        faults += modes[i] != FAULT_NONE;
    }
    for (int i = 99; i >= 0; i--) {
        int len = snprintf(key, sizeof(key), "key-%d", i);

        assert_int_equal(fault_plan_take(&back, ROUTE_CHARGES, (struct slice){key, (size_t)len}, SLICE_NONE).mode,
                         modes[i]);
    }
    assert_in_range(faults, 15, 50);
    fault_plan_fini(&forth);
    fault_plan_fini(&back);
}

TEST(chaos_makes_only_what_its_weights_name)
{
    struct fault_plan plan;
    struct err err;
    char key[16];

    fault_plan_init(&plan, 0, 7);
    assert_int_equal(fault_plan_set_chaos(&plan, SLICE("{\"percent\": 101}"), &err), ERR_INVALID);
    assert_int_equal(fault_plan_set_chaos(&plan, SLICE("{\"percent\": 9, \"modes\": {\"none\": 1}}"), &err),
                     ERR_INVALID);
    assert_int_equal(plan.chaos_percent, 0);
    assert_int_equal(
        fault_plan_set_chaos(&plan, SLICE("{\"percent\": 100, \"ms\": 90, \"modes\": {\"late\": 3, \"truncated\": 1}}"),
                             &err),
        ERR_OK);
    for (int i = 0; i < 100; i++) {
        int len = snprintf(key, sizeof(key), "key-%d", i);
        struct fault_decision made =
            fault_plan_take(&plan, ROUTE_CHARGES, (struct slice){key, (size_t)len}, SLICE_NONE);

        assert_true(made.mode == FAULT_LATE || made.mode == FAULT_TRUNCATED);
        assert_in_range(made.ms, 50, 90);
    }
    assert_int_not_equal(fault_plan_take(&plan, ROUTE_TAGS, SLICE("k"), SLICE_NONE).mode, FAULT_LATE);
    fault_plan_fini(&plan);
}

TEST_PROGRAM(NULL, NULL)
