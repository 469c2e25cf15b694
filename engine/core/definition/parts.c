/* Reads the parts that tools and steps share: retry policies, compensators, adapters and templates. */
#include "core/definition/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/instant.h"
#include "base/json.h"

#define ATTEMPTS_MAX 1000
#define FACTOR_MAX_MILLI 10000

size_t reader_faults(const struct reader *reader)
{
    return reader->faults->count + reader->faults->dropped;
}

const char *reader_not_registered(const struct reader *reader)
{
    return reader->offline ? ", and what is registered was not looked at: add --server"
                           : " and none is registered under this name";
}

bool reader_has_time(const struct reader *reader)
{
    return reader_faults(reader) < reader->faults->count_max;
}

struct slice reader_element_pointer(struct reader *reader, struct slice pointer, size_t index)
{
    return place_join_index(reader->arena, pointer, index);
}

static void add_check(struct reader *reader, struct document_check check)
{
    if (!reader->collects) {
        return;
    }
    if (reader->check_count == reader->check_capacity) {
        size_t capacity = reader->check_capacity ? 2 * reader->check_capacity : 16;
        struct document_check *checks = arena_array(reader->arena, capacity, sizeof(*checks));

        if (reader->check_count > 0) {
            memcpy(checks, reader->checks, reader->check_count * sizeof(*checks));
        }
        reader->checks = checks;
        reader->check_capacity = capacity;
    }
    reader->checks[reader->check_count++] = check;
}

static void collect_programs(struct reader *reader, const struct template *template)
{
    for (size_t i = 0; i < template->count; i++) {
        const struct expression *e = &template->expressions[i];

        if (e->kind == EXPRESSION_PROGRAM && e->source.len > 0) {
            add_check(reader, (struct document_check){.pointer = e->pointer, .program = e->source});
        }
    }
}

void reader_template_at(struct reader *reader, struct slice value, struct slice pointer, unsigned roots,
                        struct template *out)
{
    template_compile(value, pointer, roots, reader->arena, reader->faults, out);
    collect_programs(reader, out);
}

void reader_template(struct reader *reader, const struct members *members, const char *name, unsigned roots,
                     struct template *out)
{
    struct slice value = members_at(members, name);

    if (value.ptr) {
        reader_template_at(reader, value, members_pointer(members, name), roots, out);
    }
}

void reader_expression(struct reader *reader, const struct members *members, const char *name, unsigned roots,
                       struct template *out)
{
    struct slice value = members_at(members, name);

    if (value.ptr) {
        expression_compile(value, members_pointer(members, name), roots, reader->arena, reader->faults, out);
        collect_programs(reader, out);
    }
}

void reader_adapter(struct reader *reader, const struct members *members, const char *what, enum key_place place,
                    struct slice *adapter, struct template *settings)
{
    static const char *const adapters[] = {"http", "exec", "sql", "mcp", "builtin"};
    struct slice found = SLICE_NONE;

    for (size_t i = 0; i < COUNT_OF(adapters); i++) {
        struct slice value = members_at(members, adapters[i]);

        if (!value.ptr) {
            continue;
        }
        struct slice pointer = members_pointer(members, adapters[i]);

        if (found.ptr) {
            faults_add(reader->faults, pointer, "`%s` stands beside `%.*s`; %s has exactly one adapter", adapters[i],
                       SLICE_ARG(found), what);
        } else {
            found = slice_of(adapters[i]);
        }
        if (json_type(value) != JSON_OBJECT) {
            faults_add(reader->faults, pointer, "`%s` must be an object with the settings of the adapter, not %.*s",
                       adapters[i], SLICE_ARG(value_excerpt(value, reader->arena)));
            continue;
        }
        template_compile(value, pointer, ROOTS_SETTINGS, reader->arena, reader->faults, settings);
        if (reader->reading >= READING_SECOND && !reader->url_raw) {
            template_encode_url(settings, place_join(reader->arena, pointer, SLICE("url")));
            template_encode_url(
                settings, place_join(reader->arena, place_join(reader->arena, pointer, SLICE("server")), SLICE("url")));
        }
        collect_programs(reader, settings);
        add_check(reader, (struct document_check){.pointer = pointer,
                                                  .adapter = slice_of(adapters[i]),
                                                  .settings = settings->json,
                                                  .key_place = place});
    }
    if (!found.ptr) {
        faults_add(reader->faults, members->pointer,
                   "there is no adapter; %s has exactly one of `http`, `exec`, `sql`, `mcp` and `builtin`", what);
        return;
    }
    *adapter = found;
}

void reader_refuse_barrier(struct reader *reader, const struct members *members, const char *what)
{
    bool barrier;

    if (json_bool(json_member(members_at(members, "sql"), "barrier"), &barrier) && barrier) {
        faults_add(reader->faults, place_join(reader->arena, members_pointer(members, "sql"), SLICE("barrier")),
                   "%s changes nothing, so there is no effect for a barrier to remember; leave `barrier` out", what);
    }
}

/* Reads a factor of 1 to 10, in thousandths. */
static bool read_factor(const struct members *m, uint32_t *milli)
{
    struct slice value = members_at(m, "factor");
    char *end;

    if (!value.ptr) {
        return false;
    }
    double factor = json_type(value) == JSON_NUMBER ? strtod(arena_text(m->arena, value), &end) : 0;

    if (!(factor >= 1 && factor * 1000 <= FACTOR_MAX_MILLI)) {
        faults_add(m->faults, members_pointer(m, "factor"), "`factor` is %.*s; it must be a number from 1 to %d",
                   SLICE_ARG(value_excerpt(value, m->arena)), FACTOR_MAX_MILLI / 1000);
        return false;
    }
    *milli = (uint32_t)(factor * 1000 + 0.5);
    return true;
}

void reader_retry(struct reader *reader, struct slice value, struct slice pointer, enum effect effect,
                  const struct retry_policy *under, struct retry_policy *own)
{
    struct members m;

    *own = (struct retry_policy){0};
    if (!members_open(&m, value, pointer, "`retry`", "max_attempts initial factor max max_unsent", "", reader->arena,
                      reader->faults)) {
        return;
    }
    if (members_count(&m, "max_attempts", 1, ATTEMPTS_MAX, &own->max_attempts) && effect == EFFECT_ONCE &&
        own->max_attempts != 1) {
        faults_add(reader->faults, members_pointer(&m, "max_attempts"),
                   "`max_attempts` is %u, but the effect is `once`, which "
                   "is never called again: it must be 1 or left out",
                   (unsigned)own->max_attempts);
    }
    (void)members_count(&m, "max_unsent", 1, ATTEMPTS_MAX,
                        &own->max_unsent); /* without this member the inherited value stays */
    (void)read_factor(&m, &own->factor_milli);
    bool has_initial = members_duration(&m, "initial", 1, DURATION_MS_MAX, &own->initial_ms);
    bool has_max = members_duration(&m, "max", 1, DURATION_MS_MAX, &own->max_ms);
    struct retry_policy whole = retry_policy_with(*under, own);

    if (has_initial && has_max && whole.initial_ms > whole.max_ms) {
        faults_add(reader->faults, members_pointer(&m, "max"),
                   "`max` (%.*s) is shorter than `initial` (%.*s); the longest delay "
                   "cannot be shorter than the first",
                   SLICE_ARG(members_at(&m, "max")), SLICE_ARG(members_at(&m, "initial")));
    }
}

void reader_compensator(struct reader *reader, struct slice value, struct slice pointer, unsigned roots,
                        struct compensator *out)
{
    struct members m;

    *out = (struct compensator){.is_set = true, .give_up_after_ms = GIVE_UP_AFTER_DEFAULT_MS, .pointer = pointer};
    if (!members_open(&m, value, pointer, "`compensate`", "tool with tolerates_absent voids_key retry give_up_after",
                      "", reader->arena, reader->faults)) {
        return;
    }
    if (!members_at(&m, "tool").ptr) {
        faults_add(reader->faults, pointer,
                   "`compensate` does not say by which `tool`; name the registered tool that undoes");
    } else if (members_text(&m, "tool", &out->tool_name) && !name_is_sound(out->tool_name, "_.-", NAME_BYTES_MAX)) {
        faults_add(reader->faults, members_pointer(&m, "tool"),
                   "\"%.*s\" cannot be the name of a tool: that is " NAME_RULE, SLICE_ARG(out->tool_name));
        out->tool_name = SLICE_NONE;
    }
    reader_template(reader, &m, "with", roots, &out->with);
    (void)members_bool(&m, "tolerates_absent", &out->tolerates_absent); /* false by default */
    (void)members_bool(&m, "voids_key", &out->voids_key);               /* false by default */
    (void)members_duration(&m, "give_up_after", 1, DURATION_MS_MAX,
                           &out->give_up_after_ms); /* the member has a default */
    if (members_at(&m, "retry").ptr) {              /* the inherited policy is only known once the tool is known */
        struct retry_policy under = retry_policy_default(EFFECT_KEYED);

        out->has_retry = true;
        reader_retry(reader, members_at(&m, "retry"), members_pointer(&m, "retry"), EFFECT_KEYED, &under,
                     &out->own_retry);
        out->retry = retry_policy_with(under, &out->own_retry);
    }
}

void tool_check_test(struct reader *reader, const struct tool *tool, struct tool_finder *finder, struct slice pointer)
{
    struct slice place = place_join(reader->arena, pointer, SLICE("test")), near;
    const struct tool *test;

    if (!tool->test.ptr) {
        return;
    }
    switch (finder->find(finder, tool->test, place, &test)) {
    case TOOL_FOUND:
    case TOOL_FLAWED:
        if (test->effect != EFFECT_READ) {
            faults_add(reader->faults, place,
                       "the effect of the test `%.*s` is `%s`; what tries a breaker must change nothing, so name a "
                       "tool of the class `read`",
                       SLICE_ARG(tool->test), effect_name(test->effect));
        }
        break;
    case TOOL_BROKEN:
        break;
    case TOOL_MISSING:
        near = finder->near ? finder->near(finder, tool->test) : SLICE_NONE;
        faults_add(reader->faults, place, "the test `%.*s` is no tool of this document%s%.*s", SLICE_ARG(tool->test),
                   reader_not_registered(reader), SLICE_ARG(did_you_mean(near, reader->arena)));
        break;
    }
}

static const char *effect_words(const struct tool *tool, struct arena *arena)
{
    return tool->conditional ? arena_printf(arena, "`%s` or `%s`, depending on its arguments",
                                            effect_name(tool->effect_then), effect_name(tool->effect_else))
                                   .ptr
                             : arena_printf(arena, "`%s`", effect_name(tool->effect)).ptr;
}

const struct tool *compensator_find(struct reader *reader, const struct compensator *compensator,
                                    struct tool_finder *finder, struct slice pointer)
{
    const struct tool *tool;

    if (!compensator->tool_name.ptr) { /* the missing name was reported where it is missing */
        return NULL;
    }
    switch (finder->find(finder, compensator->tool_name, pointer, &tool)) {
    case TOOL_FOUND:
    case TOOL_FLAWED:
        break;
    case TOOL_BROKEN:
        return NULL;
    case TOOL_MISSING: {
        struct slice near = finder->near ? finder->near(finder, compensator->tool_name) : SLICE_NONE;

        faults_add(reader->faults, pointer, "the compensator `%.*s` is no tool of this document%s%.*s",
                   SLICE_ARG(compensator->tool_name), reader_not_registered(reader),
                   SLICE_ARG(did_you_mean(near, reader->arena)));
        return NULL;
    }
    }
    if (tool_may_undo(tool)) {
        return tool;
    }
    faults_add(reader->faults, pointer,
               "the effect of the compensator `%.*s` is %s; what undoes is repeated until it is "
               "certain, so it must be `idempotent`, `keyed` or `checked`",
               SLICE_ARG(tool->name), effect_words(tool, reader->arena));
    return NULL;
}
