/* The command debts: the effects that stand although their saga has ended. */
#include <stdio.h>
#include <string.h>

#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/namespaces.h"
#include "tools/sagactl/output.h"

const char help_debts[] = "sagactl debts [--saga NAME] [--tool NAME] [--settled true|false] [--limit N]\n"
                          "              [--cursor C] [--csv]\n"
                          "sagactl debts --group-by KEYS [--saga NAME] [--tool NAME] [--settled true|false]\n"
                          "\n"
                          "Lists the effects that stand although their sagas ended abandoned: nobody undoes\n"
                          "them any more. COST is what the tool's `cost` says; it is empty where nobody knows.\n"
                          "--csv prints a table for a spreadsheet, with costs in millionths (micros), the\n"
                          "tool's result and the key that the receiver saw.\n"
                          "\n"
                          "--group-by counts them instead: tool, saga, tag.NAME, with commas between. Costs are\n"
                          "summed for each currency; those that cost nothing that is known are counted.\n"
                          "\n"
                          "`sagactl settle KEY --as undone` settles one, with filters many; --as\n"
                          "not_happened where somebody has found that it never took effect.\n"
                          "\n"
                          "  sagactl debts --settled false\n"
                          "  sagactl debts --tool card.pay --csv --limit 500 > standing.csv\n";

static void print_many(struct ctl *ctl, struct slice answer)
{
    static const char *const titles[] = {"SAGA", "BUSINESS ID", "STEP",    "TOOL", "EFFECT",
                                         "COST", "SINCE",       "SETTLED", NULL};
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct table table;
    struct slice item;

    table_init_of_namespaces(&table, ctl, titles);
    table.flexible = BIT(0) | BIT(1) | BIT(2) | BIT(3);
    table.optional = BIT(7);
    while (json_next_element(&walk, &item)) {
        struct cell *row = table_row_of(&table, item);

        row[0].text = show_member(ctl, item, "saga_name");
        row[1].text = business_name(ctl, item);
        row[2].text = show_member(ctl, item, "step");
        row[3].text = show_member(ctl, item, "tool");
        row[4].text = show_member(ctl, item, "took_effect");
        row[5].text = show_amount(ctl, item, "cost", show_member(ctl, item, "currency"));
        row[6].text = show_age(ctl, item, "since");
        row[7].text = show_age(ctl, json_member(item, "settled"), "at");
    }
    table_print(&table, 0);
    print_more(ctl, answer);
}

/* Prints the groups with a column for each key, in the order of the request. */
static void print_groups(struct ctl *ctl, struct slice answer, const char *group_by)
{
    static const char *const counts[] = {"count", "cost", "without cost", "oldest", "newest"};
    const char *titles[TABLE_COLUMNS_MAX + 1] = {NULL};
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct table table;
    struct slice item;
    size_t keys = 0;

    for (const char *at = group_by; *at && keys + COUNT_OF(counts) < TABLE_COLUMNS_MAX;) {
        size_t len = strcspn(at, ",");

        titles[keys++] = arena_text(&ctl->arena, (struct slice){at, len});
        at += len + (at[len] == ',');
    }
    memcpy(titles + keys, counts, sizeof(counts));
    table_init(&table, ctl, titles);
    table.flexible = BIT(keys) - 1;
    while (json_next_element(&walk, &item)) {
        struct cell *row = table_row(&table);

        for (size_t i = 0; i < keys; i++) {
            row[i].text = show_member(ctl, json_member(item, "group"), titles[i]);
        }
        row[keys].text = show_member(ctl, item, "count");
        row[keys + 2].text = show_member(ctl, item, "without_cost");
        row[keys + 3].text = show_age(ctl, item, "oldest");
        row[keys + 4].text = show_age(ctl, item, "newest");
        table_put_costs(&table, row, keys + 1, item);
    }
    table_print(&table, 0);
    print_more(ctl, answer);
}

int cmd_debts(struct ctl *ctl, int argc, char **argv)
{
    const char *saga = NULL, *tool = NULL, *settled = NULL, *limit = "50", *cursor = NULL, *group_by = NULL;
    bool csv = false, helped = false;
    const struct option options[] = {{"--saga", &saga, NULL, NULL},         {"--tool", &tool, NULL, NULL},
                                     {"--settled", &settled, NULL, NULL},   {"--limit", &limit, NULL, NULL},
                                     {"--cursor", &cursor, NULL, NULL},     {"--csv", NULL, NULL, &csv},
                                     {"--group-by", &group_by, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    const char *const names[] = {"saga", "tool", "settled", "cursor", "group_by"};
    const char **const values[] = {&saga, &tool, &settled, &cursor, &group_by};
    struct arguments rest;
    struct answer answer;
    struct buffer path;

    if (!options_read(ctl, argc, argv, options, &rest, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (rest.count > 0) {
        return usage_error(ctl, "debts takes options only");
    }
    buffer_init(&path, 16384);
    buffer_printf(&path, "/v1/debts?limit=%s%s", limit, csv ? "&format=csv" : "");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (*values[i]) {
            buffer_printf(&path, "&%s=%.*s", names[i], SLICE_ARG(url_escape(slice_of(*values[i]), &ctl->arena)));
        }
    }
    if (ctl->all_namespaces && (cursor || csv || group_by)) {
        buffer_fini(&path);
        return usage_error(ctl, "groups, cursors and CSV are of one namespace: name it with -n");
    }
    int code = namespaces_get(ctl, arena_slice(&ctl->arena, buffer_slice(&path)), "ended_at", limit, &answer);

    buffer_fini(&path);
    if (code == EXIT_OK && csv) {
        (void)fwrite(answer.table.ptr, 1, answer.table.len, stdout);
    } else if (code == EXIT_OK && group_by && ctl->output != OUTPUT_DATA) {
        print_groups(ctl, answer.body, group_by);
    } else if (code == EXIT_OK && !print_items(ctl, answer.body, "operation")) {
        print_many(ctl, answer.body);
    }
    return code;
}
