/* See sql_rows.h. Numbers keep all their digits. A value that JSON cannot express becomes the text that PostgreSQL
 * writes. */
#include "adapters/sql_rows.h"

#include <string.h>

enum { JSON_DEPTH_MAX = 56 /* depth of the JSON in a column; with the levels around it, our reader still takes it */ };

void sql_rows_init(struct sql_rows *rows, size_t bytes_max)
{
    memset(rows, 0, sizeof(*rows));
    buffer_init(&rows->text, bytes_max);
    json_writer_init(&rows->w, &rows->text);
    json_object_begin(&rows->w, NULL);
    json_array_begin(&rows->w, "rows");
}

void sql_rows_fini(struct sql_rows *rows)
{
    buffer_fini(&rows->text);
    memset(rows, 0, sizeof(*rows));
}

static bool rows_fault(struct sql_rows *rows, const char *error, const char *detail)
{
    rows->error = error;
    rows->detail = detail;
    return false;
}

static bool names_differ(const struct db_row *row)
{
    int count = db_row_columns(row);

    for (int i = 0; i < count; i++) {
        for (int j = 0; j < i; j++) {
            if (strcmp(db_row_name(row, i), db_row_name(row, j)) == 0) {
                return false;
            }
        }
    }
    return true;
}

/* Is the value JSON as we read it? NaN and Infinity are numbers in PostgreSQL but not in JSON, and the type json allows
 * the same member twice. Such values become text. */
static bool is_json(struct slice value, enum db_column_kind kind)
{
    struct json_limits limits = json_limits_default;

    limits.bytes_max = SIZE_MAX;
    limits.depth_max = JSON_DEPTH_MAX;
    return json_check(value, &limits, NULL) == ERR_OK && (kind == DB_COLUMN_JSON || json_type(value) == JSON_NUMBER);
}

static void column_write(struct sql_rows *rows, const char *name, enum db_column_kind kind, struct slice value)
{
    switch (kind) {
    case DB_COLUMN_BOOL:
        json_write_bool(&rows->w, name, slice_is(value, "t"));
        return;
    case DB_COLUMN_NUMBER:
    case DB_COLUMN_JSON:
        if (is_json(value, kind)) {
            json_write_raw(&rows->w, name, json_trim(value));
            return;
        }
        break;
    case DB_COLUMN_TEXT:
        break;
    }
    json_write_slice(&rows->w, name, value);
}

bool sql_rows_add(struct sql_rows *rows, const struct db_row *row)
{
    if (!rows->begun && !names_differ(row)) {
        return rows_fault(rows, "columns", "Two columns have the same name; name them apart with AS.");
    }
    rows->begun = true;
    json_object_begin(&rows->w, NULL);
    for (int i = 0; i < db_row_columns(row); i++) {
        const char *name = db_row_name(row, i);
        struct slice value = db_row_value(row, i);

        if (value.ptr) {
            column_write(rows, name, db_row_kind(row, i), value);
        } else {
            json_write_null(&rows->w, name);
        }
    }
    json_object_end(&rows->w);
    return rows->text.overflow
               ? rows_fault(rows, "too-large", "The rows are larger than an answer may be; select less.")
               : true;
}

struct slice sql_rows_end(struct sql_rows *rows, int64_t count, struct arena *arena)
{
    json_array_end(&rows->w);
    json_write_i64(&rows->w, "count", count);
    json_object_end(&rows->w);
    if (rows->text.overflow) {
        (void)rows_fault(rows, "too-large", "The rows are larger than an answer may be; select less.");
        return SLICE_NONE;
    }
    return arena_slice(arena, buffer_slice(&rows->text));
}
