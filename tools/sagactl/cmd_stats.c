/* The command stats: counts of sagas, figures of tools, and the engines. */
#include <stdio.h>
#include <stdlib.h>

#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/stats.h"

const char help_stats[] = "sagactl stats [--since AGE [--by saga|tool]]\n"
                          "\n"
                          "Counts sagas by status, those that need a person first; the figures of each tool,\n"
                          "those with most that nobody knows first; and the engines. Unfinished sagas are\n"
                          "all counted, ended ones if they started since ended_since: a day ago, or later\n"
                          "where more than about 250,000 have started since.\n"
                          "\n"
                          "--since shows what happened since then, up to 90 days ago: over time, or with\n"
                          "--by added up for each saga or tool.\n"
                          "\n"
                          "  sagactl stats\n"
                          "  sagactl stats --since 24h\n"
                          "  sagactl stats --since 7d --by tool\n"
                          "  sagactl stats -o json | jq .sagas.escalated\n";

/* Prints one row of guards or engines. For an array (the shards) it prints the count. */
static void print_element(struct ctl *ctl, struct slice element)
{
    struct json_walk walk = json_walk(element);
    struct slice name, value;
    struct buffer text;

    buffer_init(&text, 1 << 20);
    while (json_type(element) == JSON_OBJECT && json_next_member(&walk, &name, &value)) {
        if (json_type(value) == JSON_ARRAY) {
            buffer_printf(&text, "%s%zu %.*s", text.len ? ", " : "", json_count(value), SLICE_ARG(name));
        } else if (json_type(value) != JSON_NULL) {
            buffer_printf(&text, "%s%.*s %.*s", text.len ? ", " : "", SLICE_ARG(name),
                          SLICE_ARG(show_value(ctl, value)));
        }
    }
    (void)fputs("  ", stdout);
    print_wrapped(text.len ? buffer_slice(&text) : SLICE(""), 2, terminal_width());
    buffer_fini(&text);
}

static void stats_print_counts(struct ctl *ctl, struct slice sagas)
{
    static const char *const titles[] = {"", "", NULL};
    static const char *const first[] = {"escalated", "paused", "abandoned"};
    struct json_walk walk = json_walk(sagas);
    struct slice name, value;
    struct table table;

    table_init(&table, ctl, titles);
    for (size_t i = 0; i < COUNT_OF(first); i++) {
        value = json_member(sagas, first[i]);
        if (value.ptr) {
            struct cell *row = table_row(&table);

            row[0].text = slice_of(first[i]);
            row[0].colour = slice_is(value, "0") ? COLOUR_NONE : COLOUR_RED;
            row[1].text = show_value(ctl, value);
        }
    }
    while (json_next_member(&walk, &name, &value)) {
        bool is_first = false;

        for (size_t i = 0; i < COUNT_OF(first); i++) {
            is_first |= slice_is(name, first[i]);
        }
        if (!is_first) {
            struct cell *row = table_row(&table);

            row[0].text = name;
            row[1].text = show_value(ctl, value);
        }
    }
    table_print(&table, 2);
}

static int64_t number_of(struct slice object, const char *name)
{
    int64_t number = 0;

    (void)json_i64(json_member(object, name), &number); /* the number is 0 when absent */
    return number;
}

static int64_t trouble_of(struct slice tool)
{
    return number_of(tool, "unknown_open") * 1000000 + number_of(tool, "unknown") * 1000 + number_of(tool, "failed");
}

static int by_trouble(const void *left, const void *right)
{
    int64_t a = trouble_of(*(const struct slice *)left), b = trouble_of(*(const struct slice *)right);

    return a < b ? 1 : a > b ? -1 : 0;
}

void stats_print_tools(struct ctl *ctl, struct slice tools, size_t most)
{
    static const char *const titles[] = {"TOOL",    "UNKNOWN NOW", "UNKNOWN", "FAILED", "COMPLETED",
                                         "RETRIES", "CALLS",       "BREAKER", NULL};
    static const char *const members[] = {"name",      "unknown_open", "unknown", "failed",
                                          "completed", "retries",      "calls",   "breaker"};
    struct slice *sorted = arena_array(&ctl->arena, json_count(tools) + 1, sizeof(*sorted)), tool;
    struct json_walk walk = json_walk(tools);
    struct table table;
    size_t count = 0;

    while (json_next_element(&walk, &tool)) {
        sorted[count++] = tool;
    }
    qsort(sorted, count, sizeof(*sorted), by_trouble);
    table_init(&table, ctl, titles);
    table.flexible = BIT(0);
    for (size_t i = 0; i < count && i < most; i++) {
        struct cell *row = table_row(&table);

        for (size_t c = 0; c < COUNT_OF(members); c++) {
            row[c].text = show_member(ctl, sorted[i], members[c]);
        }
        row[1].colour = number_of(sorted[i], "unknown_open") > 0 ? COLOUR_RED : COLOUR_NONE;
        row[7].colour = slice_is(row[7].text, "open") ? COLOUR_RED : COLOUR_NONE;
    }
    table_print(&table, 2);
}

int cmd_stats(struct ctl *ctl, int argc, char **argv)
{
    struct arguments none;
    struct answer answer;
    struct slice name, value, element;
    const char *since = NULL, *by = NULL;
    const struct option options[] = {
        {"--since", &since, NULL, NULL}, {"--by", &by, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &none, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (none.count > 0) {
        return usage_error(ctl, "stats takes no arguments");
    }
    if (since || by) {
        return stats_series(ctl, since, by);
    }
    int code = client_get(ctl, SLICE("/v1/stats"), &ctl->arena, &answer);

    if (code != EXIT_OK) {
        return code;
    }
    if (ctl->output == OUTPUT_DATA) {
        print_data(ctl, answer.body);
        return EXIT_OK;
    }
    struct json_walk walk = json_walk(answer.body);

    while (json_next_member(&walk, &name, &value)) {
        (void)printf("%s%.*s%s", colour_on(ctl, COLOUR_BOLD), SLICE_ARG(name), colour_off(ctl, COLOUR_BOLD));
        if (slice_is(name, "sagas") && json_type(value) == JSON_OBJECT) {
            (void)putchar('\n');
            stats_print_counts(ctl, value);
        } else if (slice_is(name, "tools") && json_type(value) == JSON_ARRAY) {
            (void)putchar('\n');
            stats_print_tools(ctl, value, SIZE_MAX);
        } else if (json_type(value) == JSON_OBJECT) {
            (void)putchar('\n');
            print_facts(ctl, value, 2);
        } else if (json_type(value) == JSON_ARRAY) {
            struct json_walk elements = json_walk(value);

            (void)putchar('\n');
            while (json_next_element(&elements, &element)) {
                print_element(ctl, element);
            }
        } else {
            (void)printf("  %.*s\n", SLICE_ARG(show_value(ctl, value)));
        }
    }
    return EXIT_OK;
}
