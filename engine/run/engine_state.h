/*
 * What the files of run/ share: the engine, its shards, the sagas it has in memory, what is under way for them.
 *
 * A saga in memory (struct live) has a mailbox of inputs. One turn at a time: decide, append, apply, reconcile
 * (turn.c). What its wants ask for are its activities: calls, probes, timers, evaluations (activity.c).
 */
#ifndef SAGAD_RUN_ENGINE_STATE_H
#define SAGAD_RUN_ENGINE_STATE_H

#include "adapters/adapter.h"
#include "base/json.h"
#include "base/list.h"
#include "base/map.h"
#include "run/call/call_queue.h"
#include "run/call/eval.h"
#include "run/call/secrets.h"
#include "run/engine.h"
#include "run/request/definitions.h"
#include "store/store.h"

struct live;
struct turn;

/* An input in a mailbox. Lies in whoever sent it, stays there until `done`; what the input borrows does too. */
struct mail {
    struct list_link link;
    struct saga_input input;
    /* Exactly once. ERR_OK: what it meant is durable (or it meant nothing). Else the sentence why not. */
    void (*done)(struct mail *mail, enum err_code code, const struct err *err);
    bool from_inbox;
    struct uuid inbox_id;
    /* of the start of an open saga: what a repeat has to ask for too, as JSON; SLICE_NONE: nothing but the defaults */
    struct slice asked;
    struct slice started_by;   /* of a start; see append_start */
    struct live *live;         /* whose mailbox it was put into; NULL: it never came so far */
    struct call_answer answer; /* of SAGA_INPUT_CALL, in `done`: what it says; its slices live as long as `done` */
};

enum activity_state {
    ACTIVITY_WAITING,   /* for its time, or for a place among the calls */
    ACTIVITY_ASKING,    /* the guards, in PostgreSQL */
    ACTIVITY_RENDERING, /* settings or arguments are being evaluated */
    ACTIVITY_CALLING,
    ACTIVITY_JUDGING,  /* the answer is being evaluated */
    ACTIVITY_REPORTING /* its mail is in the mailbox */
};

/* what a WANT_ADMIT, or a call behind a half-open breaker, reads first */
enum inquiry { INQUIRY_NONE, INQUIRY_PRECHECK, INQUIRY_STATUS };

/* What a call awaits: dispatch.c. */
enum dispatch_stage {
    DISPATCH_SETTINGS, /* the tool's settings, rendered for this call */
    DISPATCH_ANSWER,   /* the adapter's */
    DISPATCH_RULES,    /* the tool's conditions on the answer */
    DISPATCH_ERROR,    /* the tool's own words about a refusal */
    DISPATCH_RESULT,
    DISPATCH_COST,
    DISPATCH_UNDO_ARGS, /* the arguments of its compensator */
    DISPATCH_REPORT     /* nothing: its saga is told */
};

struct act { /* what only an activity has whose time has come: timers that are far off are many */
    struct activity *activity;
    struct arena *arena;         /* of what dispatch.c has under way: the activity's, or that of inquiries */
    struct arena *inquiry_arena; /* they may be many, so each begins it anew; NULL: there was none */
    struct eval eval;
    struct call *call;
    enum dispatch_stage stage;
    const struct tool *tool;               /* of a call or a probe */
    const struct compensator *compensator; /* of a forward operation, for the arguments of its undo */
    int64_t started_us;
    struct outcome outcome;
    struct slice response, args, key; /* JSON, JSON, text; in `arena` */
    struct slice binary;              /* body of an answer that is no text; else SLICE_NONE */
    struct slice
        undoes; /* key of the forward operation, where the compensator's adapter looks for it; else SLICE_NONE */
    struct expression_context context; /* as it was when the call was made */
    int64_t cost_micros;
    struct slice cost_unknown, result_error; /* why the one is not known, why the other could not be made */
    struct slice undo_args, undo_error;      /* of the compensator: JSON; or why they could not be made */
    struct mail mail;
};

struct activity {                /* one want being carried out; lies in its arena */
    struct list_link link;       /* in its saga's list, sorted like wants; unlinked once detached */
    struct list_link queue_link; /* in the line of its tool: */
    struct call_queue *queue;    /* in which, */
    struct call_line *line;      /* and which; NULL: it does not wait for a place (call_queue.c) */
    struct engine *engine;
    struct live *live; /* NULL: detached, its saga left memory; it ends by itself */
    struct want want;
    enum activity_state state;
    struct arena arena;
    struct timer timer;
    struct act *act;     /* NULL: its time has not come; activity_act() */
    struct saga_id saga; /* whose it is, also when that has left memory */
    uint32_t shard;
    struct slice namespace;
    struct op_key operation_key; /* of a call, probe or admission */
    enum effect effect;          /* the class of that operation */
    bool cancelled;
    bool maybe_before;           /* an earlier attempt may have taken effect */
    bool held_up;                /* in a queue by more than places: how long it waited says nothing of those */
    struct admitting *admitting; /* limiter.c; NULL: it has not been there */
    struct locking *locking;     /* lock.c; NULL: it asks for no lock */
    bool promised; /* a place among the calls is kept until its mail is done: the intent is being made durable */
    struct tool_health *exec_of; /* whose place among the child processes it has, or was promised; NULL: none */
    bool held;                   /* it came when nothing may begin: activities_resume(), or the next owner */
    enum inquiry inquiry;
    int64_t queued_boot_ms;
};

#define REFUSALS_MAX 3 /* then the saga waits for a person, or for the next engine, instead of asking for ever */

struct live {              /* a saga in memory; lies in its arena */
    struct list_link link; /* in its shard's list */
    struct engine *engine;
    struct shard *shard;
    struct arena arena;
    struct saga saga;
    struct list mailbox, activities, waiters;
    struct list callers;             /* work that waits until an operation, or all of them, are settled (call.c) */
    const struct digest *run_digest; /* of a run: its place among the runs in memory; NULL */
    struct list_link doubt_link;     /* health.c: among those in doubt */
    struct list_link ready_link;     /* among those that go on in the next round */
    struct list_link rest_link;      /* park.c: among those that rest, if nothing of it has moved since rest_boot_ms */
    int64_t rest_boot_ms;
    struct parking *parking; /* its row in due is being written: no turn begins before that is known (park.c) */
    struct mail *current;    /* being decided or appended */
    struct turn *turn;       /* being appended; NULL: none */
    uint32_t asks; /* for locks, under way: the end of a saga must not come before what it asked for (lock.c) */
    /* a run that was woken, or a saga that was parked: recovery finds it in the table awake, however old it is */
    bool awake;
    bool parked;       /* it has a row in due: its next append takes that away */
    bool was_due;      /* it had one since it is in memory, or may have had */
    bool park_refused; /* its row was refused, and may be there all the same: not tried again before the saga moves */
    bool dropped;      /* its shard was lost: freed when the turn is over */
    bool begun;        /* something of it has settled; read back from its log it counts so too */
    bool taken_in;     /* here, as something new, and in memory since then */
    bool interrupted;  /* just loaded: calls that are wanted were made by an engine that is gone */
    bool maker_died;   /* and that is certain: none of them is under way from a living one */
    uint8_t refusals;  /* turns in a row, asked for by its own activities, that the database refused as data */
};

/* GIVING: another engine is to have it (handover.c); ours, and nothing begins in it */
enum shard_state { SHARD_NONE, SHARD_LOADING, SHARD_OWNED, SHARD_GIVING };

struct shard {
    struct engine *engine;
    uint32_t number;
    enum shard_state state;
    int64_t epoch;
    int64_t alone_from_ms;       /* time of day: nobody else can have sent a call of it since */
    uint64_t escalation_counter; /* numbers given are counter * SHARD_COUNT + shard */
    uint64_t approval_counter;   /* the same */
    int64_t escalations_open;    /* of this shard, also of sagas that are not in memory */
    struct list sagas;
    struct shard_load load;
    int64_t busy_until_ms; /* its owner, another engine, takes in nothing new before (measures.c); boot-time clock */
    int64_t oldest_unreadable_ms;  /* when the oldest saga was made whose log makes no sense here; 0: none */
    bool load_running, load_stale; /* stale: lost while loading */
    int64_t give_until_boot_ms;    /* handover.c: then it is kept */
    int64_t keep_until_boot_ms;    /* and not tried again before this */
    uint32_t keeps;                /* how often it was kept */
    uint32_t answers;              /* to inputs of its inbox, on their way into the database (inbox.c) */
};

struct engine {
    struct loop *loop;
    struct engine_options options;
    struct store *store;
    struct leases *leases;
    struct http_client *http;
    struct db_pool *databases; /* of the adapter sql; the store has its own */
    struct adapter_host host;
    struct definitions *definitions;
    struct secrets secrets;
    struct arena arena; /* names and options */
    struct shard shards[SHARD_COUNT];
    uint32_t next_shard;       /* round robin for sagas without a business id */
    struct lives *lives;       /* saga/live.c */
    struct summoner *summoner; /* saga/summon.c */
    struct cases *cases;       /* saga/cases.c */
    struct turns *turns;       /* saga/turn.c */
    struct list watches;
    struct parker *parker;          /* park.c */
    struct retention *retention;    /* retention.c */
    struct scheduler *scheduler;    /* scheduler.c */
    struct calls *calls;            /* call/call_queue.c */
    struct list detached;           /* calls under way whose saga left memory */
    uint32_t evaluations_under_way; /* for wants, and of the answers of calls, which are not in the log yet */
    struct measures *measures;      /* intake/measures.c */
    struct list works;              /* requests that are not answered */
    uint32_t previews_under_way;    /* that share a slice (query/preview.c) */
    struct list errands;            /* inputs on their way to other engines (inbox_post.c) */
    struct health *health;          /* query/health.c */
    struct deferred watch_inbox;
    struct timer handover_timer;
    struct map deliveries;     /* inbox row id -> its delivery under way */
    struct list late_outcomes; /* inbox_late.c: evidence on its way to the owner of a saga */
    struct limiter *limiter;
    bool ready_told, database_ready, definitions_loaded, draining, refused;
    struct err reason; /* for not being ready */
    struct timer drain_timer;
    struct forgotten *forgotten; /* saga/forgotten.c */
    struct timer away_timer;     /* the database is away: when it runs out, who waits is told */
    struct load_definitions load_definitions;
    struct arena load_arena;
    bool definitions_loading, definitions_stale;
    void (*drained)(void *context);
    void *drained_context;
    struct deferred leaver; /* tells `drained` when the last requests are answered */
    bool leases_releasing, leases_released, store_closing;
};

/* live.c */
struct lives *lives_new(struct engine *engine);
void lives_free(struct lives *lives);
size_t lives_count(const struct engine *engine); /* sagas in memory */
bool lives_wait(const struct engine *engine);    /* one of them is ready, and has not gone on yet */
/* Each saga in memory, in no order; NULL: no more. */
struct live *lives_next(const struct engine *engine, size_t *position);
struct live *live_new(struct engine *engine, struct shard *shard, struct saga_id id,
                      const struct definition *definition);
/* Folded from its log, not in the maps yet: live_enter() or live_discard() follows. NULL with a sentence. */
struct live *live_from_log(struct engine *engine, struct shard *shard, struct saga_id id, struct slice namespace,
                           const struct stored_turn *turns, size_t count, struct err *err);
void live_enter(struct live *live);
void live_discard(struct live *live);
void live_set_run(struct live *live, const struct digest *digest); /* it is that run */
void live_leave_run(struct live *live);                            /* it turned out that there is another */
struct live *live_find(const struct engine *engine, struct saga_id id);
struct live *live_find_run(const struct engine *engine, const struct digest *run); /* see run_digest() */
/* The same for whoever shows it: only while our lease holds. Past that another engine may have taken it further. */
struct live *live_shown(struct engine *engine, struct saga_id id);
/* Its done comes later, never inside this call, also when the saga leaves memory meanwhile. */
void live_send(struct live *live, struct mail *mail);
/* Soon, from the loop, the saga takes its next input, or leaves memory where nothing is left to do for it. */
void live_ready(struct live *live);
void live_after_turn(struct live *live); /* reconcile, tell callers, go on */
void live_drop(struct live *live);       /* its shard was lost */
void live_evict(struct live *live);      /* it is parked, and nobody wants anything of it */

/* turn.c */
/* JSON whose digest tells a repeat of this start from another one under the same id */
struct slice mail_asked(const struct mail *start);
/* A start that ended with ERR_CONFLICT: ERR_OK, and the saga that it is a repeat of; or why it is none (start.c). */
enum err_code start_repeated(const struct mail *mail, const struct append *append, struct arena *arena,
                             struct saga_id *saga, struct err *err);
void turn_begin(struct live *live, struct mail *mail);
struct turns *turns_new(void);
void turns_free(struct turns *turns);
size_t turns_under_way(const struct engine *engine);
int64_t turn_began_us(const struct list_link *turn); /* see intake_turn_begun() */
/* of the turn being appended, inside the done of its mail too; NULL: none */
const struct append *turn_append(const struct live *live);

/*
 * summon.c: mails to sagas that may not be in memory: ended ones and runs that rest are read back for them and leave
 * again. The mail's done may come inside the call. ERR_FENCED: its shard is not ours (SHARD_OWNED); ERR_NOT_FOUND: no
 * such saga in this namespace; ERR_BUSY.
 */
void live_deliver(struct engine *engine, struct saga_id id, struct slice namespace, struct mail *mail);
/* Whoever needs the saga in memory, not its next turn: to look at it, or to wait for its end. */
struct summons {
    struct list_link link;
    bool presses; /* its time has come: it is read back although memory is full, within bounds */
    /*
     * Exactly once, maybe inside the call. ERR_OK: `live` is there, maybe ended, and no turn of it begins before this
     * returns; it leaves again when nobody waits for anything of it. Else NULL, with the codes of live_deliver().
     */
    void (*done)(struct summons *summons, struct live *live, enum err_code code, const struct err *err);
};
void live_summon(struct engine *engine, struct saga_id id, struct slice namespace, struct summons *summons);
/* To the run of this name; a run that does not exist begins with this mail, a SAGA_INPUT_CALL. */
void live_deliver_run(struct engine *engine, struct slice namespace, struct slice run, struct mail *mail);
struct summoner *summoner_new(void);
void summoner_free(struct summoner *summoner);
size_t summons_under_way(const struct engine *engine); /* sagas that are being read back */
struct digest run_digest(struct slice namespace, struct slice run);
uint32_t run_shard(struct slice namespace, struct slice run);

/* Has it a tool to call? Waits and groups have not: what is theirs happens in the saga. */
static inline bool step_calls(const struct step_definition *step)
{
    return step->kind == STEP_CALL && !step_is_group(step);
}

/* activity.c */
void activities_reconcile(struct live *live);
void activities_resume(struct shard *shard);            /* it was being given, and is kept */
void activities_detach(struct live *live);              /* the saga leaves memory: cancel what can be cancelled */
void activities_cancel_detached(struct engine *engine); /* at the engine's end: their time is over */
void activity_report_timer(struct activity *activity);  /* what it waited for is due */
void activity_act(struct activity *activity);           /* from here on it has its `act` */
static inline struct activity *activity_of(struct eval *eval)
{
    return container_of(eval, struct act, eval)->activity;
}
void activity_report(struct activity *activity); /* act->mail.input is what its saga is told */
void activity_return(struct activity *activity); /* a call that was never sent, and will not be by this engine */
void activity_end(struct activity *activity);    /* unlink and free */

/* park.c: sagas at rest leave memory, and come back when their time has come */
struct parker *parker_new(struct engine *engine);
void parker_free(struct parker *parker);
void parker_stop(struct parker *parker); /* draining */
void parker_look(struct parker *parker); /* a shard was gained: what of it is due, and when comes the next? */
int64_t parker_lag_ms(const struct parker *parker);    /* by how much the oldest is overdue */
void parker_due(struct parker *parker, int64_t at_ms); /* something is due then; INT64_MAX: nothing is */
/* after whatever may have been the last thing that kept a saga in memory */
void park_consider(struct live *live);
void park_forget(struct live *live); /* it moves, or leaves memory */
void park_set_parked(struct live *live, bool parked);

/* retention.c: ended sagas whose time is over are removed */
struct retention *retention_new(struct engine *engine);
void retention_free(struct retention *retention);
void retention_stop(struct retention *retention);               /* draining */
void retention_look(struct retention *retention);               /* a shard was gained */
void retention_due(struct retention *retention, int64_t at_ms); /* one is to go then */

/* scheduler.c: sagas that the clock starts */
struct scheduler *scheduler_new(struct engine *engine);
void scheduler_free(struct scheduler *scheduler);
void scheduler_watch(struct scheduler *scheduler); /* the store is ready, for the first time */
void scheduler_stop(struct scheduler *scheduler);  /* draining */
void scheduler_look(struct scheduler *scheduler);  /* a shard was gained, or a schedule has changed */

/* lock.c */
void lock_begin(struct activity *activity); /* WANT_LOCK */

/* evaluation.c */
void evaluation_begin(struct activity *activity); /* WANT_EVALUATE */

/* dispatch.c */
void dispatch_begin(struct activity *activity); /* a call or a probe whose place and time have come */
void dispatch_cancel(struct activity *activity);

/* precheck.c: an inquiry has its answer, or could not be made */
void precheck_settled(struct activity *activity);
void precheck_unasked(struct activity *activity, struct slice error, struct slice detail);

/* caller.c: who waits for operations of a saga */
/* after a turn, and at its end: answer those whose operation is settled */
void callers_check(struct live *live);
void callers_drop(struct live *live); /* it left memory: they ask the database from now on */

/* fold.c: a saga read back from its log */
struct saga *fold_turns(struct engine *engine, struct saga_id id, struct slice namespace,
                        const struct stored_turn *turns, size_t count, struct arena *arena,
                        struct err *err); /* NULL with a sentence */
/* The same into a saga at hand (of a live one). */
enum err_code fold_into(struct engine *engine, struct saga *saga, struct arena *arena, struct saga_id id,
                        struct slice namespace, const struct stored_turn *turns, size_t count, struct err *err);

/* Nothing of it begins any more: its engine leaves, or its shard does. */
static inline bool live_stops(const struct live *live)
{
    return live->engine->draining || live->shard->state == SHARD_GIVING;
}

/* handover.c */
/* so many shards are beyond our share (lease_options) */
void handover_surplus(size_t count, void *engine);
void handover_all(struct engine *engine); /* draining: each as soon as it is quiet */

/* shard.c */
void shard_leave(struct shard *shard);   /* its sagas leave memory; it is ours no more */
void shard_watch(struct engine *engine); /* which shards' inbox is ours has changed */
/* By the lease, as far as can be known here: another engine may have taken the shard, and we have not heard of it. */
bool shard_is_surely_ours(const struct engine *engine, uint32_t shard);
void shard_gained(uint32_t shard, int64_t epoch, void *engine);
void shard_lost(uint32_t shard, int64_t epoch, void *engine);
int64_t shard_oldest_unfinished_ms(uint32_t shard, void *engine);
uint32_t shards_owned(const struct engine *engine);
uint64_t shards_owned_set(const struct engine *engine); /* a bit each */

/* inbox.c */
void inbox_rows(const struct inbox_row *rows, size_t count, void *engine);

/* query/saga.c */
void waiters_answer(struct live *live); /* the saga has ended */
void waiters_drop(struct live *live);   /* it left memory: they ask the database from now on */

/* engine.c */
void engine_reload_definitions(struct engine *engine);
void engine_check_ready(struct engine *engine);
void engine_check_drained(struct engine *engine);
/* The database has answered within a lease: what is here may be shown, and new work be taken. */
bool engine_is_current(const struct engine *engine);
/* Why this engine takes no work now: of what keeps it from being ready. */
void engine_reason(const struct engine *engine, struct err *err);

#endif
