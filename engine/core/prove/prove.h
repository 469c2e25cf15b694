/*
 * Proof of a saga before it runs: every single failure point is played on the state machine itself, and where each ends
 * is held against the invariants of the design by books of its own.
 *
 * Values are symbolic: no expression is evaluated, arguments and results are empty objects, input schemas are not
 * asked. for_each has two elements, a signal comes as soon as it is awaited, a person approves, locks are free.
 * One thing goes wrong in each play: an operation, an abort or the deadline; what that leads to (retries, probes,
 * people, late answers, the undo) is played to the end. Compensators go wrong during the longest undo that has them in
 * it. Orders in which parallel branches get on are walked through too, equal states once.
 */
#ifndef SAGAD_CORE_PROVE_PROVE_H
#define SAGAD_CORE_PROVE_PROVE_H

#include "core/saga/saga.h"

/*  id                          name in JSON              what happens, forward */
#define PROVE_TROUBLE_MAP(X)                                                                                           \
    X(TROUBLE_NONE, "none", "nothing goes wrong")                                                                      \
    X(TROUBLE_FAILS, "fails", "fails for certain")                                                                     \
    X(TROUBLE_UNSENT, "never_sent", "never leaves")                                                                    \
    X(TROUBLE_BUSY, "refused_once", "is refused once, then taken")                                                     \
    X(TROUBLE_UNKNOWN, "unknown", "no answer")                                                                         \
    X(TROUBLE_ARGUMENTS, "arguments", "its arguments cannot be made")                                                  \
    X(TROUBLE_SKIPPED, "skipped", "its condition does not hold")                                                       \
    X(TROUBLE_BEFORE, "before", "the precheck finds it done already")                                                  \
    X(TROUBLE_BLOCKED, "blocked", "the precheck forbids it")                                                           \
    X(TROUBLE_UNDO_ARGUMENTS, "undo_arguments", "the compensator's arguments cannot be made")                          \
    X(TROUBLE_ABORT, "abort", "somebody aborts")                                                                       \
    X(TROUBLE_DEADLINE, "deadline", "the deadline passes")                                                             \
    X(TROUBLE_TIMEOUT, "timeout", "does not come in time")                                                             \
    X(TROUBLE_REFUSED, "refused", "is refused by a person")                                                            \
    X(TROUBLE_LOCKED, "locked", "a lock is taken by another saga")

/*  id                          name in JSON              how it is settled */
#define PROVE_ANSWER_MAP(X)                                                                                            \
    X(ANSWER_NONE, "none", "")                                                                                         \
    X(ANSWER_AGAIN, "again", "called again, it answers")                                                               \
    X(ANSWER_PROBE_DONE, "probe_done", "the probe says done")                                                          \
    X(ANSWER_PROBE_ABSENT, "probe_absent", "the probe says absent")                                                    \
    X(ANSWER_LATE, "late", "the answer comes late: it happened")                                                       \
    X(ANSWER_HAPPENED, "person_happened", "a person says it happened")                                                 \
    X(ANSWER_NOT_HAPPENED, "person_not_happened", "a person says it did not")                                          \
    X(ANSWER_RETRY, "person_retry", "a person has it tried again")                                                     \
    X(ANSWER_SKIP, "person_skip", "a person has it left out")                                                          \
    X(ANSWER_COMPENSATE, "person_compensate", "a person has the saga undone")                                          \
    X(ANSWER_WAIVE, "person_waive", "a person leaves it standing")                                                     \
    X(ANSWER_NOBODY, "nobody", "nobody can say")

#define X(id, name, text) id,
enum prove_trouble { PROVE_TROUBLE_MAP(X) PROVE_TROUBLE_COUNT };
enum prove_answer { PROVE_ANSWER_MAP(X) PROVE_ANSWER_COUNT };
#undef X

const char *prove_trouble_name(enum prove_trouble trouble);
const char *prove_trouble_text(enum prove_trouble trouble);
const char *prove_answer_name(enum prove_answer answer);
const char *prove_answer_text(enum prove_answer answer);

struct prove_point {
    uint32_t step; /* the step of the report's definition; STEP_NONE: the saga as a whole */
    enum direction direction;
    enum effect effect; /* the class the operation is under: a tool may have two */
    bool varies;        /* it has: which it is depends on the arguments */
    enum prove_trouble trouble;
    enum prove_answer answer;
};

struct prove_end {
    struct prove_point point;
    struct slice place;      /* the place of an abort or a deadline, or when another order of branches shows it */
    enum saga_status status; /* final, or SAGA_ESCALATED: it waits for a person */
    struct slice waits_for;  /* escalated: the reason, and of which step */
    const uint32_t *undone;  /* steps, in the order in which they were undone */
    uint32_t undone_count;
    const uint32_t *standing; /* unless completed: effects that are there, or may be */
    uint32_t standing_count;
    struct slice violation; /* the invariant that does not hold; SLICE_NONE: all do */
};

struct prove_report { /* all in the arena given */
    /* Without values; with the elements of for_each and the steps of children, by their ids in the log. */
    const struct definition *definition;
    struct prove_end
        *ends; /* nothing goes wrong first; then by step; then aborts and deadlines; then what other orders show */
    uint32_t end_count, end_capacity;
    uint32_t violation_count; /* all of them, also those of which `ends` has no row */
    uint32_t states;     /* distinct states on the ways of parallel branches, in each of which every point was played */
    uint32_t plays;      /* points played, in all these states */
    bool bounded;        /* there are more such states than were walked through */
    bool cut;            /* there are more points than were played: `steps_max` was reached */
    uint32_t *unreached; /* steps that are not begun when nothing goes wrong */
    uint32_t unreached_count;
};

struct prove_options {
    uint32_t states_max; /* 0: the default */
    uint64_t steps_max;  /* steps looked at: each turn of a play looks at all steps of its saga; 0: no bound */
    void (*on_progress)(void *context, uint32_t plays, uint32_t states); /* may be NULL; every thousand plays */
    void *context;
};

/* A defined saga, compiled without faults. */
void prove_saga(const struct definition *definition, const struct prove_options *options, struct arena *arena,
                struct prove_report *out);

#endif
