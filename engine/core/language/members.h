/*
 * Reading the members of one JSON object of a definition: which are known, which belong to a later version of the
 * format, and which are a slip of the pen. Every reader reports its fault and goes on, so that one pass finds them all.
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
 * `known` and `later` are lists of names divided by single spaces. `what` is the object in a sentence: "a tool". False
 * when the value is no object; then nothing can be read from it.
 */
bool members_open(struct members *members, struct slice value, struct slice pointer, const char *what,
                  const char *known, const char *later, struct arena *arena, struct faults *faults);

struct slice members_at(const struct members *members, const char *name);      /* SLICE_NONE when absent */
struct slice members_pointer(const struct members *members, const char *name); /* of that member, in the arena */

/* The following leave `*out` alone when the member is absent or wrong; true when it was there and right. */
bool members_text(const struct members *members, const char *name, struct slice *out);
bool members_bool(const struct members *members, const char *name, bool *out);
bool members_duration(const struct members *members, const char *name, int64_t min_ms, int64_t max_ms, int64_t *out_ms);
bool members_integer(const struct members *members, const char *name, int64_t min, int64_t max, int64_t *out);
bool members_count(const struct members *members, const char *name, int64_t min, int64_t max, uint32_t *out);

/* The word of a list (divided by spaces) that was probably meant, or SLICE_NONE. */
struct slice word_near(struct slice word, const char *list);
/* A value for a message: itself when it is short, else its beginning. */
struct slice value_excerpt(struct slice value, struct arena *arena);
/* " (did you mean `x`?)" or nothing. */
struct slice did_you_mean(struct slice near, struct arena *arena);
/* How many single edits (insert, delete, replace, swap neighbours) lie between two words; counts to 3. */
unsigned word_distance(struct slice a, struct slice b);

/* [a-z][EXTRA a-z0-9]{0,max-1} */
bool name_is_sound(struct slice name, const char *extra, size_t bytes_max);

#endif
