/* Says what a schema allows for the parts of a value that does not exist yet. The check of paths in definitions asks
 * this. */
#include <string.h>

#include "core/language/members.h"
#include "core/language/schema_parts.h"

static bool may_be(const struct schema *schema, enum json_type type)
{
    return schema->types == 0 || (schema->types & (1u << type)) != 0;
}

static bool is_required(const struct schema *schema, struct slice name)
{
    for (size_t i = 0; i < schema->required_count; i++) {
        if (slice_equal(schema->required[i], name)) {
            return true;
        }
    }
    return false;
}

static const struct property *property_of(const struct schema *schema, struct slice name)
{
    for (size_t i = 0; i < schema->property_count; i++) {
        if (slice_equal(schema->properties[i].name, name)) {
            return &schema->properties[i];
        }
    }
    return NULL;
}

/* Does the schema have other keywords that may name members too? */
static bool says_more(const struct schema *schema)
{
    return schema->target || schema->condition || schema->negated || schema->group[GROUP_ALL].count > 0 ||
           schema->group[GROUP_ANY].count > 0 || schema->group[GROUP_ONE].count > 0;
}

static enum schema_says own_member(const struct schema *schema, struct slice name, const struct schema **next)
{
    const struct property *property = property_of(schema, name);

    *next = property ? property->schema : schema->additional;
    if (*next) {
        return (*next)->refuses_all ? SCHEMA_FORBIDS : SCHEMA_ALLOWS;
    }
    return schema->property_count > 0 && !says_more(schema) && !is_required(schema, name) ? SCHEMA_OMITS
                                                                                          : SCHEMA_ALLOWS;
}

enum schema_says schema_member(const struct schema *schema, struct slice name, const struct schema **next)
{
    enum schema_says says;

    *next = NULL;
    if (!schema) {
        return SCHEMA_ALLOWS;
    }
    /* A member of null is null, which is no error in jq. */
    if (!may_be(schema, JSON_OBJECT) && !may_be(schema, JSON_NULL)) {
        return SCHEMA_MISFITS;
    }
    says = own_member(schema, name, next);
    if (says == SCHEMA_ALLOWS && !*next && schema->target) {
        return schema_member(schema->target, name, next);
    }
    return says;
}

enum schema_says schema_element(const struct schema *schema, const struct schema **next)
{
    *next = NULL;
    if (!schema) {
        return SCHEMA_ALLOWS;
    }
    /* `[]` also gives the values of an object. */
    if (!may_be(schema, JSON_ARRAY) && !may_be(schema, JSON_OBJECT) && !may_be(schema, JSON_NULL)) {
        return SCHEMA_MISFITS;
    }
    if (may_be(schema, JSON_ARRAY) && schema->types != 0 && !may_be(schema, JSON_OBJECT) &&
        schema->group[GROUP_PREFIX].count == 0) {
        *next = schema->items;
    }
    return SCHEMA_ALLOWS;
}

struct slice schema_types_text(const struct schema *schema)
{
    return schema->types_text;
}

struct slice schema_near_member(const struct schema *schema, struct slice name)
{
    struct slice best = SLICE_NONE;
    unsigned best_distance = 3;

    for (size_t i = 0; i < schema->property_count; i++) {
        unsigned distance = word_distance(schema->properties[i].name, name);

        if (distance < best_distance && distance < name.len) {
            best = schema->properties[i].name;
            best_distance = distance;
        }
    }
    return best;
}
