/* Reads sagas. Each step is read on its own (definition/step.c), then the steps are tied to their tools and to each
 * other, and at last the whole is checked as a graph (definition/check.c). */
#include "core/definition/definition.h"

#include "base/instant.h"
#include "base/json.h"
#include "core/definition/graph.h"
#include "core/definition/parts.h"

#define SAGA_KNOWN                                                                                                     \
    "name description input deadline steps output budget locks compensation then retention tags retired sensitive "    \
    "expose shared_by"

static void read_steps(struct saga_reader *s, struct slice value)
{
    struct definition *definition = s->definition;
    struct reader *reader = s->reader;
    size_t count = json_type(value) == JSON_ARRAY ? json_count(value) : 0;
    struct slice item;
    uint32_t cycle_step;

    if (count == 0 || count > DEFINITION_STEPS_MAX) {
        faults_add(reader->faults, s->steps_pointer, "`steps` is %.*s; it must be an array of 1 to %d steps",
                   SLICE_ARG(count > 0 ? arena_printf(reader->arena, "an array of %zu", count)
                                       : value_excerpt(value, reader->arena)),
                   DEFINITION_STEPS_MAX);
        return;
    }
    definition->step_count = definition->written_count = (uint32_t)count;
    definition->steps = arena_array(reader->arena, count, sizeof(*definition->steps));
    s->steps_json = arena_array(reader->arena, count, sizeof(*s->steps_json));
    s->is_inline = arena_array(reader->arena, count, sizeof(*s->is_inline));
    struct json_walk walk = json_walk(value);

    for (uint32_t i = 0; json_next_element(&walk, &item); i++) {
        s->steps_json[i] = item;
        step_read_id(s, i);
    }
    for (uint32_t i = 0; i < count; i++) {
        step_read(s, i);
    }
    if (s->graph_is_sound &&
        !graph_close(definition->steps, definition->step_count, reader->arena, &definition->ancestors, &cycle_step)) {
        faults_add(reader->faults, reader_element_pointer(reader, s->steps_pointer, cycle_step),
                   "the steps wait for each other in a "
                   "circle that goes through `%.*s`; take one of them out of an `after`",
                   SLICE_ARG(definition->steps[cycle_step].id));
    }
}

struct definition *saga_read(struct reader *reader, struct slice body, uint32_t version, struct tool_finder *finder,
                             struct slice pointer)
{
    struct definition *definition = arena_alloc(reader->arena, sizeof(*definition));
    struct saga_reader s = {.reader = reader, .finder = finder, .definition = definition, .graph_is_sound = true};
    struct nesting nesting = {.around = reader->nesting, .depth = reader->nesting ? reader->nesting->depth + 1 : 0};
    struct members m;

    definition->version = version;
    definition->budget = BUDGET_UNBOUNDED;
    definition->body = arena_slice(reader->arena, json_trim(body));
    pointer = arena_slice(reader->arena, pointer);
    if (!members_open(&m, definition->body, pointer, "a saga", SAGA_KNOWN, "", reader->arena, reader->faults)) {
        return definition;
    }
    definition->name = SLICE("");
    if (!members_at(&m, "name").ptr) {
        faults_add(reader->faults, pointer, "the saga has no `name`; it needs one: " NAME_RULE);
    } else if (members_text(&m, "name", &definition->name) && !name_is_sound(definition->name, "_.-", NAME_BYTES_MAX)) {
        faults_add(reader->faults, members_pointer(&m, "name"),
                   "\"%.*s\" cannot be the name of a saga: that is " NAME_RULE,
                   SLICE_ARG(value_excerpt(definition->name, reader->arena)));
    }
    nesting.name = definition->name;
    reader->nesting = &nesting;
    struct slice description = SLICE_NONE;
    bool exposed = false;

    (void)members_text(&m, "description", &description); /* the description is for people; only its type matters */
    (void)members_bool(&m, "expose", &exposed);          /* exposure.c reads it */
    (void)members_duration(&m, "deadline", 1, DURATION_MS_MAX,
                           &definition->deadline_ms); /* without a deadline by default */
    if (members_at(&m, "input").ptr) {
        definition->input =
            schema_compile(members_at(&m, "input"), members_pointer(&m, "input"), reader->arena, reader->faults);
    }
    if (members_at(&m, "budget").ptr) { /* budget_read() has reported the faults of the budget */
        (void)budget_read(members_at(&m, "budget"), members_pointer(&m, "budget"), reader->arena, reader->faults,
                          &definition->budget);
    }
    (void)members_duration(&m, "retention", 1, DURATION_MS_MAX,
                           &definition->retention_ms); /* sagas are kept for ever by default */
    if (members_text(&m, "retired", &definition->retired) && definition->retired.len == 0) {
        faults_add(reader->faults, members_pointer(&m, "retired"),
                   "`retired` says why, and what to start instead; leave it out where sagas may be started");
    }
    reader_sensitive(reader, &m, definition->input, &definition->sensitive);
    saga_read_tags(reader, &m, definition);
    saga_read_compensation(reader, &m, definition);
    saga_read_locks(reader, &m, definition);
    saga_read_followers(&s, &m);
    reader_template(reader, &m, "output", ROOTS_END, &definition->output);
    s.steps_pointer = members_pointer(&m, "steps");
    if (members_at(&m, "steps").ptr) {
        read_steps(&s, members_at(&m, "steps"));
    } else {
        faults_add(reader->faults, pointer, "the saga has no `steps`; it needs an array of 1 to %d",
                   DEFINITION_STEPS_MAX);
    }
    reader->nesting = nesting.around;
    if (definition->step_count == 0) {
        return definition;
    }
    if (definition->ancestors) {
        check_terminal(reader, definition, s.steps_pointer);
    }
    check_references(reader, definition, s.steps_pointer);
    check_saga_paths(reader, definition, s.steps_pointer);
    check_saga_shows(reader, definition);
    children_collect(&s);
    return definition;
}
