/* The command cost: a person enters the cost of an operation that could not be computed. */
#include <stdio.h>

#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"

#define ANSWER_MS 30000

const char help_cost[] = "sagactl cost KEY MICROS --note TEXT\n"
                         "\n"
                         "Says what an operation cost (role operator), in millionths of your currency,\n"
                         "where the `cost` of its tool could not be computed. The operation then shows\n"
                         "cost_unknown, and budgets of money take no further call that costs. They go\n"
                         "on with this amount. What was said once is not changed.\n"
                         "\n"
                         "  sagactl operations --tool card.charge\n"
                         "  sagactl cost 7c0f1a44-... 2010000 --note \"invoice 4711\"\n";

int cmd_cost(struct ctl *ctl, int argc, char **argv)
{
    const char *note = NULL;
    const struct option options[] = {{"--note", &note, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    struct arguments words;
    struct answer answer;
    struct buffer body;
    struct json_writer w;
    bool helped = false;
    int64_t micros = 0;

    if (!options_read(ctl, argc, argv, options, &words, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (words.count != 2) {
        return usage_error(ctl, "which operation, and how much? its key and the amount: cost KEY MICROS");
    }
    if (!slice_to_i64(slice_of(words.items[1]), &micros) || micros < 0) {
        return usage_error(ctl, "MICROS is a whole number of millionths of your currency, 0 or more: 2010000 is 2.01");
    }
    if (!note || slice_trim(slice_of(note)).len == 0) {
        return usage_error(ctl, "say how you know with --note TEXT: it stands in the log for ever");
    }
    buffer_init(&body, 65536);
    json_writer_init(&w, &body);
    json_object_begin(&w, NULL);
    json_write_i64(&w, "micros", micros);
    json_write_text(&w, "note", note);
    json_object_end(&w);
    int code = client_call(ctl, "POST",
                           arena_printf(&ctl->arena, "/v1/operations/%.*s/cost",
                                        SLICE_ARG(url_escape(slice_of(words.items[0]), &ctl->arena))),
                           buffer_slice(&body), ANSWER_MS, &ctl->arena, &answer);

    buffer_fini(&body);
    if (code == EXIT_OK && ctl->output == OUTPUT_DATA) {
        print_data(ctl, answer.body);
    } else if (code == EXIT_OK) {
        (void)printf("%s  cost %.*s\n", words.items[0], SLICE_ARG(show_member(ctl, answer.body, "cost")));
    }
    return code;
}
