/* What the files of the saga machine share. Nobody else includes this. */
#ifndef SAGAD_CORE_SAGA_MACHINE_H
#define SAGAD_CORE_SAGA_MACHINE_H

#include "core/saga.h"

/* --- reading the state (saga_state.c) --- */

struct operation *operation_at(struct saga *saga, uint32_t step, enum direction direction);
const struct operation *operation_of(const struct saga *saga, uint32_t step, enum direction direction);
bool operation_is_open(
    const struct operation *operation); /* pending, in flight, retrying or probing: it will settle by itself */

enum step_status operation_status(const struct operation *operation); /* in the words of a step's status */

/* What governs an operation: the tool's class, its limits, its probe. */
struct terms {
    enum effect effect;
    struct retry_policy retry;
    uint32_t max_attempts;     /* UINT32_MAX: bounded by limit_ms instead */
    const struct probe *probe; /* NULL: nobody can be asked */
    int64_t window_end_ms;     /* the receiver has forgotten the key from then on; 0: no window runs */
    int64_t limit_ms;          /* an undo gives up then; 0: none */
    int64_t probe_limit_ms;    /* probes give up then */
    int64_t visible_ms;        /* `absent` counts when asked then or later */
    bool stopping;             /* not wanted any more: what surely did not happen is not tried again */
    bool one_probe;            /* a person had it probed: one answer, then it is theirs again */
};
struct terms operation_terms(const struct saga *saga, uint32_t step, enum direction direction);

bool step_is_over(const struct saga *saga, uint32_t step);  /* completed or skipped: what comes after it may start */
bool step_is_ready(const struct saga *saga, uint32_t step); /* to be begun now */
bool step_needs_evaluation(const struct saga *saga, uint32_t step);    /* of its arguments or scope */
bool step_may_stand(const struct saga *saga, uint32_t step);           /* its effect took place, or may have */
bool step_can_be_undone_blind(const struct saga *saga, uint32_t step); /* although nobody knows whether it happened */
bool saga_is_finished(
    const struct saga *saga); /* all forward work is done, for good or because a terminal step has completed */
bool saga_passed_return(const struct saga *saga); /* a terminal step has completed */
uint32_t *saga_make_plan(const struct saga *saga, struct arena *arena, uint32_t *count);
uint32_t *saga_make_debts(const struct saga *saga, struct arena *arena, uint32_t *count);
bool saga_undo_is_over(const struct saga *saga);           /* nothing in the plan is left to do */
bool undo_is_held(const struct saga *saga, uint32_t step); /* something that came after it is not undone yet */
uint32_t saga_next_undo(const struct saga *saga);          /* the entry of the plan to begin now, or STEP_NONE */
bool undo_needs_evaluation(const struct saga *saga, uint32_t step);

/* --- checking and folding --- */

enum op_state record_leads_to(const struct record *record); /* the state of the operation that the record is about */
bool operation_may_move(enum op_state from, enum op_state to);

/* --- deciding: one decision at a time, on a copy of the state --- */

struct machine {
    struct saga *saga; /* the copy; each record emitted is applied to it */
    const struct saga_input *input;
    struct arena *turn;
    struct records *out;
    struct err *err;
    bool opened; /* the escalation number is used up */
};

struct why {
    struct slice error, detail;
};
#define WHY(error, detail) ((struct why){SLICE(error), SLICE(detail)})

struct record machine_record(const struct machine *m, enum record_type type, uint32_t step, enum direction direction);
void machine_emit(struct machine *m, struct record record);
struct slice machine_faults(struct machine *m, const struct faults *faults); /* the first of them as a sentence */

/* saga_forward.c */
enum err_code forward_start(struct machine *m);
void forward_begin(struct machine *m, uint32_t step, struct slice args, struct slice scope);
void forward_refuse_arguments(struct machine *m, uint32_t step, struct slice detail);
bool forward_advance(
    struct machine *m); /* each advance emits the next record that needs no further input; false: there is none */
bool failing_advance(struct machine *m);
bool finish_advance(struct machine *m);
void forward_finish(struct machine *m, struct slice output, struct slice error);
void forward_stop(struct machine *m, uint32_t step, struct why why, struct slice actor,
                  struct slice note); /* saga.failing */

/* saga_compensate.c */
bool undo_advance(struct machine *m);
void undo_begin(struct machine *m, uint32_t step, struct slice args);
void undo_refuse_arguments(struct machine *m, uint32_t step, struct slice detail);

/* saga_settle.c: what an outcome means, by class */
void operation_settled(struct machine *m);
void operation_probed(struct machine *m);
void operation_due(struct machine *m, uint32_t step,
                   enum direction direction); /* the time of its next attempt has come */
void operation_attempt(struct machine *m, uint32_t step, enum direction direction); /* the intent of another one */

/* saga_escalation.c */
bool escalation_advance(struct machine *m);

/* saga_operator.c */
enum err_code operator_decide(struct machine *m);

#endif
