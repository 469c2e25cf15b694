/* Follows plain paths and puts values into templates. The bytes of payloads stay the same. */
#include <string.h>

#include "base/json.h"
#include "core/language/expression.h"
#include "core/language/expression_scan.h"

#define RENDERED_BYTES_MAX (4u << 20)
#define RENDERED_DEPTH_MAX 72 /* inputs have at most 64 levels, and a record may hold 80 */
#define ON_STACK_MAX 16

static const struct slice json_null = {"null", 4};

/* --- texts in an arena whose length is known beforehand --- */

struct piece {
    char *ptr;
    size_t len, capacity;
};

static struct piece piece_new(struct arena *arena, size_t capacity)
{
    return (struct piece){arena_alloc(arena, capacity + 1), 0, capacity};
}

static void piece_put(struct piece *piece, struct slice text)
{
    CHECK(text.len <= piece->capacity - piece->len);
    if (text.len > 0) {
        memcpy(piece->ptr + piece->len, text.ptr, text.len);
    }
    piece->len += text.len;
}

static void piece_put_string(struct piece *piece, struct slice text)
{
    static const char hex[] = "0123456789abcdef";

    piece_put(piece, SLICE("\""));
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.ptr[i];

        if (byte == '"' || byte == '\\') {
            piece_put(piece, (struct slice){(char[]){'\\', (char)byte}, 2});
        } else if (byte < 0x20) {
            piece_put(piece, (struct slice){(char[]){'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]}, 6});
        } else {
            piece_put(piece, (struct slice){text.ptr + i, 1});
        }
    }
    piece_put(piece, SLICE("\""));
}

static struct slice piece_slice(const struct piece *piece)
{
    return (struct slice){piece->ptr, piece->len};
}

static size_t string_bytes_max(struct slice text)
{
    return 6 * text.len + 2;
}

static struct slice string_value(struct slice text, struct arena *arena)
{
    if (!text.ptr) {
        return json_null;
    }
    struct piece piece = piece_new(arena, string_bytes_max(text));

    piece_put_string(&piece, text);
    return piece_slice(&piece);
}

/* --- the context as JSON --- */

static struct slice or_null(struct slice json)
{
    return json.ptr ? json_trim(json) : json_null;
}

static size_t step_bytes_max(const struct expression_step *step)
{
    return string_bytes_max(step->id) + string_bytes_max(step->status) + or_null(step->result).len + step->error.len +
           48;
}

static void put_step(struct piece *piece, const struct expression_step *step)
{
    piece_put(piece, SLICE("{\"result\":"));
    piece_put(piece, or_null(step->result));
    piece_put(piece, SLICE(",\"status\":"));
    if (step->status.ptr) {
        piece_put_string(piece, step->status);
    } else {
        piece_put(piece, json_null);
    }
    if (step->error.ptr) { /* a missing member reads as null */
        piece_put(piece, SLICE(",\"error\":"));
        piece_put(piece, step->error);
    }
    piece_put(piece, SLICE("}"));
}

static size_t steps_bytes_max(const struct expression_context *context)
{
    size_t bytes = 2;

    for (size_t i = 0; i < context->step_count; i++) {
        bytes += step_bytes_max(&context->steps[i]) + 2;
    }
    return bytes;
}

static void put_steps(struct piece *piece, const struct expression_context *context)
{
    piece_put(piece, SLICE("{"));
    for (size_t i = 0; i < context->step_count; i++) {
        if (i > 0) {
            piece_put(piece, SLICE(","));
        }
        piece_put_string(piece, context->steps[i].id);
        piece_put(piece, SLICE(":"));
        put_step(piece, &context->steps[i]);
    }
    piece_put(piece, SLICE("}"));
}

static struct slice steps_value(const struct expression_context *context, struct arena *arena)
{
    struct piece piece = piece_new(arena, steps_bytes_max(context));

    put_steps(&piece, context);
    return piece_slice(&piece);
}

static struct slice saga_value(const struct expression_context *context, struct arena *arena)
{
    struct piece piece =
        piece_new(arena, string_bytes_max(context->saga_id) + string_bytes_max(context->saga_name) + 32);

    piece_put(&piece, SLICE("{\"id\":"));
    piece_put(&piece, string_value(context->saga_id, arena));
    piece_put(&piece, SLICE(",\"name\":"));
    piece_put(&piece, string_value(context->saga_name, arena));
    piece_put(&piece, SLICE("}"));
    return piece_slice(&piece);
}

static bool has_saga(const struct expression_context *context)
{
    return context->saga_id.ptr || context->saga_name.ptr;
}

struct slice expression_context_json(const struct expression_context *context, struct arena *arena)
{
    const struct {
        struct slice name, value;
    } members[] = {
        {SLICE("\"input\":"), context->input},
        {SLICE("\"steps\":"), context->steps || has_saga(context) ? steps_value(context, arena) : SLICE_NONE},
        {SLICE("\"saga\":"), has_saga(context) ? saga_value(context, arena) : SLICE_NONE},
        {SLICE("\"args\":"), context->args},
        {SLICE("\"key\":"), context->key.ptr ? string_value(context->key, arena) : SLICE_NONE},
        {SLICE("\"attempt\":"), context->attempt > 0 ? arena_printf(arena, "%d", context->attempt) : SLICE_NONE},
        {SLICE("\"result\":"), context->result},
        {SLICE("\"response\":"), context->response},
        {SLICE("\"item\":"), context->item},
    };
    size_t bytes = 2;

    for (size_t i = 0; i < COUNT_OF(members); i++) {
        bytes += members[i].name.len + members[i].value.len + 1;
    }
    struct piece piece = piece_new(arena, bytes);

    piece_put(&piece, SLICE("{"));
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        if (members[i].value.ptr) {
            if (piece.len > 1) {
                piece_put(&piece, SLICE(","));
            }
            piece_put(&piece, members[i].name);
            piece_put(&piece, json_trim(members[i].value));
        }
    }
    piece_put(&piece, SLICE("}"));
    return piece_slice(&piece);
}

/* --- plain paths --- */

static enum json_type member_of(struct slice *value, struct slice name)
{
    enum json_type type = json_type(*value);

    if (type == JSON_OBJECT) {
        *value = or_null(json_member(*value, name.ptr));
        return JSON_NONE;
    }
    return type == JSON_NULL ? JSON_NONE : type;
}

static enum json_type element_of(struct slice *value, int64_t index)
{
    enum json_type type = json_type(*value);

    if (type == JSON_ARRAY) {
        int64_t at = index < 0 ? index + (int64_t)json_count(*value) : index;

        *value = at < 0 ? json_null : or_null(json_element(*value, (size_t)at));
        return JSON_NONE;
    }
    return type == JSON_NULL ? JSON_NONE : type;
}

static bool cannot_index(const struct expression *e, enum json_type type, const struct expression_part *part,
                         struct err *err)
{
    (void)err_set(err, ERR_INVALID, "`%.*s` cannot be followed", SLICE_ARG(e->source));
    if (part->member.ptr) {
        err_detail(err, "cannot index %s with \"%.*s\"", json_type_name(type), SLICE_ARG(part->member));
    } else {
        err_detail(err, "cannot index %s with a number", json_type_name(type));
    }
    return false;
}

/* Returns the value of the first parts of a path, so that all of .steps is not written down to read one step. */
static struct slice begin_path(const struct expression *e, const struct expression_context *context,
                               struct arena *arena, size_t *next)
{
    struct slice root = e->parts[0].member;

    *next = 1;
    if (slice_is(root, "input")) {
        return or_null(context->input);
    }
    if (slice_is(root, "args")) {
        return or_null(context->args);
    }
    if (slice_is(root, "result")) {
        return or_null(context->result);
    }
    if (slice_is(root, "response")) {
        return or_null(context->response);
    }
    if (slice_is(root, "item")) {
        return or_null(context->item);
    }
    if (slice_is(root, "key")) {
        return string_value(context->key, arena);
    }
    if (slice_is(root, "attempt")) {
        return context->attempt > 0 ? arena_printf(arena, "%d", context->attempt) : json_null;
    }
    if (slice_is(root, "saga")) {
        return has_saga(context) ? saga_value(context, arena) : json_null;
    }
    if (!slice_is(root, "steps")) {
        return json_null;
    }
    if (e->part_count == 1 || !e->parts[1].member.ptr) {
        return steps_value(context, arena);
    }
    *next = 2;
    for (size_t i = 0; i < context->step_count; i++) {
        const struct expression_step *step = &context->steps[i];

        if (!slice_equal(step->id, e->parts[1].member)) {
            continue;
        }
        if (e->part_count > 2 && e->parts[2].member.ptr && slice_is(e->parts[2].member, "result")) {
            *next = 3;
            return or_null(step->result);
        }
        struct piece piece = piece_new(arena, step_bytes_max(step));

        put_step(&piece, step);
        return piece_slice(&piece);
    }
    return json_null;
}

bool expression_follow(const struct expression *expression, const struct expression_context *context,
                       struct arena *arena, struct slice *value, struct err *err)
{
    CHECK(expression->kind == EXPRESSION_PLAIN);
    if (expression->part_count == 0) {
        *value = expression_context_json(context, arena);
        return true;
    }
    if (!expression->parts[0].member.ptr) {
        return cannot_index(expression, JSON_OBJECT, &expression->parts[0], err);
    }
    size_t i;
    struct slice at = begin_path(expression, context, arena, &i);

    for (; i < expression->part_count; i++) {
        const struct expression_part *part = &expression->parts[i];
        enum json_type bad = part->member.ptr ? member_of(&at, part->member) : element_of(&at, part->index);

        if (bad != JSON_NONE) {
            return cannot_index(expression, bad, part, err);
        }
    }
    *value = at;
    return true;
}

bool expression_true(struct slice value)
{
    struct slice text = json_trim(value);

    return !slice_is(text, "false") && !slice_is(text, "null");
}

/* --- rendering --- */

/* Returns the text of a value inside a string, with its escapes: the characters of a string, or the compact JSON of any
 * other value. */
static struct slice inside_text(struct slice value, struct arena *arena)
{
    if (json_type(value) == JSON_STRING) {
        return (struct slice){value.ptr + 1, value.len - 2};
    }
    struct piece piece = piece_new(arena, 2 * value.len);
    bool in_string = false;

    for (size_t i = 0; i < value.len; i++) {
        char c = value.ptr[i];

        if (in_string && c == '\\') {
            piece_put(&piece, SLICE("\\\\"));
            c = value.ptr[++i]; /* skips the byte behind a backslash, which never ends the string */
            if (c == '"' || c == '\\') {
                piece_put(&piece, SLICE("\\"));
            }
            piece_put(&piece, (struct slice){&c, 1});
            continue;
        }
        if (c == '"') {
            in_string = !in_string;
            piece_put(&piece, SLICE("\\\""));
        } else if (in_string || !strchr(" \t\r\n", c)) {
            piece_put(&piece, (struct slice){&c, 1});
        }
    }
    return piece_slice(&piece);
}

/* Returns the text of a value inside a URL, encoded so that no character of it can be read as a part of the URL. */
static struct slice url_text(struct slice value, struct arena *arena)
{
    static const char hex[] = "0123456789ABCDEF";
    struct slice inside = inside_text(value, arena);
    struct slice text = json_string(arena_printf(arena, "\"%.*s\"", SLICE_ARG(inside)), arena);
    struct piece piece = piece_new(arena, 3 * text.len);

    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            (c != 0 && strchr("-._~", c))) {
            piece_put(&piece, (struct slice){text.ptr + i, 1});
        } else {
            piece_put(&piece, (struct slice){(char[]){'%', hex[c >> 4], hex[c & 15]}, 3});
        }
    }
    return piece_slice(&piece);
}

/* A template and its values may each be as deep as allowed, but the result must still be readable. */
static bool is_too_deep(struct slice json)
{
    unsigned depth = 0;

    for (const char *at = json.ptr, *end = at + json.len; at < end; at++) {
        if (*at == '"') {
            for (at++; at < end && *at != '"'; at++) {
                at += *at == '\\';
            }
        } else if (*at == '[' || *at == '{') {
            if (++depth > RENDERED_DEPTH_MAX) {
                return true;
            }
        } else if (*at == ']' || *at == '}') {
            depth--;
        }
    }
    return false;
}

struct loss {
    const struct expression_context *context;
    const struct expression_step *step; /* the first lost step that was found */
};

static void on_loss(void *user, const struct step_use *use)
{
    struct loss *loss = user;

    for (size_t i = 0; i < loss->context->step_count && !loss->step && !use->other_only; i++) {
        const struct expression_step *step = &loss->context->steps[i];

        loss->step = step->lost.ptr && slice_equal(step->id, use->step_id) ? step : NULL;
    }
}

/* Refuses to use a lost result. Null in its place would be untrue: there was a result. */
static enum err_code check_losses(const struct template *template, const struct expression_context *context,
                                  struct err *err)
{
    struct loss loss = {.context = context};
    bool any = false;

    for (size_t i = 0; i < context->step_count; i++) {
        any |= context->steps[i].lost.ptr != NULL;
    }
    if (any) {
        template_each_use(template, on_loss, &loss);
    }
    if (!loss.step) {
        return ERR_OK;
    }
    return err_set(err, ERR_INVALID, "the result of step %.*s could not be made: %.*s", SLICE_ARG(loss.step->id),
                   SLICE_ARG(loss.step->lost));
}

enum err_code template_render(const struct template *template, const struct expression_context *context,
                              const struct slice *values, struct arena *arena, struct slice *out, struct err *err)
{
    CHECK(template_is_set(template));
    if (!template->spots) {
        *out = arena_slice(arena, template->json);
        return ERR_OK;
    }
    if (check_losses(template, context, err) != ERR_OK) {
        return ERR_INVALID;
    }
    struct slice few[ON_STACK_MAX];
    struct slice *texts = template->count <= ON_STACK_MAX ? few : arena_array(arena, template->count, sizeof(*texts));
    size_t bytes = template->spots[template->count].before.len;

    for (size_t i = 0; i < template->count; i++) {
        const struct expression *e = &template->expressions[i];
        struct slice value = SLICE_NONE;

        switch (e->kind) {
        case EXPRESSION_PLAIN:
            if (!expression_follow(e, context, arena, &value, err)) {
                (void)err_context(err, "at %.*s", SLICE_ARG(e->pointer)); /* the code is set already */
                return ERR_INVALID;
            }
            break;
        case EXPRESSION_PROGRAM:
        case EXPRESSION_SECRET:
            CHECK(values && values[i].ptr); /* the caller has evaluated all programs first */
            value = json_trim(values[i]);
            break;
        }
        texts[i] = template->spots[i].of_url   ? url_text(value, arena)
                   : template->spots[i].inside ? inside_text(value, arena)
                                               : value;
        bytes += template->spots[i].before.len + texts[i].len;
    }
    if (bytes > RENDERED_BYTES_MAX) {
        return err_set(err, ERR_INVALID, "the rendered value has %zu bytes, more than the %u that are allowed", bytes,
                       RENDERED_BYTES_MAX);
    }
    struct piece piece = piece_new(arena, bytes);

    for (size_t i = 0; i < template->count; i++) {
        piece_put(&piece, template->spots[i].before);
        piece_put(&piece, texts[i]);
    }
    piece_put(&piece, template->spots[template->count].before);
    if (is_too_deep(piece_slice(&piece))) {
        return err_set(err, ERR_INVALID,
                       "the rendered value has arrays and objects in each other more than %d levels deep",
                       RENDERED_DEPTH_MAX);
    }
    *out = piece_slice(&piece);
    return ERR_OK;
}
