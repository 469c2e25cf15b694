/* What of that which people are asked is wanted: the filters, keys and cursor of a list, from the
 * texts of a request. */
#include <string.h>

#include "base/json.h"
#include "run/query/walk.h"

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

/* What lies between the commas; none of SLICE_NONE, one empty text of an empty one. */
static const struct slice *split(struct work *work, struct slice list, size_t *count)
{
    struct slice *parts, text = arena_slice(&work->arena, list);
    size_t n = 1;

    *count = 0;
    if (!list.ptr) {
        return NULL;
    }
    for (size_t i = 0; i < text.len; i++) {
        n += text.ptr[i] == ',';
    }
    parts = arena_array(&work->arena, n, sizeof(*parts));
    for (size_t at = 0; *count < n; at++) {
        size_t from = at;

        while (at < text.len && text.ptr[at] != ',') {
            at++;
        }
        parts[(*count)++] = (struct slice){text.ptr + from, at - from};
    }
    return parts;
}

/* Of the tags from `at` on with the name of that one, those before it left out: its first? */
static bool is_first_of_name(const struct engine_questions *wanted, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (slice_equal(wanted->tags[i].name, wanted->tags[at].name)) {
            return false;
        }
    }
    return true;
}

static struct slice tags_of_choice(struct work *work, const struct engine_questions *wanted, size_t choice)
{
    struct buffer out;
    struct json_writer w;
    struct slice text;

    buffer_init(&out, SIZE_MAX / 2); /* the query of a request is bounded */
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    for (size_t i = 0; i < wanted->tag_count; i++) {
        size_t count = 0, pick, seen = 0;

        if (!is_first_of_name(wanted, i)) {
            continue;
        }
        for (size_t k = i; k < wanted->tag_count; k++) {
            count += slice_equal(wanted->tags[k].name, wanted->tags[i].name);
        }
        pick = choice % count;
        choice /= count;
        for (size_t k = i; k < wanted->tag_count; k++) {
            if (slice_equal(wanted->tags[k].name, wanted->tags[i].name) && seen++ == pick) {
                json_write_slice(&w, arena_text(&work->arena, wanted->tags[i].name), wanted->tags[k].value);
            }
        }
    }
    json_object_end(&w);
    text = arena_slice(&work->arena, buffer_slice(&out));
    buffer_fini(&out);
    return text;
}

#define TAG_CHOICES_MAX 64

/* Each way to take one value of each name: the saga has all tags of one of them. */
static bool read_tags(struct work *work, const struct engine_questions *wanted, struct question_filter *filter)
{
    struct slice *choices;
    size_t count = wanted->tag_count > 0 ? 1 : 0;

    for (size_t i = 0; i < wanted->tag_count && count <= TAG_CHOICES_MAX; i++) {
        size_t values = 0;

        for (size_t k = i; is_first_of_name(wanted, i) && k < wanted->tag_count; k++) {
            values += slice_equal(wanted->tags[k].name, wanted->tags[i].name);
        }
        count *= values ? values : 1;
    }
    if (count > TAG_CHOICES_MAX) {
        work_fail(work, ERR_MALFORMED, "there are too many combinations of these tags", "ask for fewer values at once");
        return false;
    }
    choices = arena_array(&work->arena, count + 1, sizeof(*choices));
    for (size_t i = 0; i < count; i++) {
        choices[i] = tags_of_choice(work, wanted, i);
    }
    filter->tags = choices;
    filter->tag_count = count;
    return true;
}

static bool read_grouping(struct work *work, struct slice group_by, struct list_questions *list)
{
    struct question_grouping *by = arena_alloc(&work->arena, sizeof(*by));
    size_t count = 0;
    const struct slice *names = split(work, group_by, &count);
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
    filter->assigned = split(work, wanted->assigned, &filter->assigned_count);
    filter->statuses = split(work, wanted->status, &filter->status_count);
    filter->tools = split(work, wanted->tool, &filter->tool_count);
    filter->sagas = split(work, wanted->saga, &filter->saga_count);
    filter->steps = split(work, wanted->step, &filter->step_count);
    filter->reasons = split(work, wanted->reason, &filter->reason_count);
    filter->errors = split(work, wanted->error, &filter->error_count);
    return read_cursor(work, wanted->cursor, list) && read_tags(work, wanted, filter) &&
           read_grouping(work, wanted->group_by, list);
}
