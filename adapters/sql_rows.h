/* Writes the rows of a statement as JSON, one after the other, so that an answer which is too large is refused before
 * it fills the memory. */
#ifndef SAGAD_ADAPTERS_SQL_ROWS_H
#define SAGAD_ADAPTERS_SQL_ROWS_H

#include "base/arena.h"
#include "base/json.h"
#include "io/postgres/pool.h"

struct sql_rows {
    struct buffer text;
    struct json_writer w;
    const char *error, *detail; /* a short code and a sentence; NULL: no error */
    bool begun;
};

void sql_rows_init(struct sql_rows *rows, size_t bytes_max);
void sql_rows_fini(struct sql_rows *rows); /* accepts a zeroed struct, and may be called twice */
bool sql_rows_add(struct sql_rows *rows,
                  const struct db_row *row); /* returns false when the row does not fit, and says why in `error` */
/* Returns {"rows": [...], "count": N}, or SLICE_NONE with `error` when that is too large. */
struct slice sql_rows_end(struct sql_rows *rows, int64_t count, struct arena *arena);

#endif
