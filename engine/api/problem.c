/* Makes every error answer, so that all look alike. */
#include "api/problem.h"

#include "base/json.h"

#define PROBLEM_BYTES_MAX (1 << 20)

/* Joins "message: detail; hint" or "message: detail. Hint."; missing parts leave no trace. */
static struct slice sentence(const struct err *err, struct arena *arena)
{
    bool own_sentence = err->hint[0] >= 'A' && err->hint[0] <= 'Z';

    return arena_printf(arena, "%s%s%s%s%s", err->message, err->detail[0] ? ": " : "", err->detail,
                        !err->hint[0]  ? ""
                        : own_sentence ? ". "
                                       : "; ",
                        err->hint);
}

static void write_faults(struct json_writer *w, const struct faults *faults)
{
    json_array_begin(w, "errors");
    for (size_t i = 0; i < faults->count; i++) {
        json_object_begin(w, NULL);
        json_write_slice(w, "pointer", faults->items[i].pointer.ptr ? faults->items[i].pointer : SLICE(""));
        json_write_slice(w, "detail", faults->items[i].detail);
        json_object_end(w);
    }
    json_array_end(w);
    if (faults->dropped > 0) {
        json_write_i64(w, "errors_left_out", (int64_t)faults->dropped);
    }
}

static void write_raw_if_any(struct json_writer *w, const char *name, struct slice json)
{
    if (json.ptr) {
        json_write_raw(w, name, json);
    }
}

struct slice problem_text(const struct err *err, const struct problem_more *more, struct arena *arena)
{
    static const struct problem_more nothing;
    struct buffer out;
    struct json_writer w;

    more = more ? more : &nothing;
    buffer_init(&out, PROBLEM_BYTES_MAX + more->operation.len + more->pointers.len + more->pattern.len);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_write_slice(&w, "type", arena_printf(arena, PROBLEM_TYPE_PREFIX "%s", err_name(err->code)));
    json_write_text(&w, "title", err_title(err->code));
    json_write_i64(&w, "status", err_http_status(err->code));
    json_write_slice(&w, "detail", sentence(err, arena));
    /* For a failed call it depends on the attempts left: an answer with a time to come again has some. */
    json_write_bool(&w, "retryable",
                    err_retryable(err->code) || (err->code == ERR_TOOL_FAILED && more->retry_after_ms > 0));
    if (more->faults && more->faults->count > 0) {
        write_faults(&w, more->faults);
    }
    write_raw_if_any(&w, "pointers", more->pointers);
    write_raw_if_any(&w, "pattern", more->pattern);
    write_raw_if_any(&w, "operation", more->operation);
    if (more->cursor.ptr) {
        json_write_slice(&w, "cursor", more->cursor);
    }
    json_object_end(&w);
    struct slice text = arena_slice(arena, buffer_slice(&out));

    buffer_fini(&out);
    return text;
}

/* Returns after how many seconds another try makes sense, when the error itself does not say; 0 when no time would
 * help. */
static int64_t patience_s(enum err_code code)
{
    static const struct {
        enum err_code code;
        int64_t s;
    } own[] = {{ERR_BUSY, 1}, {ERR_IN_FLIGHT, 1}, {ERR_CALL_OUT, 1},        {ERR_PROBE_OUT, 1},
               {ERR_RATE, 1}, {ERR_QUOTA, 1},     {ERR_OUTCOME_UNKNOWN, 5}, {ERR_AWAITING, 30}};

    for (size_t i = 0; i < COUNT_OF(own); i++) {
        if (own[i].code == code) {
            return own[i].s;
        }
    }
    return err_http_status(code) == 503 ? 2 : 0;
}

int64_t problem_retry_after_s(const struct err *err, const struct problem_more *more)
{
    return more && more->retry_after_ms > 0 ? (more->retry_after_ms - 1) / 1000 + 1 : patience_s(err->code);
}

void problem_respond(struct http_exchange *exchange, const struct err *err, const struct problem_more *more)
{
    int status = err_http_status(err->code);
    int64_t again_s = problem_retry_after_s(err, more);

    if (status == 401) {
        http_answer_header(exchange, "WWW-Authenticate",
                           more && more->challenge.ptr ? more->challenge : SLICE("Bearer realm=\"sagad\""));
    }
    if (again_s > 0) {
        http_answer_header(exchange, "Retry-After", arena_printf(exchange->arena, "%lld", (long long)again_s));
    }
    http_respond(exchange, status, "application/problem+json", problem_text(err, more, exchange->arena));
}
