/*
 * The engine: the only door of the API. Everything from outside is a request that the caller owns; its `done` comes
 * exactly once, on the loop's thread, never inside the call. Answers are JSON text in the request's arena, ready to
 * send.
 */
#ifndef SAGAD_RUN_ENGINE_H
#define SAGAD_RUN_ENGINE_H

#include "base/arena.h"
#include "base/errors.h"
#include "base/id.h"
#include "base/role.h"
#include "base/trace_context.h"
#include "core/saga/saga.h"
#include "io/loop/loop.h"
#include "run/request/verbs.h"
#include "run/trace/target.h"

struct engine;
struct offers;
struct payload_keys;
struct store_options;

/* Every text is given, and every number: the settings of the program have the defaults. */
struct engine_options {
    const char *dsn;
    const char *engine_name; /* shown to people */
    const char *version;     /* the version of the program, shown to people */
    bool virtual_clock;      /* the clock of `sagad dev --clock virtual`: engine_move_clock() moves it ahead */
    bool standby;            /* owns shards only while no engine lives that is no standby */
    int64_t lease_ms;
    int writers, readers;
    size_t sagas_max; /* unfinished ones in memory; more are refused with ERR_BUSY */
    /* the memory of the process; new work is refused with ERR_BUSY when it has more. 0: half of what there is */
    size_t memory_bytes_max;
    int64_t commit_delay_ms;   /* new work is taken in more slowly while commits take longer */
    int64_t call_delay_ms;     /* the same while calls wait longer for a place */
    size_t payload_bytes_max;  /* the bytes of an input, arguments or a result */
    size_t response_bytes_max; /* the bytes of a tool's answer */
    uint32_t calls_max;        /* under way at once; further ones queue */
    uint32_t exec_max;         /* child processes at once */
    size_t rests_bytes_max;    /* memory for states of runs at rest, see saga/rests.h; 0: none is kept */
    int64_t park_after_ms;     /* a saga at rest leaves memory after so long */
    int64_t park_ahead_ms;     /* a saga stays in memory when it goes on sooner than that */
    int64_t key_look_ms;   /* small bundles of keys are put together after so long (store/batch/keys.c); 0: the store's
                              default */
    const char *retention; /* the rules of retention (saga/retention_rules.h); NULL: sagas are kept for ever */
    int64_t forget_share; /* percent of the time for removing ended sagas while turns wait, 1 to 100; see retention.c */
    size_t bulk_items_max;        /* the items of a bulk job */
    size_t bulk_jobs_max;         /* the jobs of a namespace, that run or may be run */
    int64_t bulk_rate;            /* items of bulk jobs that this engine carries out a second */
    int64_t bulk_keep_ms;         /* a job is removed so long after its end */
    int64_t acts_keep_ms;         /* a month of acts is removed so long after its end; 0: never */
    const char *notify_file;      /* JSON: receivers of notifications (notify/targets.h); NULL: none */
    struct trace_settings traces; /* where the traces of ended sagas go */
    const char *quotas_file;      /* JSON: what a namespace may ask for in a second (intake/quotas.h); NULL: anything */
    const char *budgets_file;     /* JSON: budgets of tools, namespaces and days (limiter.h); NULL: none */
    const struct egress
        *egress; /* the addresses that tools may call; copied. NULL: only what is denied always is denied */
    const struct programs
        *programs;            /* the programs of tools, and their user; they outlive us. NULL: any, as ourselves */
    const char *secrets_file; /* JSON object of names and texts; NULL: only SAGAD_SECRET_NAME variables */
    const struct payload_keys *payload_keys; /* keys of what the database holds; they outlive us. NULL: none */
    bool risk_losing_acknowledged_work;
    /* owns shards and has loaded them; first time only */
    void (*on_ready)(struct engine *engine, void *context);
    void (*on_refused)(struct engine *engine, const struct err *err, void *context); /* must not run on this database */
    void *context;
};

struct engine *engine_start(struct loop *loop, const struct engine_options *options);
/* Checks the files and the connection string that engine_start() would refuse. Connects to nothing, and starts
 * nothing. */
MUST_USE enum err_code engine_check(const struct engine_options *options, struct err *err);

/* Take nothing new, let calls under way settle for at most `patience_ms`, give each lease up as soon as nothing of its
 * shard is under way, then `done`. */
void engine_drain(struct engine *engine, int64_t patience_ms, void (*done)(void *context), void *context);
void engine_free(struct engine *engine); /* after done */

struct engine_health {
    bool alive, database, schema, leases, loaded, draining;
    struct err err;      /* the newest reason for not being ready */
    const char *warning; /* it works, and somebody should know something about the database; NULL: nothing. Lives as
                            long as the program */
};
/* ready: database, schema, leases and loaded, not draining */
void engine_health(const struct engine *engine, struct engine_health *out);

/* --- requests --- */

/*
 * What a call came to. ERR_OK: `answer` is the record of the operation, completed (or, with `going_on`, as it is when
 * the wait of the caller who began it was over). Else it is refused or failed for good, and `operation` is the record,
 * where there is one.
 */
struct call_result {
    bool going_on;                  /* 202 */
    bool replayed;                  /* Idempotent-Replayed: true */
    int64_t first_ms;               /* Idempotent-First-At */
    int64_t retry_after_ms;         /* with a refusal that a later repeat may get past; 0: none */
    struct slice key;               /* text, for Location; SLICE_NONE: there is no operation */
    struct slice operation;         /* JSON record; SLICE_NONE: there is none */
    struct slice pointers, pattern; /* JSON arrays: where the arguments differ, which calls go round; SLICE_NONE */
};

struct engine_tag { /* text */
    struct slice name, value;
};

struct engine_questions { /* the questions that are wanted */
    uint64_t number;      /* 0: list */
    bool open_only;
    struct slice status; /* without open_only: one of these, with commas between; SLICE_NONE: any */
    struct slice tool, saga, step, reason, error; /* the same; an empty value is what has none */
    const struct engine_tag *tags;                /* tags of the saga; for each name one of those given has to hold */
    size_t tag_count;
    int64_t since_ms, until_ms; /* opened; 0: any time */
    bool has_cost;
    int64_t cost_above;                  /* with has_cost */
    bool has_acknowledged, acknowledged; /* with has_acknowledged: does somebody look at the case now? */
    struct slice assigned;               /* names with commas between; an empty name: nobody; SLICE_NONE: any case */
    struct slice group_by; /* tool, saga, step, reason, error, tag.NAME, with commas between; SLICE_NONE: a list */
    size_t limit;
    struct slice cursor;
};

struct engine_sagas { /* the sagas that are wanted; SLICE_NONE and 0: any */
    struct slice id;  /* the first characters of it, as uuid_range_parse() takes them */
    struct slice status, saga, step, error, waits_for; /* one of these, with commas between */
    struct slice version;                              /* one of these numbers, with commas between */
    struct slice business_id, business_prefix;
    const struct engine_tag *tags; /* as of questions */
    size_t tag_count;
    int64_t since_ms, until_ms; /* when it began */
    bool by_status;             /* counted by status, instead of a list */
    size_t limit;
    struct slice cursor;
};

struct act_by { /* the person whose act a change is, beside namespace and actor */
    enum role role;
    const char *via;      /* "token", "session", "local"; NULL: it is nobody's act */
    struct slice address; /* the address that it came from; SLICE_NONE: not known */
};

struct engine_acts {                      /* the acts that are wanted; SLICE_NONE and 0: any */
    struct slice actor, verb, saga, tool; /* one of these, with commas between; a saga by name, or one by its id */
    struct slice outcome;                 /* "done", "refused" */
    int64_t since_ms, until_ms;
    size_t limit;
    struct slice cursor;
};

struct engine_grant { /* a row of the grants; what its body says is the API's affair */
    struct uuid id;
    struct digest secret;                    /* SHA-256 of its token */
    struct slice namespace, body;            /* body: JSON */
    struct slice revocation;                 /* JSON; SLICE_NONE: nobody has revoked it */
    int64_t made_ms, expires_ms, revoked_ms; /* revoked_ms 0: nobody has revoked it */
};

struct engine_request {
    struct arena *arena;           /* in: for everything in and out; the caller's, untouched after done */
    struct slice namespace, actor; /* in: from the token */
    struct act_by by;              /* in: of a change that is to be written down as an act */
    bool sees_sensitive;           /* in: what is sensitive is not masked in the answer: an admin asks */
    void (*done)(struct engine_request *request);
    void *context;   /* in: the caller's */
    bool wants_saga; /* in: start; see engine_start_saga() */

    enum err_code code;       /* out */
    struct err err;           /* out, unless ERR_OK */
    struct faults faults;     /* out, with ERR_INVALID: may hold places */
    struct slice answer;      /* out, with ERR_OK: JSON; for lists the array of items */
    struct slice next_cursor; /* out: lists; SLICE_NONE: no more */
    struct slice rests; /* out: of a log: [{"seq", "form", "sha256"}], the states at rest beside its turns; or none */
    int64_t looked_ms; /* out: lists; there may be more that are older than this, and were not looked at; 0: all were */
    int64_t looked_count;              /* out: with looked_ms: so many were looked at */
    struct saga_id saga;               /* out: start, find */
    bool created;                      /* out: start, false when the saga was there already */
    struct call_result call;           /* out: call */
    const struct engine_grant *grants; /* out: grants */
    size_t grant_count;

    union { /* in */
        struct {
            bool engines; /* the engines are read, too; they belong to no namespace */
        } stats;
        struct {
            struct slice document;
            bool dry_run;                   /* say what would become of each, and write nothing */
            const struct slice *namespaces; /* where whoever asks may register, too */
            size_t namespace_count;
            bool everywhere; /* in all namespaces */
        } define;
        struct {
            struct slice saga, input /* JSON; SLICE_NONE is {} */, business_id, tags /* JSON or none */;
            struct slice key; /* Idempotency-Key; without another id it is the business id, too; SLICE_NONE: none */
            uint32_t version; /* 0: the newest */
            struct trace_context trace;
        } start;
        struct {
            struct slice business_id, key /* as in start */, tags /* JSON or none */, budget,
                loop /* JSON or none, checked */, on_timeout /* text or none */;
            int64_t deadline_ms; /* the time from now on; 0: the default, 24 h */
            struct trace_context trace;
        } open;
        struct {
            struct saga_id saga; /* nil: outside any saga */
            struct slice run;    /* then: the caller's name of the run */
            struct slice tool, step /* SLICE_NONE: implicit */, scope, args /* JSON; SLICE_NONE is {} */, emission,
                conversation_turn;
            struct trace_context trace; /* handed to the tool, while the caller waits */
            int64_t wait_ms;
        } call;
        struct change change; /* request/verbs.h: a verb with its members */
        struct engine_questions approvals;
        struct {
            struct saga_id id;
            int64_t wait_ms; /* answer when the saga has ended, or when this is over; 0: at once */
        } get;
        struct {
            struct saga_id id;   /* when neither of the others is given */
            uint64_t escalation; /* 0: not about an escalation */
            struct op_key key;   /* nil: not about one operation */
        } preview;
        struct {
            struct saga_id id;
            uint64_t after_seq;
            size_t limit;
        } log;
        struct {
            struct slice name, business_id;
        } find;
        struct engine_sagas sagas;
        struct {
            struct slice tool, state, run;
            size_t limit;
            struct slice cursor;
        } operations;
        struct {
            struct slice saga, tool;   /* names; SLICE_NONE: any */
            bool has_settled, settled; /* with has_settled: was the debt settled? */
            struct slice group_by;     /* tool, saga, tag.NAME, with commas between; SLICE_NONE: a list */
            size_t limit;
            struct slice cursor;
        } debts;
        struct {
            struct op_key key;
            bool is_own; /* whoever asks made this call: its result is shown whole */
        } operation;
        struct engine_questions escalations;
        struct engine_acts acts;
        struct {
            struct slice cursor; /* "now": from now on; SLICE_NONE: from the first that is kept */
            struct slice types;  /* with commas between, checked; SLICE_NONE: all */
            size_t limit;        /* turns of sagas; a page may be a few longer */
            int64_t wait_ms;     /* for one that is not there yet */
        } events;
        struct {
            int64_t from_ms, until_ms; /* 0: an hour ago, now */
            enum series_by { SERIES_BY_ALL, SERIES_BY_SAGA, SERIES_BY_TOOL } by;
            struct slice name; /* SLICE_NONE: any */
        } series;
        struct {
            struct slice name; /* the name of the path; SLICE_NONE: all, or the one that `body` makes */
            struct slice body; /* JSON: what it is to be */
            struct slice note; /* the note of a hold or its end */
            enum schedule_act { SCHEDULE_HOLD, SCHEDULE_RELEASE, SCHEDULE_DELETE } act;
            size_t limit; /* the limit of a list; how many instants */
            struct slice cursor;
        } schedule;
        struct {
            int64_t by_ms, until_ms; /* 0: not so */
            bool to_next;            /* moves to what is due next */
        } clock;
        struct {
            uint64_t number;   /* the number of the path; 0: all, or the one that `body` makes */
            struct slice body; /* JSON: what is to be held */
            struct slice note; /* the note of its end */
            bool with_ended;   /* a list has those that have ended, too */
            size_t limit;
            struct slice cursor;
        } hold;
        struct {
            struct slice receiver;      /* the receiver's name; SLICE_NONE: any */
            struct slice state;         /* the state of a list: "pending", "dead"; SLICE_NONE: any */
            const struct slice *events; /* the ids of events to send again */
            size_t event_count;         /* 0: all */
            struct slice note;
            size_t limit;
            struct slice cursor;
        } notifications;
        struct {
            struct uuid id;         /* the id of the new grant, or of the one to revoke */
            struct digest secret;   /* the secret of the new grant */
            struct slice body;      /* the body of the new grant: JSON */
            struct saga_id saga;    /* the saga that the new one is for; nil: it is for a run */
            int64_t expires_ms;     /* the end of the new grant */
            struct slice purpose;   /* the purpose of the new grant: its run or its saga, for the act */
            const struct uuid *ids; /* the ids to find */
            size_t id_count;
            struct slice issuer_token; /* the SHA-256 in hex of the token whose grants are revoked; SLICE_NONE: any */
            bool with_ended;           /* a list has those that have ended, too */
            size_t limit;
            struct slice cursor;
        } grant;
        struct {
            struct slice tool; /* the tool of the path */
            bool is_open;
            struct slice note;
        } breaker;
        struct {
            struct saga_id id;    /* the id of the job; nil: all, or the one that `body` makes */
            struct slice body;    /* JSON: what it is to do */
            enum role role;       /* the role of whoever freezes or runs it */
            struct slice note;    /* the note of a stop */
            struct slice outcome; /* items with it: "open", "done", "changed", "refused"; SLICE_NONE: any */
            uint64_t after;       /* the number of the last item of the page before */
            size_t limit;
            struct slice cursor; /* the cursor of the list of jobs */
        } bulk;
        struct {
            enum definition_kind kind;
            struct slice name; /* SLICE_NONE: list */
            uint32_t version;  /* 0: the newest */
        } definitions;
    } in;

    void *internal; /* the engine's, until done */
};

void engine_define(struct engine *engine, struct engine_request *request);
void engine_get_definitions(struct engine *engine, struct engine_request *request);
/* What the namespace offers to agents over the Model Context Protocol. Lives until the loop turns. NULL with an error
 * while the engine does not know its definitions. */
const struct offers *engine_offers(struct engine *engine, struct slice namespace, struct err *err);
/* done when durable. answer: with `wants_saga` the saga as its start left it, where it is in memory and not large; else
 * none: use engine_get_saga */
void engine_start_saga(struct engine *engine, struct engine_request *request);
void engine_open_saga(struct engine *engine, struct engine_request *request); /* like engine_start_saga */
void engine_call(struct engine *engine, struct engine_request *request);
/*
 * Does what somebody asks of a saga that exists: a verb with its members, as `actor`. `answer` is the saga, the
 * operation, the escalation or the approval, as the turn left it. A signal: {saga, name, taken, created}; a bypass:
 * {key, fingerprint, reason, actor, expires_at}. `created`: false for a repeat of a signal.
 */
void engine_change(struct engine *engine, struct engine_request *request);
void engine_get_approvals(struct engine *engine, struct engine_request *request);
/* out: `saga`, by its business id; ERR_NOT_FOUND: the namespace has none. A run is found under its name and "~run". */
void engine_find_saga(struct engine *engine, struct engine_request *request);
void engine_get_saga(struct engine *engine, struct engine_request *request);
/* What each verb about the saga, the operation or the open escalation would lead to: see core/prove/preview.h. */
void engine_preview(struct engine *engine, struct engine_request *request);
/* The proof of the saga in.definitions, with the newest tools and children: see core/prove/show.h. */
void engine_prove(struct engine *engine, struct engine_request *request);
/* entries {seq, at, type, ...}; next_cursor is not used; rests */
void engine_get_log(struct engine *engine, struct engine_request *request);
void engine_list_sagas(struct engine *engine, struct engine_request *request);
/* What persons and tokens changed, and were refused; newest first. */
void engine_list_acts(struct engine *engine, struct engine_request *request);
struct engine_refusal {
    struct slice namespace, actor;
    struct act_by by;
    struct slice verb, kind, target; /* SLICE_NONE: not known */
    enum err_code code;
};
/* Somebody was refused a change, or lacked the right: counted in the row of its token and minute, in a moment. */
void engine_count_refusal(struct engine *engine, const struct engine_refusal *refusal);
/* The effects that stand although their sagas ended abandoned. */
void engine_list_debts(struct engine *engine, struct engine_request *request);
void engine_list_operations(struct engine *engine, struct engine_request *request);
void engine_get_operation(struct engine *engine, struct engine_request *request);
void engine_get_escalations(struct engine *engine, struct engine_request *request);
void engine_put_schedule(struct engine *engine, struct engine_request *request);  /* answer: it; `created` */
void engine_get_schedules(struct engine *engine, struct engine_request *request); /* the one with the name, or a page */
void engine_get_schedule_next(struct engine *engine, struct engine_request *request);
/* hold, release: answer: the schedule; delete: none */
void engine_change_schedule(struct engine *engine, struct engine_request *request);
/* answer: the hold. Done when it is in force on every engine that may send, or `in_force` of the answer says that it is
 * not, because an engine of an earlier release is there. */
void engine_put_hold(struct engine *engine, struct engine_request *request);
void engine_get_holds(struct engine *engine, struct engine_request *request); /* the one with the number, or a page */
void engine_release_hold(struct engine *engine,
                         struct engine_request *request); /* answer: the hold; every engine knows */
/* out: `grants`: the new one; those of `ids` that hold; a page, newest first; the one that holds no more. Finding needs
 * no namespace, because the token of a grant is what says it. */
void engine_put_grant(struct engine *engine, struct engine_request *request);
void engine_find_grants(struct engine *engine, struct engine_request *request);
void engine_list_grants(struct engine *engine, struct engine_request *request);
void engine_revoke_grant(struct engine *engine, struct engine_request *request); /* a repeat changes nothing */
/* answer: {tool, breaker, by}; this engine goes by it at once, others within seconds */
void engine_set_breaker(struct engine *engine, struct engine_request *request);
/* One verb on many sagas (run/bulk). answer: the job; of items and of the list the array. */
void engine_freeze_bulk(struct engine *engine, struct engine_request *request); /* nothing is done before it is run */
void engine_run_bulk(struct engine *engine, struct engine_request *request);    /* a second run: the same job */
void engine_stop_bulk(struct engine *engine, struct engine_request *request);
void engine_get_bulk(struct engine *engine, struct engine_request *request); /* the one with the id, or a page */
void engine_get_bulk_items(struct engine *engine, struct engine_request *request);
void engine_get_stats(struct engine *engine, struct engine_request *request);
/* answer: the events behind the cursor, in order for each saga; next_cursor: always. ERR_GONE: some are not kept any
 * more, and next_cursor has those that are. */
void engine_get_events(struct engine *engine, struct engine_request *request);
/* What receivers of notifications have not confirmed. */
void engine_get_notifications(struct engine *engine, struct engine_request *request);
/* answer: {replayed}: so many dead letters are sent again */
void engine_replay_notifications(struct engine *engine, struct engine_request *request);
/* answer: {step, from, to, items, next_from}: what happened in each minute or hour */
void engine_get_series(struct engine *engine, struct engine_request *request);
/* The virtual clock of `sagad dev`; ERR_NOT_FOUND where there is none. answer: {now, ahead_ms, next_at} */
void engine_get_clock(struct engine *engine, struct engine_request *request);
void engine_move_clock(struct engine *engine, struct engine_request *request);
void engine_get_engines(struct engine *engine, struct engine_request *request);
/* Prometheus text, labelled by namespace and tool */
/* The tools and definitions of one namespace; SLICE_NONE: of all. */
void engine_write_tool_metrics(const struct engine *engine, struct slice namespace, struct buffer *out);

/*
 * Would a start be refused now, because there is too much work? Then ERR_BUSY, with a sentence and after how long to
 * come again: the cheapest answer, before a body is read.
 */
bool engine_refuses_new(struct engine *engine, struct err *err, int64_t *retry_after_ms);

/* The client left: done follows soon with ERR_TIMEOUT, or with what happened meanwhile. An operation under
 * way goes on. */
void engine_cancel(struct engine *engine, struct engine_request *request);

/* Called after each committed turn of a saga, for following its log; `ended` with the last. Lies in the caller. */
struct engine_watch {
    struct list_link link;
    struct saga_id id;
    void (*changed)(struct engine_watch *watch, uint64_t seq, bool ended);
};
void engine_watch_add(struct engine *engine, struct engine_watch *watch);
void engine_watch_remove(struct engine *engine, struct engine_watch *watch);

#endif
