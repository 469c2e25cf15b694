/* See sensitive.h. A view is copied from its text, so that numbers and order stay as they are. */
#include "core/saga/sensitive.h"

#include "base/canon.h"
#include "base/json.h"
#include "core/saga/machine.h"

#define VALUE_BYTES_MIN 6  /* shorter ones are masked at their places only: they stand in too much else */
#define VALUES_MAX 256     /* the values of one saga; more are masked at their places only */
#define CUT_BYTES_MIN 4    /* the bytes at least of a value that a library has cut off with "..." */
#define WORK_MAX (8 << 20) /* for one view, a tenth of a second at most; texts behind that are masked whole */
#define TEXT_BYTES_MAX ((size_t)64 << 20)
#define RESULT "/result"

struct sensitive { /* what is declared for one saga, and the values that stand there */
    struct arena arena;
    struct pointers given, made, all; /* in arguments and inputs; in results and outputs; both */
    struct slice *given_items, *made_items;
    struct slice values[VALUES_MAX];
    size_t value_count;
    size_t work; /* bytes that were compared: whoever chooses values and texts chooses how alike they are */
};

static const struct pointers nothing;

/* --- what is declared --- */

static bool is_declared(const struct tool *tool)
{
    return tool && tool->sensitive.count > 0;
}

static bool step_declares(const struct step_definition *step)
{
    return is_declared(step->tool) || (step->compensate.is_set && is_declared(step->compensate.tool)) ||
           (step->child && definition_has_sensitive(step->child)) ||
           (step->written_in && step->written_in->sensitive.count > 0);
}

bool definition_has_sensitive(const struct definition *definition)
{
    bool found = definition->sensitive.count > 0;

    for (uint32_t i = 0; i < definition->step_count && !found; i++) {
        found = step_declares(&definition->steps[i]);
    }
    return found;
}

bool saga_has_sensitive(const struct saga *saga)
{
    return definition_has_sensitive(saga->definition);
}

static bool is_in(const struct slice *items, size_t count, struct slice item)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(items[i], item)) {
            return true;
        }
    }
    return false;
}

static bool is_of_result(struct slice pointer)
{
    return slice_starts_with(pointer, RESULT) &&
           (pointer.len == sizeof(RESULT) - 1 || pointer.ptr[sizeof(RESULT) - 1] == '/');
}

static void add_pointer(struct slice *items, size_t *count, struct slice pointer)
{
    if (!is_in(items, *count, pointer)) {
        items[(*count)++] = pointer;
    }
}

/* Counts with `out` NULL. The rest of a pointer into a result is empty where it names the whole result. */
static size_t declare(struct sensitive *s, const struct pointers *pointers, bool writes)
{
    for (size_t i = 0; writes && i < pointers->count; i++) {
        struct slice pointer = pointers->items[i];

        if (is_of_result(pointer)) {
            pointer = (struct slice){pointer.ptr + sizeof(RESULT) - 1, pointer.len - (sizeof(RESULT) - 1)};
            add_pointer(s->made_items, &s->made.count, pointer);
        } else {
            add_pointer(s->given_items, &s->given.count, pointer);
        }
    }
    return pointers->count;
}

static size_t declare_all(struct sensitive *s, const struct definition *definition, bool writes)
{
    size_t count = declare(s, &definition->sensitive, writes);

    for (uint32_t i = 0; i < definition->step_count; i++) {
        const struct step_definition *step = &definition->steps[i];

        if (!step_declares(step)) {
            continue;
        }
        count += is_declared(step->tool) ? declare(s, &step->tool->sensitive, writes) : 0;
        count += step->compensate.is_set && is_declared(step->compensate.tool)
                     ? declare(s, &step->compensate.tool->sensitive, writes)
                     : 0;
        count += step->written_in ? declare(s, &step->written_in->sensitive, writes) : 0;
        count += step->child ? declare_all(s, step->child, writes) : 0;
    }
    return count;
}

static void sensitive_init(struct sensitive *s, const struct definition *definition)
{
    size_t count;

    *s = (struct sensitive){0};
    arena_init(&s->arena, 4096);
    count = declare_all(s, definition, false);
    s->given_items = arena_array(&s->arena, count + 1, sizeof(*s->given_items));
    s->made_items = arena_array(&s->arena, count + 1, sizeof(*s->made_items));
    (void)declare_all(s, definition, true); /* counted above */
    s->given.items = s->given_items;
    s->made.items = s->made_items;

    struct slice *all = arena_array(&s->arena, 2 * count + 1, sizeof(*all));

    for (size_t i = 0; i < s->given.count; i++) {
        add_pointer(all, &s->all.count, s->given.items[i]);
    }
    for (size_t i = 0; i < s->made.count; i++) {
        add_pointer(all, &s->all.count, s->made.items[i]);
    }
    s->all.items = all;
}

static void sensitive_fini(struct sensitive *s)
{
    arena_fini(&s->arena);
}

/* --- places --- */

static bool names_whole(const struct pointers *pointers)
{
    return is_in(pointers->items, pointers->count, SLICE(""));
}

/* What is left of the pointers behind a member or an element; `place` is its name as a pointer. */
static struct pointers pointers_into(const struct pointers *pointers, struct slice place, struct arena *arena)
{
    struct slice *items = arena_array(arena, pointers->count + 1, sizeof(*items));
    size_t count = 0;

    for (size_t i = 0; i < pointers->count; i++) {
        struct slice first = pointers->items[i];
        const char *end = first.len > 1 ? memchr(first.ptr + 1, '/', first.len - 1) : NULL;

        if (end) {
            first.len = (size_t)(end - first.ptr);
        }
        if (first.len > 0 && canon_pointer_matches(first, place)) {
            items[count++] = (struct slice){first.ptr + first.len, pointers->items[i].len - first.len};
        }
    }
    return (struct pointers){items, count};
}

static struct pointers into_member(const struct pointers *pointers, struct slice name_raw, struct arena *arena)
{
    if (pointers->count == 0) {
        return nothing;
    }
    struct slice name = json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, arena);

    return pointers_into(pointers, json_pointer_join(arena, SLICE(""), name), arena);
}

static struct pointers into_element(const struct pointers *pointers, size_t index, struct arena *arena)
{
    return pointers->count == 0 ? nothing : pointers_into(pointers, arena_printf(arena, "/%zu", index), arena);
}

/* --- values --- */

static void collect_whole(struct sensitive *s, struct slice value)
{
    struct json_walk walk = json_walk(value);
    struct slice name, item, text = SLICE_NONE;

    switch (json_type(value)) {
    case JSON_OBJECT:
        while (json_next_member(&walk, &name, &item)) {
            collect_whole(s, item);
        }
        return;
    case JSON_ARRAY:
        while (json_next_element(&walk, &item)) {
            collect_whole(s, item);
        }
        return;
    case JSON_STRING:
        text = json_string(value, &s->arena);
        break;
    case JSON_NUMBER:
        text = json_trim(value);
        break;
    case JSON_NONE:
    case JSON_NULL:
    case JSON_BOOL:
        return;
    }
    if (text.len >= VALUE_BYTES_MIN && s->value_count < VALUES_MAX && !is_in(s->values, s->value_count, text)) {
        s->values[s->value_count++] = text;
    }
}

static void collect(struct sensitive *s, struct slice value, const struct pointers *pointers)
{
    struct json_walk walk = json_walk(value);
    struct slice name, item;
    enum json_type type = json_type(value);

    if (pointers->count == 0 || !value.ptr) {
        return;
    }
    if (names_whole(pointers)) {
        collect_whole(s, value);
    } else if (type == JSON_OBJECT) {
        while (json_next_member(&walk, &name, &item)) {
            struct pointers inner = into_member(pointers, name, &s->arena);

            collect(s, item, &inner);
        }
    } else if (type == JSON_ARRAY) {
        for (size_t i = 0; json_next_element(&walk, &item); i++) {
            struct pointers inner = into_element(pointers, i, &s->arena);

            collect(s, item, &inner);
        }
    }
}

static void collect_operation(struct sensitive *s, const struct operation *op)
{
    collect(s, op->args, &s->given);
    collect(s, op->result, &s->made);
}

static void collect_of_saga(struct sensitive *s, const struct saga *saga)
{
    collect(s, saga->input, &s->given);
    collect(s, saga->output, &s->made);
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        collect_operation(s, &saga->steps[i].forward);
        collect_operation(s, step_undo(&saga->steps[i]));
    }
}

/* --- texts --- */

static bool begins_with(struct slice text, size_t at, struct slice value)
{
    return text.len - at >= value.len && memcmp(text.ptr + at, value.ptr, value.len) == 0;
}

/* How many bytes from `at` on are this value, or the beginning of it that somebody has cut off, as jq does in its
 * messages; 0: none. */
static size_t length_of(struct sensitive *s, struct slice text, size_t at, struct slice value)
{
    size_t len = 0;

    while (len < value.len && at + len < text.len && text.ptr[at + len] == value.ptr[len]) {
        len++;
    }
    s->work += len;
    return len == value.len || (len >= CUT_BYTES_MIN && begins_with(text, at + len, SLICE("..."))) ? len : 0;
}

/* How many bytes from `at` on are a sensitive value, or the beginning of one; 0: none. */
static size_t value_length(struct sensitive *s, struct slice text, size_t at)
{
    size_t longest = 0;

    s->work += 1 + s->value_count / 16; /* most differ in their first byte */
    for (size_t i = 0; i < s->value_count && s->work <= WORK_MAX; i++) {
        size_t len = length_of(s, text, at, s->values[i]);

        longest = len > longest ? len : longest;
    }
    return longest;
}

/* The text without the values; the text itself where there is none in it. A mask where that takes too long. */
static struct slice text_without(struct sensitive *s, struct slice text, struct arena *arena)
{
    struct slice clean = text;
    struct buffer out;
    size_t copied = 0;

    if (!text.ptr || s->value_count == 0) {
        return text;
    }
    buffer_init(&out, TEXT_BYTES_MAX);
    for (size_t at = 0; at < text.len && s->work <= WORK_MAX;) {
        size_t len = value_length(s, text, at);

        if (len == 0) {
            at++;
            continue;
        }
        buffer_put(&out, text.ptr + copied, at - copied);
        buffer_put_text(&out, SENSITIVE_MASK);
        at += len;
        copied = at;
    }
    if (s->work > WORK_MAX) {
        clean = SLICE(SENSITIVE_MASK); /* nobody has looked at all of it */
    } else if (copied > 0) {
        buffer_put(&out, text.ptr + copied, text.len - copied);
        clean = out.overflow ? SLICE(SENSITIVE_MASK) : arena_slice(arena, buffer_slice(&out));
    }
    buffer_fini(&out);
    return clean;
}

/* --- views --- */

struct masking {
    struct sensitive *s;
    struct buffer *out;
    struct arena arena; /* the arena of this view */
    const char *copied; /* up to here the view stands in `out` */
};

static void replace(struct masking *m, struct slice old, struct slice new_json)
{
    buffer_put(m->out, m->copied, (size_t)(old.ptr - m->copied));
    buffer_put_slice(m->out, new_json);
    m->copied = old.ptr + old.len;
}

static void mask_whole(struct masking *m, struct slice value)
{
    value = json_trim(value);
    if (json_type(value) != JSON_NULL) {
        replace(m, value, SLICE(SENSITIVE_MASK_JSON));
    }
}

static void mask_string(struct masking *m, struct slice value)
{
    struct slice text = json_string(value, &m->arena), clean = text_without(m->s, text, &m->arena);

    if (clean.ptr == text.ptr) {
        return;
    }
    value = json_trim(value);
    buffer_put(m->out, m->copied, (size_t)(value.ptr - m->copied));
    json_put_string(m->out, clean);
    m->copied = value.ptr + value.len;
}

static void mask_number(struct masking *m, struct slice value)
{
    struct slice text = json_trim(value);

    if (text_without(m->s, text, &m->arena).ptr != text.ptr) {
        mask_whole(m, value);
    }
}

/* What our views and records call payloads. */
static const struct pointers *payload_of(const struct sensitive *s, struct slice name)
{
    static const char *const given[] = {"args", "input"}, *const made[] = {"result", "output"},
                             *const both[] = {"show", "undo_args"};

    for (size_t i = 0; i < 2; i++) {
        if (slice_is(name, given[i])) {
            return &s->given;
        }
        if (slice_is(name, made[i])) {
            return &s->made;
        }
        if (slice_is(name, both[i])) {
            return &s->all;
        }
    }
    return NULL;
}

/* Members of our own whose values are ours, or names of a definition: a sensitive value that happens to be the same
 * word does not change them. */
static bool is_our_word(struct slice name)
{
    static const char *const words[] = {"id",   "key",         "seq",   "at",   "type",  "status", "state",
                                        "kind", "took_effect", "saga",  "step", "tool",  "name",   "class",
                                        "code", "operation",   "group", "hash", "error", "reason"};

    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (slice_is(name, words[i])) {
            return true;
        }
    }
    return false;
}

static void mask_payload(struct masking *m, struct slice value, const struct pointers *pointers);

static void mask_payload_member(struct masking *m, struct slice name, struct slice value,
                                const struct pointers *pointers)
{
    struct pointers inner = into_member(pointers, name, &m->arena);

    mask_string(m, (struct slice){name.ptr - 1, name.len + 2}); /* a card's number may be the name of a member */
    mask_payload(m, value, &inner);
}

static void mask_payload(struct masking *m, struct slice value, const struct pointers *pointers)
{
    struct json_walk walk = json_walk(value);
    struct slice name, item;

    if (names_whole(pointers)) {
        mask_whole(m, value);
        return;
    }
    switch (json_type(value)) {
    case JSON_OBJECT:
        while (json_next_member(&walk, &name, &item)) {
            mask_payload_member(m, name, item, pointers);
        }
        return;
    case JSON_ARRAY:
        for (size_t i = 0; json_next_element(&walk, &item); i++) {
            struct pointers inner = into_element(pointers, i, &m->arena);

            mask_payload(m, item, &inner);
        }
        return;
    case JSON_STRING:
        mask_string(m, value);
        return;
    case JSON_NUMBER:
        mask_number(m, value);
        return;
    case JSON_NONE:
    case JSON_NULL:
    case JSON_BOOL:
        return;
    }
    UNREACHABLE();
}

static void mask_view(struct masking *m, struct slice value);

static void mask_view_member(struct masking *m, struct slice name, struct slice value)
{
    const struct pointers *payload = payload_of(m->s, name);
    enum json_type type = json_type(value);

    if (payload) {
        mask_payload(m, value, payload);
    } else if ((slice_is(name, "body") || slice_is(name, "headers")) && m->s->made.count > 0) {
        mask_whole(m, value); /* the value of a receiver that refused, or said what nobody could read */
    } else if (slice_is(name, "fingerprint") && m->s->all.count > 0) {
        mask_whole(m, value); /* whoever knows all of the payload but one member could try that one out */
    } else if (type == JSON_OBJECT || type == JSON_ARRAY || !is_our_word(name)) {
        mask_view(m, value);
    }
}

static void mask_view(struct masking *m, struct slice value)
{
    struct json_walk walk = json_walk(value);
    struct slice name, item;

    switch (json_type(value)) {
    case JSON_OBJECT:
        while (json_next_member(&walk, &name, &item)) {
            mask_view_member(m, name, item);
        }
        return;
    case JSON_ARRAY:
        while (json_next_element(&walk, &item)) {
            mask_view(m, item);
        }
        return;
    case JSON_STRING:
        mask_string(m, value);
        return;
    case JSON_NUMBER:
    case JSON_NONE:
    case JSON_NULL:
    case JSON_BOOL:
        return; /* a number beside the payloads is ours: a count, a price, a time */
    }
    UNREACHABLE();
}

static void mask(struct sensitive *s, struct slice view, struct buffer *out)
{
    struct masking m = {.s = s, .out = out, .copied = view.ptr};

    arena_init(&m.arena, 4096);
    mask_view(&m, view);
    buffer_put(out, m.copied, (size_t)(view.ptr + view.len - m.copied));
    arena_fini(&m.arena);
}

void saga_mask(const struct saga *saga, struct slice view, struct buffer *out)
{
    struct sensitive s;

    sensitive_init(&s, saga->definition);
    collect_of_saga(&s, saga);
    mask(&s, view, out);
    sensitive_fini(&s);
}

void saga_mask_in(const struct saga *saga, struct buffer *out, size_t from)
{
    struct arena scratch;

    if (out->overflow || !saga_has_sensitive(saga)) {
        return;
    }
    arena_init(&scratch, 4096);
    struct slice view = arena_slice(&scratch, (struct slice){out->ptr + from, out->len - from});

    out->len = from;
    saga_mask(saga, view, out);
    arena_fini(&scratch);
}

/* --- sentences --- */

/* Did the receiver have a part in the sentence? The answer itself may be left out of the record. */
static bool is_of_receiver(const struct saga *saga, const struct record *record)
{
    const struct tool *tool =
        record->step < saga->definition->step_count ? saga->definition->steps[record->step].tool : NULL;

    return record->answer.ptr || (tool && (tool->record_errors == 0 || template_is_set(&tool->error)));
}

static bool has_sentence(const struct record *record)
{
    return record->detail.len > 0 || record->undo_error.len > 0 || record->result_error.len > 0 ||
           record->cost_unknown.len > 0;
}

void saga_mask_sentences(const struct saga *saga, struct record *record, struct arena *arena)
{
    static const char withheld[] = "what the receiver said is not kept here: its result has sensitive members";
    struct sensitive s;

    if (!has_sentence(record) || record->type == RECORD_SAGA_STARTED || !saga_has_sensitive(saga)) {
        return;
    }
    sensitive_init(&s, saga->definition);
    collect_of_saga(&s, saga);
    collect(&s, record->args, &s.given);
    collect(&s, record->result, &s.made);
    /* Nobody can tell by its place which part of an answer that did not become a result is the sensitive one. */
    if (s.made.count > 0 && record->detail.len > 0 && is_of_receiver(saga, record)) {
        record->detail = slice_of(withheld);
    }
    if (s.made.count > 0 && record->result_error.len > 0) {
        record->result_error = slice_of(withheld);
    }
    if (s.made.count > 0 && record->cost_unknown.len > 0) {
        record->cost_unknown = slice_of(withheld);
    }
    record->detail = text_without(&s, record->detail, arena);
    record->undo_error = text_without(&s, record->undo_error, arena);
    record->result_error = text_without(&s, record->result_error, arena);
    record->cost_unknown = text_without(&s, record->cost_unknown, arena);
    sensitive_fini(&s);
}
