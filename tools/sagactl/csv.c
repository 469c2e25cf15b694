/* See csv.h. A cell in quotes may hold commas and line ends, and two quotes stand for one. */
#include "tools/sagactl/csv.h"

#include <string.h>

static void skip(struct csv *csv, size_t bytes)
{
    csv->rest.ptr += bytes;
    csv->rest.len -= bytes;
}

static struct slice quoted(struct csv *csv)
{
    char *text = arena_alloc(csv->arena, csv->rest.len + 1);
    size_t len = 0;

    skip(csv, 1);
    while (csv->rest.len > 0) {
        char c = csv->rest.ptr[0];

        skip(csv, 1);
        if (c == '"') {
            if (csv->rest.len == 0 || csv->rest.ptr[0] != '"') {
                break;
            }
            skip(csv, 1);
        }
        text[len++] = c;
    }
    return (struct slice){text, len};
}

static struct slice bare(struct csv *csv)
{
    size_t len = 0;

    while (len < csv->rest.len && !strchr(",\r\n", csv->rest.ptr[len])) {
        len++;
    }
    struct slice cell = slice_trim((struct slice){csv->rest.ptr, len});

    skip(csv, len);
    return cell;
}

/* False: nothing is left. An empty line has one empty cell. */
static bool read_row(struct csv *csv, struct slice cells[CSV_COLUMNS_MAX], size_t *count)
{
    *count = 0;
    if (csv->rest.len == 0) {
        return false;
    }
    for (;;) {
        struct slice cell = csv->rest.len > 0 && csv->rest.ptr[0] == '"' ? quoted(csv) : bare(csv);

        if (*count < CSV_COLUMNS_MAX) {
            cells[(*count)++] = cell;
        }
        while (csv->rest.len > 0 && !strchr(",\n", csv->rest.ptr[0])) {
            skip(csv, 1); /* a carriage return, or what stands behind a closing quote */
        }
        if (csv->rest.len == 0 || csv->rest.ptr[0] == '\n') {
            skip(csv, csv->rest.len > 0);
            return true;
        }
        skip(csv, 1);
    }
}

void csv_begin(struct csv *csv, struct slice text, struct arena *arena)
{
    *csv = (struct csv){.rest = text, .arena = arena};
    if (slice_starts_with(text, "\xef\xbb\xbf")) {
        skip(csv, 3);
    }
    (void)read_row(csv, csv->head, &csv->column_count); /* an empty file has no columns */
}

bool csv_next(struct csv *csv, struct slice cells[CSV_COLUMNS_MAX])
{
    size_t count;

    do {
        if (!read_row(csv, cells, &count)) {
            return false;
        }
    } while (count == 1 && cells[0].len == 0);
    csv->row++;
    for (; count < csv->column_count; count++) {
        cells[count] = SLICE("");
    }
    return true;
}

bool csv_find(const struct csv *csv, struct slice name, size_t *column)
{
    for (size_t i = 0; i < csv->column_count; i++) {
        if (slice_equal(csv->head[i], name)) {
            *column = i;
            return true;
        }
    }
    return false;
}
