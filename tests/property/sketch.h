/*
 * A sketch: a random definition before it is JSON. The compiler gets the JSON. The judge takes what it believes about
 * the saga from the sketch. So a mistake stays hidden only where both are wrong in the same way.
 */
#ifndef SAGAD_TESTS_SKETCH_H
#define SAGAD_TESTS_SKETCH_H

#include "core/definition/definition.h"
#include "tests/property/chance.h"

#define SKETCH_STEPS_MAX 12 /* the most steps in all sagas of a sketch */
#define SKETCH_SAGAS_MAX 4  /* the outermost saga and its children */
#define SKETCH_ELEMENTS_MAX 4
#define SKETCH_EXPANDED_MAX 40 /* the most steps with all elements and the steps of children */
#define SKETCH_LOCKS_MAX 3

struct kit { /* a tool, and all that the judge knows of it */
    const char *name;
    enum effect effect; /* the first of two effects, where the arguments decide */
    bool conditional;   /* the effect is `keyed` where .args.odd is set */
    bool probed, terminal, guarded, costs;
    const char *undo; /* NULL: none */
    enum effect undo_effect;
    bool tolerates_absent, voids_key;
    bool picky; /* the tool accepts only a number as argument, and its undo only a text */
};

extern const struct kit kits[];
extern const uint32_t kit_count;

enum sketch_when { WHEN_NONE, WHEN_TRUE, WHEN_FALSE, WHEN_PROGRAM, WHEN_BROKEN };
enum sketch_with { WITH_NONE, WITH_CONSTANT, WITH_PATH, WITH_PROGRAM, WITH_BROKEN, WITH_ITEM };
enum sketch_each { EACH_NONE, EACH_PATH, EACH_PROGRAM, EACH_NO_ARRAY };
enum sketch_scope { SCOPE_NONE, SCOPE_PATH, SCOPE_PROGRAM };
enum sketch_sleep { SLEEP_DURATION, SLEEP_PAST, SLEEP_FUTURE, SLEEP_PROGRAM, SLEEP_BROKEN };
enum sketch_undo { UNDO_OF_TOOL, UNDO_OF_PATH, UNDO_OF_PROGRAM };
enum sketch_output { OUTPUT_NONE, OUTPUT_STEP, OUTPUT_PROGRAM, OUTPUT_BROKEN };

struct sketch_step {
    char id[4];
    enum step_kind kind;
    uint32_t kit;    /* STEP_CALL */
    uint32_t child;  /* of STEP_SAGA: the index of the child in the sketch */
    uint32_t signal; /* of STEP_SIGNAL: which of two names */
    enum sketch_sleep sleep;
    bool shows; /* of STEP_APPROVE */
    bool admin_only;
    uint32_t timeout_s; /* the timeout of a signal or an approval; 0: none */
    bool has_after;
    uint32_t after; /* bits of steps; without has_after it is the step before */
    enum sketch_when when;
    enum sketch_with with;
    enum sketch_scope scope;
    enum sketch_each each;
    uint32_t elements, concurrency;
    enum on_failure on_failure;
    enum sketch_undo own_undo; /* the step's own `compensate` */
};

struct sketch_saga {
    struct sketch_step steps[SKETCH_STEPS_MAX];
    uint32_t step_count;
    uint32_t deadline_s, undo_concurrency;
    enum sketch_output output;
    bool strict; /* the input schema requires members that are not always there */
    /* locks and followers of the outermost saga */
    struct {
        bool program, fails, same; /* same: the lock is the same as the first one */
    } locks[SKETCH_LOCKS_MAX];
    uint32_t lock_count;
    uint32_t follower_count;
    bool follower_named;
    uint32_t budget_calls; /* 0: none */
};

struct sketch {
    enum saga_kind
        kind; /* SAGA_DEFINED: the sagas below are the definition. Else an agent calls what it likes, see agent.c. */
    const char *budget, *loop, *on_timeout; /* JSON of SAGA_OPEN with ' for "; NULL: none */
    int64_t calls, emissions, micros;       /* the bounds of the budget; -1: unbounded */
    bool is_stubborn;                       /* the agent knows only two calls */
    struct sketch_saga sagas[SKETCH_SAGAS_MAX];
    uint32_t saga_count;
};

/* Draws a sketch. A step without one of the features is plain. */
void sketch_draw(struct sketch *sketch, struct chance *chance);
void sketch_draw_open(struct sketch *sketch, struct chance *chance);
bool sketch_is_terminal(const struct sketch *sketch, const struct sketch_step *step);
/* Gives the steps that come directly before a step, as bits. */
uint32_t sketch_after(const struct sketch_saga *saga, uint32_t step);
bool sketch_comes_before(const struct sketch_saga *saga, uint32_t a, uint32_t b);
/* Leaves out the n-th thing that can be left out. False: there are no more than n. */
bool sketch_simplify(struct sketch *sketch, uint32_t n);
/* Writes {"tools": [...], "sagas": [...]}, with the outermost saga last. */
void sketch_write(const struct sketch *sketch, struct buffer *out);
/* NULL: the compiler refuses the sketch; `why` says why. */
struct definition *sketch_compile(const struct sketch *sketch, struct arena *arena, struct slice *why);
/* Each version of a tool is the first one with another timeout. This version alone has another class. */
#define SKETCH_VERSION_BAD 9
/* Gives `definition` with that version of the tool; NULL: it does not compile. */
struct definition *sketch_mend(const struct sketch *sketch, const struct definition *definition, struct slice tool,
                               uint32_t version, struct arena *arena);

/* The input of every saga and child. */
#define SKETCH_INPUT                                                                                                   \
    "{\"n\":1,\"t\":true,\"none\":null,\"l0\":[],\"l1\":[{\"n\":1}],\"l2\":[{\"n\":1},{\"n\":2}],\"l3\":[1,null,"      \
    "\"c\"],\"l4\":[4,3,2,1]}"

#endif
