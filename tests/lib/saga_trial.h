/*
 * A saga on trial: the test drives the pure machine by hand. Each turn goes the way that turns go in the engine:
 * decide, check, write as text, read the text back, apply. So every test of a saga also tests the codec and the check
 * of records.
 */
#ifndef SAGAD_TESTS_SAGA_TRIAL_H
#define SAGAD_TESTS_SAGA_TRIAL_H

#include "core/saga/saga.h"

#define TRIAL_START_MS INT64_C(1700000000000)

struct trial {
    struct arena arena;      /* memory of the definition and the log */
    struct arena saga_arena; /* memory of the saga's state */
    struct arena turn;
    const struct definition *definition; /* as compiled; saga.definition has members of groups too */
    struct saga saga;
    int64_t now_ms;
    uint64_t next_escalation, next_approval;
    size_t payload_bytes_max;     /* given with each input; 0: unbounded */
    const struct hold_set *holds; /* the same; NULL: none */
    const struct digest *digest_key;
    struct buffer log;      /* one record a line, as stored, with seq and at */
    struct records records; /* of the last turn */
    struct err err;         /* of the last input that was refused */
};

/* Reads JSON in which ' stands for ", so that documents are readable in C. */
struct slice trial_json(struct arena *arena, const char *text);

/* Compiles the first saga of a document, with the tools in it. Fails the test when the document has faults. */
const struct definition *trial_compile(struct arena *arena, struct slice document);

void trial_open(struct trial *trial, const char *document);       /* `document` is JSON with ' for " */
void trial_open_text(struct trial *trial, struct slice document); /* plain JSON */
/* Opens a saga whose id is made from `number`. */
void trial_open_compiled(struct trial *trial, const struct definition *definition, uint32_t number);
void trial_close(struct trial *trial);
/* First checks that the saga is sound and that its log folds to the same state. */
void trial_close_sound(struct trial *trial);

enum err_code trial_input(struct trial *trial, struct saga_input input); /* fills in now_ms and the numbers */
uint32_t trial_step(const struct trial *trial, const char *id);          /* "-" gives STEP_NONE */

/* Shorthands for inputs. They fail the test when the input is refused. */
void trial_start(struct trial *trial, const char *input);
void trial_begin(struct trial *trial, const char *document, const char *input); /* opens and starts */

/*
 * Plays events, each in a turn of its own. An event is a step and its outcome, in the words of trial_wants() and
 * trial_records(). A step without an outcome completes, with the result {"id":"STEP-1"}.
 *
 *     trial_play(&trial, "a, b unknown, timer b, b failed, undo a retry");
 *
 * "a failed" settles the current attempt of a, and "undo a failed" that of its compensator. "probe a absent" and "timer
 * a" come when they are due: the clock moves on. The test fails at this line when an input is refused.
 */
#define trial_play(trial, events) trial_play_at(__FILE__, __LINE__, trial, events, NULL)
/* The same; and the last of these turns records exactly this. */
#define trial_play_to(trial, events, records) trial_play_at(__FILE__, __LINE__, trial, events, records)
/* The same; and the saga has this status then. */
#define trial_play_until(trial, events, status) trial_play_until_at(__FILE__, __LINE__, trial, events, status)
void trial_play_until_at(const char *file, int line, struct trial *trial, const char *events, enum saga_status status);
void trial_play_at(const char *file, int line, struct trial *trial, const char *events, const char *records);

/* The input was taken, and its turn recorded exactly this: trial_takes(&trial, trial_abort(&trial), "saga.failing"). */
#define trial_takes(trial, code, records) trial_takes_at(__FILE__, __LINE__, trial, code, records)
void trial_takes_at(const char *file, int line, struct trial *trial, enum err_code code, const char *records);

/* The same, one event at a time, for tests with tables. */
void trial_settle(struct trial *trial, const char *step, enum outcome_kind kind);
void trial_settle_undo(struct trial *trial, const char *step, enum outcome_kind kind);
void trial_probe(struct trial *trial, const char *step, enum outcome_kind kind);
void trial_timer(struct trial *trial, const char *step);
void trial_timer_undo(struct trial *trial, const char *step);
enum err_code trial_abort(struct trial *trial);
enum err_code trial_operator(struct trial *trial, enum operator_action action); /* acts on the open escalation */
enum err_code trial_resolve(struct trial *trial, bool happened, const char *result);

/* `payload` is JSON with ' for "; `id` may be NULL. */
enum err_code trial_signal(struct trial *trial, const char *name, const char *payload, const char *id);
/* Decides the approval of this step. */
enum err_code trial_decide(struct trial *trial, const char *step, bool approve, enum role role);
enum err_code trial_pause(struct trial *trial);
enum err_code trial_resume(struct trial *trial);
void trial_locked(struct trial *trial, bool refused); /* the next lock that WANT_LOCK asked for */
/* Gives the value of an evaluation; NULL: the evaluation failed. */
void trial_evaluated(struct trial *trial, enum evaluation what, const char *step, const char *value);

/* Makes the input for the outcome of a call or probe. It renders the compensator's arguments as the engine would. */
struct saga_input trial_outcome(struct trial *trial, enum saga_input_type type, uint32_t step, enum direction direction,
                                uint32_t attempt, struct outcome outcome);

/* Names what the last turn recorded: "saga.started, step.intent reserve". The text lives in the turn's arena. */
const char *trial_records(struct trial *trial);
/* Names what the saga wants now: "call reserve 1, timer charge +2000". Times count from now. */
const char *trial_wants(struct trial *trial);
/* Gives the saga as the API shows it; or the member that a JSON Pointer names in it. */
struct slice trial_view(struct trial *trial, struct arena *arena);
struct slice trial_shown(struct trial *trial, const char *pointer);
/* Gives the name of a step's status, and its operation. */
const char *trial_status(const struct trial *trial, const char *step);
struct operation *trial_forward(struct trial *trial, const char *step);

/* Folds the log from scratch into another saga. Fails the test when the two differ in any field. */
void trial_check_replay(struct trial *trial);

/*
 * Tools of every kind, for documents of tests: TRIAL_SAGA("{'id':'a','call':'keyed'}"). They wait 5 s before a probe's
 * answer `absent` counts. They stop probing after 1 h, and remember keys for 60 s.
 */
#define TRIAL_TOOLS                                                                                                    \
    "{'name':'read','builtin':{'do':'echo'},'effect':'read'},"                                                         \
    "{'name':'idempotent','builtin':{'do':'echo'},'effect':'idempotent','compensate':{'tool':'undo','with':{'id':'${ " \
    ".result.id }'}}},"                                                                                                \
    "{'name':'idempotent_probed','builtin':{'do':'echo'},'effect':'idempotent','compensate':{'tool':'undo','with':{'"  \
    "id':'${ .result.id }'}},'probe':{'builtin':{'do':'echo'},'outcome':{'completed':'${ .response.ok "                \
    "}','absent':'${ .response.no }'},'visibility':'5s','give_up_after':'1h'}},"                                       \
    "{'name':'keyed','builtin':{'do':'echo'},'effect':'keyed','key':{'window':'60s'},'compensate':{'tool':'undo','"    \
    "with':{'id':'${ .result.id }'}}},"                                                                                \
    "{'name':'keyed_probed','builtin':{'do':'echo'},'effect':'keyed','key':{'window':'60s'},'compensate':{'tool':'"    \
    "undo','with':{'id':'${ .result.id }'}},'probe':{'builtin':{'do':'echo'},'outcome':{'completed':'${ .response.ok " \
    "}','absent':'${ .response.no }'},'visibility':'5s','give_up_after':'1h'}},"                                       \
    "{'name':'checked','builtin':{'do':'echo'},'effect':'checked','compensate':{'tool':'undo','with':{'id':'${ "       \
    ".result.id }'}},'probe':{'builtin':{'do':'echo'},'outcome':{'completed':'${ .response.ok }','absent':'${ "        \
    ".response.no }'},'visibility':'5s','give_up_after':'1h'}},"                                                       \
    "{'name':'once','builtin':{'do':'echo'},'effect':'once','compensate':{'tool':'undo','with':{'id':'${ .result.id "  \
    "}'}}},"                                                                                                           \
    "{'name':'once_probed','builtin':{'do':'echo'},'effect':'once','compensate':{'tool':'undo','with':{'id':'${ "      \
    ".result.id }'}},'probe':{'builtin':{'do':'echo'},'outcome':{'completed':'${ .response.ok }','absent':'${ "        \
    ".response.no }'},'visibility':'5s','give_up_after':'1h'}},"                                                       \
    "{'name':'voidable','builtin':{'do':'echo'},'effect':'once','compensate':{'tool':'undo','with':{'key':'${ .key "   \
    "}'},'tolerates_absent':true,'voids_key':true}},"                                                                  \
    "{'name':'mail','builtin':{'do':'echo'},'effect':'once','terminal':true},"                                         \
    "{'name':'mail_probed','builtin':{'do':'echo'},'effect':'checked','terminal':true,'probe':{'builtin':{'do':'echo'" \
    "},'outcome':{'completed':'${ .response.ok }','absent':'${ .response.no "                                          \
    "}'},'visibility':'5s','give_up_after':'1h'}},"                                                                    \
    "{'name':'strict','builtin':{'do':'echo'},'effect':'keyed','key':{'window':'60s'},'input':{'type':'object','"      \
    "required':['n'],'properties':{'n':{'type':'integer'}}},'compensate':{'tool':'undo_strict','with':{'id':'${ "      \
    ".result.id }'}}},"                                                                                                \
    "{'name':'by_keyed','builtin':{'do':'echo'},'effect':'idempotent','compensate':{'tool':'undo_keyed','with':{'id':" \
    "'${ .result.id }'},'give_up_after':'10m'}},"                                                                      \
    "{'name':'by_checked','builtin':{'do':'echo'},'effect':'idempotent','compensate':{'tool':'undo_checked','with':{'" \
    "id':'${ .result.id }'},'give_up_after':'10m'}},"                                                                  \
    "{'name':'limited','builtin':{'do':'echo'},'effect':'keyed','key':{'window':'60s'},'rate':{'limit':1,'per':'1s'}," \
    "'compensate':{'tool':'undo','with':{'id':'${ .result.id }'}}},"                                                   \
    "{'name':'limited_once','builtin':{'do':'echo'},'effect':'once','concurrency':1,'compensate':{'tool':'undo','"     \
    "with':{'id':'${ .result.id }'}}},"                                                                                \
    "{'name':'undo','builtin':{'do':'echo'},'effect':'idempotent'},"                                                   \
    "{'name':'undo_keyed','builtin':{'do':'echo'},'effect':'keyed','key':{'window':'60s'}},"                           \
    "{'name':'undo_checked','builtin':{'do':'echo'},'effect':'checked','probe':{'builtin':{'do':'echo'},'outcome':{'"  \
    "completed':'${ .response.ok }','absent':'${ .response.no }'},'visibility':'5s','give_up_after':'1h'}},"           \
    "{'name':'undo_strict','builtin':{'do':'echo'},'effect':'idempotent','input':{'type':'object','required':['id'],'" \
    "properties':{'id':{'type':'string'}}}}"

#define TRIAL_SAGA(steps) "{'tools':[" TRIAL_TOOLS "],'sagas':[{'name':'trial','steps':[" steps "]}]}"
#define TRIAL_SAGA_WITH(members, steps)                                                                                \
    "{'tools':[" TRIAL_TOOLS "],'sagas':[{'name':'trial'," members ",'steps':[" steps "]}]}"

#endif
