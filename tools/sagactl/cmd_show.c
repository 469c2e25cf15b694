/* The command show: one saga for people. show_steps.c draws its steps. */
#include <stdio.h>

#include "core/definition/definition.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/saga_end.h"
#include "tools/sagactl/saga_name.h"
#include "tools/sagactl/show_sent.h"
#include "tools/sagactl/show_steps.h"
#include "tools/sagactl/words.h"

const char help_show[] =
    "sagactl show SAGA [--all] [--full]\n"
    "\n"
    "Shows a saga as a timeline: its steps as a tree (elements of for_each and the steps of child sagas\n"
    "below their step), each with status, attempts and a bar on the common time axis; beside it what\n"
    "undid it, with its place in the undo plan; below it what went wrong, and what it waits for, until\n"
    "when. When the saga needs a person: the question, the evidence and the commands that answer it.\n"
    "Of an open saga or a run (`sagactl operations --run NAME` tells its id) also who repeated what,\n"
    "what it may use and has used, what seals or pauses it.\n"
    "\n"
    "  ███ done   ─── waiting   ━━━ a group, from its first member to its last   ▒▒▒ undone\n"
    "\n"
    "Of many elements those are shown that something is the matter with, the others summed up; --all\n"
    "shows each. A narrow terminal (or COLUMNS) loses tries, tools, bars, in this order.\n"
    "\n"
    "Of the input the beginning is shown. --full shows all of it, and below the steps what was sent: of\n"
    "each operation the arguments, the key, how often and when. Secrets are never in them.\n"
    "\n"
    "  sagactl show 019b3c52-...\n"
    "  sagactl show 019b3c52-... -o json\n";

/* Are the steps an agent's calls? They are in an open saga, which has no name, and in a run. */
static bool has_calls(struct slice saga)
{
    struct slice name = json_member(saga, "saga");

    return json_type(name) == JSON_NULL || json_string_is(name, OPEN_SAGA_NAME) || json_string_is(name, RUN_SAGA_NAME);
}

/* Prints the kind of the saga: a definition and its version, an open saga, or the calls of a run. */
static void print_kind(struct ctl *ctl, struct slice saga)
{
    struct slice run = show_member(ctl, saga, "run"), version = show_member(ctl, saga, "version");

    (void)printf("%s%s%.*s%s", colour_on(ctl, COLOUR_BOLD), run.len > 0 ? "run " : "",
                 SLICE_ARG(run.len > 0       ? run
                           : has_calls(saga) ? SLICE("open saga")
                                             : show_member(ctl, saga, "saga")),
                 colour_off(ctl, COLOUR_BOLD));
    (void)printf("%s%.*s  ", version.len > 0 ? " version " : "", SLICE_ARG(version));
}

/* Prints why a saga is undone, and who asked for that. For a completed saga, prints what is missing of its output or
 * its followers. */
static void print_why(struct ctl *ctl, struct slice saga)
{
    struct slice why = saga_why(ctl, saga);

    if (why.len == 0) {
        return;
    }
    (void)printf("  %s       ", json_string_is(json_member(saga, "status"), "completed") ? "but" : "why");
    print_wrapped(why, 12, terminal_width());
}

/* Prints "held      2h, and since 2026-01-31T09:05:00.000Z (4m)": its clocks stood for so long. */
static void print_held(struct ctl *ctl, struct slice saga)
{
    int64_t before_ms = 0, since_ms = 0;
    bool is_held = member_instant(saga, "held_since", &since_ms);

    (void)json_i64(json_member(saga, "held_ms"), &before_ms); /* 0 where no hold was */
    if (before_ms == 0 && !is_held) {
        return;
    }
    (void)printf("  held      ");
    if (before_ms > 0) {
        (void)printf("%.*s%s", SLICE_ARG(show_duration(ctl, before_ms)), is_held ? ", and " : "");
    }
    if (is_held) {
        (void)printf("since %.*s (%.*s)", SLICE_ARG(show_member(ctl, saga, "held_since")),
                     SLICE_ARG(show_duration(ctl, now_ms() - since_ms)));
    }
    (void)putchar('\n');
}

static void print_head(struct ctl *ctl, struct slice saga)
{
    struct slice status = show_member(ctl, saga, "status"), id = show_member(ctl, saga, "business_id");
    bool is_run = show_member(ctl, saga, "run").len > 0;
    enum colour colour = status_colour(status);
    int64_t from_ms = 0, to_ms = 0;

    id = is_run ? SLICE("") : id;

    print_kind(ctl, saga);
    (void)printf("%s%.*s%s", colour_on(ctl, colour), SLICE_ARG(status), colour_off(ctl, colour));
    if (member_instant(saga, "created_at", &from_ms)) {
        bool ended = member_instant(saga, "ended_at", &to_ms);

        (void)printf(ended ? " after %.*s" : ", started %.*s ago",
                     SLICE_ARG(show_duration(ctl, (ended ? to_ms : now_ms()) - from_ms)));
    }
    struct slice head = arena_printf(&ctl->arena, "  %.*s%s%.*s", SLICE_ARG(show_member(ctl, saga, "id")),
                                     id.len > 0 ? "  business id " : "", SLICE_ARG(id)),
                 started = arena_printf(&ctl->arena, "  started %.*s", SLICE_ARG(show_member(ctl, saga, "created_at")));

    (void)printf("\n%.*s%s%.*s\n", SLICE_ARG(head),
                 text_width(head) + text_width(started) > terminal_width() ? "\n" : "", SLICE_ARG(started));
    print_why(ctl, saga);
    print_held(ctl, saga);
}

/* Returns "calls 3 of 10, micros 400": each bounded figure and how much is used. */
static struct slice usage_of(struct ctl *ctl, struct slice saga)
{
    static const char *const members[] = {"calls", "emissions", "micros"};
    struct slice budget = json_member(saga, "budget"), used = json_member(saga, "used"), found;
    struct buffer text;

    buffer_init(&text, 4096);
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        struct slice limit = show_member(ctl, budget, members[i]), now = show_member(ctl, used, members[i]);

        if (limit.len > 0 || (now.len > 0 && !slice_is(now, "0"))) {
            buffer_printf(&text, "%s%s %.*s%s%.*s", text.len ? ", " : "", members[i], SLICE_ARG(now),
                          limit.len ? " of " : "", SLICE_ARG(limit));
        }
    }
    found = text.len ? arena_slice(&ctl->arena, buffer_slice(&text)) : SLICE("");
    buffer_fini(&text);
    return found;
}

/* "locks     order:7 held, stock:9 waits in line" */
static void print_locks(struct ctl *ctl, struct slice saga)
{
    struct slice locks = json_member(saga, "locks"), lock;
    struct json_walk walk = json_walk(locks);
    size_t count = 0;

    while (json_type(locks) == JSON_ARRAY && json_next_element(&walk, &lock)) {
        struct slice status = show_member(ctl, lock, "status");
        bool in_line = slice_is(status, "waiting");

        (void)printf("%s%.*s %s%.*s%s", count++ ? ", " : "  locks     ", SLICE_ARG(show_member(ctl, lock, "key")),
                     colour_on(ctl, in_line ? COLOUR_BLUE : COLOUR_NONE),
                     SLICE_ARG(in_line ? SLICE("waits in line") : status),
                     colour_off(ctl, in_line ? COLOUR_BLUE : COLOUR_NONE));
    }
    if (count > 0) {
        (void)putchar('\n');
    }
}

static void print_followers(struct ctl *ctl, struct slice saga)
{
    struct slice followers = json_member(saga, "followers"), follower;
    struct json_walk walk = json_walk(followers);

    while (json_type(followers) == JSON_ARRAY && json_next_element(&walk, &follower)) {
        struct slice name = show_member(ctl, follower, "saga"), id = show_member(ctl, follower, "business_id");

        (void)printf("  then      starts %.*s: sagactl list --saga %.*s --id '%.*s'\n", SLICE_ARG(name),
                     SLICE_ARG(name), SLICE_ARG(id));
    }
}

/* Prints the signals that came before a step waited for them. */
static void print_signals(struct ctl *ctl, struct slice saga)
{
    struct slice kept = show_member(ctl, saga, "signals");

    if (kept.len > 0 && !slice_is(kept, "0")) {
        (void)printf("  signals   %.*s kept until a step waits for them\n", SLICE_ARG(kept));
    }
}

/* Prints what bounds the saga and what holds it up. */
static void print_opening(struct ctl *ctl, struct slice saga)
{
    struct slice paused = show_member(ctl, saga, "paused"), by = show_member(ctl, saga, "paused_by");
    struct slice note = show_member(ctl, saga, "paused_note"), sealed = show_member(ctl, saga, "sealed_by");
    struct slice usage = usage_of(ctl, saga);
    int64_t deadline_ms = 0, ended_ms = 0;

    if (usage.len > 0) {
        (void)printf("  used      %.*s\n", SLICE_ARG(usage));
    }
    if (sealed.len > 0) {
        (void)printf("  sealed by %.*s: it cannot be undone any more\n", SLICE_ARG(sealed));
    }
    if (member_instant(saga, "deadline", &deadline_ms) && !member_instant(saga, "ended_at", &ended_ms)) {
        int64_t left_ms = deadline_ms - now_ms();

        (void)printf("  deadline  %s%.*s\n", left_ms > 0 ? "in " : "was over for ",
                     SLICE_ARG(show_duration(ctl, left_ms > 0 ? left_ms : -left_ms)));
    }
    if (paused.len > 0) {
        (void)printf("  %spaused%s    %.*s%s%.*s%s%.*s\n            sagactl resume %.*s --note TEXT\n",
                     colour_on(ctl, COLOUR_RED), colour_off(ctl, COLOUR_RED), SLICE_ARG(paused), by.len ? " " : "",
                     SLICE_ARG(by), note.len ? ": " : "", SLICE_ARG(note), SLICE_ARG(show_member(ctl, saga, "id")));
    }
}

/* Reads the operations of a run or an open saga: the list of operations counts the duplicates of each key. */
static int read_operations(struct ctl *ctl, struct slice saga, struct slice *items)
{
    struct slice run = show_member(ctl, saga, "run");
    struct answer answer;

    *items = SLICE_NONE;
    if (!has_calls(saga)) {
        return EXIT_OK; /* the steps of a definition have no duplicates */
    }
    int code =
        client_get(ctl,
                   arena_printf(&ctl->arena, "/v1/operations?limit=500&run=%.*s",
                                SLICE_ARG(url_escape(run.len > 0 ? run : show_member(ctl, saga, "id"), &ctl->arena))),
                   &ctl->arena, &answer);

    *items = code == EXIT_OK ? json_member(answer.body, "items") : SLICE_NONE;
    return code;
}

/* Returns "--as happened|not_happened": what may be said here. A case that an earlier release wrote does not say. */
static struct slice verdicts_of(struct ctl *ctl, struct slice action)
{
    struct json_walk walk = json_walk(json_member(action, "as"));
    struct slice text = SLICE("--as "), verdict;

    if (json_type(json_member(action, "as")) != JSON_ARRAY) {
        return SLICE("--as happened|not_happened");
    }
    for (bool first = true; json_next_element(&walk, &verdict); first = false) {
        verdict = json_string(verdict, &ctl->arena);
        text = arena_printf(&ctl->arena, "%.*s%s%.*s", SLICE_ARG(text), first ? "" : "|", SLICE_ARG(verdict));
    }
    return text;
}

static void print_escalation(struct ctl *ctl, struct slice escalation)
{
    struct slice n = show_member(ctl, escalation, "n"), action, step = show_member(ctl, escalation, "step");
    struct slice round = show_member(ctl, escalation, "round");
    bool is_asked_again = round.len > 0 && !slice_is(round, "1"); /* the answer has to say which round was seen */
    struct json_walk walk = json_walk(json_member(escalation, "actions"));

    (void)printf("\n%sNeeds a person%s: escalation %.*s, %.*s%s%.*s\n", colour_on(ctl, COLOUR_RED),
                 colour_off(ctl, COLOUR_RED), SLICE_ARG(n), SLICE_ARG(show_member(ctl, escalation, "reason")),
                 step.len ? " at step " : "", SLICE_ARG(step));
    print_evidence(ctl, json_member(escalation, "evidence"), 4);
    (void)putchar('\n');
    while (json_type(json_member(escalation, "actions")) == JSON_ARRAY && json_next_element(&walk, &action)) {
        struct slice verb = show_member(ctl, action, "action");
        if (slice_is(verb, "resolve")) {
            verb = verdicts_of(ctl, action);
        }
        (void)printf("  sagactl resolve %.*s %.*s%s%.*s --note \"...\"\n      ", SLICE_ARG(n), SLICE_ARG(verb),
                     is_asked_again ? " --round " : "", SLICE_ARG(is_asked_again ? round : SLICE("")));
        print_wrapped(words_of_flags(show_member(ctl, action, "does"), &ctl->arena), 6, terminal_width());
        if (strstr(arena_text(&ctl->arena, verb), "not_happened")) {
            (void)fputs("      --as not_happened --then retry has it called once more, under the same key\n", stdout);
        }
    }
}

static int show_escalation(struct ctl *ctl, struct slice saga)
{
    struct slice escalation = json_member(saga, "escalation");
    struct answer answer;
    int code;

    if (json_type(escalation) == JSON_NUMBER) {
        code = client_get(ctl, arena_printf(&ctl->arena, "/v1/escalations/%.*s", SLICE_ARG(escalation)), &ctl->arena,
                          &answer);
        if (code != EXIT_OK) {
            return code;
        }
        escalation = answer.body;
    }
    if (json_type(escalation) == JSON_OBJECT) {
        print_escalation(ctl, escalation);
    }
    return EXIT_OK;
}

static bool is_settled(struct ctl *ctl, struct slice settled, struct slice step)
{
    struct json_walk walk = json_walk(settled);
    struct slice item;

    while (json_type(settled) == JSON_ARRAY && json_next_element(&walk, &item)) {
        if (slice_equal(show_member(ctl, item, "step"), step)) {
            return true;
        }
    }
    return false;
}

/* Prints what stands since the end of the saga, and what somebody has settled since. */
static void print_debts(struct ctl *ctl, struct slice saga)
{
    struct slice debts = json_member(saga, "debts"), settled = json_member(saga, "settled"), item;
    struct json_walk walk = json_walk(debts);
    bool begun = false;

    while (json_type(debts) == JSON_ARRAY && json_next_element(&walk, &item)) {
        struct slice step = json_string(item, &ctl->arena);

        if (!is_settled(ctl, settled, step)) {
            (void)printf("%s%.*s", begun ? ", " : "\n  left standing  ", SLICE_ARG(step));
            begun = true;
        }
    }
    (void)fputs(begun ? "\n" : "", stdout);
    walk = json_walk(settled);
    while (json_type(settled) == JSON_ARRAY && json_next_element(&walk, &item)) {
        struct slice as = show_member(ctl, item, "as");

        (void)printf("\n  settled  %.*s as %.*s by %.*s %.*s: %.*s\n", SLICE_ARG(show_member(ctl, item, "step")),
                     SLICE_ARG(as.len ? as : SLICE("undone")), SLICE_ARG(show_member(ctl, item, "actor")),
                     SLICE_ARG(show_age(ctl, item, "at")), SLICE_ARG(show_member(ctl, item, "note")));
    }
}

static void print_saga(struct ctl *ctl, struct slice saga, struct slice operations, bool all, bool full)
{
    struct timeline timeline = {
        .ctl = ctl, .saga = saga, .operations = operations, .nested = !has_calls(saga), .all = all};
    struct slice output = json_member(saga, "output");

    print_head(ctl, saga);
    show_input(ctl, saga, full);
    show_tags(ctl, saga);
    print_opening(ctl, saga);
    print_locks(ctl, saga);
    print_signals(ctl, saga);
    print_followers(ctl, saga);
    (void)putchar('\n');
    show_steps(&timeline);
    if (output.ptr && json_type(output) != JSON_NULL) {
        (void)printf("\n  output  %.*s\n", SLICE_ARG(show_value(ctl, output)));
    }
    print_debts(ctl, saga);
}

/* Shows the followers that were refused. The saga itself has completed and does not mention them. */
static int show_refused_followers(struct ctl *ctl, struct slice saga)
{
    struct slice id = show_member(ctl, saga, "id"), item;
    struct answer answer;

    if (json_type(json_member(saga, "followers")) != JSON_ARRAY) {
        return EXIT_OK;
    }
    int code = client_get(ctl, SLICE("/v1/escalations?status=open&limit=500"), &ctl->arena, &answer);
    struct json_walk walk = json_walk(code == EXIT_OK ? json_member(answer.body, "items") : SLICE("[]"));

    while (json_next_element(&walk, &item)) {
        if (json_string_is(json_member(item, "reason"), "follower") &&
            slice_equal(show_member(ctl, item, "saga"), id)) {
            print_escalation(ctl, item);
        }
    }
    return code;
}

int cmd_show(struct ctl *ctl, int argc, char **argv)
{
    bool all = false, full = false, helped = false;
    const struct option options[] = {
        {"--all", NULL, NULL, &all}, {"--full", NULL, NULL, &full}, {NULL, NULL, NULL, NULL}};
    struct arguments ids;
    struct answer answer;
    struct slice operations;

    if (!options_read(ctl, argc, argv, options, &ids, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (ids.count != 1) {
        return usage_error(ctl, "which saga? its id, or NAME/BUSINESS_ID");
    }
    struct slice path;
    int code = saga_path(ctl, ids.items[0], &path);

    code = code == EXIT_OK ? client_get(ctl, path, &ctl->arena, &answer) : code;
    if (code != EXIT_OK) {
        return code;
    }
    if (ctl->output != OUTPUT_TABLE) {
        if (ctl->output == OUTPUT_DATA) {
            print_data(ctl, answer.body);
        } else {
            (void)printf("%.*s\n", SLICE_ARG(show_member(ctl, answer.body, "id")));
        }
        return EXIT_OK;
    }
    code = read_operations(ctl, answer.body, &operations);
    if (code != EXIT_OK) {
        return code;
    }
    print_saga(ctl, answer.body, operations, all, full);
    code = full ? show_sent(ctl, answer.body) : EXIT_OK;
    code = code == EXIT_OK ? show_escalation(ctl, answer.body) : code;
    return code == EXIT_OK ? show_refused_followers(ctl, answer.body) : code;
}
