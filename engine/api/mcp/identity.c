/* Each of the five has a row with the places that may say it. */
#include "api/mcp/identity.h"

#include "api/grant.h"
#include "base/digest.h"
#include "base/json.h"
#include "base/utf8.h"
#include "core/saga/saga.h"

#include <string.h>

#define TEXT_BYTES_MAX 256
#define TURN_BYTES_MAX 128
#define MARK_BYTES 16
#define KEYS_MAX 32
#define SESSION_HEADER "mcp-session-id"
#define SESSION_BYTES_MAX 128
#define SHOWN_BYTES_MAX 64 /* what a sentence shows of a value */

enum identity_field { FIELD_RUN, FIELD_STEP, FIELD_SCOPE, FIELD_TURN, FIELD_EMISSION, FIELD_COUNT };

static const struct row {
    const char *what, *meta, *header, *argument;
} rows[FIELD_COUNT] = {
    [FIELD_RUN] = {"run", "sagad/run", "Saga-Run", NULL},
    [FIELD_STEP] = {"step", "sagad/step", "Saga-Step", "step"},
    [FIELD_SCOPE] = {"scope", "sagad/scope", "Saga-Scope", "scope"},
    [FIELD_TURN] = {"turn", "sagad/turn", "Saga-Turn", NULL},
    [FIELD_EMISSION] = {"emission", "sagad/emission", "Idempotency-Key", NULL},
};

struct told { /* a value, and the name of the place that said it */
    struct slice text;
    const char *kind, *name;
};

static struct slice shown(struct slice text)
{
    return (struct slice){text.ptr, text.len < SHOWN_BYTES_MAX ? text.len : SHOWN_BYTES_MAX};
}

static bool refuse(struct err *err, const char *message, const char *hint)
{
    (void)err_set(err, ERR_INVALID, "%s", message);
    err_hint(err, "%s", hint);
    return false;
}

/* --- one value --- */

static bool is_good(enum identity_field field, struct slice text)
{
    switch (field) {
    case FIELD_RUN:
    case FIELD_EMISSION:
        return text_is_plain(text, TEXT_BYTES_MAX);
    case FIELD_STEP:
        return call_step_is_good(text) && !slice_starts_with(text, "~");
    case FIELD_SCOPE:
        return text.len <= TEXT_BYTES_MAX && text_is_utf8(text);
    case FIELD_TURN:
        return text_is_plain(text, TURN_BYTES_MAX);
    case FIELD_COUNT:
        break;
    }
    UNREACHABLE();
}

/* A text, or a whole number as it is written: 7 and "7" are the same one. */
static struct slice value_text(struct slice value, struct arena *arena)
{
    int64_t number = 0;

    return json_i64(value, &number) ? arena_printf(arena, "%lld", (long long)number) : json_string(value, arena);
}

/* What this place says is held against what stronger places have said. */
static bool take(enum identity_field field, struct told said, struct told *now, struct err *err)
{
    if (!said.text.ptr || !is_good(field, said.text)) {
        (void)refuse(err, "this call names something that cannot be right", "schema/mcp.md says what each may be");
        err_detail(err, "the %s, in %s \"%s\"", rows[field].what, said.kind, said.name);
        return false;
    }
    if (!now->text.ptr) {
        *now = said;
        return true;
    }
    if (slice_equal(now->text, said.text)) {
        return true;
    }
    (void)refuse(err, "two places say different things of this call", "send one of them, or the same in both");
    err_detail(err, "%s \"%s\" says that the %s is \"%.*s\", and %s \"%s\" says that it is \"%.*s\"", now->kind,
               now->name, rows[field].what, SLICE_ARG(shown(now->text)), said.kind, said.name,
               SLICE_ARG(shown(said.text)));
    return false;
}

static struct slice from_grant(const struct grant *grant, enum identity_field field)
{
    switch (field) {
    case FIELD_RUN:
        return grant->run;
    case FIELD_SCOPE:
        return grant->scope;
    case FIELD_TURN:
        return grant->turn;
    case FIELD_STEP:
    case FIELD_EMISSION:
        return SLICE_NONE;
    case FIELD_COUNT:
        break;
    }
    UNREACHABLE();
}

static bool read_field(const struct identity_sources *sources, enum identity_field field, struct arena *arena,
                       struct told *out, struct err *err)
{
    const struct row *row = &rows[field];
    struct slice meta = json_member(sources->meta, row->meta),
                 header = http_exchange_header(sources->headers, row->header);
    struct slice granted = sources->grant ? from_grant(sources->grant, field) : SLICE_NONE;
    bool takes = field == FIELD_STEP ? sources->takes_step : field == FIELD_SCOPE && sources->takes_scope;
    struct slice argument = takes ? json_member(sources->arguments, row->argument) : SLICE_NONE;

    if (http_exchange_header_count(sources->headers, row->header) > 1) {
        (void)refuse(err, "a header stands there twice", "send it once");
        err_detail(err, "%s", row->header);
        return false;
    }
    return (!granted.ptr || take(field, (struct told){granted, "the grant", sources->grant->id_text}, out, err)) &&
           (!meta.ptr || take(field, (struct told){value_text(meta, arena), "_meta", row->meta}, out, err)) &&
           (!header.ptr || take(field, (struct told){header, "the header", row->header}, out, err)) &&
           (!argument.ptr ||
            take(field, (struct told){json_string(argument, arena), "the argument", row->argument}, out, err));
}

/* --- what hosts send anyway --- */

static struct slice host_value(struct slice meta, struct slice key, struct arena *arena)
{
    const char *hash = memchr(key.ptr, '#', key.len);
    struct slice name = {key.ptr, hash ? (size_t)(hash - key.ptr) : key.len};
    struct slice value = json_member(meta, arena_text(arena, name));

    if (hash) {
        value = json_at(value, (struct slice){hash + 1, key.len - name.len - 1});
    }
    return value_text(value, arena);
}

static struct slice from_host(const struct identity_sources *sources, struct slice keys, enum identity_field field,
                              struct arena *arena)
{
    struct slice parts[KEYS_MAX];
    size_t count = slice_split(keys, ',', parts, KEYS_MAX);

    for (size_t i = 0; sources->meta.ptr && i < count; i++) {
        struct slice text = parts[i].len ? host_value(sources->meta, parts[i], arena) : SLICE_NONE;

        if (text.ptr && is_good(field, text)) {
            return text;
        }
    }
    return SLICE_NONE;
}

/* The weakest source: hosts renew their sessions. The prefix keeps it from being the run that somebody names. */
static struct slice from_session(const struct http_exchange *headers, struct arena *arena)
{
    struct slice id = http_exchange_header(headers, SESSION_HEADER);

    return http_exchange_header_count(headers, SESSION_HEADER) == 1 && text_is_plain(id, SESSION_BYTES_MAX)
               ? arena_printf(arena, "mcp-session-%.*s", SLICE_ARG(id))
               : SLICE_NONE;
}

/* --- the handle --- */

static void mark_of(struct saga_id saga, struct slice run, char out[MARK_BYTES + 1])
{
    struct slice fields[] = {{(const char *)saga.uuid.bytes, sizeof(saga.uuid.bytes)}, run};
    struct digest digest = digest_fields("sagad mcp handle", fields, COUNT_OF(fields));
    char hex[65];

    digest_hex(&digest, hex);
    slice_to_text(out, MARK_BYTES + 1, (struct slice){hex, MARK_BYTES});
}

struct slice saga_handle(struct saga_id saga, struct slice run, struct arena *arena)
{
    char id[UUID_TEXT_BYTES], mark[MARK_BYTES + 1];

    uuid_text(&saga.uuid, id);
    if (!run.ptr) {
        return arena_printf(arena, "%s", id);
    }
    mark_of(saga, run, mark);
    return arena_printf(arena, "%s.%s", id, mark);
}

bool saga_handle_read(struct slice handle, struct slice run, struct saga_id *out, bool *is_of_run)
{
    size_t id_len = UUID_TEXT_BYTES - 1;
    char mark[MARK_BYTES + 1];

    if (handle.len != id_len && (handle.len != id_len + 1 + MARK_BYTES || handle.ptr[id_len] != '.')) {
        return false;
    }
    if (!uuid_parse((struct slice){handle.ptr, id_len}, &out->uuid)) {
        return false;
    }
    mark_of(*out, run, mark);
    *is_of_run = !run.ptr || (handle.len > id_len && memcmp(handle.ptr + id_len + 1, mark, MARK_BYTES) == 0);
    return true;
}

static bool read_handle(const struct identity_sources *sources, const struct told *run, struct arena *arena,
                        struct identity *out, struct err *err)
{
    struct slice value = sources->takes_saga ? json_member(sources->arguments, "saga") : SLICE_NONE;
    bool is_of_run = false;

    if (!value.ptr) {
        return true;
    }
    if (!saga_handle_read(json_string(value, arena), run->text, &out->saga, &is_of_run)) {
        return refuse(err, "the argument \"saga\" is not the handle of an open saga",
                      "call saga_open, and pass the handle that it gives as it is");
    }
    if (!is_of_run) {
        (void)refuse(err, "two places say different things of this call",
                     "call saga_open in this run, and pass the handle that it gives");
        err_detail(err,
                   "%s \"%s\" says that the run is \"%.*s\", and the argument \"saga\" is a saga that was not "
                   "opened in it",
                   run->kind, run->name, SLICE_ARG(shown(run->text)));
        return false;
    }
    out->has_saga = true;
    return true;
}

/* A grant for one saga leaves no other run, and no other saga. */
static bool take_granted_saga(const struct grant *grant, const struct told *run, struct identity *out, struct err *err)
{
    char granted[UUID_TEXT_BYTES], named[UUID_TEXT_BYTES];

    uuid_text(&grant->saga.uuid, granted);
    uuid_text(&out->saga.uuid, named);
    if (!run->text.ptr && (!out->has_saga || uuid_equal(&out->saga.uuid, &grant->saga.uuid))) {
        out->has_saga = true;
        out->saga = grant->saga;
        return true;
    }
    (void)refuse(err, "two places say different things of this call", "leave out what the grant says already");
    if (run->text.ptr) {
        err_detail(err,
                   "the grant \"%s\" says that the call is for the saga %s, and %s \"%s\" says that the run is "
                   "\"%.*s\"",
                   grant->id_text, granted, run->kind, run->name, SLICE_ARG(shown(run->text)));
    } else {
        err_detail(err,
                   "the grant \"%s\" says that the call is for the saga %s, and the argument \"saga\" names the "
                   "saga %s",
                   grant->id_text, granted, named);
    }
    return false;
}

bool identity_read(const struct identity_sources *sources, struct arena *arena, struct identity *out, struct err *err)
{
    struct told told[FIELD_COUNT] = {{{0}, NULL, NULL}};

    *out = (struct identity){0};
    for (int i = 0; i < FIELD_COUNT; i++) {
        if (!read_field(sources, (enum identity_field)i, arena, &told[i], err)) {
            return false;
        }
    }
    if (!read_handle(sources, &told[FIELD_RUN], arena, out, err)) {
        return false;
    }
    if (sources->grant && sources->grant->has_saga && !take_granted_saga(sources->grant, &told[FIELD_RUN], out, err)) {
        return false;
    }
    out->run = told[FIELD_RUN].text;
    out->step = told[FIELD_STEP].text;
    out->scope = told[FIELD_SCOPE].text;
    out->turn = told[FIELD_TURN].text;
    out->emission = told[FIELD_EMISSION].text;
    out->run_is_told = out->run.ptr != NULL;
    if (!out->run.ptr) {
        out->run = from_host(sources, sources->keys->run, FIELD_RUN, arena);
    }
    if (!out->run.ptr && sources->session_is_run) {
        out->run = from_session(sources->headers, arena);
    }
    if (!out->turn.ptr) {
        out->turn = from_host(sources, sources->keys->turn, FIELD_TURN, arena);
    }
    if (!out->emission.ptr) {
        out->emission = from_host(sources, sources->keys->emission, FIELD_EMISSION, arena);
    }
    return true;
}
