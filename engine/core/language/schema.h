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

struct schema; /* the memory of a schema is in the arena */

const struct schema *schema_compile(struct slice json, struct slice pointer, struct arena *arena,
                                    struct faults *faults);
/* Adds a fault for each violation, with pointers below `pointer`. A NULL schema accepts everything. `scratch` is
 * working memory. */
void schema_check(const struct schema *schema, struct slice value, struct slice pointer, struct arena *scratch,
                  struct faults *faults);

/* What a schema says about a part of a value that it accepts (schema_member.c). In doubt it says SCHEMA_ALLOWS. */
enum schema_says {
    SCHEMA_ALLOWS,
    SCHEMA_OMITS,   /* the schema lists members without this one, and does not forbid others */
    SCHEMA_FORBIDS, /* no value that it accepts has this member */
    SCHEMA_MISFITS /* no value that it accepts has members or elements: its type is another one, see schema_types_text()
                    */
};
/* `next` becomes the schema of the part, or NULL when nothing is known about it. A NULL schema knows nothing. */
enum schema_says schema_member(const struct schema *schema, struct slice name, const struct schema **next);
enum schema_says schema_element(const struct schema *schema,
                                const struct schema **next); /* asks about any element of an array */
struct slice schema_types_text(const struct schema *schema); /* "string or null"; SLICE_NONE: any */
/* Returns the listed member that was probably meant, or SLICE_NONE. */
struct slice schema_near_member(const struct schema *schema, struct slice name);

#endif
