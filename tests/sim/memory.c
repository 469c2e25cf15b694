/*
 * Puts a head in front of each block, which names its owner and links it to the owner's other blocks. A block made
 * before memory_setup() or by a shared library has another allocator's head and must not come here. Therefore only
 * static code is wrapped, and cJSON.
 */
#include "tests/sim/memory.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/check.h"

struct memory_block {
    struct memory_block *prev, *next;
    struct memory_owner *owner;
    size_t bytes;
};

_Static_assert(sizeof(struct memory_block) % _Alignof(max_align_t) == 0, "what follows a head is aligned");

void *__real_malloc(size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void __wrap_free(void *memory);
char *__wrap_strdup(const char *text);
void __wrap_memory_give_back(void);

size_t memory_given_back;

static struct memory_owner *current;

struct memory_owner *memory_switch(struct memory_owner *owner)
{
    struct memory_owner *before = current;

    current = owner;
    return before;
}

static void block_link(struct memory_block *block, struct memory_owner *owner)
{
    block->owner = owner;
    block->prev = block->next = NULL;
    if (owner) {
        block->next = owner->first;
        if (owner->first) {
            owner->first->prev = block;
        }
        owner->first = block;
        owner->bytes += block->bytes;
        owner->count++;
    }
}

static void block_unlink(struct memory_block *block)
{
    struct memory_owner *owner = block->owner;

    if (!owner) {
        return;
    }
    if (block->prev) {
        block->prev->next = block->next;
    } else {
        CHECK(owner->first == block);
        owner->first = block->next;
    }
    if (block->next) {
        block->next->prev = block->prev;
    }
    owner->bytes -= block->bytes;
    owner->count--;
}

void *__wrap_malloc(size_t bytes)
{
    struct memory_block *block;

    if (bytes > SIZE_MAX / 2 || (block = __real_malloc(sizeof(*block) + bytes)) == NULL) {
        return NULL;
    }
    block->bytes = bytes;
    block_link(block, current);
    return block + 1;
}

void __wrap_free(void *memory)
{
    struct memory_block *block = memory;

    if (memory) {
        block--;
        block_unlink(block);
        __real_free(block);
    }
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    size_t total;
    void *memory;

    if (__builtin_mul_overflow(count, bytes, &total)) {
        return NULL;
    }
    memory = __wrap_malloc(total);
    return memory ? memset(memory, 0, total) : NULL;
}

/* A block that grows keeps its owner. */
void *__wrap_realloc(void *old, size_t bytes)
{
    struct memory_block *block = old;
    struct memory_owner *before;
    void *larger;

    if (!old) {
        return __wrap_malloc(bytes);
    }
    block--;
    before = memory_switch(block->owner);
    larger = __wrap_malloc(bytes);
    memory_switch(before);
    if (larger) {
        memcpy(larger, old, bytes < block->bytes ? bytes : block->bytes);
        __wrap_free(old);
    }
    return larger;
}

char *__wrap_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = __wrap_malloc(bytes);

    return copy ? memcpy(copy, text, bytes) : NULL;
}

void __wrap_memory_give_back(void)
{
    memory_given_back++; /* the simulated world does not care how much memory the system gets back */
}

void memory_setup(void)
{
    cJSON_Hooks hooks = {.malloc_fn = __wrap_malloc, .free_fn = __wrap_free};

    cJSON_InitHooks(&hooks);
    /* Nothing is returned to the system, because each seed needs the same memory again. */
    (void)mallopt(M_MMAP_THRESHOLD, 64 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 512 << 20);
}

void memory_drop(struct memory_owner *owner)
{
    while (owner->first) {
        struct memory_block *block = owner->first;

        owner->first = block->next;
        __real_free(block);
    }
    owner->bytes = owner->count = 0;
}
