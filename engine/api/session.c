/*
 * A browser sends its cookie with whatever a page makes it send. So a cookie alone proves nothing: a request by a
 * session also carries the header Sagad-Console. A page of another origin cannot set that header without asking this
 * server first, and the server allows nobody. Origin and Sec-Fetch-Site, which no page can forge, say the same again.
 */
#include "api/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"

#define COOKIE "sagad_session"

static void secret_make(char text[SESSION_SECRET_BYTES])
{
    struct digest random;

    CHECK(random_bytes(random.bytes, sizeof(random.bytes)));
    digest_hex(&random, text);
}

/* --- sessions --- */

static bool is_over(const struct session *session, int64_t now_ms)
{
    return now_ms - session->began_ms >= SESSION_MS || now_ms - session->used_ms >= SESSION_IDLE_MS;
}

static struct session session_of(const struct session_origin *origin, const char *secret, int64_t now_ms)
{
    struct session made = {
        .secret = digest_sha256(slice_of(secret)), .token = origin->token, .began_ms = now_ms, .used_ms = now_ms};

    if (origin->jwt.ptr) {
        made.jwt = memory_alloc(origin->jwt.len + 1);
        memcpy(made.jwt, origin->jwt.ptr, origin->jwt.len);
    }
    return made;
}

static void forget(struct session *session)
{
    if (session->jwt) {
        explicit_bzero(session->jwt, strlen(session->jwt));
        free(session->jwt);
    }
}

static void drop(struct sessions *sessions, size_t i)
{
    forget(&sessions->items[i]);
    sessions->items[i] = sessions->items[--sessions->count];
}

static void drop_over(struct sessions *sessions, int64_t now_ms)
{
    for (size_t i = sessions->count; i > 0; i--) {
        if (is_over(&sessions->items[i - 1], now_ms)) {
            drop(sessions, i - 1);
        }
    }
}

/* The sessions of one token, or of all tokens where it is NULL. */
static void make_room(struct sessions *sessions, const struct digest *token, size_t most)
{
    size_t count = 0, least = 0;

    for (size_t i = 0; i < sessions->count; i++) {
        const struct session *at = &sessions->items[i];

        if (!token || digest_equal(&at->token, token)) {
            least = count == 0 || at->used_ms < sessions->items[least].used_ms ? i : least;
            count++;
        }
    }
    if (count >= most) {
        drop(sessions, least);
    }
}

void session_begin(struct sessions *sessions, const struct session_origin *origin, int64_t now_ms,
                   char secret[SESSION_SECRET_BYTES])
{
    drop_over(sessions, now_ms);
    make_room(sessions, &origin->token, SESSIONS_OF_TOKEN_MAX);
    make_room(sessions, NULL, SESSIONS_MAX);
    secret_make(secret);
    sessions->items[sessions->count++] = session_of(origin, secret, now_ms);
}

void sessions_fini(struct sessions *sessions)
{
    while (sessions->count > 0) {
        drop(sessions, sessions->count - 1);
    }
    while (sessions->code_count > 0) {
        forget(&sessions->codes[--sessions->code_count]);
    }
}

static size_t place_of(const struct sessions *sessions, const struct digest *secret) /* `count`: nowhere */
{
    size_t found = sessions->count;

    for (size_t i = 0; i < sessions->count; i++) {
        found = digest_equal(&sessions->items[i].secret, secret) ? i : found;
    }
    return found;
}

const struct session *session_find(struct sessions *sessions, const struct digest *secret, int64_t now_ms)
{
    drop_over(sessions, now_ms);
    size_t at = place_of(sessions, secret);

    if (at == sessions->count) {
        return NULL;
    }
    sessions->items[at].used_ms = now_ms;
    return &sessions->items[at];
}

bool session_lives(const struct sessions *sessions, const struct digest *secret, int64_t now_ms)
{
    size_t at = place_of(sessions, secret);

    return at < sessions->count && !is_over(&sessions->items[at], now_ms);
}

void session_end(struct sessions *sessions, const struct digest *secret)
{
    size_t at = place_of(sessions, secret);

    if (at < sessions->count) {
        drop(sessions, at);
    }
}

/* --- links that sign in once --- */

static void code_drop(struct sessions *sessions, size_t i) /* keeps the order: the oldest is the first */
{
    forget(&sessions->codes[i]);
    sessions->code_count--;
    memmove(&sessions->codes[i], &sessions->codes[i + 1], (sessions->code_count - i) * sizeof(sessions->codes[0]));
}

void session_code_make(struct sessions *sessions, const struct session_origin *origin, int64_t now_ms,
                       char code[SESSION_SECRET_BYTES])
{
    if (sessions->code_count == SESSION_CODES_MAX) {
        code_drop(sessions, 0);
    }
    secret_make(code);
    sessions->codes[sessions->code_count++] = session_of(origin, code, now_ms);
}

bool session_code_use(struct sessions *sessions, struct slice code, int64_t now_ms, struct arena *arena,
                      struct session_origin *origin)
{
    struct digest digest = digest_sha256(code);
    bool good = false;

    for (size_t i = sessions->code_count; i > 0; i--) {
        const struct session *at = &sessions->codes[i - 1];

        if (digest_equal(&at->secret, &digest)) {
            good = now_ms - at->began_ms < SESSION_CODE_MS;
            origin->token = at->token;
            origin->jwt = at->jwt ? arena_slice(arena, slice_of(at->jwt)) : SLICE_NONE;
            code_drop(sessions, i - 1);
        }
    }
    return good;
}

/* --- what the browser sends, and keeps --- */

bool session_cookie(const struct http_exchange *exchange, struct digest *secret)
{
    struct slice rest = http_exchange_header(exchange, "cookie"), found = SLICE_NONE;
    size_t count = 0;

    if (http_exchange_header_count(exchange, "cookie") > 1) {
        return false;
    }
    while (rest.len > 0) {
        const char *end = memchr(rest.ptr, ';', rest.len);
        struct slice pair = slice_trim((struct slice){rest.ptr, end ? (size_t)(end - rest.ptr) : rest.len});
        size_t name_len = sizeof(COOKIE) - 1;

        if (slice_starts_with(pair, COOKIE "=")) {
            found = (struct slice){pair.ptr + name_len + 1, pair.len - name_len - 1};
            count++;
        }
        rest = end ? (struct slice){end + 1, rest.len - (size_t)(end + 1 - rest.ptr)} : SLICE_NONE;
    }
    if (count == 1) {
        *secret = digest_sha256(found);
    }
    return count == 1;
}

static bool is_origin_of(struct slice origin, struct slice host)
{
    size_t scheme = slice_starts_with(origin, "https://") ? 8 : slice_starts_with(origin, "http://") ? 7 : 0;

    return scheme > 0 && host.len > 0 && origin.len - scheme == host.len &&
           strncasecmp(origin.ptr + scheme, host.ptr, host.len) == 0;
}

/* A proxy may have a name of its own for us, and then says by which one the page came. No page can set that header. */
static bool origin_is_ours(const struct http_exchange *exchange)
{
    struct slice origin = http_exchange_header(exchange, "origin"),
                 forwarded = http_exchange_header(exchange, "x-forwarded-host");

    if (!origin.ptr) {
        return true;
    }
    return http_exchange_header_count(exchange, "origin") == 1 &&
           (is_origin_of(origin, http_exchange_header(exchange, "host")) ||
            (http_exchange_header_count(exchange, "x-forwarded-host") == 1 && is_origin_of(origin, forwarded)));
}

const char *session_guard_fault(const struct http_exchange *exchange)
{
    struct slice site = http_exchange_header(exchange, "sec-fetch-site");

    if (!origin_is_ours(exchange) || http_exchange_header_count(exchange, "sec-fetch-site") > 1 ||
        (site.ptr && !slice_is(site, "same-origin"))) {
        return "a session is refused to pages of other origins";
    }
    if (!slice_is(http_exchange_header(exchange, "sagad-console"), "1")) {
        return "a request by a session has the header Sagad-Console: 1, which pages of other origins cannot send";
    }
    return NULL;
}

void session_put_cookie(struct http_exchange *exchange, const char *secret, bool has_tls)
{
    bool is_tls = has_tls || slice_is(http_exchange_header(exchange, "x-forwarded-proto"), "https");
    char text[256];

    (void)snprintf(text, sizeof(text), COOKIE "=%s; Path=/; HttpOnly; SameSite=Strict; Max-Age=%lld%s",
                   secret ? secret : "", secret ? SESSION_MS / 1000 : 0LL, is_tls ? "; Secure" : "");
    http_answer_header(exchange, "Set-Cookie", slice_of(text));
}
