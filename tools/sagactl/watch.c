/* See watch.h. The output of a command is caught first, so that the screen is painted at once and does not flicker. */
#include "tools/sagactl/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/instant.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/saga_end.h"
#include "tools/sagactl/screen.h"

#define INTERVAL_MS_LEAST 200
#define INTERVAL_MS_MOST (INT64_C(24) * 3600 * 1000)

bool watch_is_asked(const struct ctl *ctl, int *argc, char **argv, int64_t *interval_ms, int *code)
{
    bool asked = ctl->command->is_live && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO);
    const char *interval = NULL;
    int kept = 0;

    *code = EXIT_OK;
    for (int i = 0; i < *argc; i++) {
        if (strcmp(argv[i], "--watch") == 0 || strcmp(argv[i], "-w") == 0) {
            asked = true;
        } else if (strcmp(argv[i], "--interval") == 0 && i + 1 < *argc) {
            interval = argv[++i];
        } else if (strncmp(argv[i], "--interval=", 11) == 0) {
            interval = argv[i] + 11;
        } else {
            argv[kept++] = argv[i];
        }
    }
    *argc = kept;
    *interval_ms = 2000;
    if (interval && (!duration_parse(slice_of(interval), interval_ms) || *interval_ms < INTERVAL_MS_LEAST ||
                     *interval_ms > INTERVAL_MS_MOST)) {
        *code = usage_error(ctl, "--interval is a duration from 200ms to 24h, not \"%s\"", interval);
        return false;
    }
    if (interval && !asked && !ctl->command->is_live) {
        *code = usage_error(ctl, "--interval goes with --watch");
        return false;
    }
    return asked;
}

struct frame {
    char *text; /* the text is from malloc() */
    size_t len;
    int code;
};

/* Runs the command once, with its own memory, because a watch may go on for days. */
static struct frame frame_of(struct ctl *ctl, int argc, char **argv)
{
    struct ctl turn = *ctl;
    char **arguments;
    struct frame frame = {0};
    FILE *out = stdout, *talk = stderr, *both = open_memstream(&frame.text, &frame.len);

    CHECK(both); /* fails only without memory */
    arena_init(&turn.arena, 64 * 1024);
    arguments = arena_array(&turn.arena, (size_t)argc + 1, sizeof(*arguments));
    memcpy(arguments, argv, (size_t)argc * sizeof(*argv));
    turn.is_frame = true;
    stdout = stderr = both;
    frame.code = ctl->command->run(&turn, argc, arguments);
    stdout = out;
    stderr = talk;
    CHECK(fclose(both) == 0); /* fails only without memory */
    ctl->loop = turn.loop;
    ctl->http = turn.http;
    ctl->server = NULL; /* the server's name was in the memory that ends */
    arena_fini(&turn.arena);
    return frame;
}

static int watch_screen(struct ctl *ctl, int argc, char **argv, int64_t interval_ms)
{
    struct frame frame;

    do {
        frame = frame_of(ctl, argc, argv);
        if (frame.code == EXIT_USAGE) {
            break;
        }
        screen_paint((struct slice){frame.text, frame.len});
        int code = frame.code;

        free(frame.text);
        frame = (struct frame){.code = code};
    } while (screen_pause(interval_ms));
    screen_close();
    if (frame.text) {
        (void)fwrite(frame.text, 1, frame.len, stderr);
        free(frame.text);
    }
    return frame.code;
}

static int watch_lines(struct ctl *ctl, int argc, char **argv, int64_t interval_ms)
{
    struct frame before = {0};
    int code = EXIT_OK;

    for (bool more = true; more;) {
        struct frame frame = frame_of(ctl, argc, argv);

        if (frame.code == EXIT_USAGE) {
            (void)fwrite(frame.text, 1, frame.len, stderr);
            more = false;
        } else if (frame.len != before.len || memcmp(frame.text, before.text, frame.len) != 0) {
            (void)fwrite(frame.text, 1, frame.len, stdout);
            more = fflush(stdout) == 0;
        }
        code = frame.code;
        free(before.text);
        before = frame;
        if (more) {
            (void)usleep((useconds_t)interval_ms * 1000); /* an early wake-up only makes the next frame come early */
        }
    }
    free(before.text);
    return code;
}

int watch(struct ctl *ctl, int argc, char **argv, int64_t interval_ms)
{
    return screen_open() ? watch_screen(ctl, argc, argv, interval_ms) : watch_lines(ctl, argc, argv, interval_ms);
}
