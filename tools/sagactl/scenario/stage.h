/*
 * One scenario on stage: a saga on the engine's own machine, in a world whose tools answer as the scenario says, and
 * whose clock jumps to whatever comes next.
 *
 *     what the engine does by itself, retries and probes too -> the next event -> deadlines and timeouts
 *
 * An event with a time comes at that time, before what is due later.
 *
 * Equal steps are taken in the order of the definition, so that a scenario always goes the same way.
 */
#ifndef SAGACTL_SCENARIO_STAGE_H
#define SAGACTL_SCENARIO_STAGE_H

#include "core/prove/prove.h"
#include "tools/sagactl/scenario/scenario.h"

struct stage_call {
    uint32_t step;
    enum direction direction;
    struct slice id, tool, scope; /* id: of the step */
    struct slice args;            /* JSON */
    struct op_key key;
    uint32_t attempt;
};

struct stage_struck {  /* a failure point that the scenario went through */
    struct slice step; /* the step's id; SLICE_NONE: the saga as a whole */
    enum direction direction;
    enum prove_trouble trouble;
};

struct stage_truth {                      /* what really happened, of a step */
    bool did[DIRECTION_COUNT];            /* what was done, by direction */
    struct slice result[DIRECTION_COUNT]; /* JSON; SLICE_NONE: none yet */
};

struct stage_counter { /* the counter of one list of replies */
    const struct reply *items;
    uint32_t *given; /* how often each was given */
};

struct stage {
    const struct scenario *scenario;
    const struct definition *definition;
    struct arena arena; /* the arena of the play */
    struct arena saga_arena;
    struct arena turn;
    struct saga saga;
    int64_t now_ms, pass_until_ms /* 0: no time is being let pass */;
    uint64_t next_escalation, next_approval;
    uint32_t turns;
    size_t next_event;
    struct stage_counter *counters;
    size_t counter_count;
    struct stage_truth *truths; /* the truths by step */
    uint32_t truth_count;
    struct stage_call *calls;
    size_t call_count, call_room;
    struct stage_struck *struck;
    size_t struck_count, struck_room;
    bool keeps_log;       /* the engine is killed in this scenario */
    struct buffer log;    /* records as text, each with a NUL behind it */
    struct slice failure; /* a sentence: the play could not go on. SLICE_NONE: it went to its end */
};

/* Plays a scenario. End it with stage_fini(), whatever came of it. */
void stage_play(const struct scenario *scenario, const struct definition *definition, struct stage *out);
void stage_fini(struct stage *stage);

/* --- between the files of the stage --- */

void stage_fail(struct stage *stage, const char *format, ...) PRINTF_LIKE(2, 3);
/* Feeds an input to the saga and folds what it decided. ERR_OK, or the refusal. */
enum err_code stage_feed(struct stage *stage, struct saga_input input, struct err *err);
void stage_strike(struct stage *stage, uint32_t step, enum direction direction, enum prove_trouble trouble);
struct stage_truth *stage_truth_of(struct stage *stage, uint32_t step);
const struct operation *stage_operation(const struct stage *stage, uint32_t step, enum direction direction);
struct slice stage_key(struct stage *stage, const struct op_key *key); /* the key as text, in the arena of the play */
uint32_t stage_find_step(const struct stage *stage, struct slice id);  /* STEP_NONE: it is not there (yet) */

/* stage_render.c: false: it cannot be rendered, `error` is the sentence. An unset template gives SLICE_NONE. */
MUST_USE bool stage_render(struct stage *stage, const struct template *template,
                           const struct expression_context *context, struct slice *value, struct slice *error);
void stage_evaluate(struct stage *stage, const struct want *want);
/* The arguments of the compensator of a step, from the result of its call. */
void stage_undo_args(struct stage *stage, uint32_t step, struct slice result, struct slice *args, struct slice *error);

/* stage_answer.c */
void stage_answer_call(struct stage *stage, const struct want *want);
void stage_answer_probe(struct stage *stage, const struct want *want);
void stage_answer_admission(struct stage *stage, uint32_t step);
void stage_late(struct stage *stage, const struct event *event, uint32_t step);
/* Kills the engine: the state is folded anew from the log, and calls that were out are interrupted. */
void stage_crash(struct stage *stage);

/* stage_event.c */
void stage_event(struct stage *stage, const struct event *event);

#endif
