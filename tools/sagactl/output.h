/* What people see: tables, colours on a terminal, durations. */
#ifndef SAGACTL_OUTPUT_H
#define SAGACTL_OUTPUT_H

#include "tools/sagactl/command.h"

enum colour { COLOUR_NONE, COLOUR_BOLD, COLOUR_DIM, COLOUR_RED, COLOUR_GREEN, COLOUR_YELLOW, COLOUR_BLUE };

#define TABLE_COLUMNS_MAX 24

struct cell {
    struct slice text;
    enum colour colour;
};

struct table {
    struct ctl *ctl;
    const char *const *titles; /* NULL-terminated */
    size_t columns, rows, capacity;
    unsigned optional;  /* bits of the columns that go, the last one first, where the others do not fit */
    unsigned flexible;  /* bits of the columns that may be cut where a line is wider than the terminal */
    struct cell *cells; /* rows x columns, in the arena of ctl */
};

void table_init(struct table *table, struct ctl *ctl, const char *const *titles);
/* The cells of the next row: fill in its columns. Texts must live as long as the table. */
struct cell *table_row(struct table *table);
void table_print(const struct table *table, int indent);

const char *colour_on(const struct ctl *ctl, enum colour colour); /* "" without colours */
const char *colour_off(const struct ctl *ctl, enum colour colour);
enum colour status_colour(struct slice status);

/* COLUMNS, else of the terminal behind stdout; 0: nobody says, and nothing is cut, since it goes into a
 * file or a pipe. */
size_t output_width(void);
size_t terminal_width(void);          /* of stdout; COLUMNS goes before; 100 where nobody says */
size_t text_width(struct slice text); /* in code points, which is good enough for what we print */
struct slice text_cut(struct ctl *ctl, struct slice text, size_t width); /* with "…" where something is missing */
/* From column `indent` on, the cursor standing there; broken at blanks before `width`; and a line end. */
void print_wrapped(struct slice text, size_t indent, size_t width);
struct slice business_name(struct ctl *ctl,
                           struct slice question);            /* of its saga: the business id, or the id of the saga */
struct slice trying_of(struct ctl *ctl, struct slice object); /* its member "trying" as a sentence; "" without */
struct slice
error_of(struct ctl *ctl,
         struct slice object); /* its member "error", a text or {code, detail}, as one sentence; "" without */

/* A member as text for people: strings bare, null as "", everything else as JSON. Control characters are replaced, see
 * text_clean(). */
struct slice show_member(struct ctl *ctl, struct slice object, const char *name);
struct slice show_value(struct ctl *ctl, struct slice value);
/* For a terminal: control characters are blanks, and what it would obey is spelled out, such as \u202e. */
struct slice text_clean(struct slice text, struct arena *arena);
struct slice show_duration(struct ctl *ctl, int64_t ms); /* "12 ms", "1.4 s", "3m 20s" */
bool member_instant(struct slice object, const char *name, int64_t *ms);
struct slice show_age(struct ctl *ctl, struct slice object, const char *name); /* since when, for tables */

void print_facts(struct ctl *ctl, struct slice object, int indent); /* a member a line; empty ones are left out */
/* As -o and --jq say: JSON, YAML, or what the program makes of it; in a table, JSON. And a line end. */
void print_data(struct ctl *ctl, struct slice json);
/* -o json and -o yaml print the answer, -o name the member `name` of each item; both give true: all is said. */
bool print_items(struct ctl *ctl, struct slice answer, const char *name);
void print_saga_line(struct ctl *ctl, struct slice saga); /* its id and status, as -o says */
void print_more(struct ctl *ctl, struct slice answer);    /* on stderr, when there is a next page */

void progress_show(const struct ctl *ctl, const char *format, ...)
    PRINTF_LIKE(2, 3); /* one line that is written over */
void progress_clear(const struct ctl *ctl);

#endif
