/*
 * What an adapter is: one protocol that a tool may speak. It sees a call, settles it exactly once, never retries and
 * knows nothing of sagas.
 *
 * A promise stands behind each outcome: OUTCOME_FAILED and OUTCOME_RETRY say that nothing took effect. In doubt it is
 * OUTCOME_UNKNOWN.
 */
#ifndef SAGAD_ADAPTERS_ADAPTER_H
#define SAGAD_ADAPTERS_ADAPTER_H

#include "base/arena.h"
#include "base/errors.h"
#include "base/key_place.h"
#include "base/outcome.h"
#include "base/reading.h"

struct loop;
struct http_client;
struct db_pool;
struct mcp_state;
struct programs;
struct adapter_host;
struct call;

struct adapter {
    const char *name; /* the member of a tool that selects it: "http" */
    size_t call_size; /* the engine allocates this much; struct call is its first member */

    /*
     * Mandatory. Check the settings of a tool at registration; add every fault found, pointers below `pointer`.
     * Settings are templates: a string may be or hold ${ EXPR }, so only what is written plainly can be judged.
     * Unknown members are faults. `place` is where the tool wants the key; KEY_PLACE_DEFAULT is always fine.
     */
    void (*check)(struct slice settings, struct slice pointer, enum key_place place, struct faults *faults);

    /* Mandatory. Begin; later, and always exactly once, call call_settle(), never from inside begin(). */
    void (*begin)(struct call *call);

    /* May be NULL. The answer is not awaited any more: settle soon, with what is known. */
    void (*cancel)(struct call *call);

    /*
     * May be NULL: no. Does a compensator with `settings` find the keys of the operations that it undoes where the tool
     * with the settings `undone` has put them, in one memory? Then its calls get `undoes`. Both as they stand in the
     * definition.
     */
    bool (*shares_keys)(struct slice undone, struct slice settings);

    /* May be NULL. Ends what the adapter keeps between calls; none is under way any more. */
    void (*close)(struct adapter_host *host);
};

/* What adapters share in one engine. */
struct adapter_host {
    struct loop *loop;
    struct http_client *http;
    struct db_pool *databases;
    size_t response_bytes_max;       /* default 1 MiB */
    const struct programs *programs; /* which may run, and as whom; NULL: any, as ourselves */
    struct mcp_state *mcp;           /* the adapter's own, NULL before its first call */
};

void adapter_host_close(struct adapter_host *host); /* before what is in it ends, and before the loop */

struct call {
    /* in; set by the engine, stays until settled */
    const struct adapter *adapter;
    struct adapter_host *host;
    struct arena *arena;   /* lives as long as the call; for the answer too */
    void *owner;           /* whoever began it; no business of an adapter's */
    struct slice settings; /* JSON; every ${ } rendered, secrets included: never log it */
    struct slice args;     /* JSON */
    struct slice key;      /* 36 characters */
    struct slice undoes;   /* the key of the operation that it undoes, see shares_keys; else SLICE_NONE */
    enum key_place key_place;
    struct slice key_name; /* header, JSON Pointer, query parameter or variable; SLICE_NONE with KEY_PLACE_DEFAULT */
    enum reading reading;  /* the tool was registered under it: it says what a setting that is left out means */
    bool question;         /* a probe or a precheck */
    bool reads;            /* a question, or a tool of class read: it is not to change anything */
    bool send_key;         /* false for reads and probes without a key of their own */
    bool harmless;         /* whatever became of it does no harm: a read, or idempotent */
    bool repeatable;       /* a second copy on the wire would be harmless (read, idempotent, keyed) */
    int64_t timeout_ms;
    int attempt;
    bool (*may_leave)(const struct call *call); /* NULL: it may; see call_may_leave() */

    /* out */
    struct outcome outcome; /* by the adapter's defaults; `result` is the default result */
    struct slice response;  /* JSON of `.response`; SLICE_NONE when no complete answer came: then `outcome` is final */

    struct slice binary; /* the body of an answer that is no text, and null in `response`; else SLICE_NONE */

    void (*settled)(struct call *call); /* set by the engine */
};

/*
 * To be asked right before the first byte leaves: what begin() started may have waited for a connection, and meanwhile
 * the call may have become another engine's. False: settle it as unsent, with the error "withheld".
 */
static inline bool call_may_leave(const struct call *call)
{
    return !call->may_leave || call->may_leave(call);
}

/* The only way a call ends. Must be called exactly once, from the loop, never inside begin(). */
void call_settle(struct call *call);

const struct adapter *adapter_find(struct slice name); /* NULL when there is none of this name */
const struct adapter *adapter_at(size_t index);        /* all of them, NULL behind the last */

#endif
