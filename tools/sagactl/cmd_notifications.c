/* The command notifications: what receivers have not confirmed, and dead letters that are sent again. */
#include <stdio.h>
#include <string.h>

#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/query.h"

#define ANSWER_MS 30000

const char help_notifications[] = "sagactl notifications [--receiver NAME] [--state pending|dead] [--limit N]\n"
                                  "                      [--cursor C]\n"
                                  "sagactl notifications replay (EVENT... | --all) [--receiver NAME] --note TEXT\n"
                                  "\n"
                                  "Lists the notifications that their receivers have not confirmed yet. A dead\n"
                                  "letter is one that sagad has given up.\n"
                                  "\n"
                                  "replay sends dead letters again, under the same ids (role operator): those of the\n"
                                  "events that are named, or with --all every one.\n"
                                  "\n"
                                  "  sagactl notifications --state dead\n"
                                  "  sagactl notifications replay --all --receiver ops --note \"the receiver is up\"\n";

struct given {
    const char *receiver, *state, *limit, *cursor, *note;
    bool all;
};

static void print_many(struct ctl *ctl, struct slice answer)
{
    static const char *const titles[] = {"RECEIVER", "EVENT", "TYPE", "STATE", "ATTEMPTS", "AGE", "ERROR", NULL};
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct table table;
    struct slice item;

    table_init(&table, ctl, titles);
    table.flexible = BIT(6);
    while (json_next_element(&walk, &item)) {
        struct slice event = json_member(item, "event");
        struct cell *row = table_row(&table);

        row[0].text = show_member(ctl, item, "receiver");
        row[1].text = show_member(ctl, event, "id");
        row[2].text = show_member(ctl, event, "type");
        row[3].text = show_member(ctl, item, "state");
        row[3].colour = slice_is(row[3].text, "dead") ? COLOUR_RED : COLOUR_DIM;
        row[4].text = show_member(ctl, item, "attempts");
        row[5].text = show_age(ctl, item, "since");
        row[6].text = show_member(ctl, item, "error");
    }
    table_print(&table, 0);
    print_more(ctl, answer);
}

/* The ids of events, one a line: what `replay` takes. */
static bool print_ids(struct ctl *ctl, struct slice answer)
{
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct slice item;

    if (ctl->output != OUTPUT_NAME) {
        return print_items(ctl, answer, "n");
    }
    while (json_next_element(&walk, &item)) {
        (void)printf("%.*s\n", SLICE_ARG(show_member(ctl, json_member(item, "event"), "id")));
    }
    return true;
}

static int list(struct ctl *ctl, const struct given *given)
{
    struct answer answer;
    struct buffer path;

    buffer_init(&path, 65536);
    buffer_printf(&path, "/v1/notifications?limit=%s", given->limit ? given->limit : "50");
    int code = query_put(ctl, &path, "receiver", given->receiver) && query_put(ctl, &path, "state", given->state) &&
                       query_put(ctl, &path, "cursor", given->cursor)
                   ? client_get(ctl, arena_slice(&ctl->arena, buffer_slice(&path)), &ctl->arena, &answer)
                   : EXIT_USAGE;

    buffer_fini(&path);
    if (code == EXIT_OK && !print_ids(ctl, answer.body)) {
        print_many(ctl, answer.body);
    }
    return code;
}

static int replay(struct ctl *ctl, const struct given *given, const struct arguments *words)
{
    struct answer answer;
    struct buffer body;
    struct json_writer w;

    if ((words->count == 1) != given->all) {
        return usage_error(ctl, "which ones? name events, or give --all");
    }
    if (!given->note || slice_trim(slice_of(given->note)).len == 0) {
        return usage_error(ctl, "say why with --note TEXT");
    }
    buffer_init(&body, 262144);
    json_writer_init(&w, &body);
    json_object_begin(&w, NULL);
    if (given->receiver) {
        json_write_text(&w, "receiver", given->receiver);
    }
    if (!given->all) {
        json_array_begin(&w, "events");
        for (size_t i = 1; i < words->count; i++) {
            json_write_text(&w, NULL, words->items[i]);
        }
        json_array_end(&w);
    }
    json_write_text(&w, "note", given->note);
    json_object_end(&w);
    int code = body.overflow ? usage_error(ctl, "these are more events than one command takes")
                             : client_call(ctl, "POST", SLICE("/v1/notifications/replay"), buffer_slice(&body),
                                           ANSWER_MS, &ctl->arena, &answer);

    buffer_fini(&body);
    if (code == EXIT_OK && ctl->output == OUTPUT_DATA) {
        print_data(ctl, answer.body);
    } else if (code == EXIT_OK) {
        (void)printf("%.*s sent again\n", SLICE_ARG(show_member(ctl, answer.body, "replayed")));
    }
    return code;
}

int cmd_notifications(struct ctl *ctl, int argc, char **argv)
{
    struct given given = {0};
    const struct option options[] = {
        {"--receiver", &given.receiver, NULL, NULL},
        {"--state", &given.state, NULL, NULL},
        {"--limit", &given.limit, NULL, NULL},
        {"--cursor", &given.cursor, NULL, NULL},
        {"--note", &given.note, NULL, NULL},
        {"--all", NULL, NULL, &given.all},
        {NULL, NULL, NULL, NULL},
    };
    struct arguments words;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &words, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (words.count == 0) {
        return given.all || given.note ? usage_error(ctl, "--all and --note belong to `replay`") : list(ctl, &given);
    }
    if (strcmp(words.items[0], "replay") != 0) {
        return usage_error(ctl, "notifications are listed, or sent again with `replay`, not \"%s\"", words.items[0]);
    }
    return replay(ctl, &given, &words);
}
