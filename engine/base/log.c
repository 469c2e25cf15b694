/* Log lines are composed in a buffer and written at once, so that lines of several writers do not mix. */
#include "base/log.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/instant.h"
#include "base/json.h"

#define LINE_BYTES_MAX 16384
#define TAIL_BYTES_MAX 32 /* room for the end of a line, and for the words that say it was cut */

static struct {
    enum log_level least;
    enum log_format format;
} log_settings = {LOG_LEVEL_INFO, LOG_FORMAT_AUTO};

static const char *const level_names[LOG_LEVEL_COUNT] = {"debug", "info", "warn", "error"};

void log_setup(enum log_level least, enum log_format format)
{
    log_settings.least = least;
    log_settings.format = format;
}

static bool is_json(void)
{
    if (log_settings.format == LOG_FORMAT_AUTO) {
        log_settings.format = isatty(STDERR_FILENO) ? LOG_FORMAT_TEXT : LOG_FORMAT_JSON;
    }
    return log_settings.format == LOG_FORMAT_JSON;
}

/* json_put_string() escapes what JSON asks for; a terminal also obeys DEL and C1 (U+0080 to U+009F). */
static void put_text(struct buffer *out, struct slice text)
{
    size_t first = out->len;

    json_put_string(out, text);
    for (size_t i = first; i + 1 < out->len; i++) {
        unsigned char c = (unsigned char)out->ptr[i], next = (unsigned char)out->ptr[i + 1];

        if (c == 0x7f) {
            out->ptr[i] = '?';
        } else if (c == 0xc2 && next < 0xa0) {
            out->ptr[i] = out->ptr[i + 1] = '?';
        }
    }
}

static void put_key(struct buffer *out, const char *name)
{
    if (is_json()) {
        buffer_printf(out, ",\"%s\":", name);
    } else {
        buffer_printf(out, " %s=", name);
    }
}

static void put_pair(struct buffer *out, const char *name, struct slice text)
{
    put_key(out, name);
    put_text(out, text);
}

static void put_field(struct buffer *out, const struct log_field *field)
{
    char text[UUID_TEXT_BYTES];

    switch (field->type) {
    case LOG_FIELD_END:
        break;
    case LOG_FIELD_I64:
    case LOG_FIELD_MS:
        put_key(out, field->name);
        buffer_printf(out, "%lld", (long long)field->value.i64);
        break;
    case LOG_FIELD_TEXT:
        put_pair(out, field->name, slice_of(field->value.text));
        break;
    case LOG_FIELD_SLICE:
        put_pair(out, field->name, field->value.slice);
        break;
    case LOG_FIELD_UUID:
        uuid_text(field->value.uuid, text);
        put_pair(out, field->name, slice_of(text));
        break;
    case LOG_FIELD_ERR:
        put_pair(out, field->name, slice_of(field->value.err->message));
        if (field->value.err->detail[0]) {
            put_pair(out, "detail", slice_of(field->value.err->detail));
        }
        if (field->value.err->hint[0]) {
            put_pair(out, "hint", slice_of(field->value.err->hint));
        }
        break;
    }
}

void log_render(struct buffer *out, int64_t at_ms, enum log_level level, const char *event,
                const struct log_field *fields)
{
    char at[INSTANT_TEXT_BYTES];
    size_t bytes_max = out->bytes_max;
    bool cut = false;

    instant_text(at_ms, at);
    buffer_printf(out, is_json() ? "{\"ts\":\"%s\",\"level\":\"%s\",\"event\":\"%s\"" : "%s %-5s %s", at,
                  level_names[level], event);
    out->bytes_max -= bytes_max > TAIL_BYTES_MAX ? TAIL_BYTES_MAX : 0;
    for (; fields->type != LOG_FIELD_END; fields++) {
        size_t before = out->len;

        put_field(out, fields);
        if (out->overflow) {
            out->len = before; /* half a field would break the line */
            out->overflow = false;
            cut = true;
        }
    }
    out->bytes_max = bytes_max;
    if (cut) {
        buffer_put_text(out, is_json() ? ",\"cut\":true" : " cut=true");
    }
    buffer_put_text(out, is_json() ? "}\n" : "\n");
}

void log_write(enum log_level level, const char *event, const struct log_field *fields)
{
    struct timespec now;
    struct buffer out;

    if (level < log_settings.least) {
        return;
    }
    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
    buffer_init(&out, LINE_BYTES_MAX);
    log_render(&out, (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000, level, event, fields);
    ssize_t written;

    do {
        written = write(STDERR_FILENO, out.ptr, out.len);
    } while (written < 0 && errno == EINTR); /* other failures are ignored: without stderr there is nobody to tell */
    buffer_fini(&out);
}
