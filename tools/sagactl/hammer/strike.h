/*
 * One call of a tool as the engine would make it: the same templates, the same adapter, the same meaning of the answer.
 * What differs is the receiver: scheme, host and port of every URL are those of the user. A strike can also be cut: the
 * connection is closed while the request is under way.
 */
#ifndef SAGACTL_HAMMER_STRIKE_H
#define SAGACTL_HAMMER_STRIKE_H

#include "adapters/adapter.h"
#include "core/definition/definition.h"
#include "io/loop/loop.h"
#include "run/call/rendering.h"
#include "run/call/secrets.h"

#define STRIKE_WHOLE (-1)

struct target {
    struct loop *loop;
    struct adapter_host host;
    struct secrets secrets;
    struct slice namespace; /* whose secrets */
    struct slice against;   /* replaces scheme, host and port of URLs; without a slash at its end */
    size_t pending;         /* strikes under way */
    uint32_t sent;          /* calls so far, without probes */
};

struct strike {
    /* in */
    const struct tool *tool;
    bool is_probe; /* the tool's probe is asked instead of the tool */
    enum effect effect;
    struct slice args, key;
    int attempt;
    int64_t cut_ms; /* the connection is closed that long after the first byte left; STRIKE_WHOLE: it is not */

    /* out */
    struct outcome outcome; /* as the definition judges it; `result` is rendered */
    struct slice response;  /* what expressions saw; SLICE_NONE: no whole answer came */
    int64_t began_ms, ended_ms;

    struct target *target;
    struct arena *arena;
    struct call *call;
    struct rendering rendering;
    struct timer cut;
    enum { STRIKE_SETTINGS, STRIKE_ANSWER, STRIKE_MEANING, STRIKE_RESULT, STRIKE_OVER } stage;
};

/* Sends all strikes at once, and returns when each has its outcome. `arena` holds what they bring. */
void strike_all(struct target *target, struct strike *strikes, size_t count, struct arena *arena);

/* Returns the HTTP status of the answer; 0: there is none. */
int strike_status(const struct strike *strike);

/* Returns `url` with the scheme, host and port of `against`; SLICE_NONE: it is no URL of HTTP. */
struct slice strike_redirect(struct slice url, struct slice against, struct arena *arena);

/* Lets `ms` pass. */
void target_wait(struct target *target, int64_t ms);

#endif
