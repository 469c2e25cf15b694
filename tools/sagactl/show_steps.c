/*
 * Draws one line for each step, with its undo beside it, so that an effect and its undo share one time axis. When the
 * terminal is too narrow, first the tries are left out, then the tools, then the bars. Texts (errors, waits) have lines
 * of their own below.
 */
#include "tools/sagactl/show_steps.h"

#include <stdio.h>
#include <string.h>

#include "base/instant.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/saga_end.h"
#include "tools/sagactl/show_tree.h"

#define BAR_MIN 10
#define BAR_MAX 48
#define NAME_MIN 12

struct column {
    size_t width;
    bool shown;
};

enum { COLUMN_NAME, COLUMN_TOOL, COLUMN_STATUS, COLUMN_TRIES, COLUMN_BAR, COLUMN_TOOK, COLUMN_UNDO, COLUMN_COUNT };

struct view {
    const struct timeline *of;
    struct ctl *ctl;
    struct tree tree;
    int64_t begin_ms, end_ms;
    size_t width;
    struct column columns[COLUMN_COUNT];
};

/* --- what stands in a line --- */

static const char *mark_of(struct slice status)
{
    static const char *const marks[][2] = {
        {"completed", "✓"}, {"compensated", "↺"}, {"compensating", "↺"}, {"failed", "✗"},  {"compensation_failed", "✗"},
        {"unknown", "?"},   {"running", "▸"},     {"retrying", "▸"},     {"skipped", "–"}, {"waiting", "⧖"},
    };

    for (size_t i = 0; i < COUNT_OF(marks); i++) {
        if (slice_is(status, marks[i][0])) {
            return marks[i][1];
        }
    }
    return "·";
}

static bool is_kind(struct slice step, const char *kind)
{
    return json_string_is(json_member(step, "kind"), kind);
}

/* Returns the work of the step: the tool that it calls, or its kind. */
static struct slice work_of(const struct view *view, const struct row *row)
{
    struct slice tool = show_member(view->ctl, row->step, "tool"), kind = show_member(view->ctl, row->step, "kind");

    if (row->is_group && is_kind(row->step, "for_each")) {
        return arena_printf(&view->ctl->arena, "for each of %u", row->member_count);
    }
    if (tool.len > 0) {
        return tool;
    }
    return slice_is(kind, "for_each")  ? SLICE("for each")
           : slice_is(kind, "saga")    ? SLICE("child saga")
           : slice_is(kind, "signal")  ? SLICE("wait for signal")
           : slice_is(kind, "approve") ? SLICE("approval")
                                       : kind;
}

static struct slice tries_of(const struct view *view, struct slice object)
{
    int64_t attempts = 0, unsent = 0;

    (void)json_i64(json_member(object, "unsent"),
                   &unsent); /* absent in older engines, which count unsent tries as attempts */
    if (!json_i64(json_member(object, "attempts"), &attempts) || attempts + unsent < 1) {
        return SLICE("");
    }
    if (unsent > 0) {
        return arena_printf(&view->ctl->arena, "%lld (%lld unsent)", (long long)attempts, (long long)unsent);
    }
    return arena_printf(&view->ctl->arena, "%lld", (long long)attempts);
}

struct span {
    int64_t from_ms, to_ms;
    bool is_set, goes_on;
};

static struct span span_of(const struct view *view, struct slice object)
{
    struct span span = {0};

    span.is_set = member_instant(object, "started_at", &span.from_ms);
    if (span.is_set && !member_instant(object, "ended_at", &span.to_ms)) {
        span.goes_on = true;
        span.to_ms = view->end_ms;
    }
    return span;
}

static struct slice took(const struct view *view, struct slice object)
{
    struct span span = span_of(view, object);

    return span.is_set && !span.goes_on ? show_duration(view->ctl, span.to_ms - span.from_ms) : SLICE("");
}

static struct slice undo_of(struct slice step)
{
    struct slice undo = json_member(step, "compensation");

    return json_type(undo) == JSON_OBJECT ? undo : SLICE_NONE;
}

/* Returns "2. compensated, 3 tries, 120 ms": the place in the plan and how the undo went. */
static struct slice undo_text(const struct view *view, struct slice step)
{
    struct ctl *ctl = view->ctl;
    struct slice undo = undo_of(step), status = show_member(ctl, undo, "status"), time = took(view, undo), said;
    int64_t order = 0, attempts = 0;
    struct buffer text;

    if (!undo.ptr || status.len == 0) {
        return SLICE("");
    }
    buffer_init(&text, 4096);
    if (json_i64(json_member(undo, "order"), &order) && order > 0) {
        buffer_printf(&text, "%lld. ", (long long)order);
    }
    /* "completed" beside an undo would read as if the step had completed. */
    buffer_printf(&text, "%.*s", SLICE_ARG(slice_is(status, "completed") ? SLICE("undone") : status));
    if (json_i64(json_member(undo, "attempts"), &attempts) && attempts > 1) {
        buffer_printf(&text, ", %lld tries", (long long)attempts);
    }
    if (time.len > 0) {
        buffer_printf(&text, ", %.*s", SLICE_ARG(time));
    }
    said = arena_slice(&ctl->arena, buffer_slice(&text));
    buffer_fini(&text);
    return said;
}

static enum colour undo_colour(struct slice step)
{
    struct slice status = json_member(undo_of(step), "status");

    return json_string_is(status, "failed") || json_string_is(status, "unknown") ? COLOUR_RED : COLOUR_YELLOW;
}

static struct slice cell_of(const struct view *view, const struct line *line, int column)
{
    const struct row *row = &view->tree.rows[line->row];

    switch (column) {
    case COLUMN_NAME:
        return arena_printf(&view->ctl->arena, "%.*s%s %.*s", SLICE_ARG(line->prefix), mark_of(row->status),
                            SLICE_ARG(row->name));
    case COLUMN_TOOL:
        return work_of(view, row);
    case COLUMN_STATUS:
        return row->status;
    case COLUMN_TRIES:
        return tries_of(view, row->step);
    case COLUMN_TOOK:
        return took(view, row->step);
    case COLUMN_UNDO:
        return undo_text(view, row->step);
    default:
        return SLICE("");
    }
}

/* --- widths --- */

static const char *const titles[COLUMN_COUNT] = {"  STEP", "TOOL", "STATUS", "TRIES", "", "TOOK", "UNDO"};

static size_t taken(const struct view *view)
{
    size_t width = 2;

    for (int c = 0; c < COLUMN_COUNT; c++) {
        width += view->columns[c].shown ? view->columns[c].width + 2 : 0;
    }
    return width;
}

static void measure(struct view *view)
{
    for (int c = 0; c < COLUMN_COUNT; c++) {
        struct column *column = &view->columns[c];

        *column = (struct column){0, c == COLUMN_NAME || c == COLUMN_STATUS};
        for (size_t i = 0; i < view->tree.line_count; i++) {
            size_t width = view->tree.lines[i].row == ROW_NONE ? 0 : text_width(cell_of(view, &view->tree.lines[i], c));

            column->width = width > column->width ? width : column->width;
            column->shown = column->shown || width > 0;
        }
        if (column->width < strlen(titles[c])) {
            column->width = strlen(titles[c]);
        }
    }
}

static void fit(struct view *view)
{
    struct column *columns = view->columns;

    measure(view);
    columns[COLUMN_BAR] = (struct column){BAR_MIN, view->end_ms > view->begin_ms};
    static const int goes_first[] = {COLUMN_TRIES, COLUMN_TOOL, COLUMN_BAR};

    for (size_t i = 0; i < COUNT_OF(goes_first) && taken(view) > view->width; i++) {
        columns[goes_first[i]].shown = false;
    }
    if (taken(view) > view->width && columns[COLUMN_NAME].width > NAME_MIN) {
        size_t over = taken(view) - view->width, room = columns[COLUMN_NAME].width - NAME_MIN;

        columns[COLUMN_NAME].width -= over < room ? over : room;
    }
    if (columns[COLUMN_BAR].shown) {
        size_t room = view->width - taken(view) + BAR_MIN;

        columns[COLUMN_BAR].width = room < BAR_MAX ? room : BAR_MAX;
    }
}

/* --- bars --- */

/* Returns the cells from..to that a span covers on an axis of `width`; at least one cell. */
static void cells_of(const struct view *view, const struct span *span, size_t width, size_t *from, size_t *to)
{
    int64_t total = view->end_ms - view->begin_ms, last = (int64_t)width - 1;
    int64_t a = (span->from_ms - view->begin_ms) * (int64_t)width / total;
    int64_t b = ((span->to_ms - view->begin_ms) * (int64_t)width + total - 1) / total - 1;

    a = a < 0 ? 0 : a > last ? last : a;
    b = b < a ? a : b > last ? last : b;
    *from = (size_t)a;
    *to = (size_t)b;
}

static bool only_waits(const struct row *row)
{
    return is_kind(row->step, "sleep") || is_kind(row->step, "signal") || is_kind(row->step, "approve");
}

static void print_bar(const struct view *view, const struct row *row, size_t width)
{
    struct span done = span_of(view, row->step), undone = span_of(view, undo_of(row->step));
    size_t from[2] = {1, 1}, to[2] = {0, 0};
    enum colour now = COLOUR_NONE;

    if (done.is_set) {
        cells_of(view, &done, width, &from[0], &to[0]);
    }
    if (undone.is_set) {
        cells_of(view, &undone, width, &from[1], &to[1]);
    }
    for (size_t i = 0; i < width; i++) {
        bool undo = undone.is_set && i >= from[1] && i <= to[1], body = done.is_set && i >= from[0] && i <= to[0];
        enum colour colour = undo ? undo_colour(row->step) : body ? status_colour(row->status) : COLOUR_DIM;

        if (colour != now) {
            (void)fputs(colour_off(view->ctl, now), stdout);
            (void)fputs(colour_on(view->ctl, colour), stdout);
            now = colour;
        }
        (void)fputs(undo ? "▒" : !body ? "·" : row->is_group ? "━" : only_waits(row) ? "─" : "█", stdout);
    }
    (void)fputs(colour_off(view->ctl, now), stdout);
}

static struct slice axis_title(const struct view *view, size_t width)
{
    struct slice total = show_duration(view->ctl, view->end_ms - view->begin_ms);
    size_t gap = width > total.len + 1 ? width - total.len - 1 : 0;

    return arena_printf(&view->ctl->arena, "0%*s%.*s", (int)gap, "", SLICE_ARG(total));
}

/* --- what needs words --- */

static struct slice note_of(const struct view *view, struct slice step)
{
    struct slice took_effect = show_member(view->ctl, step, "took_effect"), error = error_of(view->ctl, step);

    if (slice_is(took_effect, "maybe") && error.len == 0 && json_string_is(json_member(step, "status"), "running")) {
        return SLICE(""); /* a step that may be repeated needs no remark */
    }
    if (slice_is(took_effect, "maybe")) {
        return arena_printf(&view->ctl->arena, "may have taken effect%s%.*s", error.len ? ": " : "", SLICE_ARG(error));
    }
    if (slice_is(took_effect, "before")) {
        return SLICE("was so before");
    }
    return error;
}

static struct slice operation_of(struct slice operations, struct slice key)
{
    struct json_walk walk = json_walk(operations);
    struct slice operation;

    while (json_type(operations) == JSON_ARRAY && json_next_element(&walk, &operation)) {
        if (slice_equal(json_member(operation, "key"), key)) {
            return operation;
        }
    }
    return SLICE_NONE;
}

/* Writes the remarks: the scope, duplicates, and what to know about the outcome. */
static void put_remarks(const struct view *view, struct slice step, struct buffer *text)
{
    struct slice operation = operation_of(view->of->operations, json_member(step, "key")), note = note_of(view, step);
    struct slice scope = show_member(view->ctl, operation, "scope");
    int64_t duplicates = 0, generation = 0;

    if (scope.len > 0) {
        buffer_printf(text, "scope %.*s", SLICE_ARG(scope));
    }
    if (json_i64(json_member(operation, "generation"), &generation) && generation > 0) {
        buffer_printf(text, "%sdone again, generation %lld", text->len ? ", " : "", (long long)generation);
    }
    if (json_i64(json_member(operation, "duplicates_seen"), &duplicates) && duplicates > 0) {
        buffer_printf(text, "%s%lld duplicate%s", text->len ? ", " : "", (long long)duplicates,
                      duplicates == 1 ? "" : "s");
    }
    if (note.len > 0) {
        buffer_printf(text, "%s%.*s", text->len ? "; " : "", SLICE_ARG(note));
    }
}

static void put_due(const struct view *view, struct slice step, const char *before, struct buffer *text)
{
    int64_t due_ms = 0;

    if (member_instant(step, "due_at", &due_ms)) {
        int64_t left_ms = due_ms - now_ms();

        buffer_printf(text, "%s%.*s (%s%.*s%s)", before, SLICE_ARG(show_member(view->ctl, step, "due_at")),
                      left_ms > 0 ? "in " : "", SLICE_ARG(show_duration(view->ctl, left_ms > 0 ? left_ms : -left_ms)),
                      left_ms > 0 ? "" : " ago");
    }
}

static bool is_breaker(struct slice waits)
{
    return json_type(waits) == JSON_OBJECT && json_string_is(json_member(waits, "kind"), "breaker");
}

static void put_close(struct ctl *ctl, struct slice waits, struct buffer *text)
{
    buffer_printf(text, "sagactl breaker %.*s closed --note TEXT", SLICE_ARG(show_member(ctl, waits, "tool")));
}

/* Returns "the breaker of card.pay is open since 02:14:00, by ops: the bank is down; a person closes it". */
static struct slice breaker_of(struct ctl *ctl, struct slice waits)
{
    struct slice by = json_member(waits, "opened_by"), closes = show_member(ctl, waits, "closes");
    struct slice text =
        arena_printf(&ctl->arena, "the breaker of %.*s is open", SLICE_ARG(show_member(ctl, waits, "tool")));
    int64_t ms = 0, now = now_ms();

    if (member_instant(waits, "since", &ms)) {
        char since[INSTANT_TEXT_BYTES] = "";

        instant_text(ms, since);
        text = arena_printf(&ctl->arena, "%.*s since %.8s", SLICE_ARG(text), since + sizeof("2026-01-01T") - 1);
    }
    if (json_type(by) == JSON_OBJECT) {
        text = arena_printf(&ctl->arena, "%.*s, by %.*s: %.*s", SLICE_ARG(text),
                            SLICE_ARG(show_member(ctl, by, "actor")), SLICE_ARG(show_member(ctl, by, "note")));
    }
    if (slice_is(closes, "person")) {
        return arena_printf(&ctl->arena, "%.*s; a person closes it", SLICE_ARG(text));
    }
    ms = now;
    (void)member_instant(waits, "until", &ms); /* without it: now */
    return arena_printf(&ctl->arena, "%.*s; %s closes it, tried %s%.*s", SLICE_ARG(text),
                        slice_is(closes, "test") ? "the test of the tool" : "a call that goes well",
                        ms > now ? "in " : "now", SLICE_ARG(ms > now ? show_duration(ctl, ms - now) : SLICE("")));
}

/* Writes what the step waits for, and until when. */
static void put_wait(const struct view *view, struct slice step, struct buffer *text)
{
    struct ctl *ctl = view->ctl;
    struct slice waits = json_member(step, "waits_for"), signal = show_member(ctl, waits, "signal"),
                 approval = show_member(ctl, waits, "approval");

    if (json_type(waits) != JSON_OBJECT) {
        if (json_type(json_member(step, "held")) == JSON_OBJECT ||
            json_type(json_member(step, "trying")) == JSON_OBJECT) {
            buffer_put_slice(text, trying_of(ctl, step));
        } else if (json_string_is(json_member(step, "status"), "retrying")) {
            put_due(view, step, "next attempt ", text);
        }
        return;
    }
    if (is_breaker(waits)) {
        buffer_put_slice(text, breaker_of(ctl, waits));
    } else if (signal.len > 0) {
        buffer_printf(text, "waits for the signal %.*s", SLICE_ARG(signal));
        put_due(view, step, ", until ", text);
    } else if (approval.len > 0) {
        buffer_printf(text, "waits for approval %.*s", SLICE_ARG(approval));
        put_due(view, step, ", until ", text);
    } else {
        put_due(view, step, "sleeps until ", text);
    }
}

/* Writes the command that ends the wait. */
static void put_command(const struct view *view, struct slice step, struct buffer *text)
{
    struct ctl *ctl = view->ctl;
    struct slice waits = json_member(step, "waits_for"), signal = show_member(ctl, waits, "signal"),
                 approval = show_member(ctl, waits, "approval");

    if (is_breaker(waits)) {
        put_close(ctl, waits, text);
    } else if (signal.len > 0) {
        buffer_printf(text, "sagactl signal %.*s %.*s --payload JSON",
                      SLICE_ARG(show_member(ctl, view->of->saga, "id")), SLICE_ARG(signal));
    } else if (approval.len > 0) {
        buffer_printf(text, "sagactl approve %.*s --note TEXT", SLICE_ARG(approval));
    }
}

/* Writes who decided an approval, which the result tells. */
static void put_decision(const struct view *view, struct slice step, struct buffer *text)
{
    struct slice result = json_member(step, "result"), note = show_member(view->ctl, result, "note");

    if (is_kind(step, "approve") && json_type(result) == JSON_OBJECT) {
        buffer_printf(text, "approved by %.*s%s%.*s", SLICE_ARG(show_member(view->ctl, result, "actor")),
                      note.len ? ": " : "", SLICE_ARG(note));
    }
}

/* Writes the breaker that keeps an undo from beginning. */
static void put_undo_wait(const struct view *view, struct slice step, struct buffer *text)
{
    struct slice waits = json_member(undo_of(step), "waits_for");

    if (undo_of(step).ptr && is_breaker(waits)) {
        buffer_printf(text, "undo: %.*s", SLICE_ARG(breaker_of(view->ctl, waits)));
    }
}

static void put_undo_command(const struct view *view, struct slice step, struct buffer *text)
{
    struct slice waits = json_member(undo_of(step), "waits_for");

    if (undo_of(step).ptr && is_breaker(waits)) {
        put_close(view->ctl, waits, text);
    }
}

static void put_undo_error(const struct view *view, struct slice step, struct buffer *text)
{
    struct slice error = error_of(view->ctl, undo_of(step)), trying = trying_of(view->ctl, undo_of(step));

    if (undo_of(step).ptr && (error.len > 0 || trying.len > 0)) {
        buffer_printf(text, "undo: %.*s%s%.*s", SLICE_ARG(error), error.len && trying.len ? "; " : "",
                      SLICE_ARG(trying));
    }
}

static void print_words(const struct view *view, const struct line *line)
{
    static void (*const parts[])(const struct view *, struct slice, struct buffer *) = {
        put_remarks, put_wait, put_command, put_decision, put_undo_error, put_undo_wait, put_undo_command};
    const struct row *row = &view->tree.rows[line->row];

    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        struct buffer text;

        buffer_init(&text, 1 << 20);
        parts[i](view, row->step, &text);
        if (text.len > 0) {
            (void)printf("  %.*s%s  ", SLICE_ARG(line->below), row->is_group ? "│" : " ");
            if (parts[i] == put_command ||
                parts[i] == put_undo_command) { /* a command stays in one piece, so that it can be copied */
                (void)printf("  %.*s\n", SLICE_ARG(buffer_slice(&text)));
            } else {
                print_wrapped(buffer_slice(&text), 5 + text_width(line->below), view->width);
            }
        }
        buffer_fini(&text);
    }
}

/* --- printing --- */

static void pad(size_t width, size_t used)
{
    (void)printf("%*s", (int)(width > used ? width - used : 0) + 2, "");
}

static void print_titles(const struct view *view)
{
    int last = COLUMN_COUNT - 1;

    while (!view->columns[last].shown) {
        last--;
    }
    (void)printf("  %s", colour_on(view->ctl, COLOUR_DIM));
    for (int c = 0; c <= last; c++) {
        const struct column *column = &view->columns[c];
        struct slice title = c == COLUMN_BAR ? axis_title(view, column->width) : slice_of(titles[c]);

        if (column->shown) {
            (void)printf("%.*s", SLICE_ARG(title));
            if (c < last) {
                pad(column->width, text_width(title));
            }
        }
    }
    (void)printf("%s\n", colour_off(view->ctl, COLOUR_DIM));
}

static enum colour colour_of(const struct row *row, int column)
{
    return column == COLUMN_NAME     ? (row->is_group ? COLOUR_BOLD : COLOUR_NONE)
           : column == COLUMN_STATUS ? status_colour(row->status)
           : column == COLUMN_UNDO   ? undo_colour(row->step)
                                     : COLOUR_NONE;
}

static int last_of(const struct view *view, const struct line *line) /* removes blanks at the end of a line */
{
    int last = COLUMN_COUNT - 1;

    while (last > 0 && (!view->columns[last].shown || (last != COLUMN_BAR && cell_of(view, line, last).len == 0))) {
        last--;
    }
    return last;
}

static void print_line(const struct view *view, const struct line *line)
{
    if (line->row == ROW_NONE) {
        (void)printf("  %.*s%s%.*s%s\n", SLICE_ARG(line->prefix), colour_on(view->ctl, COLOUR_DIM),
                     SLICE_ARG(line->text), colour_off(view->ctl, COLOUR_DIM));
        return;
    }
    const struct row *row = &view->tree.rows[line->row];
    int last = last_of(view, line);

    (void)fputs("  ", stdout);
    for (int c = 0; c <= last; c++) {
        const struct column *column = &view->columns[c];

        if (!column->shown) {
            continue;
        }
        if (c == COLUMN_BAR) {
            print_bar(view, row, column->width);
            (void)fputs(c < last ? "  " : "", stdout);
            continue;
        }
        struct slice cell = cell_of(view, line, c);
        enum colour colour = colour_of(row, c);

        if (c == COLUMN_NAME) {
            cell = text_cut(view->ctl, cell, column->width);
        }
        (void)printf("%s%.*s%s", colour_on(view->ctl, colour), SLICE_ARG(cell), colour_off(view->ctl, colour));
        if (c < last) {
            pad(column->width, text_width(cell));
        }
    }
    (void)putchar('\n');
    print_words(view, line);
}

void show_steps(const struct timeline *timeline)
{
    struct view view = {.of = timeline, .ctl = timeline->ctl, .width = terminal_width()};

    view.end_ms = now_ms();
    (void)member_instant(timeline->saga, "created_at", &view.begin_ms);
    (void)member_instant(timeline->saga, "ended_at", &view.end_ms);
    tree_grow(&view.tree, timeline);
    if (view.tree.line_count == 0) {
        return;
    }
    fit(&view);
    print_titles(&view);
    for (size_t i = 0; i < view.tree.line_count; i++) {
        print_line(&view, &view.tree.lines[i]);
    }
}
