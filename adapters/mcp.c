/*
 * A tool of a Model Context Protocol server.
 *
 * The protocol has no idempotency key, and its newest revision lets a client that got a broken answer ask again under a
 * new id. So the key goes into `_meta`, where a server that knows it finds it. This file also trusts answers less than
 * their words suggest.
 */
#include "adapters/mcp.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "adapters/adapters.h"
#include "adapters/answer.h"
#include "adapters/http_parts.h"
#include "adapters/mcp_list.h"
#include "adapters/program.h"
#include "adapters/tool_settings.h"
#include "base/json.h"

#define TOOL_NAME_BYTES_MAX 128

/* --- registration -------------------------------------------------------------------------------------------- */

static bool tool_name_is_sound(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              (c != '\0' && strchr("_-./", c)))) {
            return false;
        }
    }
    return name.len > 0 && name.len <= TOOL_NAME_BYTES_MAX;
}

static void check_tool(struct slice value, struct slice pointer, struct faults *faults)
{
    if (!tool_name_is_sound(json_string(value, faults->arena))) {
        faults_add(faults, pointer, "the name of a tool is 1 to 128 letters, digits, \"_\", \"-\", \".\" and \"/\"");
    }
}

static void check_headers(struct slice value, struct slice pointer, struct faults *faults)
{
    static const char *const ours[] = {"content-type",         "accept",     "mcp-session-id",
                                       "mcp-protocol-version", "mcp-method", "mcp-name"};
    struct json_walk walk = json_walk(value);
    struct slice name, header;

    http_check_headers(value, pointer, faults);
    while (json_next_member(&walk, &name, &header)) {
        for (size_t i = 0; i < COUNT_OF(ours); i++) {
            if (name.len == strlen(ours[i]) && strncasecmp(name.ptr, ours[i], name.len) == 0) {
                faults_add(faults, json_pointer_join(faults->arena, pointer, name),
                           "the protocol itself sets the header \"%s\"", ours[i]);
            }
        }
    }
}

static const struct tool_setting server_http[] = {
    {"url", BIT(JSON_STRING), true, http_check_url, http_check_url_template},
    {"headers", BIT(JSON_OBJECT), false, check_headers},
    {"bearer", BIT(JSON_STRING), false, NULL},
    {"ca_file", BIT(JSON_STRING), false, NULL},
    {"client_cert", BIT(JSON_STRING), false, NULL},
};

static const struct tool_setting server_stdio[] = {
    {"argv", BIT(JSON_ARRAY), true, program_check_argv, program_refuse_template},
    {"env", BIT(JSON_OBJECT), false, program_check_env},
    {"cwd", BIT(JSON_STRING), false, NULL},
};

static bool header_is_given(struct slice headers, const char *wanted)
{
    struct json_walk walk = json_walk(headers);
    struct slice name, value;

    while (json_type(headers) == JSON_OBJECT && json_next_member(&walk, &name, &value)) {
        if (name.len == strlen(wanted) && strncasecmp(name.ptr, wanted, name.len) == 0) {
            return true;
        }
    }
    return false;
}

static void check_server(struct slice value, struct slice pointer, struct faults *faults)
{
    bool url = json_member(value, "url").ptr, argv = json_member(value, "argv").ptr;

    if (url == argv) {
        faults_add(faults, pointer,
                   "a server has either a \"url\", for streamable HTTP, or an \"argv\", for a program that is spoken "
                   "to over standard input");
        return;
    }
    (void)settings_check(value, pointer, url ? server_http : server_stdio,
                         url ? COUNT_OF(server_http) : COUNT_OF(server_stdio),
                         faults); /* the value is an object, because it has a member */
    if (json_member(value, "bearer").ptr && header_is_given(json_member(value, "headers"), "authorization")) {
        faults_add(faults, json_pointer_join(faults->arena, pointer, SLICE("bearer")),
                   "\"bearer\" and the header Authorization are the same; keep one");
    }
}

static void refuse_server_template(struct slice value, struct slice pointer, struct faults *faults)
{
    (void)value; /* a template may become anything */
    faults_add(faults, pointer, "the server may not come from a template; write the object with \"url\" or \"argv\"");
}

static const struct tool_setting settings_table[] = {
    {"server", BIT(JSON_OBJECT), true, check_server, refuse_server_template},
    {"tool", BIT(JSON_STRING), true, check_tool},
    {"arguments", BIT(JSON_OBJECT), false, NULL},
};

static void mcp_check(struct slice settings, struct slice pointer, enum key_place place, struct faults *faults)
{
    /* The place of the key is checked whether or not the settings are an object. */
    (void)settings_check(settings, pointer, settings_table, COUNT_OF(settings_table), faults);
    if (place != KEY_PLACE_DEFAULT && place != KEY_PLACE_META) {
        faults_add(faults, pointer, "a tool of an MCP server gets its key in _meta: {\"meta\": NAME}");
    }
}

/* --- the meaning of an answer --------------------------------------------------------------------------------------
 * */

static struct slice response_json(struct mcp_call *m, struct slice result, struct slice error, bool is_error,
                                  int status)
{
    struct buffer text;
    struct json_writer w;
    struct slice response;

    buffer_init(&text, SIZE_MAX / 2); /* each part is bounded already */
    json_writer_init(&w, &text);
    json_object_begin(&w, NULL);
    json_write_raw(&w, "result", result);
    json_write_raw(&w, "structuredContent", json_member(result, "structuredContent"));
    json_write_raw(&w, "content", json_member(result, "content"));
    json_write_bool(&w, "isError", is_error);
    json_write_raw(&w, "error", error);
    if (status) {
        json_write_i64(&w, "status", status);
    } else {
        json_write_null(&w, "status");
    }
    json_object_end(&w);
    response = arena_slice(m->call.arena, buffer_slice(&text));
    buffer_fini(&text);
    return response;
}

static void outcome_set(struct mcp_call *m, enum outcome_kind kind, struct slice error, const char *detail)
{
    m->call.outcome = (struct outcome){.kind = kind, .error = error, .detail = slice_of(detail)};
}

/* Does the message say that the result breaks the tool's own schema? Then the request was fine, and the tool has run.
 * */
static bool message_blames_the_result(struct slice message)
{
    return memmem(message.ptr ? message.ptr : "", message.len, "utput", 5) ||
           memmem(message.ptr ? message.ptr : "", message.len, "tructured", 9);
}

/* Codes of JSON-RPC for a request that was not read, is not valid, or has no such method or wrong parameters, and codes
 * of the protocol for wrong headers and versions. */
static bool code_is_refusal(int64_t code)
{
    return code == -32700 || (code <= -32600 && code >= -32602) || (code <= -32020 && code >= -32022);
}

/*
 * The common server libraries put their own refusal into a result: isError, and one text, which may begin with "MCP
 * error -32602". A tool that calls another server may pass on such a text when half its work is done. So a text counts
 * only when it names this tool and is one that a server writes before the tool runs.
 */
static bool result_is_refusal(struct mcp_call *m, struct slice result)
{
    struct slice content = json_member(result, "content"), first = json_element(content, 0);
    struct slice text = json_string(json_member(first, "text"), m->call.arena);
    struct slice arguments =
        arena_printf(m->call.arena, "Input validation error: Invalid arguments for tool %.*s:", SLICE_ARG(m->tool));
    struct slice missing = arena_printf(m->call.arena, "Tool %.*s not found", SLICE_ARG(m->tool));
    struct slice disabled = arena_printf(m->call.arena, "Tool %.*s disabled", SLICE_ARG(m->tool));

    if (json_count(content) != 1 || !json_string_is(json_member(first, "type"), "text")) {
        return false;
    }
    if (slice_starts_with(text, "MCP error -32602: ")) {
        text = (struct slice){text.ptr + 18, text.len - 18};
    }
    return (text.len > arguments.len && memcmp(text.ptr, arguments.ptr, arguments.len) == 0) ||
           slice_equal(text, missing) || slice_equal(text, disabled);
}

static void error_take(struct mcp_call *m, const struct mcp_message *message, int status)
{
    struct arena *arena = m->call.arena;
    struct slice words = json_string(json_member(message->error, "message"), arena);
    struct slice error = arena_printf(arena, "mcp%lld", (long long)message->code);
    enum outcome_kind by_status = status >= 300 ? http_status_outcome(status) : OUTCOME_UNKNOWN;

    if (message->code == -32602 && message_blames_the_result(words)) {
        outcome_set(m, OUTCOME_UNKNOWN, error,
                    "The server says that the result of the tool is not what it should be: so it has run.");
    } else if (code_is_refusal(message->code)) {
        outcome_set(m, OUTCOME_FAILED, error, "The server refused the request.");
    } else {
        /* The server reports an error. A status 4xx promises that nothing happened, and 429 that another try may help.
         * */
        outcome_set(m, by_status == OUTCOME_FAILED || by_status == OUTCOME_RETRY ? by_status : OUTCOME_UNKNOWN, error,
                    "The server answered with an error that does not say whether the tool has run.");
    }
    m->call.response = response_json(m, SLICE_NONE, message->error, false, status);
}

void mcp_answer_take(struct mcp_call *m, const struct mcp_message *message, int status)
{
    struct slice result = message->result, type = json_member(result, "resultType");
    bool is_error = false;

    if (message->error.ptr) {
        error_take(m, message, status);
        return;
    }
    if ((type.ptr && !json_string_is(type, "complete")) ||
        (json_member(result, "task").ptr && !json_member(result, "content").ptr)) {
        answer_unknown(
            &m->call, "incomplete",
            "The server did not complete the call but wants something first, or goes on without saying how it ends.");
        return;
    }
    if (json_member(result, "isError").ptr && !json_bool(json_member(result, "isError"), &is_error)) {
        answer_unknown(&m->call, "unreadable", "\"isError\" of the result is no boolean.");
        return;
    }
    result = arena_slice(m->call.arena, result); /* the line that holds it is overwritten by the next one */
    m->call.response = response_json(m, result, SLICE_NONE, is_error, status);
    if (!is_error) {
        struct slice structured = json_member(result, "structuredContent");

        m->call.outcome = (struct outcome){.kind = OUTCOME_COMPLETED,
                                           .result = structured.ptr ? structured : json_member(result, "content")};
    } else if (result_is_refusal(m, result)) {
        outcome_set(m, OUTCOME_FAILED, SLICE("mcp-32602"), "The server refused the request.");
    } else {
        outcome_set(m, m->call.harmless ? OUTCOME_FAILED : OUTCOME_UNKNOWN, SLICE("tool-error"),
                    "The tool says that it failed.");
    }
}

void mcp_refused(struct mcp_call *m, int status)
{
    struct arena *arena = m->call.arena;

    outcome_set(m, http_status_outcome(status), arena_printf(arena, "http-%d", status), "");
    m->call.outcome.detail = arena_printf(arena, "The server answered with status %d.", status);
    m->call.response = response_json(m, SLICE_NONE, SLICE_NONE, false, status);
}

/* --- calls ------------------------------------------------------------------------------------------------------ */

static struct mcp_state *mcp_state_of(struct adapter_host *host)
{
    struct mcp_state *state = host->mcp;

    if (!state) {
        state = memory_alloc(sizeof(*state));
        state->host = host;
        list_init(&state->sessions);
        list_init(&state->servers);
        children_init(&state->children, host->loop);
        state->children.programs = host->programs;
        host->mcp = state;
    }
    return state;
}

static void on_end(struct deferred *deferred)
{
    call_settle(&container_of(deferred, struct mcp_call, end)->call);
}

void mcp_end(struct mcp_call *m)
{
    loop_defer(m->call.host->loop, &m->end, on_end);
}

struct slice mcp_request_write(struct mcp_call *m, bool modern)
{
    const struct call *call = &m->call;
    struct slice name = call->key_place == KEY_PLACE_META ? call->key_name : SLICE(MCP_KEY_NAME);

    m->id = ++m->state->id_last;
    if (m->lists) {
        return mcp_write_list(m->id, m->cursor, modern, call->arena);
    }
    return mcp_write_call(m->id, m->tool, m->arguments, call->send_key ? name : SLICE_NONE, call->key, &call->trace,
                          modern, call->arena);
}

/* Returns NULL, or a sentence that says what is wrong with the rendered settings. */
static const char *settings_take(struct mcp_call *m)
{
    struct slice settings = m->call.settings, arguments = json_trim(json_member(settings, "arguments"));

    m->server = json_trim(json_member(settings, "server"));
    m->tool = json_string(json_member(settings, "tool"), m->call.arena);
    m->arguments = arguments.ptr ? arguments : json_trim(m->call.args);
    if (json_type(m->server) != JSON_OBJECT ||
        !json_member(m->server, "url").ptr == !json_member(m->server, "argv").ptr) {
        return "The rendered \"server\" is no object with either \"url\" or \"argv\".";
    }
    if (!m->lists && !tool_name_is_sound(m->tool)) {
        return "The rendered \"tool\" is no name of a tool.";
    }
    if (!m->arguments.ptr || json_type(m->arguments) == JSON_NULL) {
        m->arguments = SLICE("{}");
    }
    return json_type(m->arguments) == JSON_OBJECT ? NULL : "The arguments of a tool of an MCP server are an object.";
}

static void mcp_begin(struct call *call)
{
    struct mcp_call *m = container_of(call, struct mcp_call, call);
    const char *fault = settings_take(m);

    m->state = mcp_state_of(call->host);
    m->due_boot_ms = loop_boot_ms(call->host->loop) + call->timeout_ms;
    if (!fault) {
        fault = json_member(m->server, "url").ptr ? mcp_http_begin(m) : mcp_stdio_begin(m);
    }
    if (fault) {
        answer_unsent(call, false, "bad-settings", fault);
        mcp_end(m);
    }
}

static void list_begin(struct call *call)
{
    struct mcp_call *m = container_of(call, struct mcp_call, call);

    m->lists = true;
    m->cursor = json_string(json_member(call->settings, "cursor"), call->arena);
    mcp_begin(call);
}

static void mcp_cancel(struct call *call)
{
    struct mcp_call *m = container_of(call, struct mcp_call, call);

    if (m->session) {
        mcp_http_cancel(m);
    } else if (m->process) {
        mcp_stdio_cancel(m);
    }
}

static void mcp_close(struct adapter_host *host)
{
    struct mcp_state *state = host->mcp;

    if (state) {
        mcp_http_close(state);
        mcp_stdio_close(state);
        free(state);
        host->mcp = NULL;
    }
}

const struct adapter adapter_mcp = {
    .name = "mcp",
    .call_size = sizeof(struct mcp_call),
    .check = mcp_check,
    .begin = mcp_begin,
    .cancel = mcp_cancel,
    .close = mcp_close,
};

const struct adapter adapter_mcp_list = {
    .name = "mcp tools/list",
    .call_size = sizeof(struct mcp_call),
    .check = mcp_check,
    .begin = list_begin,
    .cancel = mcp_cancel,
    .close = mcp_close,
};
