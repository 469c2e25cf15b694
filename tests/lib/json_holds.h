/* Compares a saga's view with a view that was kept: members may have been added since then, but all old members must
 * still be the same. */
#ifndef SAGAD_TESTS_JSON_HOLDS_H
#define SAGAD_TESTS_JSON_HOLDS_H

#include <stdio.h>

#include "base/json.h"

/* Does `is` have all that `should` has? Both passed json_check(). */
static inline bool json_holds(struct slice is, struct slice should)
{
    struct json_walk walk = json_walk(should), other = json_walk(is);
    struct slice name, value, element;

    if (json_type(should) == JSON_OBJECT) {
        while (json_next_member(&walk, &name, &value)) {
            char text[128];

            (void)snprintf(text, sizeof(text), "%.*s", SLICE_ARG(name));
            if (!json_member(is, text).ptr || !json_holds(json_member(is, text), value)) {
                return false;
            }
        }
        return json_type(is) == JSON_OBJECT;
    }
    if (json_type(should) == JSON_ARRAY && json_type(is) == JSON_ARRAY && json_count(is) == json_count(should)) {
        while (json_next_element(&walk, &value) && json_next_element(&other, &element)) {
            if (!json_holds(element, value)) {
                return false;
            }
        }
        return true;
    }
    return slice_equal(is, should);
}

#endif
