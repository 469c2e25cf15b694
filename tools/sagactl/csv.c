/* See csv.h. A quoted cell may hold commas and line ends; it writes a quote as two quotes. */
#include "tools/sagactl/csv.h"

#include <string.h>

/* strchr() would find the end of `set` at a NUL byte, which is a byte of a cell like any other. */
static bool is_one_of(char byte, const char *set)
{
    return memchr(set, byte, strlen(set)) != NULL;
}

static void skip(struct csv *csv, size_t bytes)
{
    csv->rest.ptr += bytes;
    csv->rest.len -= bytes;
}

/* Returns the place of the quote that closes the cell; 0 when there is none. */
static size_t closing_quote(struct slice rest)
{
    for (size_t i = 1; i < rest.len; i++) {
        if (rest.ptr[i] == '"') {
            if (i + 1 == rest.len || rest.ptr[i + 1] != '"') {
                return i;
            }
            i++;
        }
    }
    return 0;
}

static struct slice quoted(struct csv *csv)
{
    size_t end = closing_quote(csv->rest), len = 0;
    char *text = arena_alloc(csv->arena, end + 1);

    if (end == 0) {
        csv->fault = "a quote is opened and never closed";
    }
    for (size_t i = 1; i < end; i++) {
        text[len++] = csv->rest.ptr[i];
        i += csv->rest.ptr[i] == '"'; /* skips the first of two quotes */
    }
    skip(csv, end > 0 ? end + 1 : csv->rest.len);
    return (struct slice){text, len};
}

static struct slice bare(struct csv *csv)
{
    size_t len = 0;

    while (len < csv->rest.len && !is_one_of(csv->rest.ptr[len], ",\r\n")) {
        len++;
    }
    struct slice cell = slice_trim((struct slice){csv->rest.ptr, len});

    skip(csv, len);
    return cell;
}

/* Reads a row. Returns false when no row is left. An empty line is a row with one empty cell. */
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
        } else {
            csv->fault = "it has too many columns";
        }
        while (csv->rest.len > 0 && !is_one_of(csv->rest.ptr[0], ",\n")) {
            if (!is_one_of(csv->rest.ptr[0], " \t\r")) { /* a cell that is read by half could name another one */
                csv->fault = "something stands behind the quote that closes a cell";
            }
            skip(csv, 1);
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
    for (size_t i = 0, first; i < csv->column_count; i++) {
        if (csv_find(csv, csv->head[i], &first) && first < i) {
            csv->fault = "a column stands there twice";
        }
    }
}

bool csv_next(struct csv *csv, struct slice cells[CSV_COLUMNS_MAX])
{
    size_t count;

    do {
        if (csv->fault || !read_row(csv, cells, &count)) {
            return false;
        }
    } while (count == 1 && cells[0].len == 0 && !csv->fault);
    csv->row++;
    if (!csv->fault && count > csv->column_count) {
        csv->fault = "it has more cells than the head";
    }
    if (csv->fault) {
        return false;
    }
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
