/*
 * A request of the API while the engine is at it. It outlives a client that goes away: the request may be cancelled at
 * any moment, the work goes on to its end and then finds nobody to tell.
 */
#ifndef SAGAD_RUN_REQUEST_WORK_H
#define SAGAD_RUN_REQUEST_WORK_H

#include "core/prove/preview.h"
#include "io/process/jq.h"
#include "run/intake/quotas.h"
#include "run/saga/live.h"

struct work {
    struct engine *engine;
    struct list_link of_engine;     /* among all its works */
    struct engine_request *request; /* NULL: cancelled */
    struct arena arena;             /* it lies in it itself; the request's is only written when the answer is ready */
    struct slice namespace, actor;
    struct act_by by;
    bool sees_sensitive;
    bool masks_log;           /* query/log.c: the log was read from its beginning, for what is sensitive */
    uint64_t after_seq;       /* query/log.c: entries behind this one are wanted */
    bool is_own;              /* query/operations.c: the operation is that of whoever asks */
    struct person_act *act;   /* act.h: what it writes with its change; NULL: nothing */
    struct deferred deferred; /* the answer never comes inside the call that asked */
    struct timer timer;
    struct list_link link;   /* among the waiters or the callers of a saga */
    struct live *live;       /* the saga whose waiter it is */
    struct list *waits_in;   /* then: that list */
    struct calling *calling; /* call.c */
    void *of_request;        /* hold.c: what it keeps of this work */
    const struct verb *verb; /* change.c; NULL: it changes nothing that exists */
    int64_t until_boot_ms;   /* waits so long at most */
    struct saga_id saga;
    struct mail mail;
    struct read_saga read;
    struct preview_question asked; /* query/preview.c, and: */
    struct preview *preview;
    struct arena reading; /* what a look at the log answered; whoever waits looks again and again */
    union {
        struct list_sagas sagas;
        struct list_questions questions;
        struct find_operation operation;
        struct put_definitions put;
        struct inbox_put inbox;
        struct feed *events; /* query/events.c */
    } store;
    struct buffer out;  /* the answer as it grows */
    size_t next, found; /* where a walk over many sagas stands */
    struct document document;
    bool dry_run;         /* the document is only checked */
    struct share *shares; /* share.h: the copies of the document for other namespaces */
    struct jq_job jq;
    struct faults *jq_faults;
    const struct definition *definition;
    enum err_code code;
    struct err err;
};

struct works {                   /* the work of an engine */
    struct list all;             /* the works that are not answered */
    uint32_t previews_under_way; /* the previews that share a slice (query/preview.c) */
    bool proof_under_way;        /* query/proof.c */
    uint32_t next_shard;         /* round robin for sagas without a business id */
    struct acts *acts;           /* refusals.c */
};

struct works *works_new(struct engine *engine);
void works_free(struct works *works);

struct work *work_new(struct engine *engine, struct engine_request *request);
/* Ends the work. With ERR_OK the answer is what stands in `out`. The work is gone afterwards; the request hears of it
 * later in this turn of the loop. */
void work_done(struct work *work, enum err_code code, const struct err *err);
/* The same with a sentence of its own. */
void work_fail(struct work *work, enum err_code code, const char *message, const char *hint);
/* True: the read failed, and the work has ended with its error. */
bool work_read_failed(struct work *work, const struct store_read *read);
bool work_saga_read_failed(struct work *work, const struct store_read *read); /* the same, of a saga by its id */
void work_no_saga(struct work *work);                                         /* ends it: there is no such saga */
/* Folds the saga that `work->read` has read, into `work->reading`. NULL: its log is corrupt, and the work has ended. */
struct saga *work_fold(struct work *work);
/* ERR_INVALID, with all faults. */
void work_fail_by_faults(struct work *work, const struct faults *faults, const char *message);
/* Masks what is sensitive of this saga in `out`, from `from` on, unless whoever asked may see it. The answer to a call
 * of an agent does not pass here: the result is its own. */
void work_mask(const struct work *work, const struct saga *saga, struct buffer *out, size_t from);
/* Is what was given or is to be given to sagas of this name hidden from whoever asked, since some of it is sensitive?
 * SLICE_NONE: to any saga of the namespace. For payloads that lie beside sagas, which are masked whole. */
bool work_hides(const struct work *work, struct slice saga_name);
/* Who does it, when and why, as a JSON object in the work's arena; without a note where that is SLICE_NONE. */
struct slice work_signature(struct work *work, struct slice note);
/* The store closes: whoever only waits is told to ask elsewhere. */
void works_stop(struct engine *engine);
/* The database has been away for a lease: whoever waits for it is told so. What was begun goes on,
 * and may happen yet. */
void works_away(struct engine *engine);
/* Nothing that needs the database can be done now? Then the work has been ended. */
bool work_refused(struct work *work);

/* measures.c: more new work than can be done? Then this one has been ended. */
bool work_is_not_taken_in(struct work *work);
/* More than its namespace may ask for in a second? Then it has been ended. */
bool work_is_over_quota(struct work *work, enum quota_kind kind, size_t payload_bytes); /* also of bytes a day */
bool work_is_over_sagas(struct work *work);                                             /* one more in flight? */
bool work_is_over_definitions(struct work *work, struct slice namespace, size_t count);
bool work_has_definitions_quota(const struct work *work,
                                struct slice namespace); /* does a rule say how many it may have? */
/* The same for new work whose shard is another engine's. */
bool work_is_not_sent_on(struct work *work, uint32_t shard);

/* query/operations.c: answers with the operation of this key, as it is by now. */
void query_operation(struct work *work, const struct op_key *key);

/* The same in two steps: work->store.operation.id is its saga. False: the work has been ended. */
void work_find_operation(struct work *work, const struct op_key *key, void (*done)(struct store_read *read));
bool work_found_operation(struct work *work);

/* query/saga.c: answers with the saga work->saga as its log has it. */
void query_saga_from_store(struct work *work);

/*
 * change.c, call.c: an input of the inbox whose shard is ours: like the engine_...() of the same name, but that its
 * turn removes the row. The request is the delivery's: namespace, actor, arena, in, done; done as for everybody,
 * `call`, `err`, `faults` and `answer` say what to tell the caller. With ERR_FENCED nothing happened and the row is for
 * the next owner; else the row is gone or has to go (a refusal or an answer without records leaves it there: drop it).
 */
void change_deliver(struct engine *engine, struct engine_request *request, const struct uuid *inbox_id);
void call_deliver(struct engine *engine, struct engine_request *request, const struct uuid *inbox_id);

#endif
