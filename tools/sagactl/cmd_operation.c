/* operations. */
#include <stdio.h>

#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/namespaces.h"
#include "tools/sagactl/output.h"

const char help_operations[] =
    "sagactl operations [KEY] [--tool NAME] [--state S] [--run RUN|SAGA_ID] [--limit N] [--cursor C]\n"
    "\n"
    "Lists operations (one intended effect each, known by its idempotency key), or shows one by its\n"
    "key: the key that the receiver saw tells here which saga and step it belongs to. A run is the\n"
    "name that the calls outside sagas gave, or the id of a saga.\n"
    "\n"
    "  sagactl operations --run chat-17\n"
    "  sagactl operations --run 019b3c52-...\n"
    "  sagactl operations --state unknown\n"
    "  sagactl operations 7c0f1a44-....\n";

static void print_operations(struct ctl *ctl, struct slice answer)
{
    static const char *const titles[] = {"KEY", "STATE", "EFFECT", "TOOL", "STEP", "RUN", "ATTEMPTS", NULL};
    static const char *const members[] = {"key", "state", "took_effect", "tool", "step", "run", "attempts"};
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct table table;
    struct slice item;

    table_init_of_namespaces(&table, ctl, titles);
    table.flexible = BIT(3) | BIT(4) | BIT(5);
    table.optional = BIT(5) | BIT(6);
    while (json_next_element(&walk, &item)) {
        struct cell *row = table_row_of(&table, item);

        for (size_t i = 0; i < COUNT_OF(members); i++) {
            row[i].text = show_member(ctl, item, members[i]);
        }
        row[1].colour = status_colour(row[1].text);
    }
    table_print(&table, 0);
}

static void put_query(struct ctl *ctl, struct buffer *path, const char *name, const char *value)
{
    if (value) {
        buffer_printf(path, "&%s=%.*s", name, SLICE_ARG(url_escape(slice_of(value), &ctl->arena)));
    }
}

int cmd_operations(struct ctl *ctl, int argc, char **argv)
{
    const char *tool = NULL, *state = NULL, *run = NULL, *limit = "50", *cursor = NULL;
    const struct option options[] = {{"--tool", &tool, NULL, NULL},     {"--state", &state, NULL, NULL},
                                     {"--run", &run, NULL, NULL},       {"--limit", &limit, NULL, NULL},
                                     {"--cursor", &cursor, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    struct arguments keys;
    struct answer answer;
    struct buffer path;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &keys, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (keys.count > 1) {
        return usage_error(ctl, "one key at most");
    }
    buffer_init(&path, 16384);
    if (keys.count == 1) {
        buffer_printf(&path, "/v1/operations/%.*s", SLICE_ARG(url_escape(slice_of(keys.items[0]), &ctl->arena)));
    } else {
        buffer_printf(&path, "/v1/operations?limit=%s", limit);
        put_query(ctl, &path, "tool", tool);
        put_query(ctl, &path, "state", state);
        put_query(ctl, &path, "run", run);
        put_query(ctl, &path, "cursor", cursor);
    }
    if (ctl->all_namespaces && (keys.count == 1 || cursor)) {
        buffer_fini(&path);
        return usage_error(ctl, "keys and cursors are of one namespace: name it with -n");
    }
    int code = namespaces_get(ctl, buffer_slice(&path), "created_at", limit, &answer);

    buffer_fini(&path);
    if (code != EXIT_OK) {
        return code;
    }
    if (keys.count == 1 && ctl->output != OUTPUT_DATA) {
        print_facts(ctl, answer.body, 2);
    } else if (keys.count == 1) {
        print_data(ctl, answer.body);
    } else if (!print_items(ctl, answer.body, "key")) {
        print_operations(ctl, answer.body);
        print_more(ctl, answer.body);
    }
    return EXIT_OK;
}
