/* The command time: the virtual clock of `sagad dev --clock virtual`. */
#include <stdio.h>
#include <string.h>

#include "base/instant.h"
#include "base/json.h"
#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"

#define ANSWER_MS 60000

const char help_time[] = "sagactl time [next | to INSTANT | +DURATION | advance DURATION]\n"
                         "\n"
                         "Shows the clock of `sagad dev --clock virtual`, or moves it ahead (role admin): to what\n"
                         "is due next, to an instant, or by a duration. What is due by the new time happens at\n"
                         "once: sleeps, deadlines, retries, schedules, breakers, notifications, and the ends of\n"
                         "holds and of retention. Calls under way keep their time. Each move is an act.\n"
                         "Another service has no such clock, and refuses.\n"
                         "\n"
                         "  sagactl time\n"
                         "  sagactl time advance 3d\n"
                         "  sagactl time +30d\n"
                         "  sagactl time to 2027-01-01T00:00:00Z\n"
                         "  sagactl time next\n";

static void print_clock(struct ctl *ctl, struct slice clock)
{
    struct slice next = json_string(json_member(clock, "next_at"), &ctl->arena);
    char ahead[INSTANT_TEXT_BYTES] = "";
    int64_t ahead_ms = 0;

    if (ctl->output == OUTPUT_DATA) {
        print_data(ctl, clock);
        return;
    }
    (void)json_i64(json_member(clock, "ahead_ms"), &ahead_ms); /* the service always says it */
    duration_text(ahead_ms, ahead);
    (void)printf("now   %.*s  (%s ahead)\n", SLICE_ARG(show_member(ctl, clock, "now")), ahead);
    (void)printf("next  %.*s\n", SLICE_ARG(next.ptr ? next : SLICE("nothing is due")));
}

static int move(struct ctl *ctl, const char *name, const char *value)
{
    struct answer answer;
    struct json_writer w;
    struct buffer body;

    buffer_init(&body, 1024);
    json_writer_init(&w, &body);
    json_object_begin(&w, NULL);
    json_write_text(&w, name, value);
    json_object_end(&w);
    int code = body.overflow
                   ? usage_error(ctl, "%.40s... is no time", value)
                   : client_call(ctl, "POST", SLICE("/v1/clock"), buffer_slice(&body), ANSWER_MS, &ctl->arena, &answer);

    buffer_fini(&body);
    if (code == EXIT_OK) {
        print_clock(ctl, answer.body);
    }
    return code;
}

int cmd_time(struct ctl *ctl, int argc, char **argv)
{
    const struct option options[] = {{NULL, NULL, NULL, NULL}};
    struct arguments words;
    struct answer answer;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &words, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (words.count == 0) {
        int code = client_get(ctl, SLICE("/v1/clock"), &ctl->arena, &answer);

        if (code == EXIT_OK) {
            print_clock(ctl, answer.body);
        }
        return code;
    }
    if (words.count == 1 && strcmp(words.items[0], "next") == 0) {
        return move(ctl, "to", "next");
    }
    if (words.count == 1 && words.items[0][0] == '+') {
        return move(ctl, "by", words.items[0] + 1);
    }
    if (words.count == 2 && strcmp(words.items[0], "advance") == 0) {
        return move(ctl, "by", words.items[1]);
    }
    if (words.count == 2 && strcmp(words.items[0], "to") == 0) {
        return move(ctl, "to", words.items[1]);
    }
    return usage_error(ctl, "say `next`, `to INSTANT`, or a duration such as `+3d`");
}
