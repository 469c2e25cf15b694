/*
 * The HTTP API: parse, authorise, ask the engine, answer. spec: schema/openapi.json, served at /v1/openapi.json.
 *
 * Without tokens only a loopback address is accepted; every request is then the admin "local" of the namespace
 * "default", and requests that a web page or a client of a proxy could have sent are refused (local_guard.h).
 */
#ifndef SAGAD_API_SERVER_H
#define SAGAD_API_SERVER_H

#include "api/oidc.h"
#include "base/errors.h"
#include "io/loop/loop.h"
#include "run/engine.h"

struct api;

#define API_LISTEN_DEFAULT "127.0.0.1:8077"

struct api_options {
    const char *listen; /* ADDRESS:PORT; NULL: API_LISTEN_DEFAULT; port 0 takes a free one */
    /* NULL: none. Read again when it changes (looked at every 0.4 s) and by api_reload(). One that
     * stays away has none. */
    const char *tokens_file;
    struct oidc_options oidc;                 /* the issuer whose JWTs are tokens too */
    const char *tls_cert_file, *tls_key_file; /* PEM; NULL: plain HTTP. Read again by api_reload() */
    const char *tls_client_ca_file;           /* PEM; NULL: no client is asked for a certificate. Read again, too */
    bool behind_proxy;                        /* others reach a plain listener only through a proxy that speaks TLS */
    const char *dev_token;    /* NULL, or a token text with role admin in the namespace "default" (`sagad dev`) */
    uint32_t connections_max; /* default 1024 */
    uint32_t connections_per_ip_max; /* default connections_max */
    uint32_t waiting_max;            /* callers whose answers are held because they asked to wait; further ones are told
                                        to come back. Default 10000, and at most seven eighths of connections_max */
    size_t body_bytes_max;           /* default 1 MiB */
    int64_t idle_ms, header_ms,
        body_ms;          /* total times for the next request to begin, its head, its body; defaults 60 s, 10 s, 30 s */
    int64_t heartbeat_ms; /* the heartbeat of followed logs; default 15000 */
    /* settings of /mcp: members of `_meta` that hosts send anyway, and origins of web pages; with commas between
     * (api/mcp) */
    const char *mcp_run_keys, *mcp_turn_keys, *mcp_emission_keys, *mcp_origins;
    bool mcp_session_run; /* a session of the older revisions of /mcp is a run where nothing else says one */
    int64_t mcp_wait_ms, mcp_progress_ms; /* the wait of a call, the time between signs of life; 45 s and 5 s */
    const char *version;                  /* the version of the program, shown to clients */
};

/* Checks what api_start() would refuse, and listens at no port. ERR_CONFIG, with a sentence. */
MUST_USE enum err_code api_check(const struct api_options *options, struct err *err);
/*
 * NULL with a sentence: the port is taken, the tokens file is wrong, tokens are missing on an address others can reach.
 */
struct api *api_start(struct loop *loop, struct engine *engine, const struct api_options *options, struct err *err);
uint16_t api_port(const struct api *api);
const char *api_address(const struct api *api); /* "127.0.0.1:8077" */
bool api_has_tokens(const struct api *api);
bool api_has_tls(const struct api *api);
/* SIGHUP: tokens, certificate and key, and the keys of the issuer. A file that is wrong is reported in the log and
 * changes nothing. */
void api_reload(struct api *api);

/* Accept nothing new, end waits and streams, let answers leave; then free and call `done`. The engine must live until
 * then. */
void api_stop(struct api *api, void (*done)(void *context), void *context);

#endif
