/* The rows of a statement as JSON, one after the other, so that an answer that is too large is seen before it is in
 * memory. */
#ifndef SAGAD_ADAPTERS_SQL_ROWS_H
#define SAGAD_ADAPTERS_SQL_ROWS_H

#include "base/arena.h"
#include "base/json.h"
#include "io/postgres/pool.h"

struct sql_rows {
    struct buffer text;
    struct json_writer w;
    const char *error, *detail; /* NULL: none; a short code and a sentence */
    bool begun;
};

void sql_rows_init(struct sql_rows *rows, size_t bytes_max);
void sql_rows_fini(struct sql_rows *rows);                          /* accepts a zeroed one, and may come twice */
bool sql_rows_add(struct sql_rows *rows, const struct db_row *row); /* false: `error` says why */
/* {"rows": [...], "count": N}; SLICE_NONE with `error` when it is too large. */
struct slice sql_rows_end(struct sql_rows *rows, int64_t count, struct arena *arena);

#endif
