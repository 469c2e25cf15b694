/*
 * Sessions of the console: a browser that has shown a token once keeps a cookie instead.
 *
 * A session is the right of its token and nothing more. It ends when the token is revoked or expires, when somebody
 * signs out, when nothing came from it for SESSION_IDLE_MS, and after SESSION_MS whatever comes. Sessions live in the
 * memory of one engine and are kept as SHA-256 only: a restart ends them.
 *
 * A session that was made from a JWT keeps the JWT, and is judged by it with each request as if it were shown: it ends
 * when the JWT expires, and when its key is none of the issuer any more.
 *
 * A link signs in once. It carries a code, which stands for the token of whoever asked for the link.
 */
#ifndef SAGAD_API_SESSION_H
#define SAGAD_API_SESSION_H

#include "base/digest.h"
#include "io/http/server.h"

#define SESSIONS_MAX 512
#define SESSIONS_OF_TOKEN_MAX 16 /* the sessions of one token; one more ends the one that was used longest ago */
#define SESSION_CODES_MAX 64     /* links that wait for their use; the oldest goes */
#define SESSION_MS (12LL * 60 * 60 * 1000)
#define SESSION_IDLE_MS (2LL * 60 * 60 * 1000)
#define SESSION_CODE_MS (10LL * 60 * 1000)
#define SESSION_SECRET_BYTES 65 /* 64 hexadecimal digits */

struct session {
    struct digest secret, token;
    char *jwt;                 /* `token` is then the digest of its subject; NULL: of a token of the file */
    int64_t began_ms, used_ms; /* boot-time clock */
};

struct sessions {
    struct session items[SESSIONS_MAX];
    size_t count;
    struct session codes[SESSION_CODES_MAX]; /* `secret` is that of the code */
    size_t code_count;
};

/* What was shown: a token of the file by its digest, or a JWT, whose text is copied. */
struct session_origin {
    struct digest token; /* the digest of a token; where it is a JWT, of its subject */
    struct slice jwt;    /* SLICE_NONE: none */
};

void sessions_fini(struct sessions *sessions); /* accepts a zeroed one */
/* Writes the secret for the cookie. */
void session_begin(struct sessions *sessions, const struct session_origin *origin, int64_t now_ms,
                   char secret[SESSION_SECRET_BYTES]);
/* NULL when there is none, or its time is over. Counts as use. */
const struct session *session_find(struct sessions *sessions, const struct digest *secret, int64_t now_ms);
bool session_lives(const struct sessions *sessions, const struct digest *secret,
                   int64_t now_ms); /* does not count as use */
void session_end(struct sessions *sessions, const struct digest *secret);

void session_code_make(struct sessions *sessions, const struct session_origin *origin, int64_t now_ms,
                       char code[SESSION_SECRET_BYTES]);
/* False when there is no such code, it was used or is too old. Whatever is answered, the code is good no more. The JWT
 * of `origin` is copied into the arena. */
bool session_code_use(struct sessions *sessions, struct slice code, int64_t now_ms, struct arena *arena,
                      struct session_origin *origin);

/* The digest of the session's cookie; false when the request has none, or several. */
bool session_cookie(const struct http_exchange *exchange, struct digest *secret);
/* NULL, or the sentence that says why a request by a session is refused: a page of another origin may have sent it. */
const char *session_guard_fault(const struct http_exchange *exchange);
/* NULL takes the cookie away. Where the server, or the proxy in front, speaks TLS, the browser sends it over TLS only.
 */
void session_put_cookie(struct http_exchange *exchange, const char *secret, bool has_tls);

#endif
