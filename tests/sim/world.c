/* The heap of future events, the source of chance, and the trace. See world.h. */
#include "tests/sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/memory.h"
#include "tests/sim/network.h"

#define ARENA_BLOCK_BYTES 65536
#define HASH_START UINT64_C(14695981039346656037)
#define HASH_PRIME UINT64_C(0x9fb21c651e98df25)

struct world *world;

/* These are kept from run to run. */
static struct event **heap;
static size_t heap_capacity;

/* --- a run --- */

void world_init(struct world *w, uint64_t seed)
{
    memset(w, 0, sizeof(*w));
    world = w;
    w->seed = seed;
    w->hash = HASH_START;
    w->heap = heap;
    w->heap_capacity = heap_capacity;
    for (uint32_t i = 0; i < STREAM_COUNT; i++) {
        w->streams[i] = chance_of(seed, i + 1, 0);
    }
    arena_init(&w->arena, ARENA_BLOCK_BYTES);
}

void world_fini(struct world *w)
{
    struct memory_owner *before = memory_switch(NULL);

    heap = w->heap;
    heap_capacity = w->heap_capacity;
    network_forget();
    arena_fini(&w->arena);
    memory_switch(before);
}

/* --- what will happen --- */

static bool event_before(const struct event *a, const struct event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void heap_set(size_t i, struct event *event)
{
    world->heap[i] = event;
    event->heap_index = i;
}

static void heap_up(size_t i, struct event *event)
{
    while (i > 1 && event_before(event, world->heap[i / 2])) {
        heap_set(i, world->heap[i / 2]);
        i /= 2;
    }
    heap_set(i, event);
}

static void heap_down(size_t i, struct event *event)
{
    for (size_t child = 2 * i; child <= world->heap_count; child = 2 * i) {
        if (child < world->heap_count && event_before(world->heap[child + 1], world->heap[child])) {
            child++;
        }
        if (!event_before(world->heap[child], event)) {
            break;
        }
        heap_set(i, world->heap[child]);
        i = child;
    }
    heap_set(i, event);
}

static void heap_grow(void)
{
    struct memory_owner *before = memory_switch(NULL); /* the world owns the memory, whoever asks */

    world->heap_capacity = world->heap_capacity > 0 ? 2 * world->heap_capacity : 1024;
    world->heap = memory_grow(world->heap, world->heap_capacity * sizeof(*world->heap));
    memory_switch(before);
}

void world_at(struct event *event, int64_t delay_us, void (*run)(struct event *event))
{
    CHECK(run);
    world_cancel(event);
    if (world->heap_count + 2 > world->heap_capacity) {
        heap_grow();
    }
    event->at_us = world->now_us + (delay_us > 0 ? delay_us : 0);
    event->order = chance_next(&world->streams[STREAM_ORDER]);
    event->run = run;
    world->heap_count++;
    heap_up(world->heap_count, event);
}

void world_cancel(struct event *event)
{
    size_t i = event->heap_index;
    struct event *last;

    if (i == 0) {
        return;
    }
    CHECK(i <= world->heap_count && world->heap[i] == event);
    event->heap_index = 0;
    last = world->heap[world->heap_count--];
    if (i <= world->heap_count) {
        if (i > 1 && event_before(last, world->heap[i / 2])) {
            heap_up(i, last);
        } else {
            heap_down(i, last);
        }
    }
}

bool world_step(void)
{
    struct event *event;

    if (world->heap_count == 0) {
        return false;
    }
    event = world->heap[1];
    CHECK(event->at_us >= world->now_us);
    world_cancel(event);
    world->now_us = event->at_us;
    world->event_count++;
    event->run(event);
    return true;
}

/* --- chance --- */

uint32_t world_below(enum stream stream, uint32_t n)
{
    return chance_below(&world->streams[stream], n);
}

bool world_percent(enum stream stream, uint32_t percent)
{
    return percent > 0 && chance_percent(&world->streams[stream], percent);
}

int64_t world_between(enum stream stream, int64_t least, int64_t most)
{
    return chance_between(&world->streams[stream], least, most);
}

int64_t chance_between(struct chance *chance, int64_t least, int64_t most)
{
    uint64_t range = (uint64_t)(most - least);

    CHECK(least <= most);
    if (range >
        16 * (uint64_t)(least > 0 ? least : 1)) { /* a wide range: each power of two is as likely as the next one */
        uint32_t bits = 64 - (uint32_t)__builtin_clzll(range);
        uint64_t some = UINT64_C(1) << chance_below(chance, bits + 1);

        range = some < range ? some : range;
    }
    return least + (int64_t)(chance_next(chance) % (range + 1));
}

/* --- the trace --- */

static void hash_number(uint64_t number)
{
    uint64_t hash = (world->hash ^ number) * HASH_PRIME;

    world->hash = hash ^ (hash >> 29);
}

static void hash_bytes(const char *bytes, size_t len)
{
    while (len >= 8) {
        uint64_t number;

        memcpy(&number, bytes, 8);
        hash_number(number);
        bytes += 8;
        len -= 8;
    }
    uint64_t rest = 0;

    memcpy(&rest, bytes, len);
    hash_number(rest << 8 | len);
}

/* Hashes the arguments that a format names, without formatting them. It knows the parts of printf() that a trace needs:
 * flags and widths as numbers, %d %i %u %x %c with any length, %s, %.*s and %%. */
static void hash_args(const char *format, va_list args)
{
    for (const char *at = strchr(format, '%'); at; at = strchr(at, '%')) {
        int precision = -1, longs = 0;

        at++;
        at += strspn(at, "-+ #0123456789");
        if (*at == '.') {
            at++;
            if (*at == '*') {
                precision = va_arg(args, int);
                at++;
            }
            at += strspn(at, "0123456789");
        }
        for (; *at == 'l' || *at == 'z' || *at == 'j' || *at == 'h'; at++) {
            longs += *at != 'h';
        }
        switch (*at) {
        case 'd':
        case 'i':
        case 'u':
        case 'x':
        case 'c':
            hash_number(longs > 0 ? va_arg(args, unsigned long) : va_arg(args, unsigned int));
            break;
        case 's': {
            const char *text = va_arg(args, const char *);

            hash_bytes(text ? text : "", text ? (precision >= 0 ? (size_t)precision : strlen(text)) : 0);
            break;
        }
        case '%':
            break;
        default:
            CHECK(false); /* the format has a part that this function does not read */
        }
        at++;
    }
}

void world_trace(const char *format, ...)
{
    va_list args;

    hash_number((uint64_t)world->now_us);
    hash_bytes(format, strlen(format));
    va_start(args, format);
    hash_args(format, args);
    va_end(args);
    if (world->is_traced) {
        struct memory_owner *before = memory_switch(NULL);

        (void)printf("%lld.%06lld ", (long long)(world->now_us / 1000000), (long long)(world->now_us % 1000000));
        va_start(args, format);
        (void)vprintf(format, args);
        va_end(args);
        (void)putchar('\n');
        memory_switch(before);
    }
}

_Noreturn void world_violate(const char *invariant, const char *format, ...)
{
    va_list args;

    world->failed = true;
    (void)snprintf(world->invariant, sizeof(world->invariant), "%s", invariant);
    va_start(args, format);
    (void)vsnprintf(world->violation, sizeof(world->violation), format, args);
    va_end(args);
    longjmp(world->stop, 1);
}
