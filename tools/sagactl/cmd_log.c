/* The command log: prints the durable log of a saga, as it is or as it grows. */
#include <stdio.h>
#include <unistd.h>

#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/saga_name.h"

#define FOLLOW_TRIES_MAX 60
#define COLUMNS_WIDTH 64 /* the width of the columns in front of the data */
#define DATA_WIDTH 160   /* the width of the data when the output has no known width */
#define DATA_WIDTH_LEAST 14

const char help_log[] =
    "sagactl log SAGA [--follow]\n"
    "\n"
    "Prints the durable log of a saga, in order. With --follow it goes on as entries come, over lost\n"
    "connections too, until the saga has ended. -o json prints one entry a line.\n"
    "\n"
    "  sagactl log 019b3c52-...\n"
    "  sagactl log 019b3c52-... --follow -o json | jq .type\n";

struct log_print {
    struct ctl *ctl;
    int64_t begin_ms;
    bool ended;
};

/* Prints one line for each entry. A string never holds a raw line end. */
static void print_line(struct ctl *ctl, struct slice entry)
{
    char *line = arena_text(&ctl->arena, entry);

    for (size_t i = 0; i < entry.len; i++) {
        line[i] = line[i] == '\n' || line[i] == '\r' ? ' ' : line[i];
    }
    print_data(ctl, (struct slice){line, entry.len});
}

static bool is_final(struct slice type)
{
    return slice_is(type, "saga.completed") || slice_is(type, "saga.compensated") || slice_is(type, "saga.abandoned");
}

static void print_entry(struct log_print *print, struct slice entry)
{
    struct ctl *ctl = print->ctl;
    struct slice type = show_member(ctl, entry, "type"), attempt = show_member(ctl, entry, "attempt"),
                 step = show_member(ctl, entry, "step");
    struct slice actor = show_member(ctl, entry, "actor");
    int64_t at_ms = 0;

    print->ended |= is_final(type);
    if (ctl->output == OUTPUT_DATA) {
        print_line(print->ctl, entry);
        return;
    }
    if (member_instant(entry, "at", &at_ms) && print->begin_ms == 0) {
        print->begin_ms = at_ms;
        (void)printf("%.*s\n", SLICE_ARG(show_member(ctl, entry, "at")));
    }
    enum colour colour =
        slice_is(type, "step.failed") || slice_is(type, "step.unknown") || slice_is(type, "escalation.opened")
            ? COLOUR_RED
        : slice_starts_with(type, "compensation.") || slice_is(type, "saga.failing") ? COLOUR_YELLOW
        : slice_is(type, "step.completed") || slice_is(type, "saga.completed")       ? COLOUR_GREEN
                                                                                     : COLOUR_NONE;

    struct slice data = show_member(ctl, entry, "data");
    bool has_data = data.len > 2, bare = !has_data && actor.len == 0;
    size_t width = output_width(), room = DATA_WIDTH; /* room: the width left for the data */

    if (width > 0 && !ctl->wide) {
        size_t used = COLUMNS_WIDTH + (actor.len > 0 ? actor.len + 4 : 0) + 1;

        room = width > used + DATA_WIDTH_LEAST ? width - used : DATA_WIDTH_LEAST;
    }

    (void)printf("%4.*s  %s+%-9.*s%s %s%-*.*s%s", SLICE_ARG(show_member(ctl, entry, "seq")), colour_on(ctl, COLOUR_DIM),
                 SLICE_ARG(show_duration(ctl, at_ms - print->begin_ms)), colour_off(ctl, COLOUR_DIM),
                 colour_on(ctl, colour), bare && step.len == 0 ? 0 : 24, SLICE_ARG(type), colour_off(ctl, colour));
    if (!bare || step.len > 0) {
        struct slice number = attempt.len > 0 ? arena_printf(&ctl->arena, "#%.*s", SLICE_ARG(attempt)) : SLICE("");

        (void)printf(" %-*.*s", bare && number.len == 0 ? 0 : 16, SLICE_ARG(step));
        (void)printf(" %-*.*s", bare ? 0 : 4, SLICE_ARG(number));
    }
    if (actor.len > 0) {
        (void)printf(" by %.*s", SLICE_ARG(actor));
    }
    if (has_data) {
        (void)printf(" %s%.*s%s", colour_on(ctl, COLOUR_DIM), SLICE_ARG(text_cut(ctl, data, room)),
                     colour_off(ctl, COLOUR_DIM));
    }
    (void)putchar('\n');
}

static bool on_event(struct client_stream *stream, struct slice entry)
{
    struct log_print *print = stream->context;

    print_entry(print, entry);
    (void)fflush(stdout); /* followers want each line at once; the end of the command reports a failure */
    return !print->ended;
}

static int follow(struct ctl *ctl, struct slice saga)
{
    struct log_print print = {.ctl = ctl};
    struct client_stream stream = {.ctl = ctl,
                                   .path = arena_printf(&ctl->arena, "%.*s/log?follow=true", SLICE_ARG(saga)),
                                   .on_event = on_event,
                                   .context = &print};
    int code = EXIT_OK;

    for (int tries = 0; tries < FOLLOW_TRIES_MAX && !stream.finished; tries++) {
        uint64_t before = stream.last_id;

        code = client_follow(&stream);
        if (code != EXIT_OK && (code != EXIT_UNREACHABLE || stream.last_id == 0)) {
            return code;
        }
        if (stream.last_id != before) {
            tries = 0;
        }
        if (!stream.finished) {
            (void)usleep(500000); /* the service restarts or the stream was cut, so the command connects again */
        }
    }
    return stream.finished ? EXIT_OK : code;
}

static int print_all(struct ctl *ctl, struct slice saga)
{
    struct log_print print = {.ctl = ctl};
    struct slice cursor = SLICE("0");

    while (cursor.len > 0) {
        struct arena arena;
        struct answer answer;
        struct slice entry;

        arena_init(&arena, 65536);
        int code =
            client_get(ctl, arena_printf(&arena, "%.*s/log?limit=500&cursor=%.*s", SLICE_ARG(saga), SLICE_ARG(cursor)),
                       &arena, &answer);

        if (code != EXIT_OK) {
            arena_fini(&arena);
            return code;
        }
        struct json_walk walk = json_walk(json_member(answer.body, "items"));

        while (json_next_element(&walk, &entry)) {
            print_entry(&print, entry);
        }
        cursor = arena_slice(&ctl->arena, show_member(ctl, answer.body, "next_cursor"));
        arena_fini(&arena);
    }
    return EXIT_OK;
}

int cmd_log(struct ctl *ctl, int argc, char **argv)
{
    bool follows = false, helped = false;
    const struct option options[] = {
        {"--follow", NULL, NULL, &follows}, {"-f", NULL, NULL, &follows}, {NULL, NULL, NULL, NULL}};
    struct arguments ids;

    if (!options_read(ctl, argc, argv, options, &ids, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (ids.count != 1) {
        return usage_error(ctl, "which saga? its id, or NAME/BUSINESS_ID");
    }
    struct slice saga;
    int code = saga_path(ctl, ids.items[0], &saga);

    return code != EXIT_OK ? code : follows ? follow(ctl, saga) : print_all(ctl, saga);
}
