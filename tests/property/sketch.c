/* See sketch.h. Draws sketches and leaves parts out; sketch_text.c writes them as JSON. */
#include "tests/property/sketch.h"

#include <stdio.h>
#include <string.h>

#define UNDO "undo", EFFECT_IDEMPOTENT

const struct kit kits[] = {
    {"keyed", EFFECT_KEYED, false, false, false, false, false, UNDO, false, false},
    {"idempotent", EFFECT_IDEMPOTENT, false, false, false, false, false, UNDO, false, false},
    {"read", EFFECT_READ, false, false, false, false, false, NULL, EFFECT_READ, false, false},
    {"idempotent_probed", EFFECT_IDEMPOTENT, false, true, false, false, false, UNDO, false, false},
    {"keyed_probed", EFFECT_KEYED, false, true, false, false, false, UNDO, false, false},
    {"checked", EFFECT_CHECKED, false, true, false, false, false, UNDO, false, false},
    {"once", EFFECT_ONCE, false, false, false, false, false, UNDO, false, false},
    {"once_probed", EFFECT_ONCE, false, true, false, false, false, UNDO, false, false},
    {"blind", EFFECT_ONCE, false, false, false, false, false, UNDO, true, true},
    {"blind_keyed", EFFECT_KEYED, false, true, false, false, false, "undo_keyed", EFFECT_KEYED, true, true},
    {"tolerant", EFFECT_ONCE, false, false, false, false, false, UNDO, true, false},
    {"voiding", EFFECT_KEYED, false, false, false, false, false, UNDO, false, true},
    {"by_keyed", EFFECT_IDEMPOTENT, false, false, false, false, false, "undo_keyed", EFFECT_KEYED, false, false},
    {"by_checked", EFFECT_KEYED, false, false, false, false, false, "undo_checked", EFFECT_CHECKED, false, false},
    {"limited", EFFECT_KEYED, false, false, false, true, false, UNDO, false, false},
    {"limited_once", EFFECT_ONCE, false, false, false, true, false, UNDO, false, false},
    {"costly", EFFECT_KEYED, false, false, false, false, true, UNDO, false, false},
    {"mixed", EFFECT_ONCE, true, true, false, false, false, UNDO, false, false},
    {"picky", EFFECT_KEYED, false, false, false, false, false, "undo_picky", EFFECT_IDEMPOTENT, false, false, true},
    {"mail", EFFECT_ONCE, false, false, true, false, false, NULL, EFFECT_READ, false, false},
    {"mail_probed", EFFECT_CHECKED, false, true, true, false, false, NULL, EFFECT_READ, false, false},
};
const uint32_t kit_count = COUNT_OF(kits);

#define KIT_TERMINALS 2 /* the last ones of the kit are terminal */

struct draft { /* what this sketch is made of */
    struct chance *chance;
    struct sketch *sketch;
    bool groups, children, waits, conditions, branches, fallible, values, blind;
    uint32_t left; /* the number of steps that may still be drawn */
};

static bool percent(struct draft *d, uint32_t n)
{
    return chance_percent(d->chance, n);
}

static uint32_t below(struct draft *d, uint32_t n)
{
    return chance_below(d->chance, n);
}

static void draw_call(struct draft *d, struct sketch_step *step)
{
    step->kind = STEP_CALL;
    step->kit = percent(d, 40)               ? below(d, 2)
                : d->blind && percent(d, 60) ? 8 + below(d, 2)
                                             : below(d, kit_count - KIT_TERMINALS);
    if (d->values && kits[step->kit].undo && percent(d, 12)) {
        step->own_undo = percent(d, 50) ? UNDO_OF_PATH : UNDO_OF_PROGRAM;
    }
}

static void draw_kind(struct draft *d, struct sketch_step *step, uint32_t saga)
{
    uint32_t luck = below(d, 100);

    if (d->children && saga + 1 < d->sketch->saga_count && luck < 40) {
        step->kind = STEP_SAGA;
        step->child = saga + 1 + below(d, d->sketch->saga_count - saga - 1);
    } else if (d->waits && luck < 65) {
        static const enum step_kind waits[] = {STEP_SLEEP, STEP_SIGNAL, STEP_APPROVE};

        step->kind = waits[below(d, 3)];
        step->sleep = percent(d, 50) ? SLEEP_DURATION : (enum sketch_sleep)below(d, percent(d, 20) ? 5 : 4);
        step->signal = below(d, 2);
        step->shows = percent(d, 50);
        step->admin_only = percent(d, 20);
        step->timeout_s = percent(d, 60) ? 30 : 0;
    } else {
        draw_call(d, step);
    }
}

static void draw_step(struct draft *d, uint32_t saga, uint32_t index)
{
    struct sketch_step *step = &d->sketch->sagas[saga].steps[index];
    uint32_t luck = below(d, 100);

    *step = (struct sketch_step){0};
    (void)snprintf(step->id, sizeof(step->id), "%c%u", (char)('s' - (char)saga), (unsigned)index % 100);
    draw_kind(d, step, saga);
    if (d->branches && percent(d, 60)) {
        step->has_after = true;
        for (uint32_t i = 0; i < index; i++) {
            step->after |= percent(d, 40) ? BIT(i) : 0;
        }
    }
    if (d->conditions && percent(d, 30)) {
        step->when = (enum sketch_when)(1 + below(d, percent(d, 90) ? 3 : 4));
    }
    if (d->fallible && luck < (step->kind == STEP_SAGA ? 60 : 25)) {
        step->on_failure = luck < (step->kind == STEP_SAGA ? 25 : 10) ? ON_FAILURE_ESCALATE : ON_FAILURE_CONTINUE;
    }
    if (d->groups && percent(d, 35)) {
        step->each = percent(d, 5) ? EACH_NO_ARRAY : percent(d, 70) ? EACH_PATH : EACH_PROGRAM;
        step->elements = below(d, SKETCH_ELEMENTS_MAX + 1);
        step->concurrency = below(d, 4);
    }
    if (d->values) {
        step->with = percent(d, 5) ? WITH_BROKEN : (enum sketch_with)below(d, WITH_BROKEN);
        step->scope = percent(d, 80) ? SCOPE_NONE : (enum sketch_scope)below(d, 3);
    } else {
        step->with = WITH_CONSTANT;
    }
    if (step->each && percent(d, 60)) {
        step->with = WITH_ITEM;
    }
}

/* Draws a terminal step, which ends its saga and comes after all other steps. */
static void draw_terminal(struct draft *d, uint32_t saga, uint32_t child)
{
    struct sketch_saga *s = &d->sketch->sagas[saga];
    struct sketch_step *last = &s->steps[s->step_count - 1];

    last->each = EACH_NONE;
    last->own_undo = UNDO_OF_TOOL;
    last->has_after = true;
    last->after = BIT(s->step_count - 1) - 1;
    last->on_failure = last->on_failure == ON_FAILURE_CONTINUE ? ON_FAILURE_COMPENSATE : last->on_failure;
    if (child) {
        last->kind = STEP_SAGA;
        last->child = child;
        draw_terminal(d, child, 0);
        return;
    }
    last->kind = STEP_CALL;
    last->with = last->with == WITH_ITEM ? WITH_NONE : last->with;
    last->kit = kit_count - 1 - below(d, KIT_TERMINALS);
}

static void draw_outermost(struct draft *d)
{
    struct sketch_saga *root = &d->sketch->sagas[0];

    if (d->values && percent(d, 30)) {
        root->lock_count = 1 + below(d, SKETCH_LOCKS_MAX);
        for (uint32_t i = 0; i < root->lock_count; i++) {
            root->locks[i].program = percent(d, 30);
            root->locks[i].fails = percent(d, 30);
            root->locks[i].same = i > 0 && percent(d, 20);
        }
    }
    if (percent(d, 15)) {
        root->follower_count = 1 + below(d, 2);
        root->follower_named = percent(d, 50);
    }
    root->budget_calls = percent(d, 8) ? 1 + below(d, 5) : 0;
    root->strict = false;
    if (percent(d, 30)) {
        draw_terminal(d, 0, d->children && d->sketch->saga_count > 1 && percent(d, 40) ? d->sketch->saga_count - 1 : 0);
    }
}

static uint32_t expanded(const struct sketch *sketch, uint32_t saga)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < sketch->sagas[saga].step_count; i++) {
        const struct sketch_step *step = &sketch->sagas[saga].steps[i];
        uint32_t one = step->kind == STEP_SAGA ? 1 + expanded(sketch, step->child) : 1;

        sum += step->each ? 1 + one * step->elements : one;
    }
    return sum;
}

static void draw_once(struct sketch *sketch, struct chance *chance)
{
    struct draft d = {.chance = chance, .sketch = sketch, .left = SKETCH_STEPS_MAX};
    uint32_t size;

    memset(sketch, 0, sizeof(*sketch));
    d.groups = percent(&d, 40);
    d.children = percent(&d, 45);
    d.waits = percent(&d, 30);
    d.conditions = percent(&d, 50);
    d.branches = percent(&d, 70);
    d.fallible = percent(&d, 60);
    d.values = percent(&d, 60);
    d.blind = percent(&d, 30);
    sketch->saga_count = d.children ? 2 + below(&d, SKETCH_SAGAS_MAX - 1) : 1;
    for (uint32_t i = 0; i < sketch->saga_count; i++) {
        struct sketch_saga *saga = &sketch->sagas[i];
        uint32_t others = sketch->saga_count - 1 - i; /* each of the others needs a step */

        size = d.left - others;
        saga->step_count = 1 + below(&d, i == 0 || size < 5 ? size : 5);
        d.left -= saga->step_count;
        for (uint32_t k = 0; k < saga->step_count; k++) {
            draw_step(&d, i, k);
        }
        saga->deadline_s = percent(&d, 25) ? 120 : 0;
        saga->undo_concurrency = percent(&d, 35) ? 1 + below(&d, 4) : 0;
        saga->output = percent(&d, 60) ? OUTPUT_NONE : (enum sketch_output)below(&d, percent(&d, 90) ? 3 : 4);
        saga->strict = d.values && percent(&d, 15);
    }
    draw_outermost(&d);
}

void sketch_draw(struct sketch *sketch, struct chance *chance)
{
    do {
        draw_once(sketch, chance);
    } while (expanded(sketch, 0) > SKETCH_EXPANDED_MAX);
}

void sketch_draw_open(struct sketch *sketch, struct chance *chance)
{
    static const struct {
        const char *text;
        int64_t calls, emissions, micros;
    } budgets[] = {{NULL, -1, -1, -1},
                   {NULL, -1, -1, -1},
                   {"{'calls':4}", 4, -1, -1},
                   {"{'micros':150}", -1, -1, 150},
                   {"{'emissions':20,'calls':9}", 9, 20, -1}};
    uint32_t which = chance_below(chance, COUNT_OF(budgets));

    memset(sketch, 0, sizeof(*sketch));
    sketch->kind = chance_percent(chance, 33) ? SAGA_RUN : SAGA_OPEN;
    which = sketch->kind == SAGA_OPEN ? which : 0;
    sketch->budget = budgets[which].text;
    sketch->calls = budgets[which].calls;
    sketch->emissions = budgets[which].emissions;
    sketch->micros = budgets[which].micros;
    sketch->loop = sketch->kind == SAGA_OPEN && chance_percent(chance, 50) ? "{'repeats':2,'max_cycle':3}" : NULL;
    sketch->on_timeout = sketch->kind == SAGA_OPEN && chance_percent(chance, 50) ? "escalate" : NULL;
    sketch->is_stubborn = chance_percent(chance, 15);
}

bool sketch_is_terminal(const struct sketch *sketch, const struct sketch_step *step)
{
    if (step->kind == STEP_CALL) {
        return kits[step->kit].terminal;
    }
    for (uint32_t i = 0; step->kind == STEP_SAGA && i < sketch->sagas[step->child].step_count; i++) {
        if (sketch_is_terminal(sketch, &sketch->sagas[step->child].steps[i])) {
            return true;
        }
    }
    return false;
}

uint32_t sketch_after(const struct sketch_saga *saga, uint32_t step)
{
    return saga->steps[step].has_after ? saga->steps[step].after : step ? BIT(step - 1) : 0;
}

bool sketch_comes_before(const struct sketch_saga *saga, uint32_t a, uint32_t b)
{
    uint32_t before = sketch_after(saga, b);

    for (uint32_t i = b; i-- > 0;) { /* `after` names only steps written above */
        before |= before & BIT(i) ? sketch_after(saga, i) : 0;
    }
    return (before & BIT(a)) != 0;
}

/* --- leaving out --- */

static void drop_step(struct sketch_saga *saga, uint32_t at)
{
    for (uint32_t i = at + 1; i < saga->step_count; i++) {
        uint32_t after = saga->steps[i].after;

        saga->steps[i - 1] = saga->steps[i];
        saga->steps[i - 1].after = (after & (BIT(at) - 1)) | ((after >> (at + 1)) << at);
    }
    saga->step_count--;
}

/* Leaves out one part of a step, by its number. Returns false when the step has no such part. */
static bool simplify_step(struct sketch_step *step, uint32_t which)
{
    struct sketch_step was = *step;

    switch (which) {
    case 0:
        step->kind = STEP_CALL;
        step->kit = was.kind == STEP_CALL && kits[was.kit].terminal ? was.kit : 0;
        break;
    case 1:
        step->each = EACH_NONE;
        step->with = was.with == WITH_ITEM ? WITH_CONSTANT : was.with;
        break;
    case 2:
        step->elements = was.elements && was.each ? was.elements - 1 : was.elements;
        break;
    case 3:
        step->concurrency = 0;
        break;
    case 4:
        step->when = WHEN_NONE;
        break;
    case 5:
        step->on_failure = ON_FAILURE_COMPENSATE;
        break;
    case 6:
        step->with = was.with == WITH_ITEM ? WITH_ITEM : WITH_CONSTANT;
        break;
    case 7:
        step->scope = SCOPE_NONE;
        break;
    case 8:
        step->own_undo = UNDO_OF_TOOL;
        break;
    case 9:
        step->timeout_s = 0;
        step->shows = step->admin_only = false;
        break;
    case 10:
        step->has_after = false;
        step->after = 0;
        break;
    case 11:
        step->after = was.after & (was.after - 1);
        break;
    case 12:
        step->each = was.each ? EACH_PATH : EACH_NONE;
        break;
    case 13:
        step->sleep = SLEEP_DURATION;
        break;
    case 14:
        step->kind = was.kind == STEP_APPROVE ? STEP_SIGNAL : was.kind;
        break;
    default:
        return false;
    }
    return memcmp(&was, step, sizeof(was)) != 0;
}
#define STEP_SIMPLER 15

static bool simplify_saga(struct sketch_saga *saga, uint32_t which)
{
    struct sketch_saga was = *saga;

    switch (which) {
    case 0:
        saga->deadline_s = 0;
        break;
    case 1:
        saga->undo_concurrency = 0;
        break;
    case 2:
        saga->output = OUTPUT_NONE;
        break;
    case 3:
        saga->lock_count = 0;
        break;
    case 4:
        saga->lock_count -= saga->lock_count ? 1 : 0;
        break;
    case 5:
        saga->follower_count = 0;
        break;
    case 6:
        saga->budget_calls = 0;
        break;
    case 7:
        saga->strict = false;
        break;
    default:
        return false;
    }
    return memcmp(&was, saga, sizeof(was)) != 0;
}
#define SAGA_SIMPLER 8

bool sketch_simplify(struct sketch *sketch, uint32_t n)
{
    uint32_t at = 0;

    for (uint32_t s = 0; s < sketch->saga_count; s++) {
        struct sketch_saga *saga = &sketch->sagas[s];

        for (uint32_t i = 0; i < saga->step_count && saga->step_count > 1; i++) {
            if (at++ == n) {
                drop_step(saga, i);
                return true;
            }
        }
        for (uint32_t k = 0; k < SAGA_SIMPLER; k++) {
            struct sketch_saga copy = *saga;

            if (simplify_saga(&copy, k) && at++ == n) {
                *saga = copy;
                return true;
            }
        }
        for (uint32_t i = 0; i < saga->step_count; i++) {
            for (uint32_t k = 0; k < STEP_SIMPLER; k++) {
                struct sketch_step copy = saga->steps[i];

                if (simplify_step(&copy, k) && at++ == n) {
                    saga->steps[i] = copy;
                    return true;
                }
            }
        }
    }
    return false;
}
