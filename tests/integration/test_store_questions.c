/* Lists of questions to people: in order of time, with each filter, in groups, and how far they looked. */
#include <stdio.h>
#include <string.h>

#include "store/cases.h"
#include "store/store_state.h"
#include "tests/integration/store_host.h"
#include "tests/lib/test.h"

static struct host host;
static struct store *store;
static struct arena arena;

#define ASK(call, request) HOST_ASK(&host, store, &arena, call, request)

/* A number carries its shard, so the newer of two questions may have the smaller number. Two are asked in the same
 * millisecond. */
TEST(questions_are_in_order_of_time_over_all_shards)
{
    static const uint64_t newest_first[] = {64 + 3, 64 * 7 + 9, 64 * 2 + 8, 64 * 9 + 1};
    char saga[UUID_TEXT_BYTES];
    struct turn turn = {0};

    turn_start(&turn, host_saga(3), 0, "trip-7");
    turn.append.namespace = turn.start.namespace = SLICE("timed");
    turn.start.tags = SLICE("{\"customer\": \"ada\"}");
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    uuid_text(&turn.append.saga.uuid, saga);
    for (enum question_kind kind = QUESTION_ESCALATION; kind <= QUESTION_APPROVAL; kind++) {
        struct list_questions list = {.kind = kind, .namespace = SLICE("timed"), .limit = 1, .open_only = true};
        const char *table = kind == QUESTION_ESCALATION
                                ? "escalation (shard, number, saga, namespace, opened_at, reason, body)"
                                : "approval (shard, number, saga, namespace, opened_at, status, step, body)";

        host_sql(&host,
                 "insert into sagad.%s select n %% 64, n, '%s', 'timed', at::timestamptz, %s, '{}' from (values"
                 " (67, '2026-01-31 09:05:03Z'), (457, '2026-01-31 09:05:02Z'), (136, '2026-01-31 09:05:02Z'), (577, "
                 "'2026-01-31 09:05:01Z')) as v (n, at)",
                 table, saga, kind == QUESTION_ESCALATION ? "'unknown'" : "'open', 'ask'");
        for (size_t i = 0; i < COUNT_OF(newest_first); i++) {
            assert_int_equal(ASK(store_list_questions, &list), ERR_OK);
            assert_int_equal(list.count, 1);
            assert_int_equal(list.rows[0].number, newest_first[i]);
            list.before = list.rows[0].number;
            list.before_ms = list.rows[0].opened_ms;
        }
        list.before = 0;
        assert_int_equal(ASK(store_list_questions, &list), ERR_OK);
        assert_true(slice_is(list.rows[0].saga_name, "order") && slice_is(list.rows[0].business_id, "trip-7"));
        assert_true(slice_is(list.rows[0].tags, "{\"customer\": \"ada\"}"));
    }
}

/* Checks the numbers of the matching cases, the newest first. */
static void fits(struct question_filter filter, const char *numbers)
{
    struct list_questions list = {.namespace = SLICE("filtered"), .limit = 50, .open_only = true, .filter = filter};
    char found[256] = "";

    assert_int_equal(ASK(store_list_questions, &list), ERR_OK);
    for (size_t i = 0; i < list.count; i++) {
        (void)snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s%llu", i > 0 ? " " : "",
                       (unsigned long long)list.rows[i].number / 64);
    }
    assert_string_equal(found, numbers);
    assert_false(list.has_edge);
}

static void fill_cases(void)
{
    static const struct slice tags[] = {{"{\"customer\": \"ada\", \"region\": \"eu\"}", 35},
                                        {"{\"customer\": \"bob\", \"region\": \"eu\"}", 35}};
    char saga[2][UUID_TEXT_BYTES];

    for (uint32_t i = 0; i < 2; i++) {
        struct turn turn = {0};

        turn_start(&turn, host_saga(5), 0, i == 0 ? "trip-8" : "trip-9");
        turn.append.namespace = turn.start.namespace = SLICE("filtered");
        turn.start.saga_name = i == 0 ? SLICE("trip") : SLICE("order");
        turn.start.tags = tags[i];
        assert_int_equal(host_append(&host, store, &turn), ERR_OK);
        uuid_text(&turn.append.saga.uuid, saga[i]);
    }
    host_sql(&host,
             "insert into sagad.escalation (shard, number, saga, namespace, opened_at, step, reason, body)"
             " select 5, 5 + 64 * n, case when n %% 2 = 0 then '%s'::uuid else '%s'::uuid end, 'filtered',"
             " timestamptz '2026-01-31 09:00:00Z' + n * interval '1 s', case when n < 5 then 'pay' end, case when n = 3"
             " then 'stuck' else 'unknown' end, convert_to(case when n = 6 then '{\"cost\":0}' else"
             " json_build_object('cost', case when n <> 3 then n * 100 end, 'currency', case when n %% 3 = 2 then "
             "'EUR' when n = 4 then 'CHF' end, 'evidence', "
             "json_build_object('tool', 'bank' || n %% 3, 'last_error', 'http-500'))::text end,"
             " 'UTF8') from generate_series(1, 6) as n",
             saga[0], saga[1]);
}

/* The cases are 1 to 6, a second apart. The even ones belong to trip-8, the odd ones to trip-9. The tools are bank0 to
 * bank2, and the last case has none. */
TEST(questions_are_filtered_by_what_they_are_about)
{
    static const struct slice one = {"bank1", 5}, two[] = {{"bank1", 5}, {"bank2", 5}}, none = {"", 0};
    static const struct slice trip = {"trip", 4}, pay = {"pay", 3}, stuck = {"stuck", 5}, error = {"http-500", 8};
    static const struct slice ada = {"{\"customer\":\"ada\"}", 18}, cs = {"{\"region\":\"eu\"}", 15};
    static const struct slice other = {"{\"customer\":\"ada\",\"region\":\"us\"}", 32};

    fill_cases();
    fits((struct question_filter){0}, "6 5 4 3 2 1");
    fits((struct question_filter){.tools = &one, .tool_count = 1}, "4 1");
    fits((struct question_filter){.tools = two, .tool_count = 2}, "5 4 2 1");
    fits((struct question_filter){.tools = &none, .tool_count = 1}, "6");
    fits((struct question_filter){.sagas = &trip, .saga_count = 1}, "6 4 2");
    fits((struct question_filter){.steps = &pay, .step_count = 1}, "4 3 2 1");
    fits((struct question_filter){.reasons = &stuck, .reason_count = 1}, "3");
    fits((struct question_filter){.errors = &error, .error_count = 1}, "5 4 3 2 1");
    fits((struct question_filter){.tags = &ada, .tag_count = 1}, "6 4 2");
    fits((struct question_filter){.tags = &cs, .tag_count = 1}, "6 5 4 3 2 1");
    fits((struct question_filter){.tags = &other, .tag_count = 1}, "");
    fits((struct question_filter){.has_cost = true, .cost_above = 300}, "5 4");
    fits((struct question_filter){.since_ms = 1769850003000, .until_ms = 1769850005000}, "4 3");
    fits((struct question_filter){.tools = &one, .tool_count = 1, .sagas = &trip, .saga_count = 1}, "4");
}

/* The last case that was looked at is returned whether or not it matches, so that a page is not taken for the whole
 * list. */
TEST(a_list_says_how_far_it_looked)
{
    static const struct slice one = {"bank1", 5};
    struct list_questions list = {.namespace = SLICE("filtered"),
                                  .limit = 50,
                                  .open_only = true,
                                  .looked_max = 4,
                                  .filter = {.tools = &one, .tool_count = 1}};

    assert_int_equal(ASK(store_list_questions, &list), ERR_OK);
    assert_int_equal(list.count, 1);
    assert_true(list.has_edge && list.edge == 3 * 64 + 5);
    list.before = list.edge;
    list.before_ms = list.edge_ms;
    assert_int_equal(ASK(store_list_questions, &list), ERR_OK);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.rows[0].number, 64 + 5);
    assert_false(list.has_edge);
    list.before = 0;
    list.looked_max = 3;
    assert_int_equal(ASK(store_list_questions, &list), ERR_OK);
    assert_true(list.count == 1 && list.has_edge && list.edge == list.rows[0].number); /* this case matches, too */
}

/* Where the saga of each case is read a list reads fewer cases, and says so. */
TEST(a_list_that_reads_sagas_reads_fewer_cases)
{
    static const struct slice order = {"order", 5}, tag = {"customer", 8}, tagged = {"{\"customer\": \"x\"}", 17};
    const struct question_grouping by_reason = {.reason = true}, by_saga = {.saga = true},
                                   by_tag = {.tags = &tag, .tag_count = 1};
    const struct {
        struct question_filter filter;
        const struct question_grouping *by;
        size_t looked; /* 0: all were */
    } lists[] = {{{0}, &by_reason, 0},
                 {{.steps = &order, .step_count = 1}, NULL, 0},
                 {{.sagas = &order, .saga_count = 1}, NULL, QUESTIONS_LOOKED_AT_BY_SAGA},
                 {{.tags = &tagged, .tag_count = 1}, NULL, QUESTIONS_LOOKED_AT_BY_SAGA},
                 {{0}, &by_saga, QUESTIONS_LOOKED_AT_BY_SAGA},
                 {{0}, &by_tag, QUESTIONS_LOOKED_AT_BY_SAGA}};

    host_sql(&host,
             "insert into sagad.escalation (shard, number, saga, namespace, opened_at, reason, body)"
             " select n %% 64, n, '018bcfe5-6a41-7000-af42-0aaa59ed0009', 'crowd', now(), 'unknown', '{}'"
             " from generate_series(100000, 100000 + %d) as n",
             QUESTIONS_LOOKED_AT_BY_SAGA);
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        struct list_questions list = {
            .namespace = SLICE("crowd"), .limit = 50, .open_only = true, .filter = lists[i].filter, .by = lists[i].by};

        assert_int_equal(ASK(store_list_questions, &list), ERR_OK);
        assert_int_equal(list.has_edge ? list.looked : 0, lists[i].looked);
    }
}

TEST(questions_are_counted_in_groups)
{
    static const struct slice tag = {"customer", 8}, tools[] = {{"bank1", 5}, {"bank2", 5}};
    const struct question_grouping by = {.tool = true, .tags = &tag, .tag_count = 1}, by_saga = {.saga = true};
    struct list_questions list = {.namespace = SLICE("filtered"), .limit = 50, .open_only = true, .by = &by};

    assert_int_equal(ASK(store_list_questions, &list), ERR_OK);
    assert_int_equal(list.count, 6); /* each case by itself, the newest first */
    assert_true(list.groups[0].tool.ptr == NULL && slice_is(list.groups[0].tags, "[\"ada\"]"));
    assert_int_equal(list.groups[0].costless, 0);
    list.by = &by_saga;
    list.filter = (struct question_filter){.tools = tools, .tool_count = 2};
    assert_int_equal(ASK(store_list_questions, &list), ERR_OK);
    assert_int_equal(list.count, 2);
    assert_true(slice_is(list.groups[0].saga, "order") && list.groups[0].count == 2);
    assert_int_equal(list.groups[0].oldest_ms, 1769850001000);
    assert_int_equal(list.groups[0].newest_ms, 1769850005000);
    assert_true(slice_is(list.groups[1].saga, "trip") && list.groups[1].count == 2);
    assert_false(list.has_edge);
    list.looked_max = 4; /* the fourth case is about bank0 and has its own group, which is not shown */
    assert_int_equal(ASK(store_list_questions, &list), ERR_OK);
    assert_true(list.has_edge && list.edge_ms == 1769850003000);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.groups[0].count, 1);
}

/* Groups of one, two and no currency. Cases 2 and 5 cost euros, case 4 francs, and of case 1 nothing says what it
 * costs. Case 6 is known to cost nothing, and of case 3 nobody knows what it costs. */
TEST(amounts_of_two_currencies_are_never_added)
{
    const struct question_grouping all = {.tool = false}, by_reason = {.reason = true}, by_tool = {.tool = true};
    struct list_questions list = {.namespace = SLICE("filtered"), .limit = 50, .open_only = true, .by = &all};

    assert_int_equal(ASK(store_list_questions, &list), ERR_OK);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.groups[0].count, 6);
    assert_int_equal(list.groups[0].costless, 1);
    assert_true(slice_is(list.groups[0].costs, "{\"currency\":\"CHF\",\"micros\":400,\"cases\":1},"
                                               "{\"currency\":\"EUR\",\"micros\":700,\"cases\":2},"
                                               "{\"currency\":null,\"micros\":100,\"cases\":2}"));
    list.by = &by_reason;
    assert_int_equal(ASK(store_list_questions, &list), ERR_OK);
    assert_int_equal(list.count, 2);
    assert_false(list.groups[1].costs.ptr);
    assert_int_equal(list.groups[1].costless, 1);
    list.by = &by_tool;
    assert_int_equal(ASK(store_list_questions, &list), ERR_OK);
    assert_int_equal(list.count, 4);
    assert_false(list.groups[2].tool.ptr);
    assert_true(slice_is(list.groups[2].costs, "{\"currency\":null,\"micros\":0,\"cases\":1}"));
}

static enum err_code remark(uint64_t n, enum remark_kind kind, struct uuid id, int64_t until_ms, bool *full)
{
    struct case_remark put = {.number = 5 + 64 * n,
                              .namespace = SLICE("filtered"),
                              .id = id,
                              .kind = kind,
                              .by = SLICE("ada"),
                              .until_ms = until_ms,
                              .to = SLICE("bob"),
                              .text = SLICE("{}")};
    enum err_code code = ASK(store_case_remark, &put);

    *full = put.full;
    return code;
}

/* Of the same cases: the first is looked at, the second until 09:00, the third was asked again since, the fourth is
 * assigned. */
TEST(remarks_about_a_case_stand_beside_it_until_it_is_asked_again)
{
    static const struct slice bob = {"bob", 3}, nobody = {"", 0};
    const struct question_filter looked_at = {.has_acknowledged = true, .acknowledged = true};
    struct question_filter filter = looked_at;
    bool full;

    for (uint64_t n = 1; n <= 3; n++) {
        int64_t until_ms = n == 2 ? 1769850000000 : 0;

        assert_int_equal(remark(n, REMARK_ACKNOWLEDGE, uuid_v7(1), until_ms, &full), ERR_OK);
        assert_false(full);
    }
    host_sql(&host, "update sagad.escalation set opened_at = opened_at + interval '1 ms' where number = 5 + 64 * 3");
    assert_int_equal(remark(4, REMARK_ASSIGN, uuid_v7(1), 0, &full), ERR_OK);
    assert_int_equal(remark(99, REMARK_COMMENT, uuid_v7(1), 0, &full), ERR_NOT_FOUND);
    filter.now_ms = 1769849999999;
    fits(filter, "2 1");
    filter.now_ms++;
    fits(filter, "1");
    filter.acknowledged = false;
    fits(filter, "6 5 4 3 2");
    fits((struct question_filter){.assigned = &bob, .assigned_count = 1}, "4");
    fits((struct question_filter){.assigned = &nobody, .assigned_count = 1}, "6 5 3 2 1");
}

TEST(a_repeated_remark_is_one_and_a_case_has_so_many_at_most)
{
    struct list_questions one = {.namespace = SLICE("filtered"), .number = 5 + 64 * 6, .limit = 1};
    struct uuid id = uuid_v7(1);
    bool full = false;

    for (int i = 0; i < CASE_REMARKS_MAX; i++) {
        assert_int_equal(remark(6, REMARK_COMMENT, i < 2 ? id : uuid_v7(1), 0, &full), ERR_OK);
        assert_false(full);
    }
    assert_int_equal(remark(6, REMARK_COMMENT, uuid_v7(1), 0, &full), ERR_OK);
    assert_false(full);
    assert_int_equal(remark(6, REMARK_COMMENT, uuid_v7(1), 0, &full), ERR_OK);
    assert_true(full);
    assert_int_equal(remark(6, REMARK_COMMENT, id, 0, &full), ERR_OK);
    assert_false(full);
    assert_int_equal(ASK(store_list_questions, &one), ERR_OK);
    assert_int_equal(one.rows[0].remark_count, CASE_REMARKS_MAX);
}

HOST_PROGRAM(NULL)
