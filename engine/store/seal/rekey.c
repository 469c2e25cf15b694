/*
 * A blocking walk over tables, like `sagad migrate`. A page is read by the primary key, behind the last row of the page
 * before, and written in one transaction; an update holds only where the column is still what was read, by its digest.
 * Rows of the log are never changed but here, and what they say stays what it was.
 */
#include "store/seal/rekey.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/digest.h"
#include "io/postgres/db.h"
#include "store/seal/places.h"
#include "store/seal/seal.h"

enum { PAGE_ROWS = 100, COLUMNS_MAX = 8, PROGRESS_PAGES = 100, PASSES_MAX = 10 };

enum sealed_shape { WHOLE, TURN, CASE, DIGEST };

/* A column of a table that is sealed, and how its rows are found: by the primary key, and what else tells its place. */
struct sealed_column {
    const char *table, *name;
    enum sealed_shape shape;
    struct seal_place (*place)(const struct slice *values); /* the place that the columns tell that are read */
    const char *more;                                       /* columns that are read behind the key */
    int count;                                              /* how many columns are read, without the sealed one */
    const char *key;                                        /* names of the primary key */
    const char *columns;                                    /* the same of the row `t` */
    const char *found;                                      /* the same of the values `u` */
    const char *first;                                      /* no key is below it */
    int key_count;
    const char *types[3]; /* the types of the key */
};

static struct uuid id_of(struct slice text)
{
    struct uuid id = {{0}};

    CHECK(uuid_parse(text, &id)); /* a uuid of PostgreSQL */
    return id;
}

static uint64_t number_of(struct slice text)
{
    int64_t number = 0;

    CHECK(slice_to_i64(text, &number)); /* an integer of PostgreSQL */
    return (uint64_t)number;
}

static struct seal_place place_in_log(const struct slice *values)
{
    struct uuid saga = id_of(values[1]);

    return place_of_turn(&saga, number_of(values[2]));
}

static struct seal_place place_in_rest(const struct slice *values)
{
    struct uuid saga = id_of(values[1]);

    return place_of_rest(&saga, number_of(values[2]) + number_of(values[3]) - 1);
}

static struct seal_place place_in_saga(const struct slice *values)
{
    struct uuid saga = id_of(values[1]);

    return place_of_digest(&saga);
}

static struct seal_place place_in_inbox(const struct slice *values)
{
    struct uuid id = id_of(values[1]), saga = id_of(values[2]);

    return place_of_input(&id, &saga, values[3]);
}

static struct seal_place place_in_answer(const struct slice *values)
{
    struct uuid input = id_of(values[1]);

    return place_of_answer(&input);
}

static struct seal_place place_in_bulk(const struct slice *values)
{
    struct uuid id = id_of(values[1]);

    return place_of_bulk(&id);
}

static struct seal_place place_in_bulk_item(const struct slice *values)
{
    struct uuid id = id_of(values[1]);

    return place_of_bulk_item(&id, number_of(values[2]));
}

static struct seal_place place_in_escalation(const struct slice *values)
{
    struct uuid saga = id_of(values[2]);

    return place_of_case("escalation", &saga, number_of(values[1]));
}

static struct seal_place place_in_approval(const struct slice *values)
{
    struct uuid saga = id_of(values[2]);

    return place_of_case("approval", &saga, number_of(values[1]));
}

static struct seal_place place_in_schedule(const struct slice *values)
{
    struct uuid id = id_of(values[3]);

    return place_of_schedule(values[1], values[2], &id);
}

#define NIL "'00000000-0000-0000-0000-000000000000'"
#define TWO(second) "shard, " second, "t.shard, t." second, "u.shard, u." second
#define THREE(second, third)                                                                                           \
    "shard, " second ", " third, "t.shard, t." second ", t." third, "u.shard, u." second ", u." third
#define BY_ID(id)                                                                                                      \
    TWO(id), "-1, " NIL, 2,                                                                                            \
    {                                                                                                                  \
        "int2", "uuid"                                                                                                 \
    }
#define BY_ID_AND(id, number, type)                                                                                    \
    THREE(id, number), "-1, " NIL ", 0", 3,                                                                            \
    {                                                                                                                  \
        "int2", "uuid", type                                                                                           \
    }
#define BY_NUMBER                                                                                                      \
    TWO("number"), "-1, 0", 2,                                                                                         \
    {                                                                                                                  \
        "int2", "int8"                                                                                                 \
    }
#define BY_NAME                                                                                                        \
    THREE("namespace", "name"), "-1, '', ''", 3,                                                                       \
    {                                                                                                                  \
        "int2", "text", "text"                                                                                         \
    }

static const struct sealed_column sealed_columns[] = {
    {"log", "payload", TURN, place_in_log, "", 3, BY_ID_AND("saga", "seq", "int4")},
    {"log", "rest", WHOLE, place_in_rest, ", t.records", 4, BY_ID_AND("saga", "seq", "int4")},
    {"saga", "input_digest", DIGEST, place_in_saga, "", 2, BY_ID("id")},
    {"inbox", "payload", WHOLE, place_in_inbox, ", t.saga, t.kind", 4, BY_ID("id")},
    {"answer", "body", WHOLE, place_in_answer, "", 2, BY_ID("input")},
    {"escalation", "body", CASE, place_in_escalation, ", t.saga", 3, BY_NUMBER},
    {"approval", "body", CASE, place_in_approval, ", t.saga", 3, BY_NUMBER},
    {"bulk", "body", WHOLE, place_in_bulk, "", 2, BY_ID("id")},
    {"bulk_item", "body", WHOLE, place_in_bulk_item, "", 3, BY_ID_AND("bulk", "n", "int8")},
    {"schedule", "body", WHOLE, place_in_schedule, ", t.id", 4, BY_NAME},
};

struct walk {
    const struct payload_keys *keys;
    struct db_session *session;
    void (*progress)(const char *line);
    const struct sealed_column *column;
    struct arena arena;
    struct buffer updates, after; /* SQL: the writes of the page; the key of its last row */
    int64_t rows, rewritten, changed, unopened, unopened_in_all;
    int row_count, update_count;
    struct err err; /* why a row does not open */
};

/* --- one row --- */

static bool hex_read(const char *hex, struct arena *arena, struct slice *out)
{
    size_t len = strlen(hex);
    char *bytes = arena_alloc(arena, len / 2 + 1);

    if (len < 2 || hex[0] != '\\' || hex[1] != 'x' || len % 2 != 0) {
        return false;
    }
    for (size_t i = 2; i < len; i += 2) {
        const char pair[] = {hex[i], hex[i + 1], '\0'};

        bytes[i / 2 - 1] = (char)strtol(pair, NULL, 16);
    }
    *out = (struct slice){bytes, len / 2 - 1};
    return true;
}

static void put_hex(struct buffer *out, struct slice bytes)
{
    static const char digits[] = "0123456789abcdef";

    buffer_put_text(out, "'\\x");
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char byte = (unsigned char)bytes.ptr[i];

        buffer_put_char(out, digits[byte >> 4]);
        buffer_put_char(out, digits[byte & 15]);
    }
    buffer_put_text(out, "'::bytea");
}

static void put_literal(struct buffer *out, struct slice text)
{
    buffer_put_char(out, '\'');
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\'') {
            buffer_put_char(out, '\'');
        }
        buffer_put_char(out, text.ptr[i]);
    }
    buffer_put_char(out, '\'');
}

static void put_key(struct buffer *out, const struct sealed_column *column, const struct slice *values)
{
    for (int i = 0; i < column->key_count; i++) {
        buffer_put_text(out, i > 0 ? ", " : "");
        put_literal(out, values[i]);
        buffer_printf(out, "::%s", column->types[i]);
    }
}

static bool is_under(enum sealed_shape shape, struct slice now, struct slice key)
{
    struct digest digest;

    switch (shape) {
    case TURN:
        return members_under(SEAL_TURN, now, key);
    case CASE:
        return members_under(SEAL_CASE, now, key);
    case DIGEST:
        return now.len != sizeof(digest.bytes) && column_is_under(now, key);
    case WHOLE:
        return column_is_under(now, key);
    }
    UNREACHABLE();
}

static enum err_code open_column(struct walk *walk, const struct seal_place *place, struct slice now,
                                 struct slice *plain, struct err *err)
{
    struct digest digest;
    enum err_code code;

    switch (walk->column->shape) {
    case TURN:
        return unseal_members(walk->keys, SEAL_TURN, place, now, &walk->arena, plain, err);
    case CASE:
        return unseal_members(walk->keys, SEAL_CASE, place, now, &walk->arena, plain, err);
    case DIGEST:
        code = unseal_digest(walk->keys, place, now, &digest, err);
        *plain = code == ERR_OK
                     ? arena_slice(&walk->arena, (struct slice){(const char *)digest.bytes, sizeof(digest.bytes)})
                     : SLICE_NONE;
        return code;
    case WHOLE:
        return unseal_whole(walk->keys, place, now, &walk->arena, plain, err);
    }
    UNREACHABLE();
}

/* What is to stand in place of `now`. SLICE_NONE: it may stay. ERR_CORRUPT, ERR_CONFIG: it does not open. */
static enum err_code resealed(struct walk *walk, const struct slice *values, struct slice now, struct slice *out,
                              struct err *err)
{
    struct seal_place place = walk->column->place(values);
    enum sealed_shape shape = walk->column->shape;
    enum seal_shape of_members = shape == TURN ? SEAL_TURN : SEAL_CASE;
    bool members = shape == TURN || shape == CASE;
    struct slice plain = SLICE_NONE;
    struct buffer sealed;
    enum err_code code;

    *out = SLICE_NONE;
    if (is_under(shape, now, payload_keys_active(walk->keys))) {
        return ERR_OK;
    }
    code = open_column(walk, &place, now, &plain, err);
    if (code != ERR_OK) {
        return code;
    }
    if (members && plain.len > 0 && !seal_shape_fits(of_members, plain)) {
        return err_set(err, ERR_CORRUPT,
                       "this text is no JSON of sagad, and so nobody can say what in it is a payload");
    }
    buffer_init(&sealed, SIZE_MAX / 2);
    if (members) {
        seal_members(walk->keys, of_members, &place, plain, &sealed);
    } else {
        seal_whole(walk->keys, &place, plain, &sealed);
    }
    if (!slice_equal(buffer_slice(&sealed), now)) { /* there may be no payload in it */
        *out = arena_slice(&walk->arena, buffer_slice(&sealed));
    }
    buffer_fini(&sealed);
    return ERR_OK;
}

static void say_unopened(struct walk *walk, const struct slice *values, const struct err *err)
{
    char line[400];

    walk->unopened++;
    walk->err = *err;
    (void)snprintf(line, sizeof(line), "sagad.%s, %.*s: %s", walk->column->table, SLICE_ARG(values[1]), err->message);
    walk->progress(line); /* a cut text is good enough */
}

static void on_row(void *context, int count, const char *const *texts)
{
    struct walk *walk = context;
    const struct sealed_column *column = walk->column;
    struct slice values[COLUMNS_MAX], now = SLICE_NONE, then;
    struct err err = {.code = ERR_OK};
    struct digest digest;

    CHECK(count == column->count + 1 && count <= COLUMNS_MAX);
    for (int i = 0; i < column->count; i++) {
        values[i] = slice_of(texts[i]);
    }
    walk->row_count++;
    buffer_reset(&walk->after);
    put_key(&walk->after, column, values);
    if (!texts[column->count] || !hex_read(texts[column->count], &walk->arena, &now)) {
        return; /* null */
    }
    if (resealed(walk, values, now, &then, &err) != ERR_OK) {
        say_unopened(walk, values, &err);
        return;
    }
    if (!then.ptr) {
        return;
    }
    digest = digest_sha256(now);
    buffer_printf(&walk->updates, "%s(", walk->update_count++ > 0 ? ", " : "");
    put_key(&walk->updates, column, values);
    buffer_put_text(&walk->updates, ", ");
    put_hex(&walk->updates, (struct slice){(const char *)digest.bytes, sizeof(digest.bytes)});
    buffer_put_text(&walk->updates, ", ");
    put_hex(&walk->updates, then);
    buffer_put_char(&walk->updates, ')');
}

/* --- pages --- */

static void on_updated(void *context, int count, const char *const *texts)
{
    int64_t *updated = context;

    if (count == 1 && texts[0]) {
        (void)slice_to_i64(slice_of(texts[0]), updated);
    }
}

/* Rows that an engine has locked are left to the next pass. So this never waits with rows in its hands, and no engine's
 * append ends in a deadlock with it. */
static enum err_code write_page(struct walk *walk, struct err *err)
{
    const struct sealed_column *column = walk->column;
    int64_t updated = 0;
    struct buffer sql;
    enum err_code code;

    if (walk->update_count == 0) {
        return ERR_OK;
    }
    buffer_init(&sql, SIZE_MAX / 2);
    buffer_printf(&sql, "with u (%s, was, becomes) as materialized (values ", column->key);
    buffer_put_slice(&sql, buffer_slice(&walk->updates));
    buffer_printf(&sql,
                  "), free as materialized (select t.ctid as place from sagad.%s t, u where (%s) = (%s)"
                  " for update of t skip locked)",
                  column->table, column->columns, column->found);
    buffer_printf(&sql,
                  ", new as (update sagad.%s t set %s = u.becomes from u where (%s) = (%s) and sha256(t.%s) = u.was"
                  " and t.ctid in (select f.place from free f) returning 1) select count(*) from new",
                  column->table, column->name, column->columns, column->found, column->name);
    code = db_session_run(walk->session, buffer_c(&sql), on_updated, &updated, err);
    buffer_fini(&sql);
    walk->rewritten += updated;
    walk->changed += walk->update_count - updated;
    return code;
}

static enum err_code read_page(struct walk *walk, struct err *err)
{
    const struct sealed_column *column = walk->column;
    struct buffer sql;
    enum err_code code;

    arena_reset(&walk->arena);
    buffer_reset(&walk->updates);
    walk->row_count = walk->update_count = 0;
    buffer_init(&sql, SIZE_MAX / 2);
    buffer_printf(&sql, "select %s%s, t.%s from sagad.%s t where (%s) > (", column->columns, column->more, column->name,
                  column->table, column->columns);
    buffer_put_slice(&sql, buffer_slice(&walk->after));
    buffer_printf(&sql, ") order by %s limit %d", column->columns, PAGE_ROWS);
    code = db_session_run(walk->session, buffer_c(&sql), on_row, walk, err);
    buffer_fini(&sql);
    walk->rows += walk->row_count;
    return code;
}

static void say_progress(const struct walk *walk)
{
    char line[200];

    (void)snprintf(line, sizeof(line), "sagad.%s.%s: %" PRId64 " rows, %" PRId64 " rewritten", walk->column->table,
                   walk->column->name, walk->rows, walk->rewritten); /* it fits */
    walk->progress(line);
}

static enum err_code walk_column(struct walk *walk, struct err *err)
{
    enum err_code code = ERR_OK;

    walk->rows = walk->changed = walk->unopened = 0;
    buffer_reset(&walk->after);
    buffer_put_text(&walk->after, walk->column->first);
    do {
        code = read_page(walk, err);
        code = code == ERR_OK ? write_page(walk, err) : code;
        if (code == ERR_OK && walk->rows % (PAGE_ROWS * PROGRESS_PAGES) == 0 && walk->row_count == PAGE_ROWS) {
            say_progress(walk);
        }
    } while (code == ERR_OK && walk->row_count == PAGE_ROWS);
    return code;
}

/* Rows that engines changed while their page was read are looked at again. What they removed is gone then. */
static enum err_code rekey_column(struct walk *walk, struct err *err)
{
    enum err_code code = ERR_OK;

    walk->rewritten = 0;
    for (int pass = 0; pass < PASSES_MAX; pass++) {
        code = walk_column(walk, err);
        if (code != ERR_OK || walk->changed == 0) {
            break;
        }
    }
    if (code == ERR_OK) {
        say_progress(walk);
        walk->unopened_in_all += walk->unopened;
    }
    if (code == ERR_OK && walk->changed > 0) {
        code = err_set(err, ERR_BUSY, "rows of sagad.%s change faster than they are rewritten", walk->column->table);
        err_hint(err, "run `sagad rekey` again");
    }
    return code;
}

/* --- the keys that the database needs --- */

struct needed {
    const struct payload_keys *keys;
    struct arena *arena;
    struct err err;
};

static void on_key(void *context, int count, const char *const *texts)
{
    struct needed *needed = context;
    struct slice proof = SLICE_NONE;

    if (needed->err.code != ERR_OK || count != 2 || !hex_read(texts[1], needed->arena, &proof)) {
        return;
    }
    if (payload_keys_check_proof(needed->keys, slice_of(texts[0]), proof, &needed->err) != ERR_OK) {
        return; /* it is told when all are read */
    }
}

/* The check that a store makes before it seals anything. */
static enum err_code use_key(struct walk *walk, struct err *err)
{
    struct needed needed = {.keys = walk->keys, .arena = &walk->arena};
    enum err_code code =
        db_session_run(walk->session, "select k.name, k.proof from sagad.payload_key k", on_key, &needed, err);
    struct buffer sql, proof;

    if (code == ERR_OK && needed.err.code != ERR_OK) {
        *err = needed.err;
        code = err->code;
    }
    if (code != ERR_OK) {
        return code;
    }
    buffer_init(&sql, 4096);
    buffer_init(&proof, 1024);
    payload_keys_put_proof(walk->keys, &proof);
    buffer_put_text(&sql, "insert into sagad.payload_key (name, proof) values (");
    put_literal(&sql, payload_keys_active(walk->keys));
    buffer_put_text(&sql, ", ");
    put_hex(&sql, buffer_slice(&proof));
    buffer_put_text(&sql, ") on conflict do nothing");
    code = db_session_run(walk->session, buffer_c(&sql), NULL, NULL, err);
    needed.err.code = ERR_OK;
    code = code == ERR_OK
               ? db_session_run(walk->session, "select k.name, k.proof from sagad.payload_key k", on_key, &needed, err)
               : code;
    buffer_fini(&sql);
    buffer_fini(&proof);
    if (code == ERR_OK && needed.err.code != ERR_OK) { /* somebody has put another key of that name meanwhile */
        *err = needed.err;
        code = err->code;
    }
    return code;
}

enum err_code rekey(const char *dsn, const struct payload_keys *keys, void (*progress)(const char *line),
                    struct err *err)
{
    struct walk walk = {.keys = keys, .progress = progress};
    enum err_code code;

    if (!payload_keys_active(keys).ptr) {
        code = err_set(err, ERR_CONFIG, "there is no active key to seal under");
        err_hint(err, "give --payload-keys, and name the \"active\" key in its file");
        return code;
    }
    code = db_session_open(dsn, "sagad rekey", &walk.session, err);
    if (code != ERR_OK) {
        return code;
    }
    arena_init(&walk.arena, 65536);
    buffer_init(&walk.updates, SIZE_MAX / 2);
    buffer_init(&walk.after, 4096);
    code = db_session_run(walk.session, "set standard_conforming_strings = on; set search_path = pg_catalog, pg_temp",
                          NULL, NULL, err);
    code = code == ERR_OK ? use_key(&walk, err) : code;
    for (size_t i = 0; i < COUNT_OF(sealed_columns) && code == ERR_OK; i++) {
        walk.column = &sealed_columns[i];
        code = rekey_column(&walk, err);
    }
    if (code == ERR_OK && walk.unopened_in_all > 0) {
        code = err_set(err, ERR_CORRUPT, "%" PRId64 " rows do not open and stay as they are", walk.unopened_in_all);
        err_detail(err, "%s", walk.err.message);
    }
    buffer_fini(&walk.updates);
    buffer_fini(&walk.after);
    arena_fini(&walk.arena);
    db_session_close(walk.session);
    return code;
}
