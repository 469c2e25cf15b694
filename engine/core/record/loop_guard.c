/*
 * Finds loops in the tail of the emissions. Two emissions are the same when both call and answer are equal. A block
 * that repeats with other answers is an agent that waits for a change, not one that goes round in circles.
 */
#include "core/record/loop_guard.h"

#include <string.h>

static uint64_t first_bytes(const struct digest *digest)
{
    uint64_t value = 0;

    for (int i = 0; i < 8; i++) {
        value = value << 8 | digest->bytes[i];
    }
    return value ? value : 1; /* 0 means that there is none */
}

uint64_t loop_call(struct slice tool, struct slice scope, const struct digest *fingerprint)
{
    struct slice fields[] = {tool, scope, {(const char *)fingerprint->bytes, sizeof(fingerprint->bytes)}};
    struct digest digest = digest_fields("lc1", fields, COUNT_OF(fields));

    return first_bytes(&digest);
}

uint64_t loop_answer(const struct digest *answer)
{
    return first_bytes(answer);
}

void loop_guard_init(struct loop_guard *guard, uint32_t repeats, uint32_t max_cycle)
{
    CHECK(repeats >= 2 && repeats <= LOOP_REPEATS_MAX);
    CHECK(max_cycle >= 1 && max_cycle <= LOOP_CYCLE_MAX);
    *guard = (struct loop_guard){.repeats = repeats, .max_cycle = max_cycle};
}

bool loop_guard_is_closed(const struct loop_guard *guard, uint64_t call)
{
    for (uint32_t i = 0; i < guard->closed_count; i++) {
        if (guard->closed[i] == call) {
            return true;
        }
    }
    return false;
}

/* Returns the newest emission of this call, or NULL. */
static const struct loop_entry *last_of(const struct loop_guard *guard, uint64_t call)
{
    for (uint32_t i = guard->count; i > 0; i--) {
        if (guard->entries[i - 1].call == call) {
            return &guard->entries[i - 1];
        }
    }
    return NULL;
}

bool loop_guard_is_race(const struct loop_guard *guard, uint64_t call)
{
    const struct loop_entry *last = last_of(guard, call);

    return last && last->answer == 0;
}

static bool same(const struct loop_entry *a, const struct loop_entry *b)
{
    return a->call == b->call && a->answer == b->answer && a->answer != 0;
}

/* Returns the entry `back` positions before the end of the tail that ends with `newest`, which is position 0. */
static const struct loop_entry *tail_at(const struct loop_guard *guard, const struct loop_entry *newest, uint32_t back)
{
    return back == 0 ? newest : &guard->entries[guard->count - back];
}

static bool repeats_block(const struct loop_guard *guard, const struct loop_entry *newest, uint32_t length)
{
    uint32_t needed = guard->repeats * length;

    if (guard->count + 1 < needed) {
        return false;
    }
    for (uint32_t back = 0; back + length < needed; back++) {
        if (!same(tail_at(guard, newest, back), tail_at(guard, newest, back + length))) {
            return false;
        }
    }
    return true;
}

uint32_t loop_guard_trips(const struct loop_guard *guard, uint64_t call)
{
    const struct loop_entry *last = last_of(guard, call);
    struct loop_entry newest;

    if (!last || last->answer == 0) {
        return 0;
    }
    newest = (struct loop_entry){.call = call, .answer = last->answer};
    for (uint32_t length = 1; length <= guard->max_cycle; length++) {
        if (repeats_block(guard, &newest, length)) {
            return length;
        }
    }
    return 0;
}

void loop_guard_add(struct loop_guard *guard, uint64_t call, uint32_t step)
{
    if (guard->count == LOOP_ENTRIES_MAX) {
        memmove(guard->entries, guard->entries + 1, (LOOP_ENTRIES_MAX - 1) * sizeof(guard->entries[0]));
        guard->count--;
    }
    guard->entries[guard->count++] = (struct loop_entry){.call = call, .step = step};
}

void loop_guard_answered(struct loop_guard *guard, uint32_t step, uint64_t answer)
{
    CHECK(answer != 0);
    for (uint32_t i = 0; i < guard->count; i++) {
        if (guard->entries[i].step == step && guard->entries[i].answer == 0) {
            guard->entries[i].answer = answer;
        }
    }
}

void loop_guard_close(struct loop_guard *guard, const uint64_t *calls, uint32_t count)
{
    CHECK(count <= LOOP_CYCLE_MAX);
    for (uint32_t i = 0; i < count; i++) {
        if (loop_guard_is_closed(guard, calls[i])) {
            continue;
        }
        /* More calls than fit can only have been closed by several trips, and the second trip stops all calls
         * anyway. */
        if (guard->closed_count == LOOP_CYCLE_MAX) {
            memmove(guard->closed, guard->closed + 1, (LOOP_CYCLE_MAX - 1) * sizeof(guard->closed[0]));
            guard->closed_count--;
        }
        guard->closed[guard->closed_count++] = calls[i];
    }
    guard->trips++;
}

void loop_guard_close_block(struct loop_guard *guard, uint32_t length)
{
    uint64_t calls[LOOP_CYCLE_MAX];

    CHECK(length >= 1 && length <= LOOP_CYCLE_MAX && length <= guard->count);
    for (uint32_t i = 0; i < length; i++) {
        calls[i] = guard->entries[guard->count - length + i].call;
    }
    loop_guard_close(guard, calls, length);
}

void loop_guard_open(struct loop_guard *guard)
{
    guard->count = 0;
    guard->closed_count = 0;
}
