/*
 * Reads the members of one JSON object of a definition. A member is known, belongs to a later version of the format, or
 * is a slip of the pen. Every reader reports its faults and goes on, so that one pass finds them all.
 */
#ifndef SAGAD_CORE_LANGUAGE_MEMBERS_H
#define SAGAD_CORE_LANGUAGE_MEMBERS_H

#include "base/arena.h"
#include "base/errors.h"
#include "core/language/place.h"

struct members {
    struct slice object, pointer;
    struct arena *arena;
    struct faults *faults;
};

/*
 * `known` and `later` are lists of names divided by single spaces. `what` names the object in a sentence: "a tool".
 * Returns false when the value is not an object: then nothing can be read from it.
 */
bool members_open(struct members *members, struct slice value, struct slice pointer, const char *what,
                  const char *known, const char *later, struct arena *arena, struct faults *faults);

struct slice members_at(const struct members *members, const char *name); /* SLICE_NONE when absent */
struct slice members_pointer(const struct members *members,
                             const char *name); /* the pointer of that member, in the arena */

/* The following functions return true when the member is there and right. Otherwise they leave `*out` alone. */
bool members_text(const struct members *members, const char *name, struct slice *out);
bool members_bool(const struct members *members, const char *name, bool *out);
bool members_duration(const struct members *members, const char *name, int64_t min_ms, int64_t max_ms, int64_t *out_ms);
bool members_integer(const struct members *members, const char *name, int64_t min, int64_t max, int64_t *out);
bool members_count(const struct members *members, const char *name, int64_t min, int64_t max, uint32_t *out);

/* Returns the word of a list, divided by spaces, that was probably meant, or SLICE_NONE. */
struct slice word_near(struct slice word, const char *list);
/* Returns a value for a message: all of it when it is short, otherwise its beginning. */
struct slice value_excerpt(struct slice value, struct arena *arena);
/* " (did you mean `x`?)" or nothing. */
struct slice did_you_mean(struct slice near, struct arena *arena);
/* Returns the number of single edits (insert, delete, replace, swap neighbours) between two words; 3 means 3 or more.
 * */
unsigned word_distance(struct slice a, struct slice b);

/* [a-z][EXTRA a-z0-9]{0,max-1} */
bool name_is_sound(struct slice name, const char *extra, size_t bytes_max);

#endif
