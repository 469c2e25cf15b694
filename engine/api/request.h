/*
 * One request on its way through the API: what the handlers of this folder share. It lives in the arena of its
 * exchange.
 */
#ifndef SAGAD_API_REQUEST_H
#define SAGAD_API_REQUEST_H

#include <time.h>

#include "api/auth.h"
#include "api/certificate_use.h"
#include "api/grant.h"
#include "api/jwt_use.h"
#include "api/mcp/identity.h"
#include "api/problem.h"
#include "api/routes.h"
#include "api/session.h"
#include "base/json.h"
#include "io/http/server.h"
#include "run/engine.h"

struct tokens_seen {
    struct timespec changed, modified;
    uint64_t device, inode;
    int64_t bytes;
};

struct api {
    struct loop *loop;
    struct engine *engine;
    struct http_server *server;
    const char *tokens_file;
    struct tokens tokens; /* the tokens of the file */
    struct tokens dev;    /* the tokens of the option */
    struct oidc_options oidc;
    struct issuer *issuer; /* NULL: there is none */
    bool has_tokens;       /* a file, the option or an issuer gives tokens: nobody comes in without one */
    struct sessions sessions;
    struct tokens_seen tokens_seen; /* what the file was when it was last read, to see a change */
    bool tokens_wrong;              /* the file was wrong when it was last read: what we have still holds */
    bool tokens_gone;               /* the file was not there when it was last looked for */
    int64_t tokens_good_ms;         /* when the tokens in memory were last those of the file */
    struct timer tokens_timer;
    int64_t tokens_looked_ms; /* wall clock of the last look for rights that the clock has ended */
    int64_t heartbeat_ms;
    size_t batches;              /* under way */
    size_t holding, holding_max; /* answers held because the caller asked to wait, and how many may be */
    bool stopping;
    struct list waiting;   /* requests that stop waiting when the service stops */
    struct list followers; /* the followers of the feed of events */
    struct grant_watch *grant_watch;
    struct host_keys mcp_keys;
    struct slice mcp_origins; /* with commas between */
    bool mcp_session_run;
    int64_t mcp_wait_ms, mcp_progress_ms;
    const char *version;
    void (*stopped)(void *context);
    void *stopped_context;
};

struct api_request {
    struct api *api;
    struct http_exchange *exchange;
    struct arena *arena;
    const struct route *route;
    struct slice params[ROUTE_PARAMS_MAX];
    enum role role;
    bool has_token;
    struct token_tools tools; /* in the arena; of a grant those of the token that made it */
    int64_t token_expires_ms; /* 0: never, or there are no tokens */
    struct grant *grant;      /* the grant that the request shows instead of a token; NULL: none */
    struct jwt_use *jwt;      /* the JWT that the request shows as its token; NULL: none */
    struct digest token;      /* the token of this right; looked for again while it waits, and before its answer */
    bool has_certificate;     /* the right is that of the certificate of the connection */
    int64_t certificate_expires_ms; /* the end of the connection's good certificate, whoever asks; 0: none */
    bool has_session;               /* the token was shown by the console when its session began, not by this request */
    struct digest session;          /* the secret of the session */
    struct slice body;              /* passed json_check(), trimmed; "{}" where none was sent */
    struct engine_request asked;    /* namespace, actor and arena are set */
    bool engine_busy;               /* the engine owes us a `done` */
    bool cancelled;                 /* the engine was told so, for the request it has now */
    /* The client left or the service stops. NULL: the engine's request is cancelled. */
    void (*cancel)(struct api_request *request);
    struct list_link link;     /* in api->waiting */
    int64_t wait_ms;           /* the time of ?wait= */
    bool holds;                /* counted in api->holding */
    size_t limit;              /* the limit of ?limit= */
    int status;                /* the status of the answer to come; 0: 200 */
    struct slice location;     /* the location of the saga that was started */
    struct start_batch *batch; /* this is an element of: its answer goes there; NULL: to the client */
    void *state;               /* the handler's */
};

/* NULL when there is none, or it has expired. */
const struct token *api_find_token(const struct api *api, const struct digest *digest);
/* The token that the request has shown; NULL when there is none, or it has expired. */
const struct token *request_token(const struct api_request *request);
void request_take_token(struct api_request *request, const struct token *token); /* with its rights */
/* The engine has answered with an operation. Of a tool that is none of the token's it is as if it did not exist. */
void request_hide_operation(struct api_request *request);
/* Answers that are held, and streams, end when the right to them has ended. */
void api_cut_revoked(struct api *api);

/* Was the token of this request taken away, or has it or its session ended, since the request came? Its role and
 * namespace count. */
bool request_is_revoked(const struct api_request *request);
/* The address by which the client reaches this service: "https://sagad.example". */
/* protected_resource.c: what a refusal of /mcp says of where a token comes from (RFC 9728); SLICE_NONE elsewhere. */
struct slice protected_resource_challenge(const struct api_request *request, enum err_code code);
void protected_resource_refuse_scope(struct api_request *request); /* adds the header of a 403 */
/* Is it for what belongs to no namespace, or to all: the process, the engines? An admin of the namespace "*", and
 * everybody where neither a tokens file nor an issuer tells namespaces apart. */
bool request_sees_all(const struct api_request *request);
/* Hand the engine request over; `done` as set by the caller, which gets the api_request back by request_of(). */
void request_ask(struct api_request *request, void (*ask)(struct engine *, struct engine_request *),
                 void (*done)(struct engine_request *));
struct api_request *request_of(struct engine_request *asked);
/* The client left, or the service stops: end the wait. May be called twice. */
void request_cancel(struct api_request *request);

/* Did the engine refuse? Then the refusal has been answered, which is an ending. */
bool request_failed(struct api_request *request);
/* Endings. Each exactly once. */
void request_answer_text(struct api_request *request, int status, const char *content_type, struct slice text);
/* SLICE_NONE: an answer without a body. */
void request_answer_json(struct api_request *request, int status, struct slice json);
/* The last bytes of a stream that the handler has begun, unless the token was revoked. */
void request_end_stream(struct api_request *request, struct slice last);
void request_answer_items(struct api_request *request, struct slice items, struct slice next_cursor);
void request_problem(struct api_request *request, enum err_code code, const char *message, ...) PRINTF_LIKE(3, 4);
void request_problem_of(struct api_request *request, const struct err *err,
                        const struct faults *faults); /* faults may be NULL */
/* What the engine said beside its refusal. */
struct problem_more request_problem_more(const struct api_request *request);
void request_problem_later(struct api_request *request, const struct err *err, int64_t retry_after_ms);

/* A `done` that answers with the engine's text, or with its error. */
void request_on_answer(struct engine_request *asked);
void request_on_items(struct engine_request *asked);

/* --- reading; each answers the request itself and returns false when it is wrong --- */

struct member { /* a member of a body */
    const char *name;
    enum json_type type; /* JSON_NONE: any */
    bool required;
    bool later;        /* it belongs to a later version: refused by name */
    struct slice *out; /* JSON; SLICE_NONE when absent. NULL: known, and looked at by the caller */
};
/* Every fault is reported at once, with its pointer. `more` adds faults of the caller's own; may be NULL. */
bool request_read_body(struct api_request *request, const struct member *members, size_t count,
                       void (*more)(struct api_request *request, struct faults *faults));
/* No fault was found? Else they are the answer. */
bool request_is_good(struct api_request *request, const struct faults *faults);
/* ?wait=5s into wait_ms, at most 5 minutes. Refused when as many callers wait already as may. */
bool request_read_wait(struct api_request *request, int64_t otherwise_ms);
/* The same without a parameter. */
bool request_hold(struct api_request *request, int64_t wait_ms);
bool request_read_stream(struct api_request *request, bool *out); /* ?follow=, or server-sent events are accepted */
bool request_read_limit(struct api_request *request);             /* ?limit= into limit: 50, 1 to 500 */
/* Reads a query parameter that is true or false. */
bool request_read_bool(struct api_request *request, const char *name, bool *is_given, bool *out);
bool request_read_count(struct api_request *request, const char *name, uint64_t least,
                        uint64_t *out); /* a query parameter; untouched when absent */
bool request_read_instant(struct api_request *request, const char *name, int64_t *out);
bool request_read_saga_id(struct api_request *request,
                          struct saga_id *out); /* the first part in braces; an id that is none is 404 */
struct slice request_query(const struct api_request *request, const char *name);

/* questions.c: texts that are compared with columns of the database, which holds no character 0; and tag.NAME=VALUE,
 * each as often as one likes. */
struct query_text {
    const char *name;
    struct slice *out;
};
bool request_read_texts(struct api_request *request, const struct query_text *texts, size_t count);
/* Each of those between the commas is one of `known`, which has blanks between. */
bool query_words_are_known(struct slice list, const char *known);
bool request_read_tags(struct api_request *request, const struct engine_tag **out, size_t *out_count);
/* questions.c: ?status=open, ?limit= and ?cursor= into `in`, one of request->asked.in; and asks */
/* `known` has the statuses that may be asked for, with blanks between. */
void request_list_questions(struct api_request *request, struct engine_questions *in, const char *known,
                            void (*ask)(struct engine *, struct engine_request *));
/* The first part in braces; where it is no number there is no such `what`: 404. */
bool request_read_number(struct api_request *request, const char *what, uint64_t *out);

/* --- parts of bodies --- */

/* The header Idempotency-Key, or SLICE_NONE; a fault when it stands there twice, or is not plain text of 1 to 256
 * bytes. */
struct slice request_idempotency_key(const struct api_request *request, struct faults *faults);
/* The trace that this request belongs to: of `_meta` (JSON, or SLICE_NONE), else of the headers. */
struct trace_context request_trace(const struct api_request *request, struct slice meta);
/* What every ending of a request for the engine's `call` result shares: headers of a replay. */
void request_put_replay_headers(struct api_request *request);

/* --- handlers --- */

void handle_define(struct api_request *request);
void handle_get_definitions(struct api_request *request);
void handle_get_proof(struct api_request *request);
void handle_get_tools(struct api_request *request);
void handle_start_saga(struct api_request *request);
void handle_start_batch(struct api_request *request); /* gets its body as it came, not checked */
void handle_list_sagas(struct api_request *request);
void handle_get_saga(struct api_request *request);
void handle_open_saga(struct api_request *request);
void handle_list_approvals(struct api_request *request);
void handle_get_approval(struct api_request *request);
void handle_get_log(struct api_request *request);
void handle_list_operations(struct api_request *request);
void handle_get_operation(struct api_request *request);
void handle_call(struct api_request *request); /* outside any saga */
void handle_call_in_saga(struct api_request *request);
void handle_change(struct api_request *request); /* any verb, by the row of the route */
void handle_list_escalations(struct api_request *request);
void handle_list_debts(struct api_request *request);
void handle_list_acts(struct api_request *request);
void handle_me(struct api_request *request);
void handle_get_escalation(struct api_request *request);
void handle_preview_saga(struct api_request *request);
void handle_preview_operation(struct api_request *request);
void handle_preview_escalation(struct api_request *request);
bool request_read_key(struct api_request *request,
                      struct op_key *out); /* the operation of the path; false: it has been answered */
void handle_put_grant(struct api_request *request);
void handle_list_grants(struct api_request *request);
void handle_revoke_grant(struct api_request *request);
void handle_get_clock(struct api_request *request);
void handle_move_clock(struct api_request *request);
void handle_put_hold(struct api_request *request);
void handle_list_holds(struct api_request *request);
void handle_get_hold(struct api_request *request);
void handle_release_hold(struct api_request *request);
void handle_set_breaker(struct api_request *request);
void handle_put_schedule(struct api_request *request);
void handle_list_schedules(struct api_request *request);
void handle_get_schedule(struct api_request *request);
void handle_get_schedule_next(struct api_request *request);
void handle_hold_schedule(struct api_request *request);
void handle_release_schedule(struct api_request *request);
void handle_delete_schedule(struct api_request *request);
void handle_freeze_bulk(struct api_request *request);
void handle_list_bulk(struct api_request *request);
void handle_get_bulk(struct api_request *request);
void handle_list_bulk_items(struct api_request *request);
void handle_run_bulk(struct api_request *request);
void handle_stop_bulk(struct api_request *request);
void handle_list_notifications(struct api_request *request);
void handle_replay_notifications(struct api_request *request);
void handle_get_stats(struct api_request *request);
void handle_get_events(struct api_request *request);
void handle_get_series(struct api_request *request);
void handle_get_engines(struct api_request *request);
void handle_livez(struct api_request *request);
void handle_readyz(struct api_request *request);
void handle_metrics(struct api_request *request);
void handle_openapi(struct api_request *request);
void handle_root(struct api_request *request);
void handle_console_slash(struct api_request *request);
void handle_console(struct api_request *request);
void handle_console_file(struct api_request *request);
void handle_sign_in(struct api_request *request);
void handle_sign_out(struct api_request *request);
void handle_console_link(struct api_request *request);
void handle_protected_resource(struct api_request *request);
void handle_mcp(struct api_request *request); /* gets its body as it came, not checked */

#endif
