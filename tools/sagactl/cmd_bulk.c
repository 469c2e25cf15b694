/* The command bulk: the jobs that apply a verb to many sagas. */
#include <stdio.h>
#include <string.h>

#include "tools/sagactl/bulk.h"
#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/namespaces.h"
#include "tools/sagactl/output.h"

const char help_bulk[] = "sagactl bulk [list] [--limit N] [--cursor C]\n"
                         "sagactl bulk show ID\n"
                         "sagactl bulk items ID [--outcome open|done|changed|refused] [--limit N] [--after N]\n"
                         "sagactl bulk stop ID --note TEXT\n"
                         "\n"
                         "Lists the jobs that did a verb on many sagas, shows one, and what became of each\n"
                         "item; stop ends a job. A job is made by a verb with filters instead of names:\n"
                         "resolve, acknowledge, assign, abort, pause, resume, escalate, mend, rerun, settle.\n"
                         "It shows what it is about and what would happen, asks (--yes answers), and runs.\n"
                         "--dry-run only shows it. Exit 4 where some items were not done.\n"
                         "\n"
                         "  --tool, --saga, --step, --reason, --error   of cases; one or more, with commas\n"
                         "  --opened-since T, --opened-until T   an instant, or an age such as 2h\n"
                         "  --cost-above MICROS                  of cases\n"
                         "  --tag NAME=VALUE                     of the saga\n"
                         "  --status S, --id ID, --id-prefix P   of sagas\n"
                         "  --from FILE        the rows of a CSV file say which, and what of each\n"
                         "  --column A=B       column A of the file is the member B of an item: business_id,\n"
                         "                     id (of the saga) or operation, as, then, result.NAME\n"
                         "  --map WORD=WORD    what a word of the file means, such as SETTLED=happened\n"
                         "\n"
                         "  sagactl resolve --tool card.pay --error timeout --as happened --note \"says the bank\"\n"
                         "  sagactl resolve retry --tool card.pay --opened-since 1h --note \"the bank is back\"\n"
                         "  sagactl resolve --tool card.pay --from bank.csv --column reference=business_id\n"
                         "    --column state=as --map SETTLED=happened --note \"the bank's file\"\n"
                         "  sagactl abort --saga order --tag customer=ada --note \"she called\"\n"
                         "  sagactl bulk items 019b3c60-... --outcome refused\n";

struct given {
    const char *limit, *cursor, *outcome, *after, *note;
};

static struct slice path_of(struct ctl *ctl, const char *id, const char *rest)
{
    return arena_printf(&ctl->arena, "/v1/bulk/%.*s%s", SLICE_ARG(url_escape(slice_of(id), &ctl->arena)), rest);
}

static struct slice escaped(struct ctl *ctl, const char *text)
{
    return url_escape(slice_of(text ? text : ""), &ctl->arena);
}

static int list(struct ctl *ctl, const struct given *given)
{
    static const char *const titles[] = {"ID",      "STATE",   "ACTION", "ITEMS", "DONE",
                                         "CHANGED", "REFUSED", "AGE",    "NOTE",  NULL};
    struct table table;
    struct answer answer;
    struct json_walk walk;
    struct slice item;
    const char *limit = given->limit ? given->limit : "50";

    if (ctl->all_namespaces && given->cursor) {
        return usage_error(ctl, "cursors are of one namespace: name it with -n");
    }
    int code = namespaces_get(ctl,
                              arena_printf(&ctl->arena, "/v1/bulk?limit=%.*s%s%.*s", SLICE_ARG(escaped(ctl, limit)),
                                           given->cursor ? "&cursor=" : "", SLICE_ARG(escaped(ctl, given->cursor))),
                              "created_at", limit, &answer);

    if (code != EXIT_OK || print_items(ctl, answer.body, "bulk")) {
        return code;
    }
    table_init_of_namespaces(&table, ctl, titles);
    table.flexible = BIT(8);
    table.optional = BIT(5) | BIT(6) | BIT(8); /* `bulk show` has them */
    walk = json_walk(json_member(answer.body, "items"));
    while (json_next_element(&walk, &item)) {
        struct slice outcomes = json_member(item, "outcomes");
        struct cell *row = table_row_of(&table, item);

        row[0].text = show_member(ctl, item, "bulk");
        row[1].text = show_member(ctl, item, "state");
        row[2].text = show_member(ctl, item, "action");
        row[3].text = show_member(ctl, item, "count");
        row[4].text = show_member(ctl, outcomes, "done");
        row[5].text = show_member(ctl, outcomes, "changed");
        row[6].text = show_member(ctl, outcomes, "refused");
        row[7].text = show_age(ctl, item, "created_at");
        row[8].text = show_member(ctl, item, "note");
    }
    table_print(&table, 0);
    print_more(ctl, answer.body);
    return code;
}

static int items(struct ctl *ctl, const char *id, const struct given *given)
{
    static const char *const titles[] = {"N", "OUTCOME", "SAGA", "STEP", "WHY", NULL};
    struct table table;
    struct answer answer;
    struct json_walk walk;
    struct slice item;
    struct slice query = arena_printf(&ctl->arena, "/items?limit=%.*s&after=%.*s%s%.*s",
                                      SLICE_ARG(escaped(ctl, given->limit ? given->limit : "50")),
                                      SLICE_ARG(escaped(ctl, given->after ? given->after : "0")),
                                      given->outcome ? "&outcome=" : "", SLICE_ARG(escaped(ctl, given->outcome)));
    int code = client_get(ctl, path_of(ctl, id, query.ptr), &ctl->arena, &answer);

    if (code != EXIT_OK || print_items(ctl, answer.body, "n")) {
        return code;
    }
    table_init(&table, ctl, titles);
    table.flexible = BIT(2) | BIT(4);
    walk = json_walk(json_member(answer.body, "items"));
    while (json_next_element(&walk, &item)) {
        struct cell *row = table_row(&table);

        row[0].text = show_member(ctl, item, "n");
        row[1].text = show_member(ctl, item, "outcome");
        row[2].text = business_name(ctl, item);
        row[3].text = show_member(ctl, item, "step");
        row[4].text = show_member(ctl, json_member(item, "error"), "message");
    }
    table_print(&table, 0);
    print_more(ctl, answer.body);
    return code;
}

static int send(struct ctl *ctl, const char *method, struct slice path, struct slice body)
{
    struct answer answer;
    int code = client_call(ctl, method, path, body, 30000, &ctl->arena, &answer);

    if (code == EXIT_OK && ctl->output == OUTPUT_DATA) {
        print_data(ctl, answer.body);
    } else if (code == EXIT_OK) {
        bulk_print(ctl, answer.body);
    }
    return code;
}

static int stop(struct ctl *ctl, const char *id, const struct given *given)
{
    struct json_writer w;
    struct buffer body;

    if (!given->note || slice_trim(slice_of(given->note)).len == 0) {
        return usage_error(ctl, "say why with --note TEXT");
    }
    buffer_init(&body, 65536);
    json_writer_init(&w, &body);
    json_object_begin(&w, NULL);
    json_write_text(&w, "note", given->note);
    json_object_end(&w);
    int code = body.overflow ? usage_error(ctl, "a note has at most 1000 characters")
                             : send(ctl, "POST", path_of(ctl, id, "/stop"), buffer_slice(&body));

    buffer_fini(&body);
    return code;
}

int cmd_bulk(struct ctl *ctl, int argc, char **argv)
{
    struct given given = {0};
    const struct option options[] = {{"--limit", &given.limit, NULL, NULL},     {"--cursor", &given.cursor, NULL, NULL},
                                     {"--outcome", &given.outcome, NULL, NULL}, {"--after", &given.after, NULL, NULL},
                                     {"--note", &given.note, NULL, NULL},       {NULL, NULL, NULL, NULL}};
    struct arguments words;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &words, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (words.count == 0 || (words.count == 1 && strcmp(words.items[0], "list") == 0)) {
        return list(ctl, &given);
    }
    if (ctl->all_namespaces) {
        return usage_error(ctl, "a job is of one namespace: name it with -n");
    }
    if (words.count != 2) {
        return usage_error(ctl, "show, items or stop, and the id of a job: `sagactl bulk show ID`");
    }
    if (strcmp(words.items[0], "show") == 0) {
        return send(ctl, "GET", path_of(ctl, words.items[1], ""), SLICE_NONE);
    }
    if (strcmp(words.items[0], "items") == 0) {
        return items(ctl, words.items[1], &given);
    }
    return strcmp(words.items[0], "stop") == 0 ? stop(ctl, words.items[1], &given)
                                               : usage_error(ctl, "bulk has no verb \"%s\"", words.items[0]);
}
