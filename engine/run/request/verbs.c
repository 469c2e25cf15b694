/* The table of verbs, and the functions that read and write their members by it. */
#include "run/request/verbs.h"

#include <string.h>

#include "base/instant.h"
#include "base/utf8.h"

#define NOTE_CHARACTERS_MAX 1000
#define HASH_CHARACTERS 64
#define COMPLETE_WAIT_MS 30000
#define ASSIGNED_BYTES_MAX 256

#define AT(member) offsetof(struct saga_input, member)
#define MEMBERS(list) .members = (list), .member_count = COUNT_OF(list)
#define NOTE(name, member)                                                                                             \
    {                                                                                                                  \
        name, FROM_BODY, MEMBER_NOTE, AT(member), .characters_max = NOTE_CHARACTERS_MAX                                \
    }

static const struct verb_member pause_members[] = {NOTE("note", pause.note)};
static const struct verb_member resume_members[] = {NOTE("note", resume.note)};
static const struct verb_member mend_members[] = {{"tool", FROM_BODY, MEMBER_TEXT, AT(mend.tool), true},
                                                  {"version", FROM_BODY, MEMBER_VERSION, AT(mend.version), true},
                                                  {"accept_double", FROM_BODY, MEMBER_FLAG, AT(mend.accept_double)},
                                                  NOTE("note", mend.note)};
static const struct verb_member rerun_members[] = {
    {"version", FROM_BODY, MEMBER_VERSION, AT(rerun.version)},
    {"accept_standing", FROM_BODY, MEMBER_JSON, AT(rerun.accept_standing)},
    {"key", FROM_KEY, MEMBER_ID, AT(rerun.id)},
    NOTE("note", rerun.note)};
static const struct verb_member abort_members[] = {NOTE("note", abort.note)};
static const struct verb_member escalate_members[] = {NOTE("note", escalate.note)};
static const struct verb_member complete_members[] = {{"output", FROM_BODY, MEMBER_JSON, AT(complete.output)}};

static const struct verb_member signal_members[] = {{"name", FROM_PATH, MEMBER_TEXT, AT(signal.name)},
                                                    {"payload", FROM_WHOLE_BODY, MEMBER_JSON, AT(signal.payload)},
                                                    {"key", FROM_KEY, MEMBER_ID, AT(signal.id)}};

static const struct verb_member bypass_members[] = {{"key", FROM_TARGET, MEMBER_OPKEY, AT(bypass.key)},
                                                    NOTE("reason", bypass.note)};

static const struct verb_member cost_members[] = {{"key", FROM_TARGET, MEMBER_OPKEY, AT(cost.key)},
                                                  {"micros", FROM_BODY, MEMBER_MICROS, AT(cost.micros), true},
                                                  NOTE("note", cost.note)};

static const struct verb_word decisions[] = {{"approve", AT(decision.approve)}, {"refuse", 0}, {0}};
static const struct verb_member decide_members[] = {
    {"approval", FROM_TARGET, MEMBER_NUMBER, AT(decision.approval)},
    {"decision", FROM_BODY, MEMBER_WORDS, .required = true, .words = decisions},
    {"approve", FROM_WORDS, MEMBER_FLAG, AT(decision.approve)},
    {"role", FROM_TOKEN, MEMBER_ROLE, AT(decision.role)},
    {"hash", FROM_BODY, MEMBER_HASH, AT(decision.hash)},
    NOTE("note", decision.note)};

static const struct verb_word as_words[] = {
    {"happened", AT(verdict.happened)}, {"not_happened", 0}, {"undone", AT(verdict.undone)}, {0}};
static const struct verb_word then_words[] = {{"retry", AT(verdict.again)}, {0}};

/* A verdict, about an operation by its key or about the operation of an escalation. Its note has no bound of its
 * own. */
#define VERDICT(as_required)                                                                                           \
    {"as", FROM_BODY, MEMBER_WORDS, .required = (as_required), .words = as_words},                                     \
        {"then", FROM_BODY, MEMBER_WORDS, .words = then_words},                                                        \
        {"round", FROM_BODY, MEMBER_NUMBER, AT(verdict.round), .left_out = true},                                      \
        {"result", FROM_BODY, MEMBER_JSON, AT(verdict.result)}, {"note", FROM_BODY, MEMBER_NOTE, AT(verdict.note)},    \
        {"happened", FROM_WORDS, MEMBER_FLAG, AT(verdict.happened)},                                                   \
        {"undone", FROM_WORDS, MEMBER_FLAG, AT(verdict.undone)},                                                       \
    {                                                                                                                  \
        "again", FROM_WORDS, MEMBER_FLAG, AT(verdict.again)                                                            \
    }

static const struct verb_member resolve_members[] = {
    {"escalation", FROM_TARGET, MEMBER_NUMBER, AT(verdict.escalation)},
    {"action", FROM_BODY, MEMBER_ACTION, AT(verdict.action), true},
    {"args", FROM_BODY, MEMBER_JSON, AT(verdict.args)},
    {"accept_double", FROM_BODY, MEMBER_FLAG, AT(verdict.accept_double)},
    {"request", FROM_KEY, MEMBER_TEXT, AT(verdict.request), .left_out = true},
    VERDICT(false)};

static const struct verb_member resolve_operation_members[] = {{"key", FROM_TARGET, MEMBER_OPKEY, AT(verdict.key)},
                                                               {"action", FROM_ROW, MEMBER_ACTION, AT(verdict.action)},
                                                               VERDICT(true)};

#define REMARK                                                                                                         \
    {"escalation", FROM_TARGET, MEMBER_NUMBER, AT(remark.escalation)},                                                 \
        {"id", FROM_KEY, MEMBER_TEXT, AT(remark.id), .left_out = true}, NOTE("note", remark.note)

static const struct verb_member acknowledge_members[] = {
    {"until", FROM_BODY, MEMBER_INSTANT, AT(remark.until_ms), .left_out = true}, REMARK};
static const struct verb_member assign_members[] = {{"to", FROM_BODY, MEMBER_TEXT, AT(remark.to), true}, REMARK};
static const struct verb_member comment_members[] = {REMARK};

static void check_assign(struct slice body, const struct saga_input *input, struct faults *faults)
{
    struct slice to = input->remark.to;

    (void)body;
    if (to.len > 0 && !text_is_plain(to, ASSIGNED_BYTES_MAX)) {
        faults_add(faults, SLICE("/to"), "a name is plain text of at most %d bytes; an empty one is nobody",
                   ASSIGNED_BYTES_MAX);
    }
}

static void check_verdict(struct slice body, const struct saga_input *input, struct faults *faults)
{
    struct slice as = json_member(body, "as"), action = json_member(body, "action");

    if (json_member(body, "then").ptr && !json_string_is(as, "not_happened")) {
        faults_add(faults, SLICE("/then"), "\"then\" goes with \"as\": \"not_happened\" only");
    }
    if (json_member(body, "result").ptr && !input->verdict.happened && !json_string_is(action, "skip")) {
        faults_add(faults, SLICE("/result"), "only resolve as happened, and skip, take \"result\"");
    }
}

static void check_resolve(struct slice body, const struct saga_input *input, struct faults *faults)
{
    static const char *const of_retry[] = {"args", "accept_double"};
    static const char *const pointers[] = {"/args", "/accept_double"};
    struct slice as = json_member(body, "as"), action = json_member(body, "action");
    bool resolves = json_string_is(action, "resolve");

    if (action.ptr && resolves && !as.ptr) {
        faults_add(faults, SLICE("/as"),
                   "resolve says what happened: \"as\" is \"happened\", \"not_happened\" or \"undone\"");
    }
    if (action.ptr && !resolves && as.ptr) {
        faults_add(faults, SLICE("/as"), "only the action resolve takes \"as\"");
    }
    for (size_t i = 0; action.ptr && i < COUNT_OF(of_retry); i++) {
        if (json_member(body, of_retry[i]).ptr && !json_string_is(action, "retry")) {
            faults_add(faults, slice_of(pointers[i]), "only the action retry takes \"%s\"", of_retry[i]);
        }
    }
    check_verdict(body, input, faults);
}

static void check_rerun(struct slice body, const struct saga_input *input, struct faults *faults)
{
    struct json_walk walk = json_walk(input->rerun.accept_standing);
    struct slice step;
    bool good = json_type(input->rerun.accept_standing) == JSON_ARRAY;

    (void)body;
    while (good && json_next_element(&walk, &step)) {
        good = json_type(step) == JSON_STRING;
    }
    if (input->rerun.accept_standing.ptr && !good) {
        faults_add(faults, SLICE("/accept_standing"), "the steps whose effects may stand: an array of their ids");
    }
}

const struct verb verbs[VERB_COUNT] = {
    [VERB_PAUSE] = {"pause", ON_SAGA, ROLE_OPERATOR, NOTE_NEEDED, SAGA_INPUT_PAUSE, .actor = AT(pause.actor),
                    .answer = ANSWER_SAGA, MEMBERS(pause_members)},
    [VERB_RESUME] = {"resume", ON_SAGA, ROLE_OPERATOR, NOTE_NEEDED, SAGA_INPUT_RESUME, .actor = AT(resume.actor),
                     .answer = ANSWER_SAGA, MEMBERS(resume_members)},
    [VERB_MEND] = {"tools", ON_SAGA, ROLE_OPERATOR, NOTE_NEEDED, SAGA_INPUT_MEND, .actor = AT(mend.actor),
                   .answer = ANSWER_SAGA, .repeatable = true, MEMBERS(mend_members)},
    [VERB_RERUN] = {"rerun", ON_SAGA, ROLE_OPERATOR, NOTE_NEEDED, SAGA_INPUT_RERUN, .actor = AT(rerun.actor),
                    .answer = ANSWER_OWN, .creates = true, .repeatable = true, MEMBERS(rerun_members),
                    .check = check_rerun},
    [VERB_ABORT] = {"abort", ON_SAGA, ROLE_AGENT, NOTE_OF_OPERATORS, SAGA_INPUT_ABORT, .actor = AT(abort.actor),
                    .answer = ANSWER_SAGA, MEMBERS(abort_members)},
    [VERB_ESCALATE] = {"escalate", ON_SAGA, ROLE_OPERATOR, NOTE_NEEDED, SAGA_INPUT_ESCALATE,
                       .actor = AT(escalate.actor), .answer = ANSWER_SAGA, MEMBERS(escalate_members)},
    [VERB_COMPLETE] = {"complete", ON_SAGA, ROLE_AGENT, NOTE_NONE, SAGA_INPUT_COMPLETE, .actor = AT(complete.actor),
                       .answer = ANSWER_SAGA, .wait_ms = COMPLETE_WAIT_MS, MEMBERS(complete_members)},
    [VERB_SIGNAL] = {"signal", ON_SAGA, ROLE_AGENT, NOTE_NONE, SAGA_INPUT_SIGNAL, .actor = AT(signal.actor),
                     .answer = ANSWER_OWN, .creates = true, .repeatable = true, MEMBERS(signal_members)},
    /* The approval itself may ask for a higher role. */
    [VERB_DECIDE] = {"decide", ON_APPROVAL, ROLE_AGENT, NOTE_NEEDED, SAGA_INPUT_DECISION, .actor = AT(decision.actor),
                     .target = AT(decision.approval), .answer = ANSWER_QUESTION, .repeatable = true,
                     MEMBERS(decide_members)},
    [VERB_RESOLVE_OPERATION] = {"resolve", ON_OPERATION, ROLE_OPERATOR, NOTE_NEEDED, SAGA_INPUT_OPERATOR,
                                OPERATOR_RESOLVE, .actor = AT(verdict.actor), .target = AT(verdict.key),
                                .answer = ANSWER_OPERATION, .repeatable = true, MEMBERS(resolve_operation_members),
                                .check = check_verdict},
    [VERB_RESOLVE] = {"resolve", ON_ESCALATION, ROLE_OPERATOR, NOTE_NEEDED, SAGA_INPUT_OPERATOR,
                      .actor = AT(verdict.actor), .target = AT(verdict.escalation), .answer = ANSWER_QUESTION,
                      .repeatable = true, MEMBERS(resolve_members), .check = check_resolve},
    [VERB_ACKNOWLEDGE] = {"acknowledge", ON_ESCALATION, ROLE_OPERATOR, NOTE_NEEDED, SAGA_INPUT_REMARK,
                          .actor = AT(remark.actor), .target = AT(remark.escalation), .answer = ANSWER_QUESTION,
                          .repeatable = true, MEMBERS(acknowledge_members)},
    [VERB_ASSIGN] = {"assign", ON_ESCALATION, ROLE_OPERATOR, NOTE_NEEDED, SAGA_INPUT_REMARK, .actor = AT(remark.actor),
                     .target = AT(remark.escalation), .answer = ANSWER_QUESTION, .repeatable = true,
                     MEMBERS(assign_members), .check = check_assign},
    [VERB_COMMENT] = {"comment", ON_ESCALATION, ROLE_OPERATOR, NOTE_NEEDED, SAGA_INPUT_REMARK,
                      .actor = AT(remark.actor), .target = AT(remark.escalation), .answer = ANSWER_QUESTION,
                      .repeatable = true, MEMBERS(comment_members)},
    [VERB_BYPASS] = {"bypass", ON_OPERATION, ROLE_OPERATOR, NOTE_NEEDED, SAGA_INPUT_BYPASS, .actor = AT(bypass.actor),
                     .target = AT(bypass.key), .answer = ANSWER_OWN, .repeatable = true, MEMBERS(bypass_members)},
    [VERB_COST] = {"cost", ON_OPERATION, ROLE_OPERATOR, NOTE_NEEDED, SAGA_INPUT_COST, .actor = AT(cost.actor),
                   .target = AT(cost.key), .answer = ANSWER_OWN, .repeatable = true, MEMBERS(cost_members)},
};

static void *at(struct saga_input *input, size_t offset)
{
    return (char *)input + offset;
}

static const void *in(const struct saga_input *input, size_t offset)
{
    return (const char *)input + offset;
}

struct op_key *verb_key(const struct verb *verb, struct saga_input *input)
{
    CHECK(verb->on == ON_OPERATION);
    return at(input, verb->target);
}

uint64_t *verb_number(const struct verb *verb, struct saga_input *input)
{
    CHECK(verb->on == ON_ESCALATION || verb->on == ON_APPROVAL);
    return at(input, verb->target);
}

/* Does the member have a slice in the input? Texts and JSON do. */
static bool is_slice(const struct verb_member *member)
{
    return member->kind <= MEMBER_JSON;
}

/* --- bodies --- */

enum json_type verb_member_type(const struct verb_member *member)
{
    switch (member->kind) {
    case MEMBER_TEXT:
    case MEMBER_NOTE:
    case MEMBER_HASH:
    case MEMBER_ID:
    case MEMBER_OPKEY:
    case MEMBER_ROLE:
    case MEMBER_ACTION:
    case MEMBER_WORDS:
    case MEMBER_INSTANT:
        return JSON_STRING;
    case MEMBER_FLAG:
        return JSON_BOOL;
    case MEMBER_NUMBER:
    case MEMBER_MICROS:
    case MEMBER_VERSION:
        return JSON_NUMBER;
    case MEMBER_JSON:
        return JSON_NONE;
    }
    UNREACHABLE();
}

bool verb_requires(const struct verb *verb, const struct verb_member *member)
{
    return member->required || (member->kind == MEMBER_NOTE && verb->note == NOTE_NEEDED);
}

static size_t characters(struct slice text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.len; i++) {
        count += ((unsigned char)text.ptr[i] & 0xc0) != 0x80; /* skips the later bytes of a UTF-8 character */
    }
    return count;
}

static void check_note(const struct verb_member *member, struct slice text, struct slice pointer, struct faults *faults)
{
    if (slice_trim(text).len == 0) {
        faults_add(faults, pointer, "say why, for those who read the log later");
    } else if (member->characters_max && characters(text) > member->characters_max) {
        faults_add(faults, pointer, "longer than %zu characters", member->characters_max);
    }
}

static bool is_hash(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
            return false;
        }
    }
    return text.len == HASH_CHARACTERS;
}

/* Writes "a", "b" or "c". */
static struct slice list_words(const struct verb_word *words, struct arena *arena)
{
    struct slice text = arena_printf(arena, "\"%s\"", words->word);

    for (words++; words->word; words++) {
        text = arena_printf(arena, "%.*s%s\"%s\"", SLICE_ARG(text), words[1].word ? ", " : " or ", words->word);
    }
    return text;
}

static void read_words(const struct verb_member *member, struct slice value, struct slice pointer, struct arena *arena,
                       struct saga_input *input, struct faults *faults)
{
    for (const struct verb_word *word = member->words; word->word; word++) {
        if (json_string_is(value, word->word)) {
            if (word->at) {
                *(bool *)at(input, word->at) = true;
            }
            return;
        }
    }
    faults_add(faults, pointer, "\"%s\" is %.*s", member->name, SLICE_ARG(list_words(member->words, arena)));
}

static bool read_version(struct slice value, uint32_t *out)
{
    int64_t number = 0;

    if (!json_i64(value, &number) || number < 1 || number > INT32_MAX) {
        return false;
    }
    *out = (uint32_t)number;
    return true;
}

static void read_member(const struct verb_member *member, struct slice value, struct arena *arena,
                        struct saga_input *input, struct faults *faults)
{
    struct slice pointer = arena_printf(arena, "/%s", member->name);
    struct slice text = json_string(value, arena);
    void *to = at(input, member->at);
    int64_t number = 0;

    if (is_slice(member)) {
        *(struct slice *)to = member->kind == MEMBER_JSON ? value : text;
    }
    switch (member->kind) {
    case MEMBER_TEXT:
    case MEMBER_ID:
    case MEMBER_JSON:
        return;
    case MEMBER_NOTE:
        check_note(member, text, pointer, faults);
        return;
    case MEMBER_HASH:
        if (!is_hash(text)) {
            faults_add(faults, pointer, "the `%s` of an approval is %d hexadecimal digits, as the approval shows it",
                       member->name, HASH_CHARACTERS);
        }
        return;
    case MEMBER_FLAG:
        (void)json_bool(value, to); /* it is one */
        return;
    case MEMBER_INSTANT:
        if (!instant_parse(text, to) || *(int64_t *)to <= 0) {
            faults_add(faults, pointer, "\"%s\" is an instant, such as 2026-01-31T09:00:00Z", member->name);
        }
        return;
    case MEMBER_MICROS:
        if (!json_i64(value, to) || *(int64_t *)to < 0 || *(int64_t *)to > COST_MICROS_MAX) {
            faults_add(faults, pointer, "a cost is a whole number of millionths of your currency, from 0 to %lld",
                       (long long)COST_MICROS_MAX);
        }
        return;
    case MEMBER_VERSION:
        if (!read_version(value, to)) {
            faults_add(faults, pointer, "a version is a whole number from 1 to %d", INT32_MAX);
        }
        return;
    case MEMBER_ACTION:
        if (!operator_action_parse(text, to)) {
            faults_add(faults, pointer, "an action is one of retry, probe, resolve, waive, skip, compensate, abandon");
        }
        return;
    case MEMBER_WORDS:
        read_words(member, value, pointer, arena, input, faults);
        return;
    case MEMBER_NUMBER:
        if (!json_i64(value, &number) || number < 1) {
            faults_add(faults, pointer, "\"%s\" is a whole number, from 1", member->name);
        }
        *(uint64_t *)to = (uint64_t)number;
        return;
    case MEMBER_OPKEY:
    case MEMBER_ROLE: /* no body has these */
        break;
    }
    UNREACHABLE();
}

void verb_read_body(const struct verb *verb, const struct slice *values, struct slice body, bool says_why,
                    struct arena *arena, struct saga_input *input, struct faults *faults)
{
    for (size_t i = 0; i < verb->member_count; i++) {
        const struct verb_member *member = &verb->members[i];

        if (member->from == FROM_BODY && values[i].ptr) {
            read_member(member, values[i], arena, input, faults);
        } else if (member->kind == MEMBER_NOTE && verb->note == NOTE_OF_OPERATORS) {
            *(struct slice *)at(input, member->at) = SLICE("");
            if (says_why) {
                faults_add(faults, SLICE(""), "the member \"%s\" is missing: an operator or admin says why",
                           member->name);
            }
        }
    }
    if (verb->check) {
        verb->check(body, input, faults);
    }
}

/* --- the engine --- */

static const size_t sizes[] = {
    [MEMBER_TEXT] = sizeof(struct slice),
    [MEMBER_NOTE] = sizeof(struct slice),
    [MEMBER_HASH] = sizeof(struct slice),
    [MEMBER_ID] = sizeof(struct slice),
    [MEMBER_JSON] = sizeof(struct slice),
    [MEMBER_FLAG] = sizeof(bool),
    [MEMBER_NUMBER] = sizeof(uint64_t),
    [MEMBER_INSTANT] = sizeof(int64_t),
    [MEMBER_MICROS] = sizeof(int64_t),
    [MEMBER_VERSION] = sizeof(uint32_t),
    [MEMBER_OPKEY] = sizeof(struct op_key),
    [MEMBER_ROLE] = sizeof(enum role),
    [MEMBER_ACTION] = sizeof(enum operator_action),
    [MEMBER_WORDS] = 0,
};

void verb_copy(const struct verb *verb, const struct saga_input *from, struct slice actor, struct arena *arena,
               struct saga_input *to)
{
    *to = (struct saga_input){.type = verb->input, .bulk = from->bulk};
    to->bulk.id = arena_slice(arena, from->bulk.id);
    *(struct slice *)at(to, verb->actor) = arena_slice(arena, actor);
    for (size_t i = 0; i < verb->member_count; i++) {
        const struct verb_member *member = &verb->members[i];
        struct slice *slice = at(to, member->at);

        if (member->from == FROM_ROW) {
            *(enum operator_action *)at(to, member->at) = verb->action;
        } else if (is_slice(member)) {
            *slice = arena_slice(arena, *(const struct slice *)in(from, member->at));
        } else {
            memcpy(at(to, member->at), in(from, member->at), sizes[member->kind]);
        }
        if (member->from == FROM_WHOLE_BODY && !slice->ptr) {
            *slice = SLICE("null");
        }
    }
}

const struct verb_member *verb_too_large(const struct verb *verb, const struct saga_input *input, size_t bytes_max)
{
    for (size_t i = 0; i < verb->member_count; i++) {
        const struct verb_member *member = &verb->members[i];

        if (member->kind == MEMBER_JSON && ((const struct slice *)in(input, member->at))->len > bytes_max) {
            return member;
        }
    }
    return NULL;
}

/* --- between engines --- */

static struct slice id_text(const struct uuid *uuid, struct arena *arena)
{
    char text[UUID_TEXT_BYTES];

    uuid_text(uuid, text);
    return arena_slice(arena, slice_of(text));
}

static void write_member(const struct verb_member *member, const struct saga_input *input, struct arena *arena,
                         struct json_writer *w)
{
    const void *from = in(input, member->at);

    switch (member->kind) {
    case MEMBER_TEXT:
    case MEMBER_NOTE:
    case MEMBER_HASH:
    case MEMBER_ID:
        json_write_slice(w, member->name, *(const struct slice *)from);
        return;
    case MEMBER_JSON:
        json_write_raw(w, member->name, *(const struct slice *)from);
        return;
    case MEMBER_FLAG:
        json_write_bool(w, member->name, *(const bool *)from);
        return;
    case MEMBER_NUMBER:
        json_write_i64(w, member->name, (int64_t) * (const uint64_t *)from);
        return;
    case MEMBER_INSTANT:
        json_write_instant(w, member->name, *(const int64_t *)from);
        return;
    case MEMBER_MICROS:
        json_write_i64(w, member->name, *(const int64_t *)from);
        return;
    case MEMBER_VERSION:
        json_write_i64(w, member->name, *(const uint32_t *)from);
        return;
    case MEMBER_OPKEY:
        json_write_slice(w, member->name, id_text(&((const struct op_key *)from)->uuid, arena));
        return;
    case MEMBER_ROLE:
        json_write_text(w, member->name, role_name(*(const enum role *)from));
        return;
    case MEMBER_ACTION:
        json_write_text(w, member->name, operator_action_name(*(const enum operator_action *)from));
        return;
    case MEMBER_WORDS: /* the flags that the word set are written */
        return;
    }
    UNREACHABLE();
}

bool verb_lacks(const struct verb_member *member, const struct saga_input *input)
{
    return is_slice(member) ? !((const struct slice *)in(input, member->at))->ptr
                            : *(const uint64_t *)in(input, member->at) == 0;
}

static void write_bulk(const struct bulk_act *bulk, struct arena *arena, struct json_writer *w)
{
    if (!bulk->id.ptr) {
        return;
    }
    json_object_begin(w, "bulk");
    json_write_slice(w, "id", bulk->id);
    json_write_slice(w, "key", id_text(&bulk->key.uuid, arena));
    json_write_i64(w, "attempts", bulk->attempts);
    json_object_end(w);
}

void verb_write(const struct verb *verb, struct saga_input *input, int64_t now_ms, struct arena *arena,
                struct json_writer *w)
{
    for (size_t i = 0; i < verb->member_count; i++) {
        const struct verb_member *member = &verb->members[i];
        struct slice *id = at(input, member->at);

        if (member->left_out && verb_lacks(member, input)) {
            continue;
        }
        if (member->kind == MEMBER_ID && !id->ptr) {
            struct uuid made = uuid_v7(now_ms);

            *id = arena_printf(arena, "~%.*s", SLICE_ARG(id_text(&made, arena)));
        }
        write_member(member, input, arena, w);
    }
    write_bulk(&input->bulk, arena, w);
}

static bool read_bulk(struct slice object, struct arena *arena, struct bulk_act *bulk)
{
    int64_t attempts = 0;

    if (!object.ptr) {
        return true;
    }
    bulk->id = json_string(json_member(object, "id"), arena);
    if (!bulk->id.ptr || !uuid_parse(json_string(json_member(object, "key"), arena), &bulk->key.uuid) ||
        !json_i64(json_member(object, "attempts"), &attempts) || attempts < 0 || attempts > UINT32_MAX) {
        return false;
    }
    bulk->attempts = (uint32_t)attempts;
    return true;
}

/* Takes a member. A wrong value is refused only where it would mean something else: a wrong number or key simply finds
 * nothing. */
static bool take_member(const struct verb_member *member, struct slice value, struct arena *arena,
                        struct saga_input *input)
{
    void *to = at(input, member->at);
    struct slice text = json_string(value, arena);
    int64_t number = 0;

    switch (member->kind) {
    case MEMBER_TEXT:
    case MEMBER_NOTE:
    case MEMBER_HASH:
    case MEMBER_ID:
        *(struct slice *)to = text;
        return true;
    case MEMBER_JSON:
        *(struct slice *)to = json_type(value) == JSON_NULL ? SLICE_NONE : value;
        return true;
    case MEMBER_FLAG:
        (void)json_bool(value, to);
        return true;
    case MEMBER_NUMBER:
        (void)json_i64(value, &number);
        *(uint64_t *)to = (uint64_t)number;
        return true;
    case MEMBER_INSTANT:
        return !value.ptr || instant_parse(text, to);
    case MEMBER_MICROS:
        return json_i64(value, to) && *(int64_t *)to >= 0;
    case MEMBER_VERSION:
        return read_version(value, to) || !member->required;
    case MEMBER_OPKEY:
        (void)uuid_parse(text, &((struct op_key *)to)->uuid);
        return true;
    case MEMBER_ROLE:
        (void)role_parse(text, to); /* a wrong name gives no role */
        return true;
    case MEMBER_ACTION:
        return operator_action_parse(text, to);
    case MEMBER_WORDS:
        return true;
    }
    UNREACHABLE();
}

static const struct verb *verb_find(struct slice name, struct slice object)
{
    const struct verb *found = NULL;

    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (slice_is(name, verbs[i].name)) {
            found = &verbs[i];
            if (found->on != ON_OPERATION || json_type(json_member(object, "key")) == JSON_STRING) {
                break;
            }
        }
    }
    return found;
}

const struct verb *verb_read(struct slice name, struct slice object, struct arena *arena, struct saga_input *input)
{
    const struct verb *verb = verb_find(name, object);

    *input = (struct saga_input){0};
    for (size_t i = 0; verb && i < verb->member_count; i++) {
        if (!take_member(&verb->members[i], json_member(object, verb->members[i].name), arena, input)) {
            return NULL;
        }
    }
    return read_bulk(json_member(object, "bulk"), arena, &input->bulk) ? verb : NULL;
}
