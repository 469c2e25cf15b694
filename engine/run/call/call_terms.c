/* See call_terms.h. */
#include "run/call/call_terms.h"

#define CONDITIONS_MAX 4

bool effect_is_safe(enum effect effect)
{
    switch (effect) {
    case EFFECT_READ:
    case EFFECT_IDEMPOTENT:
    case EFFECT_KEYED:
        return true;
    case EFFECT_CHECKED:
    case EFFECT_ONCE:
        return false;
    case EFFECT_COUNT:
        break;
    }
    UNREACHABLE();
}

void call_terms_fill(struct call *call, const struct tool *tool, enum effect effect, bool is_question)
{
    call->key_place = is_question ? KEY_PLACE_DEFAULT : tool->key_place;
    call->key_name = is_question ? SLICE_NONE : tool->key_name;
    call->reading = tool->reading;
    call->question = is_question;
    call->reads = is_question || tool->effect == EFFECT_READ;
    call->send_key = !is_question && effect != EFFECT_READ;
    call->harmless = is_question || effect == EFFECT_READ || effect == EFFECT_IDEMPOTENT;
    call->repeatable = is_question || effect_is_safe(effect);
}

/* --- the tool's own conditions on an answer --- */

struct condition {
    enum outcome_kind kind;
    const struct template *template;
};

static size_t conditions_of(const struct tool *tool, bool is_probe, struct condition out[CONDITIONS_MAX])
{
    if (is_probe) {
        const struct outcome_rules *rules = &tool->probe.outcome;

        out[0] = (struct condition){OUTCOME_COMPLETED, &rules->completed};
        out[1] = (struct condition){OUTCOME_ABSENT, &rules->absent};
        out[2] = (struct condition){OUTCOME_RUNNING, &rules->running};
        return 3;
    }
    out[0] = (struct condition){OUTCOME_COMPLETED, &tool->outcome.completed};
    out[1] = (struct condition){OUTCOME_RUNNING, &tool->outcome.running};
    out[2] = (struct condition){OUTCOME_RETRY, &tool->outcome.retry};
    out[3] = (struct condition){OUTCOME_FAILED, &tool->outcome.no_effect};
    return 4;
}

size_t call_terms_conditions(const struct tool *tool, bool is_probe, struct rendering_item *items)
{
    struct condition conditions[CONDITIONS_MAX];
    size_t count = conditions_of(tool, is_probe, conditions);

    for (size_t i = 0; i < count; i++) {
        items[i].template = conditions[i].template;
    }
    return count;
}

/* The first condition that holds decides; where the tool has no condition, the adapter's default does. When a condition
 * cannot be evaluated, `why` says so: it could have been true, so whatever a later one says would be a guess. */
static enum outcome_kind outcome_by_conditions(const struct tool *tool, bool is_probe,
                                               const struct rendering_item *items, enum outcome_kind by_adapter,
                                               struct arena *arena, struct slice *why)
{
    struct condition conditions[CONDITIONS_MAX];
    size_t count = conditions_of(tool, is_probe, conditions);

    for (size_t i = 0; i < count; i++) {
        if (!template_is_set(conditions[i].template)) {
            if (conditions[i].kind == by_adapter) {
                return by_adapter;
            }
        } else if (items[i].code != ERR_OK) {
            *why = arena_printf(arena, "a condition of `outcome`: %.*s", SLICE_ARG(items[i].error));
            return OUTCOME_UNKNOWN;
        } else if (expression_true(items[i].value)) {
            return conditions[i].kind;
        }
    }
    return OUTCOME_UNKNOWN;
}

void call_terms_judge(const struct tool *tool, bool is_probe, const struct rendering_item *items, struct arena *arena,
                      struct outcome *outcome)
{
    struct slice why = SLICE_NONE;
    enum outcome_kind found = outcome_by_conditions(tool, is_probe, items, outcome->kind, arena, &why);

    if (found != outcome->kind) {
        outcome->unsent = false;
        if (found == OUTCOME_UNKNOWN || !outcome->error.ptr) {
            outcome->error = found == OUTCOME_UNKNOWN ? SLICE("outcome") : SLICE("outcome-rule");
            outcome->detail =
                why.ptr ? why
                        : arena_printf(arena, "by the tool's `outcome`, the answer means %s", outcome_name(found));
        }
    }
    outcome->kind = found;
    if (found == OUTCOME_RUNNING && !tool->has_probe) {
        outcome->kind = OUTCOME_COMPLETED; /* "accepted" is all that will ever be heard of the call */
    }
}
