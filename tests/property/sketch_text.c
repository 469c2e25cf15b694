/* Writes a sketch as JSON, and compiles it. */
#include "tests/property/sketch.h"

#include <string.h>

#include "base/json.h"

/* --- with ' for ", to be readable here --- */

static void put(struct buffer *out, const char *text)
{
    for (const char *c = text; *c; c++) {
        buffer_put_char(out, *c == '\'' ? '"' : *c);
    }
}

static void put_number(struct buffer *out, const char *before, uint32_t number, const char *after)
{
    put(out, before);
    buffer_printf(out, "%u", (unsigned)number);
    put(out, after);
}

/* --- tools --- */

#define PROBE                                                                                                          \
    ",'probe':{'builtin':{'do':'echo'},'outcome':{'completed':'${ .response.ok }','absent':'${ .response.no "          \
    "}'},'visibility':'5s','give_up_after':'1h'}"

static void put_class(struct buffer *out, enum effect effect)
{
    put(out, ",'effect':'");
    put(out, effect_name(effect));
    put(out, effect == EFFECT_KEYED ? "','key':{'window':'60s'}" : "'");
}

static void put_undo(struct buffer *out, const struct kit *kit)
{
    put(out, ",'compensate':{'tool':'");
    put(out, kit->undo);
    put(out, kit->tolerates_absent ? "','with':{'id':'${ .key }'}" : "','with':{'id':'${ .result.id }'}");
    put(out, kit->tolerates_absent ? ",'tolerates_absent':true" : "");
    put(out, kit->voids_key ? ",'voids_key':true,'give_up_after':'10m'}" : ",'give_up_after':'10m'}");
}

#define TAKES(member, type)                                                                                            \
    ",'input':{'type':'object','required':['" member "'],'properties':{'" member "':{'type':'" type "'}}}"

static void put_kit(struct buffer *out, const struct kit *kit)
{
    put(out, "{'name':'");
    put(out, kit->name);
    put(out, "','builtin':{'do':'echo'}");
    if (kit->conditional) {
        put(out, ",'effect':{'if':'${ .args.odd }','then':'keyed','else':'once'},'key':{'window':'60s'}");
    } else {
        put_class(out, kit->effect);
    }
    put(out, kit->probed ? PROBE : "");
    put(out, kit->picky ? TAKES("n", "integer") : "");
    put(out, kit->terminal ? ",'terminal':true" : "");
    put(out, kit->guarded ? ",'rate':{'limit':1,'per':'1s'}" : "");
    put(out, kit->costs ? ",'cost':100" : "");
    if (kit->undo) {
        put_undo(out, kit);
    }
    put(out, "},");
}

static bool uses(const struct sketch *sketch, uint32_t kit)
{
    for (uint32_t s = 0; s < sketch->saga_count; s++) {
        for (uint32_t i = 0; i < sketch->sagas[s].step_count; i++) {
            if (sketch->sagas[s].steps[i].kind == STEP_CALL && sketch->sagas[s].steps[i].kit == kit) {
                return true;
            }
        }
    }
    return false;
}

static bool undoes(const struct sketch *sketch, const char *tool)
{
    for (uint32_t s = 0; s < sketch->saga_count; s++) {
        for (uint32_t i = 0; i < sketch->sagas[s].step_count; i++) {
            const struct sketch_step *step = &sketch->sagas[s].steps[i];

            if (step->kind == STEP_CALL && ((kits[step->kit].undo && strcmp(kits[step->kit].undo, tool) == 0) ||
                                            (step->own_undo && strcmp(tool, "undo_keyed") == 0))) {
                return true;
            }
        }
    }
    return false;
}

static void put_tools(struct buffer *out, const struct sketch *sketch)
{
    for (uint32_t i = 0; i < kit_count; i++) {
        if (uses(sketch, i)) {
            put_kit(out, &kits[i]);
        }
    }
    if (undoes(sketch, "undo_checked")) {
        put(out, "{'name':'undo_checked','builtin':{'do':'echo'},'effect':'checked'" PROBE "},");
    }
    if (undoes(sketch, "undo_picky")) {
        put(out, "{'name':'undo_picky','builtin':{'do':'echo'},'effect':'idempotent'" TAKES("id", "string") "},");
    }
    if (undoes(sketch, "undo_keyed")) {
        put(out, "{'name':'undo_keyed','builtin':{'do':'echo'},'effect':'keyed','key':{'window':'60s'}},");
    }
    put(out, "{'name':'undo','builtin':{'do':'echo'},'effect':'idempotent'}");
}

/* --- steps --- */

static void put_with(struct buffer *out, const struct sketch_step *step)
{
    static const char *const of_calls[] = {"",
                                           ",'with':{'n':1}",
                                           ",'with':{'n':'${ .input.n }','odd':'${ .input.t }'}",
                                           ",'with':{'n':'${ .input.n + 1 }'}",
                                           ",'with':{'n':'${ .input.n.n }'}",
                                           ",'with':{'n':'${ .item }'}"};
    static const char *const of_sagas[] = {
        ",'with':'${ .input }'",
        ",'with':'${ .input }'",
        ",'with':'${ .input }'",
        ",'with':'${ .input | . }'",
        ",'with':'${ .input.n.n }'",
        ",'with':{'n':'${ .item }','t':true,'l0':[],'l1':[1],'l2':[1,2],'l3':[1,2,3],'l4':[1,2,3,4]}"};

    if (step->kind == STEP_CALL) {
        put(out, of_calls[step->with]);
    } else if (step->kind == STEP_SAGA) {
        put(out, of_sagas[step->with]);
    }
}

static void put_kind(struct buffer *out, const struct sketch_step *step)
{
    static const char *const sleeps[] = {"'sleep':'30s'", "'sleep':'2001-01-01T00:00:00Z'",
                                         "'sleep':'2023-11-14T22:14:00Z'", "'sleep':'${ .input.n | tostring }'",
                                         "'sleep':'${ .input.l1 }'"};

    switch (step->kind) {
    case STEP_CALL:
        put(out, "'call':'");
        put(out, kits[step->kit].name);
        put(out, "'");
        break;
    case STEP_SAGA:
        put_number(out, "'saga':'c", step->child, "'");
        break;
    case STEP_SLEEP:
        put(out, sleeps[step->sleep]);
        break;
    case STEP_SIGNAL:
        put_number(out, "'signal':{'name':'g", step->signal, "'");
        put(out, step->timeout_s ? ",'timeout':'30s'}" : "}");
        break;
    case STEP_APPROVE:
        put(out, step->shows ? "'approve':{'show':{'n':'${ .input.n }'}" : "'approve':{'show':'${ .input.n + 1 }'");
        put(out, step->timeout_s ? ",'timeout':'30s'" : "");
        put(out, step->admin_only ? ",'roles':['admin']}" : "}");
        break;
    }
}

static void put_after(struct buffer *out, const struct sketch_saga *saga, const struct sketch_step *step)
{
    bool any = false;

    if (!step->has_after) {
        return;
    }
    put(out, ",'after':[");
    for (uint32_t i = 0; i < saga->step_count; i++) {
        if (step->after & BIT(i)) {
            put(out, any ? ",'" : "'");
            put(out, saga->steps[i].id);
            put(out, "'");
            any = true;
        }
    }
    put(out, "]");
}

static void put_step(struct buffer *out, const struct sketch_saga *saga, const struct sketch_step *step)
{
    static const char *const whens[] = {"", ",'when':'${ .input.t }'", ",'when':'${ .input.none }'",
                                        ",'when':'${ .input.n > 0 }'", ",'when':'${ .input.n.n }'"};
    static const char *const scopes[] = {"", ",'scope':'${ .input.n }'", ",'scope':'${ .input.n + 1 }'"};
    static const char *const undos[] = {"", ",'compensate':{'tool':'undo_keyed','with':{'n':'${ .args }'}}",
                                        ",'compensate':{'tool':'undo_keyed','with':{'n':'${ .result.id // 1 }'}}"};
    static const char *const failures[] = {"", ",'on_failure':'escalate'", ",'on_failure':'continue'"};

    put(out, "{'id':'");
    put(out, step->id);
    put(out, "',");
    put_kind(out, step);
    put_with(out, step);
    put_after(out, saga, step);
    put(out, whens[step->when]);
    put(out, failures[step->on_failure]);
    if (step->kind == STEP_CALL) {
        put(out, scopes[step->scope]);
        put(out, undos[step->own_undo]);
    }
    if (step->each == EACH_NO_ARRAY) {
        put(out, ",'for_each':'${ .input.n }'");
    } else if (step->each) {
        put_number(out, ",'for_each':'${ .input.l", step->elements, step->each == EACH_PATH ? " }'" : " | . }'");
    }
    if (step->each && step->concurrency) {
        put_number(out, ",'concurrency':", step->concurrency, "");
    }
    put(out, "}");
}

/* --- sagas --- */

static void put_outermost(struct buffer *out, const struct sketch_saga *saga)
{
    if (saga->lock_count) {
        put(out, "'locks':[");
        for (uint32_t i = 0; i < saga->lock_count; i++) {
            const char *which = saga->locks[i].same ? "0" : i == 0 ? "0" : i == 1 ? "b" : "a";

            put(out, i ? "," : "");
            put(out, saga->locks[i].fails ? "{'key':'" : "'");
            put(out, which);
            put(out, saga->locks[i].program ? ":${ .input.n + 1 }'" : ":${ .input.n }'");
            put(out, saga->locks[i].fails ? ",'when_taken':'fail'}" : "");
        }
        put(out, "],");
    }
    if (saga->follower_count) {
        put(out, "'then':[");
        for (uint32_t i = 0; i < saga->follower_count; i++) {
            put(out, i ? ",{'saga':'c0'" : "{'saga':'c0'");
            put(out, i ? "" : ",'input':{'n':'${ .input.n }'}");
            put(out, saga->follower_named ? ",'id':'f-${ .saga.id }'}" : "}");
        }
        put(out, "],");
    }
    if (saga->budget_calls) {
        put_number(out, "'budget':{'calls':", saga->budget_calls, ",'micros':450},");
    }
}

static void put_saga(struct buffer *out, const struct sketch *sketch, uint32_t index)
{
    const struct sketch_saga *saga = &sketch->sagas[index];

    put_number(out, "{'name':'c", index, "',");
    if (saga->strict && index > 0) {
        put(out, "'input':{'type':'object','required':['n'],'properties':{'n':{'type':'integer'}}},");
    }
    if (saga->deadline_s) {
        put(out, "'deadline':'2m',");
    }
    if (saga->undo_concurrency) {
        put_number(out, "'compensation':{'concurrency':", saga->undo_concurrency, "},");
    }
    if (saga->output == OUTPUT_STEP) {
        put(out, "'output':{'a':'${ .steps.");
        put(out, saga->steps[0].id);
        put(out, ".result }'},");
    } else if (saga->output == OUTPUT_PROGRAM) {
        put(out, "'output':{'a':'${ .input | length }'},");
    } else if (saga->output == OUTPUT_BROKEN) {
        put(out, "'output':{'a':'${ .input.n.n }'},");
    }
    if (index == 0) {
        put_outermost(out, saga);
    }
    put(out, "'steps':[");
    for (uint32_t i = 0; i < saga->step_count; i++) {
        put(out, i ? "," : "");
        put_step(out, saga, &saga->steps[i]);
    }
    put(out, "]}");
}

static bool is_reached(const struct sketch *sketch, uint32_t saga)
{
    bool reached = saga == 0;

    for (uint32_t s = 0; s < saga && !reached; s++) { /* children are behind their parents */
        for (uint32_t i = 0; i < sketch->sagas[s].step_count; i++) {
            const struct sketch_step *step = &sketch->sagas[s].steps[i];

            reached = reached || (step->kind == STEP_SAGA && step->child == saga && is_reached(sketch, s));
        }
    }
    return reached;
}

void sketch_write(const struct sketch *sketch, struct buffer *out)
{
    put(out, "{'tools':[");
    put_tools(out, sketch);
    put(out, "],'sagas':[");
    for (uint32_t i = sketch->saga_count; i-- > 0;) {
        if (is_reached(sketch, i)) {
            put_saga(out, sketch, i);
            put(out, i ? "," : "");
        }
    }
    put(out, "]}");
    CHECK(!out->overflow);
}

/* --- compiled --- */

static bool find_in(struct slice list, struct slice name, struct slice *body, uint32_t *version_found)
{
    struct json_walk walk = json_walk(list);
    struct slice item, text;

    while (json_next_element(&walk, &item)) {
        text = json_member(item, "name");
        if (text.len == name.len + 2 && memcmp(text.ptr + 1, name.ptr, name.len) == 0) {
            *body = item;
            *version_found = 1;
            return true;
        }
    }
    return false;
}

struct sketch_source {
    struct slice document;
    const struct definition *pinned; /* NULL when all tools have version 1 */
    struct slice mended;             /* the one tool that has another version */
    uint32_t version;                /* the version of the mended tool */
    struct arena *arena;
};

static uint32_t version_of(const struct sketch_source *source, struct slice name)
{
    uint32_t pinned = source->pinned ? definition_tool_version(source->pinned, name) : 0;

    return slice_equal(name, source->mended) ? source->version : pinned ? pinned : 1;
}

/* Returns the tool in another class: one that may be repeated freely instead of one that may not, or the reverse. */
static struct slice in_another_class(struct slice name, struct arena *arena)
{
    struct slice body = SLICE_NONE;
    struct buffer text;

    buffer_init(&text, 4096);
    for (uint32_t i = 0; i < kit_count; i++) {
        struct kit kit = kits[i];

        if (slice_is(name, kit.name)) {
            kit.effect = kit.effect == EFFECT_ONCE || kit.conditional ? EFFECT_KEYED : EFFECT_ONCE;
            kit.conditional = false;
            put_kit(&text, &kit);
            body = arena_slice(arena, (struct slice){text.ptr, text.len - 1}); /* without the trailing comma */
        }
    }
    buffer_fini(&text);
    return body;
}

static struct slice in_version(struct slice body, uint32_t version, struct arena *arena)
{
    return version == 1 ? body
                        : arena_printf(arena, "%.*s,\"timeout\":\"%us\"}", (int)body.len - 1, body.ptr,
                                       (unsigned)(30 + version));
}

static bool find_tool(void *context, struct slice name, uint32_t version, struct slice *body, uint32_t *version_found)
{
    const struct sketch_source *source = context;

    (void)version;
    if (!find_in(json_member(source->document, "tools"), name, body, version_found)) {
        return false;
    }
    *version_found = version_of(source, name);
    *body = *version_found == SKETCH_VERSION_BAD ? in_another_class(name, source->arena)
                                                 : in_version(*body, *version_found, source->arena);
    return body->ptr != NULL;
}

static bool find_saga(void *context, struct slice name, uint32_t version, struct slice *body, uint32_t *version_found)
{
    (void)version;
    return find_in(json_member(((const struct sketch_source *)context)->document, "sagas"), name, body, version_found);
}

static struct definition *compile(const struct sketch *sketch, struct sketch_source *from, struct slice *why)
{
    struct tool_source source = {find_tool, from, find_saga};
    struct definition *definition;
    struct buffer text;
    struct slice body;
    struct faults faults;
    struct err err;
    uint32_t version;

    buffer_init(&text, 65536);
    sketch_write(sketch, &text);
    from->document = arena_slice(from->arena, buffer_slice(&text));
    buffer_fini(&text);
    if (json_check(from->document, &json_limits_default, &err) != ERR_OK) {
        check_failed(__FILE__, __LINE__, from->document.ptr);
    }
    CHECK(find_in(json_member(from->document, "sagas"), SLICE("c0"), &body, &version));
    faults_init(&faults, from->arena);
    definition = definition_compile(body, 1, &source, SLICE("/sagas/0"), from->arena, &faults);
    if (faults.count > 0) {
        *why = arena_printf(from->arena, "%.*s: %.*s", SLICE_ARG(faults.items[0].pointer),
                            SLICE_ARG(faults.items[0].detail));
        return NULL;
    }
    return definition;
}

struct definition *sketch_compile(const struct sketch *sketch, struct arena *arena, struct slice *why)
{
    struct sketch_source from = {.arena = arena};

    return compile(sketch, &from, why);
}

struct definition *sketch_mend(const struct sketch *sketch, const struct definition *definition, struct slice tool,
                               uint32_t version, struct arena *arena)
{
    struct sketch_source from = {.pinned = definition, .mended = tool, .version = version, .arena = arena};
    struct slice why;

    return compile(sketch, &from, &why);
}
