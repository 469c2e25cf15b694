/*
 * MCP over standard input and output. Each rendered "server" has one process. Messages are lines, and many calls may be
 * under way at once: their ids tell them apart.
 *
 * The process starts with the first call and stays. When it ends, the outcome of calls that were written to it is
 * unknown, and calls that still waited for the handshake were never sent.
 */
#include <stdlib.h>

#include "adapters/answer.h"
#include "adapters/mcp.h"
#include "adapters/program.h"
#include "base/json.h"
#include "io/process/programs.h"

#define UNREAD_BYTES_MAX ((size_t)8 * 1024 * 1024)
#define LINE_BYTES_EXTRA ((size_t)64 * 1024) /* room for the message around an answer */

struct mcp_server {
    struct list_link link;
    struct mcp_state *state;
    struct digest settings;
    struct child child;
    struct timer timer; /* limits the handshake */
    struct arena arena;
    int64_t initialize_id; /* 0 once the handshake is over */
    bool modern;
    struct list waiting; /* links mcp_call.link: the calls that wait for the handshake */
    struct map pending;  /* maps an id to its mcp_call: calls that were written and not answered */
};

static void call_end(struct mcp_call *m)
{
    timer_stop(m->state->host->loop, &m->timer);
    mcp_end(m);
}

/* --- the end of a server -------------------------------------------------------------------------------------- */

/* Ends a server. Its calls are settled later in this turn of the loop, so that no new call comes in between. */
static void server_end(struct mcp_server *server, const char *error, const char *detail)
{
    struct list_link *link;
    size_t position = 0;
    void *value;

    timer_stop(server->state->host->loop, &server->timer);
    child_stop(&server->child);
    list_remove(&server->state->servers, &server->link);
    while ((link = list_pop(&server->waiting))) {
        struct mcp_call *m = container_of(link, struct mcp_call, link);

        answer_unsent(&m->call, true, error, detail);
        call_end(m);
    }
    while (map_next(&server->pending, &position, &value)) {
        struct mcp_call *m = value;

        answer_unknown(&m->call, error, detail);
        call_end(m);
    }
    map_fini(&server->pending);
    arena_fini(&server->arena);
    free(server);
}

static void on_end(struct child *child)
{
    struct mcp_server *server = container_of(child, struct mcp_server, child);

    server_end(server, "server-ended", "The server ended, or does not listen any more.");
}

static void on_handshake_over(struct timer *timer)
{
    struct mcp_server *server = container_of(timer, struct mcp_server, timer);

    server_end(server, "timeout", "The server did not end the handshake in time.");
}

/* --- calls ------------------------------------------------------------------------------------------------------ */

static void on_time_over(struct timer *timer);

static void pending_remove(struct mcp_call *m)
{
    CHECK(map_remove(&m->process->pending, &m->id, sizeof(m->id)) == m);
}

static void call_write(struct mcp_call *m)
{
    if (!call_may_leave(&m->call)) {
        answer_unsent(&m->call, true, "withheld", OUTCOME_WITHHELD_DETAIL("the server was ready for it"));
        call_end(m);
        return;
    }
    if (!child_write(&m->process->child, mcp_request_write(m, m->process->modern))) {
        answer_unsent(&m->call, true, "busy", "The server has ended, or does not read what it was given before.");
        call_end(m);
        return;
    }
    m->phase = MCP_CALLING;
    map_put(&m->process->pending, &m->id, sizeof(m->id), m);
}

/* Nobody waits for the call any more. The server is told, but it may stop or not, so the outcome is unknown. */
static void call_give_up(struct mcp_call *m, const char *error, const char *detail)
{
    if (m->phase == MCP_WAITING) {
        list_remove(&m->process->waiting, &m->link);
        answer_unsent(&m->call, true, error, detail);
    } else {
        pending_remove(m);
        (void)child_write(&m->process->child,
                          mcp_write_cancelled(m->id, m->call.arena)); /* the server need not heed this */
        answer_unknown(&m->call, error, detail);
    }
    call_end(m);
}

static void on_time_over(struct timer *timer)
{
    call_give_up(container_of(timer, struct mcp_call, timer), "timeout", "The server did not answer in time.");
}

/* --- messages of the server --------------------------------------------------------------------------------------- */

static void handshake_take(struct mcp_server *server, const struct mcp_message *message)
{
    struct list_link *link;

    if (mcp_handshake_is_gone(message)) {
        server->modern = true;
    } else if (message->error.ptr) {
        server_end(server, "handshake", "The server refused the handshake.");
        return;
    } else if (!mcp_handshake_version(message).ptr) {
        server_end(server, "version", "The server speaks no revision of the protocol that is known here.");
        return;
    } else {
        (void)child_write(
            &server->child,
            mcp_write_initialized()); /* a server that does not read this does not read the calls either */
    }
    server->initialize_id = 0;
    timer_stop(server->state->host->loop, &server->timer);
    while ((link = list_pop(&server->waiting))) {
        call_write(container_of(link, struct mcp_call, link));
    }
}

/* Answers a question of the server. It may ping us. Every other question needs a capability that we did not declare. */
static void question_answer(struct mcp_server *server, const struct mcp_message *question)
{
    struct buffer text;

    buffer_init(&text, 1024);
    if (json_string_is(question->method, "ping")) {
        buffer_printf(&text, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{}}", SLICE_ARG(question->id));
    } else {
        buffer_printf(&text,
                      "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"error\":{\"code\":-32601,\"message\":\"Not offered here\"}}",
                      SLICE_ARG(question->id));
    }
    (void)child_write(&server->child, buffer_slice(&text)); /* a server that does not read gets no answers */
    buffer_fini(&text);
}

static void on_line(struct child *child, struct slice line)
{
    struct mcp_server *server = container_of(child, struct mcp_server, child);
    struct mcp_message message;
    struct mcp_call *m;
    int64_t id;

    if (!mcp_message_read(line, server->child.line_bytes_max, &message)) {
        return; /* some servers print other lines to standard output */
    }
    if (message.kind == MCP_REQUEST) {
        question_answer(server, &message);
    }
    if (message.kind != MCP_ANSWER || json_type(message.id) != JSON_NUMBER || !json_i64(message.id, &id)) {
        return;
    }
    if (server->initialize_id) {
        if (id == server->initialize_id) {
            handshake_take(server, &message);
        }
        return;
    }
    m = map_remove(&server->pending, &id, sizeof(id));
    if (m) {
        child_heard(&server->child);
        mcp_answer_take(m, &message, 0);
        call_end(m);
    }
}

/* A line was too long. It is the answer to an unknown call, unless only one call waits. Otherwise all calls keep
 * waiting. */
static void on_long(struct child *child)
{
    struct mcp_server *server = container_of(child, struct mcp_server, child);
    size_t position = 0;
    void *value = NULL;

    if (server->pending.count == 1 && map_next(&server->pending, &position, &value)) {
        struct mcp_call *m = value;

        pending_remove(m);
        answer_unknown(&m->call, "too-large", "The answer is larger than allowed.");
        call_end(m);
    }
}

/* --- servers ---------------------------------------------------------------------------------------------------- */

static struct mcp_server *server_find(struct mcp_state *state, const struct digest *settings, struct mcp_server **idle)
{
    *idle = NULL;
    for (struct list_link *at = list_first(&state->servers); at; at = list_after(&state->servers, at)) {
        struct mcp_server *server = container_of(at, struct mcp_server, link);

        if (digest_equal(&server->settings, settings)) {
            list_remove(&state->servers, at);
            list_push(&state->servers, at);
            return server;
        }
        if (!*idle && server->pending.count == 0 && list_empty(&server->waiting)) {
            *idle = server;
        }
    }
    return NULL;
}

/* Returns NULL when the process did not start, and says why in `why`. */
static struct mcp_server *server_start(struct mcp_call *m, const struct digest *settings, char **argv, char **env,
                                       const char *cwd, const char **why)
{
    struct mcp_state *state = m->state;
    struct mcp_server *server = memory_alloc(sizeof(*server));

    server->state = state;
    server->settings = *settings;
    server->child = (struct child){
        .line_bytes_max = state->host->response_bytes_max + LINE_BYTES_EXTRA,
        .unread_bytes_max = UNREAD_BYTES_MAX,
        .idle_bytes_max =
            HTTP_STREAM_FACTOR * state->host->response_bytes_max, /* a stream over HTTP has the same bound */
        .on_line = on_line,
        .on_long = on_long,
        .on_end = on_end,
    };
    *why = child_start(&state->children, &server->child, argv, env, cwd);
    if (*why) {
        free(server);
        return NULL;
    }
    arena_init(&server->arena, 1024);
    list_init(&server->waiting);
    map_init(&server->pending);
    list_push(&state->servers, &server->link);
    server->initialize_id = ++state->id_last;
    (void)child_write(&server->child, mcp_write_initialize(server->initialize_id,
                                                           &server->arena)); /* if this fails, on_end() follows */
    timer_start(state->host->loop, &server->timer, MCP_HANDSHAKE_MS, on_handshake_over);
    return server;
}

const char *mcp_stdio_begin(struct mcp_call *m)
{
    struct digest settings = digest_sha256(m->server);
    struct arena *arena = m->call.arena;
    char **argv = NULL, **env = NULL;
    const char *cwd = NULL, *why = NULL;
    const char *fault = program_argv(json_member(m->server, "argv"), arena, &argv);
    struct mcp_server *idle;

    fault = fault ? fault
                  : program_env(json_member(m->server, "env"), SLICE_NONE, SLICE_NONE, NULL, m->call.host->programs,
                                arena, &env);
    fault = fault ? fault : program_cwd(json_member(m->server, "cwd"), arena, &cwd);
    if (fault) {
        return fault;
    }
    why = programs_refusal(m->call.host->programs, argv[0], program_search(env));
    if (why) {
        answer_unsent(&m->call, true, "not-allowed", why);
        mcp_end(m);
        return NULL;
    }
    m->process = server_find(m->state, &settings, &idle);
    if (!m->process && m->state->servers.count >= MCP_SERVERS_MAX) {
        if (!idle) {
            answer_unsent(&m->call, true, "busy", "As many servers as may run as processes are all in use.");
            mcp_end(m);
            return NULL;
        }
        server_end(idle, "server-ended", "The server made room for another.");
    }
    m->process = m->process ? m->process : server_start(m, &settings, argv, env, cwd, &why);
    if (!m->process) {
        answer_unsent(&m->call, true, "not-started", why);
        mcp_end(m);
        return NULL;
    }
    timer_start(m->state->host->loop, &m->timer, m->call.timeout_ms, on_time_over);
    m->phase = MCP_WAITING;
    if (m->process->initialize_id) {
        list_push(&m->process->waiting, &m->link);
    } else {
        call_write(m);
    }
    return NULL;
}

void mcp_stdio_cancel(struct mcp_call *m)
{
    if (timer_running(&m->timer)) { /* otherwise the call has ended */
        call_give_up(m, "cancelled", "The answer is not awaited any more.");
    }
}

void mcp_stdio_close(struct mcp_state *state)
{
    struct list_link *link;

    while ((link = list_first(&state->servers))) {
        struct mcp_server *server = container_of(link, struct mcp_server, link);

        CHECK(server->pending.count == 0 && list_empty(&server->waiting));
        server_end(server, "server-ended", "");
    }
    children_kill(&state->children);
}
