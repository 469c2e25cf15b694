/*
 * The parts of a compiled schema. schema.c makes them, schema_check.c checks values against them, and schema_member.c
 * says what they allow. Nobody else includes this.
 */
#ifndef SAGAD_CORE_LANGUAGE_SCHEMA_PARTS_H
#define SAGAD_CORE_LANGUAGE_SCHEMA_PARTS_H

#include "base/json.h"
#include "core/language/schema.h"

#define NAMES_MAX                                                                                                      \
    256 /* the names in `required` and in `properties`; every member of a value is compared with all of them */

enum { TYPE_INTEGER = JSON_OBJECT + 1 }; /* a type beside enum json_type: a number without a fraction */

enum bound {
    BOUND_MIN_ITEMS,
    BOUND_MAX_ITEMS,
    BOUND_MIN_LENGTH,
    BOUND_MAX_LENGTH,
    BOUND_MIN_PROPERTIES,
    BOUND_MAX_PROPERTIES,
    BOUND_COUNT
};

struct schema_bound {
    const char *keyword;
    enum json_type type;
    bool is_max;
    const char *unit;
};
extern const struct schema_bound schema_bounds[BOUND_COUNT];

enum limit { LIMIT_MINIMUM, LIMIT_MAXIMUM, LIMIT_EXCLUSIVE_MINIMUM, LIMIT_EXCLUSIVE_MAXIMUM, LIMIT_COUNT };

struct schema_limit {
    const char *keyword, *wanted;
    int sign; /* the forbidden result of comparing the value with the limit */
    bool exclusive;
};
extern const struct schema_limit schema_limits[LIMIT_COUNT];

enum group_kind { GROUP_PREFIX, GROUP_ALL, GROUP_ANY, GROUP_ONE, GROUP_COUNT };

struct property {
    struct slice name;
    struct schema *schema;
};

struct schema {
    bool refuses_all;        /* the schema `false` */
    unsigned types;          /* bits of enum json_type and TYPE_INTEGER; 0: any */
    struct slice types_text; /* for messages */
    bool has_bound[BOUND_COUNT];
    int64_t bound[BOUND_COUNT];
    struct slice limit[LIMIT_COUNT];
    struct slice *enum_canonical; /* the canonical forms of an enum or a const */
    size_t enum_count;
    struct slice enum_text;
    struct slice *required;
    size_t required_count;
    struct property *properties;
    size_t property_count;
    const struct schema *additional; /* NULL: anything goes */
    const struct schema *items;
    const struct schema *names, *contains, *negated, *condition, *then, *otherwise;
    bool is_unique;
    bool has_max_contains;
    uint32_t min_contains, max_contains;
    struct slice divisor;
    struct group {
        const struct schema **items;
        size_t count;
    } group[GROUP_COUNT];
    struct slice ref; /* the name in `$defs` */
    struct slice ref_pointer;
    struct schema *target;
    struct schema *next; /* links all schemas of one compilation, newest first */
    unsigned levels;     /* the levels of schemas from here on; 0: not counted yet */
    bool is_open;        /* set while its levels are counted; a schema met in this state leads back to itself */
};

#endif
