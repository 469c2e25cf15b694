/* Acts of persons and tokens: the text that a change is written with, refusals, retention, and lists. */
#include "store/acts.h"

#include "base/json.h"
#include "base/utf8.h"
#include "store/store_state.h"

#define TEXT_BYTES_MAX 300
#define NOTE_BYTES_MAX 4000
#define ACT_BYTES_MAX ((size_t)128 << 10) /* a dozen texts, with six bytes for each of their bytes at worst */

/* Cuts before a character, and replaces what jsonb refuses: NUL, and bytes that are no UTF-8. */
static void write_bounded(struct json_writer *w, const char *name, struct slice text, size_t bytes_max,
                          struct arena *arena)
{
    if (text.len > bytes_max) {
        text.len = bytes_max;
        while (text.len > 0 && ((unsigned char)text.ptr[text.len] & 0xc0) == 0x80) {
            text.len--;
        }
    }
    json_write_slice(w, name, text.ptr ? text_as_utf8(text, arena) : SLICE_NONE);
}

static void write_uuid(struct json_writer *w, const char *name, const struct uuid *uuid)
{
    char text[UUID_TEXT_BYTES];

    if (uuid_is_nil(uuid)) {
        json_write_null(w, name);
    } else {
        uuid_text(uuid, text);
        json_write_text(w, name, text);
    }
}

static void write_act(struct json_writer *w, const struct person_act *act, struct arena *arena)
{
    write_bounded(w, "namespace", act->namespace, TEXT_BYTES_MAX, arena);
    json_write_instant(w, "at", act->at_ms);
    write_uuid(w, "id", &act->id);
    write_bounded(w, "actor", act->actor.ptr ? act->actor : SLICE(""), TEXT_BYTES_MAX, arena);
    json_write_text(w, "role", role_name(act->role));
    json_write_text(w, "via", act->via);
    write_bounded(w, "address", act->address, TEXT_BYTES_MAX, arena);
    write_bounded(w, "verb", act->verb, TEXT_BYTES_MAX, arena);
    write_bounded(w, "kind", act->kind, TEXT_BYTES_MAX, arena);
    write_bounded(w, "target", act->target, TEXT_BYTES_MAX, arena);
    write_bounded(w, "detail", act->detail, TEXT_BYTES_MAX, arena);
    write_uuid(w, "saga", &act->saga.uuid);
    write_bounded(w, "saga_name", act->saga_name, TEXT_BYTES_MAX, arena);
    write_bounded(w, "business_id", act->business_id, TEXT_BYTES_MAX, arena);
    write_bounded(w, "tool", act->tool, TEXT_BYTES_MAX, arena);
    write_bounded(w, "note", act->note, NOTE_BYTES_MAX, arena);
}

static struct slice take_text(struct buffer *text, struct arena *arena)
{
    CHECK(!text->overflow); /* each of its texts is bounded */
    struct slice taken = arena_slice(arena, buffer_slice(text));

    buffer_fini(text);
    return taken;
}

struct slice act_text(const struct person_act *act, struct arena *arena)
{
    struct buffer text;
    struct json_writer w;

    buffer_init(&text, ACT_BYTES_MAX);
    json_writer_init(&w, &text);
    json_object_begin(&w, NULL);
    write_act(&w, act, arena);
    json_object_end(&w);
    return take_text(&text, arena);
}

/* --- refusals --- */

static struct slice refusals_text(const struct act_refuse *refuse, struct arena *arena)
{
    struct buffer text;
    struct json_writer w;

    buffer_init(&text, (refuse->count + 1) * ACT_BYTES_MAX);
    json_writer_init(&w, &text);
    json_array_begin(&w, NULL);
    for (size_t i = 0; i < refuse->count; i++) {
        const struct act_refusal *refusal = &refuse->refusals[i];

        json_object_begin(&w, NULL);
        write_act(&w, &refusal->example, arena);
        json_write_text(&w, "code", refusal->code);
        json_write_i64(&w, "count", refusal->count);
        json_write_instant(&w, "last_at", refusal->last_ms);
        json_object_end(&w);
    }
    json_array_end(&w);
    return take_text(&text, arena);
}

void store_act_refuse(struct store *store, struct act_refuse *refuse)
{
    struct job *job = read_job(store, &refuse->read, refuse);
    struct db_args *args = job_query(job, &sql_act_refuse, NULL);

    job->writes = true;
    db_arg_text(args, refusals_text(refuse, job->arena));
    job_submit(job);
}

/* --- retention --- */

static void on_forgotten(struct db_query *query, const struct db_rows *rows)
{
    struct act_forget *forget = ((struct job *)query->context)->request;

    forget->months = db_int(rows, 0, 0);
}

void store_act_forget(struct store *store, struct act_forget *forget)
{
    struct job *job = read_job(store, &forget->read, forget);
    struct db_args *args = job_query(job, &sql_act_forget, on_forgotten);

    job->writes = true;
    db_arg_timestamptz(args, forget->before_ms);
    job_submit(job);
}

/* --- lists --- */

static void read_act(struct job *job, const struct db_rows *rows, size_t i, struct act_row *out)
{
    struct slice *const texts[] = {&out->act.namespace, &out->act.actor,   &out->role,
                                   &out->via,           &out->act.address, &out->act.verb,
                                   &out->act.kind,      &out->act.target,  &out->act.detail};
    struct slice *const more[] = {&out->act.saga_name, &out->act.business_id, &out->act.tool,
                                  &out->act.note,      &out->outcome,         &out->code};

    *out = (struct act_row){.act = {.at_ms = db_timestamptz(rows, i, 0), .id = db_uuid(rows, i, 1)},
                            .count = db_int(rows, i, 18),
                            .last_ms = db_timestamptz(rows, i, 19)};
    for (int k = 0; k < (int)COUNT_OF(texts); k++) {
        *texts[k] = arena_slice(job->arena, db_bytes(rows, i, 2 + k));
    }
    if (!db_is_null(rows, i, 11)) {
        out->act.saga.uuid = db_uuid(rows, i, 11);
    }
    for (int k = 0; k < (int)COUNT_OF(more); k++) {
        *more[k] = arena_slice(job->arena, db_bytes(rows, i, 12 + k));
    }
}

static void on_list(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct act_list *list = job->request;

    list->count = 0;
    list->has_edge = false;
    list->rows = arena_array(job->arena, db_row_count(rows) + 1, sizeof(*list->rows));
    for (size_t i = 0; i < db_row_count(rows); i++) {
        read_act(job, rows, i, &list->rows[list->count]);
        if (db_int(rows, i, 21)) {
            list->has_edge = true;
            list->edge_ms = list->rows[list->count].act.at_ms;
            list->edge = list->rows[list->count].act.id;
        }
        list->count += db_int(rows, i, 20) != 0;
    }
}

void store_act_list(struct store *store, struct act_list *list)
{
    struct job *job = read_job(store, &list->read, list);
    struct db_args *args = job_query(job, &sql_act_list, on_list);

    db_arg_text(args, list->namespace);
    db_arg_timestamptz(args, list->since_ms);
    db_arg_timestamptz(args, list->before_ms);
    db_arg_uuid(args, &list->before);
    read_arg_texts(args, list->actors, list->actor_count);
    read_arg_texts(args, list->verbs, list->verb_count);
    read_arg_texts(args, list->sagas, list->saga_count);
    read_arg_texts(args, list->tools, list->tool_count);
    if (uuid_is_nil(&list->saga.uuid)) {
        db_arg_null(args, DB_UUID);
    } else {
        db_arg_uuid(args, &list->saga.uuid);
    }
    db_arg_text(args, list->outcome);
    db_arg_int8(args, (int64_t)list->limit);
    db_arg_int8(args, ACTS_LOOKED_AT);
    job_submit(job);
}
