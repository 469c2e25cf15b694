/*
 * One play: a saga against a small world in which one thing goes wrong. The world keeps books of its own about what
 * took effect, and holds every record and the end against them. Private to prove*.c.
 *
 *   prove/symbolic.c  the definition without values
 *   prove/world.c     what the other end does, what people do, what comes next
 *   prove/check.c     what must hold after each record and in the end
 */
#ifndef SAGAD_CORE_PROVE_WORLD_H
#define SAGAD_CORE_PROVE_WORLD_H

#include "core/prove/prove.h"

/* --- the definition without values --- */

struct prove_variant {                /* one operation is under another class than the stricter one */
    const struct definition *written; /* the saga that it is written in; NULL: there is none */
    uint32_t member;
    enum direction direction;
    enum effect effect;
};

struct prove_symbol {
    const struct definition *written, *symbolic;
};

struct prove_symbols {
    const struct definition *definition;
    struct prove_symbol *items; /* the outermost saga first, then its children */
    uint32_t count, capacity;
};

/* A copy of the definition and its children in which nothing needs a value: what has expressions is asked for as wants.
 * A class that depends on arguments is the stricter one, but for the variant. */
void prove_symbolic(const struct definition *definition, const struct prove_variant *variant, struct arena *arena,
                    struct prove_symbols *out);
/* The child that this is without its values; the outermost saga for all others. */
const struct definition *prove_written(const struct prove_symbols *symbols, const struct definition *symbolic_one);

/* --- a play --- */

struct prove_book { /* the truth about one step */
    bool did;
    bool maybe; /* nobody will ever say: it must not be left standing, and may be undone */
    bool undone;
    bool undo_begun;
    uint32_t number; /* the step of `canon` */
};

struct prove_world {
    /* Members of groups become steps in the order in which the groups begin, which differs from play to play: points,
     * ends and books know them by their place here. NULL: in the first play, which makes it. */
    const struct definition *canon;
    struct saga saga;
    struct arena *arena, *turn; /* what this play keeps; what one decision needs */
    struct prove_book *books;   /* books of the saga's own steps */
    uint32_t book_count, book_room;
    uint32_t *undone; /* numbers, in order */
    uint32_t undone_count;
    struct prove_point point;
    bool struck; /* the trouble has begun */
    bool healed; /* the trouble is over: what is asked from now on is answered */
    bool abort_next;
    uint32_t decisions; /* the number of decisions of people */
    uint32_t turns;
    int64_t now_ms;
    uint64_t next_escalation, next_approval;
    enum record_type last_type; /* the type of the last record, and its step */
    uint32_t last_step;
    bool unjudged; /* the world of a preview: the books of a saga that lived are not whole, so nothing is held against
                      them */
    struct slice violation;
};

void prove_world_open(struct prove_world *world, const struct definition *symbolic, const struct definition *canon,
                      struct arena *arena, struct arena *turn); /* starts the saga, too */
/* A world for a saga that has lived until now, of which nothing is held against the books. Borrows from `saga`. */
void prove_world_adopt(struct prove_world *world, const struct saga *saga, const struct definition *symbolic,
                       int64_t now_ms, struct arena *arena, struct arena *turn);
void prove_world_fork(struct prove_world *world, const struct prove_world *from, struct arena *arena);
bool prove_world_move(struct prove_world *world); /* one turn; false: at rest, `violation` says whether well */
void prove_world_do(struct prove_world *world, const struct want *want);
void prove_world_skip(struct prove_world *world,
                      uint32_t step); /* the condition does not hold; only where it is evaluated */
void prove_world_abort(struct prove_world *world);
/* An input from outside. False: the saga refuses it, or nothing came of it. */
bool prove_world_feed(struct prove_world *world, struct saga_input input);
void prove_world_deadline(struct prove_world *world, uint32_t step); /* the child's; STEP_NONE: the saga's */
bool prove_world_stands(const struct prove_world *world,
                        uint32_t step);                     /* took effect, or may have, and is not undone */
bool prove_world_is_spent(const struct prove_world *world); /* what is wrong in this play cannot show any more */
/* Equal: the same can follow; `exact`: in the same order, whatever order steps have begun in. */
struct digest prove_world_digest(const struct prove_world *world, bool exact);
/* The step that has this number; STEP_NONE: it is not there yet. */
uint32_t prove_world_step(const struct prove_world *world, uint32_t number);

/* What can happen next: what the saga wants, and what comes from outside by itself (a want PROVE_ARRIVES). Without
 * deadlines and timeouts: what passes then is a point of its own, and no way on. */
#define PROVE_ARRIVES UINT32_MAX /* number of a timer: the signal comes, or somebody approves */
void prove_world_wants(const struct prove_world *world, struct arena *arena, struct wants *out);
/* The one of them that comes next; false: there is none. */
bool prove_world_next(struct prove_world *world, struct want *out);

/* --- what must hold (prove/check.c) --- */

const struct operation *prove_operation(const struct prove_world *world, uint32_t step, enum direction direction);
void prove_violate(struct prove_world *world, const char *what, uint32_t step, uint32_t other);
void prove_check_record(struct prove_world *world, const struct record *record); /* before it is applied */
void prove_check_end(struct prove_world *world);
bool prove_is_read(const struct prove_world *world, uint32_t step);

#endif
