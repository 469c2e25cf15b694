/*
 * The trials of `sagactl hammer`: what is sent to a receiver, in which order, and what is counted afterwards. One trial
 * follows the other, so that a counter of everything (all charges of a customer) does as well as one of an operation.
 */
#ifndef SAGACTL_HAMMER_HAMMER_H
#define SAGACTL_HAMMER_HAMMER_H

#include "tools/sagactl/command.h"
#include "tools/sagactl/hammer/strike.h"
#include "tools/sagactl/hammer/verdict.h"

#define HAMMER_ROUNDS_MAX 1000
#define HAMMER_AT_ONCE_MAX 64

struct hammer {
    /* in */
    struct ctl *ctl;
    struct target target;
    const struct tool *tool;
    struct digest identity;     /* digest of the tool's text */
    const struct tool *undo;    /* the tool that its `compensate` names; NULL: there is none */
    const struct tool *counter; /* a tool of class read whose result is a number; NULL: none was named */
    struct slice args,
        other_args; /* JSON; "{unique}" in texts is replaced for each operation. other_args: may be NONE */
    uint32_t rounds, at_once;
    int64_t late_ms;   /* the latest repeat; 0: none is sent late */
    int64_t settle_ms; /* how long an effect may need until the counter shows it */

    /* out */
    enum effect effect; /* the declared class of a call with these arguments */
    struct evidence evidence;
    struct slice broken; /* why the trials could not be carried out, a sentence; SLICE_NONE: they were */

    struct uuid run;
    uint32_t operation_count;
    struct digest last_result;
};

/* Carries out all trials. Returns false when it could not; `broken` then says why. */
MUST_USE bool hammer_run(struct hammer *hammer);

#endif
