/*
 * CSV of people, as `sagactl bulk` reads it. What is read is of the text, and no more than is there; written again with
 * quotes it reads as the same cells.
 */
#include "tests/fuzz/fuzz.h"
#include "tools/sagactl/csv.h"

static void put_row(struct buffer *out, const struct slice *cells, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buffer_put_text(out, i > 0 ? ",\"" : "\"");
        for (size_t at = 0; at < cells[i].len; at++) {
            buffer_put(out, "\"", cells[i].ptr[at] == '"');
            buffer_put_char(out, cells[i].ptr[at]);
        }
        buffer_put_char(out, '"');
    }
    buffer_put_char(out, '\n');
}

static void check_again(struct slice text, const struct csv *first, struct slice (*rows)[CSV_COLUMNS_MAX], size_t count,
                        struct arena *arena)
{
    struct csv *again = arena_alloc(arena, sizeof(*again));
    struct slice *cells = arena_array(arena, CSV_COLUMNS_MAX, sizeof(*cells));

    csv_begin(again, text, arena);
    MUST(!again->fault && again->column_count == first->column_count);
    for (size_t row = 0; row < count; row++) {
        MUST(csv_next(again, cells) && again->row == row + 1);
        for (size_t i = 0; i < first->column_count; i++) {
            MUST(slice_equal(cells[i], rows[row][i]));
        }
    }
    MUST(!csv_next(again, cells) && !again->fault);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { ROWS_MAX = 20 };
    struct arena *arena = fuzz_arena();
    static struct csv first, *csv = &first;
    /* Kept from one execution to the next: what is larger than a block of the arena is allocated and cleared anew in
     * each. */
    static struct slice rows[ROWS_MAX + 1][CSV_COLUMNS_MAX];
    struct buffer out;
    size_t count = 0, column;

    csv_begin(csv, fuzz_input(data, size), arena);
    MUST(csv->column_count <= CSV_COLUMNS_MAX);
    buffer_init(&out, 64 << 20);
    put_row(&out, csv->head, csv->column_count);
    while (!csv->fault && count < ROWS_MAX && csv_next(csv, rows[count])) {
        put_row(&out, rows[count], csv->column_count);
        count++;
        MUST(csv->row >= count);
    }
    for (size_t i = 0; i < csv->column_count; i++) {
        MUST(csv_find(csv, csv->head[i], &column) && slice_equal(csv->head[column], csv->head[i]));
    }
    if (!csv->fault && csv->column_count > 0) {
        check_again(buffer_slice(&out), csv, rows, count, arena);
    }
    buffer_fini(&out);
    return 0;
}
