/*
 * A request passes, in this order: the guard of io/http_server, the check against foreign web pages, the route, its
 * query, the token, JWT or grant, the role; only then is its body read. The handlers behind see what has passed all.
 */
#include "api/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/acts.h"
#include "api/local_guard.h"
#include "api/request.h"
#include "base/log.h"
#include "base/metric.h"

/* A right that has ended has ended everywhere within a second, also that of a file that two looks did not find. */
#define TOKENS_LOOK_MS 400
#define HEARTBEAT_MS 15000
#define CONNECTIONS_MAX 1024
#define WAITING_MAX 10000
#define MCP_WAIT_MS 45000 /* hosts give a call up after a minute, or later */
#define MCP_PROGRESS_MS 5000
#define STRANGER_BODY_BYTES 10240 /* the body of a client that has shown nothing yet: a JWT of 8192 bytes signs in */

/* --- who asks --- */

const struct token *api_find_token(const struct api *api, const struct digest *digest)
{
    int64_t now_ms = loop_wall_ms(api->loop);
    const struct token *of_file = tokens_find(&api->tokens, digest, now_ms),
                       *of_dev = tokens_find(&api->dev, digest, now_ms);

    return of_file ? of_file : of_dev;
}

const struct token *request_token(const struct api_request *request)
{
    return request->jwt         ? jwt_token(request)
           : request->has_token ? api_find_token(request->api, &request->token)
                                : NULL;
}

static struct slice bearer_of(const struct http_exchange *exchange)
{
    struct slice header = http_exchange_header(exchange, "authorization");

    return header.len >= 8 && strncasecmp(header.ptr, "Bearer ", 7) == 0
               ? slice_trim((struct slice){header.ptr + 7, header.len - 7})
               : SLICE_NONE;
}

static const struct token *token_of(const struct api *api, struct slice bearer)
{
    if (!bearer.ptr) {
        return NULL;
    }
    struct digest digest = digest_sha256(bearer);
    const struct token *token = api_find_token(api, &digest);

    return token && !token->is_certificate ? token : NULL;
}

/* The token that a browser has shown when its session began; NULL with `jwt`: it was a JWT. A session whose token is
 * gone is over. */
static const struct token *token_of_session(struct api_request *request, struct slice *jwt)
{
    struct api *api = request->api;
    const struct session *session;
    struct digest secret;

    if (!session_cookie(request->exchange, &secret)) {
        return NULL;
    }
    session = session_find(&api->sessions, &secret, loop_boot_ms(api->loop));
    if (!session) {
        return NULL;
    }
    request->has_session = true;
    request->session = secret;
    if (session->jwt) { /* copied: the session may end before the request */
        *jwt = arena_slice(request->arena, slice_of(session->jwt));
        return NULL;
    }
    const struct token *token = api_find_token(api, &session->token);

    if (!token) {
        session_end(&api->sessions, &secret);
    }
    return token;
}

bool request_is_revoked(const struct api_request *request)
{
    const struct token *token = request->has_token ? request_token(request) : NULL;

    return grant_is_over(request) || certificate_is_over(request) ||
           (request->has_token && !(request->grant && request->grant->by_jwt) &&
            (!(token && token->role >= request->role && token_has_namespace(token, request->asked.namespace) &&
               token_tools_equal(&token->tools, &request->tools)) ||
             (request->has_session &&
              !session_lives(&request->api->sessions, &request->session, loop_boot_ms(request->api->loop)))));
}

bool request_sees_all(const struct api_request *request)
{
    const struct api *api = request->api;

    return (!api->tokens_file && !api->issuer) ||
           (request->role == ROLE_ADMIN && slice_is(request->asked.namespace, "*"));
}

static void refuse_stranger(struct api_request *request)
{
    struct digest secret;

    if (http_exchange_header(request->exchange, "authorization").ptr) {
        request_problem(request, ERR_UNAUTHENTICATED, "this token is not known here, or has expired");
    } else if (session_cookie(request->exchange, &secret)) {
        request_problem(request, ERR_UNAUTHENTICATED, "this session has ended, or sagad was started again: sign in");
    } else if (request->certificate_expires_ms) {
        request_problem(request, ERR_UNAUTHENTICATED,
                        "no row of the tokens file has a name of this client certificate");
    } else {
        request_problem(request, ERR_UNAUTHENTICATED, "send the header Authorization: Bearer TOKEN");
    }
}

static bool session_is_safe(struct api_request *request)
{
    const char *fault = request->has_session ? session_guard_fault(request->exchange) : NULL;

    if (fault) {
        request_problem(request, ERR_FORBIDDEN, "%s", fault);
    } else if (request->has_session) {
        http_answer_header(request->exchange, "X-Content-Type-Options", SLICE("nosniff"));
    }
    return !fault;
}

/*
 * Sets the namespace of the request: the one that it names, if its token may act there. The refusal is the same whether
 * or not the namespace exists. `token` is NULL where there are no tokens.
 */
static bool choose_namespace(struct api_request *request, const struct token *token)
{
    struct slice named = http_exchange_header(request->exchange, "sagad-namespace"),
                 own = token ? token->namespace : SLICE("default");

    if (http_exchange_header_count(request->exchange, "sagad-namespace") > 1) {
        request->asked.namespace = arena_slice(request->arena, own);
        request_problem(request, ERR_MALFORMED, "the header Sagad-Namespace stands there twice");
        return false;
    }
    if (named.ptr && !(token ? token_has_namespace(token, named) : slice_equal(named, own))) {
        request->asked.namespace = arena_slice(request->arena, own);
        request_problem(request, ERR_FORBIDDEN, "this token may not act in the namespace that the request names");
        return false;
    }
    request->asked.namespace = arena_slice(request->arena, named.ptr ? named : own);
    return true;
}

/* Copied: the file may be read again before the answer. */
void request_take_token(struct api_request *request, const struct token *token)
{
    request->has_token = true;
    request->token = token->digest;
    request->token_expires_ms = token->expires_ms;
    request->role = token->role;
    request->tools = token_tools_copy(&token->tools, request->arena);
    request->asked.actor = arena_slice(request->arena, token->name);
}

static bool authenticate(struct api_request *request)
{
    struct api *api = request->api;
    struct slice bearer = bearer_of(request->exchange);
    const struct token *token, *of_certificate = NULL;
    struct digest cookie;

    if (route_least(request->route) != ROLE_NONE && !certificate_find(request, &of_certificate)) {
        return false;
    }
    if (grant_is_shown(request)) {
        return grant_note(request);
    }
    if (!api->has_tokens) {
        request->role = ROLE_ADMIN;
        request->asked.actor = SLICE("local");
        return choose_namespace(request, NULL);
    }
    token = token_of(api, bearer);
    if (!token && route_least(request->route) != ROLE_NONE &&
        !http_exchange_header(request->exchange, "authorization").ptr) {
        token = token_of_session(request, &bearer);
        if (!session_is_safe(request)) {
            return false;
        }
    }
    if (!token && api->issuer && route_least(request->route) != ROLE_NONE && jwt_is_likely(bearer)) {
        return jwt_note(request, bearer) && (jwt_waits(request) || choose_namespace(request, jwt_token(request)));
    }
    if (token) {
        request_take_token(request, token);
        return choose_namespace(request, token);
    }
    if (of_certificate && !http_exchange_header(request->exchange, "authorization").ptr &&
        !session_cookie(request->exchange, &cookie)) {
        return certificate_take(request, of_certificate) && choose_namespace(request, of_certificate);
    }
    if (route_least(request->route) == ROLE_NONE) {
        request->role = ROLE_NONE;
        return true;
    }
    refuse_stranger(request);
    return false;
}

/* --- the way of a request --- */

static bool route_request(struct api_request *request)
{
    struct http_exchange *exchange = request->exchange;
    struct route_match match;

    route_find(exchange->method, exchange->path, &match);
    if (!match.route && match.path_known) {
        http_answer_header(exchange, "Allow", slice_of(match.allow));
        request_problem(request, ERR_METHOD, "%.*s is not possible here; possible: %s", SLICE_ARG(exchange->method),
                        match.allow);
        return false;
    }
    if (!match.route) {
        request_problem(request, ERR_NOT_FOUND,
                        "there is nothing at this path; /v1/openapi.json describes what there is");
        return false;
    }
    request->route = match.route;
    memcpy(request->params, match.params, sizeof(match.params));
    return true;
}

static bool check_query(struct api_request *request)
{
    const struct http_exchange *exchange = request->exchange;

    for (size_t i = 0; i < exchange->query_count; i++) {
        struct slice name = exchange->query[i].name;

        if (!route_allows_query(request->route, name)) {
            const char *allowed = route_query(request->route);

            request_problem(request, ERR_MALFORMED, "the query parameter \"%.*s\" is not known here; known: %s",
                            (int)(name.len < 64 ? name.len : 64), name.ptr, *allowed ? allowed : "none");
            return false;
        }
        for (size_t k = 0; k < i && !slice_starts_with(name, "tag."); k++) { /* a tag: one of these values */
            if (slice_equal(exchange->query[k].name, name)) {
                request_problem(request, ERR_MALFORMED, "the query parameter \"%.*s\" stands there twice",
                                SLICE_ARG(name));
                return false;
            }
        }
    }
    return true;
}

static bool authorise(struct api_request *request)
{
    if (request->tools.count > 0 && !request->route->for_tools && route_least(request->route) != ROLE_NONE) {
        request_problem(request, ERR_FORBIDDEN,
                        "this token is bound to tools: it calls these and sees their operations, and nothing else");
        return false;
    }
    if (request->role >= route_least(request->route)) {
        return true;
    }
    protected_resource_refuse_scope(request);
    request_problem(request, ERR_FORBIDDEN, "this needs the role %s; this token has the role %s",
                    role_name(route_least(request->route)), role_name(request->role));
    return false;
}

/* Under an overload most of what there is to do is to refuse: with the head alone, because a body costs to read. */
static bool refuse_new(struct api_request *request)
{
    struct err err = {0};
    int64_t retry_after_ms = 0;

    if (request->route->handle != handle_start_saga ||
        !engine_refuses_new(request->api->engine, &err, &retry_after_ms)) {
        return false;
    }
    request_problem_later(request, &err, retry_after_ms);
    return true;
}

static void on_gone(struct http_exchange *exchange)
{
    request_cancel(exchange->context);
}

static void on_grant(struct api_request *request)
{
    http_body_go_on(request->exchange);
}

static void on_jwt(struct api_request *request)
{
    if (choose_namespace(request, jwt_token(request)) && authorise(request) && !refuse_new(request)) {
        http_body_go_on(request->exchange);
    }
}

static void on_headers(struct http_exchange *exchange, void *context)
{
    struct api_request *request = arena_alloc(exchange->arena, sizeof(*request));
    struct api *api = context;
    const char *fault = api->has_tokens ? NULL : local_guard_fault(exchange);

    request->api = api;
    request->exchange = exchange;
    request->arena = exchange->arena;
    request->asked.arena = exchange->arena;
    exchange->context = request;
    if (fault) {
        request_problem(request, ERR_FORBIDDEN, "%s", fault);
        return;
    }
    if (!route_request(request) || !authenticate(request) || !(jwt_waits(request) || authorise(request))) {
        return;
    }
    if (api->stopping && route_least(request->route) != ROLE_NONE) {
        request_problem(request, ERR_STOPPING, "this engine is stopping; another one, or the next start, takes over");
        return;
    }
    if (!check_query(request)) {
        return;
    }
    if (jwt_waits(request)) {
        if (jwt_find(request, on_jwt)) {
            exchange->on_gone = on_gone;
            http_body_hold(exchange);
        }
        return;
    }
    if (request->role == ROLE_NONE) {
        http_body_limit(exchange, STRANGER_BODY_BYTES);
    }
    if (!refuse_new(request) && request->grant) {
        exchange->on_gone = on_gone;
        http_body_hold(exchange);
        grant_find(request, on_grant);
    }
}

/* In a part of a path "%2F" is a slash and "%25" a percent sign: the path itself was decoded before
 * it was taken apart. */
static struct slice name_part(struct slice part, struct arena *arena)
{
    char *text = arena_text(arena, part);
    size_t len = 0;

    for (size_t i = 0; i < part.len; i++) {
        bool is_code = part.len - i >= 3 && part.ptr[i] == '%' && part.ptr[i + 1] == '2';
        char last = is_code ? part.ptr[i + 2] : '\0';
        char code = last == 'F' || last == 'f' ? '/' : last == '5' ? '%' : '\0';

        text[len++] = code ? code : part.ptr[i];
        i += code ? 2 : 0;
    }
    return (struct slice){text, len};
}

static void on_saga_named(struct engine_request *asked)
{
    struct api_request *request = container_of(asked, struct api_request, asked);
    char *id;

    if (asked->code != ERR_OK) {
        request_on_answer(asked);
        return;
    }
    (void)request_of(asked);
    id = arena_alloc(request->arena, UUID_TEXT_BYTES);
    uuid_text(&asked->saga.uuid, id);
    request->params[0] = slice_of(id);
    memmove(&request->params[1], &request->params[2], (ROUTE_PARAMS_MAX - 2) * sizeof(request->params[0]));
    request->route->handle(request);
}

/* The handlers know sagas by their ids only. */
static void find_saga(struct api_request *request)
{
    request->asked.in.find.name = request->params[0];
    request->asked.in.find.business_id = name_part(request->params[1], request->arena);
    request_ask(request, engine_find_saga, on_saga_named);
}

static void perform(struct api_request *request)
{
    const struct http_exchange *exchange = request->exchange;

    if (request->route->method[0] == 'P') {
        struct err err = {0};

        request->body = json_trim(exchange->body);
        if (request->body.len == 0) {
            request->body = SLICE("{}");
        } else if (!request->route->takes_any_body &&
                   json_check(exchange->body, &json_limits_default, &err) != ERR_OK) {
            request_problem_of(request, &err, NULL);
            return;
        }
    }
    request_mark_act(request);
    if (route_is_by_business_id(request->route)) {
        find_saga(request);
    } else {
        request->route->handle(request);
    }
}

/* A body may take its time, and the right to the request may have ended meanwhile. */
static bool refuse_revoked(struct api_request *request)
{
    bool is_revoked = request_is_revoked(request);

    if (is_revoked) {
        request->has_token = false; /* for this answer only */
        request->has_certificate = false;
        request->grant = NULL;
        request->jwt = NULL;
        request_problem(request, ERR_UNAUTHENTICATED,
                        "this token was revoked, or has expired, before its request was whole: nothing was done");
    }
    return is_revoked;
}

static void on_request(struct http_exchange *exchange, void *context)
{
    struct api_request *request = exchange->context;
    struct api *api = context;

    exchange->on_gone = on_gone;
    list_push(&api->waiting, &request->link);
    if (refuse_revoked(request)) {
        return;
    }
    if (request->grant && !grant_is_fresh(request)) {
        grant_find(request, perform);
    } else {
        perform(request);
    }
}

static void on_refused(struct http_exchange *exchange, enum err_code code, const char *detail, void *context)
{
    struct err err = {0};

    (void)context;
    (void)err_set(&err, code, "%s", detail);
    problem_respond(exchange, &err, NULL);
}

/* --- tokens --- */

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* The time of change and the inode tell apart what cp -p or rsync -t leave with the same size and time. */
static bool tokens_changed(struct api *api)
{
    const struct tokens_seen was = api->tokens_seen;
    struct stat st;

    if (stat(api->tokens_file, &st) != 0) {
        return false;
    }
    api->tokens_seen = (struct tokens_seen){.changed = st.st_ctim,
                                            .modified = st.st_mtim,
                                            .device = (uint64_t)st.st_dev,
                                            .inode = (uint64_t)st.st_ino,
                                            .bytes = (int64_t)st.st_size};
    return !same_time(was.changed, st.st_ctim) || !same_time(was.modified, st.st_mtim) ||
           was.device != api->tokens_seen.device || was.inode != api->tokens_seen.inode ||
           was.bytes != api->tokens_seen.bytes;
}

/* Ends the waits whose right has ended. `may_be_over` NULL: looks at each of them. */
static void cut_revoked(struct api *api, bool (*may_be_over)(const struct api_request *))
{
    struct list_link *link = list_first(&api->waiting);

    while (link) {
        struct api_request *request = container_of(link, struct api_request, link);

        link = list_after(&api->waiting, link); /* an ending takes itself off the list */
        if ((request->cancel || request->wait_ms > 0) && (!may_be_over || may_be_over(request)) &&
            request_is_revoked(request)) {
            request_cancel(request);
        }
    }
}

void api_cut_revoked(struct api *api)
{
    cut_revoked(api, NULL);
}

/* What can end a right by the clock alone. Rows of the file are looked at by rows_have_expired(). */
static bool time_is_over(const struct api_request *request)
{
    struct api *api = request->api;

    return (request->token_expires_ms && request->token_expires_ms <= loop_wall_ms(api->loop)) ||
           grant_is_over(request) ||
           (request->has_session && !session_lives(&api->sessions, &request->session, loop_boot_ms(api->loop)));
}

static bool rows_have_expired(const struct api *api, int64_t after_ms, int64_t until_ms)
{
    bool has_one = false;

    for (size_t i = 0; i < api->tokens.count; i++) {
        int64_t expires_ms = api->tokens.items[i].expires_ms;

        has_one = has_one || (expires_ms > after_ms && expires_ms <= until_ms);
    }
    return has_one;
}

/* A look at each wait costs a search for its token and a proof of its certificate, so ten thousand of them get that
 * only when something has changed. */
static void cut_expired(struct api *api)
{
    int64_t now_ms = loop_wall_ms(api->loop);
    bool any = rows_have_expired(api, api->tokens_looked_ms, now_ms);

    api->tokens_looked_ms = now_ms;
    cut_revoked(api, any ? NULL : time_is_over);
}

static void reload_tls(struct api *api)
{
    struct err err = {0};

    if (!http_server_has_tls(api->server)) {
        return;
    }
    if (http_server_reload_tls(api->server, &err) == ERR_OK) {
        log_info("certificate_read", LOG_TEXT("then", "it holds for new connections"));
        api_cut_revoked(api); /* a new list of revoked certificates may have come with it */
    } else {
        log_error("certificate_not_read", LOG_TEXT("then", "the certificate as it was still holds"), LOG_ERR(&err));
    }
}

static void reload_tokens(struct api *api)
{
    struct err err = {0};

    if (!api->tokens_file) {
        return;
    }
    (void)tokens_changed(api); /* notes what is read now */
    api->tokens_wrong = tokens_load(api->tokens_file, &api->tokens, &err) != ERR_OK;
    if (!api->tokens_wrong) {
        log_info("tokens_read", LOG_I64("count", api->tokens.count));
        api_cut_revoked(api);
    } else {
        log_error("tokens_not_read", LOG_TEXT("then", "the tokens as they were still hold"), LOG_ERR(&err));
    }
}

void api_reload(struct api *api)
{
    reload_tokens(api);
    reload_tls(api);
    if (api->issuer) {
        issuer_refresh(api->issuer);
    }
}

/* A file that is being replaced may be away for a moment. One that stays away revokes all of its tokens. */
static void look_for_tokens(struct api *api)
{
    bool was_gone = api->tokens_gone;

    api->tokens_gone = access(api->tokens_file, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);
    if (api->tokens_gone && was_gone && api->tokens.count > 0) {
        log_error("tokens_gone", LOG_TEXT("file", api->tokens_file),
                  LOG_TEXT("then", "its tokens are revoked until it is there again"));
        tokens_fini(&api->tokens);
        api->tokens_seen = (struct tokens_seen){0};
        api_cut_revoked(api);
    } else if (!api->tokens_gone && tokens_changed(api)) {
        reload_tokens(api);
    }
    if (!api->tokens_wrong && !api->tokens_gone) {
        api->tokens_good_ms = loop_boot_ms(api->loop);
    }
    gauge_set(GAUGE_TOKENS_AGE, (loop_boot_ms(api->loop) - api->tokens_good_ms) / 1000);
}

static void on_tokens_timer(struct timer *timer)
{
    struct api *api = container_of(timer, struct api, tokens_timer);

    if (api->tokens_file) {
        look_for_tokens(api);
    }
    cut_expired(api);
    if (api->issuer) {
        gauge_set(GAUGE_ISSUER_AGE, issuer_age_ms(api->issuer) / 1000);
    }
    timer_start(api->loop, timer, TOKENS_LOOK_MS, on_tokens_timer);
}

static bool has_tokens(const struct api_options *options)
{
    return options->tokens_file || options->dev_token || options->oidc.issuer.url;
}

static enum err_code tokens_begin(struct api *api, const struct api_options *options, struct err *err)
{
    if (options->tokens_file) {
        api->tokens_file = options->tokens_file;
        (void)tokens_changed(api); /* notes what is read now */
        if (tokens_load(options->tokens_file, &api->tokens, err) != ERR_OK) {
            return ERR_CONFIG;
        }
        api->tokens_good_ms = loop_boot_ms(api->loop);
    }
    if (options->tokens_file || options->oidc.issuer.url) {
        api->tokens_looked_ms = loop_wall_ms(api->loop);
        timer_start(api->loop, &api->tokens_timer, TOKENS_LOOK_MS, on_tokens_timer);
    }
    if (options->dev_token) {
        arena_init(&api->dev.arena, 256);
        api->dev.items = arena_alloc(&api->dev.arena, sizeof(*api->dev.items));
        api->dev.items[0] = (struct token){.name = SLICE("dev"),
                                           .namespace = SLICE("default"),
                                           .namespaces = &api->dev.items[0].namespace,
                                           .namespace_count = 1,
                                           .role = ROLE_ADMIN,
                                           .digest = digest_sha256(slice_of(options->dev_token))};
        api->dev.count = 1;
    }
    api->has_tokens = has_tokens(options);
    return ERR_OK;
}

/* --- start and stop --- */

static void api_free(struct api *api)
{
    timer_stop(api->loop, &api->tokens_timer);
    grant_watch_free(api->grant_watch);
    tokens_fini(&api->tokens);
    tokens_fini(&api->dev);
    sessions_fini(&api->sessions);
    free(api);
}

static void on_issuer_closed(void *context)
{
    struct api *api = context;
    void (*stopped)(void *) = api->stopped;
    void *stopped_context = api->stopped_context;

    api_free(api);
    if (stopped) {
        stopped(stopped_context);
    }
}

static void on_server_stopped(void *context)
{
    struct api *api = context;

    if (api->issuer) {
        issuer_close(api->issuer, on_issuer_closed, api);
    } else {
        on_issuer_closed(api);
    }
}

/* Whoever waits keeps a connection: some are left for those who ask how it is, or bring what is waited for. */
static size_t holding_max(const struct api_options *options)
{
    size_t connections = options->connections_max ? options->connections_max : CONNECTIONS_MAX;
    size_t most = connections - connections / 8, wanted = options->waiting_max ? options->waiting_max : WAITING_MAX;

    return wanted < most ? wanted : most;
}

static struct http_server_options server_options(const struct api_options *options)
{
    return (struct http_server_options){.listen = options->listen ? options->listen : API_LISTEN_DEFAULT,
                                        .connections_max =
                                            options->connections_max ? options->connections_max : CONNECTIONS_MAX,
                                        .connections_per_ip_max = options->connections_per_ip_max,
                                        .body_bytes_max = options->body_bytes_max,
                                        .idle_ms = options->idle_ms,
                                        .header_ms = options->header_ms,
                                        .body_ms = options->body_ms,
                                        .tls_cert_file = options->tls_cert_file,
                                        .tls_key_file = options->tls_key_file,
                                        .tls_client_ca_file = options->tls_client_ca_file,
                                        .loopback_only = !has_tokens(options),
                                        .behind_proxy = options->behind_proxy};
}

enum err_code api_check(const struct api_options *options, struct err *err)
{
    struct http_server_options server = server_options(options);
    struct tokens tokens = {0};
    enum err_code code = options->tokens_file ? tokens_load(options->tokens_file, &tokens, err) : ERR_OK;

    tokens_fini(&tokens);
    code = code == ERR_OK ? oidc_check(&options->oidc, err) : code;
    return code == ERR_OK ? http_server_check(&server, err) : code;
}

struct api *api_start(struct loop *loop, struct engine *engine, const struct api_options *options, struct err *err)
{
    struct api *api = memory_alloc(sizeof(*api));

    api->loop = loop;
    api->engine = engine;
    api->holding_max = holding_max(options);
    api->heartbeat_ms = options->heartbeat_ms ? options->heartbeat_ms : HEARTBEAT_MS;
    list_init(&api->waiting);
    list_init(&api->followers);
    api->grant_watch = grant_watch_new(api);
    api->mcp_keys = (struct host_keys){
        .run = slice_of(options->mcp_run_keys ? options->mcp_run_keys : HOST_RUN_KEYS_DEFAULT),
        .turn = slice_of(options->mcp_turn_keys ? options->mcp_turn_keys : HOST_TURN_KEYS_DEFAULT),
        .emission = slice_of(options->mcp_emission_keys ? options->mcp_emission_keys : HOST_EMISSION_KEYS_DEFAULT)};
    api->mcp_origins = slice_of(options->mcp_origins ? options->mcp_origins : "");
    api->mcp_session_run = options->mcp_session_run;
    api->mcp_wait_ms = options->mcp_wait_ms ? options->mcp_wait_ms : MCP_WAIT_MS;
    api->mcp_progress_ms = options->mcp_progress_ms ? options->mcp_progress_ms : MCP_PROGRESS_MS;
    api->version = options->version ? options->version : "0";
    if (oidc_check(&options->oidc, err) != ERR_OK || tokens_begin(api, options, err) != ERR_OK) {
        api_free(api);
        return NULL;
    }
    struct http_server_options server = server_options(options);

    server.on_headers = on_headers;
    server.on_request = on_request;
    server.on_refused = on_refused;
    server.context = api;
    api->server = http_server_start(loop, &server, err);
    if (!api->server) {
        api_free(api);
        return NULL;
    }
    if (options->oidc.issuer.url) {
        api->oidc = options->oidc;
        api->issuer = issuer_open(loop, &api->oidc.issuer);
    }
    return api;
}

uint16_t api_port(const struct api *api)
{
    return http_server_port(api->server);
}

const char *api_address(const struct api *api)
{
    return http_server_address(api->server);
}

bool api_has_tokens(const struct api *api)
{
    return api->has_tokens;
}

bool api_has_tls(const struct api *api)
{
    return http_server_has_tls(api->server);
}

void api_stop(struct api *api, void (*done)(void *context), void *context)
{
    struct list_link *link = list_first(&api->waiting);

    api->stopping = true;
    api->stopped = done;
    api->stopped_context = context;
    while (link) {
        struct api_request *request = container_of(link, struct api_request, link);

        link = list_after(&api->waiting, link); /* an ending takes itself off the list */
        if (request->cancel || request->wait_ms > 0) {
            request_cancel(request);
        }
    }
    http_server_stop(api->server, on_server_stopped, api);
}
