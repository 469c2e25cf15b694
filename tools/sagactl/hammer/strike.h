/*
 * One call of a tool as the engine would make it: the same templates, the same adapter, the same meaning of the answer.
 * What differs is the receiver, which is the user's. A strike can also be cut: the connection is closed, or the program
 * killed, while the call is under way.
 */
#ifndef SAGACTL_HAMMER_STRIKE_H
#define SAGACTL_HAMMER_STRIKE_H

#include "adapters/adapter.h"
#include "core/definition/definition.h"
#include "io/loop/loop.h"
#include "run/call/rendering.h"
#include "run/call/secrets.h"
#include "tools/sagactl/hammer/receiver.h"

#define STRIKE_WHOLE (-1)

struct target {
    struct loop *loop;
    struct adapter_host host;
    struct secrets secrets;
    struct slice namespace; /* the namespace whose secrets are meant */
    struct receiver receiver;
    size_t pending; /* strikes under way */
    uint32_t sent;  /* calls so far, without probes */
};

struct strike {
    /* in */
    const struct tool *tool;
    bool is_probe; /* the tool's probe is asked instead of the tool */
    enum effect effect;
    struct slice args, key;
    struct slice undoes; /* as in struct call */
    int attempt;
    int64_t cut_ms; /* the connection is closed that long after the first byte left; STRIKE_WHOLE: it is not */

    /* out */
    struct outcome outcome; /* the outcome as the definition judges it; `result` is rendered */
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

/* Lets `ms` pass. */
void target_wait(struct target *target, int64_t ms);

#endif
