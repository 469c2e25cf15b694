/* What a saga wants, being carried out: calls, probes, timers, evaluations, locks. See activity.c. */
#ifndef SAGAD_RUN_CALL_ACTIVITY_H
#define SAGAD_RUN_CALL_ACTIVITY_H

#include "adapters/adapter.h"
#include "run/call/call_queue.h"
#include "run/call/rendering.h"
#include "run/saga/live.h"

enum activity_state {
    ACTIVITY_WAITING,   /* for its time, or for a place among the calls */
    ACTIVITY_ASKING,    /* the guards, in PostgreSQL */
    ACTIVITY_RENDERING, /* settings or arguments are being evaluated */
    ACTIVITY_CALLING,
    ACTIVITY_JUDGING,  /* the answer is being evaluated */
    ACTIVITY_REPORTING /* the mail is in the mailbox */
};

/* What a WANT_ADMIT, or a call behind a half-open breaker, reads first: the precheck of its tool, or what tries the
 * breaker, which is the status of the operation or the test of the tool. */
enum inquiry { INQUIRY_NONE, INQUIRY_PRECHECK, INQUIRY_STATUS, INQUIRY_TEST };

/* What a call awaits: dispatch.c. */
enum dispatch_stage {
    DISPATCH_SETTINGS, /* the tool's settings, rendered for this call */
    DISPATCH_ANSWER,   /* the adapter's */
    DISPATCH_RULES,    /* the tool's conditions on the answer */
    DISPATCH_ERROR,    /* the tool's own words about a refusal */
    DISPATCH_RESULT,
    DISPATCH_COST,
    DISPATCH_ESTIMATE,  /* what it costs, if it has happened */
    DISPATCH_UNDO_ARGS, /* the arguments of its compensator */
    DISPATCH_REPORT     /* nothing: its saga is told */
};

struct act { /* what only an activity has whose time has come: timers that are far off are many */
    struct activity *activity;
    struct arena *arena;         /* the arena of what dispatch.c has under way: the activity's, or that of inquiries */
    struct arena *inquiry_arena; /* inquiries may be many, so each begins the arena anew; NULL: there was none */
    struct rendering rendering;
    struct call *call;
    enum dispatch_stage stage;
    const struct tool *tool;               /* the tool of a call or a probe */
    const struct compensator *compensator; /* the compensator of a forward operation, for the arguments of its undo */
    int64_t started_us;
    struct outcome outcome;
    struct slice response, args, key; /* JSON, JSON, text; in `arena` */
    struct slice binary;              /* body of an answer that is no text; else SLICE_NONE */
    struct slice
        undoes; /* key of the forward operation, where the compensator's adapter looks for it; else SLICE_NONE */
    struct expression_context context; /* the context as it was when the call was made */
    int64_t cost_micros;
    struct slice cost_unknown, result_error; /* why the one is not known, why the other could not be made */
    struct slice undo_args, undo_error;      /* the compensator's arguments as JSON, or why there are none */
    struct mail mail;
};

struct activity {                /* one want being carried out; lies in its arena */
    struct list_link link;       /* in its saga's list, sorted like wants; unlinked once detached */
    struct list_link queue_link; /* in the line of its tool: */
    struct call_queue *queue;    /* in which, */
    struct call_line *line;      /* the line; NULL: it does not wait for a place (call_queue.c) */
    struct engine *engine;
    struct live *live; /* NULL: detached, its saga left memory; it ends by itself */
    struct want want;
    enum activity_state state;
    struct arena arena;
    struct timer timer;
    struct act *act;     /* NULL: its time has not come; activity_act() */
    struct saga_id saga; /* the saga, also when that has left memory */
    uint32_t shard;
    struct slice namespace;
    struct op_key operation_key; /* the operation key of a call, probe or admission */
    enum effect effect;          /* the class of that operation */
    bool cancelled;
    bool maybe_before;           /* an earlier attempt may have taken effect */
    bool held_up;                /* in a queue by more than places: how long it waited says nothing of those */
    struct admitting *admitting; /* limiter.c; NULL: it has not been there */
    struct locking *locking;     /* lock.c; NULL: it asks for no lock */
    bool promised; /* a place among the calls is kept until its mail is done: the intent is being made durable */
    struct tool_health *exec_of; /* the tool whose place among the child processes it has or was promised; NULL: none */
    bool on_hold;                /* a person holds it: activities_let_go() */
    bool held;                   /* it came when nothing may begin: activities_resume(), or the next owner */
    enum inquiry inquiry;
    const struct tool *test; /* INQUIRY_TEST: what is called */
    int64_t queued_boot_ms;
};

/* Has it a tool to call? Waits and groups have not: what is theirs happens in the saga. */
static inline bool step_calls(const struct step_definition *step)
{
    return step->kind == STEP_CALL && !step_is_group(step);
}

struct activities *activities_new(void);
void activities_free(struct activities *activities);
/* Templates and programs that are being rendered: the engine does not end before. */
void rendering_begins(struct engine *engine);
void rendering_ends(struct engine *engine);
uint32_t renderings_under_way(const struct engine *engine);

void activities_reconcile(struct live *live);
void activities_resume(struct shard *shard);            /* it was being given, and is kept */
void activities_let_go(struct live *live);              /* what waited for a hold asks again whether it may begin */
void activities_detach(struct live *live);              /* the saga leaves memory: cancel what can be cancelled */
void activities_cancel_detached(struct engine *engine); /* at the engine's end: their time is over */
void activity_report_timer(struct activity *activity);  /* what it waited for is due */
void activity_act(struct activity *activity);           /* the activity has its `act` from here on */
static inline struct activity *activity_of(struct rendering *rendering)
{
    return container_of(rendering, struct act, rendering)->activity;
}
void activity_report(struct activity *activity); /* act->mail.input is what its saga is told */
/* The intent is durable, and the call was never sent: the log says so, or the next owner would have to take it for
 * one of which nothing is known. */
void activity_unsent(struct activity *activity, struct slice error, struct slice detail);
void activity_return(struct activity *activity);      /* a call that was never sent, and will not be by this engine */
void activity_return_held(struct activity *activity); /* the same, because a person holds it */
void activity_end(struct activity *activity);         /* unlink and free */

/* --- what carries it out --- */

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

#endif
