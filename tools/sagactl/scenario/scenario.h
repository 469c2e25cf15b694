/*
 * Scenarios: how a saga is to go when its tools answer in a given way. `sagactl test` plays them on the engine's own
 * state machine, without a server.
 *
 *     scenario_read.c   the file: what tools answer, what comes from outside, what is expected
 *     stage.c           plays one scenario; stage_answer.c makes outcomes of replies, stage_event.c does what people do
 *     expect.c          holds what happened against what is expected
 *     coverage.c        which failure points of `prove` no scenario has
 *
 * The format is described in schema/scenarios.md. Everything that is read borrows from the text of the file, and lies
 * in the arena given.
 */
#ifndef SAGACTL_SCENARIO_SCENARIO_H
#define SAGACTL_SCENARIO_SCENARIO_H

#include "core/saga/saga.h"

/*  id               word in JSON   what the receiver does */
#define REPLY_MAP(X)                                                                                                   \
    X(REPLY_DONE, "done")         /* it happened, with `result` */                                                     \
    X(REPLY_RESPONSE, "response") /* an answer that the tool's own rules judge */                                      \
    X(REPLY_FAILS, "fails")       /* nothing happened, for good */                                                     \
    X(REPLY_BUSY, "busy")         /* nothing happened, another attempt may help */                                     \
    X(REPLY_UNSENT, "unsent")     /* no byte left */                                                                   \
    X(REPLY_UNKNOWN, "unknown")   /* no answer within the timeout */                                                   \
    X(REPLY_ACCEPTED, "accepted") /* it works on it: a probe completes the call */                                     \
    X(REPLY_CRASH, "crash")       /* the engine is killed while the call is out */                                     \
    X(REPLY_ABSENT, "absent")     /* a probe says: it did not happen */                                                \
    X(REPLY_GO, "go")             /* a precheck says: the call may leave */                                            \
    X(REPLY_BLOCKED, "blocked")   /* a precheck says: the call must not leave */

#define X(id, word) id,
enum reply_kind { REPLY_MAP(X) REPLY_COUNT };
#undef X
const char *reply_word(enum reply_kind kind);

struct reply {
    enum reply_kind kind;
    struct slice args;     /* JSON: only for calls whose arguments have this in them; SLICE_NONE: for all */
    uint32_t times;        /* the reply is given so often; the last one of a list is given for ever */
    struct slice result;   /* JSON */
    struct slice response; /* JSON */
    struct slice error, detail;
    int64_t retry_after_ms;
    bool took_effect; /* unknown, accepted, crash: whether it did happen */
};

struct replies {
    const struct reply *items;
    size_t count;
};

struct tool_replies {
    struct slice tool;
    struct replies calls, probes, prechecks;
};

/*  id                 name in JSON    its value */
#define EVENT_MAP(X)                                                                                                   \
    X(EVENT_SIGNAL, "signal")         /* the name of the signal */                                                     \
    X(EVENT_APPROVE, "approve")       /* a step */                                                                     \
    X(EVENT_REFUSE, "refuse")         /* a step */                                                                     \
    X(EVENT_LATE, "late")             /* a step: the answer to its last call comes now */                              \
    X(EVENT_RESOLVE, "resolve")       /* a step: a person says what came of it */                                      \
    X(EVENT_RETRY, "retry")           /* a step */                                                                     \
    X(EVENT_SKIP, "skip")             /* a step */                                                                     \
    X(EVENT_WAIVE, "waive")           /* a step */                                                                     \
    X(EVENT_PROBE, "probe")           /* a step */                                                                     \
    X(EVENT_COMPENSATE, "compensate") /* a note */                                                                     \
    X(EVENT_ABANDON, "abandon")       /* a note */                                                                     \
    X(EVENT_ABORT, "abort")           /* a note */                                                                     \
    X(EVENT_ESCALATE, "escalate")     /* a note */                                                                     \
    X(EVENT_PAUSE, "pause")           /* a note */                                                                     \
    X(EVENT_RESUME, "resume")         /* a note */                                                                     \
    X(EVENT_PASS, "pass")             /* a duration that passes */

#define X(id, name) id,
enum event_kind { EVENT_MAP(X) EVENT_COUNT };
#undef X
const char *event_name(enum event_kind kind);

struct event {
    enum event_kind kind;
    struct slice pointer;
    struct slice text; /* a step, a signal, a note */
    int64_t pass_ms;
    struct slice by, note;     /* who did it, and what they said with it; SLICE_NONE: not said */
    struct slice during;       /* while the next call of this step is out; SLICE_NONE: not tied to a call */
    int64_t after_ms;          /* so long after the start; -1: as soon as only the outside can move the saga on */
    struct slice payload;      /* signal */
    struct slice result;       /* resolve, late; JSON */
    struct slice args;         /* retry; JSON */
    struct slice error;        /* late: it failed with this */
    bool happened, undone;     /* resolve; happened: late, too */
    bool again, accept_double; /* resolve, retry */
};

struct expected_call {
    struct slice pointer;
    struct slice step, tool, scope, key;
    struct slice args; /* JSON */
    enum direction direction;
};

struct expected_step {
    struct slice step, status;
};

struct expectation {
    struct slice pointer;
    struct slice status;
    bool has_calls, has_undone, has_standing;
    const struct expected_call *calls;
    size_t call_count;
    const struct slice *undone, *standing; /* steps */
    size_t undone_count, standing_count;
    struct slice output; /* JSON; SLICE_NONE: anything */
    const struct expected_step *steps;
    size_t step_count;
    bool has_escalation;
    struct slice escalation_step, escalation_reason; /* SLICE_NONE: any */
};

struct scenario {
    struct slice name, saga, pointer;
    struct slice input; /* JSON */
    struct slice business_id;
    bool locks_taken; /* another saga has them */
    const struct tool_replies *tools;
    size_t tool_count;
    const struct event *events;
    size_t event_count;
    struct expectation expect;
};

struct scenarios {
    const struct scenario *items;
    size_t count;
    const struct slice *definitions; /* paths, as written */
    size_t definition_count;
};

/* Is this the text of a file of scenarios, and not of definitions? The text passed json_check(). */
bool scenarios_are_in(struct slice json);
/* Reads a file. `out` is good when `faults` did not grow. */
void scenarios_read(struct slice json, struct arena *arena, struct faults *faults, struct scenarios *out);

/* Is all of `part` in `whole`? An object may have more members than its part; anything else is equal to it. */
bool json_has(struct slice whole, struct slice part, struct arena *arena);

#endif
