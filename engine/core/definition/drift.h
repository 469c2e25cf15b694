/*
 * Other arguments under the same key: in which places do they differ, and does it matter? Numbers and the order of
 * members are compared as for fingerprints. Places are named, values never: they go to callers, logs and screens.
 */
#ifndef SAGAD_CORE_DEFINITION_DRIFT_H
#define SAGAD_CORE_DEFINITION_DRIFT_H

#include "base/arena.h"
#include "core/definition/definition.h"

#define DRIFT_POINTERS_MAX 20

struct drift {
    bool differs;          /* in something that is not volatile */
    bool material;         /* in something that a repeat must not differ in */
    struct slice pointers; /* JSON array of JSON Pointers, DRIFT_POINTERS_MAX at most: the material ones if there are
                              any, else all */
};

/* Both are JSON that passed json_check(). `tool` says what is material and what volatile. */
struct drift drift_find(const struct tool *tool, struct slice first, struct slice second, struct arena *arena);

#endif
