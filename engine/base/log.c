#include "base/log.h"

#include <time.h>
#include <unistd.h>

#include "base/instant.h"
#include "base/json.h"

static struct {
    enum log_level least;
    enum log_format format;
} log_settings = {LOG_LEVEL_INFO, LOG_FORMAT_JSON};

static const char *const level_names[LOG_LEVEL_COUNT] = {"debug", "info", "warn", "error"};

void log_setup(enum log_level least, enum log_format format)
{
    log_settings.least = least;
    log_settings.format = format;
}

static void put_key(struct buffer *out, const char *name)
{
    if (log_settings.format == LOG_FORMAT_JSON) {
        buffer_printf(out, ",\"%s\":", name);
    } else {
        buffer_printf(out, " %s=", name);
    }
}

static void put_field(struct buffer *out, const struct log_field *field)
{
    char text[UUID_TEXT_BYTES];

    put_key(out, field->name);
    switch (field->type) {
    case LOG_FIELD_END:
        break;
    case LOG_FIELD_I64:
    case LOG_FIELD_MS:
        buffer_printf(out, "%lld", (long long)field->value.i64);
        break;
    case LOG_FIELD_TEXT:
        json_put_string(out, field->value.text ? slice_of(field->value.text) : SLICE(""));
        break;
    case LOG_FIELD_SLICE:
        json_put_string(out, field->value.slice);
        break;
    case LOG_FIELD_UUID:
        uuid_text(field->value.uuid, text);
        json_put_string(out, slice_of(text));
        break;
    case LOG_FIELD_ERR:
        json_put_string(out, slice_of(field->value.err->message));
        if (field->value.err->detail[0]) {
            put_key(out, "detail");
            json_put_string(out, slice_of(field->value.err->detail));
        }
        if (field->value.err->hint[0]) {
            put_key(out, "hint");
            json_put_string(out, slice_of(field->value.err->hint));
        }
        break;
    }
}

void log_write(enum log_level level, const char *event, const struct log_field *fields)
{
    if (level < log_settings.least) {
        return;
    }
    struct timespec now;
    char at[INSTANT_TEXT_BYTES];
    struct buffer out;

    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
    instant_text((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000, at);
    buffer_init(&out, 16384);
    if (log_settings.format == LOG_FORMAT_JSON) {
        buffer_printf(&out, "{\"ts\":\"%s\",\"level\":\"%s\",\"event\":\"%s\"", at, level_names[level], event);
    } else {
        buffer_printf(&out, "%s %-5s %s", at, level_names[level], event);
    }
    for (; fields->type != LOG_FIELD_END; fields++) {
        put_field(&out, fields);
    }
    buffer_put_text(&out, log_settings.format == LOG_FORMAT_JSON ? "}\n" : "\n");
    ssize_t written = write(STDERR_FILENO, out.ptr, out.len); /* one line, one write; where stderr is gone there is nobody to tell */

    (void)written;
    buffer_fini(&out);
}
