/*
 * Compiles a JSON Schema to a graph of checks without loops: `$ref` may point to one schema from many places. Two
 * values are equal when their canonical forms are.
 */
#include "core/language/schema.h"

#include <string.h>

#include "base/canon.h"
#include "core/language/decimal.h"
#include "core/language/members.h"
#include "core/language/schema_parts.h"

#define KNOWN                                                                                                          \
    "type enum const required properties additionalProperties propertyNames items prefixItems contains minContains "   \
    "maxContains uniqueItems minItems maxItems minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum " \
    "multipleOf minProperties maxProperties allOf anyOf oneOf not if then else $ref $defs title description default "  \
    "examples format $schema $comment"
#define LATER                                                                                                          \
    "pattern $id $anchor $dynamicRef $dynamicAnchor $vocabulary dependentSchemas dependentRequired patternProperties " \
    "unevaluatedItems unevaluatedProperties readOnly writeOnly deprecated contentEncoding contentMediaType "           \
    "contentSchema definitions"
#define ENUM_MAX 1024
#define LEVELS_MAX 128 /* the depth of schemas within schemas, also through `$ref`; it bounds the stack of a check */
#define REF_BEGINS "#/$defs/"
#define DRAFT "https://json-schema.org/draft/2020-12/schema"

const struct schema_bound schema_bounds[BOUND_COUNT] = {
    [BOUND_MIN_ITEMS] = {"minItems", JSON_ARRAY, false, "elements"},
    [BOUND_MAX_ITEMS] = {"maxItems", JSON_ARRAY, true, "elements"},
    [BOUND_MIN_LENGTH] = {"minLength", JSON_STRING, false, "characters"},
    [BOUND_MAX_LENGTH] = {"maxLength", JSON_STRING, true, "characters"},
    [BOUND_MIN_PROPERTIES] = {"minProperties", JSON_OBJECT, false, "members"},
    [BOUND_MAX_PROPERTIES] = {"maxProperties", JSON_OBJECT, true, "members"},
};

const struct schema_limit schema_limits[LIMIT_COUNT] = {
    [LIMIT_MINIMUM] = {"minimum", "at least", -1, false},
    [LIMIT_MAXIMUM] = {"maximum", "at most", 1, false},
    [LIMIT_EXCLUSIVE_MINIMUM] = {"exclusiveMinimum", "greater than", -1, true},
    [LIMIT_EXCLUSIVE_MAXIMUM] = {"exclusiveMaximum", "less than", 1, true},
};

static const char *const group_keywords[GROUP_COUNT] = {
    [GROUP_PREFIX] = "prefixItems",
    [GROUP_ALL] = "allOf",
    [GROUP_ANY] = "anyOf",
    [GROUP_ONE] = "oneOf",
};

struct schema_compiler {
    struct arena *arena;
    struct faults *faults;
    struct schema *all;
    struct property *defs; /* `$defs` of the whole schema */
    size_t def_count;
};

static struct schema *compile(struct schema_compiler *c, struct slice json, struct slice pointer);

static unsigned type_bit(struct slice name)
{
    static const struct {
        const char *name;
        unsigned type;
    } types[] = {
        {"null", JSON_NULL},   {"boolean", JSON_BOOL},  {"number", JSON_NUMBER},   {"string", JSON_STRING},
        {"array", JSON_ARRAY}, {"object", JSON_OBJECT}, {"integer", TYPE_INTEGER},
    };

    for (size_t i = 0; i < COUNT_OF(types); i++) {
        if (slice_is(name, types[i].name)) {
            return BIT(types[i].type);
        }
    }
    return 0;
}

static void compile_one_type(struct schema *schema, struct slice value, struct slice pointer, struct members *m)
{
    static const char names[] = "null boolean integer number string array object";
    struct slice name = json_type(value) == JSON_STRING ? json_string(value, m->arena) : SLICE_NONE;
    unsigned bit = name.ptr ? type_bit(name) : 0;

    if (!bit) {
        faults_add(m->faults, pointer,
                   "%.*s is not a type; it must be null, boolean, integer, number, string, array or object%.*s",
                   SLICE_ARG(value_excerpt(value, m->arena)),
                   SLICE_ARG(did_you_mean(name.ptr ? word_near(name, names) : SLICE_NONE, m->arena)));
        return;
    }
    schema->types |= bit;
    schema->types_text = schema->types_text.ptr
                             ? arena_printf(m->arena, "%.*s or %.*s", SLICE_ARG(schema->types_text), SLICE_ARG(name))
                             : arena_slice(m->arena, name);
}

static void compile_type(struct schema *schema, struct members *m)
{
    struct slice value = members_at(m, "type"), pointer = members_pointer(m, "type"), item;

    if (!value.ptr) {
        return;
    }
    if (json_type(value) != JSON_ARRAY) {
        compile_one_type(schema, value, pointer, m);
        return;
    }
    struct json_walk walk = json_walk(value);
    size_t index = 0;

    while (json_next_element(&walk, &item)) {
        compile_one_type(schema, item, place_join_index(m->arena, pointer, index++), m);
    }
    if (index == 0) {
        faults_add(m->faults, pointer, "`type` is empty; it must name a type or be left out");
    }
}

static void compile_enum(struct schema *schema, struct members *m)
{
    struct slice value = members_at(m, "enum"), constant = members_at(m, "const"), item;

    if (value.ptr && constant.ptr) {
        faults_add(m->faults, members_pointer(m, "const"), "a schema with `enum` needs no `const`; keep one of them");
        return;
    }
    if (constant.ptr) {
        schema->enum_canonical = arena_array(m->arena, 1, sizeof(*schema->enum_canonical));
        schema->enum_canonical[schema->enum_count++] = canon(constant, NULL, 0, m->arena);
        schema->enum_text = arena_slice(m->arena, value_excerpt(constant, m->arena));
        return;
    }
    if (!value.ptr) {
        return;
    }
    if (json_type(value) != JSON_ARRAY || json_count(value) == 0 || json_count(value) > ENUM_MAX) {
        faults_add(m->faults, members_pointer(m, "enum"),
                   "`enum` is %.*s; it must be an array of the values that are allowed, of %d at most",
                   SLICE_ARG(value_excerpt(value, m->arena)), ENUM_MAX);
        return;
    }
    struct json_walk walk = json_walk(value);

    schema->enum_canonical = arena_array(m->arena, json_count(value), sizeof(*schema->enum_canonical));
    while (json_next_element(&walk, &item)) {
        schema->enum_canonical[schema->enum_count++] = canon(item, NULL, 0, m->arena);
    }
    schema->enum_text = arena_printf(m->arena, "one of %.*s", SLICE_ARG(value_excerpt(value, m->arena)));
}

static void compile_required(struct schema *schema, struct members *m)
{
    struct slice value = members_at(m, "required"), item;

    if (!value.ptr) {
        return;
    }
    if (json_type(value) != JSON_ARRAY || json_count(value) > NAMES_MAX) {
        faults_add(m->faults, members_pointer(m, "required"),
                   "`required` is %.*s; it must be an array of names, of %d at most",
                   SLICE_ARG(value_excerpt(value, m->arena)), NAMES_MAX);
        return;
    }
    struct json_walk walk = json_walk(value);

    schema->required = arena_array(m->arena, json_count(value) + 1, sizeof(*schema->required));
    for (size_t i = 0; json_next_element(&walk, &item); i++) {
        if (json_type(item) != JSON_STRING) {
            faults_add(m->faults, place_join_index(m->arena, members_pointer(m, "required"), i),
                       "%.*s is not the name of a member", SLICE_ARG(value_excerpt(item, m->arena)));
            continue;
        }
        schema->required[schema->required_count++] = arena_slice(m->arena, json_string(item, m->arena));
    }
}

/* Compiles `properties` or `$defs`. */
static struct property *compile_map(struct schema_compiler *c, struct members *m, const char *keyword, size_t *count)
{
    struct slice value = members_at(m, keyword), pointer = members_pointer(m, keyword), name_raw, item;

    if (!value.ptr) {
        return NULL;
    }
    if (json_type(value) != JSON_OBJECT || json_count(value) > NAMES_MAX) {
        faults_add(m->faults, pointer, "`%s` is %.*s; it must be an object of schemas, of %d at most", keyword,
                   SLICE_ARG(value_excerpt(value, m->arena)), NAMES_MAX);
        return NULL;
    }
    struct json_walk walk = json_walk(value);
    struct property *map = arena_array(m->arena, json_count(value) + 1, sizeof(*map));

    while (json_next_member(&walk, &name_raw, &item)) {
        struct slice name =
            arena_slice(m->arena, json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, m->arena));

        map[(*count)++] = (struct property){name, compile(c, item, place_join(m->arena, pointer, name))};
    }
    return map;
}

static const struct schema *compile_member(struct schema_compiler *c, struct members *m, const char *name)
{
    struct slice value = members_at(m, name);

    return value.ptr ? compile(c, value, members_pointer(m, name)) : NULL;
}

static void compile_groups(struct schema_compiler *c, struct schema *schema, struct members *m)
{
    for (size_t g = 0; g < GROUP_COUNT; g++) {
        struct slice value = members_at(m, group_keywords[g]), pointer = members_pointer(m, group_keywords[g]), item;
        struct group *group = &schema->group[g];

        if (!value.ptr) {
            continue;
        }
        if (json_type(value) != JSON_ARRAY || json_count(value) == 0 || json_count(value) > NAMES_MAX) {
            faults_add(m->faults, pointer,
                       "`%s` is %.*s; it must be an array of schemas, of at least one and %d at most",
                       group_keywords[g], SLICE_ARG(value_excerpt(value, m->arena)), NAMES_MAX);
            continue;
        }
        struct json_walk walk = json_walk(value);

        group->items = arena_array(m->arena, json_count(value), sizeof(*group->items));
        while (json_next_element(&walk, &item)) {
            group->items[group->count] = compile(c, item, place_join_index(m->arena, pointer, group->count));
            group->count++;
        }
    }
}

/* A keyword that has no effect without another one is a mistake of the author. */
static void check_companion(struct members *m, const char *keyword, const char *needed)
{
    if (members_at(m, keyword).ptr && !members_at(m, needed).ptr) {
        faults_add(m->faults, members_pointer(m, keyword), "`%s` does nothing without `%s`; add that or leave it out",
                   keyword, needed);
    }
}

static void compile_contains(struct schema_compiler *c, struct schema *schema, struct members *m)
{
    schema->contains = compile_member(c, m, "contains");
    schema->min_contains = 1;
    (void)members_count(m, "minContains", 0, UINT32_MAX, &schema->min_contains);
    schema->has_max_contains = members_count(m, "maxContains", 0, UINT32_MAX, &schema->max_contains);
    (void)members_bool(m, "uniqueItems", &schema->is_unique);
    check_companion(m, "minContains", "contains");
    check_companion(m, "maxContains", "contains");
}

static void compile_condition(struct schema_compiler *c, struct schema *schema, struct members *m)
{
    schema->condition = compile_member(c, m, "if");
    schema->then = compile_member(c, m, "then");
    schema->otherwise = compile_member(c, m, "else");
    check_companion(m, "then", "if");
    check_companion(m, "else", "if");
    if (schema->condition && !schema->then && !schema->otherwise) {
        faults_add(m->faults, members_pointer(m, "if"), "`if` does nothing without `then` or `else`; add one of them");
    }
}

static void compile_divisor(struct schema *schema, struct members *m)
{
    struct slice value = members_at(m, "multipleOf");

    if (!value.ptr) {
        return;
    }
    if (json_type(value) == JSON_NUMBER) {
        struct decimal divisor = decimal_of(json_trim(value), m->arena);

        if (!divisor.negative && divisor.digits.len > 0 && divisor.digits.len <= DIVISOR_DIGITS) {
            schema->divisor = arena_slice(m->arena, json_trim(value));
            return;
        }
    }
    faults_add(m->faults, members_pointer(m, "multipleOf"),
               "`multipleOf` is %.*s; it must be a number greater than 0 of at most %d digits",
               SLICE_ARG(value_excerpt(value, m->arena)), DIVISOR_DIGITS);
}

static void compile_ref(struct schema *schema, struct members *m)
{
    size_t begins = sizeof(REF_BEGINS) - 1;
    struct slice text = SLICE_NONE;
    bool is_sound = false;

    if (!members_text(m, "$ref", &text)) {
        return;
    }
    schema->ref_pointer = members_pointer(m, "$ref");
    if (text.len > begins && memcmp(text.ptr, REF_BEGINS, begins) == 0) {
        is_sound = !memchr(text.ptr + begins, '/', text.len - begins) &&
                   !memchr(text.ptr + begins, '~', text.len - begins) &&
                   !memchr(text.ptr + begins, '%', text.len - begins);
    }
    if (!is_sound) {
        faults_add(m->faults, schema->ref_pointer,
                   "`$ref` is %.*s; it must be \"" REF_BEGINS "NAME\", a schema in `$defs` at the top of this one, "
                   "whose name has no /, ~ or %%",
                   SLICE_ARG(value_excerpt(members_at(m, "$ref"), m->arena)));
        return;
    }
    schema->ref = arena_slice(m->arena, (struct slice){text.ptr + begins, text.len - begins});
}

static void compile_defs(struct schema_compiler *c, const struct schema *schema, struct members *m)
{
    if (!members_at(m, "$defs").ptr) {
        return;
    }
    if (schema->next) { /* this is not the first schema; its pointer would not tell, because long pointers are cut */
        faults_add(m->faults, members_pointer(m, "$defs"),
                   "`$defs` can only stand at the top of a schema; move it there");
        return;
    }
    c->defs = compile_map(c, m, "$defs", &c->def_count);
}

static void compile_numbers(struct schema *schema, struct members *m)
{
    for (size_t i = 0; i < BOUND_COUNT; i++) {
        uint32_t count;

        if (members_count(m, schema_bounds[i].keyword, 0, UINT32_MAX, &count)) {
            schema->has_bound[i] = true;
            schema->bound[i] = count;
        }
    }
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        struct slice value = members_at(m, schema_limits[i].keyword);

        if (value.ptr && json_type(value) != JSON_NUMBER) {
            faults_add(m->faults, members_pointer(m, schema_limits[i].keyword), "`%s` is %.*s; it must be a number",
                       schema_limits[i].keyword, SLICE_ARG(value_excerpt(value, m->arena)));
        } else {
            schema->limit[i] = arena_slice(m->arena, value);
        }
    }
}

static void check_annotations(struct members *m)
{
    static const char *const texts[] = {"title", "description", "format", "$comment"};
    struct slice text = SLICE_NONE;

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        (void)members_text(m, texts[i], &text); /* the text does not matter, only that it is a string */
    }
    if (members_text(m, "$schema", &text) && !slice_is(text, DRAFT) && !slice_is(text, DRAFT "#")) {
        faults_add(m->faults, members_pointer(m, "$schema"), "`$schema` is \"%.*s\"; only " DRAFT " is understood",
                   SLICE_ARG(text));
    }
    struct slice examples = members_at(m, "examples");

    if (examples.ptr && json_type(examples) != JSON_ARRAY) {
        faults_add(m->faults, members_pointer(m, "examples"), "`examples` must be an array");
    }
}

static struct schema *compile(struct schema_compiler *c, struct slice json, struct slice pointer)
{
    struct schema *schema = arena_alloc(c->arena, sizeof(*schema));
    struct members m;
    bool accepts_all;

    schema->next = c->all;
    c->all = schema;
    if (json_bool(json, &accepts_all)) {
        schema->refuses_all = !accepts_all;
        return schema;
    }
    if (!members_open(&m, json, pointer, "a schema", KNOWN, LATER, c->arena, c->faults)) {
        return schema;
    }
    compile_type(schema, &m);
    compile_enum(schema, &m);
    compile_required(schema, &m);
    schema->properties = compile_map(c, &m, "properties", &schema->property_count);
    compile_numbers(schema, &m);
    compile_divisor(schema, &m);
    check_annotations(&m);
    schema->additional = compile_member(c, &m, "additionalProperties");
    schema->names = compile_member(c, &m, "propertyNames");
    schema->items = compile_member(c, &m, "items");
    schema->negated = compile_member(c, &m, "not");
    compile_contains(c, schema, &m);
    compile_condition(c, schema, &m);
    compile_groups(c, schema, &m);
    compile_ref(schema, &m);
    compile_defs(c, schema, &m);
    return schema;
}

static void resolve_refs(struct schema_compiler *c)
{
    for (struct schema *schema = c->all; schema; schema = schema->next) {
        for (size_t i = 0; schema->ref.ptr && !schema->target && i < c->def_count; i++) {
            if (slice_equal(c->defs[i].name, schema->ref)) {
                schema->target = c->defs[i].schema;
            }
        }
        if (schema->ref.ptr && !schema->target) {
            faults_add(c->faults, schema->ref_pointer, "there is no `%.*s` in `$defs`", SLICE_ARG(schema->ref));
        }
    }
}

static bool count_levels(struct schema_compiler *c, struct schema *schema, unsigned above);

static bool count_below(struct schema_compiler *c, struct schema *schema, const struct schema *below, unsigned above)
{
    struct schema *child = (struct schema *)below; /* all schemas here belong to this compilation */

    if (!child) {
        return true;
    }
    if (!count_levels(c, child, above + 1)) {
        return false;
    }
    schema->levels = schema->levels > child->levels ? schema->levels : child->levels + 1;
    return true;
}

/* Counts the levels of a schema. Reports a reference that leads back to its own schema, and schemas that nest too deep,
 * and gives up. */
static bool count_levels(struct schema_compiler *c, struct schema *schema, unsigned above)
{
    const struct schema *const below[] = {schema->additional, schema->items,     schema->names, schema->contains,
                                          schema->negated,    schema->condition, schema->then,  schema->otherwise};

    if (schema->levels > 0 && !schema->is_open) {
        return above + schema->levels <= LEVELS_MAX;
    }
    if (schema->is_open || above >= LEVELS_MAX) {
        return false;
    }
    schema->is_open = true;
    schema->levels = 1;
    for (size_t i = 0; i < COUNT_OF(below); i++) {
        if (!count_below(c, schema, below[i], above)) {
            return false;
        }
    }
    for (size_t i = 0; i < schema->property_count; i++) {
        if (!count_below(c, schema, schema->properties[i].schema, above)) {
            return false;
        }
    }
    for (size_t g = 0; g < GROUP_COUNT; g++) {
        for (size_t i = 0; i < schema->group[g].count; i++) {
            if (!count_below(c, schema, schema->group[g].items[i], above)) {
                return false;
            }
        }
    }
    size_t faults_before = c->faults->count + c->faults->dropped;

    if (schema->target && !count_below(c, schema, schema->target, above)) {
        if (faults_before == c->faults->count + c->faults->dropped) {
            faults_add(c->faults, schema->ref_pointer,
                       "`$ref` leads back to a schema that contains it, or more than %d levels deep; a schema must end",
                       LEVELS_MAX);
        }
        return false;
    }
    schema->is_open = false;
    return true;
}

const struct schema *schema_compile(struct slice json, struct slice pointer, struct arena *arena, struct faults *faults)
{
    size_t before = faults->count + faults->dropped;
    struct schema_compiler c = {.arena = arena, .faults = faults};
    struct schema *root = compile(&c, json, pointer);

    if (faults->count + faults->dropped == before) {
        resolve_refs(&c);
    }
    bool ends = faults->count + faults->dropped != before || count_levels(&c, root, 0);

    for (size_t i = 0; ends && faults->count + faults->dropped == before && i < c.def_count; i++) {
        ends = count_levels(&c, c.defs[i].schema, 0); /* includes schemas that nothing refers to */
    }
    if (!ends && faults->count + faults->dropped == before) {
        faults_add(faults, pointer, "the schema nests more than %d levels deep", LEVELS_MAX);
    }
    return faults->count + faults->dropped == before ? root : NULL;
}
