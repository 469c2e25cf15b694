/* Makes a definition that needs no values, and the saga of it: see prove/world.h. */
#include "core/prove/world.h"

static const struct tool *symbolic_tool(const struct tool *tool, enum effect effect, struct arena *arena)
{
    struct tool *copy = arena_dup(arena, tool, sizeof(*tool));

    copy->input = NULL;
    copy->conditional = false;
    copy->effect_if = (struct template){0};
    copy->effect = effect;
    return copy;
}

/* A template with expressions becomes a want, and any answer to the want will do. */
static struct template symbolic_template(const struct template *template)
{
    return template->count ? (struct template){.json = SLICE("{}"), .program_count = 1} : *template;
}

static void symbolic_call(struct step_definition *step, const struct definition *written,
                          const struct prove_variant *variant, struct arena *arena)
{
    bool varies = written == variant->written && step->member == variant->member;
    bool asked = step->scope.count > 0;
    enum effect of_step = varies && variant->direction == DIRECTION_DO ? variant->effect : step->tool->effect, of_undo;

    step->retry = step->tool->conditional ? retry_policy_of_step(step, of_step) : step->retry;
    step->tool = symbolic_tool(step->tool, of_step, arena);
    step->with = asked ? symbolic_template(&step->scope) : symbolic_template(&step->with);
    step->scope = (struct template){0};
    if (!step->compensate.is_set) {
        return;
    }
    of_undo = varies && variant->direction == DIRECTION_UNDO ? variant->effect : step->compensate.tool->effect;
    step->compensate.retry =
        step->compensate.tool->conditional ? retry_policy_of_undo(&step->compensate, of_undo) : step->compensate.retry;
    step->compensate.tool = symbolic_tool(step->compensate.tool, of_undo, arena);
    step->compensate.with = (struct template){0};
}

static void symbolic_locks(struct definition *copy, struct arena *arena)
{
    struct lock_definition *locks = arena_array(arena, copy->lock_count + 1, sizeof(*locks));

    for (uint32_t i = 0; i < copy->lock_count; i++) {
        locks[i] = copy->locks[i];
        locks[i].key = symbolic_template(&locks[i].key);
    }
    copy->locks = locks;
}

static void symbolic_followers(struct definition *copy, struct arena *arena)
{
    struct follower_definition *followers = arena_array(arena, copy->follower_count + 1, sizeof(*followers));

    for (uint32_t i = 0; i < copy->follower_count; i++) {
        followers[i].saga = copy->followers[i].saga;
    }
    copy->followers = followers;
}

static void add_symbol(struct prove_symbols *symbols, const struct definition *written,
                       const struct definition *symbolic_one, struct arena *arena)
{
    if (symbols->count == symbols->capacity) {
        struct prove_symbol *items;

        symbols->capacity = symbols->capacity ? 2 * symbols->capacity : 8;
        items = arena_array(arena, symbols->capacity, sizeof(*items));
        for (uint32_t i = 0; i < symbols->count; i++) {
            items[i] = symbols->items[i];
        }
        symbols->items = items;
    }
    symbols->items[symbols->count++] = (struct prove_symbol){written, symbolic_one};
}

static const struct definition *symbolic(struct prove_symbols *symbols, const struct definition *written,
                                         const struct prove_variant *variant, struct arena *arena)
{
    struct definition *copy;

    for (uint32_t i = 0; i < symbols->count; i++) {
        if (symbols->items[i].written == written) {
            return symbols->items[i].symbolic;
        }
    }
    copy = arena_dup(arena, written, sizeof(*written));
    add_symbol(symbols, written, copy, arena);
    copy->version = written->version ? written->version : 1; /* a file has no version, and a run needs one */
    copy->input = NULL;
    copy->output = (struct template){0};
    copy->steps = arena_array(arena, written->step_count ? written->step_count : 1, sizeof(*copy->steps));
    for (uint32_t i = 0; i < written->step_count; i++) {
        struct step_definition *step = &copy->steps[i];

        *step = written->steps[i];
        step->when = symbolic_template(&step->when);
        step->for_each = symbolic_template(&step->for_each);
        switch (step->kind) {
        case STEP_CALL:
            symbolic_call(step, written, variant, arena);
            break;
        case STEP_SAGA:
            step->with = symbolic_template(&step->with);
            step->child = symbolic(symbols, step->child, variant, arena);
            break;
        case STEP_SLEEP:
            step->sleep = symbolic_template(&step->sleep);
            break;
        case STEP_APPROVE:
            step->show = symbolic_template(&step->show);
            break;
        case STEP_SIGNAL:
            break;
        }
    }
    symbolic_locks(copy, arena);
    symbolic_followers(copy, arena);
    return copy;
}

void prove_symbolic(const struct definition *definition, const struct prove_variant *variant, struct arena *arena,
                    struct prove_symbols *out)
{
    CHECK(definition->kind == SAGA_DEFINED);
    *out = (struct prove_symbols){0};
    out->definition = symbolic(out, definition, variant, arena);
}

const struct definition *prove_written(const struct prove_symbols *symbols, const struct definition *symbolic_one)
{
    for (uint32_t i = 1; i < symbols->count; i++) {
        if (symbols->items[i].symbolic == symbolic_one) {
            return symbols->items[i].written;
        }
    }
    return symbols->items[0].written; /* the outermost saga grows, so it is a copy */
}
