/*
 * Open sagas and runs on trial: the test drives the pure machine by hand with an agent's calls. Each turn goes the way
 * that turns go in the engine: decide, check, write as text, read the text back, apply. See saga_trial.h for sagas with
 * a definition.
 */
#ifndef SAGAD_TESTS_CALL_TRIAL_H
#define SAGAD_TESTS_CALL_TRIAL_H

#include "core/saga/saga.h"

#define CALL_TRIAL_START_MS INT64_C(1700000000000)
#define CALL_TRIAL_TOOLS_MAX 32

struct call_trial {
    struct tool_shelf shelf; /* first member, so that find() can get back to the trial */
    const struct tool *tools[CALL_TRIAL_TOOLS_MAX];
    size_t tool_count;
    struct arena arena;      /* tools and log */
    struct arena saga_arena; /* what the state keeps */
    struct arena turn;
    enum saga_kind kind;
    struct saga saga;
    int64_t now_ms;
    uint64_t next_escalation;
    struct buffer log;
    struct records records; /* records of the last turn */
    struct err err;         /* error of the last input that was refused */
    size_t rests;           /* inputs that came while the run rested: each was also decided from the run's few bytes */
};

struct wish { /* a call; JSON with ' for "; members that are not named stay NULL */
    const char *tool, *step, *args, *scope, *emission, *turn;
    enum err_code unfit; /* the newest version of the tool does not accept the arguments */
};

/* Registers a new tool, or one more version of a tool; JSON with ' for ". Calls name the newest version. */
void call_trial_register(struct call_trial *t, const char *text);

/* Makes a run, which begins with its first call. */
void call_trial_run(struct call_trial *t);
/* Makes and starts an open saga; `members` may give budget, loop and on_timeout as JSON. The deadline is an hour from
 * now. */
void call_trial_open(struct call_trial *t, const char *budget, const char *loop, const char *on_timeout);
/* Folds the log from scratch, compares the two states, then frees everything. */
void call_trial_close(struct call_trial *t);

enum err_code call_trial_input(struct call_trial *t, struct saga_input input);
/* Gives the code of the answer; the whole answer is in t->records.answer. */
enum err_code call_trial_call(struct call_trial *t, struct wish wish);
#define CALL(t, ...) call_trial_call(t, (struct wish){__VA_ARGS__})

/* Settles the current attempt of the operation that the step with this label is. A completed operation gets `result`,
 * or {"id":"LABEL"} where that is NULL. */
void call_trial_settle(struct call_trial *t, const char *label, enum outcome_kind kind, const char *result);
void call_trial_settle_undo(struct call_trial *t, const char *label);
void call_trial_probe(struct call_trial *t, const char *label, enum outcome_kind kind);
/* The timer of a pending operation fires: its second commit. */
void call_trial_timer(struct call_trial *t, const char *label);
void call_trial_due(struct call_trial *t, enum saga_timer timer);
void call_trial_admit(struct call_trial *t, const char *label, enum admission admission);
enum err_code call_trial_bypass(struct call_trial *t, const char *label);
enum err_code call_trial_resume(struct call_trial *t);
enum err_code call_trial_complete(struct call_trial *t);
enum err_code call_trial_abort(struct call_trial *t);
/* Acts on the open escalation; a resolved operation always happened. */
enum err_code call_trial_operator(struct call_trial *t, enum operator_action action);

const struct step *call_trial_step(const struct call_trial *t, const char *label);
/* Names what the last turn recorded: "step.called a, step.intent a". A duplicate comes with its decision:
 * "operation.duplicate a (waited)". */
const char *call_trial_records(struct call_trial *t);
/* The input has this code, and its turn recorded exactly this: call_trial_takes(&t, CALL(&t, "pay", "a"), ERR_OK, ..).
 */
#define call_trial_takes(t, code, expected, records) call_trial_takes_at(__FILE__, __LINE__, t, code, expected, records)
void call_trial_takes_at(const char *file, int line, struct call_trial *t, enum err_code code, enum err_code expected,
                         const char *records);

#endif
