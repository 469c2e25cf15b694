/* acknowledge, assign, comment: what people say of a case beside answering it. */
#include <stdio.h>
#include <string.h>

#include "base/instant.h"
#include "tools/sagactl/bulk.h"
#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/query.h"

#define ANSWER_MS 30000

const char help_acknowledge[] = "sagactl acknowledge N... [--until T] --note TEXT\n"
                                "sagactl acknowledge FILTERS [--until T] --note TEXT\n"
                                "\n"
                                "Says that you look at cases (role operator). They show it until T, an instant or a\n"
                                "time from now such as 2h; without it for as long as they are open. It changes\n"
                                "nothing about their sagas. An instant that has passed takes it back. With the\n"
                                "filters of `sagactl cases` it is about all open cases that fit, as one set.\n"
                                "\n"
                                "  sagactl acknowledge 7 8 --until 2h --note \"calling the bank\"\n"
                                "  sagactl acknowledge --error timeout --note \"the bank\"\n"
                                "  sagactl cases --acknowledged false\n";

const char help_assign[] = "sagactl assign N... --to NAME --note TEXT\n"
                           "sagactl assign FILTERS --to NAME --note TEXT\n"
                           "\n"
                           "Says who is to answer cases (role operator); --to \"\" is nobody in particular. It\n"
                           "changes nothing about their sagas. With the filters of `sagactl cases` it is about\n"
                           "all open cases that fit, as one set.\n"
                           "\n"
                           "  sagactl assign 7 --to ada --note \"she knows the bank\"\n"
                           "  sagactl assign --tool card.pay --to ada --note \"hers\"\n"
                           "  sagactl cases --assigned ada\n";

const char help_comment[] = "sagactl comment N... --note TEXT\n"
                            "\n"
                            "Leaves a comment with cases (role operator), for those who come later. It changes\n"
                            "nothing about their sagas. `sagactl cases N` shows it.\n"
                            "\n"
                            "  sagactl comment 7 --note \"the bank calls back at noon\"\n";

static struct slice remark_body(struct ctl *ctl, const char *note, const char *to, int64_t until_ms)
{
    struct buffer body;
    struct json_writer w;
    struct slice text;

    buffer_init(&body, 65536);
    json_writer_init(&w, &body);
    json_object_begin(&w, NULL);
    json_write_text(&w, "note", note);
    if (to) {
        json_write_text(&w, "to", to);
    }
    if (until_ms) {
        json_write_instant(&w, "until", until_ms);
    }
    json_object_end(&w);
    text = arena_slice(&ctl->arena, buffer_slice(&body));
    buffer_fini(&body);
    return text;
}

static int remark(struct ctl *ctl, const char *number, const char *verb, struct slice body)
{
    struct answer answer;
    int code = client_call(ctl, "POST",
                           arena_printf(&ctl->arena, "/v1/escalations/%.*s/%s",
                                        SLICE_ARG(url_escape(slice_of(number), &ctl->arena)), verb),
                           body, ANSWER_MS, &ctl->arena, &answer);

    if (code == EXIT_OK && ctl->output == OUTPUT_DATA) {
        print_data(ctl, answer.body);
    } else if (code == EXIT_OK) {
        struct slice by = show_member(ctl, answer.body, "acknowledged_by");
        struct slice to = show_member(ctl, answer.body, "assigned_to");

        (void)printf("escalation %s %.*s%s%.*s%s%.*s\n", number, SLICE_ARG(show_member(ctl, answer.body, "status")),
                     by.len ? "  looked at by " : "", SLICE_ARG(by), to.len ? "  assigned to " : "", SLICE_ARG(to));
    }
    return code;
}

/* Remarks on one case after the other. `extra` is the option that only this verb has; NULL: it has none. Returns the
 * exit code of the first that was refused. */
static int remark_each(struct ctl *ctl, int argc, char **argv, const char *verb, const char *extra)
{
    bool assigns = strcmp(verb, "assign") == 0;
    const char *note = NULL, *value = NULL;
    const struct option options[] = {
        {"--note", &note, NULL, NULL}, {extra, &value, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    struct arguments numbers;
    bool helped = false;
    int64_t until_ms = 0;
    int first = EXIT_OK;

    if (!options_read(ctl, argc, argv, options, &numbers, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (numbers.count == 0) {
        return usage_error(ctl, "name the cases by their numbers");
    }
    if (!note || slice_trim(slice_of(note)).len == 0) {
        return usage_error(ctl, "say why with --note TEXT: it stays with the case");
    }
    if (assigns && !value) {
        return usage_error(ctl, "say with --to NAME who is to answer the case; an empty name is nobody");
    }
    if (!assigns && value && !read_until(value, &until_ms)) {
        return usage_error(ctl, "--until is an instant such as 2026-01-31T09:00:00Z or a time from now such as 2h");
    }
    for (size_t i = 0; i < numbers.count; i++) {
        int code = remark(ctl, numbers.items[i], verb, remark_body(ctl, note, assigns ? value : NULL, until_ms));

        first = first == EXIT_OK ? code : first;
        if (code == EXIT_UNREACHABLE || code == EXIT_NOT_PERMITTED) {
            return first;
        }
    }
    return first;
}

int cmd_acknowledge(struct ctl *ctl, int argc, char **argv)
{
    return bulk_is_meant(argc, argv) ? bulk_do(ctl, "acknowledge", argc, argv)
                                     : remark_each(ctl, argc, argv, "acknowledge", "--until");
}

int cmd_assign(struct ctl *ctl, int argc, char **argv)
{
    return bulk_is_meant(argc, argv) ? bulk_do(ctl, "assign", argc, argv)
                                     : remark_each(ctl, argc, argv, "assign", "--to");
}

int cmd_comment(struct ctl *ctl, int argc, char **argv)
{
    return remark_each(ctl, argc, argv, "comment", NULL);
}
