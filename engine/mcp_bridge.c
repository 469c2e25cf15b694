/*
 * A line that comes is a message, and becomes the body of a POST; a body that comes back becomes a line. What a message
 * means only the service knows. Two things are done here because the transport asks for them: headers that repeat what
 * the message says, and the end of a wait that a notification cancels, where over HTTP the client would close.
 */
#include "mcp_bridge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/mcp/rpc.h"
#include "base/file.h"
#include "base/list.h"
#include "base/settings.h"
#include "io/http/client.h"
#include "io/loop/loop.h"
#include "io/process/input.h"

#define SERVER_DEFAULT "http://127.0.0.1:8077"
#define LINE_BYTES_MAX ((size_t)64 * 1024 * 1024)
#define ANSWER_BYTES_MAX ((size_t)256 * 1024 * 1024)
#define UNDER_WAY_MAX 64
#define PATIENCE_MS 120000
#define CONNECT_MS 10000
#define HEADERS_MAX 6
#define INTERNAL_ERROR (-32603)

static const struct setting options_table[] = {
    {"server", SETTING_TEXT, NULL, SERVER_DEFAULT, 0, 0, "address of the service; without a path its /mcp", false},
    {"server-file", SETTING_TEXT, NULL, NULL, 0, 0, "file with the address instead, where it is a secret", false},
    {"token-file", SETTING_TEXT, NULL, NULL, 0, 0, "file with the token", false},
    {"ca-file", SETTING_TEXT, NULL, NULL, 0, 0, "certificates that are trusted; default: those of the system", false},
    {"help", SETTING_SWITCH, NULL, NULL, 0, 0, "this text", false},
};

struct bridge {
    struct loop *loop;
    struct http_client *http;
    struct arena arena;
    struct slice url, authorization;
    const char *ca_file;
    struct input input;
    struct list under_way;
    bool ended;
};

struct passage { /* the passage of one message */
    struct list_link link;
    struct bridge *bridge;
    struct arena arena;
    struct rpc_message message;
    struct http_header headers[HEADERS_MAX];
    struct http_request request;
    bool cancelled;
};

static void help(const struct settings *options)
{
    struct buffer out;

    buffer_init(&out, 65536);
    settings_help(options, isatty(STDOUT_FILENO) ? 80 : 0, &out);
    (void)printf("Speak the Model Context Protocol over standard input and output, for hosts that\n"
                 "only start programs. Every message goes to the endpoint /mcp of a service.\n\n"
                 "  sagad mcp [OPTIONS]\n\n%s\n"
                 "Try it:  sagad mcp --token-file build/dev/token\n"
                 "Exit codes: 0 standard input has ended, 1 it cannot be read, 2 wrong usage.\n",
                 buffer_c(&out));
    buffer_fini(&out);
}

/* --- answers --- */

/* A message is one line. JSON has line ends between values only, so that a blank does as well. */
static void say(struct slice message)
{
    for (size_t i = 0; i < message.len; i++) {
        char c = message.ptr[i];

        (void)putchar(c == '\n' || c == '\r' ? ' ' : c);
    }
    (void)putchar('\n');
    (void)fflush(stdout); /* a host that does not read any more is noticed by the end of our input */
}

static void say_error(const struct passage *passage, struct slice text)
{
    struct buffer out;
    struct json_writer w;

    if (!passage->message.id.ptr) {
        return; /* nobody waits for an answer */
    }
    buffer_init(&out, text.len * 6 + 1024);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_write_text(&w, "jsonrpc", "2.0");
    json_write_raw(&w, "id", passage->message.id);
    json_object_begin(&w, "error");
    json_write_i64(&w, "code", INTERNAL_ERROR);
    json_write_slice(&w, "message", text);
    json_object_end(&w);
    json_object_end(&w);
    say(buffer_slice(&out));
    buffer_fini(&out);
}

static void passage_end(struct passage *passage)
{
    struct bridge *bridge = passage->bridge;

    list_remove(&bridge->under_way, &passage->link);
    arena_fini(&passage->arena);
    free(passage);
    if (bridge->ended && list_empty(&bridge->under_way)) {
        loop_stop(bridge->loop);
    }
}

static void on_answer(struct http_request *request)
{
    struct passage *passage = container_of(request, struct passage, request);
    static const struct json_limits limits = {ANSWER_BYTES_MAX, 64, 1024, 400};
    struct slice body = json_trim(request->response_body), detail;
    bool is_json = request->complete && body.len > 0 && json_check(body, &limits, NULL) == ERR_OK;

    if (passage->cancelled) {
        /* nothing more may be said of it */
    } else if (is_json && json_member(body, "jsonrpc").ptr) {
        say(body);
    } else if (is_json && json_member(body, "detail").ptr) { /* a problem: it never came to the endpoint */
        detail = json_string(json_member(body, "detail"), &passage->arena);
        say_error(passage, detail);
    } else if (!request->complete && request->error && strcmp(request->error, "tls") == 0) {
        say_error(passage, arena_printf(&passage->arena,
                                        "sagad was not asked: %s. Is its certificate trusted here? Start `sagad mcp` "
                                        "with --ca-file, the PEM file of its authority",
                                        request->detail));
    } else if (!request->complete) {
        say_error(passage, arena_printf(&passage->arena, "sagad gave no answer (%s): make the same call again",
                                        request->error ? request->error : "cut"));
    } else if (request->status >= 300) {
        say_error(passage, arena_printf(&passage->arena, "the server answered with the status %d", request->status));
    }
    passage_end(passage);
}

/* --- messages --- */

/* A header holds visible ASCII; everything else goes through base64, as the protocol has it. */
static struct slice header_text(struct slice text, struct arena *arena)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct slice code;
    bool plain = true;
    struct buffer out;

    for (size_t i = 0; i < text.len; i++) {
        plain = plain && text.ptr[i] > 0x20 && text.ptr[i] < 0x7f;
    }
    if (plain) {
        return text;
    }
    buffer_init(&out, text.len * 2 + 16);
    for (size_t i = 0; i < text.len; i += 3) {
        size_t left = text.len - i;
        unsigned bits = (unsigned)(unsigned char)text.ptr[i] << 16 |
                        (left > 1 ? (unsigned)(unsigned char)text.ptr[i + 1] << 8 : 0) |
                        (left > 2 ? (unsigned)(unsigned char)text.ptr[i + 2] : 0);

        buffer_put_char(&out, digits[bits >> 18 & 63]);
        buffer_put_char(&out, digits[bits >> 12 & 63]);
        buffer_put_char(&out, left > 1 ? digits[bits >> 6 & 63] : '=');
        buffer_put_char(&out, left > 2 ? digits[bits & 63] : '=');
    }
    code = arena_slice(arena, buffer_slice(&out));
    buffer_fini(&out);
    return arena_printf(arena, "=?base64?%.*s?=", SLICE_ARG(code));
}

static void put_header(struct passage *passage, const char *name, struct slice value)
{
    CHECK(passage->request.header_count < HEADERS_MAX);
    passage->headers[passage->request.header_count++] = (struct http_header){slice_of(name), value};
}

static void put_headers(struct passage *passage)
{
    const struct rpc_message *message = &passage->message;
    const char *named = message->method.ptr ? rpc_name_in_header(message->method) : NULL;
    struct slice name = named ? json_string(json_member(message->params, named), &passage->arena) : SLICE_NONE;

    put_header(passage, "Content-Type", SLICE("application/json"));
    put_header(passage, "Accept", SLICE("application/json"));
    if (passage->bridge->authorization.ptr) {
        put_header(passage, "Authorization", passage->bridge->authorization);
    }
    if (message->era == ERA_STATELESS && message->method.ptr) {
        put_header(passage, "MCP-Protocol-Version", header_text(message->version, &passage->arena));
        put_header(passage, "Mcp-Method", header_text(message->method, &passage->arena));
        if (name.ptr) {
            put_header(passage, "Mcp-Name", header_text(name, &passage->arena));
        }
    }
}

/* Over HTTP a client ends its wait by closing its request. */
static bool cancels(struct bridge *bridge, const struct rpc_message *message)
{
    struct list_link *link = list_first(&bridge->under_way);
    struct slice id = json_trim(json_member(message->params, "requestId"));

    if (!slice_is(message->method, "notifications/cancelled")) {
        return false;
    }
    for (; link; link = list_after(&bridge->under_way, link)) {
        struct passage *passage = container_of(link, struct passage, link);

        if (passage->message.id.ptr && slice_equal(json_trim(passage->message.id), id) && !passage->cancelled) {
            passage->cancelled = true;
            http_cancel(&passage->request);
            break;
        }
    }
    return true;
}

/* A message that the service would not take, such as one that is too large, has an id all the same, and its host waits
 * for an answer to that. */
static struct slice id_of_wrong(struct slice line)
{
    static const struct json_limits limits = {LINE_BYTES_MAX, 64, 1024, 400};
    struct slice id = SLICE_NONE;

    if (json_check(line, &limits, NULL) == ERR_OK && json_type(line) == JSON_OBJECT) {
        id = json_member(line, "id");
    }
    return id.len <= RPC_ID_BYTES_MAX ? id : SLICE_NONE;
}

static void on_line(struct input *input, struct slice line)
{
    struct bridge *bridge = container_of(input, struct bridge, input);
    struct passage *passage = memory_alloc(sizeof(*passage));
    struct rpc_fault fault;

    arena_init(&passage->arena, 4096);
    passage->bridge = bridge;
    list_push(&bridge->under_way, &passage->link);
    line = arena_slice(&passage->arena, line);
    if (!rpc_message_read(line, &passage->arena, &passage->message, &fault)) {
        passage->message.method = SLICE_NONE; /* it goes on all the same: the service says what is wrong */
        passage->message.id = id_of_wrong(line);
    }
    if (cancels(bridge, &passage->message)) {
        passage_end(passage);
        return;
    }
    if (bridge->under_way.count > UNDER_WAY_MAX) {
        say_error(passage, SLICE("too many calls are under way: make this one again when some have ended"));
        passage_end(passage);
        return;
    }
    passage->request = (struct http_request){.method = SLICE("POST"),
                                             .url = bridge->url,
                                             .body = line,
                                             .headers = passage->headers,
                                             .timeout_ms = PATIENCE_MS,
                                             .connect_timeout_ms = CONNECT_MS,
                                             .response_bytes_max = ANSWER_BYTES_MAX,
                                             .ca_file = bridge->ca_file,
                                             .arena = &passage->arena,
                                             .done = on_answer};
    put_headers(passage);
    http_send(bridge->http, &passage->request);
}

static void on_long(struct input *input)
{
    (void)input;
    (void)fprintf(stderr, "sagad: a message is longer than %zu bytes and was dropped\n", LINE_BYTES_MAX);
}

static void on_end(struct input *input)
{
    struct bridge *bridge = container_of(input, struct bridge, input);

    bridge->ended = true;
    if (list_empty(&bridge->under_way)) {
        loop_stop(bridge->loop);
    }
}

/* --- start --- */

static enum err_code read_word(struct bridge *bridge, const char *path, const char *what, struct slice *out,
                               struct err *err)
{
    enum err_code code = file_read(path, what, 64, FILE_OF_ANYBODY, &bridge->arena, out, err);

    *out = code == ERR_OK ? slice_trim(*out) : SLICE_NONE;
    return code;
}

static bool has_path(struct slice url)
{
    const char *at = memmem(url.ptr, url.len, "://", 3);
    const char *slash = at ? memchr(at + 3, '/', (size_t)(url.ptr + url.len - at - 3)) : NULL;

    return slash && slash + 1 < url.ptr + url.len;
}

static enum err_code options_take(struct bridge *bridge, const struct settings *options, struct err *err)
{
    const char *token = settings_text(options, "token-file"), *server = settings_text(options, "server-file");
    struct slice url = slice_of(settings_text(options, "server")), text;

    if (server && read_word(bridge, server, "address", &url, err) != ERR_OK) {
        return err->code;
    }
    if (!slice_starts_with(url, "http://") && !slice_starts_with(url, "https://")) {
        (void)err_set(err, ERR_CONFIG, "the address of the service does not begin with http:// or https://");
        err_hint(err, "sagad mcp --help");
        return ERR_CONFIG;
    }
    while (url.ptr[url.len - 1] == '/') {
        url.len--;
    }
    bridge->url = has_path(url) ? url : arena_printf(&bridge->arena, "%.*s/mcp", SLICE_ARG(url));
    bridge->ca_file = settings_text(options, "ca-file");
    if (!token) {
        return ERR_OK;
    }
    if (read_word(bridge, token, "token", &text, err) != ERR_OK) {
        return err->code;
    }
    bridge->authorization = arena_printf(&bridge->arena, "Bearer %.*s", SLICE_ARG(text));
    return ERR_OK;
}

static enum err_code serve(struct bridge *bridge, struct err *err)
{
    const char *fault;

    bridge->loop = loop_new();
    bridge->http = http_client_new(bridge->loop, UNDER_WAY_MAX, UNDER_WAY_MAX);
    list_init(&bridge->under_way);
    bridge->input =
        (struct input){.line_bytes_max = LINE_BYTES_MAX, .on_line = on_line, .on_long = on_long, .on_end = on_end};
    fault = input_open(bridge->loop, &bridge->input);
    if (fault) {
        (void)err_set(err, ERR_IO, "%s", fault);
    } else {
        loop_run(bridge->loop);
    }
    http_client_free(bridge->http);
    loop_free(bridge->loop);
    return fault ? ERR_IO : ERR_OK;
}

int mcp_bridge(int argc, char **argv)
{
    struct bridge bridge = {0};
    struct settings options;
    struct err err = {0};
    int words = argc, exit_code = 2;

    arena_init(&bridge.arena, 4096);
    settings_init(&options, options_table, COUNT_OF(options_table));
    if (settings_from_args(&options, argc, argv, 1, &words, &err) == ERR_OK) {
        if (words < argc) {
            (void)err_set(&err, ERR_CONFIG, "\"%s\" is not understood", argv[words]);
            err_hint(&err, "sagad mcp --help");
        } else if (settings_switch(&options, "help")) {
            help(&options);
            exit_code = 0;
        } else if (options_take(&bridge, &options, &err) == ERR_OK) {
            exit_code = serve(&bridge, &err) == ERR_OK ? 0 : 1;
        }
    }
    if (err.code != ERR_OK) {
        err_print(&err, "sagad");
    }
    settings_fini(&options);
    arena_fini(&bridge.arena);
    return exit_code;
}
