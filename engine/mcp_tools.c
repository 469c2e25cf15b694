/*
 * Asks a server for its tools with the client that will call them later, without a database and without an engine. What
 * does not work here would not work there.
 */
#include "mcp_tools.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/adapter.h"
#include "adapters/mcp_list.h"
#include "base/json.h"
#include "base/settings.h"
#include "io/http/client.h"
#include "io/loop/loop.h"
#include "mcp_draft.h"

#define PATIENCE_MS 10000
#define PAGES_MAX 100
#define PAGE_BYTES_MAX ((size_t)4 * 1024 * 1024)
#define CONNECTIONS_MAX 2
#define SECRET_PREFIX "SAGAD_SECRET_"

static const struct setting options_table[] = {
    {"url", SETTING_TEXT, NULL, NULL, 0, 0, "the endpoint of a server over streamable HTTP", false},
    {"bearer-env", SETTING_TEXT, NULL, NULL, 0, 0,
     "the environment variable with its token; in the draft it becomes secret(\"name\")", false},
    {"prefix", SETTING_TEXT, NULL, "", 0, 0, "put before each name: crm. makes crm.update_customer", false},
    {"help", SETTING_SWITCH, NULL, NULL, 0, 0, "this text", false},
};

struct asking {
    struct adapter_host host; /* the address in a call leads back to this struct */
    struct arena arena;
    struct slice server; /* JSON with the token */
    int64_t due_boot_ms;
    size_t pages;
    struct mcp_draft draft;
    struct err err; /* ERR_OK means that the whole list is there */
};

static void help(const struct settings *options)
{
    struct buffer out;

    buffer_init(&out, 65536);
    settings_help(options, isatty(STDOUT_FILENO) ? 80 : 0, &out);
    (void)printf("Draft definitions of the tools of an MCP server, from what it says of them.\n\n"
                 "  sagad mcp-tools [OPTIONS] --url URL\n"
                 "  sagad mcp-tools [OPTIONS] -- PROGRAM [ARGUMENT...]\n"
                 "      a server that speaks over standard input and output\n\n%s\n"
                 "The draft goes to standard output: a person edits it, `sagactl check` and\n"
                 "`sagactl apply` take it. Notes go to standard error: which annotation suggested\n"
                 "what, and what is to be decided. readOnlyHint makes \"read\", idempotentHint makes\n"
                 "\"idempotent\", all else makes \"once\"; what changes something is terminal until\n"
                 "you name the tool that undoes it. A program is started as the service will start\n"
                 "it: with PATH, HOME and LANG only.\n\n"
                 "Try it:\n"
                 "  npm install @modelcontextprotocol/server-everything\n"
                 "  sagad mcp-tools --prefix try. -- npx mcp-server-everything stdio >tools.json\n"
                 "  sagactl check tools.json\n\n"
                 "Exit codes: 0 printed, 1 no list of tools within %d seconds, 2 wrong usage.\n",
                 buffer_c(&out), PATIENCE_MS / 1000);
    buffer_fini(&out);
}

/* --- what is asked, and by which settings ---------------------------------------------------------------------- */

static enum err_code wrong(struct err *err, const char *what)
{
    (void)err_set(err, ERR_CONFIG, "%s", what);
    err_hint(err, "sagad mcp-tools --help");
    return ERR_CONFIG;
}

static bool is_variable(const char *name)
{
    for (const char *c = name; *c; c++) {
        if (!isalnum((unsigned char)*c) && *c != '_') {
            return false;
        }
    }
    return *name && strlen(name) <= 64;
}

/* Returns the name by which the service will find the secret: SAGAD_SECRET_CRM is secret("crm"), and here CRM is,
 * too. */
static struct slice secret_name(const char *variable, struct arena *arena)
{
    size_t skip = strncmp(variable, SECRET_PREFIX, strlen(SECRET_PREFIX)) == 0 ? strlen(SECRET_PREFIX) : 0;
    char *name = arena_text(arena, slice_of(variable + skip));

    for (char *c = name; *c; c++) {
        *c = (char)tolower((unsigned char)*c);
    }
    return slice_of(name);
}

static struct slice server_write(const char *url, struct slice bearer, char **argv, struct arena *arena)
{
    struct buffer text;
    struct json_writer w;
    struct slice server;

    buffer_init(&text, SIZE_MAX / 2); /* as long as our own arguments */
    json_writer_init(&w, &text);
    json_object_begin(&w, NULL);
    if (url) {
        json_write_text(&w, "url", url);
        if (bearer.ptr) {
            json_write_slice(&w, "bearer", bearer);
        }
    } else {
        json_array_begin(&w, "argv");
        for (; *argv; argv++) {
            json_write_text(&w, NULL, *argv);
        }
        json_array_end(&w);
    }
    json_object_end(&w);
    server = arena_slice(arena, buffer_slice(&text));
    buffer_fini(&text);
    return server;
}

static bool prefix_is_sound(const char *prefix)
{
    for (const char *c = prefix; *c; c++) {
        if (!((*c >= 'a' && *c <= 'z') || (c > prefix && ((*c >= '0' && *c <= '9') || strchr("_.-", *c))))) {
            return false;
        }
    }
    return strlen(prefix) <= 64;
}

static bool holds_expression(const char *url, char **argv)
{
    for (; !url && *argv; argv++) {
        if (strstr(*argv, "${")) {
            return true;
        }
    }
    return url && strstr(url, "${");
}

static enum err_code options_take(struct asking *asking, const struct settings *options, char **words, struct err *err)
{
    const char *url = settings_text(options, "url"), *variable = settings_text(options, "bearer-env");
    const char *token = NULL;
    struct slice secret = SLICE_NONE;
    struct faults faults;

    if (!url == !*words) {
        return wrong(err, url ? "give either --url or a program behind --, not both"
                              : "name a server: --url URL, or a program behind --");
    }
    if (holds_expression(url, words)) {
        return wrong(err, "\"${\" begins an expression in a definition: it cannot stand in the URL or the arguments");
    }
    if (!prefix_is_sound(settings_text(options, "prefix"))) {
        return wrong(err, "--prefix is a small letter, then small letters, digits, \"_\", \".\" and \"-\", 64 at most");
    }
    if (variable) {
        if (!url || !is_variable(variable)) {
            return wrong(err, url ? "--bearer-env is the name of an environment variable, not the token"
                                  : "--bearer-env goes with --url");
        }
        token = getenv(variable);
        if (!token || !*token) {
            return wrong(err, "the environment variable that --bearer-env names is not set, or empty");
        }
        secret = secret_name(variable, &asking->arena);
        secret = arena_printf(&asking->arena, "${ secret(\"%.*s\") }", SLICE_ARG(secret));
    }
    asking->server = server_write(url, slice_of(token), words, &asking->arena);
    asking->draft.server = server_write(url, secret, words, &asking->arena);
    asking->draft.prefix = slice_of(settings_text(options, "prefix"));
    asking->draft.arena = &asking->arena;

    faults_init(&faults, &asking->arena);
    adapter_mcp_list.check(
        arena_printf(&asking->arena, "{\"server\":%.*s,\"tool\":\"x\"}", SLICE_ARG(asking->draft.server)), SLICE(""),
        KEY_PLACE_DEFAULT, &faults);
    return faults.count > 0 ? wrong(err, arena_text(&asking->arena, faults.items[0].detail)) : ERR_OK;
}

/* --- asking ---------------------------------------------------------------------------------------------------- */

static void page_ask(struct asking *asking, struct slice cursor);

static void asking_fail(struct asking *asking, const char *message, struct slice detail, const char *hint)
{
    (void)err_set(&asking->err, ERR_UNREACHABLE, "%s", message);
    err_detail(&asking->err, "%.*s", SLICE_ARG(detail));
    err_hint(&asking->err, "%s", hint);
    loop_stop(asking->host.loop);
}

static void page_fail(struct asking *asking, const struct call *call)
{
    bool over_http = json_member(asking->server, "url").ptr;
    struct slice said =
        json_trim(json_member(json_member(call->response, "error"), "message")); /* stays escaped, as JSON */
    struct slice detail =
        said.ptr ? arena_printf(&asking->arena, "%.*s It said: %.*s", SLICE_ARG(call->outcome.detail), SLICE_ARG(said))
                 : call->outcome.detail;

    if (slice_is(call->outcome.error, "timeout")) {
        detail = arena_printf(&asking->arena, "No answer within %d seconds.", PATIENCE_MS / 1000);
    } else if (!detail.len) {
        detail = call->outcome.error;
    }
    asking_fail(asking, "the server gave no list of its tools", detail,
                over_http
                    ? "is it running, is this the address of its MCP endpoint (often .../mcp), and does it want a "
                      "token (--bearer-env)?"
                    : "run the program by hand: does it start, and does it speak MCP over standard input and output?");
}

static void on_settled(struct call *call)
{
    struct asking *asking = container_of(call->host, struct asking, host);
    struct slice page = json_member(call->response, "result"), tools = json_member(page, "tools"), tool;
    struct slice cursor = json_string(json_member(page, "nextCursor"), &asking->arena);
    struct json_walk walk = json_walk(tools);

    if (call->outcome.kind != OUTCOME_COMPLETED) {
        page_fail(asking, call);
        return;
    }
    if (json_type(tools) != JSON_ARRAY) {
        asking_fail(asking, "the server gave no list of its tools",
                    SLICE("Its answer to tools/list has no array \"tools\"."), "is it an MCP server with tools?");
        return;
    }
    while (json_next_element(&walk, &tool)) {
        mcp_draft_add(&asking->draft, tool);
    }
    asking->pages++;
    if (cursor.len == 0) {
        loop_stop(asking->host.loop);
    } else if (asking->pages == PAGES_MAX || asking->draft.offered > MCP_DRAFT_TOOLS_MAX) {
        asking_fail(asking, "the server has more tools than one document takes",
                    arena_printf(&asking->arena, "It goes on after %zu tools on %zu pages.", asking->draft.offered,
                                 asking->pages),
                    "write the definitions of those that you need by hand");
    } else {
        page_ask(asking, cursor);
    }
}

static struct slice page_settings(const struct asking *asking, struct slice cursor, struct arena *arena)
{
    struct buffer text;
    struct json_writer w;
    struct slice settings;

    buffer_init(&text, SIZE_MAX / 2); /* the cursor is part of a bounded answer */
    json_writer_init(&w, &text);
    json_object_begin(&w, NULL);
    json_write_raw(&w, "server", asking->server);
    if (cursor.ptr) {
        json_write_slice(&w, "cursor", cursor);
    }
    json_object_end(&w);
    settings = arena_slice(arena, buffer_slice(&text));
    buffer_fini(&text);
    return settings;
}

static void page_ask(struct asking *asking, struct slice cursor)
{
    int64_t left_ms = asking->due_boot_ms - loop_boot_ms(asking->host.loop);
    struct call *call = arena_alloc(&asking->arena, adapter_mcp_list.call_size);

    *call = (struct call){
        .adapter = &adapter_mcp_list,
        .host = &asking->host,
        .arena = &asking->arena,
        .settings = page_settings(asking, cursor, &asking->arena),
        .args = SLICE("{}"),
        .key_place = KEY_PLACE_DEFAULT,
        .harmless = true,
        .repeatable = true,
        .timeout_ms = left_ms > 1 ? left_ms : 1,
        .attempt = 1,
        .settled = on_settled,
    };
    adapter_mcp_list.begin(call);
}

static void ask(struct asking *asking)
{
    struct loop *loop = loop_new();

    asking->host = (struct adapter_host){
        .loop = loop,
        .http = http_client_new(loop, CONNECTIONS_MAX, CONNECTIONS_MAX),
        .response_bytes_max = PAGE_BYTES_MAX,
    };
    asking->due_boot_ms = loop_boot_ms(loop) + PATIENCE_MS;
    page_ask(asking, SLICE_NONE);
    loop_run(loop);
    adapter_host_close(&asking->host);
    http_client_free(asking->host.http);
    loop_free(loop);
}

int mcp_tools(int argc, char **argv)
{
    struct settings options;
    struct asking *asking = memory_alloc(sizeof(*asking));
    int words = argc, exit_code = 0;

    arena_init(&asking->arena, 65536);
    settings_init(&options, options_table, COUNT_OF(options_table));
    if (settings_from_args(&options, argc, argv, 1, &words, &asking->err) == ERR_OK) {
        if (settings_switch(&options, "help")) {
            help(&options);
        } else if (options_take(asking, &options, argv + words, &asking->err) == ERR_OK) {
            ask(asking);
            exit_code = asking->err.code == ERR_OK && mcp_draft_print(&asking->draft, &asking->err) == ERR_OK ? 0 : 1;
        }
    }
    if (asking->err.code != ERR_OK) {
        err_print(&asking->err, "sagad");
        exit_code = exit_code == 1 ? 1 : 2; /* nothing was asked yet */
    }
    settings_fini(&options);
    arena_fini(&asking->arena);
    free(asking);
    return exit_code;
}
