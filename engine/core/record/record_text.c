/*
 * The text form of records, as the log stores it and the API shows it:
 *
 *     {"type": "step.completed", "step": "charge", "key": "...", "attempt": 1, "actor": "...", "data": {"result":
 * {...}}}
 *
 * Empty members are left out. One table says which member of struct record a name stands for, and both directions
 * follow it. Payloads go in and come out byte for byte.
 */
#include <stddef.h>
#include <string.h>

#include "base/instant.h"
#include "base/json.h"
#include "base/utf8.h"
#include "core/definition/definition.h"
#include "core/record/record_fields.h"

enum record_member_kind {
    MEMBER_TEXT,
    MEMBER_JSON,
    MEMBER_U32,
    MEMBER_U64,
    MEMBER_FLAG,
    MEMBER_INSTANT,
    MEMBER_DIGEST,
    MEMBER_STEPS,
    MEMBER_SOURCE,
    MEMBER_DIRECTION,
    MEMBER_I64,
    MEMBER_KEY,
    MEMBER_EFFECT /* together with `conditional` */
};

struct record_member {
    const char *name;
    size_t name_len;
    enum record_field field;
    enum record_member_kind kind;
    size_t at;       /* the offset in struct record; for MEMBER_STEPS that of the array */
    bool is_payload; /* it holds a payload, quotes one, or is a digest over one */
};

#define M(name, field, kind, member)                                                                                   \
    {                                                                                                                  \
        name, sizeof(name) - 1, FIELD_##field, MEMBER_##kind, offsetof(struct record, member), false                   \
    }
#define PAYLOAD(name, field, kind, member)                                                                             \
    {                                                                                                                  \
        name, sizeof(name) - 1, FIELD_##field, MEMBER_##kind, offsetof(struct record, member), true                    \
    }

static const struct record_member members[] = {
    M("saga", START, TEXT, saga_name),
    M("version", START, U32, version),
    M("tools", START, JSON, tools),
    M("sagas", START, JSON, sagas),
    M("namespace", START, TEXT, namespace),
    M("business_id", START, TEXT, business_id),
    M("tags", START, JSON, tags),
    PAYLOAD("input", START, JSON, input),
    M("deadline_at", DEADLINE, INSTANT, due_ms),
    M("run", OPENING, TEXT, run),
    M("budget", OPENING, JSON, budget),
    M("loop", OPENING, JSON, loop),
    M("on_timeout", OPENING, TEXT, on_timeout),
    M("traceparent", TRACE, TEXT, traceparent),
    M("tracestate", TRACE, TEXT, tracestate),
    M("name", CALLED, TEXT, call_step),
    M("tool", TOOL, TEXT, tool_name),
    M("tool_version", CALLED, U32, tool_version),
    M("tool_version", TOOL_VERSION, U32, tool_version),
    M("undo_tool", CALLED, TEXT, undo_name),
    M("undo_version", CALLED, U32, undo_version),
    M("generation", GENERATION, U32, generation),
    M("scope", SCOPE, TEXT, scope),
    PAYLOAD("fingerprint", FINGERPRINT, DIGEST, fingerprint),
    M("class", CLASS, EFFECT, effect),
    PAYLOAD("args", ARGS, JSON, args),
    M("emission", EMISSION, TEXT, emission),
    M("turn", EMISSION, TEXT, conversation_turn),
    M("earlier_key", EARLIER, KEY, earlier_key),
    M("decision", DECISION, TEXT, decision),
    M("pointers", POINTERS, JSON, pointers),
    M("pattern", PATTERN, JSON, pattern),
    M("repeats", PATTERN, U32, repeats),
    M("due_at", DUE, INSTANT, due_ms),
    M("unsent", UNSENT, FLAG, unsent),
    M("maybe", MAYBE, FLAG, maybe),
    M("accept_double", DOUBLE, FLAG, accept_double),
    PAYLOAD("error", ERROR, TEXT, error),
    PAYLOAD("detail", DETAIL, TEXT, detail),
    PAYLOAD("answer", ANSWER, JSON, answer),
    M("source", SOURCE, SOURCE, source),
    PAYLOAD("result", RESULT, JSON, result),
    M("cost_micros", COST, I64, cost_micros),
    PAYLOAD("undo_args", UNDO, JSON, undo_args),
    PAYLOAD("undo_error", UNDO, TEXT, undo_error),
    PAYLOAD("result_error", LOST, TEXT, result_error),
    PAYLOAD("cost_unknown", LOST, TEXT, cost_unknown),
    M("plan", PLAN, STEPS, plan),
    M("escalation", ESCALATION, U64, escalation),
    M("direction", ESCALATION, DIRECTION, direction),
    M("reason", REASON, TEXT, reason),
    M("action", ACTION, TEXT, action),
    M("as", ACTION, TEXT, verdict),
    M("note", NOTE, TEXT, note),
    M("debts", DEBTS, STEPS, debts),
    PAYLOAD("evidence", EVIDENCE, JSON, result),
    PAYLOAD("output", OUTPUT, JSON, result),
    PAYLOAD("followers", FOLLOWERS, JSON, followers),
    M("signal", SIGNAL, TEXT, signal),
    M("approval", APPROVAL, U64, approval),
    M("as", VERDICT, TEXT, verdict),
    M("lock", LOCK, TEXT, lock),
    M("request", REQUEST, TEXT, request),
    M("bulk", BULK, TEXT, bulk),
};

/* Returns the members that a record may have. Any record may be the first one of a turn that a bulk job asked for. */
static uint64_t fields_of(const struct record *record)
{
    return record_shape(record->type)->may | FIELD_BIT(FIELD_BULK);
}

static const char *const source_names[] = {[SOURCE_CALL] = "call",
                                           [SOURCE_PROBE] = "probe",
                                           [SOURCE_OPERATOR] = "operator",
                                           [SOURCE_PRECHECK] = "precheck",
                                           [SOURCE_GUARD] = "guard"};

const char *record_broken_text(const struct record *record)
{
    uint64_t may = fields_of(record);

    if (!text_is_utf8(record->actor) || !text_is_utf8(record->label)) {
        return text_is_utf8(record->actor) ? "step" : "actor";
    }
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        if (members[i].kind == MEMBER_TEXT && (may & FIELD_BIT(members[i].field)) &&
            !text_is_utf8(*(const struct slice *)((const char *)record + members[i].at))) {
            return members[i].name;
        }
    }
    return NULL;
}

bool record_member_is_payload(struct slice name)
{
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        if (members[i].name_len == name.len && members[i].is_payload &&
            memcmp(members[i].name, name.ptr, name.len) == 0) {
            return true;
        }
    }
    return false;
}

/* --- writing --- */

static void write_steps(struct json_writer *w, const char *name, const uint32_t *steps, uint32_t count,
                        const struct definition *definition)
{
    json_array_begin(w, name);
    for (uint32_t i = 0; i < count; i++) {
        CHECK(steps[i] < definition->step_count);
        json_write_slice(w, NULL, definition->steps[steps[i]].id);
    }
    json_array_end(w);
}

static void write_digest(struct json_writer *w, const char *name, const struct digest *digest)
{
    static const struct digest none;
    char hex[65];

    if (memcmp(digest, &none, sizeof(none)) != 0) {
        digest_hex(digest, hex);
        json_write_text(w, name, hex);
    }
}

static void write_key(struct json_writer *w, const char *name, const struct op_key *key)
{
    char text[UUID_TEXT_BYTES];

    if (!uuid_is_nil(&key->uuid)) {
        uuid_text(&key->uuid, text);
        json_write_text(w, name, text);
    }
}

static void write_member(struct json_writer *w, const struct record_member *member, const struct record *record,
                         const struct definition *definition)
{
    const void *at = (const char *)record + member->at;
    const struct json_name name = {member->name, (uint32_t)member->name_len, .is_plain = true};

    switch (member->kind) {
    case MEMBER_TEXT:
        if (((const struct slice *)at)->ptr) {
            json_named_slice(w, name, *(const struct slice *)at);
        }
        return;
    case MEMBER_JSON:
        if (((const struct slice *)at)->ptr) {
            json_named_raw(w, name, *(const struct slice *)at);
        }
        return;
    case MEMBER_U32:
        if (*(const uint32_t *)at) {
            json_named_i64(w, name, *(const uint32_t *)at);
        }
        return;
    case MEMBER_U64:
        if (*(const uint64_t *)at) {
            json_named_i64(w, name, (int64_t) * (const uint64_t *)at);
        }
        return;
    case MEMBER_FLAG:
        if (*(const bool *)at) {
            json_write_bool(w, member->name, true);
        }
        return;
    case MEMBER_INSTANT:
        if (*(const int64_t *)at) {
            json_named_instant(w, name, *(const int64_t *)at);
        }
        return;
    case MEMBER_DIGEST:
        write_digest(w, member->name, at);
        return;
    case MEMBER_STEPS:
        if (member->field == FIELD_PLAN) {
            write_steps(w, member->name, record->plan, record->plan_count, definition);
        } else {
            write_steps(w, member->name, record->debts, record->debt_count, definition);
        }
        return;
    case MEMBER_SOURCE:
        if (record->source != SOURCE_CALL) {
            json_write_text(w, member->name, source_names[record->source]);
        }
        return;
    case MEMBER_DIRECTION:
        if (record->direction != DIRECTION_DO) {
            json_write_text(w, member->name, direction_name(record->direction));
        }
        return;
    case MEMBER_I64:
        if (*(const int64_t *)at) {
            json_named_i64(w, name, *(const int64_t *)at);
        }
        return;
    case MEMBER_KEY:
        write_key(w, member->name, at);
        return;
    case MEMBER_EFFECT:
        if (record->conditional || record->type == RECORD_STEP_CALLED) {
            json_write_text(w, member->name, effect_name(record->effect));
        }
        return;
    }
    UNREACHABLE();
}

void record_write(const struct record *record, const struct definition *definition, struct buffer *out)
{
    uint64_t may = fields_of(record);
    struct json_writer w;

    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    json_write_text(&w, "type", record_type_name(record->type));
    if (record->type == RECORD_STEP_CALLED) { /* this record makes the step */
        json_write_slice(&w, "step", record->label);
    } else if (record->step != STEP_NONE) {
        CHECK(record->step < definition->step_count);
        json_write_slice(&w, "step", definition->steps[record->step].id);
    }
    write_key(&w, "key", &record->key);
    if (record->attempt) {
        json_write_i64(&w, "attempt", record->attempt);
    }
    if (record->actor.ptr) {
        json_write_slice(&w, "actor", record->actor);
    }
    json_object_begin(&w, "data");
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        if (may & FIELD_BIT(members[i].field)) {
            write_member(&w, &members[i], record, definition);
        }
    }
    json_object_end(&w);
    json_object_end(&w);
}

/* --- reading --- */

struct record_reader {
    const struct definition *definition; /* NULL when steps cannot be named */
    struct arena *arena;
    struct record *record;
};

/* Stored text may hold what the API never accepts, but not more than this, because a record wraps payloads that were
 * bounded. */
static const struct json_limits record_limits = {
    .bytes_max = (size_t)64 << 20, .depth_max = 80, .number_bytes_max = 1024, .exponent_max = 400};

static bool read_text(const struct record_reader *reader, struct slice value, struct slice *out)
{
    *out = json_string(value, reader->arena);
    return out->ptr != NULL;
}

static bool read_u64(struct slice value, uint64_t max, uint64_t *out)
{
    int64_t number;

    if (json_type(value) != JSON_NUMBER || !json_i64(value, &number) || number < 0 || (uint64_t)number > max) {
        return false;
    }
    *out = (uint64_t)number;
    return true;
}

static bool read_u32(struct slice value, uint32_t *out)
{
    uint64_t number;

    if (!read_u64(value, UINT32_MAX - 1, &number)) {
        return false;
    }
    *out = (uint32_t)number;
    return true;
}

static bool read_step(const struct record_reader *reader, struct slice value, uint32_t *out)
{
    struct slice id;

    if (!reader->definition || !read_text(reader, value, &id)) {
        return false;
    }
    for (uint32_t i = 0; i < reader->definition->step_count; i++) {
        if (slice_equal(reader->definition->steps[i].id, id)) {
            *out = i;
            return true;
        }
    }
    return false;
}

static bool read_steps(const struct record_reader *reader, struct slice value, const uint32_t **out, uint32_t *count)
{
    struct slice element;
    struct json_walk walk;
    uint32_t *steps, n = 0;
    size_t total;

    if (json_type(value) != JSON_ARRAY || !reader->definition) {
        return false;
    }
    total = json_count(value);
    if (total > reader->definition->step_count) {
        return false;
    }
    steps = arena_array(reader->arena, total ? total : 1, sizeof(*steps));
    walk = json_walk(value);
    while (json_next_element(&walk, &element)) {
        if (!read_step(reader, element, &steps[n])) {
            return false;
        }
        n++;
    }
    *out = steps;
    *count = n;
    return true;
}

static bool read_instant(const struct record_reader *reader, struct slice value, int64_t *out)
{
    struct slice text;

    return read_text(reader, value, &text) && instant_parse(text, out) && *out > 0;
}

static bool read_digest(const struct record_reader *reader, struct slice value, struct digest *out)
{
    struct slice text;

    return read_text(reader, value, &text) && digest_from_hex(text, out);
}

static bool read_source(struct slice value, enum source *out)
{
    for (unsigned i = 0; i < COUNT_OF(source_names); i++) {
        if (json_string_is(value, source_names[i])) {
            *out = (enum source)i;
            return true;
        }
    }
    return false;
}

static bool read_direction(struct slice value, enum direction *out)
{
    for (unsigned i = 0; i < DIRECTION_COUNT; i++) {
        if (json_string_is(value, direction_name((enum direction)i))) {
            *out = (enum direction)i;
            return true;
        }
    }
    return false;
}

static bool read_key(const struct record_reader *reader, struct slice value, struct op_key *out)
{
    struct slice text;

    return read_text(reader, value, &text) && uuid_parse(text, &out->uuid);
}

static bool read_effect(const struct record_reader *reader, struct slice value)
{
    struct record *record = reader->record;
    struct slice text;

    record->conditional = record->type != RECORD_STEP_CALLED; /* RECORD_STEP_CALLED always says its class */
    return read_text(reader, value, &text) && effect_parse(text, &record->effect);
}

static bool read_member(const struct record_reader *reader, const struct record_member *member, struct slice value)
{
    void *at = (char *)reader->record + member->at;

    switch (member->kind) {
    case MEMBER_TEXT:
        return read_text(reader, value, at);
    case MEMBER_JSON:
        *(struct slice *)at = json_trim(value);
        return true;
    case MEMBER_U32:
        return read_u32(value, at);
    case MEMBER_U64:
        return read_u64(value, INT64_MAX, at);
    case MEMBER_FLAG:
        return json_bool(value, at);
    case MEMBER_INSTANT:
        return read_instant(reader, value, at);
    case MEMBER_DIGEST:
        return read_digest(reader, value, at);
    case MEMBER_STEPS:
        return member->field == FIELD_PLAN
                   ? read_steps(reader, value, &reader->record->plan, &reader->record->plan_count)
                   : read_steps(reader, value, &reader->record->debts, &reader->record->debt_count);
    case MEMBER_SOURCE:
        return read_source(value, at);
    case MEMBER_DIRECTION:
        return read_direction(value, at);
    case MEMBER_I64:
        return json_type(value) == JSON_NUMBER && json_i64(value, at);
    case MEMBER_KEY:
        return read_key(reader, value, at);
    case MEMBER_EFFECT:
        return read_effect(reader, value);
    }
    UNREACHABLE();
}

static enum err_code read_data(const struct record_reader *reader, struct slice data, struct err *err)
{
    uint64_t may = fields_of(reader->record);
    struct json_walk walk = json_walk(data);
    struct slice name, value;

    while (json_next_member(&walk, &name, &value)) {
        size_t i = 0;

        while (i < COUNT_OF(members) && !((may & FIELD_BIT(members[i].field)) &&
                                          slice_equal(name, (struct slice){members[i].name, members[i].name_len}))) {
            i++;
        }
        /* An unknown member would be lost silently, together with what it says about an effect. */
        if (i == COUNT_OF(members)) {
            return err_set(err, ERR_CORRUPT, "a record %s has a member \"%.*s\" that this version does not know",
                           record_type_name(reader->record->type), SLICE_ARG(name));
        }
        if (!read_member(reader, &members[i], value)) {
            return err_set(err, ERR_CORRUPT, "the member \"%s\" of a record %s makes no sense", members[i].name,
                           record_type_name(reader->record->type));
        }
    }
    return ERR_OK;
}

/* Reads a member around `data`. Returns false when it makes no sense. */
static bool read_outer(const struct record_reader *reader, struct slice name, struct slice value, struct slice *data)
{
    struct record *record = reader->record;

    if (slice_is(name, "type")) {
        return true; /* read before all others */
    }
    if (slice_is(name, "data")) {
        *data = value;
        return json_type(value) == JSON_OBJECT;
    }
    if (slice_is(name, "seq")) {
        return read_u64(value, INT64_MAX, &record->seq);
    }
    if (slice_is(name, "at")) {
        return read_instant(reader, value, &record->at_ms);
    }
    if (slice_is(name, "step") && record->type == RECORD_STEP_CALLED) { /* the step becomes the last one */
        record->step = reader->definition ? reader->definition->step_count : STEP_NONE;
        return read_text(reader, value, &record->label);
    }
    if (slice_is(name, "step")) {
        return (record_shape(record->type)->may & FIELD_BIT(FIELD_STEP)) && read_step(reader, value, &record->step);
    }
    if (slice_is(name, "key")) {
        return (record_shape(record->type)->may & FIELD_BIT(FIELD_KEY)) && read_key(reader, value, &record->key);
    }
    if (slice_is(name, "attempt")) {
        return (record_shape(record->type)->may & FIELD_BIT(FIELD_ATTEMPT)) && read_u32(value, &record->attempt);
    }
    if (slice_is(name, "actor")) {
        return (record_shape(record->type)->may & FIELD_BIT(FIELD_ACTOR)) && read_text(reader, value, &record->actor);
    }
    return false;
}

enum err_code record_read(struct slice text, const struct definition *definition, struct arena *arena,
                          struct record *out, struct err *err)
{
    struct record record = {.step = STEP_NONE};
    const struct record_reader reader = {.definition = definition, .arena = arena, .record = &record};
    struct slice name, value, type, data = SLICE_NONE;
    struct json_walk walk;
    const char *missing;

    if (json_check(text, &record_limits, err) != ERR_OK) {
        enum err_code code = err_context(err, "a record cannot be read");

        if (err) {
            err->code = ERR_CORRUPT;
        }
        (void)code; /* the text is ours, not a client's */
        return ERR_CORRUPT;
    }
    type = json_string(json_member(text, "type"), arena);
    if (json_type(text) != JSON_OBJECT || !type.ptr) {
        return err_set(err, ERR_CORRUPT, "a record is no object with a type");
    }
    if (!record_type_parse(type, &record.type)) {
        return err_set(err, ERR_CORRUPT, "this version does not know records of the type \"%.*s\"", SLICE_ARG(type));
    }
    walk = json_walk(text);
    while (json_next_member(&walk, &name, &value)) {
        if (!read_outer(&reader, name, value, &data)) {
            return err_set(err, ERR_CORRUPT, "the member \"%.*s\" of a record %s makes no sense", SLICE_ARG(name),
                           record_type_name(record.type));
        }
    }
    if (data.ptr) {
        enum err_code code = read_data(&reader, data, err);

        if (code != ERR_OK) {
            return code;
        }
    }
    if (!record_is_complete(&record, &missing)) {
        return err_set(err, ERR_CORRUPT, "a record %s lacks %s", record_type_name(record.type), missing);
    }
    *out = record;
    return ERR_OK;
}

enum err_code record_read_start(struct slice text, struct arena *arena, struct record *out, struct err *err)
{
    struct record record;
    enum err_code code = record_read(text, NULL, arena, &record, err);

    if (code != ERR_OK) {
        return code;
    }
    if (record.type != RECORD_SAGA_STARTED) {
        return err_set(err, ERR_CORRUPT, "a log begins with %s instead of saga.started", record_type_name(record.type));
    }
    *out = record;
    return ERR_OK;
}
