/* Reads one step of a saga: its kind, the members of that kind, and the steps, tools and sagas it names. */
#include <string.h>

#include "base/instant.h"
#include "base/json.h"
#include "core/definition/parts.h"

#define STEP_KNOWN                                                                                                     \
    "id description call saga sleep signal approve with scope after when for_each concurrency on_failure retry "       \
    "timeout compensate"

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
        tool_check_test(reader, step->tool, s->finder, place);
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
    case TOOL_FLAWED:
        step->tool = tool;
        break;
    case TOOL_BROKEN:
        break;
    case TOOL_MISSING:
        near = s->finder->near ? s->finder->near(s->finder, name) : SLICE_NONE;
        faults_add(reader->faults, place, "there is no tool `%.*s` in this document%s%.*s", SLICE_ARG(name),
                   reader_not_registered(reader), SLICE_ARG(did_you_mean(near, reader->arena)));
        break;
    }
}

/* Finds the compensator of a step. A call with an effect needs exactly one compensator, or it is terminal. */
static void settle_compensator(struct saga_reader *s, struct step_definition *step, const struct members *m)
{
    struct reader *reader = s->reader;
    struct compensator own = {0};
    bool has_own = members_at(m, "compensate").ptr != NULL;
    const struct tool *tool = step->tool, *undo;

    if (has_own) {
        reader_compensator(reader, members_at(m, "compensate"), members_pointer(m, "compensate"),
                           template_is_set(&step->for_each) ? ROOTS_COMPENSATE | ROOT_ITEM : ROOTS_COMPENSATE, &own);
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

void step_read_id(struct saga_reader *s, uint32_t index)
{
    struct step_definition *step = &s->definition->steps[index];
    struct slice json = s->steps_json[index], place = reader_element_pointer(s->reader, s->steps_pointer, index);
    struct slice value = json_type(json) == JSON_OBJECT ? json_member(json, "id") : SLICE_NONE;
    struct slice id_place = place_join(s->reader->arena, place, SLICE("id"));

    step->index = step->member = index;
    step->group = step->element = UINT32_MAX;
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

/* --- its kind, and what goes with it --- */

#define KIND_BIT(kind) (1u << (kind))
#define WAITS (KIND_BIT(STEP_SLEEP) | KIND_BIT(STEP_SIGNAL) | KIND_BIT(STEP_APPROVE))

static const char *const kind_names[] = {[STEP_CALL] = "call",
                                         [STEP_SAGA] = "saga",
                                         [STEP_SLEEP] = "sleep",
                                         [STEP_SIGNAL] = "signal",
                                         [STEP_APPROVE] = "approve"};

/* Members that some kinds of steps refuse, with the advice for the author. Accepted there, they would silently do
 * nothing. */
static const struct {
    const char *name;
    unsigned refused; /* kinds */
    const char *instead;
} misplaced[] = {
    {"with", WAITS, "only a call or a child saga is given arguments; leave it out"},
    {"scope", KIND_BIT(STEP_SAGA), "a scope is a part of the key of a call; give it to the calls of the child"},
    {"scope", WAITS, "a scope is a part of the key of a call; leave it out"},
    {"retry", KIND_BIT(STEP_SAGA), "only a call is tried again; give it to the calls of the child"},
    {"retry", WAITS, "only a call is tried again; leave it out"},
    {"timeout", KIND_BIT(STEP_SAGA), "it is the time that one call may take; give the child a `deadline`"},
    {"timeout", KIND_BIT(STEP_SLEEP), "how long it takes is what `sleep` says; leave it out"},
    {"timeout", KIND_BIT(STEP_SIGNAL),
     "how long it waits is written inside: {\"signal\": {\"name\": ..., \"timeout\": ...}}"},
    {"timeout", KIND_BIT(STEP_APPROVE), "how long it waits is written inside: {\"approve\": {\"timeout\": ...}}"},
    {"compensate", KIND_BIT(STEP_SAGA), "a child is undone by the compensators of its own steps; give them to those"},
    {"compensate", WAITS, "waiting changes nothing, so there is nothing to undo; leave it out"},
};

static void check_misplaced(struct saga_reader *s, const struct step_definition *step, const struct members *m)
{
    for (size_t i = 0; i < COUNT_OF(misplaced); i++) {
        if (misplaced[i].refused & KIND_BIT(step->kind) && members_at(m, misplaced[i].name).ptr) {
            faults_add(s->reader->faults, members_pointer(m, misplaced[i].name), "`%s` does not go with `%s`: %s",
                       misplaced[i].name, kind_names[step->kind], misplaced[i].instead);
        }
    }
    if (members_at(m, "concurrency").ptr && !members_at(m, "for_each").ptr) {
        faults_add(s->reader->faults, members_pointer(m, "concurrency"),
                   "`concurrency` says how many elements of `for_each` are under way at once, and there is no "
                   "`for_each`; leave it out");
    }
}

/* Returns the roots that the expressions of a step may name; `for_each` adds the element. */
static unsigned roots_of(const struct members *m)
{
    return members_at(m, "for_each").ptr ? ROOTS_STEP | ROOT_ITEM : ROOTS_STEP;
}

static void read_sleep(struct saga_reader *s, struct step_definition *step, const struct members *m)
{
    struct slice value = members_at(m, "sleep"), place = members_pointer(m, "sleep");
    struct slice text = json_type(value) == JSON_STRING ? json_string(value, s->reader->arena) : SLICE_NONE;
    int64_t ms;

    if (text.ptr) {
        reader_template(s->reader, m, "sleep", roots_of(m), &step->sleep);
    }
    if (!text.ptr || (step->sleep.count == 0 && !duration_parse(text, &ms) && !instant_parse(text, &ms))) {
        faults_add(s->reader->faults, place,
                   "`sleep` is %.*s; it must be a duration such as \"30m\", an instant such as "
                   "\"2030-01-31T09:00:00Z\", or an expression that gives one of them",
                   SLICE_ARG(value_excerpt(value, s->reader->arena)));
    }
}

static void read_signal(struct saga_reader *s, struct step_definition *step, const struct members *m)
{
    struct members inner;

    if (!members_open(&inner, members_at(m, "signal"), members_pointer(m, "signal"), "`signal`", "name timeout", "",
                      s->reader->arena, s->reader->faults)) {
        return;
    }
    if (!members_at(&inner, "name").ptr) {
        faults_add(s->reader->faults, inner.pointer, "the signal has no `name`; it needs one: " NAME_RULE);
    } else if (members_text(&inner, "name", &step->signal_name) &&
               !name_is_sound(step->signal_name, "_.-", NAME_BYTES_MAX)) {
        faults_add(s->reader->faults, members_pointer(&inner, "name"),
                   "\"%.*s\" cannot be the name of a signal: that is " NAME_RULE,
                   SLICE_ARG(value_excerpt(step->signal_name, s->reader->arena)));
    }
    (void)members_duration(&inner, "timeout", 1, DURATION_MS_MAX,
                           &step->wait_timeout_ms); /* without a timeout by default */
}

static void read_roles(struct saga_reader *s, struct step_definition *step, const struct members *m)
{
    struct slice value = members_at(m, "roles"), place = members_pointer(m, "roles"), item;
    enum role role;

    step->roles = 1u << ROLE_OPERATOR;
    if (!value.ptr) {
        return;
    }
    if (json_type(value) != JSON_ARRAY || json_count(value) == 0) {
        faults_add(s->reader->faults, place,
                   "`roles` is %.*s; it must be an array of one or more of `reader`, `agent`, `operator` and `admin`",
                   SLICE_ARG(value_excerpt(value, s->reader->arena)));
        return;
    }
    struct json_walk walk = json_walk(value);

    step->roles = 0;
    for (size_t i = 0; json_next_element(&walk, &item); i++) {
        struct slice name = json_type(item) == JSON_STRING ? json_string(item, s->reader->arena) : SLICE_NONE;

        if (!name.ptr || !role_parse(name, &role)) {
            faults_add(s->reader->faults, reader_element_pointer(s->reader, place, i),
                       "%.*s is no role; those are `reader`, `agent`, `operator` and `admin`",
                       SLICE_ARG(value_excerpt(item, s->reader->arena)));
        } else if (step->roles & (1u << role)) {
            faults_add(s->reader->faults, reader_element_pointer(s->reader, place, i),
                       "the role `%.*s` is named twice; once is enough", SLICE_ARG(name));
        } else {
            step->roles |= 1u << role;
        }
    }
}

static void read_not_by(struct saga_reader *s, struct step_definition *step, const struct members *m)
{
    struct slice value = members_at(m, "not_by");

    step->not_by_starter = json_string_is(value, "starter");
    if (value.ptr && !step->not_by_starter) {
        faults_add(s->reader->faults, members_pointer(m, "not_by"), "`not_by` is %.*s; it must be \"starter\"",
                   SLICE_ARG(value_excerpt(value, s->reader->arena)));
    }
}

static void read_approve(struct saga_reader *s, struct step_definition *step, const struct members *m)
{
    struct members inner;

    if (!members_open(&inner, members_at(m, "approve"), members_pointer(m, "approve"), "`approve`",
                      "show timeout roles not_by", "", s->reader->arena, s->reader->faults)) {
        return;
    }
    reader_template(s->reader, &inner, "show", roots_of(m), &step->show);
    (void)members_duration(&inner, "timeout", 1, DURATION_MS_MAX,
                           &step->wait_timeout_ms); /* without a timeout by default */
    read_roles(s, step, &inner);
    read_not_by(s, step, &inner);
}

static bool find_kind(struct saga_reader *s, struct step_definition *step, const struct members *m)
{
    bool found = false;

    for (unsigned i = 0; i < COUNT_OF(kind_names); i++) {
        if (!members_at(m, kind_names[i]).ptr) {
            continue;
        }
        if (found) {
            faults_add(s->reader->faults, members_pointer(m, kind_names[i]),
                       "`%s` stands beside `%s`; a step is exactly one of `call`, `saga`, `sleep`, `signal` and "
                       "`approve`, so make two steps of it",
                       kind_names[i], kind_names[step->kind]);
            continue;
        }
        step->kind = (enum step_kind)i;
        found = true;
    }
    if (!found) {
        faults_add(s->reader->faults, m->pointer,
                   "the step does nothing; it needs a `call` (the name of a tool, or a tool written in place), a "
                   "`saga`, a `sleep`, a `signal` or an `approve`");
    }
    return found;
}

static void read_kind(struct saga_reader *s, struct step_definition *step, const struct members *m)
{
    if (!find_kind(s, step, m)) {
        return;
    }
    switch (step->kind) {
    case STEP_CALL:
        find_call(s, step, m);
        break;
    case STEP_SAGA:
        child_read(s, step, m);
        break;
    case STEP_SLEEP:
        read_sleep(s, step, m);
        break;
    case STEP_SIGNAL:
        read_signal(s, step, m);
        break;
    case STEP_APPROVE:
        read_approve(s, step, m);
        break;
    }
    check_misplaced(s, step, m);
}

/* --- the step --- */

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

    if (!value.ptr) { /* a step waits for the one written before it, by default */
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
                           "the step `%.*s` is terminal%s, so there is nothing to continue with when it fails, and the "
                           "saga would count as completed without its last effect; leave `on_failure` out, or let it "
                           "be `escalate`",
                           SLICE_ARG(step->id), step->child ? ", because a step of that saga is" : "");
            }
            return;
        }
    }
    faults_add(s->reader->faults, place, "`on_failure` is %.*s; it must be `compensate`, `escalate` or `continue`",
               SLICE_ARG(value_excerpt(value, s->reader->arena)));
}

static void read_retries(struct saga_reader *s, struct step_definition *step, const struct members *m)
{
    struct reader *reader = s->reader;

    if (step->tool) {
        step->timeout_ms = step->tool->timeout_ms;
        step->retry = step->tool->retry;
    } else {
        step->retry = retry_policy_default(EFFECT_KEYED);
    }
    (void)members_duration(m, "timeout", 1, TIMEOUT_MAX_MS, &step->timeout_ms); /* the timeout of the tool by default */
    if (members_at(m, "retry").ptr) {
        struct retry_policy under = step->retry;

        reader_retry(reader, members_at(m, "retry"), members_pointer(m, "retry"),
                     step->tool ? tool_effect_mildest(step->tool) : EFFECT_KEYED, &under, &step->own_retry);
        step->retry = retry_policy_with(under, &step->own_retry);
    }
}

void step_read(struct saga_reader *s, uint32_t index)
{
    struct step_definition *step = &s->definition->steps[index];
    struct slice description = SLICE_NONE;
    struct reader *reader = s->reader;
    struct members m;

    step->timeout_ms = TIMEOUT_DEFAULT_MS;
    if (!members_open(&m, s->steps_json[index], reader_element_pointer(reader, s->steps_pointer, index), "a step",
                      STEP_KNOWN, "", reader->arena, reader->faults)) {
        s->graph_is_sound = false;
        return;
    }
    (void)members_text(&m, "description", &description); /* the description is for people; only its type matters */
    read_kind(s, step, &m);
    read_after(s, step, &m);
    reader_expression(reader, &m, "for_each", ROOTS_STEP, &step->for_each);
    (void)members_count(&m, "concurrency", 1, FOR_EACH_MAX, &step->concurrency); /* one element at a time by default */
    reader_template(reader, &m, "with", roots_of(&m), &step->with);
    reader_template(reader, &m, "scope", roots_of(&m), &step->scope);
    if (template_is_set(&step->scope) && json_type(step->scope.json) != JSON_STRING) {
        faults_add(reader->faults, members_pointer(&m, "scope"),
                   "`scope` is %.*s; it must be a string, such as \"${ .input.order_id }\"",
                   SLICE_ARG(value_excerpt(step->scope.json, reader->arena)));
    }
    reader_expression(reader, &m, "when", ROOTS_STEP, &step->when);
    settle_compensator(s, step, &m);
    read_on_failure(s, step, &m);
    read_retries(s, step, &m);
}
