/*
 * An adapter speaks one protocol of tools. It receives a call and settles it exactly once. It never retries and knows
 * nothing of sagas.
 *
 * Each outcome is a promise: OUTCOME_FAILED and OUTCOME_RETRY say that nothing took effect. When in doubt, the adapter
 * says OUTCOME_UNKNOWN.
 */
#ifndef SAGAD_ADAPTERS_ADAPTER_H
#define SAGAD_ADAPTERS_ADAPTER_H

#include "base/arena.h"
#include "base/errors.h"
#include "base/key_place.h"
#include "base/outcome.h"
#include "base/reading.h"
#include "base/trace_context.h"

struct loop;
struct http_client;
struct db_pool;
struct mcp_state;
struct programs;
struct adapter_host;
struct call;

struct adapter {
    const char *name; /* the member of a tool that selects this adapter, such as "http" */
    size_t call_size; /* the engine allocates this much; struct call is its first member */

    /*
     * Mandatory. Check the settings of a tool at registration; add every fault found, pointers below `pointer`.
     * Settings are templates: a string may be or hold ${ EXPR }, so only plain values can be checked. Unknown members
     * are faults. `place` is where the tool wants the key; every adapter accepts KEY_PLACE_DEFAULT.
     */
    void (*check)(struct slice settings, struct slice pointer, enum key_place place, struct faults *faults);

    /* Mandatory. Begin; later, and always exactly once, call call_settle(), never from inside begin(). */
    void (*begin)(struct call *call);

    /* May be NULL. Nobody waits for the answer any more: settle soon, with what is known. */
    void (*cancel)(struct call *call);

    /*
     * Do a tool with the settings `undone` and its compensator with `settings` remember keys in the same place? Then
     * each call of the compensator gets `undoes`, the key of the operation that it undoes. Both settings are those of
     * the definition, with their templates. NULL means no.
     */
    bool (*shares_keys)(struct slice undone, struct slice settings);

    /* May be NULL. Frees what the adapter keeps between calls. No call is under way any more. */
    void (*close)(struct adapter_host *host);
};

/* The parts of one engine that its adapters share. */
struct adapter_host {
    struct loop *loop;
    struct http_client *http;
    struct db_pool *databases;
    size_t response_bytes_max;       /* default 1 MiB */
    const struct programs *programs; /* the programs that may run, and their user; NULL: any program, as our own user */
    struct mcp_state *mcp;           /* belongs to the adapter `mcp`; NULL before its first call */
};

void adapter_host_close(
    struct adapter_host *host); /* call this before the members of the host and the loop are freed */

struct call {
    /* in: set by the engine, and valid until the call is settled */
    const struct adapter *adapter;
    struct adapter_host *host;
    struct arena *arena;   /* lives as long as the call, and holds the answer */
    void *owner;           /* the part of the engine that began the call; adapters leave it alone */
    struct slice settings; /* JSON, with every ${ } rendered, secrets included: never log it */
    struct slice args;     /* JSON */
    struct slice key;      /* 36 characters */
    struct slice undoes;   /* the key of the operation that this call undoes (see shares_keys), else SLICE_NONE */
    enum key_place key_place;
    struct slice key_name; /* header, JSON Pointer, query parameter or variable; SLICE_NONE with KEY_PLACE_DEFAULT */
    enum reading reading;  /* the rules at the time of the tool's registration; they say what a missing setting means */
    bool question;         /* a probe or a precheck */
    bool reads;            /* a question, or a tool of class read: the call must not change anything */
    bool send_key;         /* false for reads and probes without a key of their own */
    bool harmless;         /* the call does no harm, whatever became of it: a read, or idempotent */
    bool repeatable;       /* a second copy on the wire would be harmless (read, idempotent, keyed) */
    int64_t timeout_ms;
    int attempt;
    struct trace_context trace; /* the caller's trace, which is handed on where the protocol has a place for it */
    bool (*may_leave)(const struct call *call); /* NULL: the call may leave; see call_may_leave() */

    /* out */
    struct outcome outcome; /* the outcome by the adapter's defaults; `result` is the default result */
    struct slice
        response; /* the JSON of `.response`; SLICE_NONE when no complete answer came, and then `outcome` is final */

    struct slice binary; /* the body of an answer that is not text, which is null in `response`; else SLICE_NONE */

    void (*settled)(struct call *call); /* set by the engine */
};

/*
 * Ask this right before the first byte leaves. A call may have waited for a connection, and its saga may belong to
 * another engine by then. When this returns false, settle the call as unsent, with the error "withheld".
 */
static inline bool call_may_leave(const struct call *call)
{
    return !call->may_leave || call->may_leave(call);
}

/* Ends a call; nothing else does. Call it exactly once, from the loop, never inside begin(). */
void call_settle(struct call *call);

const struct adapter *adapter_find(struct slice name); /* NULL when no adapter has this name */
const struct adapter *adapter_at(size_t index);        /* enumerates all adapters; NULL behind the last one */

#endif
