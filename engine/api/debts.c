/* Debts: effects that stand although their sagas have ended. The list is JSON like every list, or CSV for a
 * spreadsheet. */
#include <string.h>

#include "api/request.h"

#define CSV_BYTES_MAX ((size_t)16 << 20) /* a page of the engine is no larger, either */

static const char *const columns[] = {"saga",      "saga_name", "business_id", "step",        "tool",
                                      "operation", "cost",      "currency",    "took_effect", "since",
                                      "result",    "ended_at",  "settled"};

/* RFC 4180. A text that a spreadsheet would take for a formula gets an apostrophe, which keeps it a text. */
static void put_cell(struct buffer *out, struct slice text)
{
    bool is_formula = text.len > 0 && strchr("=+-@\t\r", text.ptr[0]) != NULL;

    buffer_put_text(out, is_formula ? "\"'" : "\"");
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '"') {
            buffer_put_char(out, '"');
        }
        buffer_put_char(out, text.ptr[i]);
    }
    buffer_put_char(out, '"');
}

static void put_row(struct buffer *out, struct slice item, struct arena *arena)
{
    for (size_t i = 0; i < COUNT_OF(columns); i++) {
        struct slice value = json_member(item, columns[i]);

        buffer_put_text(out, i ? "," : "");
        if (json_type(value) == JSON_NUMBER) {
            buffer_put_slice(out, value);
        } else if (json_type(value) != JSON_NULL) {
            put_cell(out, json_type(value) == JSON_STRING ? json_string(value, arena) : value);
        }
    }
    buffer_put_text(out, "\r\n");
}

static void on_csv(struct engine_request *asked)
{
    struct api_request *request = request_of(asked);
    struct json_walk walk = json_walk(asked->answer);
    struct buffer out;
    struct slice item;

    if (request_failed(request)) {
        return;
    }
    buffer_init(&out, CSV_BYTES_MAX);
    for (size_t i = 0; i < COUNT_OF(columns); i++) {
        buffer_printf(&out, "%s%s", i ? "," : "", columns[i]);
    }
    buffer_put_text(&out, "\r\n");
    while (json_next_element(&walk, &item)) {
        put_row(&out, item, request->arena);
    }
    if (asked->next_cursor.ptr) {
        http_answer_header(request->exchange, "Next-Cursor", asked->next_cursor);
    }
    if (out.overflow) {
        request_problem(request, ERR_TOO_LARGE, "this page is too large as CSV; ask for fewer with \"limit\"");
    } else {
        request_answer_text(request, 200, "text/csv; charset=utf-8; header=present",
                            arena_slice(request->arena, buffer_slice(&out)));
    }
    buffer_fini(&out);
}

void handle_list_debts(struct api_request *request)
{
    struct engine_request *asked = &request->asked;
    struct slice format = request_query(request, "format");
    bool is_csv = slice_is(format, "csv");

    if (!request_read_limit(request)) {
        return;
    }
    if (format.ptr && !is_csv && !slice_is(format, "json")) {
        request_problem(request, ERR_MALFORMED, "the query parameter \"format\" is json or csv");
        return;
    }
    if (!request_read_bool(request, "settled", &asked->in.debts.has_settled, &asked->in.debts.settled)) {
        return;
    }
    asked->in.debts.group_by = request_query(request, "group_by");
    if (is_csv && asked->in.debts.group_by.ptr) {
        request_problem(request, ERR_MALFORMED, "groups come as JSON: leave \"format\" or \"group_by\" out");
        return;
    }
    asked->in.debts.saga = request_query(request, "saga");
    asked->in.debts.tool = request_query(request, "tool");
    asked->in.debts.limit = request->limit;
    asked->in.debts.cursor = request_query(request, "cursor");
    request_ask(request, engine_list_debts, is_csv ? on_csv : request_on_items);
}
