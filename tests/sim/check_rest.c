/*
 * What is stored of a run that rests is what its log folds to (I9): after each commit that stores some, the judge folds
 * the log again and writes the same bytes from that.
 */
#include "tests/sim/check_state.h"

#include "core/definition/definition.h"
#include "core/saga/machine.h"
#include "core/saga/rest.h"
#include "tests/sim/drive.h"

struct judged_turn {
    uint64_t seq;
    int64_t at_ms;
    struct slice payload;
    bool rests; /* what it leaves is stored */
    struct judged_turn *before;
};

/* The tools of a run, by the definitions of the world. No version of a tool has other members than the first. */
struct judged_shelf {
    struct tool_shelf shelf; /* first, so that find() can get back to it */
    struct document document;
};

static const struct tool *shelf_find(const struct tool_shelf *shelf, struct slice namespace, struct slice name,
                                     uint32_t version)
{
    const struct document *document = &((const struct judged_shelf *)shelf)->document;

    (void)namespace;
    for (size_t i = 0; i < document->item_count; i++) {
        if (document->items[i].kind == DEFINITION_TOOL && slice_equal(document->items[i].name, name)) {
            struct tool *tool = arena_dup(&world->arena, document->items[i].tool, sizeof(*tool));

            tool->version = version; /* those of a document have none */
            return tool;
        }
    }
    return NULL;
}

static const struct tool_shelf *the_shelf(void)
{
    struct judged_shelf *shelf = world->check->shelf;
    struct faults faults;

    if (!shelf) {
        shelf = world->check->shelf = arena_alloc(&world->arena, sizeof(*shelf));
        shelf->shelf.find = shelf_find;
        faults_init(&faults, &world->arena);
        document_check(world->check->definitions, NULL, &world->arena, &faults, &shelf->document);
    }
    return &shelf->shelf;
}

static void fold_turn(struct saga *saga, const struct judged_turn *turn, struct arena *arena)
{
    struct json_walk walk = json_walk(turn->payload);
    uint64_t seq = turn->seq;
    struct slice text;

    while (json_next_element(&walk, &text)) {
        struct record record;
        struct err err = {0};

        if (record_read(text, saga->definition, arena, &record, &err) != ERR_OK) {
            world_violate("I9", "%s: %.*s", err.message, SLICE_ARG(text));
        }
        record.seq = seq++;
        record.at_ms = turn->at_ms;
        if (!record_check(saga, &record, &err)) {
            world_violate("I9", "%s: %.*s", err.message, SLICE_ARG(text));
        }
        saga_apply(saga, &record);
    }
}

static void fold_turns(struct saga *saga, const struct judged_turn *turn, struct arena *arena)
{
    if (turn->before) {
        fold_turns(saga, turn->before, arena);
    }
    fold_turn(saga, turn, arena);
}

void check_rest(struct judged_saga *judged, const struct committed_turn *turn)
{
    struct judged_turn *kept;
    struct saga saga;
    struct buffer bytes;
    struct arena arena;

    if (!slice_is(judged->name, RUN_SAGA_NAME)) {
        return;
    }
    kept = arena_alloc(&world->arena, sizeof(*kept));
    kept->seq = turn->seq;
    kept->at_ms = turn->at_ms;
    kept->payload = arena_slice(&world->arena, turn->payload);
    kept->rests = turn->rest.ptr != NULL;
    kept->before = judged->turns;
    judged->turns = kept;
    if (kept->before && kept->before->rests) {
        see(SEEN_REST_AGAIN);
    }
    if (!kept->rests) {
        return;
    }
    see(SEEN_REST);
    arena_init(&arena, 4096);
    buffer_init(&bytes, REST_BYTES_MAX);
    saga_init(&saga, &arena, judged->id, definition_open(SAGA_RUN, the_shelf(), &arena));
    fold_turns(&saga, kept, &arena);
    if (!saga_write_rest(&saga, &bytes) || !slice_equal(buffer_slice(&bytes), turn->rest)) {
        world_violate("I9", "what is stored of a run at rest is not what its log folds to, after record %llu",
                      (unsigned long long)saga.seq);
    }
    buffer_fini(&bytes);
    arena_fini(&arena);
}
