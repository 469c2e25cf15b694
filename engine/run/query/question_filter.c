/* Reads which questions to people are wanted: the filters, keys and cursor of a list, from the texts of a request. */
#include <string.h>

#include "run/query/filter.h"

#define LIMIT_DEFAULT 50
#define CURSOR_MS_MAX INT64_C(253402300799999) /* the end of the year 9999 */

static bool read_cursor(struct work *work, struct slice cursor, struct list_questions *list)
{
    const char *dot = cursor.len ? memchr(cursor.ptr, '.', cursor.len) : NULL;
    int64_t ms = 0, number = 0;

    if (cursor.len == 0) {
        return true;
    }
    if (!dot || !slice_to_i64((struct slice){cursor.ptr, (size_t)(dot - cursor.ptr)}, &ms) || ms < 0 ||
        ms > CURSOR_MS_MAX ||
        !slice_to_i64((struct slice){dot + 1, cursor.len - (size_t)(dot + 1 - cursor.ptr)}, &number) || number < 1) {
        work_bad_cursor(work);
        return false;
    }
    list->before_ms = ms;
    list->before = (uint64_t)number;
    return true;
}

static bool read_grouping(struct work *work, struct slice group_by, struct list_questions *list)
{
    struct question_grouping *by = arena_alloc(&work->arena, sizeof(*by));
    size_t count = 0;
    const struct slice *names = filter_split(work, group_by, &count);
    struct slice *tags = arena_array(&work->arena, count + 1, sizeof(*tags));
    struct {
        const char *name;
        bool *is_key;
    } known[] = {
        {"tool", &by->tool}, {"saga", &by->saga}, {"step", &by->step}, {"reason", &by->reason}, {"error", &by->error}};

    *by = (struct question_grouping){.tags = tags};
    for (size_t i = 0; i < count; i++) {
        bool found = slice_starts_with(names[i], "tag.") && names[i].len > 4;

        if (found) {
            tags[by->tag_count++] = (struct slice){names[i].ptr + 4, names[i].len - 4};
        }
        for (size_t k = 0; k < COUNT_OF(known); k++) {
            if (slice_is(names[i], known[k].name)) {
                found = *known[k].is_key = true;
            }
        }
        if (!found) {
            work_fail(work, ERR_MALFORMED, "this is nothing that cases are grouped by",
                      "group by one or more of tool, saga, step, reason, error, tag.NAME, with commas between");
            return false;
        }
    }
    list->by = count > 0 ? by : NULL;
    return true;
}

bool work_read_questions(struct work *work, const struct engine_questions *wanted, struct list_questions *list)
{
    struct question_filter *filter = &list->filter;

    list->open_only = wanted->open_only;
    list->limit = (wanted->limit ? wanted->limit : LIMIT_DEFAULT) + 1; /* one more says whether there are more */
    filter->since_ms = wanted->since_ms;
    filter->until_ms = wanted->until_ms;
    filter->has_cost = wanted->has_cost;
    filter->cost_above = wanted->cost_above;
    filter->has_acknowledged = wanted->has_acknowledged;
    filter->acknowledged = wanted->acknowledged;
    filter->now_ms = loop_wall_ms(work->engine->loop);
    filter->assigned = filter_split(work, wanted->assigned, &filter->assigned_count);
    filter->statuses = filter_split(work, wanted->status, &filter->status_count);
    filter->tools = filter_split(work, wanted->tool, &filter->tool_count);
    filter->sagas = filter_split(work, wanted->saga, &filter->saga_count);
    filter->steps = filter_split(work, wanted->step, &filter->step_count);
    filter->reasons = filter_split(work, wanted->reason, &filter->reason_count);
    filter->errors = filter_split(work, wanted->error, &filter->error_count);
    return read_cursor(work, wanted->cursor, list) &&
           filter_tags(work, wanted->tags, wanted->tag_count, &filter->tags, &filter->tag_count) &&
           read_grouping(work, wanted->group_by, list);
}
