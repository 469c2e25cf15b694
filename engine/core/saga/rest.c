/*
 * The bytes are: REST_FORM, a digest of the run's id and of all bytes behind the digest, then the fields of the saga,
 * of its budgets, of its loop guard and of its emissions, and for each step its tools and its fields. The fields of a
 * struct are listed in tables. A field that is zero is left out; any other one is written as its number in the table
 * and its value, and a zero ends the struct. Numbers have seven bits a byte, instants count from the run's beginning.
 *
 * The digest is there because a damaged state would be believed: most numbers and texts make sense with a bit turned
 * over, and a repeat would be answered from them. The id is in it, so that the bytes of another run are refused, too;
 * `seq` is among the fields and says after which record of the log they hold.
 *
 * A table that changes gets a new REST_FORM. The release before reads the log then, and so does the next one with what
 * this one has written. The sizes below say when a struct has got a member that its table does not know.
 */
#include "core/saga/rest.h"

#include <stddef.h>
#include <string.h>

#include "base/json.h"
#include "core/saga/machine.h"

#define DIGEST_BYTES 16      /* kept of SHA-256: against damage, not against whoever may write to the database */
#define REST_STEPS_MAX 8     /* more have a log that is worth reading, and more bytes than may be */
#define REST_EMISSIONS_MAX 8 /* the same */

enum kind {
    NUMBER32,
    NUMBER64,
    SIGNED,
    INSTANT,
    FLAG,
    TEXT,
    JSON, /* a text that was checked before it became durable, and is checked again */
    UUID,
    DIGEST
};

struct field {
    uint16_t at;
    uint8_t kind;
    uint8_t values; /* the number of values of an enum; 0: it is none */
};

#define F(kind, type, member)                                                                                          \
    {                                                                                                                  \
        offsetof(struct type, member), kind, 0                                                                         \
    }
#define E(type, member, count)                                                                                         \
    {                                                                                                                  \
        offsetof(struct type, member), NUMBER32, count                                                                 \
    }
_Static_assert(sizeof(enum op_state) == sizeof(uint32_t), "enums are written like numbers");

/* Without the phase and the status, which every run that rests has alike; without what saga_write_rest() wants to be as
 * in the beginning; and without what is not of the log. */
static const struct field saga_fields[] = {
    F(NUMBER64, saga, seq),
    F(TEXT, saga, namespace),
    F(TEXT, saga, run),
    F(TEXT, saga, business_id),
    F(JSON, saga, tags),
    F(JSON, saga, input),
    F(JSON, saga, output),
    F(INSTANT, saga, updated_ms),
    F(INSTANT, saga, ended_ms),
    F(INSTANT, saga, deadline_ms),
    F(INSTANT, saga, active_ms),
    F(NUMBER32, saga, started_count),
    F(FLAG, saga, escalate_on_timeout),
    F(SIGNED, saga, budget.calls),
    F(SIGNED, saga, budget.emissions),
    F(SIGNED, saga, budget.micros),
    F(SIGNED, saga, used.calls),
    F(SIGNED, saga, used.emissions),
    F(SIGNED, saga, used.micros),
    F(INSTANT, saga, paused_ms),
    F(INSTANT, saga, held_ms),
    F(SIGNED, saga, held_before_ms),
    F(TEXT, saga, conversation_turn),
    F(TEXT, saga, paused_by),
    F(TEXT, saga, paused_note),
};

static const struct field operation_fields[] = {
    E(operation, state, OP_STATE_COUNT),
    E(operation, took_effect, TOOK_EFFECT_COUNT),
    F(UUID, operation, key),
    F(NUMBER32, operation, generation),
    F(NUMBER32, operation, attempts),
    F(NUMBER32, operation, never_left),
    F(NUMBER32, operation, counted),
    F(NUMBER32, operation, unsent),
    F(NUMBER32, operation, probes),
    F(JSON, operation, args),
    F(TEXT, operation, scope),
    F(JSON, operation, result),
    F(TEXT, operation, error),
    F(TEXT, operation, detail),
    F(DIGEST, operation, fingerprint),
    F(INSTANT, operation, created_ms),
    F(INSTANT, operation, first_sent_ms),
    F(INSTANT, operation, last_sent_ms),
    F(INSTANT, operation, ended_ms),
    F(INSTANT, operation, due_ms),
    E(operation, source, SOURCE_GUARD + 1),
    F(FLAG, operation, earlier_maybe),
    F(FLAG, operation, accepted),
    F(FLAG, operation, double_accepted),
    F(FLAG, operation, one_probe),
    F(FLAG, operation, duplicate_asked),
    F(FLAG, operation, before),
    F(FLAG, operation, expired),
    F(FLAG, operation, late),
    F(FLAG, operation, denied),
    F(FLAG, operation, known_before),
    F(NUMBER32, operation, ruled_out),
    F(NUMBER32, operation, other_key_attempts),
    F(NUMBER32, operation, other_probes),
    F(INSTANT, operation, window_from_ms),
    F(INSTANT, operation, prior_sent_ms),
    F(INSTANT, operation, prior_window_ms),
    F(INSTANT, operation, settled_ms),
    F(INSTANT, operation, unknown_ms),
    F(INSTANT, operation, probed_ms),
    F(INSTANT, operation, round_ms),
    F(INSTANT, operation, changed_ms),
    E(operation, effect, EFFECT_COUNT),
    F(NUMBER32, operation, tool_version),
    F(SIGNED, operation, call_timeout_ms),
    F(NUMBER32, operation, duplicates),
    F(SIGNED, operation, cost_micros),
    F(TEXT, operation, result_error),
    F(TEXT, operation, cost_unknown),
    F(JSON, operation, answer),
    F(NUMBER32, operation, answer_attempt),
};

static const struct field step_fields[] = {
    F(JSON, step, undo_args),       F(TEXT, step, undo_error),   F(NUMBER32, step, start_order),
    F(INSTANT, step, started_ms),   F(UUID, step, earlier_key),  F(NUMBER64, step, begun_seq),
    F(NUMBER64, step, settled_seq), F(NUMBER64, step, approval), F(TEXT, step, undone_by),
    F(TEXT, step, undone_note),     F(TEXT, step, decided_by),   F(TEXT, step, decided_note),
};

#if defined(__LP64__)
_Static_assert(sizeof(struct saga) == 688 && sizeof(struct operation) == 424 && sizeof(struct step) == 648,
               "add the new member to its table and count REST_FORM up, or refuse it in is_plain()");
#endif

static bool is_there(const struct field *field, const void *object)
{
    static const struct digest none;
    const void *at = (const char *)object + field->at;

    switch ((enum kind)field->kind) {
    case NUMBER32:
        return *(const uint32_t *)at != 0;
    case NUMBER64:
    case SIGNED:
    case INSTANT:
        return *(const uint64_t *)at != 0;
    case FLAG:
        return *(const bool *)at;
    case TEXT:
    case JSON:
        return ((const struct slice *)at)->ptr != NULL;
    case UUID:
        return !uuid_is_nil(at);
    case DIGEST:
        return memcmp(at, &none, sizeof(none)) != 0;
    }
    UNREACHABLE();
}

/* --- writing --- */

struct rest_writer {
    char *at, *end;
    bool full; /* once and for all: nothing is written after it */
};

static void put_bytes(struct rest_writer *out, const void *bytes, size_t len)
{
    if (out->full || (size_t)(out->end - out->at) < len) {
        out->full = true;
        return;
    }
    memcpy(out->at, bytes, len);
    out->at += len;
}

static void put_number(struct rest_writer *out, uint64_t value)
{
    if (out->end - out->at < 10) {
        out->full = true;
        return;
    }
    while (value >= 0x80) {
        *out->at++ = (char)(value | 0x80);
        value >>= 7;
    }
    *out->at++ = (char)value;
}

static void put_signed(struct rest_writer *out, int64_t value)
{
    put_number(out, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

/* The number of a digest: all of its bytes count, the lowest first. */
static void put_fixed(struct rest_writer *out, uint64_t value)
{
    char bytes[8];

    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)(value >> (8 * i));
    }
    put_bytes(out, bytes, sizeof(bytes));
}

static void put_text(struct rest_writer *out, struct slice text)
{
    put_number(out, text.len);
    if (text.len > 0) {
        put_bytes(out, text.ptr, text.len);
    }
}

static void put_field(struct rest_writer *out, const struct field *field, const void *object, int64_t from_ms)
{
    const void *at = (const char *)object + field->at;

    switch ((enum kind)field->kind) {
    case NUMBER32:
        put_number(out, *(const uint32_t *)at);
        return;
    case NUMBER64:
        put_number(out, *(const uint64_t *)at);
        return;
    case SIGNED:
        put_signed(out, *(const int64_t *)at);
        return;
    case INSTANT:
        put_signed(out, *(const int64_t *)at - from_ms);
        return;
    case FLAG:
        return; /* that it is there says all */
    case TEXT:
    case JSON:
        put_text(out, *(const struct slice *)at);
        return;
    case UUID:
        put_bytes(out, at, sizeof(struct uuid));
        return;
    case DIGEST:
        put_bytes(out, at, sizeof(struct digest));
        return;
    }
    UNREACHABLE();
}

static void put_fields(struct rest_writer *out, const struct field *fields, size_t count, const void *object,
                       int64_t from_ms)
{
    for (size_t i = 0; i < count; i++) {
        if (is_there(&fields[i], object)) {
            put_number(out, i + 1);
            put_field(out, &fields[i], object, from_ms);
        }
    }
    put_number(out, 0);
}

static void put_loop(struct rest_writer *out, const struct loop_guard *loop)
{
    put_number(out, loop->repeats);
    put_number(out, loop->max_cycle);
    put_number(out, loop->trips);
    put_number(out, loop->count);
    for (uint32_t i = 0; i < loop->count; i++) {
        put_fixed(out, loop->entries[i].call);
        put_fixed(out, loop->entries[i].answer);
        put_number(out, loop->entries[i].step);
    }
    put_number(out, loop->closed_count);
    for (uint32_t i = 0; i < loop->closed_count; i++) {
        put_fixed(out, loop->closed[i]);
    }
}

static void put_emissions(struct rest_writer *out, const struct emissions *emissions)
{
    put_number(out, emissions->count);
    for (uint32_t i = 0; i < emissions->count; i++) {
        const struct emission *emission = emissions_at(emissions, i);

        put_bytes(out, &emission->id, sizeof(emission->id));
        put_bytes(out, &emission->fingerprint, sizeof(emission->fingerprint));
        put_number(out, emission->step);
    }
}

static void put_tool(struct rest_writer *out, const struct tool *tool)
{
    put_text(out, tool ? tool->name : SLICE(""));
    put_number(out, tool ? tool->version : 0);
}

static void put_step(struct rest_writer *out, const struct saga *saga, uint32_t i)
{
    const struct step_definition *definition = &saga->definition->steps[i];
    const struct step *step = &saga->steps[i];

    put_text(out, definition->id);
    put_text(out, definition->name);
    put_tool(out, definition->tool);
    put_tool(out, definition->compensate.is_set ? definition->compensate.tool : NULL);
    put_number(out, definition->terminal);
    put_fields(out, step_fields, COUNT_OF(step_fields), step, saga->created_ms);
    put_fields(out, operation_fields, COUNT_OF(operation_fields), &step->forward, saga->created_ms);
}

/* Is the step as calls of runs leave it? Nothing of it was undone, nobody was asked about it or has signed for it. */
static bool step_is_plain(const struct step *step)
{
    return !step->undo && !step->bypass && !step->forward.asked && step->plan == PLAN_NONE && !step->item.ptr &&
           step->first == 0 && step->count == 0 && step->begun == 0 && step->over == 0 &&
           step->group_phase == PHASE_FORWARD && step->failing_step == 0 && step->undo_count == 0 &&
           step->undo_left == 0 && step->undo_waived == 0 && step->undo_active == 0;
}

static bool is_plain(const struct saga *saga)
{
    uint32_t count = saga->definition->step_count;

    if (saga->definition->kind != SAGA_RUN || saga->phase != PHASE_ENDED || saga->end != SAGA_COMPLETED ||
        count > REST_STEPS_MAX || saga->emissions->count > REST_EMISSIONS_MAX || saga->created_ms <= 0 ||
        saga->failing_reason.ptr || saga->failing_detail.ptr || saga->failing_by.ptr || saga->failing_note.ptr ||
        saga->failing_step != STEP_NONE || saga->plan_count > 0 || saga->undo_active > 0 ||
        saga->escalation_count > 0 || saga->escalation.number || saga->asked || saga->paused.ptr ||
        saga->locks_wanted || saga->bulk_done || saga->signal_count > 0 || saga->lock_count > 0 ||
        saga->followers.ptr || saga->trace.parent.ptr) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!step_is_plain(&saga->steps[i])) {
            return false;
        }
    }
    return true;
}

static struct digest digest_of(struct saga_id id, struct slice bytes)
{
    const struct slice fields[] = {{(const char *)&id, sizeof(id)}, bytes};

    return digest_fields("sagad-rest", fields, COUNT_OF(fields));
}

bool saga_write_rest(const struct saga *saga, struct buffer *out)
{
    char bytes[REST_BYTES_MAX];
    struct rest_writer writer = {.at = bytes, .end = bytes + sizeof(bytes)};
    struct digest digest = {0};
    char *digest_at, *digested;

    if (!is_plain(saga)) {
        return false;
    }
    put_number(&writer, REST_FORM);
    digest_at = writer.at;
    put_bytes(&writer, digest.bytes, DIGEST_BYTES); /* the place of the digest */
    digested = writer.at;
    put_number(&writer, (uint64_t)saga->created_ms);
    put_fields(&writer, saga_fields, COUNT_OF(saga_fields), saga, saga->created_ms);
    put_loop(&writer, saga->loop);
    put_emissions(&writer, saga->emissions);
    put_number(&writer, saga->definition->step_count);
    for (uint32_t i = 0; i < saga->definition->step_count && !writer.full; i++) {
        put_step(&writer, saga, i);
    }
    if (!writer.full) {
        digest = digest_of(saga->id, (struct slice){digested, (size_t)(writer.at - digested)});
        memcpy(digest_at, digest.bytes, DIGEST_BYTES);
        buffer_put(out, bytes, (size_t)(writer.at - bytes));
    }
    return !writer.full && !out->overflow;
}

/* --- reading --- */

struct rest_reader {
    const char *at, *end;
    bool bad; /* once and for all: what is read after it is zero */
};

static const char *get_bytes(struct rest_reader *reader, size_t len)
{
    const char *bytes = reader->at;

    if (reader->bad || (size_t)(reader->end - reader->at) < len) {
        reader->bad = true;
        return NULL;
    }
    reader->at += len;
    return bytes;
}

static uint64_t get_number(struct rest_reader *reader)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        const char *byte = get_bytes(reader, 1);

        if (!byte) {
            return 0;
        }
        value |= (uint64_t)(*byte & 0x7f) << shift;
        if (!(*byte & 0x80)) {
            return value;
        }
    }
    reader->bad = true;
    return 0;
}

static uint32_t get_number32(struct rest_reader *reader, uint64_t most)
{
    uint64_t value = get_number(reader);

    reader->bad = reader->bad || value > most;
    return reader->bad ? 0 : (uint32_t)value;
}

static int64_t get_signed(struct rest_reader *reader)
{
    uint64_t value = get_number(reader);

    return (int64_t)(value >> 1 ^ (value & 1 ? UINT64_MAX : 0));
}

static uint64_t get_fixed(struct rest_reader *reader)
{
    const char *bytes = get_bytes(reader, 8);
    uint64_t value = 0;

    for (size_t i = 0; bytes && i < 8; i++) {
        value |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
    }
    return value;
}

static struct slice get_text(struct rest_reader *reader)
{
    size_t len = get_number32(reader, REST_BYTES_MAX);
    const char *bytes = get_bytes(reader, len);

    return bytes ? (struct slice){bytes, len} : SLICE_NONE;
}

static void get_copy(struct rest_reader *reader, void *out, size_t len)
{
    const char *bytes = get_bytes(reader, len);

    if (bytes) {
        memcpy(out, bytes, len);
    }
}

static void get_json(struct rest_reader *reader, struct slice *out)
{
    *out = get_text(reader);
    reader->bad = reader->bad || json_check(*out, &json_limits_default, NULL) != ERR_OK;
}

static void get_field(struct rest_reader *reader, const struct field *field, void *object, int64_t from_ms)
{
    void *at = (char *)object + field->at;
    int64_t since_ms;

    switch ((enum kind)field->kind) {
    case NUMBER32:
        *(uint32_t *)at = get_number32(reader, field->values ? field->values - 1u : UINT32_MAX);
        return;
    case NUMBER64:
        *(uint64_t *)at = get_number(reader);
        return;
    case SIGNED:
        *(int64_t *)at = get_signed(reader);
        return;
    case INSTANT:
        since_ms = get_signed(reader);
        reader->bad = reader->bad || __builtin_add_overflow(from_ms, since_ms, (int64_t *)at);
        return;
    case FLAG:
        *(bool *)at = true;
        return;
    case TEXT:
        *(struct slice *)at = get_text(reader);
        return;
    case JSON:
        get_json(reader, at);
        return;
    case UUID:
        get_copy(reader, at, sizeof(struct uuid));
        return;
    case DIGEST:
        get_copy(reader, at, sizeof(struct digest));
        return;
    }
    UNREACHABLE();
}

static void get_fields(struct rest_reader *reader, const struct field *fields, size_t count, void *object,
                       int64_t from_ms)
{
    uint32_t last = 0, number;

    while ((number = get_number32(reader, count)) != 0) {
        if (number <= last) {
            reader->bad = true;
            return;
        }
        get_field(reader, &fields[number - 1], object, from_ms);
        last = number;
    }
}

static void get_loop(struct rest_reader *reader, struct loop_guard *loop)
{
    loop->repeats = get_number32(reader, LOOP_REPEATS_MAX);
    loop->max_cycle = get_number32(reader, LOOP_CYCLE_MAX);
    loop->trips = get_number32(reader, UINT32_MAX);
    loop->count = get_number32(reader, LOOP_ENTRIES_MAX);
    for (uint32_t i = 0; i < loop->count; i++) {
        loop->entries[i].call = get_fixed(reader);
        loop->entries[i].answer = get_fixed(reader);
        loop->entries[i].step = get_number32(reader, REST_STEPS_MAX - 1);
    }
    loop->closed_count = get_number32(reader, LOOP_CYCLE_MAX);
    for (uint32_t i = 0; i < loop->closed_count; i++) {
        loop->closed[i] = get_fixed(reader);
    }
    reader->bad = reader->bad || loop->repeats < 2 || loop->max_cycle < 1;
}

static void get_emissions(struct rest_reader *reader, struct saga *saga)
{
    uint32_t count = get_number32(reader, REST_EMISSIONS_MAX);

    for (uint32_t i = 0; i < count; i++) {
        struct emission emission = {.step = 0};

        get_copy(reader, &emission.id, sizeof(emission.id));
        get_copy(reader, &emission.fingerprint, sizeof(emission.fingerprint));
        emission.step = get_number32(reader, REST_STEPS_MAX - 1);
        reader->bad = reader->bad || !emissions_restore(saga->emissions, &emission, saga->arena);
    }
}

static const struct tool *get_tool(struct rest_reader *reader, const struct saga *saga, bool *is_named)
{
    const struct tool_shelf *shelf = saga->definition->shelf;
    struct slice name = get_text(reader);
    uint32_t version = get_number32(reader, UINT32_MAX);

    *is_named = name.len > 0;
    return *is_named && version > 0 && shelf ? shelf->find(shelf, saga->namespace, name, version) : NULL;
}

static void get_step(struct rest_reader *reader, struct saga *saga, uint32_t i)
{
    struct slice id = get_text(reader), name = get_text(reader);
    bool is_named, is_undone, terminal;
    const struct tool *tool = get_tool(reader, saga, &is_named), *undo = get_tool(reader, saga, &is_undone);
    struct step_definition definition;
    struct step *step = &saga->steps[i];

    terminal = get_number32(reader, 1) != 0;
    if (reader->bad || !tool || (is_undone && !undo) || tool->compensate.is_set != is_undone ||
        !step_definition_of_call(tool, undo, &definition)) {
        reader->bad = true;
        return;
    }
    definition.id = id;
    definition.name = name;
    definition.terminal = terminal;
    saga->definition = definition_with_step(saga->definition, &definition, saga->arena);
    get_fields(reader, step_fields, COUNT_OF(step_fields), step, saga->created_ms);
    get_fields(reader, operation_fields, COUNT_OF(operation_fields), &step->forward, saga->created_ms);
}

static void get_steps(struct rest_reader *reader, struct saga *saga)
{
    uint32_t count = get_number32(reader, REST_STEPS_MAX);

    if (count > saga->step_room) {
        saga->step_room = open_step_room(count);
        saga->steps = arena_array(saga->arena, saga->step_room, sizeof(*saga->steps));
    }
    for (uint32_t i = 0; i < count && !reader->bad; i++) {
        get_step(reader, saga, i);
    }
}

/* Takes the digest. Is it that of all that follows, in this run? */
static bool get_digest(struct rest_reader *reader, struct saga_id id)
{
    const char *bytes = get_bytes(reader, DIGEST_BYTES);
    struct digest digest;

    if (!bytes) {
        return false;
    }
    digest = digest_of(id, (struct slice){reader->at, (size_t)(reader->end - reader->at)});
    return memcmp(bytes, digest.bytes, DIGEST_BYTES) == 0;
}

uint32_t saga_rest_form(struct slice bytes)
{
    struct rest_reader reader = {.at = bytes.ptr, .end = bytes.ptr + bytes.len};

    return get_number32(&reader, UINT32_MAX);
}

/* Does nothing that was read name a step that is not there? */
static bool steps_are_there(const struct saga *saga)
{
    uint32_t count = saga->definition->step_count;

    for (uint32_t i = 0; i < saga->loop->count; i++) {
        if (saga->loop->entries[i].step >= count) {
            return false;
        }
    }
    for (uint32_t i = 0; i < saga->emissions->count; i++) {
        if (emissions_at(saga->emissions, i)->step >= count) {
            return false;
        }
    }
    return true;
}

enum err_code saga_read_rest(struct saga *saga, struct arena *arena, struct saga_id id,
                             const struct definition *definition, struct slice namespace, uint64_t seq,
                             struct slice bytes, struct err *err)
{
    struct slice kept = arena_slice(arena, bytes);
    struct rest_reader reader = {.at = kept.ptr, .end = kept.ptr + kept.len};

    CHECK(definition->kind == SAGA_RUN && definition->step_count == 0);
    if (get_number(&reader) != REST_FORM) {
        return err_set(err, ERR_UNSUPPORTED, "the state of this run has a form that this version does not read");
    }
    if (!get_digest(&reader, id)) {
        return err_set(err, ERR_CORRUPT, "the state of this run is damaged, or that of another run");
    }
    saga_init(saga, arena, id, definition);
    saga->phase = PHASE_ENDED;
    saga->end = SAGA_COMPLETED;
    saga->budget = (struct budget){0};
    saga->created_ms = (int64_t)get_number(&reader);
    get_fields(&reader, saga_fields, COUNT_OF(saga_fields), saga, saga->created_ms);
    get_loop(&reader, saga->loop);
    get_emissions(&reader, saga);
    get_steps(&reader, saga);
    if (reader.bad || reader.at != reader.end || !steps_are_there(saga) || !saga_is_sound(saga)) {
        return err_set(err, ERR_UNSUPPORTED,
                       "the state of this run names a tool that is not known here, or makes no sense");
    }
    if (saga->seq != seq || !slice_equal(saga->namespace, namespace)) {
        return err_set(err, ERR_CORRUPT, "the state of this run is that of record %llu in \"%.*s\"",
                       (unsigned long long)saga->seq, SLICE_ARG(saga->namespace));
    }
    return ERR_OK;
}
