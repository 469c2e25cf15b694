/* The command signal: sends a message from outside to a running saga. */
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

static void print_signalled(struct ctl *ctl, const struct answer *answer)
{
    struct slice taken = json_member(answer->body, "taken");
    bool value = false;

    if (answer->status == 200) {
        (void)fputs("This key was used before: that signal it is.\n", stderr);
    }
    if (ctl->output == OUTPUT_DATA) {
        print_data(ctl, answer->body);
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
