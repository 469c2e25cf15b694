/* show: one saga as people want to see it. */
#include <stdio.h>

#include "core/definition.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/saga_end.h"

const char help_show[] =
    "sagactl show SAGA_ID\n"
    "\n"
    "Shows a saga as a timeline: its steps with status, attempts and times; what was undone; what it\n"
    "waits for; and when it needs a person, the question, the evidence and the commands that answer\n"
    "it. Of an open saga or a run (`sagactl operations --run NAME` tells its id) also who repeated\n"
    "what, what it may use and has used, what seals or pauses it.\n"
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

static struct slice operation_of(struct slice operations, struct slice key)
{
    struct json_walk walk = json_walk(operations);
    struct slice operation;

    while (json_type(operations) == JSON_ARRAY && json_next_element(&walk, &operation)) {
        if (slice_equal(json_member(operation, "key"), key)) {
            return operation;
        }
    }
    return SLICE_NONE;
}

/* What stands behind the times: the scope, who asked again, and what is to be known about its outcome. */
static struct slice remarks_of(struct ctl *ctl, struct slice step, struct slice operations)
{
    struct slice operation = operation_of(operations, json_member(step, "key")), note = note_of(ctl, step);
    struct slice scope = show_member(ctl, operation, "scope");
    int64_t duplicates = 0, generation = 0;
    struct buffer text;

    buffer_init(&text, 65536);
    if (scope.len > 0) {
        buffer_printf(&text, "scope %.*s", SLICE_ARG(scope));
    }
    if (json_i64(json_member(operation, "generation"), &generation) && generation > 0) {
        buffer_printf(&text, "%sdone again, generation %lld", text.len ? ", " : "", (long long)generation);
    }
    if (json_i64(json_member(operation, "duplicates_seen"), &duplicates) && duplicates > 0) {
        buffer_printf(&text, "%s%lld duplicate%s", text.len ? ", " : "", (long long)duplicates,
                      duplicates == 1 ? "" : "s");
    }
    if (note.len > 0) {
        buffer_printf(&text, "%s%.*s", text.len ? "; " : "", SLICE_ARG(note));
    }
    note = text.len ? arena_slice(&ctl->arena, buffer_slice(&text)) : SLICE("");
    buffer_fini(&text);
    return note;
}

static void put_step(struct ctl *ctl, struct table *table, struct slice step, struct slice operations, int64_t begin_ms)
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
    row[7].text = remarks_of(ctl, step, operations);
    if (json_type(compensation) != JSON_OBJECT || show_member(ctl, compensation, "status").len == 0) {
        return;
    }
    struct cell *undo = table_row(table);

    status = show_member(ctl, compensation, "status");
    undo[1].text = SLICE("  undo");
    undo[1].colour = COLOUR_YELLOW;
    undo[2].text = show_member(ctl, operation_of(operations, json_member(compensation, "key")), "tool");
    undo[3].text = status;
    undo[3].colour = status_colour(status);
    undo[4].text = attempts_of(ctl, compensation);
    put_times(ctl, compensation, begin_ms, &undo[5], &undo[6]);
    undo[7].text = error_of(ctl, compensation);
}

/* Its steps are an agent's calls: an open saga, which has no name, or a run. */
static bool has_calls(struct slice saga)
{
    struct slice name = json_member(saga, "saga");

    return json_type(name) == JSON_NULL || json_string_is(name, OPEN_SAGA_NAME) || json_string_is(name, RUN_SAGA_NAME);
}

/* What it is: a definition in a version, an open saga, or the calls of a run. */
static void print_kind(struct ctl *ctl, struct slice saga)
{
    struct slice run = show_member(ctl, saga, "run"), version = show_member(ctl, saga, "version");

    (void)printf("%s%s%.*s%s", colour_on(ctl, COLOUR_BOLD), run.len > 0 ? "run " : "",
                 SLICE_ARG(run.len > 0 ? run : has_calls(saga) ? SLICE("open saga") : show_member(ctl, saga, "saga")),
                 colour_off(ctl, COLOUR_BOLD));
    (void)printf("%s%.*s  ", version.len > 0 ? " version " : "", SLICE_ARG(version));
}

static void print_head(struct ctl *ctl, struct slice saga)
{
    struct slice status = show_member(ctl, saga, "status"), id = show_member(ctl, saga, "business_id");
    bool is_run = show_member(ctl, saga, "run").len > 0;
    enum colour colour = status_colour(status);
    int64_t from_ms = 0, to_ms = 0;

    print_kind(ctl, saga);
    (void)printf("%s%.*s%s", colour_on(ctl, colour), SLICE_ARG(status), colour_off(ctl, colour));
    if (member_instant(saga, "created_at", &from_ms)) {
        bool ended = member_instant(saga, "ended_at", &to_ms);

        (void)printf(" %s %.*s", ended ? "after" : "for",
                     SLICE_ARG(show_duration(ctl, (ended ? to_ms : now_ms()) - from_ms)));
    }
    (void)printf("\n  %.*s%s%.*s  started %.*s\n", SLICE_ARG(show_member(ctl, saga, "id")),
                 id.len && !is_run ? "  business id " : "", SLICE_ARG(is_run ? SLICE("") : id),
                 SLICE_ARG(show_member(ctl, saga, "created_at")));
    if (json_type(json_member(saga, "error")) != JSON_NONE && json_type(json_member(saga, "error")) != JSON_NULL) {
        (void)printf("  why: %.*s\n", SLICE_ARG(error_of(ctl, saga)));
    }
}

/* "calls 3 of 10, micros 400": what is bounded, and what was used. */
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

/* What only open sagas and runs have. */
static void print_opening(struct ctl *ctl, struct slice saga)
{
    struct slice paused = show_member(ctl, saga, "paused"), sealed = show_member(ctl, saga, "sealed_by");
    struct slice usage = usage_of(ctl, saga);
    int64_t deadline_ms = 0, ended_ms = 0;

    if (usage.len > 0) {
        (void)printf("  used  %.*s\n", SLICE_ARG(usage));
    }
    if (sealed.len > 0) {
        (void)printf("  sealed by %.*s: it cannot be undone any more\n", SLICE_ARG(sealed));
    }
    if (member_instant(saga, "deadline", &deadline_ms) && !member_instant(saga, "ended_at", &ended_ms)) {
        int64_t left_ms = deadline_ms - now_ms();

        (void)printf("  deadline %s%.*s\n", left_ms > 0 ? "in " : "was over for ",
                     SLICE_ARG(show_duration(ctl, left_ms > 0 ? left_ms : -left_ms)));
    }
    if (paused.len > 0) {
        (void)printf("  %spaused%s: %.*s\n    sagactl resume %.*s --note \"...\"\n", colour_on(ctl, COLOUR_RED),
                     colour_off(ctl, COLOUR_RED), SLICE_ARG(paused), SLICE_ARG(show_member(ctl, saga, "id")));
    }
}

/* Duplicates are counted by operation: a run and an open saga have theirs in the list of operations, by their keys. */
static int read_operations(struct ctl *ctl, struct slice saga, struct slice *items)
{
    struct slice run = show_member(ctl, saga, "run");
    struct answer answer;

    *items = SLICE_NONE;
    if (!has_calls(saga)) {
        return EXIT_OK; /* the steps of a definition are not called twice */
    }
    int code = client_get(
        ctl,
        arena_printf(&ctl->arena, "/v1/operations?limit=500&run=%.*s",
                     SLICE_ARG(url_escape(run.len > 0 ? run : show_member(ctl, saga, "id"), &ctl->arena))),
        &ctl->arena, &answer);

    *items = code == EXIT_OK ? json_member(answer.body, "items") : SLICE_NONE;
    return code;
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
    struct slice step, output, operations;
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
    code = read_operations(ctl, answer.body, &operations);
    if (code != EXIT_OK) {
        return code;
    }
    struct json_walk walk = json_walk(json_member(answer.body, "steps"));

    (void)member_instant(answer.body, "created_at", &begin_ms); /* 0 when absent shows odd offsets, and nothing worse */
    print_head(ctl, answer.body);
    print_opening(ctl, answer.body);
    (void)putchar('\n');
    table_init(&table, ctl, titles);
    while (json_next_element(&walk, &step)) {
        put_step(ctl, &table, step, operations, begin_ms);
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
