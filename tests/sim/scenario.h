/*
 * A run as data: definitions, starts, acts of people, faults, settings. A scenario is drawn from a seed, written as
 * text, read back, and made smaller as long as it still fails.
 *
 * Delays, ties and the outcome of requests are not part of it. They are drawn from streams that depend on the seed and
 * on the subject, and, as far as possible, not on how many draws came before.
 */
#ifndef SAGAD_TESTS_SIM_SCENARIO_H
#define SAGAD_TESTS_SIM_SCENARIO_H

#include "tests/sim/node.h"

enum act_kind { /* an act of somebody outside */
                ACT_START,
                ACT_START_AGAIN,
                ACT_OPEN,
                ACT_CALL,
                ACT_COMPLETE,
                ACT_SIGNAL,
                ACT_ABORT,
                ACT_PAUSE,
                ACT_RESUME,
                ACT_GET,
                ACT_ASK /* reads anything that exists or does not: curious.c */,
                ACT_KIND_COUNT
};

enum fault_kind {
    FAULT_KILL,
    FAULT_FREEZE,
    FAULT_DRAIN,
    FAULT_START,
    FAULT_CUT,
    FAULT_SLOW,
    FAULT_ENGINE_CLOCK,
    FAULT_PG_RESTART,
    FAULT_PG_FAIL_OVER,
    FAULT_PG_TERMINATE,
    FAULT_PG_SLOW,
    FAULT_PG_CLOCK,
    FAULT_COMMIT /* the n-th commit from now on */,
    FAULT_TOOLS /* tools refuse, hang or lose answers for a while */,
    /* The faults below are drawn from streams of their own: so scenarios without them, and the bits of `swarm`, stay as
     * they were. */
    FAULT_SWARM_COUNT,
    FAULT_PG_FULL = FAULT_SWARM_COUNT /* the disk is full: PostgreSQL inserts nothing */,
    FAULT_KIND_COUNT
};

struct act {
    enum act_kind kind;
    uint32_t
        id; /* counts from 1; kept when other acts are left out, since business ids, keys and names are made of it */
    int64_t at_us; /* the time since the definitions are there */
    uint32_t node; /* the node that is asked; another node when that is down */
    uint32_t saga; /* ACT_START: number of the definition "s0" and on. ACT_OPEN: 0. ACT_CALL: 0 is a run. Else the id of
                      the act that began the saga. */
    uint32_t variant;
};

struct mishap {
    enum fault_kind kind;
    int64_t at_us, for_us;
    uint32_t node;    /* number of a node, session or tool */
    uint32_t variant; /* enum commit_fate, and the like */
};

#define ACTS_MAX 64
#define FAULTS_MAX 48

/* What may become of a commit beside enum commit_fate: it is done, and something happens before anybody hears of it. */
enum point_fate {
    POINT_CRASH = -1,    /* every engine is killed */
    POINT_FREEZE = -2,   /* the engine that committed freezes for longer than its lease */
    POINT_KILL = -3,     /* the engine that committed is killed */
    POINT_KILL_LATE = -4 /* the engine is killed, and the server does the COMMIT some time later */
};

struct scenario {
    uint64_t seed;
    uint32_t node_count;
    struct node_options options;
    struct slice definitions; /* JSON document */
    struct act acts[ACTS_MAX];
    uint32_t act_count;
    struct mishap faults[FAULTS_MAX];
    uint32_t fault_count;
    uint64_t swarm;          /* bits of the kinds of faults that this seed has at all */
    int64_t chaos_us;        /* the time of faults; then the world is healed */
    uint32_t commit_percent; /* the percentage of commits in the chaos with a fate other than COMMIT_OK */
    uint32_t tool_percent;   /* the percentage of requests that do not simply succeed */
    /* exhaustive mode: the fate of exactly these commits, counted since the definitions are there */
    struct {
        uint64_t commit;
        int fate; /* enum commit_fate or enum point_fate */
    } points[2];
    uint32_t point_count;
};

/* Bits of `swarm` after those of enum fault_kind below FAULT_SWARM_COUNT. */
enum swarm_bit {
    SWARM_LOST_ANSWERS = FAULT_SWARM_COUNT, /* clients lose answers */
    SWARM_TWO_PEOPLE,                       /* both people decide the same things */
    SWARM_SLOW_PEOPLE,
    SWARM_COMMITS, /* commit_percent */
    SWARM_TOOLS,   /* tool_percent */
    SWARM_COUNT,
    /* the bits below have streams of their own */
    SWARM_HOLDS = SWARM_COUNT, /* somebody holds everything now and then */
    SWARM_BULK,                /* somebody has bulk jobs carried out */
    SWARM_NOTIFY,              /* somebody is notified of events */
    SWARM_SCHEDULE,            /* a schedule starts sagas */
    SWARM_TOOL_HOLDS           /* somebody holds several tools at once */
};

/* The members "r0" to "r7" of the input say which steps are refused: those whose bit is set in the variant. */
#define VARIANT_REFUSALS 8

struct outcome_of_run {
    bool failed;
    char invariant[16], violation[1024];
    uint64_t hash, events, commits, turns;
    uint32_t kills, freezes, drains, restarts, takeovers, sagas, ended[8], escalations;
    /* bits, named in sim_seen[], of things that a campaign must see at least once */
    uint64_t seen;
    char end[64]; /* the end of the run, for people */
};

/* Rare things. A campaign that has not seen them all proves less than it says. */
#define SEEN_MAP(X)                                                                                                    \
    X(KILL, "an engine is killed")                                                                                     \
    X(FREEZE, "an engine is frozen for longer than its lease")                                                         \
    X(DRAIN, "an engine leaves")                                                                                       \
    X(CUT, "an engine is cut from PostgreSQL")                                                                         \
    X(PG_RESTART, "PostgreSQL restarts")                                                                               \
    X(PG_FAIL_OVER, "PostgreSQL fails over")                                                                           \
    X(PG_FULL, "PostgreSQL refuses to insert")                                                                         \
    X(PG_TERMINATE, "a session is terminated")                                                                         \
    X(COMMIT_FAILS, "a commit fails")                                                                                  \
    X(COMMIT_WARNS, "a commit warns")                                                                                  \
    X(COMMIT_LOST_BEFORE, "a commit is lost before it is done")                                                        \
    X(COMMIT_LOST_AFTER, "a commit is done and its answer lost")                                                       \
    X(COMMIT_LATE, "a commit is done late")                                                                            \
    X(ANSWER_LOST, "an answer to a client is lost")                                                                    \
    X(START_AGAIN, "a start is repeated and finds its saga")                                                           \
    X(START_OTHER, "a start with another input is refused")                                                            \
    X(COMPLETED, "a saga completes")                                                                                   \
    X(COMPENSATED, "a saga is undone")                                                                                 \
    X(ABANDONED, "a saga is abandoned")                                                                                \
    X(RESOLVED, "a person resolves an escalation")                                                                     \
    X(RESOLVED_LATE, "a second person is too late")                                                                    \
    X(DECIDED, "a person decides an approval")                                                                         \
    X(SIGNAL, "a signal is taken")                                                                                     \
    X(SIGNAL_AGAIN, "a signal is repeated and known")                                                                  \
    X(ABORTED, "a saga is aborted")                                                                                    \
    X(PAUSED, "a saga is paused")                                                                                      \
    X(HELD, "a person holds everything")                                                                               \
    X(TOOL_HELD, "a person holds a tool")                                                                              \
    X(TWO_HOLDS, "a saga whose calls wait for two holds leaves memory")                                                \
    X(BULK_ACTS, "an item of a bulk job acts")                                                                         \
    X(BULK_DONE, "a bulk job comes to its end")                                                                        \
    X(BULK_STOPPED, "a person stops a bulk job")                                                                       \
    X(TOLD, "a receiver is notified of an event")                                                                      \
    X(NOT_TAKEN, "a receiver refuses a notification")                                                                  \
    X(TOLD_AGAIN, "a receiver is notified again of an event that it has")                                              \
    X(SCHEDULED, "a schedule starts a saga")                                                                           \
    X(CALL, "an agent calls a tool")                                                                                   \
    X(CALL_AGAIN, "a call is repeated and answered from its record")                                                   \
    X(SEALED, "payloads are written sealed")                                                                           \
    X(REST, "a run rests, and its state is stored")                                                                    \
    X(REST_AGAIN, "a run whose state was stored goes on")                                                              \
    X(CALL_REFUSED, "a call is refused")                                                                               \
    X(OPEN_COMPLETED, "an open saga completes")                                                                        \
    X(PROBED, "a tool is asked what became of a call")                                                                 \
    X(UNDONE, "an effect is undone")                                                                                   \
    X(VOIDED, "an undo finds nothing, or a call its tombstone")                                                        \
    X(TOOL_SILENT, "a tool acts and its answer is lost")                                                               \
    X(BUSY, "a client is told to come back later")                                                                     \
    X(REFUSED_ENGINE, "a request meets an engine that is not ready")

enum seen {
#define X(name, text) SEEN_##name,
    SEEN_MAP(X)
#undef X
        SEEN_COUNT
};
extern const char *const sim_seen[SEEN_COUNT];

void scenario_draw(struct scenario *scenario, uint64_t seed, struct arena *arena);
void scenario_write(const struct scenario *scenario, struct buffer *out);
MUST_USE enum err_code scenario_read(struct scenario *scenario, struct slice text, struct arena *arena,
                                     struct err *err);

/* Draws only the definitions: {"tools": [...], "sagas": [...]}, with sagas "s0" and on to be started. Of wide sagas
 * most steps begin at once. In draw_definitions.c. */
void draw_definitions(struct chance *chance, struct buffer *out, uint32_t *saga_count, uint32_t size_percent,
                      bool is_wide);

/* Of the run that is under way, in run.c. */
extern const struct scenario *scenario_now;
extern struct outcome_of_run *outcome_so_far;
static inline void see(enum seen what)
{
    outcome_so_far->seen |= UINT64_C(1) << what;
}

extern uint64_t run_until; /* a run ends unjudged after so many events; 0: no bound */
void run_scenario(const struct scenario *scenario, bool traced, struct outcome_of_run *out); /* run.c */
/* Finds the smallest scenario that still breaks the same invariant, with at most so many runs. */
void scenario_shrink(struct scenario *scenario, const struct outcome_of_run *failure, uint32_t runs_max,
                     struct arena *arena);

#endif
