/*
 * The outcome of a call of a tool. It is a value like any other: what a tool did is not an error of ours.
 *
 * OUTCOME_FAILED and OUTCOME_RETRY promise that nothing took effect. When in doubt it is OUTCOME_UNKNOWN;
 * doubt is the reason this engine exists.
 */
#ifndef SAGAD_BASE_OUTCOME_H
#define SAGAD_BASE_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

#define OUTCOME_MAP(X)                                                                                                 \
    X(OUTCOME_COMPLETED, "completed") /* it happened; `result` is kept */                                              \
    X(OUTCOME_RUNNING, "running")     /* accepted, not done: the probe completes it */                                 \
    X(OUTCOME_RETRY, "retry")         /* nothing happened, for certain; another attempt may help */                    \
    X(OUTCOME_FAILED, "no_effect")    /* nothing happened, for certain; final */                                       \
    X(OUTCOME_ABSENT, "absent")       /* a probe says so: the operation did not happen */                              \
    X(OUTCOME_UNKNOWN, "unknown")     /* the request was sent, and nobody knows */

#define X(id, name) id,
enum outcome_kind { OUTCOME_MAP(X) OUTCOME_KIND_COUNT };
#undef X

struct outcome {
    enum outcome_kind kind;
    bool unsent;  /* not one byte left this machine: with OUTCOME_RETRY or OUTCOME_FAILED only */
    bool settles; /* with OUTCOME_FAILED: the receiver keeps keys, so no earlier attempt under this key took effect
                     either */
    int64_t retry_after_ms; /* the wait that the receiver asked for; 0: none */
    struct slice result;    /* JSON, with OUTCOME_COMPLETED; SLICE_NONE is null */
    struct slice error;     /* short code: "http-503", "timeout", "refused", ...; for all but completed */
    struct slice detail;    /* one sentence for people, without secrets */
    struct slice answer;    /* JSON, for all but completed: what the receiver said, bounded and without secrets;
                               SLICE_NONE: nothing is kept */
};

/* The detail of the error "withheld": why a call that waited was never sent. `ready` is a literal that names what it
 * had waited for. */
#define OUTCOME_WITHHELD_DETAIL(ready) "When " ready ", the call was no longer to be sent."

/*
 * The guard of outgoing calls forbids every address of the receiver, and no connection was tried. Settings or a tool
 * have to be changed first: the call keeps its place, and a person is asked. Goes with OUTCOME_RETRY and `unsent`.
 */
#define OUTCOME_EGRESS_DENIED "egress-denied"
#define OUTCOME_EGRESS_DENIED_DETAIL                                                                                   \
    "The settings of sagad deny every address of this host. Allow its network with --egress-allow, or change the "     \
    "tool."
bool outcome_is_egress_denied(const struct outcome *outcome);

const char *outcome_name(enum outcome_kind kind);
bool outcome_parse(struct slice name, enum outcome_kind *out);

#endif
