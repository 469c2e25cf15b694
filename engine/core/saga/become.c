/*
 * The next state becomes the state. A decision has worked on a copy that lies in the memory of its turn and borrows
 * from there: from the input, from the records, and from the state itself. After the commit the copy's numbers are
 * taken over as they are. What it points at is taken over once: what is as it was stays where it is, all else is copied
 * into the memory of the state. So nothing grows in the memory of a saga before a commit, and a turn that is refused
 * leaves nothing behind. It comes to the same as saga_apply() with each of the records, without folding them again.
 *
 * Every pointer of the state has its place here. The sizes below say when a struct has got a member: see whether that
 * is one.
 */
#include <stddef.h>
#include <string.h>

#include "core/saga/machine.h"

#if defined(__LP64__)
_Static_assert(sizeof(struct saga) == 688 && sizeof(struct operation) == 424 && sizeof(struct step) == 648 &&
                   sizeof(struct case_round) == 136 && sizeof(struct kept_signal) == 96,
               "a new member that points at something has its place in this file");
#endif

#define TEXT_AT(type, member) offsetof(struct type, member)
static const uint16_t saga_texts[] = {
    TEXT_AT(saga, namespace),
    TEXT_AT(saga, business_id),
    TEXT_AT(saga, tags),
    TEXT_AT(saga, input),
    TEXT_AT(saga, output),
    TEXT_AT(saga, trace.parent),
    TEXT_AT(saga, trace.state),
    TEXT_AT(saga, failing_reason),
    TEXT_AT(saga, failing_detail),
    TEXT_AT(saga, failing_by),
    TEXT_AT(saga, failing_note),
    TEXT_AT(saga, escalation.reason),
    TEXT_AT(saga, escalation.evidence),
    TEXT_AT(saga, escalation.raised_by),
    TEXT_AT(saga, escalation.raised_note),
    TEXT_AT(saga, escalation.asked_by),
    TEXT_AT(saga, escalation.asked_note),
    TEXT_AT(saga, run),
    TEXT_AT(saga, paused),
    TEXT_AT(saga, paused_by),
    TEXT_AT(saga, paused_note),
    TEXT_AT(saga, conversation_turn),
    TEXT_AT(saga, followers),
};
static const uint16_t operation_texts[] = {
    TEXT_AT(operation, args),   TEXT_AT(operation, scope),        TEXT_AT(operation, error),
    TEXT_AT(operation, detail), TEXT_AT(operation, result_error), TEXT_AT(operation, cost_unknown),
}; /* and its result and its answer, which may have rooms */
static const uint16_t step_texts[] = {
    TEXT_AT(step, undo_args),   TEXT_AT(step, undo_error), TEXT_AT(step, undone_by),
    TEXT_AT(step, undone_note), TEXT_AT(step, decided_by), TEXT_AT(step, decided_note),
}; /* and its item, which lies in the arguments of its group */

/* --- what a pointer leads to --- */

/* Keeps a text of a list. In a list texts stay in their places. */
static void keep(const struct saga *saga, struct slice *text)
{
    if (text->ptr && !arena_holds(saga->arena, text->ptr)) {
        *text = arena_slice(saga->arena, *text);
    }
}

/* Keeps the texts of `next` that are others than those of `now`. One that has lain elsewhere in the state is copied,
 * too: it may have been in a room, where another one takes its place later. */
static void keep_texts(const struct saga *saga, const uint16_t *at, size_t count, const void *now, void *next)
{
    for (size_t i = 0; i < count; i++) {
        const struct slice *before = (const void *)((const char *)now + at[i]);
        struct slice *text = (void *)((char *)next + at[i]);

        if (text->ptr != before->ptr) {
            *text = arena_slice(saga->arena, *text);
        }
    }
}

static const struct case_round *keep_rounds(const struct saga *saga, const struct case_round *round)
{
    struct case_round *kept;

    if (!round || arena_holds(saga->arena, round)) {
        return round;
    }
    kept = arena_dup(saga->arena, round, sizeof(*round));
    keep(saga, &kept->reason);
    keep(saga, &kept->action);
    keep(saga, &kept->verdict);
    keep(saga, &kept->actor);
    keep(saga, &kept->note);
    keep(saga, &kept->request);
    kept->before = keep_rounds(saga, round->before);
    return kept;
}

static const struct bulk_done *keep_bulk(const struct saga *saga, const struct bulk_done *done)
{
    struct bulk_done *kept;

    if (!done || arena_holds(saga->arena, done)) {
        return done;
    }
    kept = arena_dup(saga->arena, done, sizeof(*done));
    keep(saga, &kept->id);
    kept->before = keep_bulk(saga, done->before);
    return kept;
}

static const struct bypass *keep_bypass(const struct saga *saga, const struct bypass *bypass)
{
    struct bypass *kept;

    if (!bypass || arena_holds(saga->arena, bypass)) {
        return bypass;
    }
    kept = arena_dup(saga->arena, bypass, sizeof(*bypass));
    keep(saga, &kept->actor);
    keep(saga, &kept->note);
    return kept;
}

static const struct lock *keep_locks(const struct saga *saga, const struct lock *locks, uint32_t count)
{
    struct lock *kept;

    if (!locks || arena_holds(saga->arena, locks)) {
        return locks;
    }
    kept = arena_dup(saga->arena, locks, count * sizeof(*locks));
    for (uint32_t i = 0; i < count; i++) {
        keep(saga, &kept[i].key);
    }
    return kept;
}

/* Signals only come, and are taken: those of the state stand first in the next one, in the same order. */
static struct kept_signal *keep_signals(struct saga *saga, const struct saga *next)
{
    struct kept_signal **at = &saga->signals;

    for (const struct kept_signal *signal = next->signals; signal; signal = signal->next, at = &(*at)->next) {
        if (!*at) {
            *at = arena_dup(saga->arena, signal, sizeof(*signal));
            (*at)->next = NULL;
            keep(saga, &(*at)->name);
            keep(saga, &(*at)->id);
        }
        (*at)->taken = signal->taken;
        (*at)->payload = signal->payload;
        keep(saga, &(*at)->payload);
    }
    return saga->signals;
}

static void keep_emissions(struct saga *saga, const struct emissions *next)
{
    while (saga->emissions->count < next->count) {
        CHECK(emissions_restore(saga->emissions, emissions_at(next, saga->emissions->count), saga->arena));
    }
}

/* --- operations and steps --- */

static void keep_result(const struct saga *saga, const struct operation *now, struct operation *next)
{
    if (next->result.ptr != now->result.ptr) {
        next->result = saga_is_open(saga) && next->effect == EFFECT_READ
                           ? apply_keep_in_room(saga, &next->room, next->result)
                           : arena_slice(saga->arena, next->result);
    }
    if (next->answer.ptr != now->answer.ptr) {
        next->answer = apply_keep_in_room(saga, &next->answer_room, next->answer);
    }
}

static void become_operation(const struct saga *saga, struct operation *now, struct operation *next)
{
    keep_result(saga, now, next);
    keep_texts(saga, operation_texts, COUNT_OF(operation_texts), now, next);
    if (next->asked != now->asked) {
        next->asked = keep_rounds(saga, next->asked);
    }
    *now = *next;
}

/* The items of elements lie in the arguments of their group, which were copied from `from` to `to`. */
static void move_items(struct saga *next, const struct step *group, struct slice from, struct slice to)
{
    for (uint32_t i = group->first; i < group->first + group->count; i++) {
        struct slice *item = &next->steps[i].item;

        if (item->ptr && item->ptr >= from.ptr && item->ptr < from.ptr + from.len) {
            item->ptr = to.ptr + (item->ptr - from.ptr);
        }
    }
}

static void become_step(const struct saga *saga, struct saga *next, uint32_t i)
{
    struct step *now = &saga->steps[i], *step = &next->steps[i];
    struct operation *undo = now->undo;
    struct slice args = step->forward.args;

    if (step->undo) {
        undo = undo ? undo : arena_alloc(saga->arena, sizeof(*undo));
        if (memcmp(undo, step->undo, sizeof(*undo)) != 0) {
            become_operation(saga, undo, step->undo);
        }
    }
    step->undo = undo;
    if (memcmp(now, step, sizeof(*now)) == 0) {
        return;
    }
    become_operation(saga, &now->forward, &step->forward);
    if (step->count > 0 && step->forward.args.ptr != args.ptr) {
        move_items(next, step, args, step->forward.args);
    }
    keep(saga, &step->item);
    keep_texts(saga, step_texts, COUNT_OF(step_texts), now, step);
    if (step->bypass != now->bypass) {
        step->bypass = keep_bypass(saga, step->bypass);
    }
    *now = *step;
}

static void become_steps(struct saga *saga, struct saga *next, uint32_t had, uint32_t count)
{
    uint32_t room = saga_is_open(saga) ? open_step_room(had) : saga->step_room;

    if (count > room) {
        struct step *steps;

        while (room < count) {
            room = room ? 2 * room : 8;
        }
        steps = arena_array(saga->arena, room, sizeof(*steps));
        memcpy(steps, saga->steps, had * sizeof(*steps));
        saga->steps = steps;
        saga->step_room = room;
    }
    if (count > had) {
        memset(saga->steps + had, 0, (count - had) * sizeof(*saga->steps));
    }
    for (uint32_t i = 0; i < count; i++) {
        become_step(saga, next, i);
    }
}

/* --- the saga --- */

/* Makes the definition again in the memory of the state, from the records that have changed it. */
static void become_definition(struct saga *saga, const struct records *records)
{
    for (size_t i = 0; i < records->count; i++) {
        const struct record *record = &records->items[i];

        if (record->type == RECORD_STEP_CALLED) {
            apply_called_definition(saga, record);
        } else if (record->type == RECORD_STEP_OPENED) {
            (void)apply_opened_definition(saga, record);
        } else if (record->type == RECORD_TOOL_MENDED) {
            apply_mended(saga, record);
        }
    }
}

void saga_become(struct saga *saga, struct saga *next, const struct records *records)
{
    uint32_t had = saga->definition->step_count;

    CHECK(saga->arena && !next->arena && next->seq == saga->seq + records->count);
    keep_texts(saga, saga_texts, COUNT_OF(saga_texts), saga, next);
    saga->namespace = next->namespace; /* the tools of a call are found by it */
    if (next->definition != saga->definition) {
        become_definition(saga, records);
    }
    CHECK(saga->definition->step_count == next->definition->step_count);
    become_steps(saga, next, had, saga->definition->step_count);
    if (next->loop) {
        *saga->loop = *next->loop;
        keep_emissions(saga, next->emissions);
    }
    if (next->plan != saga->plan) {
        next->plan = arena_dup(saga->arena, next->plan, next->plan_count * sizeof(*next->plan));
    }
    next->asked = keep_rounds(saga, next->asked);
    next->bulk_done = keep_bulk(saga, next->bulk_done);
    next->locks = keep_locks(saga, next->locks, next->lock_count);
    next->signals = next->signals_borrowed ? saga->signals : keep_signals(saga, next);
    /* What the state has of its own, and what is not of the log and may be another one by now. */
    next->definition = saga->definition;
    next->arena = saga->arena;
    next->scratch = NULL;
    next->signals_borrowed = false;
    next->steps = saga->steps;
    next->step_room = saga->step_room;
    next->loop = saga->loop;
    next->emissions = saga->emissions;
    next->holds = saga->holds;
    next->alone_from_ms = saga->alone_from_ms;
    *saga = *next;
    INVARIANT(saga_is_sound(saga));
}
