/* The table of verbs: the promises of its columns, what engines send each other, and schema/openapi.json beside it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/routes.h"
#include "base/json.h"
#include "run/request/verbs.h"
#include "tests/lib/test.h"

static struct arena arena;
static struct slice openapi;

static int setup(void **state)
{
    const char *folder = getenv("SCHEMA_DIR");
    char path[512];
    struct err err = {0};

    (void)state;
    arena_init(&arena, 4096);
    (void)snprintf(path, sizeof(path), "%s/openapi.json", folder ? folder : "schema");
    FILE *file = fopen(path, "re");
    char *text = arena_alloc(&arena, 1 << 20);

    assert_non_null(file);
    openapi = (struct slice){text, fread(text, 1, 1 << 20, file)};
    assert_int_equal(fclose(file), 0);
    assert_int_equal(json_check(openapi, &json_limits_default, &err), ERR_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

/* --- the table --- */

TEST(every_row_is_whole)
{
    for (size_t i = 0; i < VERB_COUNT; i++) {
        const struct verb *verb = &verbs[i];
        bool notes = false, target = verb->on == ON_SAGA;

        assert_non_null(verb->name);
        assert_true(verb->least >= ROLE_AGENT);
        assert_true(verb->actor > 0 && verb->member_count <= VERB_MEMBERS_MAX);
        for (size_t k = 0; k < verb->member_count; k++) {
            const struct verb_member *member = &verb->members[k];

            assert_true((member->kind == MEMBER_WORDS) == (member->words != NULL));
            notes |= member->kind == MEMBER_NOTE;
            target |= member->from == FROM_TARGET && member->at == verb->target;
        }
        assert_true(target);
        assert_int_equal(notes, verb->note != NOTE_NONE);
        assert_true(verb->least < ROLE_OPERATOR || verb->note == NOTE_NEEDED); /* a person says why */
        assert_true(verb->on == ON_SAGA || verb->answer != ANSWER_SAGA);
    }
}

TEST(every_verb_has_a_route)
{
    size_t served[VERB_COUNT] = {0};

    for (size_t i = 0; i < route_count; i++) {
        if (routes[i].verb) {
            served[routes[i].verb - verbs]++;
            assert_string_equal(routes[i].method, "POST");
        }
    }
    for (size_t i = 0; i < VERB_COUNT; i++) {
        assert_int_equal(served[i], verbs[i].on == ON_SAGA ? 2 : 1); /* by its id and by its business id */
    }
}

/* --- schema/openapi.json --- */

static struct slice follow(struct slice value)
{
    struct slice ref = json_string(json_member(value, "$ref"), &arena);

    if (!ref.ptr) {
        return value;
    }
    struct slice at = openapi;
    const char *text = arena_text(&arena, ref) + 2; /* "#/" */

    while (*text) {
        size_t len = strcspn(text, "/");

        at = json_member(at, arena_text(&arena, (struct slice){text, len}));
        text += len + (text[len] == '/');
    }
    return at;
}

static bool has_text(struct slice array, const char *text)
{
    struct json_walk walk = json_walk(array);
    struct slice item;

    while (json_next_element(&walk, &item)) {
        if (json_string_is(item, text)) {
            return true;
        }
    }
    return false;
}

static bool has_parameter(struct slice operation, const char *name)
{
    struct json_walk walk = json_walk(json_member(operation, "parameters"));
    struct slice item;

    while (json_next_element(&walk, &item)) {
        if (json_string_is(json_member(follow(item), "name"), name)) {
            return true;
        }
    }
    return false;
}

static int64_t number_of(struct slice schema, const char *name)
{
    int64_t number = 0;

    (void)json_i64(json_member(schema, name), &number);
    return number;
}

static bool has_words(const struct verb_word *words, struct slice list)
{
    size_t count = 0;

    while (words[count].word && has_text(list, words[count].word)) {
        count++;
    }
    return !words[count].word && json_count(list) == count;
}

static bool has_actions(struct slice list)
{
    for (unsigned i = 0; i < OPERATOR_ACTION_COUNT; i++) {
        if (!has_text(list, operator_action_name((enum operator_action)i))) {
            return false;
        }
    }
    return json_count(list) == OPERATOR_ACTION_COUNT;
}

static bool is_described(const struct verb_member *member, struct slice schema)
{
    struct slice type = json_member(schema, "type");

    switch (member->kind) {
    case MEMBER_NOTE:
        return number_of(schema, "minLength") == 1 && number_of(schema, "maxLength") == (int64_t)member->characters_max;
    case MEMBER_HASH:
        return json_string_is(json_member(schema, "pattern"), "^[0-9a-f]{64}$");
    case MEMBER_JSON:
        return schema.ptr && (!type.ptr || json_string_is(type, "array") || json_string_is(type, "object"));
    case MEMBER_FLAG:
        return json_string_is(type, "boolean");
    case MEMBER_MICROS:
        return json_string_is(type, "integer") && number_of(schema, "maximum") == COST_MICROS_MAX;
    case MEMBER_WORDS:
        return has_words(member->words, json_member(schema, "enum"));
    case MEMBER_ACTION:
        return has_actions(json_member(schema, "enum"));
    case MEMBER_INSTANT:
        return json_string_is(json_member(schema, "format"), "date-time");
    case MEMBER_NUMBER:
        return json_string_is(type, "integer") && number_of(schema, "minimum") == 1;
    case MEMBER_TEXT:
        return json_string_is(type, "string");
    case MEMBER_VERSION:
        return json_string_is(type, "integer") && number_of(schema, "minimum") == 1;
    case MEMBER_ID:
    case MEMBER_OPKEY:
    case MEMBER_ROLE:
        return false; /* no body has one yet */
    }
    UNREACHABLE();
}

static void check_body(const struct verb *verb, struct slice body, const char *path)
{
    struct slice content = json_member(json_member(body, "content"), "application/json");
    struct slice schema = follow(json_member(content, "schema"));
    struct slice properties = json_member(schema, "properties"), required = json_member(schema, "required");
    size_t described = 0, needed = 0;
    bool whole = false, must = false;

    for (size_t i = 0; i < verb->member_count; i++) {
        const struct verb_member *member = &verb->members[i];

        whole |= member->from == FROM_WHOLE_BODY;
        if (member->from != FROM_BODY) {
            continue;
        }
        described++;
        needed += verb_requires(verb, member);
        if (!is_described(member, follow(json_member(properties, member->name))) ||
            has_text(required, member->name) != verb_requires(verb, member)) {
            fail_msg("%s: the member \"%s\" is described otherwise than its row says", path, member->name);
        }
    }
    (void)json_bool(json_member(body, "required"), &must);
    if (!whole && (json_count(properties) != described || must != (needed > 0))) {
        fail_msg("%s: other members are described than its row has, or the body is needed where it is not", path);
    }
}

TEST(openapi_describes_each_verb_as_its_row_does)
{
    for (size_t i = 0; i < route_count; i++) {
        const struct verb *verb = routes[i].verb;
        struct slice operation = json_member(json_member(json_member(openapi, "paths"), routes[i].pattern), "post");
        bool keyed = false;

        if (!verb) {
            continue;
        }
        for (size_t k = 0; k < verb->member_count; k++) {
            keyed |= verb->members[k].from == FROM_KEY;
        }
        if (!json_string_is(json_member(operation, "x-role"), role_name(verb->least)) ||
            has_parameter(operation, "wait") != (verb->wait_ms > 0) ||
            has_parameter(operation, "Idempotency-Key") != keyed) {
            fail_msg("%s: role or parameters are described otherwise than its row says", routes[i].pattern);
        }
        check_body(verb, json_member(operation, "requestBody"), routes[i].pattern);
    }
}

/* --- between engines --- */

#define KEY "019b3c52-0000-7000-8000-000000000001"

/* The texts as the first release wrote and read them. These texts never change; others may be added. */
static const struct {
    const char *name;
    enum verb_id verb;
    const char *text;
} wire[] = {
    {"pause", VERB_PAUSE, "{\"note\":\"n\"}"},
    {"resume", VERB_RESUME, "{\"note\":\"n\"}"},
    {"tools", VERB_MEND, "{\"tool\":\"t\",\"version\":2,\"accept_double\":true,\"note\":\"n\"}"},
    {"rerun", VERB_RERUN, "{\"version\":0,\"accept_standing\":null,\"key\":\"k\",\"note\":\"n\"}"},
    {"rerun", VERB_RERUN, "{\"version\":2,\"accept_standing\":[\"a\"],\"key\":\"k\",\"note\":\"n\"}"},
    {"abort", VERB_ABORT, "{\"note\":\"\"}"},
    {"acknowledge", VERB_ACKNOWLEDGE, "{\"escalation\":9,\"note\":\"n\"}"},
    {"assign", VERB_ASSIGN, "{\"to\":\"ada\",\"escalation\":9,\"note\":\"n\"}"},
    {"comment", VERB_COMMENT, "{\"escalation\":9,\"note\":\"n\"}"},
    {"escalate", VERB_ESCALATE, "{\"note\":\"n\"}"},
    {"complete", VERB_COMPLETE, "{\"output\":{\"a\":1}}"},
    {"complete", VERB_COMPLETE, "{\"output\":null}"},
    {"signal", VERB_SIGNAL, "{\"name\":\"paid\",\"payload\":{\"a\":1},\"key\":\"k\"}"},
    {"decide", VERB_DECIDE, "{\"approval\":7,\"approve\":true,\"role\":\"operator\",\"hash\":\"ab\",\"note\":\"n\"}"},
    {"resolve", VERB_RESOLVE_OPERATION,
     "{\"key\":\"" KEY "\",\"action\":\"resolve\",\"result\":[1],\"note\":\"n\",\"happened\":true,\"undone\":false,"
     "\"again\":false}"},
    {"resolve", VERB_RESOLVE,
     "{\"escalation\":9,\"action\":\"retry\",\"args\":{\"a\":1},\"accept_double\":true,\"result\":null,\"note\":\"n\","
     "\"happened\":false,\"undone\":false,\"again\":false}"},
    {"bypass", VERB_BYPASS, "{\"key\":\"" KEY "\",\"reason\":\"n\"}"},
    {"cost", VERB_COST, "{\"key\":\"" KEY "\",\"micros\":12,\"note\":\"n\"}"},
    {"pause", VERB_PAUSE, "{\"note\":\"n\",\"bulk\":{\"id\":\"j/7\",\"key\":\"" KEY "\",\"attempts\":2}}"},
};

static struct slice written(const struct verb *verb, struct saga_input *input)
{
    struct buffer out;
    struct json_writer w;

    buffer_init(&out, 4096);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    verb_write(verb, input, 1000, &arena, &w);
    json_object_end(&w);
    struct slice text = arena_slice(&arena, buffer_slice(&out));

    buffer_fini(&out);
    return text;
}

TEST(a_verb_that_passes_between_engines_is_read_as_it_was_written)
{
    for (size_t i = 0; i < COUNT_OF(wire); i++) {
        struct saga_input input, copy;
        const struct verb *verb = verb_read(slice_of(wire[i].name), slice_of(wire[i].text), &arena, &input);

        assert_ptr_equal(verb, &verbs[wire[i].verb]);
        verb_copy(verb, &input, SLICE("ann"), &arena, &copy);
        struct slice text = written(verb, &copy);

        if (!slice_is(text, wire[i].text)) {
            fail_msg("%s: %.*s", wire[i].text, SLICE_ARG(text));
        }
    }
}

/* Two verbs share a name. Releases before the table wrote the members of both, and added a key for a verb about an
 * operation. */
TEST(a_verdict_of_an_engine_before_this_table_is_known_by_its_key)
{
    struct saga_input input;

    assert_ptr_equal(verb_read(SLICE("resolve"),
                               SLICE("{\"namespace\":\"n\",\"actor\":\"a\",\"note\":\"n\",\"escalation\":0,"
                                     "\"action\":\"resolve\",\"happened\":false,\"key\":\"" KEY "\",\"undone\":true,"
                                     "\"again\":false,\"accept_double\":false,\"result\":null,\"args\":null}"),
                               &arena, &input),
                     &verbs[VERB_RESOLVE_OPERATION]);
    assert_true(input.verdict.undone && !input.verdict.happened && !input.verdict.result.ptr);
    assert_int_equal(input.verdict.action, OPERATOR_RESOLVE);
    assert_ptr_equal(verb_read(SLICE("resolve"),
                               SLICE("{\"note\":\"n\",\"escalation\":9,\"action\":\"skip\",\"happened\":false,"
                                     "\"accept_double\":false,\"result\":{\"a\":1},\"args\":null}"),
                               &arena, &input),
                     &verbs[VERB_RESOLVE]);
    assert_int_equal(input.verdict.escalation, 9);
    assert_int_equal(input.verdict.action, OPERATOR_SKIP);
    assert_true(slice_is(input.verdict.result, "{\"a\":1}") && !input.verdict.args.ptr);
}

TEST(a_senseless_text_is_no_verb)
{
    static const struct {
        const char *name, *text;
    } cases[] = {
        {"dance", "{}"},
        {"resolve", "{\"escalation\":9,\"action\":\"dance\"}"},
        {"resolve", "{\"escalation\":9}"},
        {"cost", "{\"key\":\"" KEY "\",\"micros\":-1}"},
        {"cost", "{\"key\":\"" KEY "\"}"},
    };
    struct saga_input input;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_null(verb_read(slice_of(cases[i].name), slice_of(cases[i].text), &arena, &input));
    }
}

/* A signal without an id is put again under the id that it got at first. */
TEST(a_signal_without_an_id_gets_one)
{
    struct saga_input input = {.signal = {.name = SLICE("paid"), .payload = SLICE("1")}};

    (void)written(&verbs[VERB_SIGNAL], &input);
    struct slice made = input.signal.id;

    assert_true(slice_starts_with(made, "~"));
    (void)written(&verbs[VERB_SIGNAL], &input);
    assert_true(slice_equal(input.signal.id, made));
}

TEST_PROGRAM(setup, teardown)
