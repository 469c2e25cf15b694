/*
 * A verb on many sagas: `sagactl resolve --tool card.pay --error timeout --as happened`. The server freezes the set and
 * says what would happen. The person reads that and agrees. Then the job runs, and the command waits for its end.
 *
 * The rows of a file become the items of the job. With filters as well, only rows about the cases that the filters find
 * are used. The command lists the other rows and does nothing about them.
 */
#include "tools/sagactl/bulk.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/instant.h"
#include "base/map.h"
#include "tools/sagactl/ask.h"
#include "tools/sagactl/client.h"
#include "tools/sagactl/csv.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/query.h"
#include "tools/sagactl/saga_end.h"

#define BODY_BYTES_MAX (64u << 20)
#define FREEZE_MS 120000
#define ANSWER_MS 30000
#define TOLD_MAX 10 /* the most left-out rows that are listed one by one */

struct bulk_options {
    const char *action;
    const char *as, *then, *result, *args, *note, *from, *to, *looks_until;
    int64_t looks_until_ms;         /* read from looks_until */
    const char *version, *standing; /* members of tools and of rerun */
    const char *mended;             /* the tool that is mended; `tool` is a filter */
    const char *status, *tool, *saga, *step, *reason, *error, *since, *until, *cost_above, *id, *prefix;
    const char *of_version; /* a filter; `version` is a member of some verbs */
    struct option_values tags, columns, maps;
    bool accept_double, dry_run;
};

static bool has_filter(int argc, char **argv, size_t first)
{
    static const char *const names[] = {"--tool",       "--saga",   "--step",         "--reason",
                                        "--error",      "--tag",    "--opened-since", "--opened-until",
                                        "--cost-above", "--status", "--from",         "--id-prefix"};

    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        for (size_t k = first; k < COUNT_OF(names); k++) {
            size_t len = strlen(names[k]);

            if (strncmp(argv[i], names[k], len) == 0 && (argv[i][len] == '\0' || argv[i][len] == '=')) {
                return true;
            }
        }
    }
    return false;
}

bool bulk_is_meant(int argc, char **argv)
{
    return has_filter(argc, argv, 0);
}

bool bulk_is_meant_of_sagas(int argc, char **argv)
{
    return has_filter(argc, argv, 1);
}

/* --- what is asked for --- */

static bool put_filter(struct ctl *ctl, struct json_writer *w, const struct bulk_options *o)
{
    int64_t cost = 0;

    json_object_begin(w, "filter");
    body_put(w, "status", o->status);
    body_put(w, "tool", o->tool);
    body_put(w, "saga", o->saga);
    body_put(w, "step", o->step);
    body_put(w, "reason", o->reason);
    body_put(w, "error", o->error);
    body_put(w, "version", o->of_version);
    body_put(w, "business_id", o->id);
    body_put(w, "business_id_prefix", o->prefix);
    for (size_t i = 0; i < o->tags.count; i++) {
        const char *equals = strchr(o->tags.items[i], '=');

        if (!equals || equals == o->tags.items[i]) {
            (void)usage_error(ctl, "--tag is NAME=VALUE, not \"%s\"", o->tags.items[i]);
            return false;
        }
        json_write_text(w,
                        arena_printf(&ctl->arena, "tag.%.*s", (int)(equals - o->tags.items[i]), o->tags.items[i]).ptr,
                        equals + 1);
    }
    if (!body_put_time(ctl, w, "since", o->since) || !body_put_time(ctl, w, "until", o->until)) {
        return false;
    }
    if (o->cost_above && !slice_to_i64(slice_of(o->cost_above), &cost)) {
        (void)usage_error(ctl, "--cost-above is a whole number, not \"%s\"", o->cost_above);
        return false;
    }
    if (o->cost_above) {
        json_write_i64(w, "cost_above", cost);
    }
    json_object_end(w);
    return true;
}

static bool has_case_filter(const struct bulk_options *o)
{
    return o->tool || o->step || o->reason || o->error || o->since || o->until || o->cost_above || o->tags.count > 0;
}

/* --- the rows of a file --- */

struct case_found { /* a case, keyed by what names it in the file */
    struct slice operation;
    bool several;
};

/* What a column may name a saga or an operation by: the member of an item, the same of a case, and words for people. */
static const struct row_name {
    const char *member, *of_case, *words;
} row_names[] = {{"business_id", "business_id", "business id"},
                 {"id", "saga", "id of its saga"},
                 {"operation", "operation", "operation"}};

struct rows {
    struct csv csv;
    size_t columns[OPTION_REPEATS_MAX];
    struct slice members[OPTION_REPEATS_MAX];
    size_t count; /* the count of these */
    const struct row_name *name;
    size_t key; /* the column that names the saga or its operation */
    struct map cases;
    size_t taken, left_out;
};

static const struct row_name *find_row_name(struct slice member)
{
    for (size_t i = 0; i < COUNT_OF(row_names); i++) {
        if (slice_is(member, row_names[i].member)) {
            return &row_names[i];
        }
    }
    return NULL;
}

/* Reads "reference=business_id". Either side may be a column of the file; which one is it? */
static bool read_columns(struct ctl *ctl, const struct bulk_options *o, struct rows *rows)
{
    for (size_t i = 0; i < o->columns.count; i++) {
        const struct row_name *name;
        const char *text = o->columns.items[i], *equals = strchr(text, '=');
        struct slice left = {text, equals ? (size_t)(equals - text) : 0}, right = slice_of(equals ? equals + 1 : "");

        if (csv_find(&rows->csv, left, &rows->columns[i])) {
            rows->members[i] = right;
        } else if (csv_find(&rows->csv, right, &rows->columns[i])) {
            rows->members[i] = left;
        } else {
            (void)usage_error(ctl, "--column is COLUMN=MEMBER, and the file has no column of \"%s\"", text);
            return false;
        }
        name = find_row_name(rows->members[i]);
        if (name) {
            rows->key = i;
            rows->name = name;
        }
    }
    rows->count = o->columns.count;
    if (!rows->name) {
        (void)usage_error(ctl, "say which column names the saga: --column COLUMN=business_id, or =id or =operation");
    }
    return rows->name != NULL;
}

static struct slice mapped(const struct bulk_options *o, struct slice word)
{
    for (size_t i = 0; i < o->maps.count; i++) {
        const char *text = o->maps.items[i], *equals = strchr(text, '=');

        if (equals && slice_equal(word, (struct slice){text, (size_t)(equals - text)})) {
            return slice_of(equals + 1);
        }
    }
    return word;
}

static void leave_out(struct rows *rows, struct slice name, const char *why)
{
    if (rows->left_out++ < TOLD_MAX) {
        (void)fprintf(stderr, "row %zu, %.*s: %s\n", rows->csv.row, SLICE_ARG(text_clean(name, rows->csv.arena)), why);
    }
}

/* Writes the members of a result into an object of their own: "result.charge_id". */
static void put_result(struct json_writer *w, const struct rows *rows, const struct slice *cells, struct ctl *ctl)
{
    bool begun = false;

    for (size_t i = 0; i < rows->count; i++) {
        if (slice_starts_with(rows->members[i], "result.") && cells[rows->columns[i]].len > 0) {
            if (!begun) {
                json_object_begin(w, "result");
                begun = true;
            }
            json_write_slice(
                w, arena_text(&ctl->arena, (struct slice){rows->members[i].ptr + 7, rows->members[i].len - 7}),
                cells[rows->columns[i]]);
        }
    }
    if (begun) {
        json_object_end(w);
    }
}

static bool has_empty_verdict(const struct rows *rows, const struct slice *cells)
{
    for (size_t i = 0; i < rows->count; i++) {
        if (slice_is(rows->members[i], "as") && cells[rows->columns[i]].len == 0) {
            return true;
        }
    }
    return false;
}

static void put_row(struct ctl *ctl, struct json_writer *w, const struct bulk_options *o, struct rows *rows,
                    const struct slice *cells)
{
    struct slice name = cells[rows->columns[rows->key]];
    const struct case_found *found = map_find(&rows->cases, name.ptr, name.len);

    if (has_case_filter(o) && (!found || found->several)) {
        const char *which = found ? "several cases have this" : "none of the cases has this";

        leave_out(rows, name, arena_printf(&ctl->arena, "%s %s", which, rows->name->words).ptr);
        return;
    }
    if (has_empty_verdict(rows, cells)) { /* an empty cell is no verdict, whatever --as says */
        leave_out(rows, name, "the row has no verdict");
        return;
    }
    rows->taken++;
    json_object_begin(w, NULL);
    for (size_t i = 0; i < rows->count; i++) {
        struct slice cell = cells[rows->columns[i]];

        if (found && i == rows->key) {
            json_write_slice(w, "operation", found->operation);
        } else if (!slice_starts_with(rows->members[i], "result.") && cell.len > 0) {
            json_write_slice(w, arena_text(&ctl->arena, rows->members[i]), mapped(o, cell));
        }
    }
    if (o->saga && !found) {
        json_write_text(w, "saga", o->saga);
    }
    put_result(w, rows, cells, ctl);
    json_object_end(w);
}

static void keep_cases(struct ctl *ctl, struct slice items, struct rows *rows)
{
    struct json_walk walk = json_walk(items);
    struct slice item;

    while (json_next_element(&walk, &item)) {
        struct slice name = json_string(json_member(item, rows->name->of_case), &ctl->arena);
        struct case_found *found = name.ptr ? map_find(&rows->cases, name.ptr, name.len) : NULL;

        if (found) {
            found->several = true;
        } else if (name.ptr) {
            found = arena_alloc(&ctl->arena, sizeof(*found));
            found->operation = json_string(json_member(item, "operation"), &ctl->arena);
            map_put(&rows->cases, arena_slice(&ctl->arena, name).ptr, name.len, found);
        }
    }
}

/* Finds the cases of the filters, page by page. */
static int find_cases(struct ctl *ctl, const struct bulk_options *o, struct rows *rows)
{
    struct slice cursor = SLICE_NONE;
    int code = EXIT_OK;

    do {
        struct answer answer;
        struct buffer path;
        bool ok = true;

        buffer_init(&path, 65536);
        buffer_put_text(&path, "/v1/escalations?status=open&limit=500");
        for (size_t i = 0; ok && i < o->tags.count; i++) {
            ok = query_put_tag(ctl, &path, o->tags.items[i]);
        }
        ok = ok && query_put(ctl, &path, "tool", o->tool) && query_put(ctl, &path, "saga", o->saga) &&
             query_put(ctl, &path, "step", o->step) && query_put(ctl, &path, "reason", o->reason) &&
             query_put(ctl, &path, "error", o->error) && query_put_time(ctl, &path, "since", o->since) &&
             query_put_time(ctl, &path, "until", o->until) && query_put(ctl, &path, "cost_above", o->cost_above) &&
             query_put(ctl, &path, "cursor", cursor.ptr);
        code = ok ? client_get(ctl, buffer_slice(&path), &ctl->arena, &answer) : EXIT_USAGE;
        buffer_fini(&path);
        if (code == EXIT_OK) {
            keep_cases(ctl, json_member(answer.body, "items"), rows);
            cursor = json_string(json_member(answer.body, "next_cursor"), &ctl->arena);
            cursor = arena_slice(&ctl->arena, cursor);
        }
    } while (code == EXIT_OK && cursor.ptr);
    return code;
}

static int put_rows(struct ctl *ctl, struct json_writer *w, const struct bulk_options *o)
{
    struct rows *rows = arena_alloc(&ctl->arena, sizeof(*rows));
    struct slice text, cells[CSV_COLUMNS_MAX];
    int code;

    if (!read_file(ctl, o->from, &text)) {
        return EXIT_USAGE;
    }
    csv_begin(&rows->csv, text, &ctl->arena);
    if (rows->csv.fault) {
        return usage_error(ctl, "the head of %s cannot be read: %s", o->from, rows->csv.fault);
    }
    if (!read_columns(ctl, o, rows)) {
        return EXIT_USAGE;
    }
    map_init(&rows->cases);
    code = has_case_filter(o) ? find_cases(ctl, o, rows) : EXIT_OK;
    json_array_begin(w, "items");
    while (code == EXIT_OK && csv_next(&rows->csv, cells)) {
        put_row(ctl, w, o, rows, cells);
    }
    json_array_end(w);
    map_fini(&rows->cases);
    if (rows->csv.fault) {
        return usage_error(ctl, "row %zu of %s cannot be read: %s", rows->csv.row, o->from, rows->csv.fault);
    }
    if (rows->left_out > 0) {
        (void)fprintf(stderr, "%zu of %zu rows are left out: nothing is done about them\n", rows->left_out,
                      rows->csv.row);
    }
    if (code == EXIT_OK && rows->taken == 0) {
        return usage_error(ctl, "no row of the file is about anything that was found");
    }
    return code;
}

/* --- the job --- */

static void print_groups(struct ctl *ctl, const char *title, struct slice groups, const char *key)
{
    struct json_walk walk = json_walk(groups);
    struct slice group, example;

    while (json_next_element(&walk, &group)) {
        struct json_walk examples = json_walk(json_member(group, "examples"));
        const char *before = "  (";

        (void)printf("  %-10s %6.*s  %.*s", title, SLICE_ARG(show_member(ctl, group, "count")),
                     SLICE_ARG(show_member(ctl, group, key)));
        while (json_next_element(&examples, &example)) {
            (void)printf("%s%.*s", before, SLICE_ARG(show_value(ctl, example)));
            before = ", ";
        }
        (void)printf("%s\n", strcmp(before, ", ") == 0 ? ")" : "");
    }
}

void bulk_print(struct ctl *ctl, struct slice job)
{
    struct slice state = show_member(ctl, job, "state"), outcomes = json_member(job, "outcomes"),
                 as = show_member(ctl, job, "as");

    (void)printf("bulk %.*s %.*s\n", SLICE_ARG(show_member(ctl, job, "bulk")), SLICE_ARG(state));
    (void)printf("  %.*s%s%.*s, %.*s items: %.*s\n", SLICE_ARG(show_member(ctl, job, "action")), as.len ? " as " : "",
                 SLICE_ARG(as), SLICE_ARG(show_member(ctl, job, "count")), SLICE_ARG(show_member(ctl, job, "note")));
    if (slice_is(state, "frozen") || slice_is(state, "expired")) {
        (void)printf("  %-10s %6.*s  of %.*s that were looked at\n", "applies",
                     SLICE_ARG(show_member(ctl, job, "applies")), SLICE_ARG(show_member(ctl, job, "looked")));
        print_groups(ctl, "refused", json_member(job, "refused"), "reason");
        print_groups(ctl, "left out", json_member(job, "unmatched"), "reason");
        print_groups(ctl, "leads to", json_member(job, "leads_to"), "status");
        return;
    }
    (void)printf("  done %.*s, changed %.*s, refused %.*s, open %.*s\n", SLICE_ARG(show_member(ctl, outcomes, "done")),
                 SLICE_ARG(show_member(ctl, outcomes, "changed")), SLICE_ARG(show_member(ctl, outcomes, "refused")),
                 SLICE_ARG(show_member(ctl, outcomes, "open")));
}

static int64_t count_of(struct slice object, const char *name)
{
    int64_t count = 0;

    (void)json_i64(json_member(object, name), &count); /* the count stays 0 when absent */
    return count;
}

static int wait_for_end(struct ctl *ctl, struct slice path, struct slice *job)
{
    for (;;) {
        struct answer answer;
        int code = client_get(ctl, path, &ctl->arena, &answer);

        if (code != EXIT_OK) {
            return code;
        }
        struct slice outcomes = json_member(answer.body, "outcomes");

        *job = answer.body;
        if (!json_string_is(json_member(answer.body, "state"), "running")) {
            progress_clear(ctl);
            return EXIT_OK;
        }
        progress_show(ctl, "%lld of %lld", (long long)(count_of(answer.body, "count") - count_of(outcomes, "open")),
                      (long long)count_of(answer.body, "count"));
        (void)usleep(300000);
    }
}

static int run(struct ctl *ctl, struct slice frozen)
{
    struct slice path = arena_printf(&ctl->arena, "/v1/bulk/%.*s", SLICE_ARG(show_member(ctl, frozen, "bulk")));
    struct slice job, outcomes;
    struct answer answer;
    int code = client_call(ctl, "POST", arena_printf(&ctl->arena, "%.*s/run", SLICE_ARG(path)), SLICE("{}"), ANSWER_MS,
                           &ctl->arena, &answer);

    if (code == EXIT_OK) {
        code = wait_for_end(ctl, path, &job);
    }
    if (code != EXIT_OK) {
        return code;
    }
    if (ctl->output == OUTPUT_DATA) {
        print_data(ctl, job);
    } else if (ctl->output == OUTPUT_NAME) {
        (void)printf("%.*s\n", SLICE_ARG(show_member(ctl, job, "bulk")));
    } else {
        bulk_print(ctl, job);
    }
    outcomes = json_member(job, "outcomes");
    return count_of(outcomes, "changed") + count_of(outcomes, "refused") + count_of(outcomes, "open") > 0
               ? EXIT_CONFLICT
               : EXIT_OK;
}

static int freeze(struct ctl *ctl, const struct bulk_options *o, struct answer *answer)
{
    struct slice result = SLICE_NONE, args = SLICE_NONE;
    struct json_writer w;
    struct buffer body;
    int code = EXIT_OK;

    if ((o->result && !read_json_argument(ctl, "--result", o->result, &result)) ||
        (o->args && !read_json_argument(ctl, "--args", o->args, &args))) {
        return EXIT_USAGE;
    }
    buffer_init(&body, BODY_BYTES_MAX);
    json_writer_init(&w, &body);
    json_object_begin(&w, NULL);
    json_write_text(&w, "action", o->action);
    body_put(&w, "as", o->as);
    body_put(&w, "then", o->then);
    body_put(&w, "to", o->to);
    if (o->looks_until) {
        json_write_instant(&w, "until", o->looks_until_ms);
    }
    if (result.ptr) {
        json_write_raw(&w, "result", result);
    }
    if (args.ptr) {
        json_write_raw(&w, "args", args);
    }
    if (o->accept_double) {
        json_write_bool(&w, "accept_double", true);
    }
    body_put(&w, "tool", o->mended);
    if (o->version) {
        json_write_raw(&w, "version", slice_of(o->version));
    }
    if (o->standing) {
        body_put_names(&w, "accept_standing", o->standing);
    }
    json_write_text(&w, "note", o->note);
    if (o->from) {
        code = put_rows(ctl, &w, o);
    } else if (!put_filter(ctl, &w, o)) {
        code = EXIT_USAGE;
    }
    json_object_end(&w);
    if (code == EXIT_OK) {
        code = client_call(ctl, "POST", SLICE("/v1/bulk"), buffer_slice(&body), FREEZE_MS, &ctl->arena, answer);
    }
    buffer_fini(&body);
    return code;
}

/* Stops the frozen job of which nobody wants anything. Where that fails the job expires by itself. */
static void drop(struct ctl *ctl, struct slice frozen, const char *why)
{
    struct slice bulk = show_member(ctl, frozen, "bulk");
    struct answer answer;

    if (client_call(ctl, "POST", arena_printf(&ctl->arena, "/v1/bulk/%.*s/stop", SLICE_ARG(bulk)),
                    arena_printf(&ctl->arena, "{\"note\":\"%s\"}", why), ANSWER_MS, &ctl->arena, &answer) != EXIT_OK) {
        (void)fprintf(stderr, "bulk %.*s stays frozen until it expires\n", SLICE_ARG(bulk));
    }
}

static int do_it(struct ctl *ctl, const struct bulk_options *o)
{
    struct answer answer;
    int64_t count;
    int code = freeze(ctl, o, &answer);

    if (code != EXIT_OK) {
        return code;
    }
    count = count_of(answer.body, "count");
    if (ctl->output == OUTPUT_TABLE) {
        bulk_print(ctl, answer.body);
    }
    if (o->dry_run) {
        if (ctl->output == OUTPUT_DATA) {
            print_data(ctl, answer.body);
        }
        drop(ctl, answer.body, "it was a dry run");
        return EXIT_OK;
    }
    if (count == 0) {
        (void)fputs("Nothing was found: there is nothing to do.\n", stderr);
        return EXIT_OK;
    }
    code = ask_first(ctl, (size_t)count, "%s: do this to %lld items", o->action, (long long)count);
    if (code != EXIT_OK) {
        drop(ctl, answer.body, "the question before the run was not answered with yes");
        return code;
    }
    return run(ctl, answer.body);
}

int bulk_do(struct ctl *ctl, const char *verb, int argc, char **argv)
{
    struct bulk_options o = {.action = verb};
    const struct option options[] = {{"--as", &o.as, NULL, NULL},
                                     {"--then", &o.then, NULL, NULL},
                                     {"--to", &o.to, NULL, NULL},
                                     {"--until", &o.looks_until, NULL, NULL},
                                     {"--result", &o.result, NULL, NULL},
                                     {"--args", &o.args, NULL, NULL},
                                     {"--accept-double", NULL, NULL, &o.accept_double},
                                     {"--dry-run", NULL, NULL, &o.dry_run},
                                     {"--version", &o.version, NULL, NULL},
                                     {"--accept-standing", &o.standing, NULL, NULL},
                                     {"--note", &o.note, NULL, NULL},
                                     {"--status", &o.status, NULL, NULL},
                                     {"--tool", &o.tool, NULL, NULL},
                                     {"--saga", &o.saga, NULL, NULL},
                                     {"--step", &o.step, NULL, NULL},
                                     {"--reason", &o.reason, NULL, NULL},
                                     {"--error", &o.error, NULL, NULL},
                                     {"--id", &o.id, NULL, NULL},
                                     {"--id-prefix", &o.prefix, NULL, NULL},
                                     {"--tag", NULL, &o.tags, NULL},
                                     {"--opened-since", &o.since, NULL, NULL},
                                     {"--opened-until", &o.until, NULL, NULL},
                                     {"--cost-above", &o.cost_above, NULL, NULL},
                                     {"--from", &o.from, NULL, NULL},
                                     {"--column", NULL, &o.columns, NULL},
                                     {"--map", NULL, &o.maps, NULL},
                                     {NULL, NULL, NULL, NULL}};
    struct arguments words;
    int64_t version = 0;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &words, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (words.count > (verb ? 0 : 1)) {
        return usage_error(ctl, "filters say which: leave \"%s\" out", words.items[words.count - 1]);
    }
    if (!verb) {
        o.action = words.count == 1 ? words.items[0] : "resolve";
    }
    if (o.dry_run && !o.note) {
        o.note = "a dry run";
    }
    if (!o.note || slice_trim(slice_of(o.note)).len == 0) {
        return usage_error(ctl, "say why with --note TEXT: it stands in the log for ever");
    }
    if (o.version && (!slice_to_i64(slice_of(o.version), &version) || version < 1)) {
        return usage_error(ctl, "--version is a whole number from 1 on, not \"%s\"", o.version);
    }
    if (verb && strcmp(verb, "tools") != 0 && strcmp(verb, "rerun") != 0) {
        o.of_version = o.version;
        o.version = NULL;
    }
    if (verb && strcmp(verb, "tools") == 0) {
        o.mended = o.tool; /* which tool; the filters are about sagas */
        o.tool = NULL;
    }
    if (o.looks_until && !read_until(o.looks_until, &o.looks_until_ms)) {
        return usage_error(ctl, "--until is an instant such as 2026-01-31T09:00:00Z or a time from now such as 2h");
    }
    return do_it(ctl, &o);
}
