/*
 * Reads `sensitive`: JSON Pointers to members that only an admin is shown. What is shown to everybody may not be made
 * of one: tags, scopes, keys of locks and ids of followers find sagas, and stand in lists, tables and lines of the log.
 */
#include "base/canon.h"
#include "base/json.h"
#include "core/definition/parts.h"
#include "core/language/shape.h"

#define RESULT "/result"

/* Is it the result itself, or within it? `rest` is the pointer from there on. */
static bool is_of_result(struct slice pointer, struct slice *rest)
{
    size_t len = sizeof(RESULT) - 1;

    if (!slice_starts_with(pointer, RESULT) || (pointer.len > len && pointer.ptr[len] != '/')) {
        return false;
    }
    *rest = (struct slice){pointer.ptr + len, pointer.len - len};
    return true;
}

/* --- a pointer that names nothing protects nothing --- */

static struct slice segment_text(struct slice segment, struct arena *arena)
{
    char *text = arena_text(arena, segment);
    size_t len = 0;

    for (size_t i = 0; i < segment.len; i++) {
        bool is_escape = segment.ptr[i] == '~' && i + 1 < segment.len;

        text[len++] = !is_escape ? segment.ptr[i] : segment.ptr[i + 1] == '1' ? '/' : '~';
        i += is_escape;
    }
    return (struct slice){text, len};
}

static bool is_element(struct slice segment)
{
    bool is_number = segment.len > 0;

    for (size_t i = 0; i < segment.len; i++) {
        is_number = is_number && segment.ptr[i] >= '0' && segment.ptr[i] <= '9';
    }
    return is_number || slice_is(segment, "*");
}

static void check_place(struct reader *reader, const struct schema *schema, struct slice pointer, struct slice place)
{
    struct shape shape = {.kind = schema ? SHAPE_SCHEMA : SHAPE_ANY, .schema = schema};
    struct slice parts[POINTER_BYTES_MAX], why;
    size_t count = slice_split(pointer, '/', parts, POINTER_BYTES_MAX);

    for (size_t i = 1; i < count; i++) { /* nothing stands in front of the first slash */
        struct slice member = is_element(parts[i]) ? SLICE_NONE : segment_text(parts[i], reader->arena);
        enum shape_says says = shape_follow(&shape, member, reader->arena, &why);

        if (says == SHAPE_FORBIDS && member.ptr) {
            faults_add(reader->faults, place, "\"%.*s\" names nothing, so it would mask nothing, by `input`: %.*s",
                       SLICE_ARG(pointer), SLICE_ARG(why));
        }
        if (says == SHAPE_FORBIDS || says == SHAPE_OMITS) {
            return;
        }
    }
}

void reader_sensitive(struct reader *reader, const struct members *m, const struct schema *input,
                      struct pointers *sensitive)
{
    struct slice rest;

    if (!reader_pointers(reader, m, "sensitive", &(struct pointers){0}, false, sensitive) || !reader->holds) {
        return;
    }
    for (size_t i = 0; i < sensitive->count; i++) {
        if (!is_of_result(sensitive->items[i], &rest)) {
            check_place(reader, input, sensitive->items[i],
                        reader_element_pointer(reader, members_pointer(m, "sensitive"), i));
        }
    }
}

/* --- what everybody is shown --- */

struct shown { /* a text that everybody is shown */
    struct reader *reader;
    const struct definition *definition; /* NULL: it is of a tool */
    const struct tool *tool;
    const char *what;
};

/* The rest of a path from its part `from` on, as a pointer. */
static struct slice pointer_of(const struct path_use *path, size_t from, struct arena *arena)
{
    struct slice pointer = SLICE("");

    for (size_t i = from; i < path->part_count; i++) {
        pointer = json_pointer_join(arena, pointer, path->parts[i].ptr ? path->parts[i] : SLICE("*"));
    }
    return pointer;
}

/* The first of these pointers that names a place at, within or around the place of the path. */
static struct slice sensitive_at(const struct pointers *sensitive, bool in_result, struct slice place)
{
    for (size_t i = 0; i < sensitive->count; i++) {
        struct slice pointer = sensitive->items[i], rest;
        bool of_result = is_of_result(pointer, &rest);

        if (of_result == in_result && canon_pointers_overlap(of_result ? rest : pointer, place)) {
            return pointer;
        }
    }
    return SLICE_NONE;
}

static const struct pointers *of_step(const struct definition *definition, struct slice id)
{
    static const struct pointers none;

    for (uint32_t i = 0; i < definition->step_count; i++) {
        const struct step_definition *step = &definition->steps[i];

        if (slice_equal(step->id, id)) {
            return step->tool ? &step->tool->sensitive : step->child ? &step->child->sensitive : &none;
        }
    }
    return &none;
}

static void on_path(void *context, const struct path_use *path)
{
    const struct shown *shown = context;
    struct arena *arena = shown->reader->arena;
    struct slice root = path->part_count > 0 ? path->parts[0] : SLICE_NONE, found = SLICE_NONE;

    if (!root.ptr) {
        return;
    }
    if (shown->tool && slice_is(root, "args")) {
        found = sensitive_at(&shown->tool->sensitive, false, pointer_of(path, 1, arena));
    } else if (shown->definition && slice_is(root, "input")) {
        found = sensitive_at(&shown->definition->sensitive, false, pointer_of(path, 1, arena));
    } else if (shown->definition && slice_is(root, "steps") && path->part_count > 2 && path->parts[1].ptr &&
               path->parts[2].ptr && slice_is(path->parts[2], "result")) {
        found = sensitive_at(of_step(shown->definition, path->parts[1]), true, pointer_of(path, 3, arena));
    }
    if (found.ptr) {
        faults_add(shown->reader->faults, path->pointer,
                   "%s is shown to everybody, and \"%.*s\" is sensitive; make it of something else", shown->what,
                   SLICE_ARG(found));
    }
}

static void look(struct shown shown, const char *what, const struct template *template)
{
    shown.what = what;
    template_each_path(template, on_path, &shown);
}

void check_tool_shows(struct reader *reader, const struct tool *tool)
{
    if (reader->holds) {
        look((struct shown){.reader = reader, .tool = tool}, "the scope of a call", &tool->scope);
    }
}

void check_saga_shows(struct reader *reader, const struct definition *definition)
{
    const struct shown shown = {.reader = reader, .definition = definition};

    if (!reader->holds) {
        return;
    }
    look(shown, "a tag", &definition->tag_values);
    for (uint32_t i = 0; i < definition->lock_count; i++) {
        look(shown, "the key of a lock", &definition->locks[i].key);
    }
    for (uint32_t i = 0; i < definition->follower_count; i++) {
        look(shown, "the id of a saga", &definition->followers[i].id);
    }
    for (uint32_t i = 0; i < definition->step_count; i++) {
        look(shown, "the scope of a call", &definition->steps[i].scope);
    }
}
