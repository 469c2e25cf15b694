/* Checks a value against a compiled schema. Reports every violation with its place, and bounds the work. */
#include <stdlib.h>
#include <string.h>

#include "base/canon.h"
#include "core/language/decimal.h"
#include "core/language/members.h"
#include "core/language/schema.h"
#include "core/language/schema_parts.h"

#define WORK_MAX 2000000 /* the work of one check; a unit is one schema applied or 64 bytes read */

struct checker {
    struct arena *scratch;
    struct faults *faults;
    int64_t work_left; /* below 0 the check has given up */
};

/* Counts work. Many schemas over a large value could stall the engine, so the work has a bound. */
static bool spend(struct checker *c, size_t bytes)
{
    if (c->work_left >= 0) {
        c->work_left -= 1 + (int64_t)(bytes / 64);
    }
    return c->work_left >= 0;
}

static void check(struct checker *c, const struct schema *schema, struct slice value, const struct place *place);

/* Returns the place of a fault. A fault that is only counted needs none. */
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

/* Does the value fit? Only the first violation is kept, in `why`. */
static bool fits(struct checker *c, const struct schema *schema, struct slice value, const struct place *place,
                 struct slice *why)
{
    struct faults *outer = c->faults, inner;

    faults_init(&inner, c->scratch);
    inner.count_max = why ? 1 : 0;
    c->faults = &inner;
    check(c, schema, value, place);
    c->faults = outer;
    if (why && inner.count > 0) {
        *why = inner.items[0].detail;
    }
    return inner.count + inner.dropped == 0;
}

static void check_bounds(struct checker *c, const struct schema *schema, enum json_type type, struct slice value,
                         const struct place *place)
{
    for (size_t i = 0; i < BOUND_COUNT; i++) {
        if (!schema->has_bound[i] || schema_bounds[i].type != type) {
            continue;
        }
        size_t found = type == JSON_STRING ? code_points(json_string(value, c->scratch)) : json_count(value);
        int64_t count = (int64_t)found;

        if (schema_bounds[i].is_max ? count > schema->bound[i] : count < schema->bound[i]) {
            faults_add(c->faults, where(c, place), "has %lld %s; it must have %s %lld", (long long)count,
                       schema_bounds[i].unit, schema_bounds[i].is_max ? "at most" : "at least",
                       (long long)schema->bound[i]);
        }
    }
}

static void check_limits(struct checker *c, const struct schema *schema, struct slice value, const struct place *place)
{
    struct decimal number = {0};

    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        if (!schema->limit[i].ptr || !spend(c, schema->limit[i].len)) {
            continue;
        }
        if (!number.digits.ptr) {
            number = decimal_of(value, c->scratch);
        }
        struct decimal limit = decimal_of(schema->limit[i], c->scratch);
        int order = decimal_compare(&number, &limit);

        if (order == schema_limits[i].sign || (schema_limits[i].exclusive && order == 0)) {
            faults_add(c->faults, where(c, place), "is %.*s; it must be %s %.*s",
                       SLICE_ARG(value_excerpt(value, c->scratch)), schema_limits[i].wanted,
                       SLICE_ARG(schema->limit[i]));
        }
    }
}

static void check_divisor(struct checker *c, const struct schema *schema, struct slice value, const struct place *place)
{
    if (!schema->divisor.ptr) {
        return;
    }
    struct decimal number = decimal_of(value, c->scratch), divisor = decimal_of(schema->divisor, c->scratch);

    if (!decimal_is_multiple(&number, &divisor)) {
        faults_add(c->faults, where(c, place), "is %.*s; it must be a multiple of %.*s",
                   SLICE_ARG(value_excerpt(value, c->scratch)), SLICE_ARG(schema->divisor));
    }
}

static void check_name(struct checker *c, const struct schema *schema, struct slice name_json,
                       const struct place *place)
{
    struct slice why = SLICE("");

    if (schema->names && !fits(c, schema->names, name_json, place, &why) && c->work_left >= 0) {
        faults_add(c->faults, where(c, place), "the name `%.*s` is not allowed here: %.*s", SLICE_ARG(place->name),
                   SLICE_ARG(why));
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
        struct slice name_json = {name_raw.ptr - 1, name_raw.len + 2};

        if (!spend(c, 8 * (schema->property_count + schema->required_count))) {
            return;
        }
        below.name = json_string(name_json, c->scratch);
        check_name(c, schema, name_json, &below);
        for (size_t i = 0; i < schema->required_count; i++) {
            is_there[i] = is_there[i] || slice_equal(schema->required[i], below.name);
        }
        check_member(c, schema, item, &below);
    }
    for (size_t i = 0; i < schema->required_count; i++) {
        if (!is_there[i] && c->work_left >= 0) {
            faults_add(c->faults, where(c, place), "the member `%.*s` is missing", SLICE_ARG(schema->required[i]));
        }
    }
}

static int compare_texts(const void *a, const void *b)
{
    const struct slice *x = a, *y = b;
    int order = memcmp(x->ptr, y->ptr, x->len < y->len ? x->len : y->len);

    return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

static void check_unique(struct checker *c, const struct schema *schema, struct slice value, const struct place *place)
{
    size_t count = json_count(value), n = 0;
    struct json_walk walk = json_walk(value);
    struct slice item;

    if (!schema->is_unique || count < 2 || !spend(c, value.len * 8)) {
        return;
    }
    struct slice *texts = arena_array(c->scratch, count, sizeof(*texts));

    while (n < count && json_next_element(&walk, &item)) {
        texts[n++] = canon(item, NULL, 0, c->scratch);
    }
    qsort(texts, n, sizeof(*texts), compare_texts);
    for (size_t i = 1; i < n; i++) {
        if (slice_equal(texts[i - 1], texts[i])) {
            faults_add(c->faults, where(c, place), "has %.*s more than once; its elements must differ",
                       SLICE_ARG(value_excerpt(texts[i], c->scratch)));
            return;
        }
    }
}

static void check_contains(struct checker *c, const struct schema *schema, struct slice value,
                           const struct place *place)
{
    struct json_walk walk = json_walk(value);
    struct place below = {.up = place};
    struct slice item;
    size_t found = 0;

    if (!schema->contains) {
        return;
    }
    for (; c->work_left >= 0 && json_next_element(&walk, &item); below.index++) {
        found += fits(c, schema->contains, item, &below, NULL);
    }
    if (c->work_left < 0) {
        return;
    }
    if (found < schema->min_contains) {
        faults_add(c->faults, where(c, place), "has %zu elements that fit `contains`; it must have at least %u", found,
                   schema->min_contains);
    }
    if (schema->has_max_contains && found > schema->max_contains) {
        faults_add(c->faults, where(c, place), "has %zu elements that fit `contains`; it must have at most %u", found,
                   schema->max_contains);
    }
}

static void check_array(struct checker *c, const struct schema *schema, struct slice value, const struct place *place)
{
    const struct group *prefix = &schema->group[GROUP_PREFIX];
    struct json_walk walk = json_walk(value);
    struct place below = {.up = place};
    struct slice item;

    check_unique(c, schema, value, place);
    check_contains(c, schema, value, place);
    if (!schema->items && prefix->count == 0) {
        return;
    }
    for (; c->work_left >= 0 && json_next_element(&walk, &item); below.index++) {
        if (below.index >= prefix->count && !schema->items) {
            return;
        }
        check(c, below.index < prefix->count ? prefix->items[below.index] : schema->items, item, &below);
    }
}

/* Checks allOf, anyOf, oneOf, not, if and $ref, which apply other schemas to the same value. */
static void check_combined(struct checker *c, const struct schema *schema, struct slice value,
                           const struct place *place)
{
    const struct group *all = &schema->group[GROUP_ALL], *any = &schema->group[GROUP_ANY],
                       *one = &schema->group[GROUP_ONE];
    size_t fitting = 0, counted = 0;

    check(c, schema->target, value, place);
    for (size_t i = 0; i < all->count; i++) {
        check(c, all->items[i], value, place);
    }
    if (schema->condition) {
        check(c, fits(c, schema->condition, value, place, NULL) ? schema->then : schema->otherwise, value, place);
    }
    while (counted < any->count && fitting == 0) {
        fitting += fits(c, any->items[counted++], value, place, NULL);
    }
    if (any->count > 0 && fitting == 0 && c->work_left >= 0) {
        faults_add(c->faults, where(c, place), "is %.*s; it fits none of the %zu schemas of `anyOf`",
                   SLICE_ARG(value_excerpt(value, c->scratch)), any->count);
    }
    fitting = 0;
    for (size_t i = 0; i < one->count; i++) {
        fitting += fits(c, one->items[i], value, place, NULL);
    }
    if (one->count > 0 && fitting != 1 && c->work_left >= 0) {
        faults_add(c->faults, where(c, place),
                   "is %.*s; it fits %zu of the %zu schemas of `oneOf`, and must fit just one",
                   SLICE_ARG(value_excerpt(value, c->scratch)), fitting, one->count);
    }
    if (schema->negated && fits(c, schema->negated, value, place, NULL) && c->work_left >= 0) {
        faults_add(c->faults, where(c, place), "is %.*s; it must not fit the schema of `not`",
                   SLICE_ARG(value_excerpt(value, c->scratch)));
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
    struct slice text = json_trim(value);

    if (!schema || !spend(c, text.len)) {
        return;
    }
    if (schema->refuses_all) {
        faults_add(c->faults, where(c, place), "nothing is allowed here");
        return;
    }
    if (!is_of_type(c, schema, type, text)) {
        faults_add(c->faults, where(c, place), "is %.*s; it must be of type %.*s",
                   SLICE_ARG(value_excerpt(text, c->scratch)), SLICE_ARG(schema->types_text));
        return; /* the other keywords would only repeat the fault */
    }
    if (schema->enum_count > 0 && spend(c, text.len * 8 + schema->enum_count) && !is_listed(schema, text, c->scratch)) {
        faults_add(c->faults, where(c, place), "is %.*s; it must be %.*s", SLICE_ARG(value_excerpt(text, c->scratch)),
                   SLICE_ARG(schema->enum_text));
    }
    check_bounds(c, schema, type, text, place);
    if (type == JSON_NUMBER) {
        check_limits(c, schema, text, place);
        check_divisor(c, schema, text, place);
    } else if (type == JSON_OBJECT &&
               (schema->property_count > 0 || schema->required_count > 0 || schema->additional || schema->names)) {
        check_object(c, schema, text, place);
    } else if (type == JSON_ARRAY) {
        check_array(c, schema, text, place);
    }
    check_combined(c, schema, text, place);
}

void schema_check(const struct schema *schema, struct slice value, struct slice pointer, struct arena *scratch,
                  struct faults *faults)
{
    struct checker c = {scratch, faults, WORK_MAX};
    struct place root = {.name = pointer};

    check(&c, schema, value, &root);
    if (c.work_left < 0) {
        faults_add(faults, pointer,
                   "is too much work to check against its schema; make the value or the schema smaller");
    }
}
