/*
 * A documented subset of JSON Schema, draft 2020-12, for the arguments of tools and the input of sagas. A keyword that is
 * not in the subset is refused when the schema is registered, never ignored.
 *
 * The subset is documented in schema/input-schema.md: all of validation but regular expressions, references other than
 * `#/$defs/NAME` without recursion, dependent* and unevaluated*. `format` is an annotation. A check is bounded in depth (128
 * schemas, also through references) and in work; a value beyond that is refused with a fault that says so.
 */
#ifndef SAGAD_CORE_SCHEMA_H
#define SAGAD_CORE_SCHEMA_H

#include "base/arena.h"
#include "base/errors.h"

struct schema; /* lives in the arena */

const struct schema *schema_compile(struct slice json, struct slice pointer, struct arena *arena, struct faults *faults);
/* Adds a fault for each violation, pointers below `pointer`. A NULL schema accepts everything. `scratch` is for the work. */
void schema_check(const struct schema *schema, struct slice value, struct slice pointer, struct arena *scratch, struct faults *faults);

#endif
