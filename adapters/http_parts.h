/* The pieces of a request that a rendered tool is turned into: query parameters and a key inside a body. */
#ifndef SAGAD_ADAPTERS_HTTP_PARTS_H
#define SAGAD_ADAPTERS_HTTP_PARTS_H

#include "base/arena.h"
#include "base/text.h"

/*
 * `url` with the members of `query` behind it: text, numbers and booleans once, arrays of these once an element, null
 * not at all. SLICE_NONE when there is anything else in it.
 */
struct slice url_add_query(struct slice url, struct slice query, struct arena *arena);
struct slice url_add_parameter(struct slice url, struct slice name, struct slice value, struct arena *arena);

/*
 * `body` with the JSON `value` at the place of the pointer: replaced, or added where it was absent; objects on the way
 * are made. Everything else stays byte for byte. SLICE_NONE when the way leads through something that is no container.
 */
struct slice body_set(struct slice body, struct slice pointer, struct slice value, struct arena *arena);

#endif
