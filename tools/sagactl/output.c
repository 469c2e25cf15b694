/* Writes data to stdout and messages to stderr. Text from outside never reaches a terminal with its control
 * characters. */
#include "tools/sagactl/output.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/instant.h"
#include "base/utf8.h"
#include "io/process/jq.h"
#include "tools/sagactl/saga_end.h"
#include "tools/sagactl/yaml_text.h"

#define SAID_BYTES_MAX 240 /* the most bytes of a receiver's answer beside the sentence */
#define ESCAPED_BYTES 6    /* "\\u202e" */
#define COLUMN_LEAST 6     /* the least width of a cut column */
#define JQ_MS_MAX 10000    /* the time limit of one --jq program */
#define JQ_BYTES_MAX (64 << 20)

const char *colour_on(const struct ctl *ctl, enum colour colour)
{
    static const char *const codes[] = {
        [COLOUR_NONE] = "",          [COLOUR_BOLD] = "\033[1m",    [COLOUR_DIM] = "\033[2m",  [COLOUR_RED] = "\033[31m",
        [COLOUR_GREEN] = "\033[32m", [COLOUR_YELLOW] = "\033[33m", [COLOUR_BLUE] = "\033[34m"};

    return ctl->colour ? codes[colour] : "";
}

const char *colour_off(const struct ctl *ctl, enum colour colour)
{
    return ctl->colour && colour != COLOUR_NONE ? "\033[0m" : "";
}

enum colour status_colour(struct slice status)
{
    static const struct {
        const char *status;
        enum colour colour;
    } colours[] = {
        {"completed", COLOUR_GREEN}, {"compensated", COLOUR_YELLOW}, {"compensating", COLOUR_YELLOW},
        {"retrying", COLOUR_YELLOW}, {"running", COLOUR_BLUE},       {"waiting", COLOUR_BLUE},
        {"in_flight", COLOUR_BLUE},  {"failed", COLOUR_RED},         {"unknown", COLOUR_RED},
        {"escalated", COLOUR_RED},   {"abandoned", COLOUR_RED},      {"compensation_failed", COLOUR_RED},
        {"open", COLOUR_RED},        {"skipped", COLOUR_DIM},        {"pending", COLOUR_DIM},
        {"resolved", COLOUR_DIM},    {"paused", COLOUR_RED},
    };

    for (size_t i = 0; i < COUNT_OF(colours); i++) {
        if (slice_is(status, colours[i].status)) {
            return colours[i].colour;
        }
    }
    return COLOUR_NONE;
}

/* --- tables --- */

void table_init(struct table *table, struct ctl *ctl, const char *const *titles)
{
    *table = (struct table){.ctl = ctl, .titles = titles};
    while (titles[table->columns]) {
        table->columns++;
    }
    CHECK(table->columns <= TABLE_COLUMNS_MAX);
}

void table_init_of_namespaces(struct table *table, struct ctl *ctl, const char *const *titles)
{
    const char **all = arena_array(&ctl->arena, TABLE_COLUMNS_MAX + 1, sizeof(*all));
    size_t columns = 0;

    for (; titles[columns]; columns++) {
        CHECK(columns + 1 < TABLE_COLUMNS_MAX);
        all[columns] = titles[columns];
    }
    all[columns] = ctl->all_namespaces ? "NAMESPACE" : NULL;
    table_init(table, ctl, all);
}

struct cell *table_row_of(struct table *table, struct slice item)
{
    struct cell *row = table_row(table);

    if (table->ctl->all_namespaces) {
        row[table->columns - 1].text = show_member(table->ctl, item, "namespace");
    }
    return row;
}

struct cell *table_row(struct table *table)
{
    if (table->rows == table->capacity) {
        size_t capacity = table->capacity ? table->capacity * 2 : 64;
        struct cell *cells = arena_array(&table->ctl->arena, capacity * table->columns, sizeof(*cells));

        if (table->rows > 0) {
            memcpy(cells, table->cells, table->rows * table->columns * sizeof(*cells));
        }
        table->cells = cells;
        table->capacity = capacity;
    }
    return &table->cells[table->rows++ * table->columns];
}

size_t text_width(struct slice text)
{
    size_t width = 0;

    for (size_t i = 0; i < text.len; i++) {
        width += ((unsigned char)text.ptr[i] & 0xc0) != 0x80;
    }
    return width;
}

size_t output_width(void)
{
    struct winsize size = {0};
    const char *columns = getenv("COLUMNS");
    int64_t width = 0;

    if (columns && slice_to_i64(slice_of(columns), &width) && width > 0) {
        return (size_t)(width < 40 ? 40 : width);
    }
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col < 40 ? 40 : size.ws_col;
    }
    return 0;
}

size_t terminal_width(void)
{
    size_t width = output_width();

    return width > 0 ? width : 100;
}

/* Returns the bytes of the first `width` code points, or of all. */
static size_t bytes_of(struct slice text, size_t width)
{
    size_t i = 0;

    while (i < text.len && width > 0) {
        i++;
        while (i < text.len && ((unsigned char)text.ptr[i] & 0xc0) == 0x80) {
            i++;
        }
        width--;
    }
    return i;
}

struct slice text_cut(struct ctl *ctl, struct slice text, size_t width)
{
    if (text_width(text) <= width || width == 0) {
        return text;
    }
    return arena_printf(&ctl->arena, "%.*s…", (int)bytes_of(text, width - 1), text.ptr);
}

void print_wrapped(struct slice text, size_t indent, size_t width)
{
    size_t room = width > indent + 20 ? width - indent : 20;

    while (text_width(text) > room) {
        size_t end = bytes_of(text, room), at = end;

        while (at > 0 && text.ptr[at] != ' ') {
            at--;
        }
        at = at > 0 ? at : end; /* a word as long as the line */
        (void)printf("%.*s\n%*s", (int)at, text.ptr, (int)indent, "");
        at += at < text.len && text.ptr[at] == ' ';
        text = (struct slice){text.ptr + at, text.len - at};
    }
    (void)printf("%.*s\n", SLICE_ARG(text));
}

static void print_cell(const struct ctl *ctl, struct slice text, enum colour colour, size_t width, bool last)
{
    (void)printf("%s%.*s%s", colour_on(ctl, colour), SLICE_ARG(text), colour_off(ctl, colour));
    if (!last) {
        (void)printf("%*s", (int)(width - text_width(text) + 2), "");
    }
}

static struct cell cell_at(const struct table *table, size_t row, size_t column) /* row 0 holds the titles */
{
    struct cell cell = row == 0 ? (struct cell){slice_of(table->titles[column]), COLOUR_DIM}
                                : table->cells[(row - 1) * table->columns + column];

    return cell.text.ptr ? cell : (struct cell){SLICE(""), COLOUR_NONE};
}

/* Returns the least width that the remaining columns need. */
static size_t least_width(const struct table *table, size_t indent, const size_t *widths, unsigned gone)
{
    size_t width = indent;

    for (size_t c = 0; c < table->columns; c++) {
        if (!(gone & BIT(c))) {
            bool is_cut = (table->flexible & BIT(c)) && widths[c] > COLUMN_LEAST;

            width += (is_cut ? COLUMN_LEAST : widths[c]) + (width > indent ? 2 : 0);
        }
    }
    return width;
}

/* Returns the columns that are left out. Then narrows the widest flexible columns until the lines fit or nothing is
 * left to cut. */
static unsigned table_fit(const struct table *table, size_t indent, size_t *widths)
{
    size_t room = table->ctl->wide ? 0 : output_width(), width = indent;
    unsigned gone = 0;

    for (size_t c = table->columns; room > 0 && c-- > 0;) {
        if ((table->optional & BIT(c)) && least_width(table, indent, widths, gone) > room) {
            gone |= BIT(c);
        }
    }
    for (size_t c = 0; c < table->columns; c++) {
        width += gone & BIT(c) ? 0 : widths[c] + (width > indent ? 2 : 0);
    }
    while (room > 0 && width > room) {
        size_t widest = table->columns;

        for (size_t c = 0; c < table->columns; c++) {
            if ((table->flexible & BIT(c)) && !(gone & BIT(c)) && widths[c] > COLUMN_LEAST &&
                (widest == table->columns || widths[c] > widths[widest])) {
                widest = c;
            }
        }
        if (widest == table->columns) {
            return gone;
        }
        widths[widest]--;
        width--;
    }
    return gone;
}

/* Prints CSV as in RFC 4180, except for the line ends. */
static void print_csv(const struct table *table)
{
    for (size_t r = 0; r <= table->rows; r++) {
        for (size_t c = 0; c < table->columns; c++) {
            struct slice text = cell_at(table, r, c).text;

            (void)printf("%s", c > 0 ? ",\"" : "\"");
            for (size_t i = 0; i < text.len; i++) {
                (void)printf(text.ptr[i] == '"' ? "\"\"" : "%c", text.ptr[i]);
            }
            (void)printf("\"");
        }
        (void)putchar('\n');
    }
}

void table_print(const struct table *table, int indent)
{
    size_t widths[TABLE_COLUMNS_MAX] = {0};
    bool has_titles = table->titles[0][0] != '\0';

    if (table->ctl->output == OUTPUT_CSV) {
        print_csv(table);
        return;
    }
    for (size_t c = 0; c < table->columns; c++) {
        widths[c] = text_width(slice_of(table->titles[c]));
        for (size_t r = 0; r < table->rows; r++) {
            size_t width = text_width(table->cells[r * table->columns + c].text);

            widths[c] = width > widths[c] ? width : widths[c];
        }
    }
    unsigned gone = table_fit(table, (size_t)indent, widths);

    for (size_t r = has_titles ? 0 : 1; r <= table->rows; r++) {
        size_t last = table->columns;

        while (last > 1 && (cell_at(table, r, last - 1).text.len == 0 || (gone & BIT(last - 1)))) {
            last--; /* removes blanks at the end of a line */
        }
        (void)printf("%*s", indent, "");
        for (size_t c = 0; c < last; c++) {
            struct cell cell = cell_at(table, r, c);

            if (gone & BIT(c)) {
                continue;
            }
            print_cell(table->ctl, text_cut(table->ctl, cell.text, widths[c]), cell.colour, widths[c], c + 1 == last);
        }
        (void)putchar('\n');
    }
}

/* --- values --- */

/* Writes U+202E as "\\u202e". The characters that utf8_obeyed() knows have two or three bytes in UTF-8. */
static size_t put_escaped(char *out, const char *at, size_t len)
{
    const unsigned char *c = (const unsigned char *)at;
    unsigned code =
        len == 2 ? (c[0] & 0x1fu) << 6 | (c[1] & 0x3fu) : (c[0] & 0x0fu) << 12 | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu);

    return (size_t)snprintf(out, ESCAPED_BYTES + 1, "\\u%04x", code);
}

struct slice text_clean(struct slice text, struct arena *arena)
{
    char *clean = arena_alloc(arena, text.len * ESCAPED_BYTES / 2 + ESCAPED_BYTES + 1);
    size_t len = 0;

    for (size_t i = 0; i < text.len;) {
        size_t obeyed = utf8_obeyed(text.ptr + i, text.len - i);
        unsigned char c = (unsigned char)text.ptr[i];

        if (obeyed > 0) {
            len += put_escaped(clean + len, text.ptr + i, obeyed);
            i += obeyed;
        } else {
            clean[len++] = c < 0x20 || c == 0x7f ? ' ' : (char)c;
            i++;
        }
    }
    return (struct slice){clean, len};
}

struct slice show_value(struct ctl *ctl, struct slice value)
{
    struct slice text = json_type(value) == JSON_STRING ? json_string(value, &ctl->arena) : value;

    if (json_type(value) == JSON_NULL || json_type(value) == JSON_NONE) {
        return SLICE("");
    }
    return text_clean(text, &ctl->arena);
}

struct slice show_member(struct ctl *ctl, struct slice object, const char *name)
{
    return show_value(ctl, json_member(object, name));
}

struct slice show_amount(struct ctl *ctl, struct slice object, const char *name, struct slice currency)
{
    struct slice text;
    int64_t micros;

    if (!json_i64(json_member(object, name), &micros)) {
        return SLICE("");
    }
    uint64_t size = micros < 0 ? 0 - (uint64_t)micros : (uint64_t)micros;

    text = arena_printf(&ctl->arena, "%s%llu.%06llu", micros < 0 ? "-" : "", (unsigned long long)(size / 1000000),
                        (unsigned long long)(size % 1000000));
    for (int digits = 6; digits > 2 && text.ptr[text.len - 1] == '0'; digits--) {
        text.len--;
    }
    return currency.len ? arena_printf(&ctl->arena, "%.*s %.*s", SLICE_ARG(text), SLICE_ARG(currency)) : text;
}

/* Gives the currency of one sum of a group. An unknown one has a mark where the sum stands beside others. */
static struct slice currency_of(struct ctl *ctl, struct slice costs, struct slice cost)
{
    struct slice currency = show_member(ctl, cost, "currency");

    return currency.len == 0 && json_element(costs, 1).ptr ? SLICE("?") : currency;
}

struct slice show_costs(struct ctl *ctl, struct slice group)
{
    struct slice costs = json_member(group, "costs"), text = SLICE(""), cost;
    struct json_walk walk = json_walk(costs);

    while (json_next_element(&walk, &cost)) {
        struct slice currency = currency_of(ctl, costs, cost);

        text = arena_printf(&ctl->arena, "%.*s%s%.*s%s%.*s", SLICE_ARG(text), text.len ? ", " : "",
                            SLICE_ARG(show_member(ctl, cost, "micros")), currency.len ? " " : "", SLICE_ARG(currency));
    }
    return text;
}

void table_put_costs(struct table *table, struct cell *row, size_t column, struct slice group)
{
    struct slice costs = json_member(group, "costs"), cost;
    struct json_walk walk = json_walk(costs);

    for (; json_next_element(&walk, &cost); row = NULL) {
        struct cell *at = row ? row : table_row(table);

        at[column].text = show_amount(table->ctl, cost, "micros", currency_of(table->ctl, costs, cost));
    }
}

bool member_instant(struct slice object, const char *name, int64_t *ms)
{
    struct slice value = json_member(object, name);

    return json_type(value) == JSON_STRING && value.len > 2 &&
           instant_parse((struct slice){value.ptr + 1, value.len - 2}, ms);
}

struct slice show_duration(struct ctl *ctl, int64_t ms)
{
    char text[INSTANT_TEXT_BYTES];

    if (ms < 1000) {
        return arena_printf(&ctl->arena, "%lld ms", (long long)(ms < 0 ? 0 : ms));
    }
    if (ms < 60000) {
        return arena_printf(&ctl->arena, "%lld.%lld s", (long long)(ms / 1000), (long long)(ms % 1000 / 100));
    }
    duration_text(ms, text);
    return arena_slice(&ctl->arena, slice_of(text));
}

struct slice show_age(struct ctl *ctl, struct slice object, const char *name)
{
    struct timespec now;
    int64_t ms = 0;

    if (!member_instant(object, name, &ms) || clock_gettime(CLOCK_REALTIME, &now) != 0) {
        return SLICE("");
    }
    return arena_printf(&ctl->arena, "%.*s ago",
                        SLICE_ARG(show_duration(ctl, (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 - ms)));
}

struct slice business_name(struct ctl *ctl, struct slice question)
{
    struct slice id = show_member(ctl, question, "business_id");

    return id.len > 0 ? id : show_member(ctl, question, "saga");
}

struct slice error_of(struct ctl *ctl, struct slice object)
{
    struct slice error = json_member(object, "error");

    if (json_type(error) == JSON_OBJECT) {
        struct slice code = show_member(ctl, error, "code"), detail = show_member(ctl, error, "detail");
        struct slice body = show_member(ctl, error, "body");
        bool cut = body.len > SAID_BYTES_MAX;
        const char *stop = detail.len && strchr(".!?", detail.ptr[detail.len - 1]) ? "" : ".";

        while (body.len > SAID_BYTES_MAX ||
               (cut && body.len > 0 && ((unsigned char)body.ptr[body.len] & 0xc0) == 0x80)) {
            body.len--;
        }
        return arena_printf(&ctl->arena, "%.*s%s%.*s%s%s%.*s%s", SLICE_ARG(code), detail.len ? ": " : "",
                            SLICE_ARG(detail), body.len ? stop : "", body.len ? " It said: " : "", SLICE_ARG(body),
                            cut ? " ..." : "");
    }
    return show_value(ctl, error);
}

/* Is this a code by which a limit of the tool holds a call back? In that case no receiver has answered. */
static bool is_held_back(struct slice code)
{
    static const char *const codes[] = {"rate-limited", "concurrency-limited", "breaker-open"};

    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        if (slice_is(code, codes[i])) {
            return true;
        }
    }
    return false;
}

/* Returns "held back since 02:14:00, before anything is sent: the rate of this tool is used up, asked again in 38
 * s". */
static struct slice held_of(struct ctl *ctl, struct slice object, int64_t times)
{
    struct slice trying = json_member(object, "trying"),
                 detail = show_member(ctl, json_member(object, "error"), "detail");
    int64_t since_ms = 0, next_ms = 0, now = now_ms();
    char since[INSTANT_TEXT_BYTES] = "";

    (void)member_instant(trying, "since", &since_ms); /* the member is always there */
    (void)member_instant(trying, "next_at", &next_ms);
    instant_text(since_ms, since);
    struct slice begun = times == 0
                             ? arena_printf(&ctl->arena, "held back since %.8s, before anything is sent",
                                            since + sizeof("2026-01-01T") - 1)
                             : arena_printf(&ctl->arena, "tried %lld time%s since %.8s, and held back now",
                                            (long long)times, times == 1 ? "" : "s", since + sizeof("2026-01-01T") - 1);

    return arena_printf(&ctl->arena, "%.*s: %.*s, asked again %s%.*s", SLICE_ARG(begun),
                        SLICE_ARG(detail.len > 0 ? detail : show_member(ctl, trying, "last_error")),
                        next_ms > now ? "in " : "now",
                        SLICE_ARG(next_ms > now ? show_duration(ctl, next_ms - now) : SLICE("")));
}

/* Returns "held since 02:14:00 by ops, hold 7: the bank times out". */
static struct slice hold_of(struct ctl *ctl, struct slice held)
{
    struct slice until = show_member(ctl, held, "until");
    char since[INSTANT_TEXT_BYTES] = "";
    int64_t since_ms = 0;

    (void)member_instant(held, "since", &since_ms); /* the member is always there */
    instant_text(since_ms, since);
    return arena_printf(&ctl->arena, "held since %.8s%s%.*s by %.*s, hold %.*s: %.*s",
                        since + sizeof("2026-01-01T") - 1, until.len > 0 ? " until " : "", SLICE_ARG(until),
                        SLICE_ARG(show_member(ctl, held, "actor")), SLICE_ARG(show_member(ctl, held, "n")),
                        SLICE_ARG(show_member(ctl, held, "note")));
}

/* Returns "probed 9 times since 02:14:00, the last answer was http-500, next in 38 s, a person is asked in 23h 40m". */
struct slice trying_of(struct ctl *ctl, struct slice object)
{
    struct slice trying = json_member(object, "trying"), error = show_member(ctl, trying, "last_error");
    int64_t times = 0, since_ms = 0, next_ms = 0, person_ms = 0, now = now_ms();
    char since[INSTANT_TEXT_BYTES] = "";
    struct buffer text;
    struct slice said;

    if (json_type(json_member(object, "held")) == JSON_OBJECT) {
        return hold_of(ctl, json_member(object, "held"));
    }
    if (json_type(trying) != JSON_OBJECT || !json_i64(json_member(trying, "times"), &times)) {
        return SLICE("");
    }
    if (is_held_back(error)) {
        return held_of(ctl, object, times);
    }
    buffer_init(&text, 4096);
    buffer_printf(&text, "%s %lld time%s", json_string_is(json_member(trying, "what"), "probe") ? "probed" : "tried",
                  (long long)times, times == 1 ? "" : "s");
    if (member_instant(trying, "since", &since_ms)) {
        instant_text(since_ms, since);
        buffer_printf(&text, " since %.8s", since + sizeof("2026-01-01T") - 1);
    }
    if (error.len > 0) {
        buffer_printf(&text, ", the last answer was %.*s", SLICE_ARG(error));
    }
    if (member_instant(trying, "next_at", &next_ms)) {
        buffer_printf(&text, next_ms > now ? ", next in %.*s" : ", next now",
                      SLICE_ARG(show_duration(ctl, next_ms - now)));
    }
    if (member_instant(trying, "person_at", &person_ms) && person_ms > now) {
        buffer_printf(&text, ", a person is asked in %.*s", SLICE_ARG(show_duration(ctl, person_ms - now)));
    }
    said = arena_slice(&ctl->arena, buffer_slice(&text));
    buffer_fini(&text);
    return said;
}

/* --- whole answers --- */

void print_facts(struct ctl *ctl, struct slice object, int indent)
{
    struct json_walk walk = json_walk(object);
    struct slice name, value;

    while (json_type(object) == JSON_OBJECT && json_next_member(&walk, &name, &value)) {
        struct slice text = show_value(ctl, value);

        if (text.len > 0) {
            (void)printf("%*s%-16.*s %.*s\n", indent, "", SLICE_ARG(name), SLICE_ARG(text));
        }
    }
}

void print_evidence(struct ctl *ctl, struct slice evidence, int indent)
{
    struct json_walk walk = json_walk(evidence), open = json_walk(json_member(evidence, "open"));
    struct slice name, value, item;

    while (json_type(evidence) == JSON_OBJECT && json_next_member(&walk, &name, &value)) {
        struct slice text = slice_is(name, "open") ? SLICE_NONE : show_value(ctl, value);
        bool goes_without_saying = slice_is(name, "direction") && slice_is(text, "do");

        if (text.len > 0 && !goes_without_saying) {
            (void)printf("%*s%-16.*s ", indent, "", SLICE_ARG(name));
            print_wrapped(text, (size_t)indent + 17, terminal_width());
        }
    }
    for (bool is_first = true; json_next_element(&open, &item); is_first = false) {
        (void)printf("%*s%-16s %.*s: %.*s, took effect: %.*s%s\n", indent, "", is_first ? "open" : "",
                     SLICE_ARG(show_member(ctl, item, "step")), SLICE_ARG(show_member(ctl, item, "status")),
                     SLICE_ARG(show_member(ctl, item, "took_effect")),
                     slice_is(json_member(item, "needs_person"), "true") ? "; a person has to say" : "");
    }
}

/* Prints a value of a --jq program: a string as plain text, as shells want it, any other value as JSON. */
static void print_jq_value(struct ctl *ctl, struct slice value)
{
    struct slice text = json_type(value) == JSON_STRING ? json_string(value, &ctl->arena) : json_trim(value);

    if (isatty(STDOUT_FILENO)) {
        text = text_clean(text, &ctl->arena);
    }
    (void)printf("%.*s\n", SLICE_ARG(text));
}

/* Runs the --jq program. jq_evaluate() accepts only one value, so the program's values are collected in an array. */
static void print_jq(struct ctl *ctl, struct slice json)
{
    static const struct jq_limits limits = {.time_ms = JQ_MS_MAX, .output_bytes_max = JQ_BYTES_MAX};
    struct slice program = arena_printf(&ctl->arena, "[%s\n]", ctl->jq), values, value;
    size_t failed = 0;
    struct err err = {0};

    if (jq_evaluate(&program, 1, json, &limits, &ctl->arena, &values, &failed, &err) != ERR_OK) {
        (void)fprintf(stderr, "%s: --jq: %s%s%s\n", ctl->program, err.message, err.detail[0] ? ": " : "", err.detail);
        ctl->print_failed = true;
        return;
    }
    struct json_walk walk = json_walk(values);

    while (json_next_element(&walk, &value)) {
        print_jq_value(ctl, value);
    }
}

static void print_yaml(struct ctl *ctl, struct slice json)
{
    struct buffer text;

    buffer_init(&text, SIZE_MAX / 2);
    if (ctl->printed++ > 0) {
        (void)fputs("---\n", stdout); /* begins a document for each answer */
    }
    if (yaml_write(json, &text)) {
        (void)fwrite(text.ptr, 1, text.len, stdout);
    } else {
        (void)fprintf(stderr, "%s: this answer cannot be written as YAML; -o json prints it\n", ctl->program);
        ctl->print_failed = true;
    }
    buffer_fini(&text);
}

void print_data(struct ctl *ctl, struct slice json)
{
    if (ctl->jq) {
        print_jq(ctl, json);
    } else if (ctl->output == OUTPUT_DATA && ctl->yaml) {
        print_yaml(ctl, json);
    } else {
        (void)fwrite(json.ptr, 1, json.len, stdout);
        (void)putchar('\n');
    }
}

bool print_items(struct ctl *ctl, struct slice answer, const char *name)
{
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct slice item;

    if (ctl->output == OUTPUT_DATA) {
        print_data(ctl, answer);
        return true;
    }
    if (ctl->output != OUTPUT_NAME) {
        return false;
    }
    while (json_next_element(&walk, &item)) {
        (void)printf("%.*s\n", SLICE_ARG(show_member(ctl, item, name)));
    }
    return true;
}

void print_saga_line(struct ctl *ctl, struct slice saga)
{
    struct slice id = show_member(ctl, saga, "id"), status = show_member(ctl, saga, "status");
    enum colour colour = status_colour(status);

    if (ctl->output == OUTPUT_DATA) {
        print_data(ctl, saga);
    } else if (ctl->output == OUTPUT_NAME) {
        (void)printf("%.*s\n", SLICE_ARG(id));
    } else {
        (void)printf("%.*s  %s%.*s%s\n", SLICE_ARG(id), colour_on(ctl, colour), SLICE_ARG(status),
                     colour_off(ctl, colour));
    }
}

void print_more(struct ctl *ctl, struct slice answer)
{
    struct slice cursor = show_member(ctl, answer, "next_cursor");

    struct slice looked_to = show_member(ctl, answer, "looked_to");

    if (looked_to.len > 0) {
        (void)fprintf(stderr, "Looked at %.*s, back to %.*s: what is older may fit as well.\n",
                      SLICE_ARG(show_member(ctl, answer, "looked_count")), SLICE_ARG(looked_to));
    }
    if (cursor.len > 0) {
        (void)fprintf(stderr, "There are more: add --cursor %.*s\n", SLICE_ARG(cursor));
    }
}

void progress_show(const struct ctl *ctl, const char *format, ...)
{
    va_list arguments;

    if (ctl->progress) {
        (void)fputs("\r\033[K", stderr);
        va_start(arguments, format);
        (void)vfprintf(stderr, format, arguments);
        va_end(arguments);
        (void)fflush(stderr);
    }
}

void progress_clear(const struct ctl *ctl)
{
    if (ctl->progress) {
        (void)fputs("\r\033[K", stderr);
    }
}
