/* One place makes every error answer, so that all look alike. */
#include "api/problem.h"

#include "base/json.h"

#define PROBLEM_BYTES_MAX (1 << 20)

/* "Message: detail. Hint." as one text; parts that are missing leave no trace. */
static struct slice sentence(const struct err *err, struct arena *arena)
{
    return arena_printf(arena, "%s%s%s%s%s", err->message, err->detail[0] ? ": " : "", err->detail,
                        err->hint[0] ? "; " : "", err->hint);
}

struct slice problem_text(const struct err *err, const struct faults *faults, struct arena *arena)
{
    struct buffer out;
    struct json_writer w;

    buffer_init(&out, PROBLEM_BYTES_MAX);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_write_slice(&w, "type", arena_printf(arena, PROBLEM_TYPE_PREFIX "%s", err_name(err->code)));
    json_write_text(&w, "title", err_title(err->code));
    json_write_i64(&w, "status", err_http_status(err->code));
    json_write_slice(&w, "detail", sentence(err, arena));
    json_write_bool(&w, "retryable", err_retryable(err->code));
    if (faults && faults->count > 0) {
        json_array_begin(&w, "errors");
        for (size_t i = 0; i < faults->count; i++) {
            json_object_begin(&w, NULL);
            json_write_slice(&w, "pointer", faults->items[i].pointer.ptr ? faults->items[i].pointer : SLICE(""));
            json_write_slice(&w, "detail", faults->items[i].detail);
            json_object_end(&w);
        }
        json_array_end(&w);
        if (faults->dropped > 0) {
            json_write_i64(&w, "errors_left_out", (int64_t)faults->dropped);
        }
    }
    json_object_end(&w);
    struct slice text = arena_slice(arena, buffer_slice(&out));

    buffer_fini(&out);
    return text;
}

void problem_respond(struct http_exchange *exchange, const struct err *err, const struct faults *faults)
{
    int status = err_http_status(err->code);

    if (status == 401) {
        http_answer_header(exchange, "WWW-Authenticate", SLICE("Bearer realm=\"sagad\""));
    } else if (status == 503) {
        http_answer_header(exchange, "Retry-After", err->code == ERR_BUSY ? SLICE("1") : SLICE("2"));
    }
    http_respond(exchange, status, "application/problem+json", problem_text(err, faults, exchange->arena));
}
