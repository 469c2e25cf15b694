/* JSON Pointers on demand. */
#include "core/language/place.h"

#include "base/json.h"

struct slice place_join(struct arena *arena, struct slice pointer, struct slice name)
{
    if (pointer.len + name.len >= PLACE_POINTER_BYTES_MAX) {
        return pointer;
    }
    return json_pointer_join(arena, pointer, name);
}

struct slice place_join_index(struct arena *arena, struct slice pointer, size_t index)
{
    return pointer.len >= PLACE_POINTER_BYTES_MAX ? pointer
                                                  : arena_printf(arena, "%.*s/%zu", SLICE_ARG(pointer), index);
}

struct slice place_pointer(const struct place *place, struct arena *arena)
{
    if (!place->up) {
        return place->name;
    }
    struct slice up = place_pointer(place->up, arena);

    return place->name.ptr ? place_join(arena, up, place->name) : place_join_index(arena, up, place->index);
}
