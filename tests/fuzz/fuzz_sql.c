/*
 * What is known of an SQL statement without its database, and how rows become JSON. The first byte is the number of
 * parameters and the kinds of the columns. The rest is the statement and the values, one on each line.
 */
#include "adapters/sql_rows.h"
#include "adapters/sql_text.h"
#include "tests/fuzz/fuzz.h"

#define COLUMNS_MAX 8

struct db_row { /* a row as io/postgres/pool.c would give it */
    struct slice values[COLUMNS_MAX];
    char *names[COLUMNS_MAX];
    int count;
    uint8_t kinds;
};

int db_row_columns(const struct db_row *row)
{
    return row->count;
}

const char *db_row_name(const struct db_row *row, int column)
{
    return row->names[column];
}

enum db_column_kind db_row_kind(const struct db_row *row, int column)
{
    return (enum db_column_kind)((row->kinds >> column % 4 * 2) % 4);
}

struct slice db_row_value(const struct db_row *row, int column)
{
    return row->values[column];
}

static void statement(struct slice text, int params, struct arena *arena)
{
    struct sql_text read, again;
    const char *fault = sql_text_read(text, params, arena, &read);

    if (fault) {
        MUST(fault[0]);
        return;
    }
    MUST(read.highest >= 0 && read.highest <= SQL_PARAMS_MAX);
    for (size_t i = 0; i < read.command.len; i++) {
        MUST(read.command.ptr[i] < 'a' || read.command.ptr[i] > 'z');
    }
    /* The text for the server is read in the same way: $key has become a number, and nothing else has changed. */
    if (!sql_text_read(read.text, params + 1 <= SQL_PARAMS_MAX ? params + 1 : params, arena, &again)) {
        MUST(!again.has_key && slice_equal(again.text, read.text) && slice_equal(again.command, read.command));
    }
}

static void rows(struct slice text, uint8_t kinds, struct arena *arena)
{
    struct db_row row = {.kinds = kinds};
    struct sql_rows out;
    struct slice json;
    bool ok = true;

    while (text.len > 0 && row.count < COLUMNS_MAX) {
        row.values[row.count] =
            fuzz_line(&text); /* a text of PostgreSQL is UTF-8, but this function need not know it */
        row.names[row.count] = arena_text(arena, arena_printf(arena, "c%d", row.count % 7));
        row.count++;
    }
    sql_rows_init(&out, 4096);
    for (int i = 0; i < 2 && ok; i++) {
        ok = sql_rows_add(&out, &row);
    }
    MUST(ok || (out.error && out.detail));
    json = ok ? sql_rows_end(&out, 2, arena) : SLICE_NONE;
    if (json.ptr) {
        MUST(fuzz_is_json(json) && json_count(json_member(json, "rows")) == 2);
        MUST(json_count(json_element(json_member(json, "rows"), 1)) == (size_t)row.count);
    } else {
        MUST(out.error);
    }
    sql_rows_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = fuzz_input(data, size);
    uint8_t first = fuzz_byte(&text);
    struct arena *arena = fuzz_arena();

    if (memchr(text.ptr, 0, text.len)) {
        return 0; /* neither a statement (it was in JSON) nor a value can hold this byte */
    }
    statement(text, first % (SQL_PARAMS_MAX + 1), arena);
    rows(text, first, arena);
    return 0;
}
