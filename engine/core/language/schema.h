/*
 * A documented subset of JSON Schema, draft 2020-12, for the arguments of tools and the input of sagas. A keyword that
 * is not in the subset is refused when the schema is registered, never ignored.
 *
 * The subset is documented in schema/input-schema.md: all of validation but regular expressions, references other than
 * `#/$defs/NAME` without recursion, dependent* and unevaluated*. `format` is an annotation. A check is bounded in depth
 * (128 schemas, also through references) and in work; a value beyond that is refused with a fault that says so.
 */
#ifndef SAGAD_CORE_LANGUAGE_SCHEMA_H
#define SAGAD_CORE_LANGUAGE_SCHEMA_H

#include "base/arena.h"
#include "base/errors.h"

struct schema; /* lives in the arena */

const struct schema *schema_compile(struct slice json, struct slice pointer, struct arena *arena,
                                    struct faults *faults);
/* Adds a fault for each violation, pointers below `pointer`. A NULL schema accepts everything. `scratch` is for the
 * work. */
void schema_check(const struct schema *schema, struct slice value, struct slice pointer, struct arena *scratch,
                  struct faults *faults);

/* What a schema says of a part of a value that it accepts (schema_member.c). In doubt it is SCHEMA_ALLOWS. */
enum schema_says {
    SCHEMA_ALLOWS,
    SCHEMA_OMITS,   /* it lists members, this one is none of them, and others are not forbidden */
    SCHEMA_FORBIDS, /* no value that it accepts has this member */
    SCHEMA_MISFITS  /* no value that it accepts has any: it is of another type, see schema_types_text() */
};
/* `next` is the schema of the part, NULL where nothing is known of it. A NULL schema knows nothing. */
enum schema_says schema_member(const struct schema *schema, struct slice name, const struct schema **next);
enum schema_says schema_element(const struct schema *schema, const struct schema **next); /* of an array; any one */
struct slice schema_types_text(const struct schema *schema); /* "string or null"; SLICE_NONE: any */
/* The member listed that was probably meant, or SLICE_NONE. */
struct slice schema_near_member(const struct schema *schema, struct slice name);

#endif
