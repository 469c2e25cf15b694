/*
 * See check.h. Judges events (I22): what a receiver is told has happened, each thing has one id, and in the end the
 * receiver has every event that the log, or a row beside it, has caused.
 */
#include "tests/sim/check_state.h"

#include <stdio.h>
#include <string.h>

#include "tests/sim/drive.h"
#include "tests/sim/hook.h"

#define NAME_BYTES 192

struct judged_event {
    char name[NAME_BYTES]; /* its type and its id */
    bool happened, is_kept;
    uint64_t body_hash; /* 0: it was not told */
    struct judged_event *next;
};

static struct judged_event *event_of(struct slice type, struct slice id)
{
    struct check *check = world->check;
    char name[NAME_BYTES];
    int len = snprintf(name, sizeof(name), "%.*s %.*s", SLICE_ARG(type), SLICE_ARG(id));

    CHECK(len > 0 && len < NAME_BYTES);
    struct judged_event *event = map_find(&check->events, name, (size_t)len);

    if (!event) {
        event = arena_alloc(&world->arena, sizeof(*event));
        memcpy(event->name, name, sizeof(name));
        event->next = check->last_event;
        check->last_event = event;
        map_put(&check->events, event->name, (size_t)len, event);
    }
    return event;
}

static void happened(struct slice type, struct slice id)
{
    event_of(type, id)->happened = true;
}

/* --- what happens --- */

/* By the text of the record alone, not by what the engine makes of it. */
void check_happened(const struct judged_saga *saga, uint64_t seq, struct slice record)
{
    static const struct {
        const char *record, *event;
    } events[] = {{"saga.completed", "saga.completed"},     {"saga.compensated", "saga.compensated"},
                  {"saga.abandoned", "saga.abandoned"},     {"saga.paused", "saga.paused"},
                  {"saga.resumed", "saga.resumed"},         {"escalation.opened", "case.opened"},
                  {"escalation.resolved", "case.resolved"}, {"approval.decided", "approval.decided"},
                  {"step.unknown", "operation.unknown"},    {"compensation.unknown", "operation.unknown"},
                  {"step.waiting", "approval.requested"},   {"loop.tripped", "loop.tripped"}};
    struct slice type = json_member(record, "type"), data = json_member(record, "data");
    char saga_text[UUID_TEXT_BYTES], id[NAME_BYTES];
    size_t debts = json_string_is(type, "saga.abandoned") ? json_count(json_member(data, "debts")) : 0;

    if (!hook_is_wanted() || !slice_equal(saga->namespace, NAMESPACE)) {
        return;
    }
    uuid_text(&saga->id.uuid, saga_text);
    for (size_t i = 0; i < COUNT_OF(events); i++) {
        if (json_string_is(type, events[i].record) &&
            (!json_string_is(type, "step.waiting") || json_member(data, "approval").ptr)) {
            (void)snprintf(id, sizeof(id), "%s/%llu", saga_text, (unsigned long long)seq);
            happened(slice_of(events[i].event), slice_of(id));
        }
    }
    for (size_t i = 1; i <= debts; i++) {
        (void)snprintf(id, sizeof(id), "%s/%llu/debt/%zu", saga_text, (unsigned long long)seq, i);
        happened(SLICE("debt.opened"), slice_of(id));
    }
}

static void on_row(const struct committed_event *row)
{
    if (slice_equal(row->namespace, NAMESPACE)) {
        happened(row->type, row->id);
    }
}

/* --- what is told --- */

static uint64_t hash_of(struct slice text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < text.len; i++) {
        hash = (hash ^ (uint8_t)text.ptr[i]) * UINT64_C(0x100000001b3);
    }
    return hash | 1;
}

/* Turns that a standby may not have yet can be seen, and may still be lost: nobody can know better. */
static bool is_ahead(struct slice id)
{
    struct saga_id saga;

    return id.len >= UUID_TEXT_BYTES - 1 && uuid_parse((struct slice){id.ptr, UUID_TEXT_BYTES - 1}, &saga.uuid) &&
           pg_is_ahead(world->pg, saga);
}

void check_told(struct slice message_id, struct slice body, bool is_kept)
{
    struct slice id = json_string(json_member(body, "id"), &world->arena);
    struct slice type = json_string(json_member(body, "type"), &world->arena);
    uint64_t hash = hash_of(body);

    if (!slice_equal(id, message_id)) {
        world_violate("I22", "the message %.*s has the event %.*s", SLICE_ARG(message_id), SLICE_ARG(id));
    }
    if (world->check->may_lose) {
        return;
    }
    pg_each_event(world->pg, on_row);
    struct judged_event *event = event_of(type, id);

    if (!event->happened && !is_ahead(id)) {
        world_violate("I22", "a receiver is told %s, and it has not happened", event->name);
    }
    if (event->happened && event->body_hash && event->body_hash != hash) {
        world_violate("I22", "a receiver is told %s twice, with different words", event->name);
    }
    see(event->is_kept ? SEEN_TOLD_AGAIN : is_kept ? SEEN_TOLD : SEEN_NOT_TAKEN);
    event->body_hash = event->happened ? hash : 0;
    event->is_kept |= is_kept;
}

/* --- in the end --- */

const char *check_untold(void)
{
    if (!hook_is_wanted() || world->check->may_lose) {
        return NULL;
    }
    pg_each_event(world->pg, on_row);
    for (const struct judged_event *event = world->check->last_event; event; event = event->next) {
        if (event->happened && !event->is_kept) {
            return event->name;
        }
    }
    return NULL;
}
