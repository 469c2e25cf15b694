/* Which failure points of a saga, as `prove` knows them, some scenario has gone through. */
#ifndef SAGACTL_SCENARIO_COVERAGE_H
#define SAGACTL_SCENARIO_COVERAGE_H

#include "tools/sagactl/scenario/stage.h"

struct coverage_point { /* what goes wrong where, however it is settled */
    struct slice step;  /* SLICE_NONE: the saga as a whole */
    enum direction direction;
    enum prove_trouble trouble;
    bool is_covered;
};

struct coverage { /* the coverage of one saga */
    const struct definition *definition;
    struct coverage_point *points;
    size_t count, covered_count;
};

/* Finds the points, all of them uncovered. */
void coverage_open(struct coverage *coverage, const struct definition *definition, struct arena *arena);
void coverage_take(struct coverage *coverage, const struct stage *stage);

#endif
