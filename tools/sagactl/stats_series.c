/* The command stats --since: shows what happened over time in a table that fits on a screen. */
#include <stdio.h>
#include <string.h>

#include "base/instant.h"
#include "tools/sagactl/client.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/query.h"
#include "tools/sagactl/stats.h"

#define LINES_MAX 24
#define MINUTE_MS INT64_C(60000)

enum { FIGURE_COUNT = 12 };
static const char *const figure_names[FIGURE_COUNT] = {
    "started", "completed", "compensated",     "abandoned",    "escalated",     "operations",
    "calls",   "retries",   "calls_completed", "calls_failed", "calls_unknown", "duplicates"};

struct shape {
    const char *by; /* NULL for lines over time */
    const char *titles[10];
    int figures[9];
    unsigned optional;
};
static const struct shape shapes[] = {
    {NULL,
     {"TIME (UTC)", "STARTED", "COMPLETED", "COMPENSATED", "CASES", "CALLS", "RETRIES", "UNKNOWN", "ABANDONED", NULL},
     {0, 1, 2, 4, 6, 7, 10, 3, -1},
     BIT(8)},
    {"saga", {"SAGA", "STARTED", "COMPLETED", "COMPENSATED", "ABANDONED", "CASES", NULL}, {0, 1, 2, 3, 4, -1}, 0},
    {"tool",
     {"TOOL", "CALLS", "RETRIES", "COMPLETED", "FAILED", "UNKNOWN", "NEW", "DUPLICATES", NULL},
     {6, 7, 8, 9, 10, 5, 11, -1},
     0},
};

struct line {
    struct slice name;
    int64_t figures[FIGURE_COUNT];
};

struct drawing {
    struct ctl *ctl;
    const struct shape *shape;
    struct line *lines;
    size_t count, capacity;
    int64_t from_ms, until_ms, step_ms; /* the times of the lines */
};

static struct line *line_add(struct drawing *drawing, struct slice name)
{
    if (drawing->count == drawing->capacity) {
        size_t capacity = drawing->capacity ? 2 * drawing->capacity : 64;
        struct line *larger = arena_array(&drawing->ctl->arena, capacity, sizeof(*larger));

        if (drawing->count) {
            memcpy(larger, drawing->lines, drawing->count * sizeof(*larger));
        }
        drawing->lines = larger;
        drawing->capacity = capacity;
    }
    drawing->lines[drawing->count] = (struct line){.name = name};
    return &drawing->lines[drawing->count++];
}

static struct line *line_named(struct drawing *drawing, struct slice name)
{
    for (size_t i = 0; i < drawing->count; i++) {
        if (slice_equal(drawing->lines[i].name, name)) {
            return &drawing->lines[i];
        }
    }
    return line_add(drawing, name);
}

/* Makes all lines of the stretch, also those in which nothing happened. The step is so long that the lines fit on a
 * screen. */
static void make_times(struct drawing *drawing)
{
    static const int64_t steps[] = {MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, 60 * MINUTE_MS, 360 * MINUTE_MS};
    size_t i = 0;

    while (i < COUNT_OF(steps) && (drawing->until_ms - drawing->from_ms) / steps[i] > LINES_MAX) {
        i++;
    }
    drawing->step_ms = i < COUNT_OF(steps) ? steps[i] : 1440 * MINUTE_MS;
    drawing->from_ms -= drawing->from_ms % drawing->step_ms;
    for (int64_t at = drawing->from_ms; at < drawing->until_ms; at += drawing->step_ms) {
        char text[INSTANT_TEXT_BYTES];

        instant_text(at, text); /* the line shows no year and no seconds: they are cut from 2026-01-31T09:05:00.250Z */
        text[10] = ' ';
        (void)line_add(drawing, arena_slice(&drawing->ctl->arena, (struct slice){text + 5, 11}));
    }
}

static struct line *line_of(struct drawing *drawing, struct slice item)
{
    int64_t at_ms = 0;

    if (drawing->shape->by) {
        return line_named(drawing, show_member(drawing->ctl, item, drawing->shape->by));
    }
    if (!member_instant(item, "at", &at_ms) || at_ms < drawing->from_ms) {
        return NULL;
    }
    size_t place = (size_t)((at_ms - drawing->from_ms) / drawing->step_ms);

    return place < drawing->count ? &drawing->lines[place] : NULL;
}

static void take_page(struct drawing *drawing, struct slice answer)
{
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct slice item;

    while (json_next_element(&walk, &item)) {
        struct line *line = line_of(drawing, item);

        for (int i = 0; line && i < FIGURE_COUNT; i++) {
            int64_t number = 0;

            (void)json_i64(json_member(item, figure_names[i]), &number); /* a missing figure is 0 */
            line->figures[i] += number;
        }
    }
}

static void print_lines(struct drawing *drawing)
{
    const struct shape *shape = drawing->shape;
    struct table table;

    table_init(&table, drawing->ctl, shape->titles);
    table.optional = shape->optional;
    table.flexible = shape->by ? BIT(0) : 0;
    for (size_t i = 0; i < drawing->count; i++) {
        const struct line *line = &drawing->lines[i];
        struct cell *row = table_row(&table);

        row[0].text = line->name;
        for (int k = 0; shape->figures[k] >= 0; k++) {
            int figure = shape->figures[k];
            bool is_trouble = figure == 4 || figure == 10;

            row[k + 1].text = arena_printf(&drawing->ctl->arena, "%lld", (long long)line->figures[figure]);
            row[k + 1].colour = is_trouble && line->figures[figure] > 0 ? COLOUR_RED : COLOUR_NONE;
        }
    }
    table_print(&table, 0);
}

int stats_series(struct ctl *ctl, const char *since, const char *by)
{
    struct drawing drawing = {.ctl = ctl};
    struct buffer path;
    struct answer answer;
    bool first = true;

    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        if (by ? shapes[i].by && strcmp(shapes[i].by, by) == 0 : !shapes[i].by) {
            drawing.shape = &shapes[i];
        }
    }
    if (!drawing.shape) {
        return usage_error(ctl, "--by is saga or tool, not \"%s\"", by);
    }
    buffer_init(&path, 4096);
    if (!query_put_time(ctl, &path, "from", since ? since : "1h")) {
        buffer_fini(&path);
        return EXIT_USAGE;
    }
    struct slice from = arena_slice(&ctl->arena, buffer_slice(&path));

    buffer_fini(&path);
    while (from.ptr) { /* "&from=..." */
        struct slice url = arena_printf(&ctl->arena, "/v1/stats/series?%.*s%s%s", (int)from.len - 1, from.ptr + 1,
                                        by ? "&by=" : "", by ? by : "");
        int code = client_get(ctl, url, &ctl->arena, &answer);

        if (code != EXIT_OK) {
            return code;
        }
        if (ctl->output == OUTPUT_DATA) {
            print_data(ctl, answer.body);
            return EXIT_OK;
        }
        if (first && !by && member_instant(answer.body, "from", &drawing.from_ms) &&
            member_instant(answer.body, "to", &drawing.until_ms)) {
            make_times(&drawing);
        }
        first = false;
        take_page(&drawing, answer.body);
        struct slice next = show_member(ctl, answer.body, "next_from");

        from =
            next.len ? arena_printf(&ctl->arena, "&from=%.*s", SLICE_ARG(url_escape(next, &ctl->arena))) : SLICE_NONE;
    }
    print_lines(&drawing);
    return EXIT_OK;
}
