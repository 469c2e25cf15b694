/* The commands call and bypass: call does what an agent does through the registry; bypass is for operators only. */
#include <stdio.h>
#include <string.h>

#include "base/instant.h"
#include "tools/sagactl/ask.h"
#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/query.h"
#include "tools/sagactl/saga_name.h"

#define WAIT_DEFAULT_MS 30000
#define ANSWER_MS 30000 /* the time for the answer, added to the wait */

const char help_call[] =
    "sagactl call TOOL --run RUN [--step NAME] [--scope TEXT] [--args JSON|@FILE|-] [--id EMISSION]\n"
    "             [--turn TEXT] [--wait 30s]\n"
    "sagactl call TOOL --saga SAGA ...\n"
    "\n"
    "Calls a tool through the registry: once for a run, step, tool and scope, however often it is asked\n"
    "for and by whom. A repeat gets what the first call got; the arguments are not part of what makes\n"
    "two calls the same. With --saga it is a call in an open saga (`sagactl open`), which can be undone.\n"
    "\n"
    "  --run     one request of a user, from start to end\n"
    "  --step    what this call is for; without it, one logical step for each tool and scope\n"
    "  --scope   whom or what it is about: the order, the customer\n"
    "  --id      of this very request; a repeat of it is always answered like the first\n"
    "  --turn    changes when the user has spoken again: opens what the loop guard closed\n"
    "\n"
    "Exit codes: 0 done, 7 the wait is over and it goes on, 4 it is refused (see what it says), 9 a\n"
    "person has to decide, 1 it failed for good and certainly did not happen.\n"
    "\n"
    "  sagactl call payments.charge --run chat-17 --step charge --scope order-42 --args '{\"amount\": 1000}'\n"
    "  sagactl call mail.send --saga 019b3c52-... --args @mail.json -o json\n";

const char help_bypass[] =
    "sagactl bypass KEY --reason TEXT [--yes]\n"
    "\n"
    "Signs one more execution of an operation off (role operator): the next call with the same run,\n"
    "step, tool, scope and arguments is carried out again, under a new key. It holds for 15 minutes\n"
    "and for one call. The second effect is real: be sure that it is wanted.\n"
    "\n"
    "  sagactl operations --run chat-17\n"
    "  sagactl bypass 7c0f1a44-... --reason \"the customer asked for a second copy\"\n";

struct call_options {
    const char *run, *saga, *step, *scope, *args, *id, *turn, *wait;
    struct slice args_json;
    int64_t wait_ms;
};

static void put_call(const struct call_options *o, const char *tool, struct buffer *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    body_put(&w, "run", o->run);
    json_write_text(&w, "tool", tool);
    body_put(&w, "step", o->step);
    body_put(&w, "scope", o->scope);
    body_put(&w, "turn", o->turn);
    if (o->args) {
        json_write_raw(&w, "args", o->args_json);
    }
    json_object_end(&w);
}

static void print_record(struct ctl *ctl, const struct answer *answer)
{
    struct slice record = answer->body, state = show_member(ctl, record, "state");
    enum colour colour = status_colour(state);

    if (ctl->output == OUTPUT_DATA) {
        print_data(ctl, record);
        return;
    }
    if (ctl->output == OUTPUT_NAME) {
        (void)printf("%.*s\n", SLICE_ARG(show_member(ctl, record, "key")));
        return;
    }
    (void)printf("%.*s  %s%.*s%s\n", SLICE_ARG(show_member(ctl, record, "key")), colour_on(ctl, colour),
                 SLICE_ARG(state), colour_off(ctl, colour));
    if (answer->first_at.len > 0) {
        (void)fprintf(stderr, "It was done before, first asked for at %.*s: that answer it is.\n",
                      SLICE_ARG(answer->first_at));
    }
    if (answer->status == 202) {
        (void)fputs("It goes on; the same call again asks how it went.\n", stderr);
    } else if (json_member(record, "result").ptr) {
        print_data(ctl, json_member(record, "result"));
    }
}

static int call(struct ctl *ctl, const char *tool, const struct call_options *o)
{
    struct answer answer;
    struct buffer body;
    struct slice path;

    if (o->saga) {
        int named = saga_path(ctl, o->saga, &path);

        if (named != EXIT_OK) {
            return named;
        }
        path = arena_printf(&ctl->arena, "%.*s/calls?wait=%lldms", SLICE_ARG(path), (long long)o->wait_ms);
    } else {
        path = arena_printf(&ctl->arena, "/v1/operations?wait=%lldms", (long long)o->wait_ms);
    }
    buffer_init(&body, 32 << 20);
    put_call(o, tool, &body);
    ctl->emission = o->id;
    progress_show(ctl, "%s: waiting for its answer", tool);
    int code = client_call(ctl, "POST", path, buffer_slice(&body), o->wait_ms + ANSWER_MS, &ctl->arena, &answer);

    progress_clear(ctl);
    buffer_fini(&body);
    if (code == EXIT_OK) {
        print_record(ctl, &answer);
        code = answer.status == 202 ? EXIT_WAIT_OVER : EXIT_OK;
    }
    return code;
}

int cmd_call(struct ctl *ctl, int argc, char **argv)
{
    struct call_options o = {.wait_ms = WAIT_DEFAULT_MS};
    const struct option options[] = {
        {"--run", &o.run, NULL, NULL},     {"--saga", &o.saga, NULL, NULL}, {"--step", &o.step, NULL, NULL},
        {"--scope", &o.scope, NULL, NULL}, {"--args", &o.args, NULL, NULL}, {"--id", &o.id, NULL, NULL},
        {"--turn", &o.turn, NULL, NULL},   {"--wait", &o.wait, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    struct arguments names;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &names, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (names.count != 1) {
        return usage_error(ctl, "%s", names.count ? "one tool at a time" : "which tool?");
    }
    if (!o.run == !o.saga) {
        return usage_error(ctl, "%s",
                           o.run ? "--run is for calls outside a saga, --saga for those in one: give one of them"
                                 : "on whose behalf? --run NAME, or --saga ID of an open saga");
    }
    if (o.wait && !duration_parse(slice_of(o.wait), &o.wait_ms)) {
        return usage_error(ctl, "--wait is a duration such as 30s, not \"%s\"", o.wait);
    }
    if (o.args && !read_json_argument(ctl, "--args", o.args, &o.args_json)) {
        return EXIT_USAGE;
    }
    return call(ctl, names.items[0], &o);
}

/* --- bypass --- */

int cmd_bypass(struct ctl *ctl, int argc, char **argv)
{
    const char *reason = NULL;
    const struct option options[] = {{"--reason", &reason, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    struct arguments keys;
    struct answer answer;
    struct buffer body;
    struct json_writer w;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &keys, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (keys.count != 1) {
        return usage_error(ctl, "which operation? its key (`sagactl operations` lists them)");
    }
    if (!reason || slice_trim(slice_of(reason)).len == 0) {
        return usage_error(ctl, "say why with --reason TEXT: it stands in the log for ever");
    }
    int asked = ask_first(ctl, 1, "Let operation %s be carried out once more", keys.items[0]);

    if (asked != EXIT_OK) {
        return asked;
    }
    buffer_init(&body, 65536);
    json_writer_init(&w, &body);
    json_object_begin(&w, NULL);
    json_write_text(&w, "reason", reason);
    json_object_end(&w);
    int code = client_call(ctl, "POST",
                           arena_printf(&ctl->arena, "/v1/operations/%.*s/bypass",
                                        SLICE_ARG(url_escape(slice_of(keys.items[0]), &ctl->arena))),
                           buffer_slice(&body), ANSWER_MS, &ctl->arena, &answer);

    buffer_fini(&body);
    if (code == EXIT_OK && ctl->output == OUTPUT_DATA) {
        print_data(ctl, answer.body);
    } else if (code == EXIT_OK) {
        (void)printf("%s  one more execution, until %.*s\n", keys.items[0],
                     SLICE_ARG(show_member(ctl, answer.body, "expires_at")));
    }
    return code;
}
