/*
 * MCP over streamable HTTP: each message is a POST, its answer a JSON body or a stream of events.
 *
 * A server whose revision has a handshake gives a session, which calls share. The first call opens the session within
 * its own time and memory, and the others wait. So nothing is under way that no call watches. A newer server answers
 * that it has no handshake, and from then on we speak to it without one.
 */
#include <stdlib.h>
#include <string.h>

#include "adapters/answer.h"
#include "adapters/http_parts.h"
#include "adapters/mcp.h"
#include "adapters/tool_settings.h"
#include "base/json.h"

#define CONNECT_TIMEOUT_MS 10000
#define SESSION_ID_BYTES_MAX 512
#define STREAM_GRACE_MS 100 /* how long a server may hold the stream open behind the answer */
#define OWN_HEADERS 8

enum session_state { SESSION_NONE, SESSION_OPENING, SESSION_READY };

struct mcp_session {
    struct list_link link;
    struct digest server; /* the digest of the rendered settings: another token means another session */
    enum session_state state;
    bool modern;
    struct slice version;
    char id[SESSION_ID_BYTES_MAX + 1];
    uint64_t generation; /* counts how often the session was opened */
    struct list waiting; /* links mcp_call.link: the calls that wait for the handshake */
    size_t users;        /* the number of calls that point to this session */
};

static void call_send(struct mcp_call *m);
static void session_enter(struct mcp_call *m);
static void on_done(struct http_request *request);

/* --- sessions ------------------------------------------------------------------------------------------------- */

static void session_free(struct mcp_state *state, struct mcp_session *session)
{
    CHECK(list_empty(&session->waiting));
    list_remove(&state->sessions, &session->link);
    free(session);
}

/* Returns NULL when all sessions that may be kept are in use. */
static struct mcp_session *session_of(struct mcp_state *state, const struct digest *server)
{
    struct mcp_session *session, *idle = NULL;

    for (struct list_link *at = list_first(&state->sessions); at; at = list_after(&state->sessions, at)) {
        session = container_of(at, struct mcp_session, link);
        if (digest_equal(&session->server, server)) {
            list_remove(&state->sessions, at);
            list_push(&state->sessions, at);
            return session;
        }
        if (!idle && session->users == 0) {
            idle = session;
        }
    }
    if (state->sessions.count >= MCP_SESSIONS_MAX) {
        if (!idle) {
            return NULL;
        }
        session_free(state, idle);
    }
    session = memory_alloc(sizeof(*session));
    session->server = *server;
    list_init(&session->waiting);
    list_push(&state->sessions, &session->link);
    return session;
}

static void call_end(struct mcp_call *m)
{
    if (list_linked(&m->link)) {
        list_remove(&m->session->waiting, &m->link);
    }
    timer_stop(m->state->host->loop, &m->timer);
    mcp_sse_fini(&m->sse);
    buffer_fini(&m->body);
    m->session->users--;
    if (m->reopened) {
        m->call.outcome.unsent = false; /* the server refused the call before the handshake that failed */
    }
    mcp_end(m);
}

static int64_t time_left_ms(const struct mcp_call *m)
{
    int64_t left = m->due_boot_ms - loop_boot_ms(m->state->host->loop);

    return left > 1 ? left : 1;
}

/* Ends the call that could not open the session. With `for_all`, the calls that wait fail for the same reason; without
 * it, the next of them tries. */
static void session_failed(struct mcp_call *opener, bool for_all)
{
    struct mcp_session *session = opener->session;
    struct list_link *link;

    session->state = SESSION_NONE;
    while (for_all && (link = list_pop(&session->waiting))) {
        struct mcp_call *m = container_of(link, struct mcp_call, link);

        m->call.outcome = opener->call.outcome;
        m->call.outcome.error = arena_slice(m->call.arena, opener->call.outcome.error);
        m->call.outcome.detail = arena_slice(m->call.arena, opener->call.outcome.detail);
        call_end(m);
    }
    link = list_pop(&session->waiting);
    if (link) {
        session_enter(container_of(link, struct mcp_call, link));
    }
    call_end(opener);
}

static void session_opened(struct mcp_call *opener)
{
    struct mcp_session *session = opener->session;
    struct list_link *link;

    session->state = SESSION_READY;
    session->generation++;
    while ((link = list_pop(&session->waiting))) {
        struct mcp_call *m = container_of(link, struct mcp_call, link);

        timer_stop(m->state->host->loop, &m->timer);
        call_send(m);
    }
    call_send(opener);
}

/* --- one message and its answer ------------------------------------------------------------------------------- */

static void on_grace_over(struct timer *timer)
{
    http_cancel(&container_of(timer, struct mcp_call, timer)->request);
}

static void message_take(struct mcp_call *m, struct slice text)
{
    struct mcp_message message;

    if (m->answer.ptr || !mcp_message_read(text, m->call.host->response_bytes_max, &message) ||
        !mcp_message_answers(&message, m->id)) {
        return; /* the server sends progress, log lines, or questions to a model, which we do not have */
    }
    m->answer = arena_slice(m->call.arena, text);
    timer_start(m->state->host->loop, &m->timer, STREAM_GRACE_MS, on_grace_over);
}

static void on_data(struct http_request *request, struct slice bytes)
{
    struct mcp_call *m = container_of(request, struct mcp_call, request);
    struct slice message;

    if (!m->reading) {
        struct slice type = http_response_header(request, "content-type");

        m->reading = true;
        m->streams = request->status < 300 && slice_starts_with(type, "text/event-stream");
        if (m->streams) {
            mcp_sse_init(&m->sse, m->call.host->response_bytes_max);
        } else {
            buffer_init(&m->body, m->call.host->response_bytes_max);
        }
    }
    if (m->streams) {
        while (!m->answer.ptr && mcp_sse_next(&m->sse, &bytes, &message)) {
            message_take(m, message);
        }
        m->too_large = m->sse.too_large;
    } else {
        buffer_put_slice(&m->body, bytes);
        m->too_large = m->body.overflow;
    }
    if (m->too_large && !m->answer.ptr) {
        http_cancel(request);
    }
}

static void header_put(struct mcp_call *m, struct slice name, struct slice value)
{
    m->headers[m->request.header_count++] = (struct http_header){name, value};
}

static bool may_leave(struct http_request *request)
{
    return call_may_leave(&container_of(request, struct mcp_call, request)->call);
}

static void message_send(struct mcp_call *m, enum mcp_phase phase, struct slice body)
{
    const struct mcp_session *session = m->session;
    struct call *call = &m->call;

    m->phase = phase;
    m->reading = m->streams = m->too_large = false;
    m->answer = SLICE_NONE;
    mcp_sse_fini(&m->sse);
    buffer_fini(&m->body);
    m->request = (struct http_request){
        .method = SLICE("POST"),
        .url = m->url,
        .body = body,
        .headers = m->headers,
        .header_count = m->header_own,
        .timeout_ms = time_left_ms(m),
        .response_bytes_max = call->host->response_bytes_max,
        .ca_file = m->ca_file,
        .client_cert = m->client_cert,
        .streaming = true,
        .on_data = on_data,
        .may_leave = may_leave,
        .arena = call->arena,
        .done = on_done,
    };
    m->request.connect_timeout_ms =
        m->request.timeout_ms < CONNECT_TIMEOUT_MS ? m->request.timeout_ms : CONNECT_TIMEOUT_MS;
    header_put(m, SLICE("Content-Type"), SLICE("application/json"));
    header_put(m, SLICE("Accept"), SLICE("application/json, text/event-stream"));
    if (phase != MCP_INITIALIZE) {
        header_put(m, SLICE("MCP-Protocol-Version"), session->modern ? SLICE(MCP_VERSION_MODERN) : session->version);
    }
    if (phase != MCP_INITIALIZE && session->id[0]) {
        header_put(m, SLICE("Mcp-Session-Id"), arena_slice(call->arena, slice_of(session->id)));
    }
    if (phase == MCP_CALLING && session->modern) {
        header_put(m, SLICE("Mcp-Method"), m->lists ? SLICE("tools/list") : SLICE("tools/call"));
        if (!m->lists) {
            header_put(m, SLICE("Mcp-Name"), m->tool);
        }
    }
    http_send(call->host->http, &m->request);
}

static void call_send(struct mcp_call *m)
{
    m->generation = m->session->generation;
    message_send(m, MCP_CALLING, mcp_request_write(m, m->session->modern));
}

/* --- the handshake --------------------------------------------------------------------------------------------- */

static bool session_id_is_sound(struct slice id)
{
    for (size_t i = 0; i < id.len; i++) {
        if (id.ptr[i] < 0x21 || id.ptr[i] > 0x7e) {
            return false;
        }
    }
    return id.len <= SESSION_ID_BYTES_MAX;
}

static void handshake_failed(struct mcp_call *m, const char *error, const char *detail)
{
    answer_unsent(&m->call, true, error, detail);
    session_failed(m, true);
}

/* The handshake failed. Nothing of the call itself has left yet. */
static void handshake_broke(struct mcp_call *m)
{
    const struct http_request *request = &m->request;
    bool is_withheld = request->error && strcmp(request->error, "withheld") == 0;
    bool own = m->cancelled || request->timed_out || is_withheld; /* the reason does not concern the calls that wait */

    if (m->too_large) {
        handshake_failed(m, "too-large", "The answer to the handshake is larger than allowed.");
        return;
    }
    answer_unsent(&m->call, own || strcmp(request->error, "protocol") != 0, m->cancelled ? "cancelled" : request->error,
                  request->detail);
    session_failed(m, !own);
}

static void initialize_done(struct mcp_call *m)
{
    struct mcp_session *session = m->session;
    struct slice text = m->answer.ptr ? m->answer : buffer_slice(&m->body);
    struct slice id = http_response_header(&m->request, "mcp-session-id");
    struct mcp_message message;
    bool is_message = mcp_message_read(text, m->call.host->response_bytes_max, &message) && message.kind == MCP_ANSWER;

    if (is_message && mcp_handshake_is_gone(&message) && m->request.status < 500) {
        session->modern = true;
        session->id[0] = '\0';
        session_opened(m);
        return;
    }
    if (m->request.status >= 300) {
        struct slice detail =
            arena_printf(m->call.arena, "The server refused the handshake with status %d.", m->request.status);

        handshake_failed(m, "handshake", arena_text(m->call.arena, detail));
        return;
    }
    if (!is_message || !mcp_message_answers(&message, m->id) || message.error.ptr) {
        handshake_failed(m, "handshake", "The server did not answer the handshake as a server of this protocol does.");
        return;
    }
    session->version = mcp_handshake_version(&message);
    if (!session->version.ptr) {
        handshake_failed(m, "version", "The server speaks no revision of the protocol that is known here.");
        return;
    }
    if (!session_id_is_sound(id)) {
        handshake_failed(m, "handshake",
                         "The server gave a session id that is too long or holds other characters than it may.");
        return;
    }
    memcpy(session->id, id.len ? id.ptr : "", id.len);
    session->id[id.len] = '\0';
    session->modern = false;
    message_send(m, MCP_INITIALIZED, mcp_write_initialized());
}

static void initialized_done(struct mcp_call *m)
{
    if (m->request.status >= 300) {
        handshake_failed(m, "handshake", "The server refused the end of the handshake.");
        return;
    }
    session_opened(m);
}

/* --- the call --------------------------------------------------------------------------------------------------- */

/* The server has forgotten the session, so it has not looked at the call. The call opens another session, but only
 * once. */
static bool call_reopens(struct mcp_call *m, const struct mcp_message *message)
{
    struct mcp_session *session = m->session;
    int status = m->request.status;

    if (m->reopened || m->cancelled || session->modern || !session->id[0]) {
        return false;
    }
    if (status != 404 && !(status == 400 && (!message || message->code == -32000 || message->code == -32001))) {
        return false;
    }
    m->reopened = true;
    if (session->generation == m->generation && session->state == SESSION_READY) {
        session->state = SESSION_NONE;
        session->id[0] = '\0';
    }
    session_enter(m);
    return true;
}

static void call_done(struct mcp_call *m)
{
    const struct http_request *request = &m->request;
    struct slice text = m->answer.ptr ? m->answer : buffer_slice(&m->body);
    struct mcp_message message;
    bool is_message = mcp_message_read(text, m->call.host->response_bytes_max, &message) && message.kind == MCP_ANSWER;
    bool is_error = is_message && message.error.ptr &&
                    (!message.id.ptr || json_type(message.id) == JSON_NULL || mcp_message_answers(&message, m->id));

    if (request->status >= 400 && call_reopens(m, is_error ? &message : NULL)) {
        return;
    }
    if (is_message && mcp_message_answers(&message, m->id) && (message.error.ptr || request->status < 300)) {
        mcp_answer_take(m, &message, request->status);
    } else if (is_error && request->status >= 400) {
        mcp_answer_take(m, &message, request->status);
    } else if (request->status >= 300) {
        mcp_refused(m, request->status);
    } else if (m->streams) {
        answer_unknown(&m->call, "cut", "The stream of the answer ended before the answer.");
    } else {
        answer_unknown(&m->call, "unreadable",
                       "The server said yes, but not in a message of this protocol that answers the call.");
    }
    if (request->status == 429 || request->status == 503) {
        m->call.outcome.retry_after_ms = http_retry_after_ms(http_response_header(request, "retry-after"),
                                                             loop_wall_ms(m->state->host->loop), m->call.arena);
    }
    call_end(m);
}

static void call_broke(struct mcp_call *m)
{
    const struct http_request *request = &m->request;

    if (m->too_large) {
        answer_unknown(&m->call, "too-large", "The answer is larger than allowed.");
    } else if (request->sent) {
        answer_unknown(&m->call, request->error, request->detail);
    } else {
        answer_unsent(&m->call, strcmp(request->error, "protocol") != 0, request->error, request->detail);
    }
    call_end(m);
}

static void on_done(struct http_request *request)
{
    struct mcp_call *m = container_of(request, struct mcp_call, request);
    bool whole = request->complete || m->answer.ptr; /* after the answer, the end of the stream does not matter */

    timer_stop(m->state->host->loop, &m->timer);
    switch (m->phase) {
    case MCP_WAITING:
        UNREACHABLE();
    case MCP_INITIALIZE:
    case MCP_INITIALIZED:
        if (!whole || m->cancelled) {
            handshake_broke(m);
        } else if (m->phase == MCP_INITIALIZE) {
            initialize_done(m);
        } else {
            initialized_done(m);
        }
        return;
    case MCP_CALLING:
        if (whole) {
            call_done(m);
        } else {
            call_broke(m);
        }
        return;
    }
}

/* --- begin and end ---------------------------------------------------------------------------------------------- */

static void on_time_over(struct timer *timer)
{
    struct mcp_call *m = container_of(timer, struct mcp_call, timer);

    answer_unsent(&m->call, true, "timeout", "The handshake with the server took longer than the call may.");
    call_end(m);
}

static void session_enter(struct mcp_call *m)
{
    struct mcp_session *session = m->session;

    timer_stop(m->state->host->loop, &m->timer);
    switch (session->state) {
    case SESSION_NONE:
        session->state = SESSION_OPENING;
        m->id = ++m->state->id_last;
        message_send(m, MCP_INITIALIZE, mcp_write_initialize(m->id, m->call.arena));
        return;
    case SESSION_OPENING:
        m->phase = MCP_WAITING;
        list_push(&session->waiting, &m->link);
        timer_start(m->state->host->loop, &m->timer, time_left_ms(m), on_time_over);
        return;
    case SESSION_READY:
        call_send(m);
        return;
    }
}

static const char *headers_take(struct mcp_call *m)
{
    struct slice given = json_member(m->server, "headers"), bearer = json_member(m->server, "bearer");
    struct json_walk walk = json_walk(given);
    struct arena *arena = m->call.arena;
    struct slice name, value;

    if (given.ptr && json_type(given) != JSON_OBJECT && json_type(given) != JSON_NULL) {
        return "The rendered \"headers\" of the server are no object.";
    }
    m->headers = arena_array(arena, json_count(given) + OWN_HEADERS, sizeof(*m->headers));
    while (json_type(given) == JSON_OBJECT && json_next_member(&walk, &name, &value)) {
        struct slice text = setting_text(value, arena);

        if (json_type(value) == JSON_NULL) {
            continue;
        }
        if (!text.ptr) {
            return "The rendered value of a header is an array or an object.";
        }
        m->headers[m->header_own++] = (struct http_header){name, text};
    }
    if (bearer.ptr && json_type(bearer) != JSON_NULL) {
        struct slice text = json_string(bearer, arena);

        if (text.len == 0) {
            return "The rendered \"bearer\" of the server is no text, or empty.";
        }
        m->headers[m->header_own++] =
            (struct http_header){SLICE("Authorization"), arena_printf(arena, "Bearer %.*s", SLICE_ARG(text))};
    }
    return NULL;
}

static const char *file_of(const struct mcp_call *m, const char *name)
{
    struct slice path = json_string(json_member(m->server, name), m->call.arena);

    return path.len ? arena_text(m->call.arena, path) : NULL;
}

const char *mcp_http_begin(struct mcp_call *m)
{
    struct digest server = digest_sha256(m->server);
    const char *fault = headers_take(m);

    m->url = json_string(json_member(m->server, "url"), m->call.arena);
    if (fault) {
        return fault;
    }
    if (!slice_starts_with(m->url, "http://") && !slice_starts_with(m->url, "https://")) {
        return "The rendered \"url\" of the server does not begin with http:// or https://.";
    }
    if (m->call.reading >= READING_SECOND && url_has_dot_segment(m->url)) {
        return "A segment of the path of the rendered \"url\" of the server is \".\" or \"..\".";
    }
    m->ca_file = file_of(m, "ca_file");
    m->client_cert = file_of(m, "client_cert");
    m->session = session_of(m->state, &server);
    if (!m->session) {
        answer_unsent(&m->call, true, "busy", "As many sessions with servers as are kept are all in use.");
        mcp_end(m);
        return NULL;
    }
    m->session->users++;
    session_enter(m);
    return NULL;
}

void mcp_http_cancel(struct mcp_call *m)
{
    if (m->cancelled) {
        return;
    }
    m->cancelled = true;
    if (m->phase != MCP_WAITING) {
        http_cancel(&m->request);
    } else if (list_linked(&m->link)) {
        answer_unsent(&m->call, true, "cancelled", "The answer is not awaited any more, and nothing was sent.");
        call_end(m);
    }
}

void mcp_http_close(struct mcp_state *state)
{
    struct list_link *link;

    while ((link = list_first(&state->sessions))) {
        session_free(state, container_of(link, struct mcp_session, link));
    }
}
