/* The command schedules: sagas that the clock starts. */
#include <stdio.h>
#include <string.h>

#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/namespaces.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/query.h"

const char help_schedules[] =
    "sagactl schedules [list] [--limit N] [--cursor C]\n"
    "sagactl schedules create NAME --saga SAGA (--cron TEXT [--zone ZONE] |\n"
    "                  --every DURATION [--anchor INSTANT]) [--input JSON]\n"
    "                  [--overlap skip|queue|all] [--catch-up none|last|all]\n"
    "sagactl schedules show NAME\n"
    "sagactl schedules next NAME [--count N]\n"
    "sagactl schedules hold NAME --note TEXT\n"
    "sagactl schedules release NAME --note TEXT\n"
    "sagactl schedules delete NAME\n"
    "\n"
    "A schedule starts one saga for each of its instants, with the business id\n"
    "schedule:NAME@INSTANT and the tag schedule=NAME. A cron expression has five fields:\n"
    "minute, hour, day of the month, month and day of the week, in the zone (UTC where\n"
    "none is given). --every counts from --anchor (1970-01-01T00:00:00Z).\n"
    "\n"
    "--overlap says what an instant does while the saga before runs: it is left out (skip, the\n"
    "default), waits (queue), or starts beside it (all). --catch-up says which instants are made up\n"
    "for that nobody could start in time: none (the default), the last one, or all of at most 1000.\n"
    "--input takes JSON, @FILE, or - for stdin.\n"
    "\n"
    "  sagactl schedules create nightly --saga report --cron '30 2 * * *' --zone Europe/Berlin\n"
    "  sagactl schedules next nightly --count 5\n"
    "  sagactl schedules hold nightly --note 'the warehouse is moving'\n";

struct given {
    const char *saga, *cron, *zone, *every, *anchor, *input, *overlap, *catch_up, *note, *count, *limit, *cursor;
};

static enum colour state_colour(struct slice status)
{
    return slice_is(status, "active") ? COLOUR_GREEN : slice_is(status, "held") ? COLOUR_YELLOW : COLOUR_RED;
}

static struct slice path_of(struct ctl *ctl, const char *name, const char *rest)
{
    return arena_printf(&ctl->arena, "/v1/schedules/%.*s%s", SLICE_ARG(url_escape(slice_of(name), &ctl->arena)), rest);
}

/* --- what is shown --- */

static struct slice when_of(struct ctl *ctl, struct slice schedule)
{
    struct slice cron = show_member(ctl, schedule, "cron"), zone = show_member(ctl, schedule, "zone");

    return cron.len ? arena_printf(&ctl->arena, "%.*s %.*s", SLICE_ARG(cron), SLICE_ARG(zone))
                    : arena_printf(&ctl->arena, "every %.*s", SLICE_ARG(show_member(ctl, schedule, "every")));
}

static void print_many(struct ctl *ctl, struct slice answer)
{
    static const char *const titles[] = {"NAME", "STATUS", "SAGA", "WHEN", "NEXT", "STARTED", "WAIT", "LEFT OUT", NULL};
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct table table;
    struct slice item;

    table_init_of_namespaces(&table, ctl, titles);
    table.flexible = BIT(0) | BIT(2) | BIT(3);
    while (json_next_element(&walk, &item)) {
        struct cell *row = table_row_of(&table, item);
        int64_t skipped = 0, missed = 0;

        (void)json_i64(json_member(item, "skipped"), &skipped); /* the numbers stay 0 when absent */
        (void)json_i64(json_member(item, "missed"), &missed);
        row[0].text = show_member(ctl, item, "name");
        row[1].text = show_member(ctl, item, "status");
        row[1].colour = state_colour(row[1].text);
        row[2].text = show_member(ctl, item, "saga");
        row[3].text = when_of(ctl, item);
        row[4].text = show_member(ctl, item, "next_at");
        row[5].text = show_member(ctl, item, "started");
        row[6].text = show_member(ctl, item, "queued");
        row[7].text = arena_printf(&ctl->arena, "%lld", (long long)(skipped + missed));
    }
    table_print(&table, 0);
    print_more(ctl, answer);
}

static int list(struct ctl *ctl, const struct given *given)
{
    const char *limit = given->limit ? given->limit : "50";
    struct answer answer;

    if (ctl->all_namespaces && given->cursor) {
        return usage_error(ctl, "a cursor is of one namespace: name it with -n");
    }
    int code =
        namespaces_get(ctl,
                       arena_printf(&ctl->arena, "/v1/schedules?limit=%s%s%.*s", limit, given->cursor ? "&cursor=" : "",
                                    SLICE_ARG(url_escape(slice_of(given->cursor ? given->cursor : ""), &ctl->arena))),
                       "created_at", limit, &answer);

    if (code == EXIT_OK && !print_items(ctl, answer.body, "name")) {
        print_many(ctl, answer.body);
    }
    return code;
}

static void print_one(struct ctl *ctl, struct slice schedule)
{
    struct slice status = show_member(ctl, schedule, "status");

    if (ctl->output == OUTPUT_DATA) {
        print_data(ctl, schedule);
    } else if (ctl->output == OUTPUT_NAME) {
        (void)printf("%.*s\n", SLICE_ARG(show_member(ctl, schedule, "name")));
    } else {
        (void)printf("schedule %.*s %s%.*s%s\n", SLICE_ARG(show_member(ctl, schedule, "name")),
                     colour_on(ctl, state_colour(status)), SLICE_ARG(status), colour_off(ctl, state_colour(status)));
        print_facts(ctl, schedule, 2);
    }
}

static int next(struct ctl *ctl, const char *name, const struct given *given)
{
    struct answer answer;
    int code = client_get(ctl,
                          path_of(ctl, name,
                                  arena_text(&ctl->arena, arena_printf(&ctl->arena, "/next?count=%s",
                                                                       given->count ? given->count : "10"))),
                          &ctl->arena, &answer);
    struct json_walk walk;
    struct slice instant;

    if (code == EXIT_OK && ctl->output == OUTPUT_DATA) {
        print_data(ctl, answer.body);
    } else if (code == EXIT_OK) {
        walk = json_walk(json_member(answer.body, "items"));
        while (json_next_element(&walk, &instant)) {
            (void)printf("%.*s\n", SLICE_ARG(show_value(ctl, instant)));
        }
    }
    return code;
}

/* --- what is done --- */

static int send(struct ctl *ctl, const char *method, struct slice path, struct slice body)
{
    struct answer answer;
    int code = client_call(ctl, method, path, body, 30000, &ctl->arena, &answer);

    if (code == EXIT_OK) {
        print_one(ctl, answer.body);
    }
    return code;
}

static int create(struct ctl *ctl, const char *name, const struct given *given)
{
    struct slice input = SLICE_NONE;
    struct json_writer w;
    struct buffer body;

    if (!given->saga || !given->cron == !given->every) {
        return usage_error(ctl, "say which saga with --saga, and when with --cron or --every");
    }
    if (given->input && !read_json_argument(ctl, "--input", given->input, &input)) {
        return EXIT_USAGE;
    }
    buffer_init(&body, input.len + 65536);
    json_writer_init(&w, &body);
    json_object_begin(&w, NULL);
    json_write_text(&w, "name", name);
    json_write_text(&w, "saga", given->saga);
    body_put(&w, "cron", given->cron);
    body_put(&w, "zone", given->zone);
    body_put(&w, "every", given->every);
    body_put(&w, "anchor", given->anchor);
    body_put(&w, "overlap", given->overlap);
    body_put(&w, "catch_up", given->catch_up);
    if (input.ptr) {
        json_write_raw(&w, "input", input);
    }
    json_object_end(&w);
    if (body.overflow) {
        buffer_fini(&body);
        return usage_error(ctl, "what was given is longer than a schedule may be");
    }
    int code = send(ctl, "POST", SLICE("/v1/schedules"), buffer_slice(&body));

    buffer_fini(&body);
    return code;
}

static int change(struct ctl *ctl, const char *name, const char *rest, const struct given *given)
{
    struct json_writer w;
    struct buffer body;

    if (!given->note || slice_trim(slice_of(given->note)).len == 0) {
        return usage_error(ctl, "say why with --note TEXT");
    }
    buffer_init(&body, 65536);
    json_writer_init(&w, &body);
    json_object_begin(&w, NULL);
    json_write_text(&w, "note", given->note);
    json_object_end(&w);
    int code = body.overflow ? usage_error(ctl, "a note has at most 1000 characters")
                             : send(ctl, "POST", path_of(ctl, name, rest), buffer_slice(&body));

    buffer_fini(&body);
    return code;
}

static int discard(struct ctl *ctl, const char *name)
{
    struct answer answer;
    int code = client_call(ctl, "DELETE", path_of(ctl, name, ""), SLICE_NONE, 30000, &ctl->arena, &answer);

    if (code == EXIT_OK && ctl->output == OUTPUT_DATA) {
        print_data(ctl, answer.body);
    } else if (code == EXIT_OK) {
        (void)printf("%s%s\n", ctl->output == OUTPUT_NAME ? "" : "deleted the schedule ", name);
    }
    return code;
}

static int act(struct ctl *ctl, const char *verb, const char *name, const struct given *given)
{
    if (strcmp(verb, "create") == 0) {
        return create(ctl, name, given);
    }
    if (strcmp(verb, "show") == 0) {
        return send(ctl, "GET", path_of(ctl, name, ""), SLICE_NONE);
    }
    if (strcmp(verb, "next") == 0) {
        return next(ctl, name, given);
    }
    if (strcmp(verb, "hold") == 0) {
        return change(ctl, name, "/hold", given);
    }
    if (strcmp(verb, "release") == 0) {
        return change(ctl, name, "/release", given);
    }
    if (strcmp(verb, "delete") == 0) {
        return discard(ctl, name);
    }
    return usage_error(ctl, "schedules has no verb \"%s\"", verb);
}

int cmd_schedules(struct ctl *ctl, int argc, char **argv)
{
    struct given given = {0};
    const struct option options[] = {
        {"--saga", &given.saga, NULL, NULL},
        {"--cron", &given.cron, NULL, NULL},
        {"--zone", &given.zone, NULL, NULL},
        {"--every", &given.every, NULL, NULL},
        {"--anchor", &given.anchor, NULL, NULL},
        {"--input", &given.input, NULL, NULL},
        {"--overlap", &given.overlap, NULL, NULL},
        {"--catch-up", &given.catch_up, NULL, NULL},
        {"--note", &given.note, NULL, NULL},
        {"--count", &given.count, NULL, NULL},
        {"--limit", &given.limit, NULL, NULL},
        {"--cursor", &given.cursor, NULL, NULL},
        {NULL, NULL, NULL, NULL},
    };
    struct arguments words;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &words, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (words.count == 0 || (words.count == 1 && strcmp(words.items[0], "list") == 0)) {
        return list(ctl, &given);
    }
    if (ctl->all_namespaces) {
        return usage_error(ctl, "a schedule is of one namespace: name it with -n");
    }
    if (words.count != 2) {
        return usage_error(ctl, "a verb and the name of one schedule: `sagactl schedules show NAME`");
    }
    return act(ctl, words.items[0], words.items[1], &given);
}
