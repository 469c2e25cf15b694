/* What the decisions about agents' calls share (decide/call.c, decide/duplicate.c, decide/open.c). Nobody else includes
 * this. */
#ifndef SAGAD_CORE_DECIDE_CALL_H
#define SAGAD_CORE_DECIDE_CALL_H

#include "core/saga/machine.h"

#define CALL_OPERATIONS_MAX 1000 /* the operations of one open saga or run: its state is copied for each decision */
#define CALL_RECORDS_MAX 100000  /* the records of one open saga or run: who looks at it reads its log */
#define CALL_SCOPE_BYTES_MAX 256
#define CALL_BYPASS_MS (INT64_C(15) * 60 * 1000)
#define CALL_RETRY_LEAST_MS INT64_C(1000)
#define CALL_PROBE_MS (INT64_C(10) * 1000)  /* how often repeats may have what nobody can say asked about once more */
#define CALL_RETRY_PERSON_MS INT64_C(10000) /* people do not answer faster than that */
#define RUN_REST_MS (INT64_C(15) * 1000)

struct call_case { /* it keeps what the core knows of one emission while it decides */
    struct machine *m;
    struct slice step;         /* the step's name as it stands in the key */
    const struct tool *tool;   /* the newest version, for a new operation */
    uint32_t found;            /* the operation that it is a repeat of, or STEP_NONE */
    uint32_t newest;           /* the newest of all generations of that identity, or STEP_NONE */
    struct digest fingerprint; /* the fingerprint of its arguments, as the tool of `found` sees them */
    bool same_emission;        /* it was here before, to the last byte */
};

struct call_decision { /* what an operation.duplicate says of a call, and what the caller is told */
    const char *decision;
    enum err_code code;
    struct slice message, hint, pointers;
    int64_t retry_after_ms;
    bool replay;
};

/* --- decide/call.c: new operations and new attempts, where the rules of the saga let them in --- */

bool call_log_is_full(const struct call_case *call); /* nothing more is recorded of calls */
/* `decision` is NULL, or why there is one more operation after `found`. */
void call_begin(struct call_case *call, const char *decision);
void call_repeat(struct call_case *call);             /* `found` gets one more attempt */
struct slice call_name(const struct call_case *call); /* for sentences: the step, or the tool where none was named */

/* --- decide/duplicate.c: the table of operations.md --- */

void duplicate_decide(struct call_case *call);
void duplicate_emit(struct call_case *call, const struct call_decision *decision);

/* --- decide/open.c --- */

enum err_code open_abort_check(struct machine *m); /* ERR_CONFLICT for a run: nothing in it belongs together */
bool open_deadline_counts(
    const struct saga *saga); /* would the deadline mean anything now? If not, it is asked again when that changes */

/* A run that nothing is known of, or that rests, has to begin before anything can be recorded of it. */
void run_begin(struct machine *m);
/* Does the run rest, and was it left alone for as long as a run waits before it rests? */
bool run_sleeps(const struct machine *m);
/* Lets a run that slept rest again in the turn that woke it, unless the turn began something. */
void run_rest_again(struct machine *m);
/* "charge (in flight), mail (unknown)": what is not settled, the first few of it. */
struct slice unsettled_list(const struct saga *saga, struct arena *arena);

#endif
