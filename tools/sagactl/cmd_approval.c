/* The commands approvals and approve. */
#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "tools/sagactl/ask.h"
#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/namespaces.h"
#include "tools/sagactl/output.h"

#define SHOWN_WIDTH 40

const char help_approvals[] =
    "sagactl approvals [N] [--status STATUS] [--saga SAGA] [--limit N] [--cursor C]\n"
    "\n"
    "Lists what waits for a yes or no, newest first, or shows one with everything that is to be approved. --saga\n"
    "leaves out those of other sagas (of the page that was read; not with -o json);\n"
    "-o name prints the numbers. --status is one or more of open, approved, refused,\n"
    "expired and cancelled, with commas between, or all; --all is --status all.\n"
    "\n"
    "  sagactl approvals\n"
    "  sagactl approvals --status approved,refused\n"
    "  sagactl approvals 7\n";

const char help_approve[] =
    "sagactl approve N --note TEXT [--refuse] [--yes] [--hash H]\n"
    "\n"
    "Approves (or with --refuse refuses) what approval N shows. It is shown first, and on a terminal you\n"
    "are asked; --yes leaves the question out. The answer counts only for what was shown: should that\n"
    "change meanwhile it is refused (exit 4); --hash says that it was shown before, with this hash.\n"
    "The first answer holds; a refused step has failed, and its saga goes the way that `on_failure` says.\n"
    "Who may decide stands in the definition (exit 5).\n"
    "\n"
    "  sagactl approve 7 --note \"checked against the contract\"\n"
    "  sagactl approve 7 --refuse --note \"the amount is wrong\"\n";

static void print_one(struct ctl *ctl, FILE *to, struct slice approval)
{
    static const char *const members[] = {"saga",       "saga_name", "business_id", "tags",      "step",
                                          "status",     "roles",     "not_by",      "opened_at", "expires_at",
                                          "decided_at", "actor",     "note",        "hash"};
    struct slice show = json_member(approval, "show");
    bool talk = to == stderr; /* colours follow the terminal of stdout */

    (void)fprintf(to, "%sapproval %.*s%s\n", talk ? "" : colour_on(ctl, COLOUR_BOLD),
                  SLICE_ARG(show_member(ctl, approval, "n")), talk ? "" : colour_off(ctl, COLOUR_BOLD));
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        struct slice text = show_member(ctl, approval, members[i]);

        if (text.len > 0) {
            (void)fprintf(to, "  %-12s %.*s\n", members[i], SLICE_ARG(text));
        }
    }
    (void)fprintf(to, "  shows\n");
    if (json_type(show) != JSON_OBJECT) {
        struct slice text = show_value(ctl, show);

        (void)fprintf(to, "    %.*s\n", SLICE_ARG(text.len > 0 ? text : SLICE("(nothing but the step itself)")));
        return;
    }
    struct json_walk walk = json_walk(show);
    struct slice name, value;

    while (json_next_member(&walk, &name, &value)) {
        (void)fprintf(to, "    %-16.*s %.*s\n", SLICE_ARG(name), SLICE_ARG(show_value(ctl, value)));
    }
}

static bool is_of(struct ctl *ctl, struct slice item, const char *saga)
{
    struct slice id = show_member(ctl, item, "saga"), business_id = show_member(ctl, item, "business_id");
    size_t len = saga ? strlen(saga) : 0;

    return !saga || (len >= UUID_PREFIX_MIN && len <= id.len && memcmp(id.ptr, saga, len) == 0) ||
           (business_id.len > 0 &&
            slice_is(arena_printf(&ctl->arena, "%.*s/%.*s", SLICE_ARG(show_member(ctl, item, "saga_name")),
                                  SLICE_ARG(business_id)),
                     saga));
}

static void put_row(struct ctl *ctl, struct table *table, struct slice item)
{
    struct cell *row = table_row_of(table, item);

    row[0].text = show_member(ctl, item, "n");
    row[1].text = show_member(ctl, item, "status");
    row[1].colour = slice_is(row[1].text, "approved") ? COLOUR_GREEN
                    : slice_is(row[1].text, "open")   ? COLOUR_BLUE
                                                      : COLOUR_DIM;
    row[2].text = show_member(ctl, item, "saga_name");
    row[3].text = business_name(ctl, item);
    row[4].text = show_member(ctl, item, "step");
    row[5].text = text_cut(ctl, show_member(ctl, item, "show"), SHOWN_WIDTH);
    row[6].text = show_age(ctl, item, "opened_at");
    row[7].text = show_member(ctl, item, "expires_at");
}

/* Prints a list of approvals. `saga` is NULL for the approvals of all sagas. */
static void print_many(struct ctl *ctl, struct slice answer, const char *saga)
{
    static const char *const titles[] = {"N",     "STATUS", "SAGA",  "BUSINESS ID", "STEP",
                                         "SHOWS", "OPENED", "UNTIL", NULL};
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct table table;
    struct slice item;

    table_init_of_namespaces(&table, ctl, titles);
    table.flexible = BIT(2) | BIT(3) | BIT(4) | BIT(5) | BIT(7);
    while (json_next_element(&walk, &item)) {
        if (is_of(ctl, item, saga) && ctl->output == OUTPUT_NAME) {
            (void)printf("%.*s\n", SLICE_ARG(show_member(ctl, item, "n")));
        } else if (is_of(ctl, item, saga)) {
            put_row(ctl, &table, item);
        }
    }
    if (ctl->output != OUTPUT_NAME) {
        table_print(&table, 0);
    }
    print_more(ctl, answer);
}

static int get_one(struct ctl *ctl, const char *number, struct answer *answer)
{
    return client_get(
        ctl, arena_printf(&ctl->arena, "/v1/approvals/%.*s", SLICE_ARG(url_escape(slice_of(number), &ctl->arena))),
        &ctl->arena, answer);
}

int cmd_approvals(struct ctl *ctl, int argc, char **argv)
{
    const char *limit = NULL, *cursor = NULL, *saga = NULL, *status = "open";
    bool all = false, open = false, helped = false;
    const struct option options[] = {
        {"--all", NULL, NULL, &all},       {"--status", &status, NULL, NULL},
        {"--open", NULL, NULL, &open}, /* the default, accepted for readers who write it out */
        {"--saga", &saga, NULL, NULL},     {"--limit", &limit, NULL, NULL},
        {"--cursor", &cursor, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    struct arguments numbers;
    struct answer answer;
    int code;

    if (!options_read(ctl, argc, argv, options, &numbers, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (all && open) {
        return usage_error(ctl, "--open or --all, not both");
    }
    if (numbers.count > 1) {
        return usage_error(ctl, "one number at most");
    }
    if (numbers.count == 1 && ctl->all_namespaces) {
        return usage_error(ctl, "a number is of one namespace: name it with -n");
    }
    if (numbers.count == 1) {
        code = get_one(ctl, numbers.items[0], &answer);
        if (code == EXIT_OK && ctl->output == OUTPUT_DATA) {
            print_data(ctl, answer.body);
        } else if (code == EXIT_OK) {
            print_one(ctl, stdout, answer.body);
        }
        return code;
    }
    limit = limit ? limit : saga ? "500" : "50"; /* the approvals of one saga may be far down in the list */
    if (ctl->all_namespaces && cursor) {
        return usage_error(ctl, "cursors are of one namespace: name it with -n");
    }
    code = namespaces_get(ctl,
                          arena_printf(&ctl->arena, "/v1/approvals?limit=%s&status=%.*s%s%s", limit,
                                       SLICE_ARG(url_escape(slice_of(all ? "all" : status), &ctl->arena)),
                                       cursor ? "&cursor=" : "", cursor ? cursor : ""),
                          "opened_at", limit, &answer);
    if (code == EXIT_OK && ctl->output == OUTPUT_DATA) {
        print_data(ctl, answer.body);
    } else if (code == EXIT_OK) {
        print_many(ctl, answer.body, saga);
    }
    return code;
}

/* --- approve --- */

static void put_decision(struct buffer *body, bool refuse, const char *note, struct slice hash) /* text */
{
    struct json_writer w;

    json_writer_init(&w, body);
    json_object_begin(&w, NULL);
    json_write_text(&w, "decision", refuse ? "refuse" : "approve");
    json_write_text(&w, "note", note);
    json_write_slice(&w, "hash", hash);
    json_object_end(&w);
}

static int decide(struct ctl *ctl, const char *number, bool refuse, const char *note, struct slice hash)
{
    struct buffer body;
    struct answer answer;

    buffer_init(&body, 65536);
    put_decision(&body, refuse, note, hash);
    int code = client_call(
        ctl, "POST",
        arena_printf(&ctl->arena, "/v1/approvals/%.*s", SLICE_ARG(url_escape(slice_of(number), &ctl->arena))),
        buffer_slice(&body), 30000, &ctl->arena, &answer);

    buffer_fini(&body);
    if (code == EXIT_OK && ctl->output == OUTPUT_DATA) {
        print_data(ctl, answer.body);
    } else if (code == EXIT_OK) {
        (void)printf("approval %s %.*s\n", number, SLICE_ARG(show_member(ctl, answer.body, "status")));
        (void)fprintf(stderr, "What became of the saga: sagactl show %.*s\n",
                      SLICE_ARG(show_member(ctl, answer.body, "saga")));
    }
    return code;
}

int cmd_approve(struct ctl *ctl, int argc, char **argv)
{
    const char *note = NULL, *hash = NULL;
    bool refuse = false, helped = false;
    const struct option options[] = {{"--note", &note, NULL, NULL},
                                     {"--refuse", NULL, NULL, &refuse},
                                     {"--hash", &hash, NULL, NULL},
                                     {NULL, NULL, NULL, NULL}};
    struct arguments numbers;
    struct answer answer = {0};

    if (!options_read(ctl, argc, argv, options, &numbers, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (numbers.count != 1) {
        return usage_error(ctl, "which approval? one number; `sagactl approvals` lists them");
    }
    if (!note || slice_trim(slice_of(note)).len == 0) {
        return usage_error(ctl, "say why with --note TEXT: it stands in the log for ever");
    }
    int code = hash ? EXIT_OK : get_one(ctl, numbers.items[0], &answer);

    if (code != EXIT_OK) {
        return code;
    }
    if (!hash) {
        print_one(ctl, stderr, answer.body);
    }
    code = hash ? EXIT_OK : ask_first(ctl, 1, "%s it", refuse ? "Refuse" : "Approve");
    if (code != EXIT_OK) {
        return code;
    }
    return decide(ctl, numbers.items[0], refuse, note, hash ? slice_of(hash) : show_member(ctl, answer.body, "hash"));
}
