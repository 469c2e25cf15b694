/* Figures over time, as in migration 0021. */
#include "tests/sim/pg_statements.h"

#include <stdlib.h>

#define HOUR_MS INT64_C(3600000)

static const struct row_series first = {
    .namespace = {"", 0}, .span = INT16_MIN, .at_ms = INT64_MIN, .kind = {"", 0}, .name = {"", 0}};

enum pg_progress pg_statement_series_add(struct pg_call *call)
{
    int64_t affected = 0;

    for (size_t i = 0; i < arg_count(call, 2); i++) {
        struct row_series row = {.namespace = pg_keep(call, item_bytes(call, 2, i)),
                                 .span = 1,
                                 .at_ms = arg_time_ms(call, 1),
                                 .kind = pg_keep(call, item_bytes(call, 3, i)),
                                 .name = pg_keep(call, item_bytes(call, 4, i)),
                                 .part = arg_uuid(call, 0)};
        bool inserted = false;

        for (size_t k = 0; k < ROW_FIGURES; k++) {
            row.figures[k] = item_int(call, (int)(5 + k), i);
        }
        RETURN_UNLESS_DONE(pg_insert_new(call, PG_SERIES, &row, &inserted));
        affected += inserted;
    }
    return end_with_affected(call, affected);
}

static enum pg_progress put_hour(struct pg_call *call, struct pg_touched *touched, const struct row_series *hour)
{
    struct pg_row *row;
    const void *current;

    RETURN_UNLESS_DONE(pg_insert_or_lock(call, PG_SERIES, hour, touched, &row, &current));
    if (current) {
        struct row_series sum = *(const struct row_series *)current;

        for (size_t k = 0; k < ROW_FIGURES; k++) {
            sum.figures[k] += hour->figures[k];
        }
        pg_update(call, row, &sum);
    }
    return PG_DONE;
}

static int compare_hours(const void *a, const void *b)
{
    const struct row_series *x = a, *y = b;
    int order = slice_compare(x->namespace, y->namespace);

    order = order ? order : (x->at_ms > y->at_ms) - (x->at_ms < y->at_ms);
    order = order ? order : slice_compare(x->kind, y->kind);
    return order ? order : slice_compare(x->name, y->name);
}

/* Rolls up rows. The rows of one hour, name and kind are adjacent only within a minute, so all are summed up first.
 * Rows are found by their place: one that somebody has written meanwhile has another place, and stays, here and below.
 */
enum pg_progress pg_statement_series_roll(struct pg_call *call)
{
    struct pg_touched touched = {0};
    struct row_series *hours = arena_array(call->arena, (size_t)arg_int(call, 1) + 1, sizeof(*hours));
    size_t hour_count = 0;
    int64_t count = 0;

    for (struct pg_row *row = pg_first(call, PG_SERIES, &first), *next; row; row = next) {
        const struct row_series *seen = pg_see(call, row);
        const void *current = NULL;

        next = pg_next(call, PG_SERIES, row);
        if (!seen || seen->span != 1 || seen->at_ms >= arg_time_ms(call, 0) ||
            !pg_lock_if_free(call, row, PG_UPDATE, &current) || current != seen) {
            continue;
        }
        struct row_series hour = *(const struct row_series *)current;
        size_t i = 0;

        pg_delete(call, row);
        count++;
        hour.span = 60;
        hour.at_ms -= hour.at_ms % HOUR_MS;
        hour.part = (struct uuid){0};
        while (i < hour_count && compare_hours(&hours[i], &hour) != 0) {
            i++;
        }
        if (i == hour_count) {
            hours[hour_count++] = hour;
            continue;
        }
        for (size_t k = 0; k < ROW_FIGURES; k++) {
            hours[i].figures[k] += hour.figures[k];
        }
    }
    if (hour_count > 1) { /* in which order hours are locked decides who waits for whom */
        qsort(hours, hour_count, sizeof(*hours), compare_hours);
    }
    for (size_t i = 0; i < hour_count; i++) {
        struct row_series *hour = arena_alloc(call->arena, sizeof(*hour));

        *hour = hours[i];
        RETURN_UNLESS_DONE(put_hour(call, &touched, hour));
    }
    put_int(call, count);
    return end_with_row(call);
}

enum pg_progress pg_statement_series_drop(struct pg_call *call)
{
    int64_t count = 0;

    for (struct pg_row *row = pg_first(call, PG_SERIES, &first), *next; row; row = next) {
        const struct row_series *seen = pg_see(call, row);
        const void *current = NULL;

        next = pg_next(call, PG_SERIES, row);
        if (seen && seen->span == 60 && seen->at_ms < arg_time_ms(call, 0) &&
            pg_lock_if_free(call, row, PG_UPDATE, &current) && current == seen) {
            pg_delete(call, row);
            count++;
        }
    }
    put_int(call, count);
    return end_with_row(call);
}

/* --- the question --- */

struct line {
    int64_t at_ms;
    struct slice name;
    int64_t figures[ROW_FIGURES];
};

static bool is_asked_for(struct pg_call *call, const struct row_series *row)
{
    return (row->span == 1 || arg_int(call, 1)) && slice_equal(row->namespace, arg_bytes(call, 0)) &&
           row->at_ms >= arg_time_ms(call, 2) && row->at_ms < arg_time_ms(call, 3) &&
           (!arg_bytes(call, 4).ptr || slice_equal(row->kind, arg_bytes(call, 4))) &&
           (!arg_bytes(call, 5).ptr || slice_equal(row->name, arg_bytes(call, 5)));
}

static struct line line_of(struct pg_call *call, const struct row_series *row)
{
    return (struct line){.at_ms = arg_int(call, 1) ? row->at_ms - row->at_ms % HOUR_MS : row->at_ms,
                         .name = arg_bytes(call, 4).ptr ? row->name : SLICE("")};
}

static int compare(const struct line *a, const struct line *b)
{
    return a->at_ms != b->at_ms ? (a->at_ms > b->at_ms) - (a->at_ms < b->at_ms) : slice_compare(a->name, b->name);
}

/* Finds the first line behind `after`, or the first of all when `after` is NULL, with all that belongs to it. Returns
 * false when there is none. */
static bool next_line(struct pg_call *call, const struct line *after, struct line *out)
{
    bool found = false;

    for (struct pg_row *row = pg_first(call, PG_SERIES, &first); row; row = pg_next(call, PG_SERIES, row)) {
        const struct row_series *series = pg_see(call, row);

        if (!series || !is_asked_for(call, series)) {
            continue;
        }
        struct line line = line_of(call, series);

        if ((after && compare(&line, after) <= 0) || (found && compare(&line, out) > 0)) {
            continue;
        }
        if (!found || compare(&line, out) < 0) {
            *out = line;
            found = true;
        }
        for (size_t k = 0; k < ROW_FIGURES; k++) {
            out->figures[k] += series->figures[k];
        }
    }
    return found;
}

enum pg_progress pg_statement_series_list(struct pg_call *call)
{
    struct line line, last;

    for (int64_t left = arg_int(call, 6); left > 0; left--) {
        if (!next_line(call, left < arg_int(call, 6) ? &last : NULL, &line)) {
            break;
        }
        put_time_ms(call, line.at_ms);
        put_bytes(call, line.name);
        for (size_t k = 0; k < ROW_FIGURES; k++) {
            put_int(call, line.figures[k]);
        }
        put_row_end(call);
        last = line;
    }
    return PG_DONE;
}
