/* The commands hold, holds and release: people keep work from beginning. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/instant.h"
#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/namespaces.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/query.h"
#include "tools/sagactl/saga_end.h"

#define ANSWER_MS 60000 /* a hold is answered when every engine knows it, which takes a lease at most */

const char help_hold[] = "sagactl hold (--tool NAME | --saga NAME | --tag NAME=VALUE | --namespace NAME)\n"
                         "             --note TEXT [--for DURATION | --until INSTANT]\n"
                         "             [--starts wait|refuse] [--undo] [--pace N]\n"
                         "\n"
                         "Keeps a tool, the sagas of a definition, those with a tag, or a whole namespace from\n"
                         "beginning anything (role operator). When the command has ended, no engine begins such a\n"
                         "call. Calls under way settle, probes go on, and compensations go on, unless --undo holds\n"
                         "them, too. Calls of agents are refused with `held`. New sagas start and wait;\n"
                         "--starts refuse refuses them.\n"
                         "\n"
                         "It lasts until `sagactl release`, or until its time. Then every engine lets --pace sagas\n"
                         "go in a second, 50 where it is not given.\n"
                         "\n"
                         "  sagactl hold --tool card.pay --note \"the bank times out\"\n"
                         "  sagactl hold --saga order --note \"stock is being counted\" --for 2h --starts refuse\n";

const char help_holds[] = "sagactl holds [N] [--all] [--limit N] [--cursor C]\n"
                          "\n"
                          "Lists what is held: since when, by whom, and why. --all shows those that have\n"
                          "ended in the last 30 days, too. With a number it shows one hold.\n"
                          "\n"
                          "  sagactl holds\n"
                          "  sagactl holds 7 -o json\n";

const char help_release[] = "sagactl release N... --note TEXT\n"
                            "\n"
                            "Ends holds (role operator). What waited goes on, at the pace of the hold.\n"
                            "\n"
                            "  sagactl release 7 --note \"the bank is back\"\n";

struct given {
    const char *tool, *saga, *tag, *namespace, *note, *duration, *until, *starts, *pace, *limit, *cursor;
    bool undo, all;
};

/* --- what is shown --- */

static struct slice target_of(struct ctl *ctl, struct slice hold)
{
    static const char *const kinds[] = {"tool", "saga"};
    struct json_walk walk = json_walk(json_member(hold, "tag"));
    struct slice name, value;

    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct slice text = show_member(ctl, hold, kinds[i]);

        if (text.len > 0) {
            return arena_printf(&ctl->arena, "%s %.*s", kinds[i], SLICE_ARG(text));
        }
    }
    if (json_member(hold, "tag").ptr && json_next_member(&walk, &name, &value)) {
        return arena_printf(&ctl->arena, "tag %.*s=%.*s", SLICE_ARG(text_clean(name, &ctl->arena)),
                            SLICE_ARG(show_value(ctl, value)));
    }
    /* Last, because with -A each item has this member. */
    return arena_printf(&ctl->arena, "namespace %.*s", SLICE_ARG(show_member(ctl, hold, "namespace")));
}

static void print_many(struct ctl *ctl, struct slice answer)
{
    static const char *const titles[] = {"N", "HELD", "STATUS", "AGE", "UNTIL", "BY", "NOTE", NULL};
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct table table;
    struct slice item;

    table_init_of_namespaces(&table, ctl, titles);
    table.flexible = BIT(1) | BIT(5) | BIT(6);
    while (json_next_element(&walk, &item)) {
        struct cell *row = table_row_of(&table, item);

        row[0].text = show_member(ctl, item, "n");
        row[1].text = target_of(ctl, item);
        row[2].text = show_member(ctl, item, "status");
        row[2].colour = slice_is(row[2].text, "held") ? COLOUR_YELLOW : COLOUR_DIM;
        row[3].text = show_age(ctl, item, "made_at");
        row[4].text = show_member(ctl, item, "until");
        row[5].text = show_member(ctl, item, "actor");
        row[6].text = show_member(ctl, item, "note");
    }
    table_print(&table, 0);
    print_more(ctl, answer);
}

static void print_one(struct ctl *ctl, struct slice hold)
{
    bool in_force = true;

    if (ctl->output == OUTPUT_DATA) {
        print_data(ctl, hold);
    } else if (ctl->output == OUTPUT_NAME) {
        (void)printf("%.*s\n", SLICE_ARG(show_member(ctl, hold, "n")));
    } else {
        (void)printf("hold %.*s: %.*s, %.*s\n", SLICE_ARG(show_member(ctl, hold, "n")), SLICE_ARG(target_of(ctl, hold)),
                     SLICE_ARG(show_member(ctl, hold, "status")));
        print_facts(ctl, hold, 2);
    }
    if (json_bool(json_member(hold, "in_force"), &in_force) && !in_force) {
        (void)fprintf(stderr,
                      "sagactl: not every engine abides by it: %.*s knows no holds\n"
                      "  Replace those engines by this release.\n",
                      SLICE_ARG(show_member(ctl, hold, "ignored_by")));
    }
}

static int send(struct ctl *ctl, const char *method, struct slice path, struct slice body)
{
    struct answer answer;
    int code = client_call(ctl, method, path, body, ANSWER_MS, &ctl->arena, &answer);

    if (code == EXIT_OK) {
        print_one(ctl, answer.body);
    }
    return code;
}

static bool read_number(struct ctl *ctl, const char *text, struct slice *path, const char *rest)
{
    int64_t number;

    if (!slice_to_i64(slice_of(text), &number) || number < 1) {
        (void)usage_error(ctl, "a hold is named by its number, not by \"%s\"", text);
        return false;
    }
    *path = arena_printf(&ctl->arena, "/v1/holds/%lld%s", (long long)number, rest);
    return true;
}

int cmd_holds(struct ctl *ctl, int argc, char **argv)
{
    struct given given = {0};
    const struct option options[] = {
        {"--all", NULL, NULL, &given.all},
        {"--limit", &given.limit, NULL, NULL},
        {"--cursor", &given.cursor, NULL, NULL},
        {NULL, NULL, NULL, NULL},
    };
    struct arguments words;
    struct answer answer;
    struct buffer path;
    struct slice one;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &words, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (words.count > 1) {
        return usage_error(ctl, "the number of one hold, or none for a list");
    }
    if (ctl->all_namespaces && (words.count == 1 || given.cursor)) {
        return usage_error(ctl, "numbers and cursors are of one namespace: name it with -n");
    }
    if (words.count == 1) {
        return read_number(ctl, words.items[0], &one, "") ? send(ctl, "GET", one, SLICE_NONE) : EXIT_USAGE;
    }
    buffer_init(&path, 65536);
    buffer_printf(&path, "/v1/holds?limit=%s%s", given.limit ? given.limit : "50", given.all ? "&all=true" : "");
    int code = query_put(ctl, &path, "cursor", given.cursor)
                   ? namespaces_get(ctl, arena_slice(&ctl->arena, buffer_slice(&path)), "made_at",
                                    given.limit ? given.limit : "50", &answer)
                   : EXIT_USAGE;

    buffer_fini(&path);
    if (code == EXIT_OK && !print_items(ctl, answer.body, "n")) {
        print_many(ctl, answer.body);
    }
    return code;
}

/* --- what is done --- */

static bool has_note(const char *note)
{
    return note && slice_trim(slice_of(note)).len > 0;
}

static bool put_tag(struct ctl *ctl, struct json_writer *w, const char *tag)
{
    const char *equals = strchr(tag, '=');

    if (!equals || equals == tag) {
        (void)usage_error(ctl, "--tag is NAME=VALUE, not \"%s\"", tag);
        return false;
    }
    json_object_begin(w, "tag");
    json_write_text(w, arena_text(&ctl->arena, (struct slice){tag, (size_t)(equals - tag)}), equals + 1);
    json_object_end(w);
    return true;
}

static bool put_until(struct ctl *ctl, struct json_writer *w, const struct given *given)
{
    char instant[INSTANT_TEXT_BYTES];
    int64_t ms;

    if (!given->duration) {
        body_put(w, "until", given->until);
        return true;
    }
    if (given->until || !duration_parse(slice_of(given->duration), &ms)) {
        (void)usage_error(ctl, "--for is a duration such as 2h, and --until an instant: give one of them");
        return false;
    }
    instant_text(now_ms() + ms, instant);
    json_write_text(w, "until", instant);
    return true;
}

static bool put_pace(struct ctl *ctl, struct json_writer *w, const char *pace)
{
    int64_t number;

    if (!pace) {
        return true;
    }
    if (!slice_to_i64(slice_of(pace), &number)) {
        (void)usage_error(ctl, "--pace is a number of sagas in a second, not \"%s\"", pace);
        return false;
    }
    json_write_i64(w, "pace", number);
    return true;
}

static bool put_hold(struct ctl *ctl, struct json_writer *w, const struct given *given)
{
    json_object_begin(w, NULL);
    body_put(w, "tool", given->tool);
    body_put(w, "saga", given->saga);
    body_put(w, "namespace", given->namespace);
    if (given->tag && !put_tag(ctl, w, given->tag)) {
        return false;
    }
    body_put(w, "note", given->note);
    body_put(w, "starts", given->starts);
    if (given->undo) {
        json_write_bool(w, "undo", true);
    }
    if (!put_until(ctl, w, given) || !put_pace(ctl, w, given->pace)) {
        return false;
    }
    json_object_end(w);
    return true;
}

int cmd_hold(struct ctl *ctl, int argc, char **argv)
{
    struct given given = {0};
    const struct option options[] = {
        {"--tool", &given.tool, NULL, NULL},
        {"--saga", &given.saga, NULL, NULL},
        {"--tag", &given.tag, NULL, NULL},
        {"--namespace", &given.namespace, NULL, NULL},
        {"--note", &given.note, NULL, NULL},
        {"--for", &given.duration, NULL, NULL},
        {"--until", &given.until, NULL, NULL},
        {"--starts", &given.starts, NULL, NULL},
        {"--pace", &given.pace, NULL, NULL},
        {"--undo", NULL, NULL, &given.undo},
        {NULL, NULL, NULL, NULL},
    };
    struct arguments words;
    struct json_writer w;
    struct buffer body;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &words, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (words.count > 0 ||
        (given.tool != NULL) + (given.saga != NULL) + (given.tag != NULL) + (given.namespace != NULL) != 1) {
        return usage_error(ctl, "say what is held with one of --tool, --saga, --tag and --namespace");
    }
    if (!has_note(given.note)) {
        return usage_error(ctl, "say why with --note TEXT");
    }
    buffer_init(&body, 65536);
    json_writer_init(&w, &body);
    bool is_good = put_hold(ctl, &w, &given);
    int code = !is_good        ? EXIT_USAGE
               : body.overflow ? usage_error(ctl, "what was given is longer than a hold may be")
                               : send(ctl, "POST", SLICE("/v1/holds"), buffer_slice(&body));

    buffer_fini(&body);
    return code;
}

int cmd_release(struct ctl *ctl, int argc, char **argv)
{
    const char *note = NULL;
    const struct option options[] = {{"--note", &note, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    struct arguments numbers;
    struct json_writer w;
    struct buffer body;
    bool helped = false;
    int first = EXIT_OK;

    if (!options_read(ctl, argc, argv, options, &numbers, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (numbers.count == 0) {
        return usage_error(ctl, "which hold? `sagactl holds` lists them");
    }
    if (!has_note(note)) {
        return usage_error(ctl, "say why with --note TEXT");
    }
    buffer_init(&body, 65536);
    json_writer_init(&w, &body);
    json_object_begin(&w, NULL);
    json_write_text(&w, "note", note);
    json_object_end(&w);
    for (size_t i = 0; i < numbers.count; i++) {
        struct slice path;
        int code = body.overflow ? usage_error(ctl, "a note has at most 4000 bytes")
                   : read_number(ctl, numbers.items[i], &path, "/release")
                       ? send(ctl, "POST", path, buffer_slice(&body))
                       : EXIT_USAGE;

        first = first == EXIT_OK ? code : first;
    }
    buffer_fini(&body);
    return first;
}
