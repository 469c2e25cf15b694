/* signal, pause, resume: what comes to a saga from outside while it goes on. */
#include <stdio.h>

#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/saga_name.h"

#define ANSWER_MS 30000

const char help_signal[] =
    "sagactl signal SAGA NAME [--payload JSON|@FILE|-] [--payload-file FILE] [--key K]\n"
    "\n"
    "Gives a saga the signal that a step of it waits for, or will wait for: it is kept until then, and\n"
    "signals of one name are taken in the order in which they came. The payload (null without one) is\n"
    "the result of the step. When the answer is there the signal is durable. Give --key whenever it may\n"
    "be sent again: under the same key it counts once.\n"
    "A name that no step waits for is refused and told those that are; a saga that is being undone\n"
    "takes none (exit 4).\n"
    "\n"
    "  sagactl signal 019b3c52-... paid --payload '{\"amount\": 1200}' --key bank-4711\n"
    "  sagactl signal 019b3c52-... delivered --payload-file slip.json\n";

const char help_pause[] =
    "sagactl pause SAGA --note TEXT\n"
    "\n"
    "Lets a saga begin nothing more, neither steps nor undo, and stops its clocks: deadline, timeouts,\n"
    "retries (role operator). Calls under way settle; signals are kept, and approvals may be decided.\n"
    "`sagactl resume` lets it go on; `sagactl abort` undoes it.\n"
    "\n"
    "  sagactl pause 019b3c52-... --note \"the bank asked us to wait\"\n";

const char help_resume[] =
    "sagactl resume SAGA --note TEXT\n"
    "\n"
    "Lets a saga go on that was paused, by an operator or by a loop, or opens what a loop has closed\n"
    "(role operator). Its deadline and timeouts move by the time that it stood still.\n"
    "\n"
    "  sagactl resume 019b3c52-... --note \"told the agent to stop polling\"\n";

static int post(struct ctl *ctl, const char *saga, const char *what, struct slice body, struct answer *answer)
{
    struct slice path;
    int code = saga_path(ctl, saga, &path);

    if (code != EXIT_OK) {
        return code;
    }
    return client_call(ctl, "POST", arena_printf(&ctl->arena, "%.*s/%s", SLICE_ARG(path), what), body, ANSWER_MS,
                       &ctl->arena, answer);
}

/* --- signal --- */

static void print_signalled(struct ctl *ctl, const struct answer *answer)
{
    struct slice taken = json_member(answer->body, "taken");
    bool value = false;

    if (answer->status == 200) {
        (void)fputs("This key was used before: that signal it is.\n", stderr);
    }
    if (ctl->output == OUTPUT_JSON) {
        print_json(answer->body);
    } else if (ctl->output == OUTPUT_NAME) {
        (void)printf("%.*s\n", SLICE_ARG(show_member(ctl, answer->body, "saga")));
    } else {
        (void)printf("%.*s  %s\n", SLICE_ARG(show_member(ctl, answer->body, "name")),
                     !json_bool(taken, &value) ? "durable"
                     : value                   ? "taken by a step"
                                               : "kept until a step waits for it");
    }
}

int cmd_signal(struct ctl *ctl, int argc, char **argv)
{
    const char *payload = NULL, *file = NULL;
    const struct option options[] = {{"--payload", &payload, NULL, NULL},
                                     {"--payload-file", &file, NULL, NULL},
                                     {"--key", &ctl->emission, NULL, NULL},
                                     {NULL, NULL, NULL, NULL}};
    struct arguments names;
    struct answer answer;
    struct slice body = SLICE("null");
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &names, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (names.count != 2) {
        return usage_error(ctl, "which saga, and which signal?");
    }
    if (payload && file) {
        return usage_error(ctl, "--payload or --payload-file, not both");
    }
    if (file) {
        payload = arena_text(&ctl->arena, arena_printf(&ctl->arena, "@%s", file));
    }
    if (payload && !read_json_argument(ctl, file ? "--payload-file" : "--payload", payload, &body)) {
        return EXIT_USAGE;
    }
    const char *path =
        arena_text(&ctl->arena, arena_printf(&ctl->arena, "signals/%.*s",
                                             SLICE_ARG(url_escape(slice_of(names.items[1]), &ctl->arena))));
    int code = post(ctl, names.items[0], path, body, &answer);

    if (code == EXIT_OK) {
        print_signalled(ctl, &answer);
    }
    return code;
}

/* --- pause, resume --- */

static int with_note(struct ctl *ctl, int argc, char **argv, const char *what)
{
    const char *note = NULL;
    const struct option options[] = {{"--note", &note, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    struct arguments ids;
    struct answer answer;
    struct buffer body;
    struct json_writer w;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &ids, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (ids.count != 1) {
        return usage_error(ctl, "which saga? its id, or NAME/BUSINESS_ID");
    }
    if (!note || slice_trim(slice_of(note)).len == 0) {
        return usage_error(ctl, "say why with --note TEXT: it stands in the log for ever");
    }
    buffer_init(&body, 65536);
    json_writer_init(&w, &body);
    json_object_begin(&w, NULL);
    json_write_text(&w, "note", note);
    json_object_end(&w);
    int code = post(ctl, ids.items[0], what, buffer_slice(&body), &answer);

    buffer_fini(&body);
    if (code == EXIT_OK) {
        print_saga_line(ctl, answer.body);
    }
    return code;
}

int cmd_pause(struct ctl *ctl, int argc, char **argv)
{
    return with_note(ctl, argc, argv, "pause");
}

int cmd_resume(struct ctl *ctl, int argc, char **argv)
{
    return with_note(ctl, argc, argv, "resume");
}
