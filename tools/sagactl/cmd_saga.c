/* The commands start and list. */
#include <stdio.h>
#include <string.h>

#include "base/instant.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/namespaces.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/query.h"
#include "tools/sagactl/saga_end.h"
#include "tools/sagactl/saga_name.h"

#define REQUEST_MS 60000
#define TURN_MS 2000 /* the time of the first request */

const char help_start[] =
    "sagactl start SAGA [--input JSON|@FILE|-] [--id BUSINESS_ID] [--tag NAME=VALUE]... [--version N] [--wait 30s]\n"
    "sagactl start --batch FILE|- [--patience 60s]\n"
    "\n"
    "Starts a saga. With --id the same start again gives the saga that is there, also from another\n"
    "client or after a crash: use it whenever a start may be repeated. With --wait it holds until the\n"
    "saga has ended or needs a person, and the exit code tells: 0 completed, 8 compensated, 9 needs a\n"
    "person, 1 abandoned, 7 the wait is over. The input is JSON or YAML.\n"
    "\n"
    "  sagactl start order --input '{\"order_id\": \"o-1\", \"amount\": 1200}'\n"
    "  sagactl start order --input @order.yaml --id o-1 --tag customer=42 --wait 30s\n"
    "  id=$(sagactl start order --input - -o name < order.json)\n"
    "\n"
    "--batch starts many: each line of the file is a start, such as\n"
    "  {\"saga\": \"order\", \"id\": \"o-1\", \"input\": {\"order_id\": \"o-1\"}}\n"
    "with \"tags\" and \"version\" where wanted, or {\"open\": true}. A line is printed for each, with the number\n"
    "of its line in the file: started, there (the id was started before) or refused. What the engine is\n"
    "too busy for is sent again, when it asks for that, for as long as anything goes on and --patience\n"
    "more. A line without an id gets one, so that nothing is started twice within a run; only lines with\n"
    "ids of their own can be sent again by another run. The exit code is 0 when all are started or there,\n"
    "1 when any was refused, 6 when the patience was over before that.\n"
    "\n"
    "  sagactl start --batch orders.jsonl\n"
    "  make-orders | sagactl start --batch - -o name > ids\n";

const char help_list[] = "sagactl list [--status S] [--waits-for W] [--saga NAME] [--version N]\n"
                         "             [--id BUSINESS_ID] [--id-prefix TEXT] [--tag NAME=VALUE] [--since T]\n"
                         "             [--until T] [--step ID] [--error CODE] [--limit N] [--cursor C]\n"
                         "             [--group-by status]\n"
                         "\n"
                         "Lists sagas, newest first. Times are RFC 3339 (2026-01-31T09:00:00Z) or an age\n"
                         "such as 2h. --status, --waits-for, --saga, --version, --step and --error take\n"
                         "several values, with commas between or one by one; --tag may be given several\n"
                         "times, and the saga has one of the values of each name. Open sagas go by the name\n"
                         "~open. The calls of a run are kept in a saga, too: --saga ~run.\n"
                         "\n"
                         "  --status      running, waiting, paused, compensating, escalated, completed,\n"
                         "                compensated, abandoned\n"
                         "  --waits-for   retry (the next attempt of a call), probe (an answer to what became\n"
                         "                of a call), hold, person (a case is open), approval, signal, time,\n"
                         "                lock, breaker (that of a tool is open)\n"
                         "  --id-prefix   how the business id begins\n"
                         "  --group-by    status: counts them instead\n"
                         "\n"
                         "With -A it is about all namespaces of the token, with -n NAME about one.\n"
                         "A list ends where it would cost too much to go on, and says how far it looked.\n"
                         "\n"
                         "  sagactl list --status escalated,paused\n"
                         "  sagactl list --waits-for retry --saga order\n"
                         "  sagactl list --saga order --since 2h\n"
                         "  sagactl list --saga '~run'\n"
                         "  sagactl list --status running -o name | xargs -n 1 sagactl show\n";

/* --- start --- */

static bool put_tags(struct ctl *ctl, const struct option_values *tags, struct json_writer *w)
{
    if (tags->count == 0) {
        return true;
    }
    json_object_begin(w, "tags");
    for (size_t i = 0; i < tags->count; i++) {
        const char *equals = strchr(tags->items[i], '=');

        if (!equals || equals == tags->items[i]) {
            (void)usage_error(ctl, "--tag is NAME=VALUE, not \"%s\"", tags->items[i]);
            return false;
        }
        json_write_text(w, arena_text(&ctl->arena, (struct slice){tags->items[i], (size_t)(equals - tags->items[i])}),
                        equals + 1);
    }
    json_object_end(w);
    return true;
}

struct start_options {
    const char *input, *id, *version, *wait, *batch, *patience;
    struct option_values tags;
    struct slice input_json;
    int64_t version_number, wait_ms;
};

static bool put_start(struct ctl *ctl, const char *saga, const struct start_options *o, struct buffer *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    json_write_text(&w, "saga", saga);
    if (o->input_json.ptr) {
        json_write_raw(&w, "input", o->input_json);
    }
    if (o->id) {
        json_write_text(&w, "id", o->id);
    }
    if (o->version) {
        json_write_i64(&w, "version", o->version_number);
    }
    bool ok = put_tags(ctl, &o->tags, &w);

    json_object_end(&w);
    return ok;
}

static int start(struct ctl *ctl, const char *name, const struct start_options *o)
{
    struct buffer body;
    struct answer answer;
    int64_t first_ms = o->wait_ms < TURN_MS ? o->wait_ms : TURN_MS;

    buffer_init(&body, 32 << 20);
    if (!put_start(ctl, name, o, &body)) {
        buffer_fini(&body);
        return EXIT_USAGE;
    }
    int code = client_call(ctl, "POST", arena_printf(&ctl->arena, "/v1/sagas?wait=%lldms", (long long)first_ms),
                           buffer_slice(&body), REQUEST_MS, &ctl->arena, &answer);

    buffer_fini(&body);
    if (code != EXIT_OK) {
        return code;
    }
    struct slice saga = answer.body, id = show_member(ctl, saga, "id");

    if (answer.status == 200) {
        (void)fprintf(stderr, "This id was started before: that saga it is.\n");
    }
    if (o->wait) {
        code = saga_await(ctl, id, o->wait_ms - first_ms, NULL, &saga);
        if (code != EXIT_OK) {
            return code;
        }
    }
    if (ctl->output == OUTPUT_DATA) {
        print_data(ctl, saga);
    } else if (ctl->output == OUTPUT_NAME) {
        (void)printf("%.*s\n", SLICE_ARG(id));
    } else {
        struct slice status = show_member(ctl, saga, "status");
        enum colour colour = status_colour(status);

        (void)printf("%.*s  %s%.*s%s\n", SLICE_ARG(id), colour_on(ctl, colour), SLICE_ARG(status),
                     colour_off(ctl, colour));
        if (o->wait && json_type(json_member(saga, "output")) != JSON_NULL && json_member(saga, "output").ptr) {
            print_data(ctl, json_member(saga, "output"));
        }
        if (saga_exit_code(saga) == EXIT_NEEDS_PERSON) {
            (void)fprintf(stderr, "It needs a person: sagactl show %.*s\n", SLICE_ARG(id));
        } else if (o->wait && saga_why(ctl, saga).len > 0) {
            (void)fprintf(stderr, "%.*s\n", SLICE_ARG(saga_why(ctl, saga)));
        }
    }
    return o->wait ? saga_exit_code(saga) : EXIT_OK;
}

static int start_many(struct ctl *ctl, const struct start_options *o, size_t names)
{
    int64_t patience_ms = 60000;

    if (names > 0 || o->input || o->id || o->version || o->wait || o->tags.count > 0) {
        return usage_error(ctl, "with --batch the lines of the file say what is started, and nothing is waited for");
    }
    if (o->patience && !duration_parse(slice_of(o->patience), &patience_ms)) {
        return usage_error(ctl, "--patience is a duration such as 60s, not \"%s\"", o->patience);
    }
    return start_batch(ctl, o->batch, patience_ms);
}

int cmd_start(struct ctl *ctl, int argc, char **argv)
{
    struct start_options o = {0};
    const struct option options[] = {{"--input", &o.input, NULL, NULL},       {"--id", &o.id, NULL, NULL},
                                     {"--tag", NULL, &o.tags, NULL},          {"--version", &o.version, NULL, NULL},
                                     {"--wait", &o.wait, NULL, NULL},         {"--batch", &o.batch, NULL, NULL},
                                     {"--patience", &o.patience, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    struct arguments names;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &names, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (o.batch) {
        return start_many(ctl, &o, names.count);
    }
    if (o.patience) {
        return usage_error(ctl, "--patience is for --batch; --wait waits for the end of one saga");
    }
    if (names.count != 1) {
        return usage_error(ctl, "%s", names.count ? "one saga at a time" : "which saga?");
    }
    if (o.version && (!slice_to_i64(slice_of(o.version), &o.version_number) || o.version_number < 1)) {
        return usage_error(ctl, "--version is a whole number from 1 on, not \"%s\"", o.version);
    }
    if (o.wait && !duration_parse(slice_of(o.wait), &o.wait_ms)) {
        return usage_error(ctl, "--wait is a duration such as 30s, not \"%s\"", o.wait);
    }
    if (o.input && !read_json_argument(ctl, "--input", o.input, &o.input_json)) {
        return EXIT_USAGE;
    }
    return start(ctl, names.items[0], &o);
}

/* --- list --- */

static void print_sagas(struct ctl *ctl, struct slice answer)
{
    static const char *const titles[] = {"ID", "SAGA", "STATUS", "BUSINESS ID", "STARTED", "TOOK", "NAMESPACE", NULL};
    static const char *const titles_of_one[] = {"ID", "SAGA", "STATUS", "BUSINESS ID", "STARTED", "TOOK", NULL};
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct table table;
    struct slice item;

    table_init(&table, ctl, ctl->all_namespaces ? titles : titles_of_one);
    table.flexible = BIT(1) | BIT(3);
    table.optional = BIT(5);
    while (json_next_element(&walk, &item)) {
        struct cell *row = table_row(&table);
        int64_t from_ms = 0, to_ms = 0;

        row[0].text = show_member(ctl, item, "id");
        row[1].text = show_member(ctl, item, "saga");
        row[2].text = show_member(ctl, item, "status");
        row[2].colour = status_colour(row[2].text);
        row[3].text = show_member(ctl, item, "business_id");
        row[4].text = show_age(ctl, item, "created_at");
        if (member_instant(item, "created_at", &from_ms) && member_instant(item, "ended_at", &to_ms)) {
            row[5].text = show_duration(ctl, to_ms - from_ms);
        }
        if (ctl->all_namespaces) {
            row[6].text = show_member(ctl, item, "namespace");
        }
    }
    table_print(&table, 0);
}

static void print_counts(struct ctl *ctl, struct slice answer)
{
    static const char *const titles[] = {"STATUS", "SAGAS", NULL};
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct table table;
    struct slice item;

    table_init(&table, ctl, titles);
    while (json_next_element(&walk, &item)) {
        struct cell *row = table_row(&table);

        row[0].text = show_member(ctl, json_member(item, "group"), "status");
        row[0].colour = status_colour(row[0].text);
        row[1].text = show_member(ctl, item, "count");
    }
    table_print(&table, 0);
}

struct list_options {
    struct option_values statuses, waits, sagas, versions, steps, errors, tags;
    const char *id, *prefix, *since, *until, *group_by, *limit, *cursor;
};

static bool put_list(struct ctl *ctl, const struct list_options *o, struct buffer *path)
{
    bool ok = true;

    buffer_printf(path, "/v1/sagas?limit=%s", o->limit);
    for (size_t i = 0; i < o->tags.count && ok; i++) {
        ok = query_put_tag(ctl, path, o->tags.items[i]);
    }
    return ok && query_put_all(ctl, path, "status", &o->statuses) && query_put_all(ctl, path, "waits_for", &o->waits) &&
           query_put_all(ctl, path, "saga", &o->sagas) && query_put_all(ctl, path, "step", &o->steps) &&
           query_put_all(ctl, path, "version", &o->versions) && query_put_all(ctl, path, "error", &o->errors) &&
           query_put(ctl, path, "business_id", o->id) && query_put(ctl, path, "business_id_prefix", o->prefix) &&
           query_put(ctl, path, "group_by", o->group_by) && query_put(ctl, path, "cursor", o->cursor) &&
           query_put_time(ctl, path, "since", o->since) && query_put_time(ctl, path, "until", o->until);
}

int cmd_list(struct ctl *ctl, int argc, char **argv)
{
    struct list_options o = {.limit = "50"};
    const struct option options[] = {{"--status", NULL, &o.statuses, NULL},
                                     {"--waits-for", NULL, &o.waits, NULL},
                                     {"--saga", NULL, &o.sagas, NULL},
                                     {"--step", NULL, &o.steps, NULL},
                                     {"--error", NULL, &o.errors, NULL},
                                     {"--tag", NULL, &o.tags, NULL},
                                     {"--id", &o.id, NULL, NULL},
                                     {"--since", &o.since, NULL, NULL},
                                     {"--until", &o.until, NULL, NULL},
                                     {"--limit", &o.limit, NULL, NULL},
                                     {"--cursor", &o.cursor, NULL, NULL},
                                     {"--version", NULL, &o.versions, NULL},
                                     {"--id-prefix", &o.prefix, NULL, NULL},
                                     {"--group-by", &o.group_by, NULL, NULL},
                                     {NULL, NULL, NULL, NULL}};
    struct arguments names;
    struct answer answer;
    struct buffer path;
    bool helped = false;
    int code = EXIT_USAGE;

    if (!options_read(ctl, argc, argv, options, &names, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (ctl->all_namespaces && (o.cursor || o.group_by)) {
        return usage_error(ctl, "%s of one namespace: name it with -n", o.cursor ? "a cursor is" : "counts are");
    }
    if (o.group_by && ctl->output == OUTPUT_NAME) {
        return usage_error(ctl, "groups have no names: leave out -o name or --group-by");
    }
    if (names.count != 0) {
        return usage_error(ctl, "list takes options only; `sagactl show %s`?", names.items[0]);
    }
    buffer_init(&path, 16384);
    if (put_list(ctl, &o, &path)) {
        code = namespaces_get(ctl, buffer_slice(&path), "created_at", o.limit, &answer);
        if (code == EXIT_OK && !print_items(ctl, answer.body, "id")) {
            if (o.group_by) {
                print_counts(ctl, answer.body);
            } else {
                print_sagas(ctl, answer.body);
            }
            print_more(ctl, answer.body);
        }
    }
    buffer_fini(&path);
    return code;
}
