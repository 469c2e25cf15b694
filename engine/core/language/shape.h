/*
 * What is known about a value that does not exist yet: from the JSON Schema that it must fit, or from the template that
 * will make it. The check of paths in definitions asks this, one step of a path at a time.
 */
#ifndef SAGAD_CORE_LANGUAGE_SHAPE_H
#define SAGAD_CORE_LANGUAGE_SHAPE_H

#include "core/language/schema.h"

enum shape_kind {
    SHAPE_ANY,     /* nothing is known */
    SHAPE_SCHEMA,  /* the value fits `schema` */
    SHAPE_JSON,    /* `text` is the template of the value */
    SHAPE_PROGRAM, /* `text` is the jq program that gives the value */
    SHAPE_WORDS    /* an object with the members in `words`, divided by single spaces */
};

struct shape {
    enum shape_kind kind;
    const struct schema *schema;
    struct slice text;
    const char *words;
};

enum shape_says {
    SHAPE_ALLOWS, /* the step is allowed, or nobody knows */
    SHAPE_OMITS,  /* the members are listed, and this is not one of them */
    SHAPE_FORBIDS /* there is never a value at this place */
};

/* Follows one step: into a member, or with SLICE_NONE into an element. When the step is not allowed, `why` is a part of
 * a sentence that says why. */
enum shape_says shape_follow(struct shape *shape, struct slice member, struct arena *arena, struct slice *why);

#endif
