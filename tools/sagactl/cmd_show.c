/* show: one saga as people want to see it. */
#include <stdio.h>

#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/saga_end.h"

const char help_show[] =
    "sagactl show SAGA_ID\n"
    "\n"
    "Shows a saga as a timeline: its steps with status, attempts and times; what was undone; what it\n"
    "waits for; and when it needs a person, the question, the evidence and the commands that answer\n"
    "it.\n"
    "\n"
    "  sagactl show 019b3c52-...\n"
    "  sagactl show 019b3c52-... -o json\n";

static const char *mark_of(struct slice status)
{
    static const char *const marks[][2] = {
        {"completed", "✓"}, {"compensated", "↺"}, {"compensating", "↺"}, {"failed", "✗"},  {"compensation_failed", "✗"},
        {"unknown", "?"},   {"running", "▸"},     {"retrying", "▸"},     {"skipped", "–"},
    };

    for (size_t i = 0; i < COUNT_OF(marks); i++) {
        if (slice_is(status, marks[i][0])) {
            return marks[i][1];
        }
    }
    return "·";
}

static struct slice attempts_of(struct ctl *ctl, struct slice object)
{
    int64_t attempts = 0;

    if (!json_i64(json_member(object, "attempts"), &attempts) || attempts < 1) {
        return SLICE("");
    }
    return arena_printf(&ctl->arena, "%lld attempt%s", (long long)attempts, attempts == 1 ? "" : "s");
}

/* An error is a text, or an object with a code and a sentence. */
static struct slice error_of(struct ctl *ctl, struct slice object)
{
    struct slice error = json_member(object, "error");

    if (json_type(error) == JSON_OBJECT) {
        struct slice code = show_member(ctl, error, "code"), detail = show_member(ctl, error, "detail");

        return detail.len > 0 ? arena_printf(&ctl->arena, "%.*s: %.*s", SLICE_ARG(code), SLICE_ARG(detail)) : code;
    }
    return show_value(ctl, error);
}

static bool took_place(struct slice took_effect)
{
    return slice_is(took_effect, "maybe") || slice_is(took_effect, "before");
}

static struct slice note_of(struct ctl *ctl, struct slice step)
{
    struct slice took_effect = show_member(ctl, step, "took_effect"), error = error_of(ctl, step);

    if (slice_is(took_effect, "maybe")) {
        return arena_printf(&ctl->arena, "may have taken effect%s%.*s", error.len ? ": " : "", SLICE_ARG(error));
    }
    return took_place(took_effect) ? SLICE("was so before") : error;
}

static void put_times(struct ctl *ctl, struct slice object, int64_t begin_ms, struct cell *at, struct cell *took)
{
    int64_t from_ms = 0, to_ms = 0;

    if (member_instant(object, "started_at", &from_ms)) {
        at->text = arena_printf(&ctl->arena, "+%.*s", SLICE_ARG(show_duration(ctl, from_ms - begin_ms)));
        at->colour = COLOUR_DIM;
        if (member_instant(object, "ended_at", &to_ms)) {
            took->text = show_duration(ctl, to_ms - from_ms);
        }
    }
}

static void put_step(struct ctl *ctl, struct table *table, struct slice step, int64_t begin_ms)
{
    struct cell *row = table_row(table);
    struct slice status = show_member(ctl, step, "status"), compensation = json_member(step, "compensation");

    row[0].text = slice_of(mark_of(status));
    row[0].colour = status_colour(status);
    row[1].text = show_member(ctl, step, "id");
    row[1].colour = COLOUR_BOLD;
    row[2].text = show_member(ctl, step, "tool");
    row[3].text = status;
    row[3].colour = row[0].colour;
    row[4].text = attempts_of(ctl, step);
    put_times(ctl, step, begin_ms, &row[5], &row[6]);
    row[7].text = note_of(ctl, step);
    if (json_type(compensation) != JSON_OBJECT || show_member(ctl, compensation, "status").len == 0) {
        return;
    }
    struct cell *undo = table_row(table);

    status = show_member(ctl, compensation, "status");
    undo[1].text = SLICE("  undo");
    undo[1].colour = COLOUR_YELLOW;
    undo[2].text = show_member(ctl, compensation, "tool");
    undo[3].text = status;
    undo[3].colour = status_colour(status);
    undo[4].text = attempts_of(ctl, compensation);
    put_times(ctl, compensation, begin_ms, &undo[5], &undo[6]);
    undo[7].text = error_of(ctl, compensation);
}

static void print_head(struct ctl *ctl, struct slice saga)
{
    struct slice status = show_member(ctl, saga, "status"), id = show_member(ctl, saga, "business_id");
    enum colour colour = status_colour(status);
    int64_t from_ms = 0, to_ms = 0;

    (void)printf("%s%.*s%s version %.*s  %s%.*s%s", colour_on(ctl, COLOUR_BOLD),
                 SLICE_ARG(show_member(ctl, saga, "saga")), colour_off(ctl, COLOUR_BOLD),
                 SLICE_ARG(show_member(ctl, saga, "version")), colour_on(ctl, colour), SLICE_ARG(status),
                 colour_off(ctl, colour));
    if (member_instant(saga, "created_at", &from_ms)) {
        bool ended = member_instant(saga, "ended_at", &to_ms);

        (void)printf(" %s %.*s", ended ? "after" : "for",
                     SLICE_ARG(show_duration(ctl, (ended ? to_ms : now_ms()) - from_ms)));
    }
    (void)printf("\n  %.*s%s%.*s  started %.*s\n", SLICE_ARG(show_member(ctl, saga, "id")),
                 id.len ? "  business id " : "", SLICE_ARG(id), SLICE_ARG(show_member(ctl, saga, "created_at")));
    if (json_type(json_member(saga, "error")) != JSON_NONE && json_type(json_member(saga, "error")) != JSON_NULL) {
        (void)printf("  why: %.*s\n", SLICE_ARG(error_of(ctl, saga)));
    }
    (void)putchar('\n');
}

static void print_escalation(struct ctl *ctl, struct slice escalation)
{
    struct slice n = show_member(ctl, escalation, "n"), action, step = show_member(ctl, escalation, "step");
    struct json_walk walk = json_walk(json_member(escalation, "actions"));

    (void)printf("\n%sNeeds a person%s: escalation %.*s, %.*s%s%.*s\n", colour_on(ctl, COLOUR_RED),
                 colour_off(ctl, COLOUR_RED), SLICE_ARG(n), SLICE_ARG(show_member(ctl, escalation, "reason")),
                 step.len ? " at step " : "", SLICE_ARG(step));
    print_facts(ctl, json_member(escalation, "evidence"), 4);
    (void)putchar('\n');
    while (json_type(json_member(escalation, "actions")) == JSON_ARRAY && json_next_element(&walk, &action)) {
        struct slice verb = show_member(ctl, action, "action");
        const char *more = slice_is(verb, "resolve") ? " --as happened|not_happened" : "";

        (void)printf("  sagactl resolve %.*s %.*s%s --note \"...\"\n      %.*s\n", SLICE_ARG(n), SLICE_ARG(verb), more,
                     SLICE_ARG(show_member(ctl, action, "does")));
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

int cmd_show(struct ctl *ctl, int argc, char **argv)
{
    static const char *const titles[] = {"", "", "", "", "", "", "", "", NULL};
    struct arguments ids;
    struct answer answer;
    struct table table;
    struct slice step, output;
    int64_t begin_ms = 0;
    bool helped = false;

    if (!options_read(ctl, argc, argv, NULL, &ids, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (ids.count != 1) {
        return usage_error(ctl, "which saga? one id");
    }
    int code = client_get(
        ctl, arena_printf(&ctl->arena, "/v1/sagas/%.*s", SLICE_ARG(url_escape(slice_of(ids.items[0]), &ctl->arena))),
        &ctl->arena, &answer);

    if (code != EXIT_OK) {
        return code;
    }
    if (ctl->output != OUTPUT_TABLE) {
        if (ctl->output == OUTPUT_JSON) {
            print_json(answer.body);
        } else {
            (void)printf("%.*s\n", SLICE_ARG(show_member(ctl, answer.body, "id")));
        }
        return EXIT_OK;
    }
    struct json_walk walk = json_walk(json_member(answer.body, "steps"));

    (void)member_instant(answer.body, "created_at", &begin_ms); /* 0 when absent shows odd offsets, and nothing worse */
    print_head(ctl, answer.body);
    table_init(&table, ctl, titles);
    while (json_next_element(&walk, &step)) {
        put_step(ctl, &table, step, begin_ms);
    }
    table_print(&table, 2);
    output = json_member(answer.body, "output");
    if (output.ptr && json_type(output) != JSON_NULL) {
        (void)printf("\n  output  %.*s\n", SLICE_ARG(show_value(ctl, output)));
    }
    struct slice debts = json_member(answer.body, "debts");

    if (json_type(debts) == JSON_ARRAY && json_count(debts) > 0) {
        (void)printf("\n  left standing  %.*s\n", SLICE_ARG(show_value(ctl, debts)));
    }
    return show_escalation(ctl, answer.body);
}
