/* A saga in memory (struct live), and its mailbox of inputs. One turn at a time: decide, append, apply, reconcile. */
#ifndef SAGAD_RUN_SAGA_LIVE_H
#define SAGAD_RUN_SAGA_LIVE_H

#include "base/list.h"
#include "core/saga/saga.h"
#include "run/engine_state.h"

struct person_act;
struct turn;

/* An input in a mailbox. Lies in whoever sent it, stays there until `done`; what the input borrows does too. */
struct mail {
    struct list_link link;
    struct saga_input input;
    /* Exactly once. ERR_OK: what it meant is durable (or it meant nothing). Else the sentence why not. */
    void (*done)(struct mail *mail, enum err_code code, const struct err *err);
    bool from_inbox;
    struct uuid inbox_id;
    /* a part of the start of an open saga: what a repeat has to ask for too, as JSON; SLICE_NONE: only defaults */
    struct slice asked;
    struct slice started_by;      /* who began a start; see append_start */
    const struct person_act *act; /* request/act.h: written with the turn; NULL: none */
    struct live *live;            /* the saga whose mailbox it was put into; NULL: it never came so far */
    struct call_answer answer;    /* what SAGA_INPUT_CALL answers, in `done`; its slices live as long as `done` */
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
    const struct digest *run_digest; /* a run's place among the runs in memory; else NULL */
    struct list_link doubt_link;     /* health.c: among those in doubt */
    struct list_link ready_link;     /* among those that go on in the next round */
    struct list_link rest_link;      /* park.c: among those that rest, if nothing of it has moved since rest_boot_ms */
    struct list_link hold_link;      /* holds.c: among those with something that a person holds, or */
    bool is_let_go;                  /* a hold let the saga go, and it has not gone on since */
    int64_t rest_boot_ms;
    struct parking *parking; /* the row in due is being written: no turn begins before that is known (park.c) */
    struct mail *current;    /* being decided or appended */
    struct turn *turn;       /* being appended; NULL: none */
    uint32_t asks; /* for locks, under way: the end of a saga must not come before what it asked for (lock.c) */
    /* a run that was woken, or a saga that was parked: recovery finds it in the table awake, however old it is */
    bool awake;
    bool parked;       /* it has a row in due: its next append takes that away */
    bool was_due;      /* it had one since it is in memory, or may have had */
    bool park_refused; /* the row was refused, and may be there all the same: not tried again before the saga moves */
    bool dropped;      /* the shard was lost: freed when the turn is over */
    bool begun;        /* something of it has settled; read back from its log it counts so too */
    bool taken_in;     /* here, as something new, and in memory since then */
    bool interrupted;  /* just loaded: calls that are wanted were made by an engine that is gone */
    bool maker_died;   /* that is certain: none of them is under way from a living one */
    uint8_t refusals;  /* turns in a row, asked for by its own activities, that the database refused as data */
};

/* Nothing of it begins any more: its engine leaves, or its shard does. */
static inline bool live_stops(const struct live *live)
{
    return engine_is_draining(live->engine) || live->shard->state == SHARD_GIVING;
}

struct lives *lives_new(struct engine *engine);
void lives_free(struct lives *lives);
size_t lives_count(const struct engine *engine);                                /* sagas in memory */
size_t lives_of_namespace(const struct engine *engine, struct slice namespace); /* looks at each */
bool lives_wait(const struct engine *engine); /* one of them is ready, and has not gone on yet */
/* Each saga in memory, in no order; NULL: no more. */
struct live *lives_next(const struct engine *engine, size_t *position);
struct live *live_new(struct engine *engine, struct shard *shard, struct saga_id id,
                      const struct definition *definition);
/* Folded from its log, not in the maps yet: live_enter() or live_discard() follows. NULL with a sentence. */
struct live *live_from_log(struct engine *engine, struct shard *shard, struct saga_id id, struct slice namespace,
                           const struct stored_turn *turns, size_t count, struct err *err);
/* The same of a run that rests, from what is stored of it. NULL: its log has to be read. */
struct live *live_from_rest(struct engine *engine, struct shard *shard, struct saga_id id, struct slice namespace,
                            uint64_t seq, struct slice rest, struct err *err);
void live_enter(struct live *live);
void live_discard(struct live *live);
void live_set_run(struct live *live, const struct digest *digest); /* it is that run */
void live_leave_run(struct live *live);                            /* it turned out that there is another */
struct live *live_find(const struct engine *engine, struct saga_id id);
struct live *live_find_run(const struct engine *engine, const struct digest *run); /* see run_digest() */
/* The same for whoever shows it: only while our lease holds. Past that another engine may have taken it further. */
struct live *live_shown(struct engine *engine, struct saga_id id);
/* The `done` comes later, never inside this call, also when the saga leaves memory meanwhile. */
void live_send(struct live *live, struct mail *mail);
/* Soon, from the loop, the saga takes its next input, or leaves memory where nothing is left to do for it. */
void live_ready(struct live *live);
void live_after_turn(struct live *live); /* reconcile, tell callers, go on */
void live_drop(struct live *live);       /* the shard was lost */
void live_evict(struct live *live);      /* it is parked, and nobody wants anything of it */

#endif
