/* The command top: shows on one screen what needs a person. */
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/stats.h"

#define ROWS_DEFAULT 24
#define ROWS_LEAST 3    /* the rows of a part, at the least */
#define ROWS_OF_REST 12 /* rows of the titles, of the line of counts and between the parts */
#define ENGINES_SHOWN_MAX 4

const char help_top[] = "sagactl top [--interval 2s]\n"
                        "\n"
                        "A live screen: how many sagas need a person, are paused, run and wait; tools,\n"
                        "those with trouble first; what waits for a person; and the engines. It asks again\n"
                        "every 2 seconds. q leaves, blank looks at once, and what does not fit the terminal\n"
                        "is cut. Where there is no terminal it prints one screen and ends.\n"
                        "\n"
                        "  sagactl top\n"
                        "  sagactl top --interval 500ms\n";

static size_t rows_of_screen(void)
{
    struct winsize size = {0};

    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row
                                                                                                    : ROWS_DEFAULT;
}

/* Prints "escalated 3  paused 0  running 12 ...", with trouble first and coloured. */
static void print_counts(struct ctl *ctl, struct slice sagas)
{
    static const struct {
        const char *status;
        enum colour colour; /* the colour of a count above 0 */
    } shown[] = {{"escalated", COLOUR_RED},    {"paused", COLOUR_RED},   {"compensating", COLOUR_YELLOW},
                 {"running", COLOUR_BLUE},     {"waiting", COLOUR_BLUE}, {"completed", COLOUR_GREEN},
                 {"compensated", COLOUR_NONE}, {"abandoned", COLOUR_RED}};
    struct buffer line;

    buffer_init(&line, 4096);
    for (size_t i = 0; i < COUNT_OF(shown); i++) {
        struct slice number = show_member(ctl, sagas, shown[i].status);
        enum colour colour = number.len == 0 || slice_is(number, "0") ? COLOUR_DIM : shown[i].colour;

        if (i == COUNT_OF(shown) / 2) {
            (void)printf("%s\n", buffer_c(&line));
            buffer_reset(&line);
        }
        buffer_printf(&line, "%s%s%-12s%s %-5.*s", i % (COUNT_OF(shown) / 2) ? "  " : "", colour_on(ctl, colour),
                      shown[i].status, colour_off(ctl, colour), SLICE_ARG(number.len ? number : SLICE("0")));
    }
    (void)printf("%s\n", buffer_c(&line));
    buffer_fini(&line);
}

static void print_title(const struct ctl *ctl, const char *title)
{
    (void)printf("\n%s%s%s\n", colour_on(ctl, COLOUR_BOLD), title, colour_off(ctl, COLOUR_BOLD));
}

static void print_cases(struct ctl *ctl, struct slice answer)
{
    static const char *const titles[] = {"N", "SAGA", "BUSINESS ID", "TOOL", "REASON", "OPENED", NULL};
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct table table;
    struct slice item;

    table_init(&table, ctl, titles);
    table.flexible = BIT(1) | BIT(2) | BIT(3) | BIT(4);
    while (json_next_element(&walk, &item)) {
        struct cell *row = table_row(&table);

        row[0] = (struct cell){show_member(ctl, item, "n"), COLOUR_RED};
        row[1].text = show_member(ctl, item, "saga_name");
        row[2].text = business_name(ctl, item);
        row[3].text = show_member(ctl, item, "tool");
        row[4].text = show_member(ctl, item, "reason");
        row[5].text = show_age(ctl, item, "opened_at");
    }
    if (table.rows == 0) {
        (void)printf("  %snothing%s\n", colour_on(ctl, COLOUR_GREEN), colour_off(ctl, COLOUR_GREEN));
        return;
    }
    table_print(&table, 2);
}

static void print_engines(struct ctl *ctl, struct slice answer)
{
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct slice engine;
    size_t shown = 0;

    while (shown < ENGINES_SHOWN_MAX && json_next_element(&walk, &engine)) {
        struct slice state = show_member(ctl, engine, "state");
        enum colour colour = slice_is(state, "alive") ? COLOUR_GREEN : COLOUR_RED;
        int64_t lease_ms = 0;

        (void)json_i64(json_member(engine, "lease_left_ms"), &lease_ms); /* the time is 0 when absent */
        (void)printf("  %.*s  %s%.*s%s  %zu shards, lease %.*s\n", SLICE_ARG(show_member(ctl, engine, "name")),
                     colour_on(ctl, colour), SLICE_ARG(state), colour_off(ctl, colour),
                     json_count(json_member(engine, "shards")), SLICE_ARG(show_duration(ctl, lease_ms)));
        shown++;
    }
    if (json_count(json_member(answer, "unowned")) > 0) {
        (void)printf("  %snobody holds %zu shards%s\n", colour_on(ctl, COLOUR_RED),
                     json_count(json_member(answer, "unowned")), colour_off(ctl, COLOUR_RED));
    }
}

static void print_head(struct ctl *ctl)
{
    char clock[16] = "";
    time_t now = time(NULL);
    struct tm local;

    if (localtime_r(&now, &local)) {
        (void)strftime(clock, sizeof(clock), "%H:%M:%S", &local);
    }
    (void)printf("%ssagad%s at %s  %s%s  q leaves%s\n", colour_on(ctl, COLOUR_BOLD), colour_off(ctl, COLOUR_BOLD),
                 ctl->server, colour_on(ctl, COLOUR_DIM), clock, colour_off(ctl, COLOUR_DIM));
}

int cmd_top(struct ctl *ctl, int argc, char **argv)
{
    struct arguments none;
    struct answer stats, cases, engines;
    bool helped = false;

    if (!options_read(ctl, argc, argv, NULL, &none, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (none.count > 0 || ctl->output != OUTPUT_TABLE) {
        return usage_error(ctl, "top is for people; `sagactl stats -o json` has the figures");
    }
    size_t rows = rows_of_screen(), room = rows > ROWS_OF_REST + 2 * ROWS_LEAST ? rows - ROWS_OF_REST : 2 * ROWS_LEAST;

    print_head(ctl);
    int code = client_get(ctl, SLICE("/v1/stats"), &ctl->arena, &stats);

    code = code == EXIT_OK
               ? client_get(ctl, arena_printf(&ctl->arena, "/v1/escalations?status=open&limit=%zu", room / 2),
                            &ctl->arena, &cases)
               : code;
    code = code == EXIT_OK ? client_get(ctl, SLICE("/v1/engines"), &ctl->arena, &engines) : code;
    if (code != EXIT_OK) {
        return code;
    }
    print_counts(ctl, json_member(stats.body, "sagas"));
    print_title(ctl, "Needs a person");
    print_cases(ctl, cases.body);
    print_title(ctl, "Tools");
    stats_print_tools(ctl, json_member(stats.body, "tools"), room - room / 2);
    print_title(ctl, "Engines");
    print_engines(ctl, engines.body);
    return EXIT_OK;
}
