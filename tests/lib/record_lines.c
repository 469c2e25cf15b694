/* See record_lines.h. */
#include <string.h>

#include "tests/lib/record_lines.h"
#include "tests/lib/test.h"

#include "base/instant.h"

void record_line_put(struct buffer *log, const struct record *record, const struct definition *definition)
{
    struct buffer text;
    char at[INSTANT_TEXT_BYTES];

    buffer_init(&text, (size_t)4 << 20);
    record_write(record, definition, &text);
    assert_false(text.overflow);
    instant_text(record->at_ms, at);
    buffer_printf(log, "{\"seq\":%llu,\"at\":\"%s\",", (unsigned long long)record->seq, at);
    buffer_put(log, text.ptr + 1, text.len - 1);
    buffer_put_char(log, '\n');
    buffer_fini(&text);
}

size_t record_line_next(const struct buffer *log, size_t from, struct slice *line)
{
    const char *end = memchr(log->ptr + from, '\n', log->len - from);

    *line = (struct slice){log->ptr + from, (size_t)(end - (log->ptr + from))};
    return from + line->len + 1;
}

void record_line_fold(struct saga *saga, struct slice line, struct arena *arena)
{
    struct record record;
    struct err err;

    if (record_read(line, saga->definition, arena, &record, &err) != ERR_OK) {
        fail_msg("%s\n%.*s", err.message, SLICE_ARG(line));
    }
    if (!record_check(saga, &record, &err)) {
        fail_msg("%s\n%.*s", err.message, SLICE_ARG(line));
    }
    saga_apply(saga, &record);
    if (!saga_is_sound(saga)) {
        fail_msg("the state is not sound after %.*s", SLICE_ARG(line));
    }
}
