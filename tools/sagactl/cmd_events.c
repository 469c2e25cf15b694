/* The command events: prints the feed of events, as it is or as it grows. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/namespaces.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/query.h"

#define FAILURES_MAX 60

const char help_events[] = "sagactl events [--follow] [--type TYPE,...] [--cursor C] [--limit N]\n"
                           "\n"
                           "Prints what happened to the sagas of your namespace and somebody may want to\n"
                           "know: ends, cases, approvals, unknown outcomes, debts, refused followers, loops.\n"
                           "It begins with the oldest event that is kept; with --follow it begins now and\n"
                           "goes on over lost connections. --cursor begins behind a place that was printed\n"
                           "before. -o json prints one event a line, as CloudEvents. With -A it prints those\n"
                           "of all namespaces of the token, one namespace after the other.\n"
                           "\n"
                           "  sagactl events --follow\n"
                           "  sagactl events --follow --type 'case.*,saga.abandoned' -o json\n";

struct watching {
    struct ctl *ctl;
    const char *type, *limit;
    struct buffer cursor; /* the cursor of the next page; empty for the oldest event */
};

static enum colour colour_of(struct slice type)
{
    return slice_is(type, "case.opened") || slice_is(type, "saga.abandoned") || slice_is(type, "debt.opened") ||
                   slice_is(type, "follower.refused") || slice_is(type, "operation.unknown") ||
                   slice_is(type, "breaker.opened") || slice_is(type, "budget.reached")
               ? COLOUR_RED
           : slice_is(type, "saga.compensated") || slice_is(type, "loop.tripped") || slice_is(type, "hold.placed")
               ? COLOUR_YELLOW
           : slice_is(type, "saga.completed") || slice_is(type, "case.resolved") || slice_is(type, "breaker.closed") ||
                   slice_is(type, "debt.settled")
               ? COLOUR_GREEN
               : COLOUR_NONE;
}

static void print_part(struct ctl *ctl, struct slice data, const char *name, const char *before)
{
    struct slice text = show_member(ctl, data, name);

    if (text.len > 0) {
        (void)printf(" %s%.*s", before, SLICE_ARG(text));
    }
}

static void print_event(struct ctl *ctl, struct slice event)
{
    struct slice type = show_member(ctl, event, "type"), data = json_member(event, "data");
    enum colour colour = colour_of(type);

    if (ctl->output == OUTPUT_DATA) {
        print_data(ctl, event);
        return;
    }
    if (ctl->output == OUTPUT_NAME) {
        (void)printf("%.*s\n", SLICE_ARG(show_member(ctl, event, "id")));
        return;
    }
    (void)printf("%.*s  %s%-18.*s%s  ", SLICE_ARG(show_member(ctl, event, "time")), colour_on(ctl, colour),
                 SLICE_ARG(type), colour_off(ctl, colour));
    if (ctl->all_namespaces) {
        (void)printf("%s  ", ctl->namespace);
    }
    if (json_member(data, "saga").ptr) {
        (void)printf("%.*s/%.*s", SLICE_ARG(show_member(ctl, data, "saga_name")), SLICE_ARG(business_name(ctl, data)));
        print_part(ctl, data, "step", "");
        print_part(ctl, data, "n", "#");
    } else { /* the subject has the number */
        (void)printf("%.*s", SLICE_ARG(show_member(ctl, event, "subject")));
        print_part(ctl, data, "endpoint", "");
        print_part(ctl, data, "state", "");
        print_part(ctl, json_member(data, "hold"), "actor", "by ");
        print_part(ctl, json_member(data, "by"), "actor", "by ");
    }
    print_part(ctl, json_member(data, "released"), "actor", "by ");
    print_part(ctl, json_member(data, "settled"), "actor", "by ");
    print_part(ctl, data, "reason", "");
    print_part(ctl, data, "error", "");
    print_part(ctl, data, "action", "");
    print_part(ctl, data, "actor", "by ");
    (void)putchar('\n');
}

/* Takes one page. A command that follows waits for the page. */
static int take(struct watching *watching, bool follows)
{
    struct ctl *ctl = watching->ctl;
    struct buffer path;
    struct answer answer;
    struct arena arena;
    struct slice event;

    arena_init(&arena, 65536);
    buffer_init(&path, 8192);
    buffer_printf(&path, "/v1/events?limit=%s%s", watching->limit, follows ? "&wait=20s" : "");
    if (watching->cursor.len > 0) {
        buffer_printf(&path, "&cursor=%.*s", SLICE_ARG(url_escape(buffer_slice(&watching->cursor), &arena)));
    }
    int code = !query_put(ctl, &path, "type", watching->type) ? EXIT_USAGE
                                                              : client_get(ctl, buffer_slice(&path), &arena, &answer);

    if (code == EXIT_OK) {
        struct json_walk walk = json_walk(json_member(answer.body, "items"));

        while (json_next_element(&walk, &event)) {
            print_event(ctl, event);
        }
        (void)fflush(stdout); /* followers want each line at once; the end of the command reports a failure */
        buffer_reset(&watching->cursor);
        buffer_put_slice(&watching->cursor, show_member(ctl, answer.body, "next_cursor"));
    }
    buffer_fini(&path);
    arena_fini(&arena);
    return code;
}

static int follow(struct watching *watching)
{
    int failures = 0, code;

    if (watching->cursor.len == 0) {
        buffer_put_text(&watching->cursor, "now");
    }
    do {
        code = take(watching, true);
        failures = code == EXIT_OK ? 0 : failures + 1;
        if (code == EXIT_UNREACHABLE) {
            (void)usleep(500000); /* the service restarts, so the command asks again */
        }
    } while (code == EXIT_OK || (code == EXIT_UNREACHABLE && failures < FAILURES_MAX));
    return code;
}

/* --- all namespaces --- */

#define NAMESPACES_MAX 256 /* the namespaces that one command follows; each has a cursor of its own */
#define ROUND_US 500000

struct round {
    struct watching all[NAMESPACES_MAX]; /* in the order in which the service names the namespaces */
    const char *type, *limit, *from;
    size_t at;
};

static int take_one(struct ctl *ctl, struct slice namespace, void *context)
{
    struct round *round = context;
    struct watching *watching = &round->all[round->at];

    (void)namespace;
    if (round->at == NAMESPACES_MAX) {
        return usage_error(ctl, "the token has more than %d namespaces: name one with -n", NAMESPACES_MAX);
    }
    round->at++;
    if (!watching->ctl) {
        *watching = (struct watching){.ctl = ctl, .type = round->type, .limit = round->limit};
        buffer_init(&watching->cursor, 4096);
        buffer_put_text(&watching->cursor, round->from);
    }
    return take(watching, false);
}

/* Takes a page of each namespace, and with `follows` again and again. */
static int take_all(struct ctl *ctl, const char *type, const char *limit, bool follows)
{
    struct round *round = arena_alloc(&ctl->arena, sizeof(*round));
    int failures = 0, code;

    *round = (struct round){.type = type, .limit = limit, .from = follows ? "now" : ""};
    do {
        round->at = 0;
        code = namespaces_each(ctl, take_one, round);
        failures = code == EXIT_OK ? 0 : failures + 1;
        if (follows) {
            (void)usleep(ROUND_US);
        }
    } while (follows && (code == EXIT_OK || (code == EXIT_UNREACHABLE && failures < FAILURES_MAX)));
    for (size_t i = 0; i < NAMESPACES_MAX && round->all[i].ctl; i++) {
        buffer_fini(&round->all[i].cursor);
    }
    return code;
}

int cmd_events(struct ctl *ctl, int argc, char **argv)
{
    struct watching watching = {.ctl = ctl, .limit = "500"};
    const char *cursor = NULL;
    bool follows = false, helped = false;
    const struct option options[] = {{"--follow", NULL, NULL, &follows},       {"-f", NULL, NULL, &follows},
                                     {"--type", &watching.type, NULL, NULL},   {"--cursor", &cursor, NULL, NULL},
                                     {"--limit", &watching.limit, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    struct arguments rest;

    if (!options_read(ctl, argc, argv, options, &rest, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (rest.count > 0) {
        return usage_error(ctl, "events takes options only");
    }
    if (ctl->all_namespaces) {
        return cursor ? usage_error(ctl, "a cursor is of one namespace: name it with -n")
                      : take_all(ctl, watching.type, watching.limit, follows);
    }
    buffer_init(&watching.cursor, 4096);
    buffer_put_text(&watching.cursor, cursor ? cursor : "");
    int code = follows ? follow(&watching) : take(&watching, false);

    if (!follows && code == EXIT_OK) {
        (void)fprintf(stderr, "Go on from here with --cursor %.*s\n", SLICE_ARG(buffer_slice(&watching.cursor)));
    }
    buffer_fini(&watching.cursor);
    return code;
}
