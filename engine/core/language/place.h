/*
 * A place in a JSON text, as links on the stack. Most places are never named, so a JSON Pointer is written only for
 * those that are. A pointer has a bound, because a hostile text could have a member with a long name above very many
 * places.
 */
#ifndef SAGAD_CORE_LANGUAGE_PLACE_H
#define SAGAD_CORE_LANGUAGE_PLACE_H

#include "base/arena.h"

#define PLACE_POINTER_BYTES_MAX 1024 /* a longer pointer ends at the last ancestor that fits */

struct place {
    const struct place *up; /* NULL: this is the beginning, and `name` is its pointer */
    struct slice name;      /* the name of a member; SLICE_NONE: an element */
    size_t index;
};

struct slice place_pointer(const struct place *place, struct arena *arena);

/* Returns a pointer with one more part, within the same bound. */
struct slice place_join(struct arena *arena, struct slice pointer, struct slice name);
struct slice place_join_index(struct arena *arena, struct slice pointer, size_t index);

#endif
