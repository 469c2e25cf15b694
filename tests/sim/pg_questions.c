/* Lists of questions to people: the newest of a namespace over all shards, filtered and in groups. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tests/sim/pg_statements.h"

struct question { /* an escalation or an approval */
    int64_t shard, number;
    struct uuid saga;
    struct slice body;
    bool is_open;
    int64_t opened_ms;
    struct slice status, step, tool, reason, error;
    bool has_cost;
    int64_t cost;
    struct slice currency;
    struct slice acknowledged_by, assigned_to, remarks;
    int64_t acknowledged_until_ms;
    bool has_until;
    int64_t remark_count;
    const struct row_saga *of; /* NULL when the saga is gone */
    bool fits, is_last;        /* true only for questions that were looked at */
};

/* Runs case_member(body, path) of migration 0019. */
static struct slice member_of(struct slice body, const char *pointer)
{
    struct err err = {0};

    return json_check(body, &json_limits_default, &err) == ERR_OK ? json_at(body, slice_of(pointer)) : SLICE_NONE;
}

static struct slice text_of(struct pg_call *call, struct slice body, const char *pointer)
{
    struct slice value = member_of(body, pointer);

    return json_type(value) == JSON_STRING ? json_string(value, call->arena) : SLICE_NONE;
}

static void put_question(struct pg_call *call, const struct question *question, struct slice remarks)
{
    const struct row_saga *saga = question->of;

    put_int(call, question->number);
    put_uuid(call, &question->saga);
    put_bytes(call, question->body);
    put_int(call, question->is_open);
    put_time_ms(call, question->opened_ms);
    put_bytes(call, saga ? saga->name : SLICE_NONE);
    put_bytes(call, saga ? saga->business_id : SLICE_NONE);
    put_bytes(call, saga ? saga->tags : SLICE_NONE);
    put_bytes(call, saga ? saga->started_by : SLICE_NONE);
    put_int(call, question->fits);
    put_int(call, question->is_last);
    put_bytes(call, question->acknowledged_by);
    if (question->has_until) {
        put_time_ms(call, question->acknowledged_until_ms);
    } else {
        put_bytes(call, SLICE_NONE);
    }
    put_bytes(call, question->assigned_to);
    put_int(call, question->remark_count);
    put_bytes(call, remarks);
    put_row_end(call);
}

static int by_time_down(const void *left, const void *right)
{
    const struct question *a = left, *b = right;

    if (a->opened_ms != b->opened_ms) {
        return a->opened_ms < b->opened_ms ? 1 : -1;
    }
    return a->number < b->number ? 1 : a->number > b->number ? -1 : 0;
}

static void remark_of(struct pg_call *call, const struct row_escalation *e, struct question *out)
{
    const struct row_case_remark key = {.shard = e->shard, .number = e->number};
    const struct row_case_remark *remark = pg_see(call, pg_find(call, PG_CASE_REMARK, &key));

    if (remark) {
        out->acknowledged_by = remark->acknowledged_case_ms == e->opened_ms ? remark->acknowledged_by : SLICE_NONE;
        out->has_until = remark->has_until;
        out->acknowledged_until_ms = remark->acknowledged_until_ms;
        out->assigned_to = remark->assigned_to;
        out->remark_count = remark->remark_count;
        out->remarks = remark->remarks;
    }
}

/* Returns NULL when the question is missing or belongs to another namespace. */
static const struct question *question_of(struct pg_call *call, enum pg_table table, struct pg_row *row,
                                          struct slice namespace, struct question *out)
{
    const void *seen = pg_see(call, row);

    if (!seen) {
        return NULL;
    }
    if (table == PG_ESCALATION) {
        const struct row_escalation *e = seen;

        *out = (struct question){.shard = e->shard,
                                 .number = e->number,
                                 .saga = e->saga,
                                 .body = e->body,
                                 .is_open = !e->is_resolved,
                                 .opened_ms = e->opened_ms,
                                 .status = e->is_resolved ? SLICE("resolved") : SLICE("open"),
                                 .step = e->step,
                                 .tool = text_of(call, e->body, "/evidence/tool"),
                                 .reason = e->reason,
                                 .error = text_of(call, e->body, "/evidence/last_error"),
                                 .currency = text_of(call, e->body, "/currency")};
        out->has_cost = json_i64(member_of(e->body, "/cost"), &out->cost);
        remark_of(call, e, out);
    } else {
        const struct row_approval *a = seen;

        *out = (struct question){.shard = a->shard,
                                 .number = a->number,
                                 .saga = a->saga,
                                 .body = a->body,
                                 .is_open = !a->has_ended,
                                 .opened_ms = a->opened_ms,
                                 .status = a->status,
                                 .step = a->step};
    }
    out->of = pg_saga(call, saga_id_shard((struct saga_id){out->saga}), out->saga);
    out->fits = true;
    return slice_equal(table == PG_ESCALATION ? ((const struct row_escalation *)seen)->namespace
                                              : ((const struct row_approval *)seen)->namespace,
                       namespace)
               ? out
               : NULL;
}

/* --- which fit --- */

static bool is_acknowledged(struct pg_call *call, const struct question *question)
{
    return question->acknowledged_by.ptr &&
           (!question->has_until || question->acknowledged_until_ms > arg_time_ms(call, 16));
}

static bool question_fits(struct pg_call *call, const struct question *question)
{
    return pg_is_one_of(call, 7, question->status) && pg_is_one_of(call, 8, question->tool) &&
           pg_is_one_of(call, 9, question->of ? question->of->name : SLICE_NONE) &&
           pg_is_one_of(call, 10, question->step) && pg_is_one_of(call, 11, question->reason) &&
           pg_is_one_of(call, 12, question->error) && pg_has_tags(call, question->of, 13) &&
           (arg_is_null(call, 14) || (question->has_cost && question->cost > arg_int(call, 14))) &&
           (arg_is_null(call, 15) || (arg_int(call, 15) != 0) == is_acknowledged(call, question)) &&
           pg_is_one_of(call, 17, question->assigned_to);
}

static bool is_in_time(struct pg_call *call, int64_t opened_ms)
{
    return (arg_is_null(call, 5) || opened_ms >= arg_time_ms(call, 5)) &&
           (arg_is_null(call, 6) || opened_ms < arg_time_ms(call, 6));
}

/* Finds the questions that are looked at and fit, and the last one that is looked at. */
static struct question *find_questions(struct pg_call *call, enum pg_table table, bool open_only, size_t *count)
{
    const struct question before = {.opened_ms = arg_is_null(call, 0) ? INT64_MAX : arg_time_ms(call, 0),
                                    .number = arg_is_null(call, 1) ? 0 : arg_int(call, 1)};
    struct slice namespace = arg_bytes(call, 2);
    const struct row_escalation first_escalation = {.shard = INT16_MIN, .number = INT64_MIN};
    const struct row_approval first_approval = {.shard = INT16_MIN, .number = INT64_MIN};
    const void *from = table == PG_ESCALATION ? (const void *)&first_escalation : (const void *)&first_approval;
    struct question *found = NULL, question;
    size_t n = 0, all = 0;

    for (struct pg_row *row = pg_first(call, table, from); row; row = pg_next(call, table, row)) {
        all++;
    }
    found = arena_array(call->arena, all + 1, sizeof(*found));
    for (struct pg_row *row = pg_first(call, table, from); row; row = pg_next(call, table, row)) {
        if (question_of(call, table, row, namespace, &question) && by_time_down(&question, &before) > 0 &&
            is_in_time(call, question.opened_ms) && (!open_only || question.is_open)) {
            found[n++] = question;
        }
    }
    qsort(found, n, sizeof(*found), by_time_down);
    *count = 0;
    for (size_t i = 0; i < n && (int64_t)i < arg_int(call, 4); i++) {
        found[i].fits = question_fits(call, &found[i]);
        found[i].is_last = (int64_t)i + 1 == arg_int(call, 4);
        if (found[i].fits || found[i].is_last) {
            found[(*count)++] = found[i];
        }
    }
    return found;
}

/* --- the page --- */

static enum pg_progress list_questions(struct pg_call *call, enum pg_table table, bool open_only)
{
    size_t count = 0;
    const struct question *found = find_questions(call, table, open_only, &count);

    for (size_t i = 0; i < count && (int64_t)i < arg_int(call, 3); i++) {
        put_question(call, &found[i], SLICE_NONE);
    }
    return PG_DONE;
}

/* --- groups --- */

enum { GROUP_KEYS = 6 };

struct group {
    bool fits, has_last;
    struct slice keys[GROUP_KEYS]; /* tool, saga, step, reason, error and tags */
    int64_t count, oldest_ms, newest_ms, costless, number;
    struct sum { /* the sums of each currency, in order; SLICE_NONE comes last */
        struct slice currency;
        int64_t micros, cases;
    } * sums;
    size_t sum_count;
};

/* Computes array_to_json() of the values of the tags in $24. */
static struct slice tag_values(struct pg_call *call, const struct row_saga *saga)
{
    struct buffer out;
    struct slice text;

    if (arg_count(call, 23) == 0) {
        return SLICE_NONE;
    }
    buffer_init(&out, 1 << 20);
    for (size_t i = 0; i < arg_count(call, 23); i++) {
        struct slice value = saga && saga->tags.ptr ? pg_tag_of(call, saga->tags, item_bytes(call, 23, i)) : SLICE_NONE;

        buffer_put_char(&out, i > 0 ? ',' : '[');
        if (value.ptr) {
            pg_escape_json(&out, value);
        } else {
            buffer_put_text(&out, "null");
        }
    }
    buffer_put_char(&out, ']');
    text = arena_slice(call->arena, buffer_slice(&out));
    buffer_fini(&out);
    return text;
}

static struct group group_of(struct pg_call *call, const struct question *question)
{
    const struct slice keys[GROUP_KEYS] = {question->tool, question->of ? question->of->name : SLICE_NONE,
                                           question->step, question->reason, question->error};
    struct group group = {.fits = question->fits};

    for (int i = 0; i < GROUP_KEYS - 1; i++) {
        group.keys[i] = arg_int(call, 18 + i) ? keys[i] : SLICE_NONE;
    }
    group.keys[GROUP_KEYS - 1] = tag_values(call, question->of);
    return group;
}

static bool is_same_group(const struct group *a, const struct group *b)
{
    bool same = a->fits == b->fits;

    for (int i = 0; i < GROUP_KEYS; i++) {
        same = same && !a->keys[i].ptr == !b->keys[i].ptr && slice_equal(a->keys[i], b->keys[i]);
    }
    return same;
}

/* Tells whether `a` comes before `b`, in the order of bytes. */
static bool currency_comes_before(struct slice a, struct slice b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = a.ptr && b.ptr ? memcmp(a.ptr, b.ptr, len) : 0;

    return a.ptr && (!b.ptr || order < 0 || (order == 0 && a.len < b.len));
}

/* Adds to the sum of the question's currency, which is a new one where there is none. */
static void sums_add(struct pg_call *call, struct group *group, const struct question *question)
{
    struct sum *grown = arena_array(call->arena, group->sum_count + 1, sizeof(*grown));
    size_t at = 0;

    while (at < group->sum_count && currency_comes_before(group->sums[at].currency, question->currency)) {
        at++;
    }
    if (at == group->sum_count || currency_comes_before(question->currency, group->sums[at].currency)) {
        for (size_t i = 0; i < group->sum_count; i++) {
            grown[i + (i >= at)] = group->sums[i];
        }
        grown[at] = (struct sum){.currency = question->currency};
        group->sums = grown;
        group->sum_count++;
    }
    group->sums[at].micros += question->cost;
    group->sums[at].cases++;
}

static struct slice sums_text(struct pg_call *call, const struct group *group)
{
    struct buffer out;
    struct slice text;

    buffer_init(&out, 1 << 20);
    for (size_t i = 0; i < group->sum_count; i++) {
        const struct sum *sum = &group->sums[i];

        buffer_put_text(&out, i > 0 ? ",{\"currency\":" : "{\"currency\":");
        if (sum->currency.ptr) {
            pg_escape_json(&out, sum->currency);
        } else {
            buffer_put_text(&out, "null");
        }
        buffer_printf(&out, ",\"micros\":%lld,\"cases\":%lld}", (long long)sum->micros, (long long)sum->cases);
    }
    text = group->sum_count > 0 ? arena_slice(call->arena, buffer_slice(&out)) : SLICE_NONE;
    buffer_fini(&out);
    return text;
}

static void group_add(struct pg_call *call, struct group *group, const struct question *question)
{
    group->oldest_ms =
        group->count == 0 || question->opened_ms < group->oldest_ms ? question->opened_ms : group->oldest_ms;
    group->newest_ms = question->opened_ms > group->newest_ms ? question->opened_ms : group->newest_ms;
    group->number = question->number > group->number ? question->number : group->number;
    if (question->has_cost) {
        sums_add(call, group, question);
    } else {
        group->costless++;
    }
    group->has_last = group->has_last || question->is_last;
    group->count++;
}

static int by_count_down(const void *left, const void *right)
{
    const struct group *a = left, *b = right;

    if (a->fits != b->fits) {
        return a->fits ? 1 : -1;
    }
    if (a->count != b->count) {
        return a->count < b->count ? 1 : -1;
    }
    return a->number < b->number ? 1 : a->number > b->number ? -1 : 0;
}

static void put_group(struct pg_call *call, const struct group *group)
{
    put_int(call, group->fits);
    for (int i = 0; i < GROUP_KEYS; i++) {
        put_bytes(call, group->keys[i]);
    }
    put_int(call, group->count);
    put_time_ms(call, group->oldest_ms);
    put_time_ms(call, group->newest_ms);
    put_bytes(call, sums_text(call, group));
    put_int(call, group->costless);
    put_int(call, group->has_last);
    put_row_end(call);
}

static enum pg_progress group_questions(struct pg_call *call, enum pg_table table, bool open_only)
{
    size_t count = 0, n = 0;
    const struct question *found = find_questions(call, table, open_only, &count);
    struct group *groups = arena_array(call->arena, count + 1, sizeof(*groups));

    for (size_t i = 0; i < count; i++) {
        struct group group = group_of(call, &found[i]);
        size_t at = 0;

        while (at < n && !is_same_group(&groups[at], &group)) {
            at++;
        }
        if (at == n) {
            groups[n++] = group;
        }
        group_add(call, &groups[at], &found[i]);
    }
    qsort(groups, n, sizeof(*groups), by_count_down);
    for (size_t i = 0; i < n && (int64_t)i < arg_int(call, 3); i++) {
        put_group(call, &groups[i]);
    }
    return PG_DONE;
}

/* --- the statements --- */

enum pg_progress pg_statement_escalation_list(struct pg_call *call)
{
    return list_questions(call, PG_ESCALATION, false);
}

enum pg_progress pg_statement_escalation_list_open(struct pg_call *call)
{
    return list_questions(call, PG_ESCALATION, true);
}

enum pg_progress pg_statement_escalation_sum(struct pg_call *call)
{
    return group_questions(call, PG_ESCALATION, false);
}

enum pg_progress pg_statement_escalation_sum_open(struct pg_call *call)
{
    return group_questions(call, PG_ESCALATION, true);
}

enum pg_progress pg_statement_approval_list(struct pg_call *call)
{
    return list_questions(call, PG_APPROVAL, false);
}

enum pg_progress pg_statement_approval_list_open(struct pg_call *call)
{
    return list_questions(call, PG_APPROVAL, true);
}

enum pg_progress pg_statement_approval_sum(struct pg_call *call)
{
    return group_questions(call, PG_APPROVAL, false);
}

enum pg_progress pg_statement_approval_sum_open(struct pg_call *call)
{
    return group_questions(call, PG_APPROVAL, true);
}

static enum pg_progress one_question(struct pg_call *call, enum pg_table table, struct pg_row *row)
{
    struct question question;

    if (question_of(call, table, row, arg_bytes(call, 2), &question)) {
        put_question(call, &question, question.remarks);
    }
    return PG_DONE;
}

enum pg_progress pg_statement_escalation_one(struct pg_call *call)
{
    const struct row_escalation key = {.shard = arg_int(call, 0), .number = arg_int(call, 1)};

    return one_question(call, PG_ESCALATION, pg_find(call, PG_ESCALATION, &key));
}

enum pg_progress pg_statement_approval_one(struct pg_call *call)
{
    const struct row_approval key = {.shard = arg_int(call, 0), .number = arg_int(call, 1)};

    return one_question(call, PG_APPROVAL, pg_find(call, PG_APPROVAL, &key));
}
