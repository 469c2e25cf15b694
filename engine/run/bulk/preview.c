/* Asks a copy of a saga, read from its log, how it would answer an item: with a refusal, or with what would follow. */
#include "core/prove/preview.h"

#include "base/json.h"
#include "run/bulk/bulk.h"

#define STEPS_MAX                                                                                                      \
    200000u /* the most steps played for one item, some 10 ms; beyond that the answer does not say what follows */
#define TEXT_BYTES_MAX (8u << 20)

static struct saga_input input_of(const struct saga *saga, const struct bulk_item *item, struct slice note,
                                  int64_t now_ms, struct arena *arena)
{
    const struct verb *verb = &verbs[item->verb];
    struct change change;
    struct saga_input input;

    bulk_item_change(item, note, SLICE("preview"), &change);
    verb_copy(verb, &change.input, SLICE("somebody"), arena, &input);
    input.now_ms = now_ms;
    input.escalation_number = saga->escalation.number + 1;
    input.approval_number = UINT32_MAX;
    input.number_stride = 1;
    if (input.type == SAGA_INPUT_OPERATOR && input.verdict.happened) {
        input.verdict.undo_args = SLICE("{}"); /* the engine renders them before the saga hears of the verdict */
    }
    return input;
}

/* Returns "completed", or "completed or compensated" when the answer of a probe decides. */
static struct slice ends_of(struct slice preview, struct arena *arena)
{
    struct json_walk walk = json_walk(json_member(json_element(json_member(preview, "verbs"), 0), "ends"));
    struct slice end, seen[4], text = SLICE_NONE;
    size_t count = 0;

    while (count < COUNT_OF(seen) && json_next_element(&walk, &end)) {
        struct slice status = json_string(json_member(end, "status"), arena);
        bool known = json_type(json_member(end, "unless_begins")) == JSON_STRING; /* the branch of a condition */

        for (size_t i = 0; i < count; i++) {
            known |= slice_equal(seen[i], status);
        }
        if (!known) {
            text = count == 0 ? arena_slice(arena, status)
                              : arena_printf(arena, "%.*s or %.*s", SLICE_ARG(text), SLICE_ARG(status));
            seen[count++] = status;
        }
    }
    return text;
}

static struct slice play(const struct saga *saga, const struct bulk_item *item, const struct saga_input *input,
                         struct arena *arena)
{
    struct preview_question question = {.steps_max = STEPS_MAX, .only = input};
    struct buffer text;
    struct slice ends = SLICE_NONE;

    if (verbs[item->verb].on == ON_ESCALATION) {
        question.escalation = saga->escalation.number;
    } else if (verbs[item->verb].on == ON_OPERATION) {
        question.key = item->key;
    }
    buffer_init(&text, TEXT_BYTES_MAX);
    struct preview *preview = preview_new(saga, &question, input->now_ms, arena, &text);

    if (preview_play(preview, 2 * STEPS_MAX) && !text.overflow) {
        ends = ends_of(buffer_slice(&text), arena);
    }
    buffer_fini(&text);
    return ends;
}

/* Returns the status right after the turn, for verbs that a preview does not play. */
static struct slice status_after(const struct saga *saga, const struct records *records, struct arena *arena)
{
    struct saga *copy = saga_copy(saga, arena);

    for (size_t i = 0; i < records->count; i++) {
        saga_apply(copy, &records->items[i]);
    }
    return slice_of(saga_status_name(saga_status(copy)));
}

static bool settles(const struct saga *saga, const struct bulk_item *item)
{
    enum direction direction = DIRECTION_DO;
    uint32_t step = saga_find_key(saga, &item->key, &direction);

    if (item->verb != VERB_RESOLVE_OPERATION || step == STEP_NONE || item->input.verdict.happened ||
        item->input.verdict.again) {
        return false;
    }
    return item->input.verdict.undone ? saga_has_debt(saga, step) : saga_debt_in_doubt(saga, step);
}

void bulk_preview(const struct saga *saga, const struct bulk_item *item, struct slice note, int64_t now_ms,
                  struct arena *arena, struct bulk_answer *out)
{
    struct saga_input input = input_of(saga, item, note, now_ms, arena);
    struct records records;
    struct err err = {0};

    *out = (struct bulk_answer){.code = saga_decide(saga, &input, arena, &records, &err)};
    if (out->code == ERR_ENDED &&
        item->verb == VERB_RERUN) { /* no record is written for a saga that has ended: see rerun.c */
        *out = (struct bulk_answer){.code = ERR_OK, .leads_to = SLICE("a new saga")};
        return;
    }
    if (out->code == ERR_ENDED && settles(saga, item)) { /* nothing is written to its log: see debt.c */
        *out = (struct bulk_answer){.code = ERR_OK, .leads_to = SLICE("a settled debt")};
        return;
    }
    if (out->code != ERR_OK) {
        out->refusal = arena_slice(arena, slice_of(err.message));
        return;
    }
    out->leads_to = play(saga, item, &input, arena);
    if (!out->leads_to.ptr) {
        out->leads_to = status_after(saga, &records, arena);
    }
}
