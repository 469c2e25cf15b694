/*
 * Draws small random definitions with all constructs. Expressions are plain paths only, because a program would need a
 * process.
 *
 * Each step with a call takes `refuse` from the input (r0 to r7), so that a start decides which step fails for certain.
 */
#include "tests/sim/scenario.h"

#include <stdio.h>

#include "core/language/policy.h"

#define SAGAS_MAX 3
#define STEPS_MAX 6

enum undo { UNDO_NONE, UNDO_IDEM, UNDO_KEYED, UNDO_CHECKED, UNDO_IDEM_VOID, UNDO_KEYED_VOID, UNDO_COUNT };
enum trait {
    TRAIT_PROBED = 1,
    TRAIT_TOLERANT = 2,
    TRAIT_VOIDING = 4,
    TRAIT_TERMINAL = 8,
    TRAIT_RATE = 16,
    TRAIT_NARROW = 32,
    TRAIT_BREAKER = 64,
    TRAIT_COST = 128,
    TRAIT_MIXED = 256
};

static const struct kit {
    const char *name;
    enum effect effect;
    enum undo undo;
    unsigned traits;
} kits[] = {
    {"keyed", EFFECT_KEYED, UNDO_IDEM, 0},
    {"idem", EFFECT_IDEMPOTENT, UNDO_IDEM, 0},
    {"read", EFFECT_READ, UNDO_NONE, 0},
    {"keyed_probed", EFFECT_KEYED, UNDO_KEYED, TRAIT_PROBED},
    {"checked", EFFECT_CHECKED, UNDO_IDEM, TRAIT_PROBED},
    {"checked_2", EFFECT_CHECKED, UNDO_CHECKED, TRAIT_PROBED},
    {"once", EFFECT_ONCE, UNDO_IDEM, 0},
    {"once_probed", EFFECT_ONCE, UNDO_KEYED, TRAIT_PROBED},
    {"once_void", EFFECT_ONCE, UNDO_IDEM_VOID, TRAIT_TOLERANT | TRAIT_VOIDING},
    {"keyed_void", EFFECT_KEYED, UNDO_KEYED_VOID, TRAIT_PROBED | TRAIT_TOLERANT | TRAIT_VOIDING},
    {"keyed_rate", EFFECT_KEYED, UNDO_IDEM, TRAIT_RATE},
    {"once_rate", EFFECT_ONCE, UNDO_IDEM, TRAIT_RATE},
    {"keyed_narrow", EFFECT_KEYED, UNDO_IDEM, TRAIT_NARROW},
    {"keyed_breaker", EFFECT_KEYED, UNDO_IDEM, TRAIT_BREAKER},
    {"keyed_cost", EFFECT_KEYED, UNDO_IDEM, TRAIT_COST},
    {"keyed_mixed", EFFECT_KEYED, UNDO_IDEM, TRAIT_MIXED},
    {"once_mail", EFFECT_ONCE, UNDO_NONE, TRAIT_TERMINAL},
    {"checked_mail", EFFECT_CHECKED, UNDO_NONE, TRAIT_TERMINAL | TRAIT_PROBED},
};
#define KIT_COUNT ((uint32_t)(sizeof(kits) / sizeof(kits[0])))
#define KIT_TERMINALS 2u /* the last ones of the kit are terminal */

static const struct {
    const char *name;
    enum effect effect;
} undos[UNDO_COUNT] = {
    [UNDO_IDEM] = {"undo_idem", EFFECT_IDEMPOTENT},        [UNDO_KEYED] = {"undo_keyed", EFFECT_KEYED},
    [UNDO_CHECKED] = {"undo_checked", EFFECT_CHECKED},     [UNDO_IDEM_VOID] = {"undo_idem_void", EFFECT_IDEMPOTENT},
    [UNDO_KEYED_VOID] = {"undo_keyed_void", EFFECT_KEYED},
};

struct draft {
    struct chance *chance;
    struct buffer *out;
    uint32_t kits_used, undos_used; /* bits */
    uint32_t steps_left;
    bool groups, children, waits, conditions, branches, locks, deadlines;
    bool is_wide; /* most steps begin at once */
    bool has_child, has_follower;
};

static bool percent(struct draft *d, uint32_t n)
{
    return chance_percent(d->chance, n);
}

static uint32_t below(struct draft *d, uint32_t n)
{
    return chance_below(d->chance, n);
}

/* Writes text with ' for ", which is easier to read here. */
static void put(struct draft *d, const char *text)
{
    for (const char *c = text; *c; c++) {
        buffer_put_char(d->out, *c == '\'' ? '"' : *c);
    }
}

static void put_number(struct draft *d, const char *before, uint32_t number, const char *after)
{
    put(d, before);
    buffer_printf(d->out, "%u", (unsigned)number);
    put(d, after);
}

/* --- tools --- */

static void put_service(struct draft *d, const char *tool, const char *what, bool keyed)
{
    put(d, "'builtin':{'tool':'");
    put(d, tool);
    put(d, "','do':'");
    put(d, what);
    put(d, keyed ? "','key':'${ .key }'}" : "'}");
}

static void put_class(struct draft *d, enum effect effect, bool mixed, bool is_short)
{
    if (mixed) {
        put(d, ",'effect':{'if':'${ .args.odd }','then':'keyed','else':'once'},'key':{'window':'10m'}");
        return;
    }
    put(d, ",'effect':'");
    put(d, effect_name(effect));
    put(d, effect != EFFECT_KEYED ? "'" : is_short ? "','key':{'window':'60s'}" : "','key':{'window':'10m'}");
}

static void put_probe(struct draft *d, const char *tool)
{
    put(d, ",'probe':{");
    put_service(d, tool, "probe", true);
    put(d, ",'outcome':{'completed':'${ .response.done }','absent':'${ .response.absent }','running':'${ "
           ".response.running "
           "}'},'result':{'id':'${ .response.id }'},'visibility':'4s','give_up_after':'1m'}");
}

static void put_retry(struct draft *d, enum effect effect)
{
    if (effect == EFFECT_ONCE) {
        put(d, ",'retry':{'initial':'200ms','max':'2s'}");
    } else {
        put_number(d, ",'retry':{'max_attempts':", 3 + below(d, 5), ",'initial':'200ms','max':'2s'}");
    }
}

static void put_undo(struct draft *d, const struct kit *kit)
{
    bool tolerant = kit->traits & TRAIT_TOLERANT;

    put(d, ",'compensate':{'tool':'");
    put(d, undos[kit->undo].name);
    put(d, tolerant ? "','with':{'id':'${ .key }'},'tolerates_absent':true" : "','with':{'id':'${ .result.id }'}");
    put(d, kit->traits & TRAIT_VOIDING ? ",'voids_key':true" : "");
    put(d, percent(d, 50) ? ",'give_up_after':'20s'}" : ",'give_up_after':'5m'}");
}

static void put_tool(struct draft *d, const struct kit *kit)
{
    put(d, "{'name':'");
    put(d, kit->name);
    put(d, "',");
    put_service(d, kit->name, "act", false);
    put_class(d, kit->effect, kit->traits & TRAIT_MIXED, percent(d, 15));
    if (kit->traits & TRAIT_PROBED) {
        put_probe(d, kit->name);
    }
    put(d, kit->traits & TRAIT_TERMINAL ? ",'terminal':true" : "");
    put(d, kit->traits & TRAIT_RATE ? ",'rate':{'limit':2,'per':'1s'}" : "");
    put(d, kit->traits & TRAIT_NARROW ? ",'concurrency':1" : "");
    put(d, kit->traits & TRAIT_BREAKER ? ",'breaker':{'failures':2,'window':'10s','cooldown':'1s'}" : "");
    put(d, kit->traits & TRAIT_COST ? ",'cost':100" : "");
    put_retry(d, kit->traits & TRAIT_MIXED ? EFFECT_ONCE : kit->effect);
    put(d, percent(d, 50) ? ",'timeout':'1s'" : ",'timeout':'3s'");
    if (kit->undo) {
        put_undo(d, kit);
    }
    put(d, "},\n");
}

static void put_tools(struct draft *d)
{
    put(d, "'tools':[\n");
    for (uint32_t i = 0; i < KIT_COUNT; i++) {
        if (d->kits_used & BIT(i)) {
            put_tool(d, &kits[i]);
        }
    }
    for (uint32_t i = UNDO_IDEM; i < UNDO_COUNT; i++) {
        if (!(d->undos_used & BIT(i)) && i != UNDO_IDEM) {
            continue;
        }
        put(d, i == UNDO_IDEM ? "{'name':'" : ",\n{'name':'");
        put(d, undos[i].name);
        put(d, "',");
        put_service(d, undos[i].name, "undo", false);
        put_class(d, undos[i].effect, false, false);
        if (undos[i].effect == EFFECT_CHECKED) {
            put_probe(d, undos[i].name);
        }
        put(d, ",'timeout':'2s','retry':{'max_attempts':8,'initial':'200ms','max':'2s'}}");
    }
    put(d, "]");
}

/* --- steps --- */

struct shape { /* the steps of one saga so far */
    uint32_t count, calls;
    bool gives_id[STEPS_MAX]; /* the step certainly has a result with an id */
    bool is_group_of_items;
};

static uint32_t draw_kit(struct draft *d)
{
    uint32_t kit = percent(d, 30) ? below(d, 2) : below(d, KIT_COUNT - KIT_TERMINALS);

    return kit;
}

static void use_kit(struct draft *d, uint32_t kit)
{
    d->kits_used |= BIT(kit);
    if (kits[kit].undo != UNDO_NONE) {
        d->undos_used |= BIT(kits[kit].undo);
    }
}

static void put_call(struct draft *d, struct shape *shape, uint32_t kit, bool for_each, int32_t from)
{
    use_kit(d, kit);
    put(d, "'call':'");
    put(d, kits[kit].name);
    put_number(d, "','with':{'n':'${ .input.n }','refuse':'${ .input.r", shape->calls++ % VARIANT_REFUSALS, " }'");
    if (kits[kit].traits & TRAIT_MIXED) {
        put(d, percent(d, 50) ? ",'odd':'${ .input.t }'" : ",'odd':false");
    }
    if (from >= 0) {
        put_number(d, ",'of':'${ .steps.a", (uint32_t)from, ".result.id }'");
    }
    put(d, for_each ? ",'item':'${ .item }'}" : "}");
    if (percent(d, 15)) {
        put(d, ",'scope':'${ .input.n }'");
    }
}

/* Draws the step, if any, whose result this one uses: the step right before, when it certainly has a result. */
static int32_t draw_from(struct draft *d, const struct shape *shape, bool has_after)
{
    return !has_after && shape->count > 0 && shape->gives_id[shape->count - 1] && percent(d, 30)
               ? (int32_t)shape->count - 1
               : -1;
}

static void put_wait(struct draft *d)
{
    static const char *const sleeps[] = {"'sleep':'300ms'", "'sleep':'3s'", "'sleep':'2001-01-01T00:00:00Z'",
                                         "'sleep':'12s'"};
    static const char *const timeouts[] = {"", ",'timeout':'4s'", ",'timeout':'30s'"};

    switch (below(d, 3)) {
    case 0:
        put(d, sleeps[below(d, 4)]);
        break;
    case 1:
        put_number(d, "'signal':{'name':'g", below(d, 2), "'");
        put(d, timeouts[below(d, 3)]);
        put(d, "}");
        break;
    case 2:
        put(d, "'approve':{'show':{'n':'${ .input.n }'}");
        put(d, timeouts[below(d, 3)]);
        put(d, percent(d, 20) ? ",'roles':['admin']}" : "}");
        break;
    }
}

static void put_after(struct draft *d, const struct shape *shape, bool all)
{
    bool any = false;

    put(d, ",'after':[");
    for (uint32_t i = 0; i < shape->count; i++) {
        if (all || percent(d, d->is_wide ? 10 : 40)) {
            put_number(d, any ? ",'a" : "'a", i, "'");
            any = true;
        }
    }
    put(d, "]");
}

static void put_step(struct draft *d, struct shape *shape, bool is_child)
{
    bool for_each = d->groups && percent(d, 20),
         has_after = d->branches && shape->count > 0 && percent(d, d->is_wide ? 85 : 50);
    bool plain = true, is_call = false;
    int32_t from = draw_from(d, shape, has_after);
    uint32_t luck = below(d, 100), kit = draw_kit(d);

    put_number(d, "{'id':'a", shape->count, "',");
    if (d->children && !is_child && luck < 30) {
        put(d, "'saga':'c0','with':'${ .input }'");
        d->has_child = true;
    } else if (d->waits && luck < 60) {
        put_wait(d);
    } else {
        put_call(d, shape, kit, for_each, from);
        is_call = true;
    }
    if (for_each) {
        put_number(d, ",'for_each':'${ .input.l", below(d, 4), " }'");
        if (percent(d, 50)) {
            put_number(d, ",'concurrency':", 1 + below(d, 3), "");
        }
        plain = false;
    }
    if (has_after) {
        put_after(d, shape, false);
    }
    if (d->conditions && percent(d, 25)) {
        put(d, percent(d, 50) ? ",'when':'${ .input.t }'" : ",'when':'${ .input.f }'");
        plain = false;
    }
    if (percent(d, 20)) {
        bool goes_on = percent(d, 50);

        put(d, goes_on ? ",'on_failure':'continue'" : ",'on_failure':'escalate'");
        plain = false;
    }
    put(d, "}");
    shape->gives_id[shape->count] = plain && is_call && kits[kit].effect != EFFECT_READ;
    shape->count++;
}

static void put_last(struct draft *d, struct shape *shape) /* puts a terminal step */
{
    uint32_t kit = KIT_COUNT - 1 - below(d, KIT_TERMINALS);

    put_number(d, ",\n  {'id':'a", shape->count, "',");
    put_call(d, shape, kit, false, -1);
    put_after(d, shape, true);
    put(d, "}");
    shape->count++;
}

/* --- sagas --- */

static void put_members(struct draft *d, bool is_child, bool leads)
{
    if (d->deadlines && percent(d, 40)) {
        put(d, percent(d, 50) ? "'deadline':'8s'," : "'deadline':'1m',");
    }
    if (percent(d, 25)) {
        put_number(d, "'compensation':{'concurrency':", 2 + below(d, 2), "},");
    }
    if (percent(d, 30)) {
        put(d, "'output':{'a':'${ .input.n }'},");
    }
    if (is_child) {
        return;
    }
    if (d->locks && percent(d, 60)) {
        put(d,
            percent(d, 75) ? "'locks':['k:${ .input.n }'" : "'locks':[{'key':'k:${ .input.n }','when_taken':'fail'}");
        put(d, percent(d, 30) ? ",'all']," : "],");
    }
    if (leads) {
        put(d, percent(d, 50) ? "'then':[{'saga':'f0','input':'${ .input }'}],"
                              : "'then':[{'saga':'f0','id':'f-${ .saga.id }'}],");
        d->has_follower = true;
    }
    if (percent(d, 8)) {
        put_number(d, "'budget':{'calls':", 1 + below(d, 4), ",'micros':450},");
    }
}

static void put_saga(struct draft *d, const char *name, uint32_t index, uint32_t steps_max)
{
    bool is_child = *name == 'c', terminal = *name == 's' && percent(d, 25);
    uint32_t count = 1 + below(d, steps_max);
    struct shape shape = {0};

    put(d, "{'name':'");
    put(d, name);
    put_number(d, "", index, "',");
    put_members(d, is_child, *name == 's' && index == 0 && percent(d, 20));
    put(d, "'steps':[\n  ");
    for (uint32_t i = 0; i < count; i++) {
        put(d, i ? ",\n  " : "");
        put_step(d, &shape, is_child || *name == 'f');
    }
    if (terminal) {
        put_last(d, &shape);
    }
    put(d, "]}");
}

/* Draws sagas before tools, because the sagas decide which tools exist; in the document they are behind the tools.
 * Children are drawn before their parents. */
void draw_definitions(struct chance *chance, struct buffer *out, uint32_t *saga_count, uint32_t size_percent,
                      bool is_wide)
{
    struct buffer main_sagas, others;
    struct draft draft = {.chance = chance}, *d = &draft;
    uint32_t size = 1 + (STEPS_MAX - 2) * (is_wide && size_percent < 50 ? 50 : size_percent) / 100;

    buffer_init(&main_sagas, 65536);
    buffer_init(&others, 65536);
    d->groups = percent(d, 35);
    d->children = percent(d, 30);
    d->waits = percent(d, 50);
    d->conditions = percent(d, 35);
    d->branches = percent(d, 40) || is_wide;
    d->is_wide = is_wide;
    d->locks = percent(d, 30);
    d->deadlines = percent(d, 40);
    *saga_count = 1 + below(d, size_percent > 50 ? SAGAS_MAX : 2);
    d->out = &main_sagas;
    for (uint32_t i = 0; i < *saga_count; i++) {
        put(d, i ? ",\n" : "");
        put_saga(d, "s", i, size);
    }
    d->out = &others;
    if (d->has_child) {
        put_saga(d, "c", 0, 2);
        put(d, ",\n");
    }
    if (d->has_follower) {
        d->waits = false;
        d->groups = false;
        put_saga(d, "f", 0, 1);
        put(d, ",\n");
    }
    use_kit(d, 0); /* the tools of agents always exist */
    use_kit(d, below(d, KIT_COUNT - KIT_TERMINALS));
    d->out = out;
    put(d, "{");
    put_tools(d);
    put(d, ",\n'sagas':[\n");
    buffer_put_slice(out, buffer_slice(&others));
    buffer_put_slice(out, buffer_slice(&main_sagas));
    put(d, "]}");
    CHECK(!main_sagas.overflow && !others.overflow && !out->overflow);
    buffer_fini(&main_sagas);
    buffer_fini(&others);
}
