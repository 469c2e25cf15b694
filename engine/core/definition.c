/* Sagas: steps read one by one, tied to their tools and to each other, then judged as a graph (definition_check.c). */
#include "core/definition.h"

#include <string.h>

#include "base/instant.h"
#include "base/json.h"
#include "core/definition_parts.h"
#include "core/graph.h"

#define SAGA_KNOWN "name description input deadline steps output budget compensation tags"
#define SAGA_LATER "locks then retention"
#define STEP_KNOWN "id call with scope after when on_failure retry timeout compensate"
#define STEP_KINDS_LATER "saga sleep signal approve"
#define TAGS_MAX 32
#define STEP_LATER STEP_KINDS_LATER " for_each concurrency"

struct saga_reader {
    struct reader *reader;
    struct tool_finder *finder;
    struct definition *definition;
    struct slice steps_pointer;
    struct slice *steps_json;
    bool *is_inline;
    bool graph_is_sound; /* every `after` could be resolved */
};

/* --- tools of a step --- */

static void find_call(struct saga_reader *s, struct step_definition *step, const struct members *m)
{
    struct slice call = members_at(m, "call"), place = members_pointer(m, "call"), near;
    struct reader *reader = s->reader;
    const struct tool *tool;

    if (json_type(call) == JSON_OBJECT) {
        struct slice name =
            arena_printf(reader->arena, "%.*s.%.*s", SLICE_ARG(s->definition->name), SLICE_ARG(step->id));

        if (name.len > NAME_BYTES_MAX) {
            faults_add(reader->faults, place,
                       "the inline tool would be called `%.*s`, which is longer than %d characters; shorten "
                       "the name of the saga or the id of the step",
                       SLICE_ARG(name), NAME_BYTES_MAX);
        }
        s->is_inline[step->index] = true;
        step->tool = tool_read(reader, call, name, 0, place);
        return;
    }
    struct slice name = json_type(call) == JSON_STRING ? json_string(call, reader->arena) : SLICE_NONE;

    if (!name.ptr) {
        faults_add(reader->faults, place,
                   "`call` is %.*s; it must be the name of a tool, or a tool written in place as an object",
                   SLICE_ARG(value_excerpt(call, reader->arena)));
        return;
    }
    switch (s->finder->find(s->finder, name, place, &tool)) {
    case TOOL_FOUND:
        step->tool = tool;
        break;
    case TOOL_BROKEN:
        break;
    case TOOL_MISSING:
        near = s->finder->near ? s->finder->near(s->finder, name) : SLICE_NONE;
        faults_add(reader->faults, place,
                   "there is no tool `%.*s` in this document and none is registered under this name%.*s",
                   SLICE_ARG(name), SLICE_ARG(did_you_mean(near, reader->arena)));
        break;
    }
}

/* A call that changes something is undone by exactly one compensator, or it is terminal. */
static void settle_compensator(struct saga_reader *s, struct step_definition *step, const struct members *m)
{
    struct reader *reader = s->reader;
    struct compensator own = {0};
    bool has_own = members_at(m, "compensate").ptr != NULL;
    const struct tool *tool = step->tool, *undo;

    if (has_own) {
        reader_compensator(reader, members_at(m, "compensate"), members_pointer(m, "compensate"), &own);
        step->compensate = own;
        undo = compensator_find(reader, &own, s->finder, place_join(reader->arena, own.pointer, SLICE("tool")));
        if (undo) {
            compensator_resolve(&step->compensate, undo);
        }
    }
    if (!tool) {
        return;
    }
    struct slice place = members_pointer(m, has_own ? "compensate" : "call");

    step->terminal = tool->terminal;
    if (has_own && tool->terminal) {
        faults_add(reader->faults, place,
                   "the tool `%.*s` is terminal: nothing undoes it; leave `compensate` out here, or `terminal` "
                   "out of the tool",
                   SLICE_ARG(tool->name));
    } else if (has_own && tool->effect == EFFECT_READ) {
        faults_add(reader->faults, place,
                   "the tool `%.*s` only reads, so there is nothing to compensate; leave `compensate` out",
                   SLICE_ARG(tool->name));
    } else if (!has_own && tool->compensate.is_set) {
        struct faults unheard, *heard = reader->faults;
        bool is_checked = s->finder->is_checked && s->finder->is_checked(s->finder, tool);
        struct slice where =
            s->is_inline[step->index] ? place_join(reader->arena, tool->compensate.pointer, SLICE("tool")) : place;

        faults_init(&unheard, reader->arena);
        reader->faults = is_checked ? &unheard : heard;
        step->compensate = tool->compensate;
        undo = compensator_find(reader, &tool->compensate, s->finder, where);
        reader->faults = heard;
        if (undo) {
            compensator_resolve(&step->compensate, undo);
        }
    } else if (!has_own && !tool->terminal && tool->effect != EFFECT_READ) {
        faults_add(reader->faults, place,
                   "the tool `%.*s` (%s) has neither `compensate` nor `terminal`, so it can only be a "
                   "compensator itself; say how it is undone, or that it cannot be",
                   SLICE_ARG(tool->name), effect_name(tool->effect));
    }
}

/* --- one step --- */

static void read_id(struct saga_reader *s, uint32_t index)
{
    struct step_definition *step = &s->definition->steps[index];
    struct slice json = s->steps_json[index], place = reader_element_pointer(s->reader, s->steps_pointer, index);
    struct slice value = json_type(json) == JSON_OBJECT ? json_member(json, "id") : SLICE_NONE;
    struct slice id_place = place_join(s->reader->arena, place, SLICE("id"));

    step->index = index;
    step->id = step->name = SLICE("");
    if (!value.ptr) {
        if (json_type(json) == JSON_OBJECT) {
            faults_add(s->reader->faults, place, "the step has no `id`; it needs one: " STEP_ID_RULE);
        }
        return;
    }
    struct slice id = json_type(value) == JSON_STRING ? json_string(value, s->reader->arena) : SLICE_NONE;

    if (!name_is_sound(id, "_", STEP_ID_BYTES_MAX)) {
        faults_add(s->reader->faults, id_place, "%.*s cannot be the id of a step: that is " STEP_ID_RULE,
                   SLICE_ARG(value_excerpt(value, s->reader->arena)));
        return;
    }
    step->id = step->name = id;
    for (uint32_t i = 0; i < index; i++) {
        if (slice_equal(s->definition->steps[i].id, id)) {
            faults_add(s->reader->faults, id_place,
                       "the id `%.*s` is taken by step %u above; each step needs an id of its own", SLICE_ARG(id),
                       (unsigned)i);
            return;
        }
    }
}

static void read_kind(struct saga_reader *s, struct step_definition *step, const struct members *m)
{
    static const char *const later[] = {"saga", "sleep", "signal", "approve"};
    bool has_later = false;

    for (size_t i = 0; i < COUNT_OF(later); i++) {
        has_later = has_later || members_at(m, later[i]).ptr;
    }
    if (members_at(m, "call").ptr) {
        find_call(s, step, m);
    } else if (!has_later) { /* those were refused by name */
        faults_add(s->reader->faults, m->pointer,
                   "the step does nothing; it needs a `call`: the name of a tool, or a tool written in "
                   "place");
    }
}

static bool find_step(const struct definition *definition, struct slice id, uint32_t *index)
{
    for (uint32_t i = 0; i < definition->step_count; i++) {
        if (id.len > 0 && slice_equal(definition->steps[i].id, id)) {
            *index = i;
            return true;
        }
    }
    return false;
}

static struct slice near_step(const struct reader *reader, const struct definition *definition, struct slice id)
{
    if (!reader_has_time(reader)) {
        return SLICE_NONE;
    }
    for (unsigned distance = 1; distance < 3; distance++) {
        for (uint32_t i = 0; i < definition->step_count; i++) {
            if (definition->steps[i].id.len > distance && word_distance(definition->steps[i].id, id) == distance) {
                return definition->steps[i].id;
            }
        }
    }
    return SLICE_NONE;
}

static bool after_has(const uint32_t *after, uint32_t count, uint32_t index)
{
    for (uint32_t i = 0; i < count; i++) {
        if (after[i] == index) {
            return true;
        }
    }
    return false;
}

static void read_after(struct saga_reader *s, struct step_definition *step, const struct members *m)
{
    struct slice value = members_at(m, "after"), place = members_pointer(m, "after"), item;
    struct reader *reader = s->reader;
    size_t before = reader_faults(reader);
    uint32_t *after, count = 0;

    if (!value.ptr) { /* a step waits for the one written before it */
        after = arena_array(reader->arena, 1, sizeof(*after));
        if (step->index > 0) {
            after[count++] = step->index - 1;
        }
        step->after = after;
        step->after_count = count;
        return;
    }
    if (json_type(value) != JSON_ARRAY) {
        faults_add(reader->faults, place,
                   "`after` is %.*s; it must be an array of the ids of steps, or [] to start at once",
                   SLICE_ARG(value_excerpt(value, reader->arena)));
        s->graph_is_sound = false;
        return;
    }
    struct json_walk walk = json_walk(value);

    after = arena_array(reader->arena, json_count(value) + 1, sizeof(*after));
    for (size_t i = 0; json_next_element(&walk, &item); i++) {
        struct slice where = reader_element_pointer(reader, place, i);
        struct slice id = json_type(item) == JSON_STRING ? json_string(item, reader->arena) : SLICE_NONE;
        uint32_t index;

        if (!id.ptr) {
            faults_add(reader->faults, where, "%.*s is not the id of a step",
                       SLICE_ARG(value_excerpt(item, reader->arena)));
        } else if (!find_step(s->definition, id, &index)) {
            faults_add(reader->faults, where, "there is no step `%.*s` to wait for%.*s",
                       SLICE_ARG(value_excerpt(id, reader->arena)),
                       SLICE_ARG(did_you_mean(near_step(s->reader, s->definition, id), reader->arena)));
        } else if (index == step->index) {
            faults_add(reader->faults, where, "the step `%.*s` waits for itself; take it out of its own `after`",
                       SLICE_ARG(id));
        } else if (after_has(after, count, index)) {
            faults_add(reader->faults, where, "the step `%.*s` is named twice; once is enough", SLICE_ARG(id));
        } else {
            after[count++] = index;
        }
    }
    step->after = after;
    step->after_count = count;
    if (reader_faults(reader) != before) {
        s->graph_is_sound = false;
    }
}

static void read_on_failure(struct saga_reader *s, struct step_definition *step, const struct members *m)
{
    static const char *const words[] = {
        [ON_FAILURE_COMPENSATE] = "compensate", [ON_FAILURE_ESCALATE] = "escalate", [ON_FAILURE_CONTINUE] = "continue"};
    struct slice value = members_at(m, "on_failure"), place = members_pointer(m, "on_failure");

    if (!value.ptr) {
        return;
    }
    for (unsigned i = 0; i < COUNT_OF(words); i++) {
        if (json_string_is(value, words[i])) {
            step->on_failure = (enum on_failure)i;
            if (i == ON_FAILURE_CONTINUE && step->terminal) {
                faults_add(s->reader->faults, place,
                           "the step `%.*s` is terminal, so there is nothing to continue with when it fails, and the "
                           "saga would count as completed without its last effect; leave `on_failure` out, or let it "
                           "be `escalate`",
                           SLICE_ARG(step->id));
            }
            return;
        }
    }
    faults_add(s->reader->faults, place, "`on_failure` is %.*s; it must be `compensate`, `escalate` or `continue`",
               SLICE_ARG(value_excerpt(value, s->reader->arena)));
}

static void read_step(struct saga_reader *s, uint32_t index)
{
    struct step_definition *step = &s->definition->steps[index];
    struct reader *reader = s->reader;
    struct members m;

    step->timeout_ms = TIMEOUT_DEFAULT_MS;
    if (!members_open(&m, s->steps_json[index], reader_element_pointer(reader, s->steps_pointer, index), "a step",
                      STEP_KNOWN, STEP_LATER, reader->arena, reader->faults)) {
        s->graph_is_sound = false;
        return;
    }
    read_kind(s, step, &m);
    read_after(s, step, &m);
    reader_template(reader, &m, "with", ROOTS_STEP, &step->with);
    reader_template(reader, &m, "scope", ROOTS_STEP, &step->scope);
    if (template_is_set(&step->scope) && json_type(step->scope.json) != JSON_STRING) {
        faults_add(reader->faults, members_pointer(&m, "scope"),
                   "`scope` is %.*s; it must be a string, such as \"${ .input.order_id }\"",
                   SLICE_ARG(value_excerpt(step->scope.json, reader->arena)));
    }
    reader_expression(reader, &m, "when", ROOTS_STEP, &step->when);
    settle_compensator(s, step, &m);
    read_on_failure(s, step, &m);
    if (step->tool) {
        step->timeout_ms = step->tool->timeout_ms;
        step->retry = step->tool->retry;
    } else {
        step->retry = retry_policy_default(EFFECT_KEYED);
    }
    (void)members_duration(&m, "timeout", 1, TIMEOUT_MAX_MS, &step->timeout_ms); /* absent: the tool's */
    if (members_at(&m, "retry").ptr) {
        struct retry_policy under = step->retry;

        reader_retry(reader, members_at(&m, "retry"), members_pointer(&m, "retry"),
                     step->tool ? tool_effect_mildest(step->tool) : EFFECT_KEYED, &under, &step->own_retry);
        step->retry = retry_policy_with(under, &step->own_retry);
    }
}

/* --- the whole --- */

static void collect_tool(struct definition *definition, const struct tool *tool)
{
    uint32_t at = 0;

    while (at < definition->tool_count && slice_compare(definition->tools[at]->name, tool->name) < 0) {
        at++;
    }
    if (at < definition->tool_count && slice_equal(definition->tools[at]->name, tool->name)) {
        return;
    }
    memmove(definition->tools + at + 1, definition->tools + at,
            (definition->tool_count - at) * sizeof(*definition->tools));
    definition->tools[at] = tool;
    definition->tool_count++;
}

static void collect_tools(struct saga_reader *s)
{
    struct definition *definition = s->definition;

    definition->tools =
        arena_array(s->reader->arena, 2 * (size_t)definition->step_count + 1, sizeof(*definition->tools));
    for (uint32_t i = 0; i < definition->step_count; i++) {
        const struct step_definition *step = &definition->steps[i];

        if (step->tool && !s->is_inline[i]) {
            collect_tool(definition, step->tool);
        }
        if (step->compensate.tool) {
            collect_tool(definition, step->compensate.tool);
        }
    }
}

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
    definition->step_count = (uint32_t)count;
    definition->steps = arena_array(reader->arena, count, sizeof(*definition->steps));
    s->steps_json = arena_array(reader->arena, count, sizeof(*s->steps_json));
    s->is_inline = arena_array(reader->arena, count, sizeof(*s->is_inline));
    struct json_walk walk = json_walk(value);

    for (uint32_t i = 0; json_next_element(&walk, &item); i++) {
        s->steps_json[i] = item;
        read_id(s, i);
    }
    for (uint32_t i = 0; i < count; i++) {
        read_step(s, i);
    }
    if (s->graph_is_sound &&
        !graph_close(definition->steps, definition->step_count, reader->arena, &definition->ancestors, &cycle_step)) {
        faults_add(reader->faults, reader_element_pointer(reader, s->steps_pointer, cycle_step),
                   "the steps wait for each other in a "
                   "circle that goes through `%.*s`; take one of them out of an `after`",
                   SLICE_ARG(definition->steps[cycle_step].id));
    }
}

static void read_tags(struct reader *reader, const struct members *m, struct definition *definition)
{
    struct slice value = members_at(m, "tags"), place = members_pointer(m, "tags"), name_raw, item;

    if (!value.ptr) {
        return;
    }
    if (json_type(value) != JSON_OBJECT || json_count(value) > TAGS_MAX) {
        faults_add(reader->faults, place, "`tags` is %.*s; it must be an object of %d texts at most",
                   SLICE_ARG(value_excerpt(value, reader->arena)), TAGS_MAX);
        return;
    }
    struct json_walk walk = json_walk(value);

    while (json_next_member(&walk, &name_raw, &item)) {
        if (json_type(item) != JSON_STRING) {
            struct slice name = json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, reader->arena);

            faults_add(reader->faults, place_join(reader->arena, place, name), "a tag is a text, not %.*s",
                       SLICE_ARG(value_excerpt(item, reader->arena)));
        }
    }
    definition->tags = json_trim(value);
}

static void read_compensation(struct reader *reader, const struct members *m, struct definition *definition)
{
    struct slice value = members_at(m, "compensation");
    struct members inner;

    definition->undo_concurrency = 1;
    if (!value.ptr || !members_open(&inner, value, members_pointer(m, "compensation"), "`compensation`", "concurrency",
                                    "", reader->arena, reader->faults)) {
        return;
    }
    if (json_count(value) == 0) {
        faults_add(reader->faults, inner.pointer,
                   "`compensation` says nothing; give `concurrency`: how many steps may be undone at once");
        return;
    }
    (void)members_count(&inner, "concurrency", 1, DEFINITION_STEPS_MAX, &definition->undo_concurrency);
}

struct definition *saga_read(struct reader *reader, struct slice body, uint32_t version, struct tool_finder *finder,
                             struct slice pointer)
{
    struct definition *definition = arena_alloc(reader->arena, sizeof(*definition));
    struct saga_reader s = {.reader = reader, .finder = finder, .definition = definition, .graph_is_sound = true};
    struct members m;

    definition->version = version;
    definition->budget = BUDGET_UNBOUNDED;
    definition->body = arena_slice(reader->arena, json_trim(body));
    pointer = arena_slice(reader->arena, pointer);
    if (!members_open(&m, definition->body, pointer, "a saga", SAGA_KNOWN, SAGA_LATER, reader->arena, reader->faults)) {
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
    struct slice description = SLICE_NONE;

    (void)members_text(&m, "description", &description); /* for people; only that it is a string matters */
    (void)members_duration(&m, "deadline", 1, DURATION_MS_MAX, &definition->deadline_ms); /* absent: none */
    if (members_at(&m, "input").ptr) {
        definition->input =
            schema_compile(members_at(&m, "input"), members_pointer(&m, "input"), reader->arena, reader->faults);
    }
    if (members_at(&m, "budget").ptr) { /* what is wrong with it has been said */
        (void)budget_read(members_at(&m, "budget"), members_pointer(&m, "budget"), reader->arena, reader->faults,
                          &definition->budget);
    }
    read_tags(reader, &m, definition);
    read_compensation(reader, &m, definition);
    reader_template(reader, &m, "output", ROOTS_STEP, &definition->output);
    s.steps_pointer = members_pointer(&m, "steps");
    if (!members_at(&m, "steps").ptr) {
        faults_add(reader->faults, pointer, "the saga has no `steps`; it needs an array of 1 to %d",
                   DEFINITION_STEPS_MAX);
        return definition;
    }
    read_steps(&s, members_at(&m, "steps"));
    if (definition->step_count == 0) {
        return definition;
    }
    if (definition->ancestors) {
        check_terminal(reader, definition, s.steps_pointer);
    }
    check_references(reader, definition, s.steps_pointer);
    collect_tools(&s);
    return definition;
}

/* --- against tools that are registered --- */

static enum tool_lookup source_find(struct tool_finder *finder, struct slice name, struct slice pointer,
                                    const struct tool **out)
{
    struct source_finder *self = container_of(finder, struct source_finder, finder);
    struct slice body;
    uint32_t version;

    for (size_t i = 0; i < self->tool_count; i++) {
        if (slice_equal(self->tools[i]->name, name)) {
            *out = self->tools[i];
            return TOOL_FOUND;
        }
    }
    if (!self->source || !self->source->find(self->source->context, name, 0, &body, &version)) {
        return TOOL_MISSING;
    }
    size_t before = reader_faults(self->reader);
    bool collects = self->reader->collects;

    self->reader->collects = false; /* its settings and programs were checked when it was registered */
    struct tool *tool = tool_read(self->reader, body, SLICE_NONE, version, pointer);

    self->reader->collects = collects;
    if (reader_faults(self->reader) != before) {
        return TOOL_BROKEN;
    }
    if (self->tool_count <
        COUNT_OF(self->tools)) { /* a single saga cannot use more; a document may, and compiles again */
        self->tools[self->tool_count++] = tool;
    }
    *out = tool;
    return TOOL_FOUND;
}

void source_finder_init(struct source_finder *self, struct reader *reader, const struct tool_source *source)
{
    *self = (struct source_finder){.finder = {.find = source_find}, .reader = reader, .source = source};
}

struct definition *definition_compile(struct slice body, uint32_t version, const struct tool_source *source,
                                      struct slice pointer, struct arena *arena, struct faults *faults)
{
    struct reader reader = {.arena = arena, .faults = faults};
    struct source_finder self;
    size_t before = reader_faults(&reader);

    source_finder_init(&self, &reader, source);
    struct definition *definition = saga_read(&reader, body, version, &self.finder, pointer);

    return reader_faults(&reader) == before ? definition : NULL;
}
