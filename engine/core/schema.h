/*
 * A documented subset of JSON Schema, draft 2020-12, for the arguments of tools and the input of sagas. A keyword that is
 * not in the subset is refused when the schema is registered, never ignored.
 *
 * Subset: type, enum, const, required, properties, additionalProperties, items, minItems, maxItems, minLength,
 * maxLength, minimum, maximum, exclusiveMinimum, exclusiveMaximum, minProperties, maxProperties, and the annotations
 * title, description, default, examples, $schema, $comment. true and false are schemas. `required` and `properties` name
 * 256 members at most, `enum` 1024 values.
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
