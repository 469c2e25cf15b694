/* See query.h. */
#include "tools/sagactl/query.h"

#include <string.h>

#include "base/instant.h"
#include "tools/sagactl/client.h"
#include "tools/sagactl/saga_end.h"

bool query_put(struct ctl *ctl, struct buffer *path, const char *name, const char *value)
{
    if (value) {
        buffer_printf(path, "&%s=%.*s", name, SLICE_ARG(url_escape(slice_of(value), &ctl->arena)));
    }
    return true;
}

bool query_put_all(struct ctl *ctl, struct buffer *path, const char *name, const struct option_values *values)
{
    for (size_t i = 0; i < values->count; i++) {
        struct slice value = url_escape(slice_of(values->items[i]), &ctl->arena);

        if (i == 0) {
            buffer_printf(path, "&%s=", name);
        } else {
            buffer_put_text(path, "%2C");
        }
        buffer_put_slice(path, value);
    }
    return true;
}

/* Reads an instant, or an age such as 2h, which counts back from now. */
static bool read_since(const char *value, char out[INSTANT_TEXT_BYTES])
{
    int64_t ms = 0;

    if (duration_parse(slice_of(value), &ms)) {
        ms = now_ms() - ms;
    } else if (!instant_parse(slice_of(value), &ms)) {
        return false;
    }
    instant_text(ms, out);
    return true;
}

bool query_put_time(struct ctl *ctl, struct buffer *path, const char *name, const char *value)
{
    char instant[INSTANT_TEXT_BYTES];

    if (!value) {
        return true;
    }
    if (!read_since(value, instant)) {
        (void)usage_error(ctl, "--%s is an instant such as 2026-01-31T09:00:00Z or an age such as 2h, not \"%s\"", name,
                          value);
        return false;
    }
    return query_put(ctl, path, name, instant);
}

bool body_put_time(struct ctl *ctl, struct json_writer *w, const char *name, const char *value)
{
    char instant[INSTANT_TEXT_BYTES];

    if (!value) {
        return true;
    }
    if (!read_since(value, instant)) {
        (void)usage_error(ctl, "\"%s\" is neither an instant such as 2026-01-31T09:00:00Z nor an age such as 2h",
                          value);
        return false;
    }
    json_write_text(w, name, instant);
    return true;
}

void body_put(struct json_writer *w, const char *name, const char *text)
{
    if (text) {
        json_write_text(w, name, text);
    }
}

void body_put_names(struct json_writer *w, const char *name, const char *names)
{
    json_array_begin(w, name);
    while (*names) {
        size_t len = strcspn(names, ",");

        json_write_slice(w, NULL, (struct slice){names, len});
        names += len + (names[len] == ',');
    }
    json_array_end(w);
}

bool read_until(const char *value, int64_t *ms)
{
    if (duration_parse(slice_of(value), ms)) {
        *ms += now_ms();
        return true;
    }
    return instant_parse(slice_of(value), ms);
}

bool query_put_tag(struct ctl *ctl, struct buffer *path, const char *tag)
{
    const char *equals = tag ? strchr(tag, '=') : NULL;

    if (!tag) {
        return true;
    }
    if (!equals || equals == tag) {
        (void)usage_error(ctl, "--tag is NAME=VALUE, not \"%s\"", tag);
        return false;
    }
    buffer_printf(path, "&tag.%.*s=%.*s",
                  SLICE_ARG(url_escape((struct slice){tag, (size_t)(equals - tag)}, &ctl->arena)),
                  SLICE_ARG(url_escape(slice_of(equals + 1), &ctl->arena)));
    return true;
}
