/* What is kept of a receiver's answer. Bodies have at most a megabyte (response_bytes_max), and JSON in them is no
 * deeper than the check allows. */
#include "run/call/refusal.h"

#include <string.h>

#include "base/json.h"
#include "run/call/activity.h"

#define SECRET_BYTES_MIN 6 /* shorter texts are part of too many words */
#define SECRETS_MAX 16
#define DETAIL_BYTES_MAX 2048
#define HEADER_BYTES_MAX 1024 /* a larger value of a header is left out */

static const char hidden[] = "[secret]";

struct secret_values {
    struct slice items[SECRETS_MAX];
    size_t count;
};

static void find_secrets(const struct activity *activity, const struct template *settings, struct secret_values *out)
{
    struct arena *arena = activity->act->arena;

    out->count = 0;
    for (size_t i = 0; i < settings->count && out->count < SECRETS_MAX; i++) {
        if (settings->expressions[i].kind == EXPRESSION_SECRET) {
            struct slice value = json_string(
                secrets_json(&activity->engine->secrets, activity->namespace, settings->expressions[i].secret, arena),
                arena);

            if (value.len >= SECRET_BYTES_MIN) {
                out->items[out->count++] = value;
            }
        }
    }
}

static const struct slice *secret_at(const struct secret_values *secrets, struct slice text, size_t at)
{
    for (size_t i = 0; i < secrets->count; i++) {
        if (secrets->items[i].len <= text.len - at &&
            memcmp(text.ptr + at, secrets->items[i].ptr, secrets->items[i].len) == 0) {
            return &secrets->items[i];
        }
    }
    return NULL;
}

static bool holds_secret(const struct secret_values *secrets, struct slice text)
{
    for (size_t i = 0; i < secrets->count; i++) {
        if (text.len >= secrets->items[i].len &&
            memmem(text.ptr, text.len, secrets->items[i].ptr, secrets->items[i].len)) {
            return true;
        }
    }
    return false;
}

static struct slice without_secrets(const struct secret_values *secrets, struct slice text, struct arena *arena)
{
    struct buffer out;
    struct slice clean;

    if (!holds_secret(secrets, text)) {
        return text;
    }
    buffer_init(&out, 2 * text.len + sizeof(hidden)); /* a secret is at most two bytes shorter */
    for (size_t at = 0; at < text.len;) {
        const struct slice *secret = secret_at(secrets, text, at);

        if (secret) {
            buffer_put_slice(&out, slice_of(hidden));
            at += secret->len;
        } else {
            buffer_put_char(&out, text.ptr[at++]);
        }
    }
    clean = arena_slice(arena, buffer_slice(&out));
    buffer_fini(&out);
    return clean;
}

/* Writes the same value again and looks through every name and text, because an escape could hide a secret. */
static void put_clean(struct buffer *out, const struct secret_values *secrets, struct slice value, struct arena *arena)
{
    struct json_walk walk = json_walk(value);
    struct slice name, item;
    bool more = false;

    switch (json_type(value)) {
    case JSON_STRING:
        json_put_string(out, without_secrets(secrets, json_string(value, arena), arena));
        return;
    case JSON_ARRAY:
        buffer_put_char(out, '[');
        for (; json_next_element(&walk, &item); more = true) {
            buffer_put_slice(out, more ? SLICE(",") : SLICE(""));
            put_clean(out, secrets, item, arena);
        }
        buffer_put_char(out, ']');
        return;
    case JSON_OBJECT:
        buffer_put_char(out, '{');
        for (; json_next_member(&walk, &name, &item); more = true) {
            struct slice text = json_string((struct slice){name.ptr - 1, name.len + 2}, arena);

            buffer_put_slice(out, more ? SLICE(",") : SLICE(""));
            json_put_string(out, without_secrets(secrets, text, arena));
            buffer_put_char(out, ':');
            put_clean(out, secrets, item, arena);
        }
        buffer_put_char(out, '}');
        return;
    case JSON_NONE:
    case JSON_NULL:
    case JSON_BOOL:
    case JSON_NUMBER:
        if (holds_secret(secrets, value)) {
            json_put_string(out, slice_of(hidden));
        } else {
            buffer_put_slice(out, json_trim(value));
        }
        return;
    }
    UNREACHABLE();
}

/* Returns the bytes that came when there is no secret in them. */
static struct slice hide_in_json(const struct secret_values *secrets, struct slice value, struct arena *arena)
{
    struct buffer out;
    struct slice clean;

    if (!value.ptr) {
        return value;
    }
    buffer_init(&out, SIZE_MAX / 2); /* at most twice the input */
    put_clean(&out, secrets, value, arena);
    clean = memmem(buffer_c(&out), out.len, hidden, strlen(hidden)) ? arena_slice(arena, buffer_slice(&out)) : value;
    buffer_fini(&out);
    return clean;
}

void refusal_hide(struct activity *activity, const struct template *settings)
{
    struct act *act = activity->act;
    struct secret_values secrets;

    find_secrets(activity, settings, &secrets);
    if (secrets.count > 0) {
        act->outcome.detail = without_secrets(&secrets, act->outcome.detail, act->arena);
        act->outcome.result = hide_in_json(&secrets, act->outcome.result, act->arena);
        act->response = hide_in_json(&secrets, act->response, act->arena);
    }
}

static struct slice clean_json(const struct secret_values *secrets, struct slice value, struct arena *arena)
{
    struct buffer out;
    struct slice clean;

    if (secrets->count == 0) {
        return json_trim(value);
    }
    buffer_init(&out, SIZE_MAX / 2); /* at most twice the input */
    put_clean(&out, secrets, value, arena);
    clean = arena_slice(arena, buffer_slice(&out));
    buffer_fini(&out);
    return clean;
}

/* Returns the beginning of a text, cut between characters. */
static struct slice beginning_of(struct slice text, size_t bytes)
{
    if (text.len > bytes) {
        text.len = bytes;
        while (text.len > 0 && ((unsigned char)text.ptr[text.len] & 0xc0) == 0x80) {
            text.len--;
        }
    }
    return text;
}

static void write_body(struct json_writer *w, const struct activity *activity, const struct secret_values *secrets,
                       struct slice body)
{
    size_t bytes_max = activity->act->tool->record_errors;
    struct arena *arena = activity->act->arena;
    struct slice text;

    if (activity->act->binary.ptr) {
        text = without_secrets(secrets, activity->act->binary, arena);
        json_write_slice(w, "body", (struct slice){text.ptr, text.len < bytes_max ? text.len : bytes_max});
        json_write_bool(w, "not_utf8", true);
    } else {
        body = clean_json(secrets, body, arena);
        text = json_type(body) == JSON_STRING ? json_string(body, arena) : body;
        if (text.len <= bytes_max) {
            json_write_raw(w, "body", body);
            return;
        }
        json_write_slice(w, "body", beginning_of(text, bytes_max));
    }
    if (text.len > bytes_max) {
        json_write_bool(w, "cut", true);
    }
}

/* Writes the headers that the tool names, as far as they came. Only HTTP has some. */
static void write_headers(struct json_writer *w, const struct activity *activity, const struct secret_values *secrets)
{
    struct slice headers = json_member(activity->act->response, "headers"),
                 wanted = activity->act->tool->record_headers;
    struct arena *arena = activity->act->arena;
    struct json_walk walk = json_walk(wanted);
    struct slice name;
    bool some = false;

    while (wanted.ptr && json_type(headers) == JSON_OBJECT && json_next_element(&walk, &name)) {
        const char *text = arena_text(arena, json_string(name, arena));
        struct slice value = json_member(headers, text);

        if (!value.ptr || value.len > HEADER_BYTES_MAX) {
            continue;
        }
        if (!some) {
            json_object_begin(w, "headers");
            some = true;
        }
        json_write_raw(w, text, clean_json(secrets, value, arena));
    }
    if (some) {
        json_object_end(w);
    }
}

static struct slice make(const struct activity *activity, const struct secret_values *secrets)
{
    const struct act *act = activity->act;
    struct slice status = json_member(act->response, "status"), body = json_member(act->response, "body"), made;
    struct json_writer w;
    struct buffer out;

    buffer_init(&out, SIZE_MAX / 2); /* the parts are bounded */
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    if (json_type(status) == JSON_NUMBER) {
        json_write_raw(&w, "status", status);
    }
    write_headers(&w, activity, secrets);
    /* Only HTTP has a body; other answers are kept whole. */
    write_body(&w, activity, secrets, body.ptr ? body : act->response);
    if (activity->want.type == WANT_PROBE) {
        json_write_text(&w, "by", "probe");
    }
    json_object_end(&w);
    made = arena_slice(act->arena, buffer_slice(&out));
    buffer_fini(&out);
    return made;
}

void refusal_keep(struct activity *activity, const struct template *settings)
{
    struct outcome *outcome = &activity->act->outcome;
    struct secret_values secrets;

    if (outcome->kind == OUTCOME_COMPLETED) {
        return;
    }
    find_secrets(activity, settings, &secrets);
    outcome->detail = beginning_of(without_secrets(&secrets, outcome->detail, activity->act->arena), DETAIL_BYTES_MAX);
    if (activity->act->response.ptr && outcome->kind != OUTCOME_RUNNING && activity->act->tool->record_errors > 0) {
        outcome->answer = make(activity, &secrets);
    }
}
