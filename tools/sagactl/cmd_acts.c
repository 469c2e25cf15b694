/* The command acts: what persons and tokens changed, and what they were refused. */
#include <stdio.h>
#include <string.h>

#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/namespaces.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/query.h"
#include "tools/sagactl/saga_name.h"

const char help_acts[] = "sagactl acts [--actor NAME] [--verb VERB] [--tool NAME]\n"
                         "             [--saga NAME|ID|NAME/BUSINESS_ID] [--outcome done|refused]\n"
                         "             [--since TIME] [--until TIME] [--limit N] [--cursor C] [-A]\n"
                         "\n"
                         "Lists who changed what, newest first: aborts, verdicts, decisions, holds,\n"
                         "breakers, schedules, bulk jobs, registered documents. NOTE says why, in the\n"
                         "words of whoever did it; -o json has the address and the exact target. The\n"
                         "starts, calls and signals of programs are no acts: the log of each saga has\n"
                         "them.\n"
                         "\n"
                         "What a token was refused is one row a minute: `forbidden x3` is three refusals,\n"
                         "and DID is the first of them. An act is there as soon as its change is\n"
                         "answered; a refusal appears after a second.\n"
                         "\n"
                         "--actor, --verb, --saga and --tool may be given several times. TIME is an instant\n"
                         "or an age such as 2h. sagad keeps acts for 400 days, see --acts-keep.\n"
                         "\n"
                         "  sagactl acts --since 24h\n"
                         "  sagactl acts --outcome refused          # who lacks a right?\n"
                         "  sagactl acts --saga order --verb abort --verb abandon\n"
                         "  sagactl acts --saga order/o-17          # who did what to this one?\n"
                         "  sagactl acts --actor ann -o json --limit 500 > ann.json\n";

struct filters {
    struct option_values actors, verbs, sagas, tools;
    const char *outcome, *since, *until, *limit, *cursor;
};

/* What it was done to, as people name it: the saga by its business id, everything else by its kind. */
static struct slice on_what(struct ctl *ctl, struct slice item)
{
    struct slice saga = show_member(ctl, item, "saga_name"), id = show_member(ctl, item, "business_id");
    struct slice kind = show_member(ctl, item, "kind"), target = show_member(ctl, item, "target");

    if (id.len > 0) {
        return arena_printf(&ctl->arena, "%.*s/%.*s", SLICE_ARG(saga), SLICE_ARG(id));
    }
    return arena_printf(&ctl->arena, "%.*s%s%.*s", SLICE_ARG(kind), kind.len && target.len ? " " : "",
                        SLICE_ARG(target));
}

static struct slice what(struct ctl *ctl, struct slice item)
{
    struct slice verb = show_member(ctl, item, "verb"), detail = show_member(ctl, item, "detail");

    return detail.len ? arena_printf(&ctl->arena, "%.*s: %.*s", SLICE_ARG(verb), SLICE_ARG(detail)) : verb;
}

/* A refusal shows its problem code, and how often it came. */
static struct slice outcome(struct ctl *ctl, struct slice item)
{
    struct slice code = show_member(ctl, item, "code"), count = show_member(ctl, item, "count");

    return !code.len              ? show_member(ctl, item, "outcome")
           : slice_is(count, "1") ? code
                                  : arena_printf(&ctl->arena, "%.*s x%.*s", SLICE_ARG(code), SLICE_ARG(count));
}

static void print_many(struct ctl *ctl, struct slice answer)
{
    static const char *const narrow[] = {"AGE", "WHO", "DID", "TO", "OUTCOME", "NOTE", NULL};
    static const char *const wide[] = {"AGE", "WHO", "DID", "TO", "OUTCOME", "NOTE", "ROLE", "TOOL", "ADDRESS", NULL};
    static const char *const members[] = {"note", "role", "tool", "address"};
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct table table;
    struct slice item;

    table_init_of_namespaces(&table, ctl, ctl->wide ? wide : narrow);
    table.flexible = BIT(1) | BIT(2) | BIT(3) | BIT(5);
    while (json_next_element(&walk, &item)) {
        struct cell *row = table_row_of(&table, item);

        row[0].text = show_age(ctl, item, "at");
        row[1].text = show_member(ctl, item, "actor");
        row[2].text = what(ctl, item);
        row[3].text = on_what(ctl, item);
        row[4].text = outcome(ctl, item);
        row[4].colour = slice_is(row[4].text, "done") ? COLOUR_NONE : COLOUR_RED;
        for (size_t i = 0; i < (ctl->wide ? COUNT_OF(members) : 1); i++) {
            row[5 + i].text = show_member(ctl, item, members[i]);
        }
    }
    table_print(&table, 0);
    print_more(ctl, answer);
}

/* NAME/BUSINESS_ID becomes the id of that saga; the name of a definition and an id stay as they are. */
static int find_sagas(struct ctl *ctl, struct option_values *sagas)
{
    int code = EXIT_OK;

    for (size_t i = 0; i < sagas->count && code == EXIT_OK; i++) {
        struct slice id;

        if (strchr(sagas->items[i], '/')) {
            code = saga_id_of(ctl, sagas->items[i], &id);
            if (code == EXIT_OK) {
                sagas->items[i] = arena_text(&ctl->arena, id);
            }
        }
    }
    return code;
}

static bool put_filters(struct ctl *ctl, struct buffer *path, const struct filters *f)
{
    return query_put_all(ctl, path, "actor", &f->actors) && query_put_all(ctl, path, "verb", &f->verbs) &&
           query_put_all(ctl, path, "saga", &f->sagas) && query_put_all(ctl, path, "tool", &f->tools) &&
           query_put(ctl, path, "outcome", f->outcome) && query_put_time(ctl, path, "since", f->since) &&
           query_put_time(ctl, path, "until", f->until) && query_put(ctl, path, "cursor", f->cursor);
}

int cmd_acts(struct ctl *ctl, int argc, char **argv)
{
    struct filters f = {.limit = "50"};
    const struct option options[] = {{"--actor", NULL, &f.actors, NULL},    {"--verb", NULL, &f.verbs, NULL},
                                     {"--saga", NULL, &f.sagas, NULL},      {"--tool", NULL, &f.tools, NULL},
                                     {"--outcome", &f.outcome, NULL, NULL}, {"--since", &f.since, NULL, NULL},
                                     {"--until", &f.until, NULL, NULL},     {"--limit", &f.limit, NULL, NULL},
                                     {"--cursor", &f.cursor, NULL, NULL},   {NULL, NULL, NULL, NULL}};
    struct arguments rest;
    struct answer answer;
    struct buffer path;
    bool helped = false;
    int code = EXIT_USAGE;

    if (!options_read(ctl, argc, argv, options, &rest, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (rest.count > 0) {
        return usage_error(ctl, "acts takes options only");
    }
    if (ctl->all_namespaces && f.cursor) {
        return usage_error(ctl, "a cursor is of one namespace: name it with -n");
    }
    code = find_sagas(ctl, &f.sagas);
    if (code != EXIT_OK) {
        return code;
    }
    code = EXIT_USAGE;
    buffer_init(&path, 65536);
    buffer_printf(&path, "/v1/acts?limit=%.*s", SLICE_ARG(url_escape(slice_of(f.limit), &ctl->arena)));
    if (put_filters(ctl, &path, &f)) {
        code = namespaces_get(ctl, arena_slice(&ctl->arena, buffer_slice(&path)), "at", f.limit, &answer);
    }
    buffer_fini(&path);
    if (code == EXIT_OK && !print_items(ctl, answer.body, "id")) {
        print_many(ctl, answer.body);
    }
    return code;
}
