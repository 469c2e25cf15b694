/* Compares two JSON texts member by member. json_check() has bounded their depth. */
#include "core/definition/drift.h"

#include <stdlib.h>
#include <string.h>

#include "base/canon.h"
#include "base/json.h"
#include "core/language/place.h"

struct drift_finder {
    const struct tool *tool;
    struct slice first, second; /* both whole texts */
    struct arena *arena;
    struct slice found[DRIFT_POINTERS_MAX], material[DRIFT_POINTERS_MAX];
    size_t found_count, material_count;
};

static bool is_volatile(const struct drift_finder *finder, struct slice pointer)
{
    const struct pointers *volatiles = &finder->tool->volatiles;

    for (size_t i = 0; i < volatiles->count; i++) {
        if (canon_pointer_matches(volatiles->items[i], pointer)) {
            return true;
        }
    }
    return false;
}

/* Cuts the pointer to the number of segments that `pattern` has. A shorter pointer stays whole. */
static struct slice cut_like(struct slice pointer, struct slice pattern)
{
    size_t segments = 0, seen = 0;

    for (size_t i = 0; i < pattern.len; i++) {
        segments += pattern.ptr[i] == '/';
    }
    for (size_t i = 0; i < pointer.len; i++) {
        if (pointer.ptr[i] == '/' && seen++ == segments) {
            return (struct slice){pointer.ptr, i};
        }
    }
    return pointer;
}

/* Does the pattern name this place, or a place that encloses it? */
static bool is_within(struct slice pointer, struct slice pattern)
{
    return canon_pointer_matches(pattern, cut_like(pointer, pattern));
}

/* May the pattern name a place inside this one? */
static bool is_above(struct slice pointer, struct slice pattern)
{
    return pattern.len > pointer.len && canon_pointer_matches(cut_like(pattern, pointer), pointer);
}

static bool has_wildcard(struct slice pattern)
{
    for (size_t i = 0; i + 1 < pattern.len; i++) {
        if (pattern.ptr[i] == '/' && pattern.ptr[i + 1] == '*' && (i + 2 == pattern.len || pattern.ptr[i + 2] == '/')) {
            return true;
        }
    }
    return false;
}

static bool same_value(struct slice a, struct slice b, struct arena *arena)
{
    struct slice x = json_trim(a), y = json_trim(b);

    if (!x.ptr || !y.ptr) {
        return !x.ptr && !y.ptr;
    }
    return slice_equal(x, y) || slice_equal(canon(x, NULL, 0, arena), canon(y, NULL, 0, arena));
}

static bool is_material(const struct drift_finder *finder, struct slice pointer)
{
    const struct pointers *material = &finder->tool->material;

    if (!finder->tool->has_material || pointer.len >= PLACE_POINTER_BYTES_MAX / 2) {
        return true; /* the name of so deep a place may be cut off, so it counts as material */
    }
    for (size_t i = 0; i < material->count; i++) {
        struct slice wanted = material->items[i];

        if (is_within(pointer, wanted)) {
            return true;
        }
        /* The difference is above the wanted place: the enclosing value is missing or has another type. */
        if (is_above(pointer, wanted) &&
            (has_wildcard(wanted) ||
             !same_value(json_at(finder->first, wanted), json_at(finder->second, wanted), finder->arena))) {
            return true;
        }
    }
    return false;
}

static void note(struct drift_finder *finder, struct slice pointer)
{
    if (finder->found_count < DRIFT_POINTERS_MAX) {
        finder->found[finder->found_count++] = pointer;
    }
    if (finder->material_count < DRIFT_POINTERS_MAX && is_material(finder, pointer)) {
        finder->material[finder->material_count++] = pointer;
    }
}

/* --- walking --- */

struct drift_member {
    struct slice name, value;
};

static int by_name(const void *a, const void *b)
{
    return slice_compare(((const struct drift_member *)a)->name, ((const struct drift_member *)b)->name);
}

static struct drift_member *sorted_members(struct slice object, struct arena *arena, size_t *count)
{
    struct drift_member *members = arena_array(arena, json_count(object) + 1, sizeof(*members));
    struct json_walk walk = json_walk(object);
    struct slice raw, value;
    size_t n = 0;

    while (json_next_member(&walk, &raw, &value)) {
        members[n].name = json_string((struct slice){raw.ptr - 1, raw.len + 2}, arena);
        members[n++].value = value;
    }
    qsort(members, n, sizeof(*members), by_name);
    *count = n;
    return members;
}

static void compare(struct drift_finder *finder, struct slice a, struct slice b, struct slice pointer);

static void compare_member(struct drift_finder *finder, struct slice name, struct slice a, struct slice b,
                           struct slice pointer)
{
    struct slice place = place_join(finder->arena, pointer, name);

    if (is_volatile(finder, place)) {
        return;
    }
    if (a.ptr && b.ptr) {
        compare(finder, a, b, place);
    } else {
        note(finder, place);
    }
}

static void compare_objects(struct drift_finder *finder, struct slice a, struct slice b, struct slice pointer)
{
    size_t count_a, count_b, i = 0, j = 0;
    struct drift_member *x = sorted_members(a, finder->arena, &count_a);
    struct drift_member *y = sorted_members(b, finder->arena, &count_b);

    while (i < count_a || j < count_b) {
        int order = i == count_a ? 1 : j == count_b ? -1 : slice_compare(x[i].name, y[j].name);

        if (order < 0) {
            compare_member(finder, x[i].name, x[i].value, SLICE_NONE, pointer);
        } else if (order > 0) {
            compare_member(finder, y[j].name, SLICE_NONE, y[j].value, pointer);
        } else {
            compare_member(finder, x[i].name, x[i].value, y[j].value, pointer);
        }
        i += order <= 0;
        j += order >= 0;
    }
}

/* Compares element by element. A new first element moves all others, and the fingerprint changes in the same way. */
static void compare_arrays(struct drift_finder *finder, struct slice a, struct slice b, struct slice pointer)
{
    struct json_walk walk_a = json_walk(a), walk_b = json_walk(b);

    for (size_t index = 0;; index++) {
        struct slice x = SLICE_NONE, y = SLICE_NONE, place;
        bool in_a = json_next_element(&walk_a, &x), in_b = json_next_element(&walk_b, &y);

        if (!in_a && !in_b) {
            return;
        }
        place = place_join_index(finder->arena, pointer, index);
        if (in_a && in_b) {
            compare(finder, x, y, place);
        } else {
            note(finder, place);
        }
    }
}

static void compare(struct drift_finder *finder, struct slice a, struct slice b, struct slice pointer)
{
    struct slice x = json_trim(a), y = json_trim(b);
    enum json_type type = json_type(x);

    if (slice_equal(x, y)) {
        return;
    }
    if (type == JSON_OBJECT && json_type(y) == JSON_OBJECT) {
        compare_objects(finder, x, y, pointer);
    } else if (type == JSON_ARRAY && json_type(y) == JSON_ARRAY) {
        compare_arrays(finder, x, y, pointer);
    } else if (type != json_type(y) || !same_value(x, y, finder->arena)) {
        note(finder, pointer);
    }
}

static struct slice as_json(const struct slice *pointers, size_t count, struct arena *arena)
{
    struct buffer out;
    struct json_writer w;
    struct slice text;

    buffer_init(&out,
                (size_t)DRIFT_POINTERS_MAX * PLACE_POINTER_BYTES_MAX * 8); /* an escape makes up to six bytes of one */
    json_writer_init(&w, &out);
    json_array_begin(&w, NULL);
    for (size_t i = 0; i < count; i++) {
        json_write_slice(&w, NULL, pointers[i]);
    }
    json_array_end(&w);
    CHECK(!out.overflow);
    text = arena_slice(arena, buffer_slice(&out));
    buffer_fini(&out);
    return text;
}

struct drift drift_find(const struct tool *tool, struct slice first, struct slice second, struct arena *arena)
{
    struct drift_finder finder = {.tool = tool, .first = first, .second = second, .arena = arena};
    struct drift drift = {0};

    compare(&finder, first, second, SLICE(""));
    drift.differs = finder.found_count > 0;
    drift.material = finder.material_count > 0;
    if (drift.material) {
        drift.pointers = as_json(finder.material, finder.material_count, arena);
    } else if (drift.differs) {
        drift.pointers = as_json(finder.found, finder.found_count, arena);
    }
    return drift;
}
