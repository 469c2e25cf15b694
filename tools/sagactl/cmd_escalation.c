/* The commands escalations and resolve. */
#include <stdio.h>
#include <string.h>

#include "core/saga/saga.h"
#include "tools/sagactl/ask.h"
#include "tools/sagactl/bulk.h"
#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/namespaces.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/query.h"
#include "tools/sagactl/saga_name.h"
#include "tools/sagactl/words.h"

const char help_escalations[] = "sagactl cases [N] [FILTERS] [--group-by KEYS] [--limit N] [--cursor C]\n"
                                "\n"
                                "Lists what waits for a person (an escalation is a case), newest first; or counts\n"
                                "the cases, the largest group first; or shows one with its evidence and what each\n"
                                "verb would do. BUSINESS ID is the id of the saga where it has no business id;\n"
                                "COST is what the operation has cost; groups have a sum for each currency. On a\n"
                                "narrow terminal (or with COLUMNS) long texts are cut; -o json and -o csv have\n"
                                "all of them, and costs in millionths (micros).\n"
                                "\n"
                                "  --status open|resolved|all   open without it; --all is --status all\n"
                                "  --tool, --saga, --step, --reason, --error   one or more, with commas between;\n"
                                "                               an empty value: those that have none\n"
                                "  --tag NAME=VALUE             of the saga; given several times: one of the values\n"
                                "                               of each name\n"
                                "  --opened-since T, --opened-until T   an instant, or an age such as 2h\n"
                                "  --cost-above MICROS\n"
                                "  --acknowledged true|false    whether somebody looks at it now\n"
                                "  --assigned NAME,...          an empty value: to nobody\n"
                                "  --group-by KEYS              tool, saga, step, reason, error, tag.NAME\n"
                                "\n"
                                "  sagactl cases\n"
                                "  sagactl cases --group-by tool,error\n"
                                "  sagactl cases --tool card.pay --error timeout --opened-since 1h -o csv\n"
                                "  sagactl cases 7\n";

const char help_resolve[] = "sagactl resolve N|SAGA... --as happened|not_happened|undone --note TEXT\n"
                            "                [--then retry] [--result JSON] [--round N] [--yes]\n"
                            "sagactl resolve --operation KEY --as happened|not_happened|undone --note TEXT\n"
                            "                [--then retry] [--result JSON] [--round N]\n"
                            "sagactl resolve N|SAGA... ACTION --note TEXT [--args JSON] [--accept-double] [--yes]\n"
                            "sagactl resolve FILTERS ... [--dry-run] [--yes]          see `sagactl bulk --help`\n"
                            "\n"
                            "With --operation it is about any operation of which nobody knows, or that is\n"
                            "tried again, whether or not a person is asked about it. --as undone: it happened,\n"
                            "and somebody undid it by hand. --then retry: it did not happen, and is called once\n"
                            "more under the same key.\n"
                            "\n"
                            "Answers escalation N, or the open one of a saga (NAME/BUSINESS_ID). You say what happened "
                            "to one effect; the engine decides\n"
                            "what follows for the saga. The first answer holds. A case that was asked again\n"
                            "shows which round it is in: --round says which one you have seen.\n"
                            "\n"
                            "  --as happened       it took effect; with --result, where it is needed later\n"
                            "  --as not_happened   it certainly did not\n"
                            "  retry        one more round of attempts under the same key; --args changes\n"
                            "               the arguments where it certainly had no effect; a tool of class\n"
                            "               once with an unknown outcome also needs --accept-double\n"
                            "  probe        ask the receiver again now\n"
                            "  waive        leave this effect standing, as a debt; the rest is undone\n"
                            "  skip         a step without effect counts as skipped; the saga goes on\n"
                            "               (with --result where a later step needs one)\n"
                            "  compensate   undo now\n"
                            "  abandon      end at once; every standing effect is listed as a debt\n"
                            "\n"
                            "A case with the reason unreadable (the log of its saga cannot be read) takes\n"
                            "abandon. One with the reason follower (what was to follow its saga was refused)\n"
                            "takes retry, which starts it once more, and abandon.\n"
                            "\n"
                            "`sagactl escalations N` says which are allowed and what each would do. The older\n"
                            "form, resolve N resolve --as ..., does the same.\n"
                            "\n"
                            "Several numbers get the same answer. On a terminal it asks first, but for a\n"
                            "probe; --yes answers that, and several at once need it without a terminal.\n"
                            "\n"
                            "  sagactl resolve 7 --as happened --note \"seen in the bank's log\"\n"
                            "  sagactl resolve 7 retry --note \"the mail server is back\"\n";

/* Prints the earlier answers to this case. */
static void print_earlier(struct ctl *ctl, struct slice earlier)
{
    struct json_walk walk = json_walk(earlier);
    struct slice round;

    while (json_type(earlier) == JSON_ARRAY && json_next_element(&walk, &round)) {
        struct slice as = show_member(ctl, round, "as");

        (void)printf("  round %-6.*s %.*s, %.*s%s%.*s by %.*s %.*s: %.*s\n",
                     SLICE_ARG(show_member(ctl, round, "round")), SLICE_ARG(show_member(ctl, round, "reason")),
                     SLICE_ARG(show_member(ctl, round, "action")), as.len ? " as " : "", SLICE_ARG(as),
                     SLICE_ARG(show_member(ctl, round, "actor")), SLICE_ARG(show_age(ctl, round, "resolved_at")),
                     SLICE_ARG(show_member(ctl, round, "note")));
    }
}

static void print_remarks(struct ctl *ctl, struct slice remarks)
{
    struct json_walk walk = json_walk(remarks);
    struct slice remark;

    while (json_type(remarks) == JSON_ARRAY && json_next_element(&walk, &remark)) {
        struct slice to = show_member(ctl, remark, "to"), until = show_member(ctl, remark, "until");

        (void)printf("  %-12.*s %.*s %.*s%s%.*s%s%.*s: %.*s\n", SLICE_ARG(show_member(ctl, remark, "kind")),
                     SLICE_ARG(show_member(ctl, remark, "actor")), SLICE_ARG(show_age(ctl, remark, "at")),
                     to.len ? " to " : "", SLICE_ARG(to), until.len ? " until " : "", SLICE_ARG(until),
                     SLICE_ARG(show_member(ctl, remark, "note")));
    }
}

static struct slice cost_of(struct ctl *ctl, struct slice item)
{
    return show_amount(ctl, item, "cost", show_member(ctl, item, "currency"));
}

static void print_one(struct ctl *ctl, struct slice e)
{
    static const char *const members[] = {"saga",
                                          "saga_name",
                                          "business_id",
                                          "tags",
                                          "step",
                                          "operation",
                                          "cost",
                                          "reason",
                                          "status",
                                          "round",
                                          "opened_at",
                                          "asked_by",
                                          "asked_note",
                                          "acknowledged_by",
                                          "acknowledged_until",
                                          "assigned_to",
                                          "resolved_at",
                                          "action",
                                          "as",
                                          "actor",
                                          "note"};
    struct json_walk walk = json_walk(json_member(e, "actions"));
    struct slice action;

    (void)printf("%sescalation %.*s%s\n", colour_on(ctl, COLOUR_BOLD), SLICE_ARG(show_member(ctl, e, "n")),
                 colour_off(ctl, COLOUR_BOLD));
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        struct slice text = show_member(ctl, e, members[i]);

        if (strcmp(members[i], "cost") == 0) {
            text = cost_of(ctl, e);
        }
        if (text.len > 0) {
            (void)printf("  %-12s %.*s\n", members[i], SLICE_ARG(text));
        }
    }
    print_evidence(ctl, json_member(e, "evidence"), 4);
    print_earlier(ctl, json_member(e, "earlier"));
    print_remarks(ctl, json_member(e, "remarks"));
    while (json_type(json_member(e, "actions")) == JSON_ARRAY && json_next_element(&walk, &action)) {
        (void)printf("    %s%-11.*s%s ", colour_on(ctl, COLOUR_BLUE), SLICE_ARG(show_member(ctl, action, "action")),
                     colour_off(ctl, COLOUR_BLUE));
        print_wrapped(words_of_flags(show_member(ctl, action, "does"), &ctl->arena), 16, terminal_width());
    }
}

static struct slice who_has_it(struct ctl *ctl, struct slice item)
{
    struct slice assigned = show_member(ctl, item, "assigned_to");

    return assigned.len ? assigned : show_member(ctl, item, "acknowledged_by");
}

/* Prints a list of escalations. With `all`, the list includes resolved ones, so each row shows its status. */
static void print_many(struct ctl *ctl, struct slice answer, bool all)
{
    static const char *const titles[] = {"N",     "SAGA", "BUSINESS ID", "STEP", "TOOL", "REASON",
                                         "ERROR", "COST", "OPENED",      "WHO",  NULL};
    static const char *const titles_all[] = {"N",     "SAGA", "BUSINESS ID", "STEP", "TOOL",   "REASON",
                                             "ERROR", "COST", "OPENED",      "WHO",  "STATUS", NULL};
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct table table;
    struct slice item;

    const char *titled[TABLE_COLUMNS_MAX + 1] = {NULL};
    size_t columns = 0;

    while ((all ? titles_all : titles)[columns]) {
        titled[columns] = (all ? titles_all : titles)[columns];
        columns++;
    }
    titled[columns] = ctl->all_namespaces ? "NAMESPACE" : NULL;
    table_init(&table, ctl, titled);
    table.flexible = BIT(1) | BIT(2) | BIT(3) | BIT(4) | BIT(5) | BIT(6);
    table.optional = BIT(9);
    while (json_next_element(&walk, &item)) {
        struct cell *row = table_row(&table);

        row[0].text = show_member(ctl, item, "n");
        row[1].text = show_member(ctl, item, "saga_name");
        row[2].text = business_name(ctl, item);
        row[3].text = show_member(ctl, item, "step");
        row[4].text = show_member(ctl, item, "tool");
        row[5].text = show_member(ctl, item, "reason");
        row[6].text = show_member(ctl, item, "error");
        row[7].text = cost_of(ctl, item);
        row[8].text = show_age(ctl, item, "opened_at");
        row[9].text = who_has_it(ctl, item);
        if (all) {
            row[10].text = show_member(ctl, item, "status");
            row[10].colour = status_colour(row[10].text);
        }
        if (ctl->all_namespaces) {
            row[columns].text = show_member(ctl, item, "namespace");
        }
    }
    table_print(&table, 0);
}

/* Prints a sheet for programs: the members have the names of the API. */
static void print_sheet(struct ctl *ctl, struct slice answer)
{
    static const char *const members[] = {
        "n",    "status", "saga_name",       "business_id", "saga",     "step",      "operation",
        "tool", "reason", "error",           "detail",      "cost",     "opened_at", "resolved_at",
        "tags", "round",  "acknowledged_by", "assigned_to", "currency", NULL};
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct table table;
    struct slice item;

    table_init(&table, ctl, members);
    while (json_next_element(&walk, &item)) {
        struct cell *row = table_row(&table);

        for (size_t i = 0; members[i]; i++) {
            row[i].text = show_member(ctl, item, members[i]);
        }
    }
    table_print(&table, 0);
}

/* Prints the groups with a column for each key, in the order of the request. */
static void print_groups(struct ctl *ctl, struct slice answer, const char *group_by)
{
    static const char *const counts[] = {"count", "cost", "without cost", "oldest", "newest"};
    const char *titles[TABLE_COLUMNS_MAX + 1] = {NULL};
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct table table;
    struct slice item, rest = slice_of(group_by);
    size_t keys = 0;

    while (rest.ptr && keys + COUNT_OF(counts) < TABLE_COLUMNS_MAX) {
        const char *comma = memchr(rest.ptr, ',', rest.len);
        size_t len = comma ? (size_t)(comma - rest.ptr) : rest.len;

        titles[keys++] = arena_text(&ctl->arena, (struct slice){rest.ptr, len});
        rest = comma ? (struct slice){comma + 1, rest.len - len - 1} : SLICE_NONE;
    }
    memcpy(titles + keys, counts, sizeof(counts));
    table_init(&table, ctl, titles);
    table.flexible = BIT(keys) - 1;
    while (json_next_element(&walk, &item)) {
        struct cell *row = table_row(&table);
        bool csv = ctl->output == OUTPUT_CSV;

        for (size_t i = 0; i < keys; i++) {
            row[i].text = show_member(ctl, json_member(item, "group"), titles[i]);
        }
        row[keys].text = show_member(ctl, item, "count");
        row[keys + 2].text = show_member(ctl, item, "without_cost");
        row[keys + 3].text = csv ? show_member(ctl, item, "oldest") : show_age(ctl, item, "oldest");
        row[keys + 4].text = csv ? show_member(ctl, item, "newest") : show_age(ctl, item, "newest");
        if (csv) {
            row[keys + 1].text = show_costs(ctl, item);
        } else {
            table_put_costs(&table, row, keys + 1, item);
        }
    }
    table_print(&table, 0);
}

struct case_options {
    const char *status, *tool, *saga, *step, *reason, *error, *since, *until, *cost_above, *group_by, *limit, *cursor,
        *acknowledged, *assigned;
    struct option_values tags;
};

static bool put_cases(struct ctl *ctl, const struct case_options *o, struct buffer *path)
{
    bool ok = true;

    buffer_printf(path, "/v1/escalations?limit=%.*s", SLICE_ARG(url_escape(slice_of(o->limit), &ctl->arena)));
    for (size_t i = 0; ok && i < o->tags.count; i++) {
        ok = query_put_tag(ctl, path, o->tags.items[i]);
    }
    return ok && query_put(ctl, path, "status", o->status) && query_put(ctl, path, "tool", o->tool) &&
           query_put(ctl, path, "saga", o->saga) && query_put(ctl, path, "step", o->step) &&
           query_put(ctl, path, "reason", o->reason) && query_put(ctl, path, "error", o->error) &&
           query_put_time(ctl, path, "since", o->since) && query_put_time(ctl, path, "until", o->until) &&
           query_put(ctl, path, "acknowledged", o->acknowledged) && query_put(ctl, path, "assigned", o->assigned) &&
           query_put(ctl, path, "cost_above", o->cost_above) && query_put(ctl, path, "group_by", o->group_by) &&
           query_put(ctl, path, "cursor", o->cursor);
}

static int list_cases(struct ctl *ctl, const struct case_options *o)
{
    struct answer answer;
    struct buffer path;
    int code = EXIT_USAGE;

    if (ctl->all_namespaces && (o->group_by || o->cursor)) {
        return usage_error(ctl, "groups and cursors are of one namespace: name it with -n");
    }
    buffer_init(&path, 65536);
    if (put_cases(ctl, o, &path)) {
        code = namespaces_get(ctl, buffer_slice(&path), "opened_at", o->limit, &answer);
    }
    buffer_fini(&path);
    if (code != EXIT_OK || (print_items(ctl, answer.body, "n"))) {
        return code;
    }
    if (o->group_by) {
        print_groups(ctl, answer.body, o->group_by);
    } else if (ctl->output == OUTPUT_CSV) {
        print_sheet(ctl, answer.body);
    } else {
        print_many(ctl, answer.body, strcmp(o->status, "open") != 0);
    }
    print_more(ctl, answer.body);
    return code;
}

static int show_case(struct ctl *ctl, const char *number)
{
    struct answer answer;
    int code = client_get(
        ctl, arena_printf(&ctl->arena, "/v1/escalations/%.*s", SLICE_ARG(url_escape(slice_of(number), &ctl->arena))),
        &ctl->arena, &answer);

    if (code == EXIT_OK && ctl->output == OUTPUT_DATA) {
        print_data(ctl, answer.body);
    } else if (code == EXIT_OK) {
        print_one(ctl, answer.body);
    }
    return code;
}

int cmd_escalations(struct ctl *ctl, int argc, char **argv)
{
    struct case_options o = {.limit = "50", .status = "open"};
    bool all = false, helped = false;
    const struct option options[] = {{"--all", NULL, NULL, &all},
                                     {"--status", &o.status, NULL, NULL},
                                     {"--tool", &o.tool, NULL, NULL},
                                     {"--saga", &o.saga, NULL, NULL},
                                     {"--step", &o.step, NULL, NULL},
                                     {"--reason", &o.reason, NULL, NULL},
                                     {"--error", &o.error, NULL, NULL},
                                     {"--tag", NULL, &o.tags, NULL},
                                     {"--opened-since", &o.since, NULL, NULL},
                                     {"--opened-until", &o.until, NULL, NULL},
                                     {"--cost-above", &o.cost_above, NULL, NULL},
                                     {"--acknowledged", &o.acknowledged, NULL, NULL},
                                     {"--assigned", &o.assigned, NULL, NULL},
                                     {"--group-by", &o.group_by, NULL, NULL},
                                     {"--limit", &o.limit, NULL, NULL},
                                     {"--cursor", &o.cursor, NULL, NULL},
                                     {NULL, NULL, NULL, NULL}};
    struct arguments numbers;

    if (!options_read(ctl, argc, argv, options, &numbers, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (numbers.count > 1) {
        return usage_error(ctl, "one number at most");
    }
    if (o.group_by && ctl->output == OUTPUT_NAME) {
        return usage_error(ctl, "groups have no names: leave out -o name or --group-by");
    }
    o.status = all ? "all" : o.status;
    return numbers.count == 1 ? show_case(ctl, numbers.items[0]) : list_cases(ctl, &o);
}

struct resolve_options {
    const char *action, *as, *result, *args, *note, *then, *operation, *round;
    bool accept_double;
    struct slice result_json, args_json;
};

static struct slice resolve_body(struct ctl *ctl, const struct resolve_options *o)
{
    struct buffer body;
    struct json_writer w;

    buffer_init(&body, 4 << 20);
    json_writer_init(&w, &body);
    json_object_begin(&w, NULL);
    if (!o->operation) {
        json_write_text(&w, "action", o->action);
    }
    json_write_text(&w, "note", o->note);
    if (o->then) {
        json_write_text(&w, "then", o->then);
    }
    if (o->as) {
        json_write_text(&w, "as", o->as);
    }
    if (o->round) {
        json_write_raw(&w, "round", slice_of(o->round));
    }
    if (o->result) {
        json_write_raw(&w, "result", o->result_json);
    }
    if (o->args) {
        json_write_raw(&w, "args", o->args_json);
    }
    if (o->accept_double) {
        json_write_bool(&w, "accept_double", true);
    }
    json_object_end(&w);
    struct slice text = arena_slice(&ctl->arena, buffer_slice(&body));

    buffer_fini(&body);
    return text;
}

/* Resolves one question. `of` is the number of an escalation or the key of an operation. */
static int resolve(struct ctl *ctl, const char *of, const struct resolve_options *o)
{
    struct answer answer;
    int code = client_call(ctl, "POST",
                           arena_printf(&ctl->arena, "/v1/%s/%.*s/resolve", o->operation ? "operations" : "escalations",
                                        SLICE_ARG(url_escape(slice_of(of), &ctl->arena))),
                           resolve_body(ctl, o), 30000, &ctl->arena, &answer);

    if (code == EXIT_OK && ctl->output == OUTPUT_DATA) {
        print_data(ctl, answer.body);
    } else if (code == EXIT_OK && o->operation && json_type(json_member(answer.body, "settled")) == JSON_OBJECT) {
        (void)printf("debt of operation %s settled as %s\n", of, o->as);
    } else if (code == EXIT_OK && o->operation) {
        (void)printf("operation %s %.*s\n", of, SLICE_ARG(show_member(ctl, answer.body, "state")));
    } else if (code == EXIT_OK) {
        (void)printf("escalation %s is %.*s: %s%s\n", of, SLICE_ARG(show_member(ctl, answer.body, "status")),
                     o->as ? "you said " : "", o->as ? o->as : o->action);
    }
    if (code == EXIT_OK && ctl->output != OUTPUT_DATA) {
        (void)fprintf(stderr, "What became of the saga: sagactl show %.*s\n",
                      SLICE_ARG(show_member(ctl, answer.body, "saga")));
    }
    return code;
}

/* Resolves the questions one after the other. Returns the code of the first refusal. */
static int resolve_each(struct ctl *ctl, const char *const *numbers, size_t count, const struct resolve_options *o)
{
    int first = EXIT_OK;

    for (size_t i = 0; i < count; i++) {
        int code = resolve(ctl, numbers[i], o);

        if (code != EXIT_OK && count > 1) {
            (void)fprintf(stderr, "  that was escalation %s\n", numbers[i]);
        }
        first = first == EXIT_OK ? code : first;
        if (code == EXIT_UNREACHABLE || code == EXIT_NOT_PERMITTED) {
            return first; /* the next one would fail in the same way */
        }
    }
    return first;
}

/* Asks the person to confirm. A probe needs no confirmation, because it changes nothing; all other actions stay in the
 * log for ever. */
static int ask_resolve(const struct ctl *ctl, const char *const *numbers, size_t count, const struct resolve_options *o)
{
    const char *what = o->as ? o->as : o->action;

    if (strcmp(what, "probe") == 0) {
        return EXIT_OK;
    }
    return o->operation ? ask_first(ctl, 1, "Say %s of operation %s", what, o->operation)
           : count == 1 ? ask_first(ctl, 1, "Answer escalation %s by %s", numbers[0], what)
                        : ask_first(ctl, count, "Answer %zu escalations by %s", count, what);
}

static bool is_number(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

/* Has the text the form of a saga's id, of its beginning, or of NAME/BUSINESS_ID? No action has. */
static bool is_saga(const char *text)
{
    return strchr(text, '/') || (strlen(text) >= 8 && text[strspn(text, "0123456789abcdef-")] == '\0');
}

/* Puts the number of the saga's open case into the place of the saga's name. */
static int case_of_saga(struct ctl *ctl, const char **name)
{
    struct slice path, number;
    struct answer answer;
    int code = saga_path(ctl, *name, &path);

    code = code == EXIT_OK ? client_get(ctl, path, &ctl->arena, &answer) : code;
    if (code != EXIT_OK) {
        return code;
    }
    number = json_member(answer.body, "escalation");
    if (json_type(number) == JSON_OBJECT) {
        number = json_member(number, "n");
    }
    if (json_type(number) != JSON_NUMBER) {
        (void)fprintf(stderr, "sagactl: %s is %.*s, and no person is asked about it\n", *name,
                      SLICE_ARG(show_member(ctl, answer.body, "status")));
        return EXIT_CONFLICT;
    }
    *name = arena_text(&ctl->arena, number);
    return EXIT_OK;
}

const char help_settle[] = "sagactl settle KEY... --as undone|not_happened --note TEXT\n"
                           "sagactl settle FILTERS --as undone|not_happened --note TEXT [--yes]\n"
                           "\n"
                           "Settles what stands since its saga ended abandoned (role operator): somebody has\n"
                           "undone it by hand, or has found that what was in doubt never took effect. The log\n"
                           "and the status of the saga stay. `sagactl debts --settled false` lists what is open,\n"
                           "with -o name the keys.\n"
                           "\n"
                           "  --tool, --saga   one or more, with commas between\n"
                           "  --id, --tag NAME=VALUE, --opened-since T, --opened-until T   of the saga\n"
                           "\n"
                           "  sagactl settle --tool card.pay --as undone --note \"refunded with file 17\"\n";

/* The same verdict would have a running saga undone. A saga that has ended abandoned stays so. */
static int refuse_unless_abandoned(struct ctl *ctl, const char *key)
{
    struct answer operation, saga;
    int code = client_get(
        ctl, arena_printf(&ctl->arena, "/v1/operations/%.*s", SLICE_ARG(url_escape(slice_of(key), &ctl->arena))),
        &ctl->arena, &operation);

    code = code == EXIT_OK ? client_get(ctl,
                                        arena_printf(&ctl->arena, "/v1/sagas/%.*s",
                                                     SLICE_ARG(show_member(ctl, operation.body, "saga"))),
                                        &ctl->arena, &saga)
                           : code;
    if (code == EXIT_OK && !json_string_is(json_member(saga.body, "status"), "abandoned")) {
        (void)fprintf(stderr,
                      "sagactl: operation %s is no debt: its saga is %.*s. A verdict on it is `sagactl resolve "
                      "--operation`\n",
                      key, SLICE_ARG(show_member(ctl, saga.body, "status")));
        code = EXIT_CONFLICT;
    }
    return code;
}

int cmd_settle(struct ctl *ctl, int argc, char **argv)
{
    struct resolve_options o = {.action = "resolve"};
    const struct option options[] = {
        {"--as", &o.as, NULL, NULL}, {"--note", &o.note, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    struct arguments keys;
    int first = EXIT_OK;
    bool helped = false;

    if (bulk_is_meant(argc, argv)) {
        return bulk_do(ctl, "settle", argc, argv);
    }
    if (!options_read(ctl, argc, argv, options, &keys, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (keys.count == 0) {
        return usage_error(ctl, "which debts? the keys of their operations, or filters such as --tool");
    }
    if (!o.as || (strcmp(o.as, "undone") != 0 && strcmp(o.as, "not_happened") != 0)) {
        return usage_error(ctl, "a debt is settled with --as undone or --as not_happened");
    }
    if (!o.note || slice_trim(slice_of(o.note)).len == 0) {
        return usage_error(ctl, "say why with --note TEXT: it stands beside the saga for ever");
    }
    int code = ask_first(ctl, keys.count, "Settle %zu debt%s as %s", keys.count, keys.count == 1 ? "" : "s", o.as);

    for (size_t i = 0; code == EXIT_OK && i < keys.count; i++) {
        o.operation = keys.items[i];
        int one = refuse_unless_abandoned(ctl, keys.items[i]);

        one = one == EXIT_OK ? resolve(ctl, keys.items[i], &o) : one;
        first = first == EXIT_OK ? one : first;
    }
    return code == EXIT_OK ? first : code;
}

int cmd_resolve(struct ctl *ctl, int argc, char **argv)
{
    struct resolve_options o = {0};
    const struct option options[] = {
        {"--as", &o.as, NULL, NULL},       {"--result", &o.result, NULL, NULL},
        {"--args", &o.args, NULL, NULL},   {"--note", &o.note, NULL, NULL},
        {"--then", &o.then, NULL, NULL},   {"--operation", &o.operation, NULL, NULL},
        {"--round", &o.round, NULL, NULL}, {"--accept-double", NULL, NULL, &o.accept_double},
        {NULL, NULL, NULL, NULL}};
    struct arguments names;
    enum operator_action action = OPERATOR_RESOLVE;
    bool helped = false;

    if (bulk_is_meant(argc, argv)) {
        return bulk_do(ctl, NULL, argc, argv);
    }
    if (!options_read(ctl, argc, argv, options, &names, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (o.operation && names.count != 0) {
        return usage_error(ctl, "--operation says which; leave number and action out");
    }
    size_t count = names.count; /* the count of numbers; the action is behind them */

    count -= count > 0 && !is_number(names.items[count - 1]) && !is_saga(names.items[count - 1]);
    for (size_t i = 0; i < count; i++) {
        if (!is_number(names.items[i]) && !is_saga(names.items[i])) {
            return usage_error(ctl, "\"%s\" is no number of an escalation, and no saga", names.items[i]);
        }
    }
    if (o.round && (!is_number(o.round) || count > 1)) {
        return usage_error(ctl, "--round is a number, and goes with one escalation");
    }
    if (!o.operation && (count == 0 || (count == names.count && !o.as))) {
        return usage_error(ctl, "which escalation, and which action? or --as happened, not_happened, undone");
    }
    if (o.operation && (o.args || o.accept_double)) {
        return usage_error(ctl, "--args and --accept-double go with an escalation only");
    }
    o.action = count < names.count ? names.items[count] : "resolve"; /* --as gives the verdict */
    if (!operator_action_parse(slice_of(o.action), &action)) {
        return usage_error(ctl, "\"%s\" is no action: retry, probe, waive, skip, compensate, abandon; or --as",
                           o.action);
    }
    if (!o.note || slice_trim(slice_of(o.note)).len == 0) {
        return usage_error(ctl, "say why with --note TEXT: it stands in the log for ever");
    }
    if (action == OPERATOR_RESOLVE && !o.as) {
        return usage_error(ctl, "resolve says what happened: --as happened, --as not_happened or --as undone");
    }
    if ((o.result && !read_json_argument(ctl, "--result", o.result, &o.result_json)) ||
        (o.args && !read_json_argument(ctl, "--args", o.args, &o.args_json))) {
        return EXIT_USAGE;
    }
    int code = EXIT_OK;

    for (size_t i = 0; i < count && code == EXIT_OK; i++) {
        code = is_number(names.items[i]) ? EXIT_OK : case_of_saga(ctl, &names.items[i]);
    }
    code = code == EXIT_OK ? ask_resolve(ctl, names.items, count, &o) : code;
    if (code != EXIT_OK) {
        return code;
    }
    return o.operation ? resolve(ctl, o.operation, &o) : resolve_each(ctl, names.items, count, &o);
}
