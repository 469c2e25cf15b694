/*
 * JSON Schema, compiled to a tree of checks. Numbers are compared as decimal text, because a limit of 9007199254740993
 * means that number and not its neighbour; equality is equality of the canonical form.
 */
#include "core/schema.h"

#include <string.h>

#include "base/canon.h"
#include "base/json.h"
#include "core/members.h"

#define KNOWN                                                                                                          \
    "type enum const required properties additionalProperties items minItems maxItems minLength maxLength minimum "    \
    "maximum exclusiveMinimum exclusiveMaximum minProperties maxProperties title description default examples "        \
    "$schema $comment"
#define LATER                                                                                                          \
    "pattern format multipleOf $ref $defs $id $anchor $dynamicRef $dynamicAnchor $vocabulary allOf anyOf oneOf not "   \
    "if "                                                                                                              \
    "then else dependentSchemas dependentRequired prefixItems contains minContains maxContains uniqueItems "           \
    "patternProperties propertyNames unevaluatedItems unevaluatedProperties readOnly writeOnly deprecated "            \
    "contentEncoding contentMediaType contentSchema definitions"
#define NAMES_MAX 256 /* in `required` and `properties`: every member of a value is compared with them */
#define ENUM_MAX 1024
#define DRAFT "https://json-schema.org/draft/2020-12/schema"

enum { TYPE_INTEGER = JSON_OBJECT + 1 }; /* beside enum json_type: a number without a fraction */

enum bound {
    BOUND_MIN_ITEMS,
    BOUND_MAX_ITEMS,
    BOUND_MIN_LENGTH,
    BOUND_MAX_LENGTH,
    BOUND_MIN_PROPERTIES,
    BOUND_MAX_PROPERTIES,
    BOUND_COUNT
};

static const struct {
    const char *keyword;
    enum json_type type;
    bool is_max;
    const char *unit;
} bounds[BOUND_COUNT] = {
    [BOUND_MIN_ITEMS] = {"minItems", JSON_ARRAY, false, "elements"},
    [BOUND_MAX_ITEMS] = {"maxItems", JSON_ARRAY, true, "elements"},
    [BOUND_MIN_LENGTH] = {"minLength", JSON_STRING, false, "characters"},
    [BOUND_MAX_LENGTH] = {"maxLength", JSON_STRING, true, "characters"},
    [BOUND_MIN_PROPERTIES] = {"minProperties", JSON_OBJECT, false, "members"},
    [BOUND_MAX_PROPERTIES] = {"maxProperties", JSON_OBJECT, true, "members"},
};

enum limit { LIMIT_MINIMUM, LIMIT_MAXIMUM, LIMIT_EXCLUSIVE_MINIMUM, LIMIT_EXCLUSIVE_MAXIMUM, LIMIT_COUNT };

static const struct {
    const char *keyword, *wanted;
    int sign; /* what the comparison of value and limit must not give */
    bool exclusive;
} limits[LIMIT_COUNT] = {
    [LIMIT_MINIMUM] = {"minimum", "at least", -1, false},
    [LIMIT_MAXIMUM] = {"maximum", "at most", 1, false},
    [LIMIT_EXCLUSIVE_MINIMUM] = {"exclusiveMinimum", "greater than", -1, true},
    [LIMIT_EXCLUSIVE_MAXIMUM] = {"exclusiveMaximum", "less than", 1, true},
};

struct property {
    struct slice name;
    const struct schema *schema;
};

struct schema {
    bool refuses_all;        /* the schema `false` */
    unsigned types;          /* bits of enum json_type and TYPE_INTEGER; 0: any */
    struct slice types_text; /* for messages */
    bool has_bound[BOUND_COUNT];
    int64_t bound[BOUND_COUNT];
    struct slice limit[LIMIT_COUNT];
    struct slice *enum_canonical; /* also for const */
    size_t enum_count;
    struct slice enum_text;
    struct slice *required;
    size_t required_count;
    struct property *properties;
    size_t property_count;
    const struct schema *additional; /* NULL: anything goes */
    const struct schema *items;
};

/* --- numbers as decimal text --- */

struct decimal {
    bool negative;
    struct slice digits; /* without leading and trailing zeros; none is 0 */
    int64_t exponent;    /* value = 0.DIGITS * 10^exponent */
};

static struct decimal decimal_of(struct slice number, struct arena *scratch)
{
    char *digits = arena_alloc(scratch, number.len + 1);
    size_t len = 0, start = 0, i = 0;
    int64_t exponent = 0, written = 0;
    bool negative = number.len > 0 && number.ptr[0] == '-', fraction = false;

    for (i = negative; i < number.len && number.ptr[i] != 'e' && number.ptr[i] != 'E'; i++) {
        if (number.ptr[i] == '.') {
            fraction = true;
        } else {
            digits[len++] = number.ptr[i];
            exponent += !fraction;
        }
    }
    if (i < number.len) {
        i += 1 + (i + 1 < number.len && number.ptr[i + 1] == '+');
        (void)slice_to_i64((struct slice){number.ptr + i, number.len - i}, &written); /* json_check() bounded it */
    }
    exponent += written;
    while (start < len && digits[start] == '0') {
        start++;
        exponent--;
    }
    while (len > start && digits[len - 1] == '0') {
        len--;
    }
    if (len == start) {
        return (struct decimal){false, {digits, 0}, 0};
    }
    return (struct decimal){negative, {digits + start, len - start}, exponent};
}

static bool decimal_is_integer(const struct decimal *d)
{
    return d->digits.len == 0 || (d->exponent >= 0 && (uint64_t)d->exponent >= d->digits.len);
}

static int decimal_compare(const struct decimal *a, const struct decimal *b)
{
    int sign_a = a->digits.len == 0 ? 0 : a->negative ? -1 : 1;
    int sign_b = b->digits.len == 0 ? 0 : b->negative ? -1 : 1;

    if (sign_a != sign_b) {
        return sign_a < sign_b ? -1 : 1;
    }
    if (sign_a == 0) {
        return 0;
    }
    if (a->exponent != b->exponent) {
        return a->exponent < b->exponent ? -sign_a : sign_a;
    }
    size_t common = a->digits.len < b->digits.len ? a->digits.len : b->digits.len;
    int order = memcmp(a->digits.ptr, b->digits.ptr, common);

    if (order == 0 && a->digits.len != b->digits.len) {
        order = a->digits.len < b->digits.len ? -1 : 1;
    }
    return order == 0 ? 0 : order < 0 ? -sign_a : sign_a;
}

/* --- compiling --- */

static struct schema *compile(struct slice json, struct slice pointer, struct arena *arena, struct faults *faults);

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

static void compile_properties(struct schema *schema, struct members *m)
{
    struct slice value = members_at(m, "properties"), pointer = members_pointer(m, "properties"), name_raw, item;

    if (!value.ptr) {
        return;
    }
    if (json_type(value) != JSON_OBJECT || json_count(value) > NAMES_MAX) {
        faults_add(m->faults, pointer, "`properties` is %.*s; it must be an object of schemas, of %d at most",
                   SLICE_ARG(value_excerpt(value, m->arena)), NAMES_MAX);
        return;
    }
    struct json_walk walk = json_walk(value);

    schema->properties = arena_array(m->arena, json_count(value) + 1, sizeof(*schema->properties));
    while (json_next_member(&walk, &name_raw, &item)) {
        struct slice name = arena_slice(m->arena,
                                        json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, m->arena));

        schema->properties[schema->property_count++] = (struct property){
            name, compile(item, place_join(m->arena, pointer, name), m->arena, m->faults)};
    }
}

static const struct schema *compile_member(struct members *m, const char *name)
{
    struct slice value = members_at(m, name);

    return value.ptr ? compile(value, members_pointer(m, name), m->arena, m->faults) : NULL;
}

static void compile_numbers(struct schema *schema, struct members *m)
{
    for (size_t i = 0; i < BOUND_COUNT; i++) {
        uint32_t count;

        if (members_count(m, bounds[i].keyword, 0, UINT32_MAX, &count)) {
            schema->has_bound[i] = true;
            schema->bound[i] = count;
        }
    }
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        struct slice value = members_at(m, limits[i].keyword);

        if (value.ptr && json_type(value) != JSON_NUMBER) {
            faults_add(m->faults, members_pointer(m, limits[i].keyword), "`%s` is %.*s; it must be a number",
                       limits[i].keyword, SLICE_ARG(value_excerpt(value, m->arena)));
        } else {
            schema->limit[i] = arena_slice(m->arena, value);
        }
    }
}

static void check_annotations(struct members *m)
{
    static const char *const texts[] = {"title", "description", "$comment"};
    struct slice text = SLICE_NONE;

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        (void)members_text(m, texts[i], &text); /* only that it is a string matters */
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

static struct schema *compile(struct slice json, struct slice pointer, struct arena *arena, struct faults *faults)
{
    struct schema *schema = arena_alloc(arena, sizeof(*schema));
    struct members m;
    bool accepts_all;

    if (json_bool(json, &accepts_all)) {
        schema->refuses_all = !accepts_all;
        return schema;
    }
    if (!members_open(&m, json, pointer, "a schema", KNOWN, LATER, arena, faults)) {
        return schema;
    }
    compile_type(schema, &m);
    compile_enum(schema, &m);
    compile_required(schema, &m);
    compile_properties(schema, &m);
    compile_numbers(schema, &m);
    check_annotations(&m);
    schema->additional = compile_member(&m, "additionalProperties");
    schema->items = compile_member(&m, "items");
    return schema;
}

const struct schema *schema_compile(struct slice json, struct slice pointer, struct arena *arena, struct faults *faults)
{
    size_t before = faults->count + faults->dropped;
    const struct schema *schema = compile(json, pointer, arena, faults);

    return faults->count + faults->dropped == before ? schema : NULL;
}

/* --- checking --- */

struct checker {
    struct arena *scratch;
    struct faults *faults;
};

static void check(struct checker *c, const struct schema *schema, struct slice value, const struct place *place);

/* Nobody reads the places of faults that are only counted. */
static struct slice where(struct checker *c, const struct place *place)
{
    return c->faults->count < c->faults->count_max ? place_pointer(place, c->scratch) : SLICE("");
}

static size_t code_points(struct slice text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.len; i++) {
        count += ((unsigned char)text.ptr[i] & 0xc0) != 0x80;
    }
    return count;
}

static void check_bounds(struct checker *c, const struct schema *schema, enum json_type type, struct slice value,
                         const struct place *place)
{
    for (size_t i = 0; i < BOUND_COUNT; i++) {
        if (!schema->has_bound[i] || bounds[i].type != type) {
            continue;
        }
        size_t found = type == JSON_STRING ? code_points(json_string(value, c->scratch)) : json_count(value);
        int64_t count = (int64_t)found;

        if (bounds[i].is_max ? count > schema->bound[i] : count < schema->bound[i]) {
            faults_add(c->faults, where(c, place), "has %lld %s; it must have %s %lld", (long long)count,
                       bounds[i].unit, bounds[i].is_max ? "at most" : "at least", (long long)schema->bound[i]);
        }
    }
}

static void check_limits(struct checker *c, const struct schema *schema, struct slice value, const struct place *place)
{
    struct decimal number = {0};

    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        if (!schema->limit[i].ptr) {
            continue;
        }
        if (!number.digits.ptr) {
            number = decimal_of(value, c->scratch);
        }
        struct decimal limit = decimal_of(schema->limit[i], c->scratch);
        int order = decimal_compare(&number, &limit);

        if (order == limits[i].sign || (limits[i].exclusive && order == 0)) {
            faults_add(c->faults, where(c, place), "is %.*s; it must be %s %.*s",
                       SLICE_ARG(value_excerpt(value, c->scratch)), limits[i].wanted, SLICE_ARG(schema->limit[i]));
        }
    }
}

static void check_member(struct checker *c, const struct schema *schema, struct slice value, const struct place *place)
{
    for (size_t i = 0; i < schema->property_count; i++) {
        if (slice_equal(schema->properties[i].name, place->name)) {
            check(c, schema->properties[i].schema, value, place);
            return;
        }
    }
    if (schema->additional && schema->additional->refuses_all) {
        faults_add(c->faults, where(c, place), "the member `%.*s` is not allowed here", SLICE_ARG(place->name));
    } else {
        check(c, schema->additional, value, place);
    }
}

static void check_object(struct checker *c, const struct schema *schema, struct slice value, const struct place *place)
{
    bool is_there[NAMES_MAX] = {false};
    struct place below = {.up = place};
    struct json_walk walk = json_walk(value);
    struct slice name_raw, item;

    while (json_next_member(&walk, &name_raw, &item)) {
        below.name = json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, c->scratch);
        for (size_t i = 0; i < schema->required_count; i++) {
            is_there[i] = is_there[i] || slice_equal(schema->required[i], below.name);
        }
        check_member(c, schema, item, &below);
    }
    for (size_t i = 0; i < schema->required_count; i++) {
        if (!is_there[i]) {
            faults_add(c->faults, where(c, place), "the member `%.*s` is missing", SLICE_ARG(schema->required[i]));
        }
    }
}

static bool is_listed(const struct schema *schema, struct slice value, struct arena *scratch)
{
    struct slice canonical = canon(value, NULL, 0, scratch);

    for (size_t i = 0; i < schema->enum_count; i++) {
        if (slice_equal(schema->enum_canonical[i], canonical)) {
            return true;
        }
    }
    return false;
}

static bool is_of_type(struct checker *c, const struct schema *schema, enum json_type type, struct slice value)
{
    if (!schema->types || (schema->types & BIT((unsigned)type))) {
        return true;
    }
    if (type != JSON_NUMBER || !(schema->types & BIT(TYPE_INTEGER))) {
        return false;
    }
    struct decimal number = decimal_of(value, c->scratch);

    return decimal_is_integer(&number);
}

static void check(struct checker *c, const struct schema *schema, struct slice value, const struct place *place)
{
    enum json_type type = json_type(value);
    struct slice text = json_trim(value), item;

    if (!schema) {
        return;
    }
    if (schema->refuses_all) {
        faults_add(c->faults, where(c, place), "nothing is allowed here");
        return;
    }
    if (!is_of_type(c, schema, type, text)) {
        faults_add(c->faults, where(c, place), "is %.*s; it must be of type %.*s",
                   SLICE_ARG(value_excerpt(text, c->scratch)), SLICE_ARG(schema->types_text));
        return; /* the other keywords would only say the same again */
    }
    if (schema->enum_count > 0 && !is_listed(schema, text, c->scratch)) {
        faults_add(c->faults, where(c, place), "is %.*s; it must be %.*s", SLICE_ARG(value_excerpt(text, c->scratch)),
                   SLICE_ARG(schema->enum_text));
    }
    check_bounds(c, schema, type, text, place);
    if (type == JSON_NUMBER) {
        check_limits(c, schema, text, place);
    } else if (type == JSON_OBJECT &&
               (schema->property_count > 0 || schema->required_count > 0 || schema->additional)) {
        check_object(c, schema, text, place);
    } else if (type == JSON_ARRAY && schema->items) {
        struct json_walk walk = json_walk(text);
        struct place below = {.up = place};

        for (; json_next_element(&walk, &item); below.index++) {
            check(c, schema->items, item, &below);
        }
    }
}

void schema_check(const struct schema *schema, struct slice value, struct slice pointer, struct arena *scratch,
                  struct faults *faults)
{
    struct checker c = {scratch, faults};
    struct place root = {.name = pointer};

    check(&c, schema, value, &root);
}
