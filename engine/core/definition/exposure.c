/* The member `expose`, and the list of what is offered. Everything is read from the text of a definition: nothing of it
 * matters to a saga, so compiled definitions know nothing of it. */
#include "core/definition/exposure.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/map.h"

#define NAME_HEAD_BYTES 51 /* what stays of a name that is too long, before _ and 12 digits of its digest */
#define TITLE_BYTES_MAX 128
#define SETS_MAX 16 /* the sets of one definition */

/* --- the member --- */

static void check_argument(const struct members *m, const char *name, struct slice tool)
{
    struct slice properties = json_type(json_member(tool, "input")) == JSON_OBJECT
                                  ? json_member(json_member(tool, "input"), "properties")
                                  : SLICE_NONE;
    bool wanted = false;

    if (members_bool(m, name, &wanted) && wanted && json_type(properties) == JSON_OBJECT &&
        json_member(properties, name).ptr) {
        faults_add(m->faults, members_pointer(m, name),
                   "the tool has an argument `%s` of its own, so the model cannot fill the `%s` of the call with it; "
                   "leave it out, or rename the argument",
                   name, name);
    }
}

static bool offer_set_is_good(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '_' && c != '-') {
            return false;
        }
    }
    return name.len > 0 && name.len <= OFFER_NAME_BYTES_MAX;
}

static void check_sets(const struct members *m)
{
    struct slice sets = members_at(m, "sets"), item;
    struct json_walk walk = json_walk(sets);
    bool good = json_type(sets) == JSON_ARRAY && json_count(sets) > 0 && json_count(sets) <= SETS_MAX;

    while (good && json_next_element(&walk, &item)) {
        struct slice name = json_string(item, m->arena);

        good = name.ptr && offer_set_is_good(name);
    }
    if (sets.ptr && !good) {
        faults_add(m->faults, members_pointer(m, "sets"),
                   "not an array of 1 to %d names of sets, each of 1 to %d characters A-Z a-z 0-9 _ -", SETS_MAX,
                   OFFER_NAME_BYTES_MAX);
    }
}

static void check_output(const struct members *m)
{
    struct slice output = members_at(m, "output"), type = json_member(output, "type");

    if (output.ptr && (json_type(output) != JSON_OBJECT || (type.ptr && !json_string_is(type, "object")))) {
        faults_add(m->faults, members_pointer(m, "output"),
                   "not a JSON Schema of an object; clients take results of other types without a schema only");
    }
}

void exposure_check(const struct members *tool)
{
    struct slice value = members_at(tool, "expose"), title;
    bool ignored; /* only its fault counts here */
    struct members m;

    if (!value.ptr || json_type(value) == JSON_BOOL ||
        !members_open(&m, value, members_pointer(tool, "expose"), "`expose`", "title step scope open_world sets output",
                      "", tool->arena, tool->faults)) {
        return;
    }
    if (members_text(&m, "title", &title) && (title.len == 0 || title.len > TITLE_BYTES_MAX)) {
        faults_add(m.faults, members_pointer(&m, "title"), "a title has 1 to %d bytes", TITLE_BYTES_MAX);
    }
    (void)members_bool(&m, "open_world", &ignored);
    check_sets(&m);
    check_output(&m);
    check_argument(&m, "step", tool->object);
    check_argument(&m, "scope", tool->object);
}

static struct exposure exposure_of(struct slice body, struct arena *arena)
{
    struct exposure exposure = {.is_offered = true, .is_open_world = true};
    struct slice value = json_member(body, "expose");

    exposure.is_given = value.ptr != NULL;
    if (json_type(value) == JSON_BOOL) {
        (void)json_bool(value, &exposure.is_offered); /* it is one */
    } else if (value.ptr) {
        (void)json_bool(json_member(value, "step"), &exposure.step); /* absent: the default, here */
        (void)json_bool(json_member(value, "scope"), &exposure.scope);
        (void)json_bool(json_member(value, "open_world"), &exposure.is_open_world);
        exposure.title = json_string(json_member(value, "title"), arena);
        exposure.sets = json_member(value, "sets");
        exposure.output = json_member(value, "output");
    }
    return exposure;
}

bool exposure_is_in_set(const struct exposure *exposure, struct slice set)
{
    struct json_walk walk = json_walk(exposure->sets);
    struct slice item;

    if (json_type(exposure->sets) != JSON_ARRAY) {
        return false;
    }
    while (json_next_element(&walk, &item)) {
        if (item.len == set.len + 2 && slice_equal((struct slice){item.ptr + 1, set.len}, set)) {
            return true; /* names have no character that is escaped */
        }
    }
    return false;
}

/* --- names --- */

static struct slice offer_name(const char *prefix, struct slice name, struct arena *arena)
{
    struct slice whole = arena_printf(arena, "%s%.*s", prefix, SLICE_ARG(name));
    char *text = arena_text(arena, whole), hex[65];
    struct digest digest;

    for (size_t i = 0; i < whole.len; i++) {
        text[i] = text[i] == '.' ? '_' : text[i]; /* the one character of names that clients do not take */
    }
    if (whole.len <= OFFER_NAME_BYTES_MAX) {
        return (struct slice){text, whole.len};
    }
    digest = digest_sha256(whole);
    digest_hex(&digest, hex);
    return arena_printf(arena, "%.*s_%.12s", NAME_HEAD_BYTES, text, hex);
}

static struct slice name_of(const struct offered *definition, struct arena *arena)
{
    return offer_name(definition->kind == DEFINITION_SAGA ? "start_" : "", definition->name, arena);
}

static bool is_own_name(struct slice name) /* a tool that sagad offers beside the registered ones */
{
    static const char *const own[] = {"saga_open", "saga_status", "saga_complete", "saga_abort", "operation_status"};

    for (size_t i = 0; i < COUNT_OF(own); i++) {
        if (slice_is(name, own[i])) {
            return true;
        }
    }
    return false;
}

/* --- what is offered --- */

static void add_undo(struct slice holder, struct arena *arena, struct map *undos)
{
    struct slice compensate = json_type(holder) == JSON_OBJECT ? json_member(holder, "compensate") : SLICE_NONE;
    struct slice tool =
        json_type(compensate) == JSON_OBJECT ? json_string(json_member(compensate, "tool"), arena) : SLICE_NONE;

    if (tool.ptr) {
        map_put(undos, tool.ptr, tool.len, undos);
    }
}

/* The names of all tools that undo a tool, or a step of a saga. */
static void find_undos(const struct offered *definitions, size_t count, struct arena *arena, struct map *undos)
{
    for (size_t i = 0; i < count; i++) {
        struct json_walk walk = json_walk(json_member(definitions[i].body, "steps"));
        struct slice step;

        if (definitions[i].kind == DEFINITION_TOOL) {
            add_undo(definitions[i].body, arena, undos);
            continue;
        }
        while (json_next_element(&walk, &step)) {
            add_undo(step, arena, undos);
            add_undo(json_member(step, "call"), arena, undos); /* a tool that is written in place */
        }
    }
}

/* Only the arguments that a schema names can be told from those that the model adds for sagad. */
static bool has_room_for(struct slice input, const char *argument)
{
    static const char *const closed[] = {"allOf", "anyOf",         "oneOf",         "not",          "if",
                                         "$ref",  "propertyNames", "maxProperties", "minProperties"};

    if (json_type(input) != JSON_OBJECT) {
        return true; /* without a schema nothing else is known of its arguments */
    }
    for (size_t i = 0; i < COUNT_OF(closed); i++) {
        if (json_member(input, closed[i]).ptr) {
            return false;
        }
    }
    return !json_member(json_member(input, "properties"), argument).ptr;
}

static bool takes_an_object(struct slice input)
{
    struct slice type = json_type(input) == JSON_OBJECT ? json_member(input, "type") : SLICE_NONE, element;
    struct json_walk walk = json_walk(type);

    if (json_type(type) == JSON_ARRAY) {
        while (json_next_element(&walk, &element)) {
            if (json_string_is(element, "object")) {
                return true;
            }
        }
        return false;
    }
    return !type.ptr || json_string_is(type, "object");
}

static bool offer_of(const struct offered *definition, const struct map *undos, struct arena *arena, struct offer *out)
{
    struct slice body = definition->body, input = json_member(body, "input"), effect = json_member(body, "effect");
    bool is_tool = definition->kind == DEFINITION_TOOL;

    *out = (struct offer){.name = name_of(definition, arena),
                          .kind = definition->kind,
                          .definition = definition->name,
                          .body = body,
                          .exposure = exposure_of(body, arena),
                          .reads = is_tool && json_string_is(effect, "read"),
                          .coalesces = true};
    if (!out->exposure.is_offered || (!is_tool && !out->exposure.is_given) || is_own_name(out->name) ||
        !takes_an_object(input) || (!is_tool && json_member(body, "retired").ptr)) {
        return false;
    }
    if (is_tool) {
        struct slice again = json_member(body, "on_duplicate");

        (void)json_bool(json_member(body, "terminal"), &out->is_terminal); /* absent: false */
        out->coalesces = !again.ptr || json_string_is(again, "coalesce");
        if (!out->reads && !out->is_terminal && !json_member(body, "compensate").ptr) {
            return false; /* it can only be a compensator */
        }
        if (!out->exposure.is_given && map_find(undos, definition->name.ptr, definition->name.len)) {
            return false;
        }
        out->takes_saga = !out->reads && has_room_for(input, "saga");
    }
    out->takes_step = out->exposure.step && has_room_for(input, "step");
    out->takes_scope = out->exposure.scope && has_room_for(input, "scope");
    return true;
}

static int compare_offers(const void *a, const void *b)
{
    const struct offer *x = a, *y = b;

    return slice_compare(x->name, y->name);
}

void offers_build(const struct offered *definitions, size_t count, struct offers *out)
{
    size_t found = 0, kept = 0;
    struct map undos;

    *out = (struct offers){0};
    arena_init(&out->arena, 4096);
    map_init(&undos);
    find_undos(definitions, count, &out->arena, &undos);
    out->items = arena_array(&out->arena, count + 1, sizeof(*out->items));
    for (size_t i = 0; i < count; i++) {
        found += offer_of(&definitions[i], &undos, &out->arena, &out->items[found]);
    }
    map_fini(&undos);
    qsort(out->items, found, sizeof(*out->items), compare_offers);
    for (size_t i = 0; i < found;) {
        size_t same = 1;

        while (i + same < found && slice_equal(out->items[i].name, out->items[i + same].name)) {
            same++;
        }
        if (same == 1) {
            out->items[kept++] = out->items[i];
        }
        i += same;
    }
    out->count = kept;
}

void offers_fini(struct offers *offers)
{
    arena_fini(&offers->arena);
    *offers = (struct offers){0};
}

const struct offer *offers_find(const struct offers *offers, struct slice name)
{
    const struct offer wanted = {.name = name};

    return offers->count ? bsearch(&wanted, offers->items, offers->count, sizeof(wanted), compare_offers) : NULL;
}

/* --- registration --- */

static bool may_be_offered(const struct offered *definition, struct arena *arena)
{
    struct exposure exposure = exposure_of(definition->body, arena);

    return exposure.is_offered && (definition->kind == DEFINITION_TOOL || exposure.is_given);
}

static bool is_same_definition(const struct offered *a, const struct offered *b)
{
    return a->kind == b->kind && slice_equal(a->name, b->name);
}

static bool is_replaced(const struct offered *definition, const struct offered *fresh, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (is_same_definition(definition, &fresh[i])) {
            return true;
        }
    }
    return false;
}

void offers_check(const struct offered *fresh, const struct slice *pointers, size_t fresh_count,
                  const struct offered *registered, size_t registered_count, struct arena *arena, struct faults *faults)
{
    struct map taken;

    map_init(&taken);
    for (size_t i = 0; i < registered_count; i++) {
        if (may_be_offered(&registered[i], arena) && !is_replaced(&registered[i], fresh, fresh_count)) {
            struct slice name = name_of(&registered[i], arena);

            map_put(&taken, name.ptr, name.len, (void *)&registered[i]);
        }
    }
    for (size_t i = 0; i < fresh_count; i++) {
        struct slice name = name_of(&fresh[i], arena), place = json_pointer_join(arena, pointers[i], SLICE("name"));
        const struct offered *other = map_find(&taken, name.ptr, name.len);

        if (!may_be_offered(&fresh[i], arena)) {
            continue;
        }
        if (is_own_name(name)) {
            faults_add(faults, place,
                       "over the Model Context Protocol this would be `%.*s`, a tool that sagad has itself; choose "
                       "another name, or \"expose\": false",
                       SLICE_ARG(name));
        } else if (other) {
            faults_add(faults, place,
                       "over the Model Context Protocol this and the %s `%.*s` would both be `%.*s`; rename one, or "
                       "give it \"expose\": false",
                       other->kind == DEFINITION_TOOL ? "tool" : "saga", SLICE_ARG(other->name), SLICE_ARG(name));
        } else {
            map_put(&taken, name.ptr, name.len, (void *)&fresh[i]);
        }
    }
    map_fini(&taken);
}
