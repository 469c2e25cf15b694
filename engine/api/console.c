/*
 * The console: its files, and the sessions of those who use it. Everything else it does by the routes of the API, with
 * the rights of the token that was shown when its session began.
 *
 * A file is always sent compressed. A request without Accept-Encoding takes any encoding (RFC 9110), and every browser
 * takes this one; so there is one form of each file, and one ETag.
 */
#include "api/console_files.h"
#include "api/request.h"
#include "api/server.h"
#include "base/instant.h"
#include "base/log.h"

static const char policy[] = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
                             "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
                             "require-trusted-types-for 'script'; trusted-types 'none'";

/* --- files --- */

static void put_guards(struct http_exchange *exchange)
{
    http_answer_header(exchange, "Content-Security-Policy", slice_of(policy));
    http_answer_header(exchange, "X-Content-Type-Options", SLICE("nosniff"));
    http_answer_header(exchange, "X-Frame-Options", SLICE("DENY"));
    http_answer_header(exchange, "Referrer-Policy", SLICE("no-referrer"));
    http_answer_header(exchange, "Cross-Origin-Opener-Policy", SLICE("same-origin"));
    http_answer_header(exchange, "Cross-Origin-Resource-Policy", SLICE("same-origin"));
    http_answer_header(exchange, "Cache-Control", SLICE("no-cache"));
}

static const struct console_file *file_find(struct slice name)
{
    for (size_t i = 0; i < console_file_count; i++) {
        if (slice_is(name, console_files[i].name)) {
            return &console_files[i];
        }
    }
    return NULL;
}

static void file_answer(struct api_request *request, struct slice name)
{
    const struct console_file *file = file_find(name);

    put_guards(request->exchange);
    if (file) {
        http_answer_header(request->exchange, "Content-Encoding", SLICE("gzip"));
        http_answer_header(request->exchange, "ETag", slice_of(file->etag));
        if (slice_is(http_exchange_header(request->exchange, "if-none-match"), file->etag)) {
            request_answer_text(request, 304, NULL, SLICE(""));
        } else {
            request_answer_text(request, 200, file->type,
                                (struct slice){file->begin, (size_t)(file->end - file->begin)});
        }
    } else if (console_file_count == 0) {
        request_answer_text(request, 404, "text/plain; charset=utf-8",
                            SLICE("This sagad was built without its console.\n\n"
                                  "Build it where node and npm are installed (meson configure -Dconsole=enabled says "
                                  "what is missing).\nWhatever the console does, sagactl does too: sagactl --help.\n"));
    } else {
        request_problem(request, ERR_NOT_FOUND, "the console has no file \"%.*s\"", SLICE_ARG(name));
    }
}

void handle_console(struct api_request *request)
{
    file_answer(request, SLICE(""));
}

void handle_console_file(struct api_request *request)
{
    file_answer(request, request->params[0]);
}

/* Relative, because a proxy may serve all of this below a path of its own. */
void handle_console_slash(struct api_request *request)
{
    http_answer_header(request->exchange, "Location", SLICE("console/"));
    request_answer_text(request, 308, "text/plain; charset=utf-8", SLICE("The console is at console/.\n"));
}

/* --- sessions --- */

struct sign_in { /* request->state */
    struct session_origin origin;
    bool by_link;
};

static bool read_origin(struct api_request *request, struct slice token, struct slice code, struct sign_in *out)
{
    struct api *api = request->api;
    struct slice text = slice_trim(json_string(token, request->arena));
    struct err err = {0};

    out->by_link = code.ptr != NULL;
    if (!code.ptr) {
        out->origin = (struct session_origin){digest_sha256(text), SLICE_NONE};
        if (!api_find_token(api, &out->origin.token) && api->issuer && jwt_is_likely(text)) {
            out->origin.jwt = text;
        }
        return true;
    }
    if (session_code_use(&api->sessions, json_string(code, request->arena), loop_boot_ms(api->loop), request->arena,
                         &out->origin)) {
        return true;
    }
    (void)err_set(&err, ERR_UNAUTHENTICATED, "this link was used before, or is older than ten minutes");
    err_hint(&err, "`sagactl console` prints another one");
    request_problem_of(request, &err, NULL);
    return false;
}

/* `known` is whose session it will be; the request has its rights. */
static void begin_session(struct api_request *request, const struct token *known)
{
    struct sign_in *sign_in = request->state;
    struct api *api = request->api;
    char secret[SESSION_SECRET_BYTES];

    log_info("session_began", LOG_SLICE("actor", known->name), LOG_SLICE("namespace", known->namespace),
             LOG_TEXT("role", role_name(known->role)), LOG_TEXT("by", sign_in->by_link ? "link" : "token"));
    if (sign_in->origin.jwt.ptr) { /* a subject has as many sessions as a token, however many JWTs */
        sign_in->origin.token = digest_sha256(known->name);
    }
    session_begin(&api->sessions, &sign_in->origin, loop_boot_ms(api->loop), secret);
    session_put_cookie(request->exchange, secret, api_has_tls(api));
    request->asked.namespace = arena_slice(request->arena, known->namespace);
    handle_me(request);
}

/* The JWT was verified. */
static void on_jwt(struct api_request *request)
{
    const struct token *token = jwt_token(request);

    if (token) {
        begin_session(request, token);
    } else {
        request_problem(request, ERR_UNAUTHENTICATED, "this JWT has just expired");
    }
}

void handle_sign_in(struct api_request *request)
{
    struct api *api = request->api;
    struct sign_in *sign_in = arena_alloc(request->arena, sizeof(*sign_in));
    struct slice token = SLICE_NONE, code = SLICE_NONE;
    const struct member members[] = {{"token", JSON_STRING, .out = &token}, {"code", JSON_STRING, .out = &code}};
    const char *fault = session_guard_fault(request->exchange);

    request->state = sign_in;
    if (fault) {
        request_problem(request, ERR_FORBIDDEN, "%s", fault);
        return;
    }
    if (!request_read_body(request, members, COUNT_OF(members), NULL)) {
        return;
    }
    if (!token.ptr == !code.ptr) {
        request_problem(request, ERR_INVALID, "the body has either \"token\" or \"code\"");
        return;
    }
    if (!api->has_tokens) {
        request_problem(request, ERR_CONFLICT, "this service has no tokens: everybody on this machine is its admin");
        return;
    }
    if (!read_origin(request, token, code, sign_in)) {
        return;
    }
    if (sign_in->origin.jwt.ptr && api->issuer) {
        if (!jwt_note(request, sign_in->origin.jwt)) {
            return;
        }
        if (!jwt_waits(request)) {
            on_jwt(request);
        } else {
            (void)jwt_find(request, on_jwt);
        }
        return;
    }
    const struct token *known = api_find_token(api, &sign_in->origin.token);

    known = known && known->is_certificate ? NULL : known; /* no text is a certificate */
    if (!known) {
        request_problem(request, ERR_UNAUTHENTICATED, "this token is not known here, or has expired");
        return;
    }
    request_take_token(request, known);
    begin_session(request, known);
}

void handle_sign_out(struct api_request *request)
{
    const char *fault = session_guard_fault(request->exchange);
    struct digest secret;

    if (fault) {
        request_problem(request, ERR_FORBIDDEN, "%s", fault);
        return;
    }
    if (session_cookie(request->exchange, &secret)) {
        session_end(&request->api->sessions, &secret);
        api_cut_revoked(request->api);
    }
    session_put_cookie(request->exchange, NULL, api_has_tls(request->api));
    request_answer_json(request, 200, SLICE("{\"signed_out\":true}"));
}

void handle_console_link(struct api_request *request)
{
    struct api *api = request->api;
    char code[SESSION_SECRET_BYTES];
    struct buffer out;
    struct json_writer w;

    if (!request->has_token) {
        request_problem(request, ERR_CONFLICT, "this service has no tokens: its console asks for none");
        return;
    }
    if (request->has_certificate) { /* a list that revokes the certificate would not end the session */
        request_problem(request, ERR_FORBIDDEN,
                        "a link is made by a token of the tokens file, and not by a certificate");
        return;
    }
    if (request->has_session) { /* a session that made links could renew itself for ever */
        request_problem(request, ERR_FORBIDDEN, "a link is made by a token, and not by a session");
        return;
    }
    const struct session_origin origin = {request->token, jwt_text(request)};

    session_code_make(&api->sessions, &origin, loop_boot_ms(api->loop), code);
    buffer_init(&out, 512);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_write_text(&w, "code", code);
    json_write_instant(&w, "expires_at", loop_wall_ms(api->loop) + SESSION_CODE_MS);
    json_object_end(&w);
    http_answer_header(request->exchange, "Cache-Control", SLICE("no-store"));
    request_answer_json(request, 200, arena_slice(request->arena, buffer_slice(&out)));
    buffer_fini(&out);
}
