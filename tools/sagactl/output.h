/* The output that people see: tables, colours on a terminal, durations. */
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
    unsigned optional;  /* bits of the columns that are dropped, the last one first, where the table is too wide */
    unsigned flexible;  /* bits of the columns that may be cut where a line is wider than the terminal */
    struct cell *cells; /* rows x columns, in the arena of ctl */
};

void table_init(struct table *table, struct ctl *ctl, const char *const *titles);
/* The same for a list that -A may have asked for in several namespaces: it has a last column NAMESPACE then, which
 * table_row_of() fills in. */
void table_init_of_namespaces(struct table *table, struct ctl *ctl, const char *const *titles);
struct cell *table_row_of(struct table *table, struct slice item);
/* Gives the cells of the next row, for the caller to fill in. Texts must live as long as the table. */
struct cell *table_row(struct table *table);
void table_print(const struct table *table, int indent);

const char *colour_on(const struct ctl *ctl, enum colour colour); /* gives "" without colours */
const char *colour_off(const struct ctl *ctl, enum colour colour);
enum colour status_colour(struct slice status);

/* Gives COLUMNS, else the width of the terminal that stdout is. 0: the output goes into a file or a pipe, and nothing
 * is cut. */
size_t output_width(void);
size_t terminal_width(void);          /* COLUMNS, else the width of stdout's terminal, else 100 */
size_t text_width(struct slice text); /* the number of code points, which is close enough for our texts */
struct slice text_cut(struct ctl *ctl, struct slice text, size_t width); /* puts "…" where text is missing */
/* Prints a text whose first line continues at column `indent`, breaks it at blanks before `width`, and ends the
 * line. */
void print_wrapped(struct slice text, size_t indent, size_t width);
/* Names the question's saga: its business id, or its own id. */
struct slice business_name(struct ctl *ctl, struct slice question);
/* Makes a sentence of the member "trying"; "" without one. */
struct slice trying_of(struct ctl *ctl, struct slice object);
/* Makes one sentence of the member "error", a text or {code, detail}; "" without one. */
struct slice error_of(struct ctl *ctl, struct slice object);

/* Gives a member as text for people: strings bare, null as "", everything else as JSON. Control characters are
 * replaced, see text_clean(). */
struct slice show_member(struct ctl *ctl, struct slice object, const char *name);
struct slice show_value(struct ctl *ctl, struct slice value);
/* Cleans a text for a terminal: control characters become blanks, and characters that a terminal would obey are spelled
 * out, such as \u202e. */
struct slice text_clean(struct slice text, struct arena *arena);
struct slice show_duration(struct ctl *ctl, int64_t ms); /* "12 ms", "1.4 s", "3m 20s" */
bool member_instant(struct slice object, const char *name, int64_t *ms);
struct slice show_age(struct ctl *ctl, struct slice object, const char *name); /* the age of an instant, for tables */

/* Gives "4.90 EUR" for a member that has 4900000 micros: at least two decimal places, and as many as there are. Gives
 * nothing where the member is no number. */
struct slice show_amount(struct ctl *ctl, struct slice object, const char *name, struct slice currency);
/* Gives "4900000 EUR, 120 ?" for programs: what a group of cases costs, in micros of each currency. A sum without a
 * currency has no mark where it is the only one. */
struct slice show_costs(struct ctl *ctl, struct slice group);
/* Puts the amounts into a column, with a line of its own for each further currency. The caller has filled in the rest
 * of the row, which may move. */
void table_put_costs(struct table *table, struct cell *row, size_t column, struct slice group);

/* Prints each member on a line; leaves out empty members. */
void print_facts(struct ctl *ctl, struct slice object, int indent);
/* The facts of a case, as by print_facts(); each step that is open has a line in words. */
void print_evidence(struct ctl *ctl, struct slice evidence, int indent);
/* Prints as -o and --jq say: JSON, YAML, or the output of the jq program. Where -o is a table it prints JSON. It adds a
 * line end. */
void print_data(struct ctl *ctl, struct slice json);
/* -o json and -o yaml print the answer, -o name the member `name` of each item. True: the output is complete. */
bool print_items(struct ctl *ctl, struct slice answer, const char *name);
void print_saga_line(struct ctl *ctl, struct slice saga); /* prints the saga's id and status, as -o says */
void print_more(struct ctl *ctl, struct slice answer);    /* tells on stderr that there is a next page */

/* Prints a line that the next one overwrites. */
void progress_show(const struct ctl *ctl, const char *format, ...) PRINTF_LIKE(2, 3);
void progress_clear(const struct ctl *ctl);

#endif
