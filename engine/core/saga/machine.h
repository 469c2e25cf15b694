/* What the files of the saga machine share. Nobody else includes this. */
#ifndef SAGAD_CORE_SAGA_MACHINE_H
#define SAGAD_CORE_SAGA_MACHINE_H

#include <setjmp.h>

#include "core/saga/saga.h"

/* The room for steps that an open saga or a run begins with; a power of two. Most runs have one call. */
enum { OPEN_ROOM_MIN = 2 };
uint32_t open_step_room(uint32_t count); /* capacity of its array of steps: a power of two, because calls add steps */

/* --- reading the state (saga/state.c) --- */

const struct operation *operation_of(const struct saga *saga, uint32_t step, enum direction direction);
/* Every address of its receiver, or of its probe's, was denied at the last try: it stays where it is, and a person is
 * asked. */
bool operation_is_denied(const struct operation *operation);
/* Tries in a row that never left, counting one that ends with `error`. Denied tries and others are rows of their own.
 */
uint32_t operation_unsent_next(const struct operation *operation, struct slice error);
bool operation_is_open(
    const struct operation *operation); /* pending, in flight, retrying or probing: it will settle by itself */

/* A probe is due: whoever performs the wants may have sent it. In a pause none is. */
bool operation_is_asked_now(const struct saga *saga, const struct operation *operation, int64_t now_ms);

/* {code, detail, attempt, status, body, ...}: why it is where it is and what the receiver said; SLICE_NONE: nothing has
 * failed. */
struct slice operation_error(const struct operation *op, struct arena *arena);

enum step_status operation_status(const struct operation *operation); /* in the words of a step's status */

/* What governs an operation: the tool's class, its limits, its probe. */
struct terms {
    enum effect effect;
    struct retry_policy retry;
    uint32_t max_attempts;     /* UINT32_MAX: bounded by limit_ms alone */
    const struct probe *probe; /* NULL: nobody can be asked */
    int64_t window_end_ms;     /* the receiver has forgotten the key from then on; 0: no window runs */
    int64_t limit_ms;          /* an undo gives up then; 0: none */
    int64_t probe_limit_ms;    /* probes give up then */
    int64_t visible_ms;        /* `absent` counts when asked then or later */
    int64_t asking_from_ms;    /* 0; else whoever asks now has taken it over then */
    bool stopping;             /* the want is withdrawn: what surely did not happen is not tried again */
    bool one_probe;            /* somebody had it probed once more: one answer, then it is a person's again */
};
struct terms operation_terms(const struct saga *saga, uint32_t step, enum direction direction);

/* When surely nothing of its last call is under way any more, and the receiver would show the effect; 0: it was never
 * sent. */
int64_t operation_quiet_ms(const struct saga *saga, uint32_t step, enum direction direction);

/* The class of an operation: frozen when it began; before that its tool's, the stricter one where it depends on the
 * arguments. */
enum effect operation_effect(const struct saga *saga, uint32_t step, enum direction direction);
struct slice step_key_name(const struct saga *saga, uint32_t step); /* the name as it stands in the key */
struct arena *saga_memory(const struct saga *saga);                 /* where the state, or the copy of it, grows */
/* What of the budget one more call of this tool would go beyond: "calls", "emissions" or "micros"; NULL: nothing. A
 * repeat of a call that begins nothing new is an emission only. */
const char *saga_over_budget(const struct saga *saga, const struct tool *tool, bool is_emission, bool begins);
bool saga_rests(const struct saga *saga); /* a run of which nothing is going on */
/* May this tool be called as things stand: is it no terminal one while something is unsettled, and is the saga not
 * sealed? ERR_OK, ERR_UNSETTLED or ERR_SEALED. `except`: the operation that is called again, or STEP_NONE. */
enum err_code saga_admits(const struct saga *saga, const struct tool *tool, enum effect effect, uint32_t except);

bool step_is_over(
    const struct saga *saga,
    uint32_t step); /* completed, skipped, or failed where that does not matter: what comes after it may start */
bool step_is_ready(const struct saga *saga, uint32_t step);            /* the step can begin now */
bool step_needs_evaluation(const struct saga *saga, uint32_t step);    /* is about its arguments or scope */
bool step_may_stand(const struct saga *saga, uint32_t step);           /* the effect took place, or may have */
bool step_can_be_undone_blind(const struct saga *saga, uint32_t step); /* although nobody knows whether it happened */
bool saga_is_finished(
    const struct saga *saga); /* all forward work is done, for good or because a terminal step has completed */
bool saga_passed_return(const struct saga *saga);                        /* a terminal step has completed */
bool saga_has_undone(const struct saga *saga);                           /* the undo of some step was begun */
bool step_comes_before(const struct saga *saga, uint32_t a, uint32_t b); /* b may build on a: it is undone first */
/* May it go to the receiver now, although an escalation is open? What was not sent waits while a person is asked; calls
 * of an agent do not, but for terminal ones. */
bool step_may_leave(const struct saga *saga, uint32_t step);
/* The plan of the saga (STEP_NONE), or of a child that is undone on its own. */
uint32_t *saga_make_plan(const struct saga *saga, uint32_t group, struct arena *arena, uint32_t *count);
uint32_t *saga_make_debts(const struct saga *saga, struct arena *arena, uint32_t *count);
bool saga_undo_is_over(const struct saga *saga);             /* nothing in the plan is left to do */
bool undo_may_begin(const struct saga *saga, uint32_t step); /* it is its turn, and there is room */
uint32_t
undo_concurrency(const struct saga *saga,
                 uint32_t scope); /* how many units of the saga (STEP_NONE), or of a child, may be undone at once */
uint32_t undo_units_active(const struct saga *saga, uint32_t scope); /* how many are */
/* The only way in which the place of a step in an undo plan changes: what groups count of their
 * members goes with it. */
void plan_move(struct saga *saga, uint32_t step, enum plan_state to);
bool plan_is_left(enum plan_state plan); /* something is to be done about it */
bool undo_needs_evaluation(const struct saga *saga, uint32_t step);

/* --- groups (saga/member.c, decide/group.c): members, and the order among them --- */

/*
 * The saga's phase, or that of a group around the step which is undone on its own, whichever is further: what is being
 * undone goes on being undone while the saga stops, and what a saga has stopped does not begin because a child of it
 * has not.
 */
enum saga_phase step_phase(const struct saga *saga, uint32_t step);
bool group_is_open(const struct saga *saga,
                   uint32_t step); /* OP_OPEN, and no group around it, nor itself, is being undone */
bool group_lets_begin(const struct saga *saga,
                      uint32_t step); /* the group of this step is open, and it is its turn in there */
bool group_may_end(
    const struct saga *saga,
    uint32_t step); /* all that belongs to it is over, for good or because a terminal call in it has completed */
/* The step whose policy decides on a failure of `step`: the nearest child around it that is not to be undone with the
 * saga, or STEP_NONE: the saga fails. A child that has completed decides nothing any more: what came after it builds on
 * all of it, so that a step of it which turns out not to have happened fails what is around the child. */
uint32_t group_that_fails(const struct saga *saga, uint32_t step);
bool group_is_undone_alone(const struct saga *saga,
                           uint32_t step); /* a child with an undo plan of its own; STEP_NONE is none */
uint32_t step_undone_alone(const struct saga *saga,
                           uint32_t step); /* the innermost such child around it, or STEP_NONE */
bool step_lies_in(const struct saga *saga, uint32_t step, uint32_t group); /* at any depth; all lie in STEP_NONE */
/* In one undo plan: is a undone before b? A total order. */
bool step_undone_before(const struct saga *saga, uint32_t a, uint32_t b);
uint32_t step_scope(const struct saga *saga,
                    uint32_t step); /* the group of the child it is written in; STEP_NONE: the saga */
bool step_has_call(const struct saga *saga, uint32_t step);     /* not a group and not a wait */
bool passed_return_in(const struct saga *saga, uint32_t group); /* a terminal call in it has completed */
bool undone_around(const struct saga *saga, uint32_t step); /* the undo of something that it is undone with was begun */
void apply_member(struct saga *saga, uint32_t step, bool was_begun, bool was_over); /* what its group counts */

/* --- checking and folding --- */

enum op_state record_leads_to(const struct record *record); /* the state of the operation that the record is about */
bool operation_may_move(enum op_state from, enum op_state to);

/* saga/check_open.c: parts of record_check() */
void PRINTF_LIKE(3, 4) check_say(const struct record *record, struct err *err, const char *why, ...);
#define check_refuse(...) (check_say(__VA_ARGS__), false) /* with a sentence */
bool check_called(const struct saga *saga, const struct record *record, struct err *err);
bool check_repeated(const struct saga *saga, const struct record *record, struct err *err);
bool check_about_call(const struct saga *saga, const struct record *record, struct err *err);
bool check_run(const struct saga *saga, const struct record *record, struct err *err);
bool check_pause(const struct saga *saga, const struct record *record, struct err *err);

/* decide/group.c, decide/wait.c, decide/lock.c, decide/pause.c: parts of record_check() and saga_apply() */
bool check_group(const struct saga *saga, const struct record *record,
                 struct err *err); /* step.opened, step.failing, and what ends a group */
bool check_wait(const struct saga *saga, const struct record *record,
                struct err *err); /* step.waiting, signal.received, approval.decided, and what ends a wait */
bool check_lock(const struct saga *saga, const struct record *record, struct err *err);
void apply_opened_group(struct saga *saga, const struct record *record);
/* Only what it does to the definition. The index of the first member. */
uint32_t apply_opened_definition(struct saga *saga, const struct record *record);
void apply_failing_group(struct saga *saga, const struct record *record);
void apply_ended_group(struct saga *saga, const struct record *record); /* completed, failed */
void apply_waiting(struct saga *saga, const struct record *record);
void apply_ended_wait(struct saga *saga, const struct record *record);
void apply_decided(struct saga *saga, const struct record *record);
void apply_signal(struct saga *saga, const struct record *record);
void apply_lock(struct saga *saga, const struct record *record);

/* saga/apply_open.c: parts of saga_apply() */
struct slice apply_keep(const struct saga *saga, struct slice text);
/* The same where one takes the place of the one before, or a saga that somebody polls, or that is tried for a day,
 * would grow for ever. */
struct slice apply_keep_in_room(const struct saga *saga, struct room *room, struct slice text);
/* Where the undo of a step is written. */
struct operation *apply_undo_room(struct saga *saga, uint32_t step);
void apply_opening(struct saga *saga, const struct record *record);
/* The step that a call makes, from the tools it names. False: they are not on the shelf, or it cannot be called. */
bool apply_find_tools(const struct saga *saga, const struct record *record, struct step_definition *out);
void apply_called(struct saga *saga, const struct record *record);
void apply_called_definition(struct saga *saga, const struct record *record); /* only what it does to the definition */
void apply_reserved(struct saga *saga, const struct record *record);
void apply_emission(struct saga *saga, const struct record *record);
void apply_answered(struct saga *saga, uint32_t step);
void apply_book(struct saga *saga, struct operation *op, int64_t micros); /* instead of what was booked for it */
/* saga/apply_case.c: escalation.opened and .resolved, and who had the open one probed again */
void apply_opened(struct saga *saga, const struct record *record);
void apply_resolved(struct saga *saga, const struct record *record);
void apply_asked(struct saga *saga, const struct record *record, enum direction direction);
void apply_duplicate(struct saga *saga, const struct record *record);
void apply_expired(struct saga *saga, const struct record *record);
void apply_bypass(struct saga *saga, const struct record *record);
void apply_tripped(struct saga *saga, const struct record *record);
void apply_paused(struct saga *saga, const struct record *record);
void apply_resumed(struct saga *saga, const struct record *record);
void apply_rested(struct saga *saga, const struct record *record);
void apply_woken(struct saga *saga);

/* decide/mend.c: parts of record_check() and saga_apply() */
bool check_mended(const struct saga *saga, const struct record *record, struct err *err);
void apply_mended(struct saga *saga, const struct record *record);

/* --- deciding: one decision at a time, on a copy of the state --- */

struct machine {
    struct saga *saga; /* the copy; each record emitted is applied to it */
    const struct saga_input *input;
    struct arena *turn;
    struct records *out;
    struct err *err;
    struct witness *witness;  /* NULL: nobody is told of the records */
    bool opened;              /* the escalation number is used up */
    uint32_t about;           /* SAGA_INPUT_OPERATOR: the operation in question, or STEP_NONE */
    enum direction direction; /* the direction of the operation */
    uint64_t approvals;       /* numbers used up */
    size_t bytes;             /* the bytes of payloads recorded so far */
    jmp_buf misfit;           /* where machine_emit() goes with a record that does not fit the state */
};

struct why {
    struct slice error, detail;
};
#define WHY(error, detail) ((struct why){SLICE(error), SLICE(detail)})

struct record machine_record(const struct machine *m, enum record_type type, uint32_t step, enum direction direction);
void machine_emit(struct machine *m, const struct record *emitted);
/* So much was recorded already that what may begin or end now waits for the next turn, which a timer brings. */
bool machine_is_full(const struct machine *m);
struct slice machine_faults(struct machine *m, const struct faults *faults); /* the first of them as a sentence */
/* SLICE_NONE, or a sentence that begins with `what` ("the arguments have"): the value is longer than the input's
 * payload_bytes_max. */
struct slice machine_oversize(struct machine *m, const char *what, struct slice value);

/* decide/forward.c */
enum err_code forward_start(struct machine *m);
void forward_begin(struct machine *m, uint32_t step, struct slice args, struct slice scope);
/* A condition that is a plain path. True: the step does not begin, it is skipped or has failed. */
bool forward_condition_stops(struct machine *m, uint32_t step);
/* Begin it, or skip it. False: it is not ready, or has to be evaluated first. */
bool forward_take_turn(struct machine *m, uint32_t step);
void forward_refuse_arguments(struct machine *m, uint32_t step, struct slice detail);
void forward_skip(struct machine *m, uint32_t step); /* the condition does not hold */
bool forward_advance(
    struct machine *m); /* each advance emits the next record that needs no further input; false: there is none */
bool failing_advance(struct machine *m);
bool finish_advance(struct machine *m);
void forward_finish(struct machine *m, struct slice output, struct slice error);
void forward_stop(struct machine *m, uint32_t step, struct why why, struct slice actor,
                  struct slice note); /* saga.failing */

/* What a run begins with: saga.started, from SAGA_INPUT_CALL. */
void forward_start_run(struct machine *m);
void forward_admitted(struct machine *m); /* SAGA_INPUT_ADMITTED */
/* Set what is frozen of the class: `effect`, and `conditional` where the tool's class depends on these arguments. */
void machine_freeze_effect(const struct machine *m, const struct tool *tool, struct slice args, struct record *record);

/* decide/call.c, decide/open.c: what only open sagas and runs know */
enum err_code call_decide(struct machine *m);
enum err_code open_complete(struct machine *m);
enum err_code open_bypass(struct machine *m);
enum err_code open_resume(struct machine *m);
void open_rest(struct machine *m);
void open_deadline(struct machine *m);

/* decide/group.c: each advance like the others; false: nothing follows without further input */
void group_begin(struct machine *m, uint32_t step, struct slice args); /* args: what its main template gave */
bool group_advance(struct machine *m); /* completes groups, plans the undoing of children, ends what was undone */
void group_fail(
    struct machine *m, uint32_t step,
    struct why why); /* the step has failed, and whatever goes down with it: a child around it, or the saga */
void group_output(struct machine *m, uint32_t step, struct slice output,
                  struct slice error);              /* EVALUATE_OUTPUT of a child */
void group_timer(struct machine *m, uint32_t step); /* the deadline, or the end where the turn before was full */

/* decide/wait.c */
bool step_is_wait(const struct saga *saga, uint32_t step);
bool wait_advance(struct machine *m); /* what has waited for a time that has come, or for a signal that is kept */
void wait_begin(struct machine *m, uint32_t step, struct slice value); /* value: what its main template gave */
void wait_over(struct machine *m, uint32_t step);                      /* the time has come */
enum err_code wait_signal(struct machine *m);
void wait_complete(struct machine *m, uint32_t step, struct slice result);
void wait_fail(struct machine *m, uint32_t step, struct why why);

/* decide/approval.c */
uint64_t approval_number(struct machine *m);                        /* the number of the next approval */
uint32_t approval_step(const struct saga *saga, uint64_t approval); /* STEP_NONE: there is none */
enum err_code wait_decide(struct machine *m);                       /* SAGA_INPUT_DECISION */
bool check_decided(const struct saga *saga, const struct record *record, struct err *err);

/* decide/lock.c */
bool locks_need_evaluation(const struct saga *saga);
bool lock_advance(struct machine *m);         /* lock.wanted, where no program is to be asked first */
void lock_evaluated(struct machine *m);       /* EVALUATE_LOCKS */
void lock_answered(struct machine *m);        /* SAGA_INPUT_LOCKED */
bool locks_are_held(const struct saga *saga); /* all, or there are none: steps may begin */

/* decide/then.c */
bool finish_needs_evaluation(const struct saga *saga);        /* a program is in the output or in what follows */
void followers_put(struct machine *m, struct record *record); /* into saga.completed */
bool check_followers(const struct saga *saga, const struct record *record, struct err *err);

/* decide/pause.c */
/* A person paused it: nothing begins and no clock runs. After a loop only calls are refused. */
bool pause_holds(const struct saga *saga);
enum err_code pause_decide(struct machine *m);
void pause_end(struct saga *saga, int64_t at_ms); /* it is resumed, or undone: all clocks go on where they stood */
struct standing {                                 /* the standing of clocks */
    int64_t from_ms, to_ms;
};
int64_t clock_shifted(const struct standing *standing, int64_t ms, int64_t set_ms); /* 0: it runs to nothing */
/* Does a record of this type begin something, which a pause forbids? */
bool pause_forbids(const struct record *record);

/* decide/hold.c */
void hold_begin_turn(struct machine *m); /* clocks go on before anything is decided by them */
void hold_end_turn(struct machine *m);   /* clocks stand from here on, or go on */
void hold_end(struct saga *saga, int64_t at_ms);
bool check_hold(const struct saga *saga, const struct record *record, struct err *err);
bool call_is_held(const struct machine *m, uint32_t step, enum direction direction); /* a person holds it */

/* decide/compensate.c */
bool undo_advance(struct machine *m);
bool undo_next(struct machine *m);                     /* the next one whose turn it is */
bool undo_take_turn(struct machine *m, uint32_t step); /* false: it is not its turn, or it has to be evaluated first */
void undo_begin(struct machine *m, uint32_t step, struct slice args);
void undo_refuse_arguments(struct machine *m, uint32_t step, struct slice detail);

/* decide/settle.c: what an outcome means, by class */
void operation_settled(struct machine *m);
void operation_probed(struct machine *m);
void operation_due(struct machine *m, uint32_t step,
                   enum direction direction); /* the time of its next attempt has come */
void operation_not_asked(struct machine *m, uint32_t step, struct why why,
                         int64_t retry_after_ms); /* it never left, and is tried again */
void operation_give_up(struct machine *m, uint32_t step, struct why why, enum source source,
                       int64_t retry_at_ms);                                        /* no attempt may follow now */
void operation_attempt(struct machine *m, uint32_t step, enum direction direction); /* the intent of another one */

/* decide/late.c: evidence that contradicts what was settled */
bool operation_is_contradicted(const struct machine *m); /* SETTLED and PROBED: what it says is not what was settled */
void operation_contradict(struct machine *m);
bool check_late(const struct saga *saga, const struct record *record, struct err *err);
void apply_late(struct saga *saga, const struct record *record);

/* decide/escalation.c */
/* A question that does not follow from the state: "duplicate", "deadline" (STEP_NONE). Only while none is open. */
bool escalation_is_raised(const struct escalation *open);
bool escalation_stands(const struct saga *saga); /* false: the open one has answered itself */
void escalation_raise(struct machine *m, uint32_t step, enum direction direction, struct slice reason);
bool escalation_advance(struct machine *m);
enum err_code escalation_ask(struct machine *m); /* SAGA_INPUT_ESCALATE */

/* decide/operator.c */
enum err_code operator_decide(struct machine *m);
struct record operator_record(const struct machine *m, enum record_type type); /* about m->about, signed */
void operator_resolved(struct machine *m); /* closes the escalation about it, if there is one */
enum err_code operator_check_round(struct machine *m, uint32_t step, enum direction direction); /* the case's */
enum err_code operator_happened(struct machine *m);
enum err_code operator_did_not_happen(struct machine *m);

/* decide/verdict.c: what a person says of an operation, asked or not */
enum err_code verdict_find(struct machine *m); /* m->about, and whether a verdict may be given on it now */
enum err_code verdict_decide(struct machine *m);
bool check_undone(const struct saga *saga, const struct record *record, struct err *err);
void apply_undone(struct saga *saga, const struct record *record);

/* decide/cost.c: a person says what an operation cost */
bool saga_has_unknown_cost(const struct saga *saga);
enum err_code mend_decide(struct machine *m);
enum err_code cost_decide(struct machine *m);
bool check_priced(const struct saga *saga, const struct record *record, struct err *err);
void apply_priced(struct saga *saga, const struct record *record);

#endif
