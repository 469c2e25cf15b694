/* What lists share of their filters: several values, tags. See filter.h. */
#include "run/query/filter.h"

#include "base/json.h"

const struct slice *filter_split(struct work *work, struct slice list, size_t *count)
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

bool filter_has(const struct slice *values, size_t count, struct slice text)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(values[i], text)) {
            return true;
        }
    }
    return count == 0;
}

/* Is this the first tag from `at` on with its name, when those before are left out? */
static bool is_first_of_name(const struct engine_tag *tags, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (slice_equal(tags[i].name, tags[at].name)) {
            return false;
        }
    }
    return true;
}

static struct slice tags_of_choice(struct work *work, const struct engine_tag *tags, size_t tag_count, size_t choice)
{
    struct buffer out;
    struct json_writer w;
    struct slice text;

    buffer_init(&out, SIZE_MAX / 2); /* the query of a request is bounded */
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    for (size_t i = 0; i < tag_count; i++) {
        size_t count = 0, pick, seen = 0;

        if (!is_first_of_name(tags, i)) {
            continue;
        }
        for (size_t k = i; k < tag_count; k++) {
            count += slice_equal(tags[k].name, tags[i].name);
        }
        pick = choice % count;
        choice /= count;
        for (size_t k = i; k < tag_count; k++) {
            if (slice_equal(tags[k].name, tags[i].name) && seen++ == pick) {
                json_write_slice(&w, arena_text(&work->arena, tags[i].name), tags[k].value);
            }
        }
    }
    json_object_end(&w);
    text = arena_slice(&work->arena, buffer_slice(&out));
    buffer_fini(&out);
    return text;
}

#define TAG_CHOICES_MAX 64

bool filter_tags(struct work *work, const struct engine_tag *tags, size_t tag_count, const struct slice **out,
                 size_t *out_count)
{
    struct slice *choices;
    size_t count = tag_count > 0 ? 1 : 0;

    for (size_t i = 0; i < tag_count && count <= TAG_CHOICES_MAX; i++) {
        size_t values = 0;

        for (size_t k = i; is_first_of_name(tags, i) && k < tag_count; k++) {
            values += slice_equal(tags[k].name, tags[i].name);
        }
        count *= values ? values : 1;
    }
    if (count > TAG_CHOICES_MAX) {
        work_fail(work, ERR_MALFORMED, "there are too many combinations of these tags", "ask for fewer values at once");
        return false;
    }
    choices = arena_array(&work->arena, count + 1, sizeof(*choices));
    for (size_t i = 0; i < count; i++) {
        choices[i] = tags_of_choice(work, tags, tag_count, i);
    }
    *out = choices;
    *out_count = count;
    return true;
}
