/* The commands open and complete: sagas whose steps are the calls of an agent. */
#include <stdio.h>
#include <string.h>

#include "base/instant.h"
#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/saga_name.h"

#define ANSWER_MS 30000

const char help_open[] =
    "sagactl open [--id BUSINESS_ID] [--deadline 15m] [--on-timeout abort|escalate] [--calls N]\n"
    "             [--emissions N] [--micros N]\n"
    "\n"
    "Opens a saga whose steps are calls (`sagactl call TOOL --saga ID`), not known beforehand. It ends\n"
    "with `sagactl complete`, or with `sagactl abort`, which undoes all of it in reverse. At the deadline\n"
    "(default 24h) the work of a caller that vanished is undone, or handed to a person.\n"
    "The same --id again is the same saga. --calls, --emissions and --micros bound what it may use.\n"
    "\n"
    "  id=$(sagactl open --id trip-7 --deadline 15m -o name)\n"
    "  sagactl call room.book --saga $id --args '{\"room\": 12}'\n"
    "  sagactl complete $id\n";

const char help_complete[] = "sagactl complete SAGA [--output-json JSON|@FILE|-] [--wait 30s]\n"
                             "\n"
                             "Ends an open saga well: what was done stays done. It waits for what is not settled yet.\n"
                             "\n"
                             "  sagactl complete 019b3c52-...\n";

static int post(struct ctl *ctl, struct slice path, struct buffer *body, int64_t timeout_ms, struct answer *answer)
{
    int code = client_call(ctl, "POST", path, buffer_slice(body), timeout_ms, &ctl->arena, answer);

    buffer_fini(body);
    return code;
}

/* --- open --- */

struct open_options {
    const char *id, *deadline, *on_timeout, *calls, *emissions, *micros;
};

static bool put_limit(const struct ctl *ctl, struct json_writer *w, const char *name, const char *value)
{
    int64_t number = 0;

    if (!value) {
        return true;
    }
    if (!slice_to_i64(slice_of(value), &number) || number < 0) {
        (void)usage_error(ctl, "--%s is a whole number, not \"%s\"", name, value);
        return false;
    }
    json_write_i64(w, name, number);
    return true;
}

static bool put_open(const struct ctl *ctl, const struct open_options *o, struct buffer *out)
{
    struct json_writer w;
    bool ok = true;

    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    json_write_bool(&w, "open", true);
    if (o->id) {
        json_write_text(&w, "id", o->id);
    }
    if (o->deadline) {
        json_write_text(&w, "deadline", o->deadline);
    }
    if (o->on_timeout) {
        json_write_text(&w, "on_timeout", o->on_timeout);
    }
    if (o->calls || o->emissions || o->micros) {
        json_object_begin(&w, "budget");
        ok = put_limit(ctl, &w, "calls", o->calls) && put_limit(ctl, &w, "emissions", o->emissions) &&
             put_limit(ctl, &w, "micros", o->micros);
        json_object_end(&w);
    }
    json_object_end(&w);
    return ok;
}

int cmd_open(struct ctl *ctl, int argc, char **argv)
{
    struct open_options o = {0};
    const struct option options[] = {{"--id", &o.id, NULL, NULL},
                                     {"--deadline", &o.deadline, NULL, NULL},
                                     {"--on-timeout", &o.on_timeout, NULL, NULL},
                                     {"--calls", &o.calls, NULL, NULL},
                                     {"--emissions", &o.emissions, NULL, NULL},
                                     {"--micros", &o.micros, NULL, NULL},
                                     {NULL, NULL, NULL, NULL}};
    struct arguments none;
    struct answer answer;
    struct buffer body;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &none, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (none.count > 0) {
        return usage_error(ctl, "open takes options only; a defined saga is started with `sagactl start %s`",
                           none.items[0]);
    }
    buffer_init(&body, 65536);
    if (!put_open(ctl, &o, &body)) {
        buffer_fini(&body);
        return EXIT_USAGE;
    }
    int code = post(ctl, SLICE("/v1/sagas"), &body, ANSWER_MS, &answer);

    if (code == EXIT_OK) {
        if (answer.status == 200) {
            (void)fputs("This id was opened before: that saga it is.\n", stderr);
        }
        print_saga_line(ctl, answer.body);
    }
    return code;
}

/* --- complete --- */

int cmd_complete(struct ctl *ctl, int argc, char **argv)
{
    const char *output = NULL, *wait = NULL;
    const struct option options[] = {
        {"--output-json", &output, NULL, NULL}, {"--wait", &wait, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    struct arguments ids;
    struct answer answer;
    struct buffer body;
    struct json_writer w;
    struct slice output_json = SLICE_NONE;
    int64_t wait_ms = 30000;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &ids, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (ids.count != 1) {
        return usage_error(ctl, "which saga? its id, or NAME/BUSINESS_ID");
    }
    if (wait && !duration_parse(slice_of(wait), &wait_ms)) {
        return usage_error(ctl, "--wait is a duration such as 30s, not \"%s\"", wait);
    }
    if (output && !read_json_argument(ctl, "--output-json", output, &output_json)) {
        return EXIT_USAGE;
    }
    buffer_init(&body, 32 << 20);
    json_writer_init(&w, &body);
    json_object_begin(&w, NULL);
    if (output) {
        json_write_raw(&w, "output", output_json);
    }
    json_object_end(&w);
    struct slice path;
    int code = saga_path(ctl, ids.items[0], &path);

    if (code != EXIT_OK) {
        buffer_fini(&body);
        return code;
    }
    code = post(ctl, arena_printf(&ctl->arena, "%.*s/complete?wait=%lldms", SLICE_ARG(path), (long long)wait_ms), &body,
                wait_ms + ANSWER_MS, &answer);

    if (code == EXIT_OK) {
        print_saga_line(ctl, answer.body);
    }
    return code;
}
