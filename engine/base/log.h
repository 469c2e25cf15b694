/*
 * Structured log lines on stderr: an event name and typed fields. One JSON object a line, or readable text on a
 * terminal. The layer that decides logs, once; layers below return. No payloads, no secrets.
 *
 *     log_warn("lease_lost", LOG_I64("shard", 7), LOG_MS("held", held_ms));
 */
#ifndef SAGAD_BASE_LOG_H
#define SAGAD_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"
#include "base/id.h"
#include "base/text.h"

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR, LOG_LEVEL_COUNT };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON, LOG_FORMAT_AUTO /* text on a terminal, else JSON */ };

struct log_field {
    enum {
        LOG_FIELD_END,
        LOG_FIELD_I64,
        LOG_FIELD_TEXT,
        LOG_FIELD_SLICE,
        LOG_FIELD_UUID,
        LOG_FIELD_MS,
        LOG_FIELD_ERR
    } type;
    const char *name;
    union {
        int64_t i64;
        const char *text;
        struct slice slice;
        const struct uuid *uuid;
        const struct err *err;
    } value;
};

#define LOG_I64(n, v) ((struct log_field){LOG_FIELD_I64, (n), {.i64 = (int64_t)(v)}})
#define LOG_MS(n, v) ((struct log_field){LOG_FIELD_MS, (n), {.i64 = (int64_t)(v)}})
#define LOG_TEXT(n, v) ((struct log_field){LOG_FIELD_TEXT, (n), {.text = (v)}})
#define LOG_SLICE(n, v) ((struct log_field){LOG_FIELD_SLICE, (n), {.slice = (v)}})
#define LOG_UUID(n, v) ((struct log_field){LOG_FIELD_UUID, (n), {.uuid = (v)}})
#define LOG_ERR(v) ((struct log_field){LOG_FIELD_ERR, "error", {.err = (v)}})

void log_setup(enum log_level least, enum log_format format); /* before the first call: info, auto */

/*
 * One line by one write(2). Text from outside cannot forge a line or move a cursor, because control characters are
 * escaped. A field that does not fit into 16 KiB is left out whole, and the line says "cut". `fields` ends with
 * LOG_FIELD_END.
 */
void log_write(enum log_level level, const char *event, const struct log_field *fields);
void log_render(struct buffer *out, int64_t at_ms, enum log_level level, const char *event,
                const struct log_field *fields); /* puts that line */

#define LOG_END ((struct log_field){LOG_FIELD_END, 0, {0}})
#define log_debug(event, ...)                                                                                          \
    log_write(LOG_LEVEL_DEBUG, event, (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ) LOG_END})
#define log_info(event, ...)                                                                                           \
    log_write(LOG_LEVEL_INFO, event, (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ) LOG_END})
#define log_warn(event, ...)                                                                                           \
    log_write(LOG_LEVEL_WARN, event, (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ) LOG_END})
#define log_error(event, ...)                                                                                          \
    log_write(LOG_LEVEL_ERROR, event, (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ) LOG_END})

#endif
