/* breaker: a person opens or closes the breaker of a tool. */
#include <stdio.h>

#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"

#define ANSWER_MS 30000

const char help_breaker[] = "sagactl breaker TOOL open|closed --note TEXT\n"
                            "\n"
                            "Opens or closes the breaker of a tool (role operator). A breaker that a person\n"
                            "opened stays open until a person closes it: no call of the tool begins. One that\n"
                            "is closed forgets the failures before, and calls are made again, a few at first.\n"
                            "\n"
                            "The breaker of a tool whose calls may not be repeated (\"effect\": \"once\") opens\n"
                            "after failures like any other. A person closes it once the receiver is well.\n"
                            "\n"
                            "  sagactl tools\n"
                            "  sagactl breaker card.pay closed --note \"the bank is back\"\n";

int cmd_breaker(struct ctl *ctl, int argc, char **argv)
{
    const char *note = NULL;
    const struct option options[] = {{"--note", &note, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    struct arguments words;
    struct answer answer;
    struct buffer body;
    struct json_writer w;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &words, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (words.count != 2 ||
        (!slice_is(slice_of(words.items[1]), "open") && !slice_is(slice_of(words.items[1]), "closed"))) {
        return usage_error(ctl, "which tool, and open or closed? breaker TOOL closed");
    }
    if (!note || slice_trim(slice_of(note)).len == 0) {
        return usage_error(ctl, "say why with --note TEXT");
    }
    buffer_init(&body, 65536);
    json_writer_init(&w, &body);
    json_object_begin(&w, NULL);
    json_write_text(&w, "state", words.items[1]);
    json_write_text(&w, "note", note);
    json_object_end(&w);
    int code = body.overflow ? usage_error(ctl, "a note has at most 4000 bytes")
                             : client_call(ctl, "POST",
                                           arena_printf(&ctl->arena, "/v1/tools/%.*s/breaker",
                                                        SLICE_ARG(url_escape(slice_of(words.items[0]), &ctl->arena))),
                                           buffer_slice(&body), ANSWER_MS, &ctl->arena, &answer);

    buffer_fini(&body);
    if (code == EXIT_OK && ctl->output == OUTPUT_DATA) {
        print_data(ctl, answer.body);
    } else if (code == EXIT_OK && json_string_is(json_member(answer.body, "breaker"), "none")) {
        (void)printf("%.*s has no breaker: nothing of it was open\n", SLICE_ARG(show_member(ctl, answer.body, "tool")));
    } else if (code == EXIT_OK) {
        (void)printf("%.*s  breaker %.*s\n", SLICE_ARG(show_member(ctl, answer.body, "tool")),
                     SLICE_ARG(show_member(ctl, answer.body, "breaker")));
    }
    return code;
}
