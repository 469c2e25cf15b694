/*
 * One run: a sketch, its compiled definition, the machine that is driven, the world at the other end, and the judge.
 *
 *   walk.c    what happens next: events, drawn by chance or from a list
 *   people.c  what people say, asked or not
 *   agent.c   what an agent calls, in an open saga or a run
 *   world.c   the receivers, people and locks outside: what truly happened, by key
 *   judge.c   what must hold, from the log's own text and the world's books alone
 *   shrink.c  the smallest sketch and the fewest events that still fail
 */
#ifndef SAGAD_TESTS_RUN_H
#define SAGAD_TESTS_RUN_H

#include <setjmp.h>
#include <stddef.h>

#include "core/saga/hold.h"
#include "tests/property/sketch.h"

#define NODES_MAX 128
#define RECORDS_MAX 4096
#define EVENTS_MAX 160
#define SIGNALS_KEPT_MAX 64
#define ALIASES_MAX 256
#define CALLS_MAX 60 /* calls of an agent in one run */
#define RUN_START_MS INT64_C(1700000000000)
#define KEY_WINDOW_MS 60000
#define VISIBILITY_MS 5000
#define NODE_NONE UINT32_MAX

/* --- what happened at the other end --- */

struct thing { /* what the receiver's books say about one key */
    struct op_key key;
    uint32_t effects;
    uint32_t sends;   /* calls that sent at least a byte */
    int64_t first_ms; /* the time since which the receiver remembers the key */
    int64_t lands_ms; /* when a call on the wire takes effect; 0: no call is on the wire */
    bool running;     /* the receiver has accepted the call, and it lands at lands_ms */
    bool voided;
    bool doubled;           /* a person accepted a second effect, or the receiver lied */
    bool lied;              /* the receiver has said once that the effect did not happen */
    bool hidden;            /* the receiver lied and has not corrected the lie yet */
    uint32_t asked_attempt; /* the attempt that was sent last */
    bool has_answer;
    struct outcome answer; /* the answer on its way back */
    bool has_late;         /* there is an answer of an attempt that the engine no longer awaits */
    struct outcome late;
    uint32_t late_attempt;
};

/* --- agents: what they may call, and what they ask for --- */

struct ware { /* one version of a tool, and all that the judge knows of it */
    uint32_t version;
    const char *text;      /* the definition; ' stands for " */
    struct kit kit;        /* the tool; of a conditional tool, its effect with {"send": true} */
    enum effect otherwise; /* the effect of a conditional tool without {"send": true} */
    bool allows;           /* each call is one more effect */
    bool comes_back;       /* the record lasts an hour; then the call is made again */
};

struct request { /* a call on its way to the engine */
    const struct ware *ware;
    struct slice step /* SLICE_NONE: the call names no step */, scope, emission, turn, args;
    uint32_t amount; /* the argument in which calls of one effect may not differ */
    enum effect effect;
    bool unfit; /* the newest version of the tool does not accept these arguments */
};

struct agent {
    struct tool_shelf shelf; /* first member, so that find() can get back to the agent */
    uint32_t registered;     /* bits of the wares that may come later */
    struct request request;  /* the last request */
    bool is_calling;         /* the machine is deciding the request now */
    uint32_t calls;
    struct call_answer answer;
};

struct called { /* what the judge knows of a step that an agent has called */
    const struct ware *ware;
    struct slice step, scope;
    uint32_t amount;
    uint64_t begun_seq, settled_seq; /* a step that settles before another begins is undone after it */
    int64_t settled_ms, booked;
    int64_t signed_until_ms; /* the end of a person's permission for one more execution; 0: none */
};

/* --- what the judge knows of a step, from the log --- */

enum node_state {
    IS_NOTHING,
    IS_PENDING,
    IS_SENT,    /* the call may be under way: in flight, tried again, probed */
    IS_UNKNOWN, /* for good */
    IS_DONE,
    IS_BEFORE, /* the effect happened before the call */
    IS_FAILED,
    IS_SKIPPED,
    IS_OPEN, /* a group */
    IS_WAITING
};

enum node_undo { UNDO_NONE, UNDO_PLANNED, UNDO_SENT, UNDO_FAILED, UNDO_DONE };

struct node {
    const char *id;
    uint64_t name; /* of the id */
    const struct sketch_step *step;
    const struct kit *kit;          /* of a call */
    const struct sketch_saga *saga; /* the saga in which the step is written */
    uint32_t parent;                /* the node of the group; NODE_NONE */
    uint32_t element;               /* index of the element; ELEMENT_NONE */
    uint32_t member;                /* the place of the step in its saga */
    uint32_t first, count;          /* its members */
    enum node_state state;
    enum effect effect;
    uint32_t order;      /* the place in the order of beginning; 0: the step did not begin */
    int64_t due_ms;      /* of a wait, and of a child that has a deadline */
    int64_t due_from_ms; /* when due_ms was set */
    uint64_t approval;
    bool has_hash;
    struct digest hash;
    int decided; /* the decision: 1 approve, -1 refuse */
    bool handed; /* a signal: */
    struct slice payload;
    struct slice result;
    bool is_failing; /* this child is undone on its own */
    bool is_planned;
    bool is_doubted;  /* evidence contradicts a person: the undo waits for a person */
    bool joined_late; /* evidence put the node into the plan, where it comes first */
    enum node_undo undo;
    bool undo_begun, is_waived;
    struct called called;              /* by an agent */
    uint32_t intents[DIRECTION_COUNT]; /* the number of the last intent */
    bool flies[DIRECTION_COUNT];       /* the log has an intent without its end */
    uint32_t admitted;                 /* the attempt about which the guards were asked last */
    bool denied[DIRECTION_COUNT];      /* the guard of outgoing calls refused the last try */
    struct thing things[DIRECTION_COUNT];
};

struct kept {
    uint32_t name;
    struct slice payload;
    bool taken;
};

struct alias { /* a request that was answered with a record */
    struct slice emission;
    uint32_t node;
};

struct judge {
    uint32_t count;
    enum saga_kind kind;
    bool is_looping;                  /* paused because calls went round: calls are refused, all else goes on */
    int64_t calls, emissions, micros; /* what the saga has used of its budget */
    struct alias aliases[ALIASES_MAX];
    uint32_t alias_count;
    uint32_t begun;
    uint64_t seq;
    bool is_started, is_failing, is_planned, is_ended, is_paused, is_held, locks_wanted, was_decided, was_abandoned;
    enum saga_status end;
    int64_t paused_ms, held_ms, deadline_ms;
    uint32_t escalations; /* open */
    uint64_t escalation;  /* its number */
    struct slice locks[SKETCH_LOCKS_MAX];
    uint32_t lock_count, lock_taken;
    struct kept signals[SIGNALS_KEPT_MAX];
    uint32_t signal_count;
    struct sketch_step called;    /* what all calls of agents have in common */
    struct node nodes[NODES_MAX]; /* last member: only the used nodes are cleared */
};

/* --- what happens --- */

enum event_kind {
    EVENT_WANT,
    EVENT_CRASH,
    EVENT_LATE,
    EVENT_PERSON,
    EVENT_UNASKED,
    EVENT_ABORT,
    EVENT_PAUSE,
    EVENT_ESCALATE,
    EVENT_RESUME,
    EVENT_SIGNAL,
    EVENT_DECISION,
    EVENT_NONSENSE,
    EVENT_STALE,
    EVENT_CONTRADICTION,
    EVENT_CALL, /* a call of an agent; the events after it come with agents too */
    EVENT_COMPLETE,
    EVENT_BYPASS,
    EVENT_REGISTER,
    EVENT_DAY,
    EVENT_MEND,
    EVENT_HOLD, /* a person holds something, or releases it */
    EVENT_KIND_COUNT
};

struct event {
    enum event_kind kind;
    enum want_type want;
    enum direction direction;
    uint32_t number; /* the number of the evaluation or lock */
    uint64_t name;   /* name of the step; 0: the saga */
    uint64_t luck;   /* all chance in the event */
};

#define CALM_MAX 64

struct script { /* all that is needed to play a run again */
    uint64_t seed;
    struct sketch sketch;
    struct event events[EVENTS_MAX];
    uint32_t event_count;
    bool is_fixed;           /* the events are given; else the run draws them and notes them here */
    uint64_t calm[CALM_MAX]; /* names of steps whose calls simply succeed */
    uint32_t calm_count;
};

struct tally {
    uint64_t runs, turns, redrawn, records[RECORD_TYPE_COUNT], ends[SAGA_STATUS_COUNT], actions[OPERATOR_ACTION_COUNT],
        events[EVENT_KIND_COUNT], answers[ERR_COUNT];
    uint64_t scoped_undos, element_undos, child_undos, kept_signals_taken, undos_at_once, doubles, volunteered;
};

struct mend_shelf {          /* for a saga with a definition: its tools have versions, see sketch.h */
    struct tool_shelf shelf; /* first member, so that mend() can get back to the shelf */
    const struct sketch *sketch;
    struct arena *arena;
};

struct run {
    struct script *script;
    struct mend_shelf mend_shelf;
    const struct definition *definition;
    struct arena kept; /* memory that lasts as long as the run */
    struct arena live_arena, shadow_arena, again_arena, turn, scratch;
    struct saga live;   /* the state made of the records as decided */
    struct saga shadow; /* the state made of the log's text */
    struct buffer log;  /* one record in each line */
    struct {
        size_t from, len;
        int64_t at_ms;
    } lines[RECORDS_MAX];
    uint32_t line_count;
    struct buffer view, view_of_shadow;
    int64_t now_ms;
    uint64_t next_escalation, next_approval;
    uint32_t turns, results, signals_sent, signalled[2] /* the last number of each name */;
    uint32_t trouble; /* the percentage of calls that do not simply succeed */
    bool is_kind;     /* everything works from now on, so that the run ends */
    bool is_deaf;     /* no probe is answered until is_kind */
    struct want wants[3 * NODES_MAX + 8];
    uint32_t want_count;
    struct want stale; /* an evaluation or a lock that was asked for earlier */
    bool has_stale;
    struct judge judge;
    struct agent agent;
    struct hold hold;
    struct hold_set holds; /* the hold above, while it is in force */
    struct tally *tally;
    bool is_told; /* the run prints what happens */
    jmp_buf failed;
    struct slice violation;
};

/* Reports a broken rule and ends the run. */
_Noreturn void run_violate(struct run *run, const char *format, ...) PRINTF_LIKE(2, 3);
void run_init(struct run *run, struct tally *tally);
void run_fini(struct run *run);
/* Plays the script. False: `violation` says which rule is broken. */
bool run_play(struct run *run, struct script *script);

/* Gives one input to the machine, and checks all that must hold after it. */
enum err_code run_feed(struct run *run, struct saga_input input);
/* Throws the state away and folds the log again. */
void run_fold_again(struct run *run);

/* --- world.c --- */

struct thing *world_thing(struct run *run, uint32_t node, enum direction direction);
void world_land(struct run *run); /* calls that were on the wire until now arrive */
void world_send_calls(struct run *run);
bool world_stands(const struct run *run, uint32_t node);
bool world_is_on_the_wire(const struct run *run, uint32_t node);
struct outcome world_answer_probe(struct run *run, uint32_t node, enum direction direction, struct chance *chance);
struct outcome world_completed(struct run *run);
/* An effect that counts as failed has happened after all, and the receiver says so now. */
struct outcome world_completed_late(struct run *run, uint32_t node, enum direction direction);
struct outcome world_trouble(enum outcome_kind kind, bool unsent, const char *error);
struct saga_input world_outcome(struct run *run, enum saga_input_type type, uint32_t node, enum direction direction,
                                uint32_t attempt, struct outcome outcome);
enum effect node_undo_effect(const struct node *node);
bool node_tolerates_absent(const struct node *node);

/* --- people.c --- */

void person_decides(struct run *run, struct chance *chance);
void person_volunteers(struct run *run, uint32_t step, enum direction direction, struct chance *chance);
void person_signals(struct run *run, uint32_t name, struct chance *chance);
void person_approves(struct run *run, uint32_t at, struct chance *chance);
/* The person makes the saga go on with another version of a tool. */
void person_mends(struct run *run, struct chance *chance);
/* The person holds a tool or all tools, or releases what is held. */
void person_holds(struct run *run, struct chance *chance);
void person_says(struct run *run, enum saga_input_type type); /* the person aborts, pauses or resumes the saga */

/* --- agent.c --- */

const struct definition *agent_definition(struct run *run, enum saga_kind kind, struct arena *arena);
struct saga_input agent_start(struct run *run);                     /* the input that starts an open saga */
const struct ware *agent_ware(struct slice name, uint32_t version); /* NULL: there is no such version */
void agent_calls(struct run *run, struct chance *chance);
void agent_ends(struct run *run, struct chance *chance);      /* the agent completes the saga or aborts it */
void agent_registers(struct run *run, struct chance *chance); /* a tool gets a new version */
void person_signs(struct run *run, uint32_t node, struct chance *chance); /* the person permits one more execution */

/* --- judge_calls.c --- */

/* Each of these judges one record. */
void judge_called(struct run *run, const struct record *record);
void judge_repeated(struct run *run, const struct record *record);
void judge_duplicate(struct run *run, const struct record *record);
void judge_expired(struct run *run, const struct record *record);
void judge_signed(struct run *run, const struct record *record);
void judge_looped(struct run *run, const struct record *record);
void judge_rested(struct run *run);
void judge_woken(struct run *run);
void judge_call_settled(struct run *run, const struct record *record);
void judge_answer(struct run *run, const struct request *request, const struct call_answer *answer);
bool judge_is_open(const struct judge *judge); /* the steps of this saga are calls of an agent */

/* --- judge.c --- */

void judge_record(struct run *run, const struct record *record); /* to be called after the record was applied */
void judge_rest(struct run *run);                                /* to be called between two events */

/* --- judge_steps.c --- */

uint64_t node_name_of(const char *id);

void judge_open(struct run *run);
bool node_is_call(const struct node *node);
bool node_is_fan(const struct node *node); /* a group of for_each: its members are elements */
bool node_is_child(const struct node *node);
bool node_is_over(const struct node *node);
bool judge_is_held(const struct run *run, uint32_t node, enum direction direction); /* by the hold in force */
bool judge_is_failing(const struct judge *judge, uint32_t node); /* this node fails, or a group that it belongs to */
bool judge_has_passed_return(const struct judge *judge);
void judge_must_not_stand(struct run *run, uint32_t at, const char *what);
struct kept *judge_first_kept(struct judge *judge, uint32_t name);
void judge_step_is_due(struct run *run, uint32_t at);
void judge_step_begins(struct run *run, uint32_t at);
/* Each of these judges one record. */
void judge_intent(struct run *run, const struct record *record);
void judge_completed(struct run *run, const struct record *record);
void judge_failed(struct run *run, const struct record *record);
void judge_skipped(struct run *run, const struct record *record);
void judge_opened(struct run *run, const struct record *record);
void judge_waiting(struct run *run, const struct record *record);
void judge_signal(struct run *run, const struct record *record);
void judge_decided(struct run *run, const struct record *record);
void judge_locks(struct run *run, const struct record *record);

/* --- judge_undo.c --- */

bool node_is_within(const struct judge *judge, uint32_t node, uint32_t group);
void judge_plan(struct run *run, const struct record *record);
void judge_undo_begins(struct run *run, uint32_t node);
void judge_undo_room(struct run *run);
void judge_undone(struct run *run, const struct record *record); /* a record */
bool node_may_stand(const struct node *node);                    /* the effect may stand, as far as the log says */

/* --- walk.c --- */

void walk(struct run *run);
void event_tell(const struct run *run, const struct event *event);

/* --- shrink.c --- */

/* Finds the smallest script that still fails and puts it in place of the script. */
void shrink(struct run *run, struct script *script, bool (*fails)(struct run *run, struct script *script));

#endif
