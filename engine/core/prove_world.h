/*
 * One play: a saga against a small world in which one thing goes wrong. The world keeps books of its own about what took
 * effect, and holds every record and the end against them. Private to prove.c.
 */
#ifndef SAGAD_CORE_PROVE_WORLD_H
#define SAGAD_CORE_PROVE_WORLD_H

#include "core/prove.h"

struct prove_book { /* the truth about one step */
    bool did;
    bool maybe;      /* nobody will ever say: it must not be left standing, and may be undone */
    bool undone;
    bool undo_begun;
};

struct prove_world {
    const struct definition *definition;
    struct saga saga;
    struct arena *arena, *turn; /* what this play keeps; what one decision needs */
    struct prove_book *books;
    uint32_t *undone;
    uint32_t undone_count;
    struct prove_point point;
    bool struck;             /* the trouble has begun */
    bool healed;             /* and is over: what is asked from now on is answered */
    bool abort_next;
    uint32_t decisions;      /* of people */
    uint32_t turns;
    int64_t now_ms;
    uint64_t next_escalation;
    enum record_type last_type; /* of the last record, and its step */
    uint32_t last_step;
    struct slice violation;
};

/* A copy of the definition in which nothing needs a value: arguments that have expressions are asked for as wants. A class that depends on
 * arguments is the stricter one, but `effect` for the operation `variant` (of a step; STEP_NONE: of none). */
const struct definition *prove_symbolic(const struct definition *definition, uint32_t variant, enum direction direction, enum effect effect, struct arena *arena);

void prove_world_open(struct prove_world *world, const struct definition *symbolic, struct arena *arena, struct arena *turn); /* and start */
void prove_world_fork(struct prove_world *world, const struct prove_world *from, struct arena *arena);
bool prove_world_move(struct prove_world *world);  /* one turn; false: at rest, `violation` says whether well */
void prove_world_do(struct prove_world *world, const struct want *want);
void prove_world_skip(struct prove_world *world, uint32_t step); /* its condition does not hold; only where it is evaluated */
void prove_world_abort(struct prove_world *world);
void prove_world_deadline(struct prove_world *world);
bool prove_world_stands(const struct prove_world *world, uint32_t step); /* took effect, or may have, and is not undone */
bool prove_world_is_spent(const struct prove_world *world); /* what is wrong in this play cannot show any more */
/* Equal: the same can follow; `exact`: in the same order, whatever order steps have begun in. */
struct digest prove_world_digest(const struct prove_world *world, bool exact);

#endif
