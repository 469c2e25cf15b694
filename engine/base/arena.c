/* A list of blocks, newest first. An arena gives its memory back only as a whole. */
#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef SAGAD_MIMALLOC
#include <mimalloc.h>
#elif defined(__GLIBC__)
#include <malloc.h>
#endif

#include "base/check.h"

struct arena_block {
    struct arena_block *next;
    uint32_t capacity, used; /* 32 bits, because many blocks are small */
    _Alignas(max_align_t) char bytes[];
};

struct arena_hook {
    struct arena_hook *next;
    void (*release)(void *object);
    void *object;
};

static void *must(void *memory)
{
    if (!memory) {
        (void)fprintf(stderr, "out of memory: stopping, the log is what survives\n");
        abort();
    }
    return memory;
}

void *memory_alloc(size_t bytes)
{
    return must(calloc(1, bytes ? bytes : 1));
}

void *memory_grow(void *old, size_t bytes)
{
    return must(realloc(old, bytes ? bytes : 1));
}

void memory_give_back(void)
{
#ifdef SAGAD_MIMALLOC
    mi_collect(true);
#elif defined(__GLIBC__)
    (void)malloc_trim(0);
#endif
}

void arena_init(struct arena *arena, size_t block_bytes)
{
    *arena = (struct arena){.block_bytes = block_bytes};
}

static void run_hooks(struct arena *arena)
{
    while (arena->hooks) {
        struct arena_hook *hook = arena->hooks;

        arena->hooks = hook->next; /* the hook itself lies in the arena */
        hook->release(hook->object);
    }
}

/* In tests, whoever reads memory that nobody has, or has no more, reads this. */
static void spoil(struct arena_block *block, uint32_t bytes)
{
#ifdef SAGAD_INVARIANTS
    memset(block->bytes, 0xdd, bytes);
#else
    (void)block;
    (void)bytes;
#endif
}

void arena_reset(struct arena *arena)
{
    struct arena_block *kept = NULL;

    run_hooks(arena);
    while (arena->blocks) {
        struct arena_block *block = arena->blocks;

        arena->blocks = block->next;
        if (!kept && block->capacity == arena->block_bytes) {
            kept = block;
        } else {
            free(block);
        }
    }
    if (kept) {
        spoil(kept, kept->used);
        kept->next = NULL;
        kept->used = 0;
        arena->blocks = kept;
    }
    arena->used_bytes = 0;
}

void arena_fini(struct arena *arena)
{
    run_hooks(arena);
    while (arena->blocks) {
        struct arena_block *block = arena->blocks;

        arena->blocks = block->next;
        free(block);
    }
    *arena = (struct arena){.block_bytes = arena->block_bytes};
}

static struct arena_block *new_block(size_t capacity)
{
    CHECK(capacity <= UINT32_MAX);
    struct arena_block *block = must(malloc(sizeof(*block) + capacity));

    *block = (struct arena_block){.capacity = (uint32_t)capacity};
    spoil(block, block->capacity);
    return block;
}

void arena_reserve(struct arena *arena, size_t bytes)
{
    struct arena_block *block = arena->blocks;

    if (!block || block->capacity - block->used < bytes) {
        block = new_block(bytes);
        block->next = arena->blocks;
        arena->blocks = block;
    }
}

static void *arena_take(struct arena *arena, size_t bytes)
{
    size_t align = _Alignof(max_align_t);

    CHECK(bytes <= SIZE_MAX - align);
    bytes = (bytes + align - 1) & ~(align - 1);
    struct arena_block *block = arena->blocks;

    if (!block || block->capacity - block->used < bytes) {
        size_t capacity = arena->block_bytes ? arena->block_bytes : 1024;

        if (block && bytes > capacity / 2) {
            /* The large block goes behind the newest one, so that the rest of the newest stays in use. */
            struct arena_block *own = new_block(bytes);

            own->next = block->next;
            block->next = own;
            block = own;
        } else {
            block = new_block(bytes > capacity ? bytes : capacity);
            block->next = arena->blocks;
            arena->blocks = block;
        }
    }
    void *memory = block->bytes + block->used;

    block->used += (uint32_t)bytes;
    arena->used_bytes += bytes;
    return memory;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    void *memory = arena_take(arena, bytes);

    if (bytes > 0) {
        memset(memory, 0, bytes);
    }
    return memory;
}

void *arena_array(struct arena *arena, size_t count, size_t bytes)
{
    size_t total;

    CHECK(!__builtin_mul_overflow(count, bytes, &total));
    return arena_alloc(arena, total);
}

void *arena_dup(struct arena *arena, const void *bytes, size_t len)
{
    void *memory = arena_take(arena, len);

    if (len > 0) {
        memcpy(memory, bytes, len);
    }
    return memory;
}

struct slice arena_slice(struct arena *arena, struct slice text)
{
    return text.ptr ? (struct slice){arena_text(arena, text), text.len} : SLICE_NONE;
}

char *arena_text(struct arena *arena, struct slice text)
{
    char *copy = arena_take(arena, text.len + 1);

    if (text.len > 0) {
        memcpy(copy, text.ptr, text.len);
    }
    copy[text.len] = '\0';
    return copy;
}

struct slice arena_printf(struct arena *arena, const char *format, ...)
{
    char first[256];
    va_list args;

    CHECK(format);
    va_start(args, format);
    int len = vsnprintf(first, sizeof(first), format, args);
    va_end(args);
    CHECK(len >= 0);
    char *text = arena_take(arena, (size_t)len + 1);

    if ((size_t)len < sizeof(first)) {
        memcpy(text, first, (size_t)len + 1);
    } else {
        va_start(args, format);
        (void)vsnprintf(text, (size_t)len + 1, format, args); /* the length is known */
        va_end(args);
    }
    return (struct slice){text, (size_t)len};
}

bool arena_holds(const struct arena *arena, const void *memory)
{
    uintptr_t at = (uintptr_t)memory;

    for (const struct arena_block *block = arena->blocks; block; block = block->next) {
        if (at >= (uintptr_t)block->bytes && at < (uintptr_t)block->bytes + block->used) {
            return true;
        }
    }
    return false;
}

bool arena_points_into(const struct arena *arena, const struct arena *other)
{
    for (const struct arena_block *block = arena->blocks; block; block = block->next) {
        for (uint32_t at = 0; at + sizeof(void *) <= block->used; at += sizeof(void *)) {
            const void *word;

            memcpy(&word, block->bytes + at, sizeof(word));
            if (word && arena_holds(other, word)) {
                return true;
            }
        }
    }
    return false;
}

void arena_on_release(struct arena *arena, void (*release)(void *object), void *object)
{
    struct arena_hook *hook = arena_alloc(arena, sizeof(*hook));

    *hook = (struct arena_hook){.next = arena->hooks, .release = release, .object = object};
    arena->hooks = hook;
}

static void release_arena(void *object)
{
    arena_fini(object);
}

void arena_tie(struct arena *arena, struct arena *other)
{
    arena_on_release(arena, release_arena, other);
}
