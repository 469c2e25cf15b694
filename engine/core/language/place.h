/*
 * Where we are in a JSON text, as links on the stack. Most places are never named, so their JSON Pointers are only
 * written down for those that are; and a pointer has a bound, because names of members come from outside and a
 * hostile text could have a long one above very many places.
 */
#ifndef SAGAD_CORE_LANGUAGE_PLACE_H
#define SAGAD_CORE_LANGUAGE_PLACE_H

#include "base/arena.h"

#define PLACE_POINTER_BYTES_MAX 1024 /* what would become longer ends at the ancestor that fits */

struct place {
    const struct place *up; /* NULL: `name` is the pointer of the beginning */
    struct slice name;      /* of a member; SLICE_NONE: an element */
    size_t index;
};

struct slice place_pointer(const struct place *place, struct arena *arena);

/* One step further, with the same bound. */
struct slice place_join(struct arena *arena, struct slice pointer, struct slice name);
struct slice place_join_index(struct arena *arena, struct slice pointer, size_t index);

#endif
