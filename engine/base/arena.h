/*
 * Memory by lifetime: process, shard, saga, turn, request, call. Everything in an arena ends with one line.
 *
 * Running out of memory stops the process (see engine/README.md): no allocation returns NULL.
 */
#ifndef SAGAD_BASE_ARENA_H
#define SAGAD_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

struct arena_block;
struct arena_hook;

struct arena {
    struct arena_block *blocks; /* newest first */
    struct arena_hook *hooks;   /* newest first */
    size_t block_bytes;         /* size of an ordinary block; a larger allocation gets its own block */
    size_t used_bytes;          /* handed out since init or reset */
};

void arena_init(struct arena *arena, size_t block_bytes); /* takes no memory before the first allocation */
void arena_reset(struct arena *arena);                    /* runs the hooks, keeps one ordinary block */
void arena_reserve(struct arena *arena, size_t bytes);    /* the next `bytes` come from one block */
void arena_fini(struct arena *arena);                     /* runs the hooks, newest first; accepts a zeroed struct */

void *arena_alloc(struct arena *arena, size_t bytes);               /* zeroed, aligned for any type */
void *arena_array(struct arena *arena, size_t count, size_t bytes); /* zeroed; the product is checked */
void *arena_dup(struct arena *arena, const void *bytes, size_t len);
struct slice arena_slice(struct arena *arena,
                         struct slice text); /* a copy with a NUL behind its end; SLICE_NONE stays SLICE_NONE */
char *arena_text(struct arena *arena, struct slice text); /* a NUL-terminated copy */
struct slice arena_printf(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);
bool arena_holds(const struct arena *arena, const void *memory); /* does it lie in there? looks at each block */
/* For tests: does a word in there look like a pointer into `other`, which ends earlier? Looks at each word. */
bool arena_points_into(const struct arena *arena, const struct arena *other);

/* Call `release(object)` when the arena is reset or ends: ties a foreign object to this lifetime. */
void arena_on_release(struct arena *arena, void (*release)(void *object), void *object);
void arena_tie(struct arena *arena, struct arena *other); /* `other` ends when this arena is reset or ends */

/* A malloc family that never returns NULL, for memory outside arenas. Free it with free(). */
void *memory_alloc(size_t bytes); /* zeroed */
void *memory_grow(void *old, size_t bytes);

/* Return freed memory, which the allocator keeps for reuse, to the system. This takes milliseconds: call it when memory
 * is short or a wave of work is over. */
void memory_give_back(void);

#endif
