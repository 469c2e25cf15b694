/* See report.h. */
#include "tools/sagactl/scenario/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/sagactl/output.h"

static struct slice difference_text(struct ctl *ctl, const struct difference *difference)
{
    if (!difference->expected.ptr) {
        return difference->found;
    }
    return arena_printf(&ctl->arena, "expected %.*s, found %.*s", SLICE_ARG(difference->expected),
                        SLICE_ARG(difference->found));
}

static struct slice uncovered_text(struct ctl *ctl, const struct coverage_point *point)
{
    bool is_undo = point->direction == DIRECTION_UNDO;

    return arena_printf(&ctl->arena, "%.*s: %s%s", SLICE_ARG(point->step.ptr ? point->step : SLICE("the saga")),
                        is_undo ? "its undo " : "",
                        is_undo && point->trouble == TROUBLE_UNKNOWN ? "gives no answer"
                                                                     : prove_trouble_text(point->trouble));
}

/* --- TAP --- */

/* Writes a text as a scalar of YAML: between double quotes, which JSON and YAML read alike. */
static void print_scalar(const char *name, struct slice text)
{
    struct buffer out;

    buffer_init(&out, (size_t)1 << 20);
    json_put_string(&out, text);
    (void)printf("      %s: %.*s\n", name, SLICE_ARG(buffer_slice(&out)));
    buffer_fini(&out);
}

/* A `#` would begin a directive of TAP. */
static void print_name(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '#' || text.ptr[i] == '\\') {
            (void)putchar('\\');
        }
        (void)putchar(text.ptr[i]);
    }
}

static void print_differences(const struct played *played)
{
    (void)printf("  ---\n");
    for (size_t i = 0; i < played->difference_count; i++) {
        const struct difference *difference = &played->differences[i];
        struct text_position at = input_position(played->file, difference->pointer);

        (void)printf("    - at: \"%s:%u:%u: %.*s\"\n", played->file->path, at.line, at.column,
                     SLICE_ARG(difference->pointer));
        if (difference->expected.ptr) {
            print_scalar("expected", difference->expected);
            print_scalar("found", difference->found);
        } else {
            print_scalar("why", difference->found);
        }
    }
    (void)printf("  ...\n");
}

static void print_coverage(struct ctl *ctl, const struct report *report)
{
    for (size_t i = 0; i < report->coverage_count; i++) {
        const struct coverage *coverage = &report->coverage[i];
        bool is_whole = coverage->covered_count == coverage->count;

        (void)printf("# %.*s: its scenarios go through %zu of %zu failure points%s\n",
                     SLICE_ARG(coverage->definition->name), coverage->covered_count, coverage->count,
                     is_whole || report->names_uncovered ? "" : "; --coverage names the others");
        for (size_t k = 0; report->names_uncovered && k < coverage->count; k++) {
            if (!coverage->points[k].is_covered) {
                (void)printf("#   no scenario: %.*s\n", SLICE_ARG(uncovered_text(ctl, &coverage->points[k])));
            }
        }
    }
}

void report_tap(struct ctl *ctl, const struct report *report)
{
    (void)printf("TAP version 14\n1..%zu\n", report->count);
    for (size_t i = 0; i < report->count; i++) {
        const struct played *played = &report->items[i];
        bool good = played->difference_count == 0;

        (void)printf("%s%sok%s %zu - %.*s: ", colour_on(ctl, good ? COLOUR_GREEN : COLOUR_RED), good ? "" : "not ",
                     colour_off(ctl, COLOUR_GREEN), i + 1, SLICE_ARG(played->scenario->saga));
        print_name(played->scenario->name);
        (void)putchar('\n');
        if (!good) {
            print_differences(played);
        }
    }
    print_coverage(ctl, report);
    (void)printf("# %zu scenario%s, %zu failed, in %.*s\n", report->count, report->count == 1 ? "" : "s",
                 report->failed, SLICE_ARG(show_duration(ctl, report->took_us / 1000)));
}

/* --- JSON --- */

static void write_played(struct json_writer *w, const struct played *played)
{
    json_object_begin(w, NULL);
    json_write_slice(w, "saga", played->scenario->saga);
    json_write_slice(w, "name", played->scenario->name);
    json_write_text(w, "file", played->file->path);
    json_write_bool(w, "ok", played->difference_count == 0);
    json_array_begin(w, "differences");
    for (size_t i = 0; i < played->difference_count; i++) {
        json_object_begin(w, NULL);
        json_write_slice(w, "at", played->differences[i].pointer);
        json_write_slice(w, "expected", played->differences[i].expected);
        json_write_slice(w, "found", played->differences[i].found);
        json_object_end(w);
    }
    json_array_end(w);
    json_object_end(w);
}

static void write_coverage(struct json_writer *w, const struct coverage *coverage)
{
    json_object_begin(w, NULL);
    json_write_slice(w, "saga", coverage->definition->name);
    json_write_i64(w, "points", (int64_t)coverage->count);
    json_write_i64(w, "covered", (int64_t)coverage->covered_count);
    json_array_begin(w, "uncovered");
    for (size_t i = 0; i < coverage->count; i++) {
        const struct coverage_point *point = &coverage->points[i];

        if (!point->is_covered) {
            json_object_begin(w, NULL);
            json_write_slice(w, "step", point->step);
            json_write_text(w, "direction", direction_name(point->direction));
            json_write_text(w, "happens", prove_trouble_name(point->trouble));
            json_object_end(w);
        }
    }
    json_array_end(w);
    json_object_end(w);
}

void report_json(struct ctl *ctl, const struct report *report)
{
    struct json_writer w;
    struct buffer out;

    buffer_init(&out, (size_t)256 << 20);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_array_begin(&w, "items");
    for (size_t i = 0; i < report->count; i++) {
        write_played(&w, &report->items[i]);
    }
    json_array_end(&w);
    json_array_begin(&w, "coverage");
    for (size_t i = 0; i < report->coverage_count; i++) {
        write_coverage(&w, &report->coverage[i]);
    }
    json_array_end(&w);
    json_object_end(&w);
    print_data(ctl, buffer_slice(&out));
    buffer_fini(&out);
}

/* --- JUnit --- */

static void put_xml(struct buffer *out, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        switch (c) {
        case '<':
            buffer_put_text(out, "&lt;");
            break;
        case '>':
            buffer_put_text(out, "&gt;");
            break;
        case '&':
            buffer_put_text(out, "&amp;");
            break;
        case '"':
            buffer_put_text(out, "&quot;");
            break;
        default: /* XML 1.0 has no control characters but these */
            buffer_put_char(out, c >= ' ' || c == '\n' || c == '\t' ? (char)c : '?');
            break;
        }
    }
}

static void put_case(struct ctl *ctl, struct buffer *out, const struct played *played)
{
    buffer_put_text(out, "    <testcase classname=\"");
    put_xml(out, played->scenario->saga);
    buffer_put_text(out, "\" name=\"");
    put_xml(out, played->scenario->name);
    buffer_printf(out, "\" time=\"%.6f\"", (double)played->took_us / 1e6);
    if (played->difference_count == 0) {
        buffer_put_text(out, "/>\n");
        return;
    }
    buffer_put_text(out, ">\n      <failure message=\"");
    put_xml(out, difference_text(ctl, &played->differences[0]));
    buffer_put_text(out, "\">");
    for (size_t i = 0; i < played->difference_count; i++) {
        put_xml(out, played->differences[i].pointer);
        buffer_put_text(out, ": ");
        put_xml(out, difference_text(ctl, &played->differences[i]));
        buffer_put_char(out, '\n');
    }
    buffer_put_text(out, "</failure>\n    </testcase>\n");
}

bool report_junit(struct ctl *ctl, const struct report *report, const char *path)
{
    struct buffer out;
    FILE *file = fopen(path, "w");
    bool good = file != NULL;

    buffer_init(&out, (size_t)256 << 20);
    buffer_printf(&out,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
                  "  <testsuite name=\"scenarios\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" time=\"%.6f\">\n",
                  report->count, report->failed, (double)report->took_us / 1e6);
    for (size_t i = 0; i < report->count; i++) {
        put_case(ctl, &out, &report->items[i]);
    }
    buffer_put_text(&out, "  </testsuite>\n</testsuites>\n");
    good = good && fwrite(out.ptr, 1, out.len, file) == out.len;
    good = (!file || fclose(file) == 0) && good;
    buffer_fini(&out);
    if (!good) {
        (void)fprintf(stderr, "sagactl: %s cannot be written: %s\n", path, strerror(errno));
    }
    return good;
}
