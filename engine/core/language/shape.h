/*
 * What is known of a value before there is one: by a JSON Schema that it has to fit, or by the template that will make
 * it. Asked by the check of paths in definitions, which follows a path one step at a time.
 */
#ifndef SAGAD_CORE_LANGUAGE_SHAPE_H
#define SAGAD_CORE_LANGUAGE_SHAPE_H

#include "core/language/schema.h"

enum shape_kind {
    SHAPE_ANY,     /* nothing is known */
    SHAPE_SCHEMA,  /* it fits `schema` */
    SHAPE_JSON,    /* `text` is its template */
    SHAPE_PROGRAM, /* `text` is the jq program that gives it */
    SHAPE_WORDS    /* an object with the members in `words`, divided by single spaces */
};

struct shape {
    enum shape_kind kind;
    const struct schema *schema;
    struct slice text;
    const char *words;
};

enum shape_says {
    SHAPE_ALLOWS, /* also in doubt */
    SHAPE_OMITS,  /* members are listed, and this one is none of them */
    SHAPE_FORBIDS /* there is never a value at this place */
};

/* One step further: into a member, or (SLICE_NONE) into an element. `why` is a part of a sentence where it is not
 * allowed. */
enum shape_says shape_follow(struct shape *shape, struct slice member, struct arena *arena, struct slice *why);

#endif
