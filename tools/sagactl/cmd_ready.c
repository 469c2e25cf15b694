/* The command ready: says whether the service takes work, for scripts, containers and whoever has just started it. */
#include <stdio.h>
#include <unistd.h>

#include "base/instant.h"
#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/saga_end.h"

const char help_ready[] = "sagactl ready [--wait 60s]\n"
                          "\n"
                          "Says whether the service takes work: it has its database, the tables, its leases\n"
                          "and its sagas. With --wait it asks until it does, or the time is over. It needs no\n"
                          "token. Exit code 0: ready; 6: not, or nobody answers.\n"
                          "\n"
                          "  sagactl ready --wait 60s && sagactl apply order.json\n";

#define AGAIN_US 200000
#define ANSWER_MS 5000

static int ask(struct ctl *ctl, bool quiet, struct arena *arena, struct answer *answer)
{
    arena_reset(arena);
    ctl->quiet = quiet;
    int code = client_call(ctl, "GET", SLICE("/readyz"), SLICE_NONE, ANSWER_MS, arena, answer);

    ctl->quiet = false;
    return code;
}

static void tell_why(struct ctl *ctl, struct slice body)
{
    struct slice reason = show_member(ctl, body, "reason"), hint = show_member(ctl, body, "hint");

    (void)fprintf(stderr, "sagactl: %s is not ready%s%.*s\n", ctl->server, reason.len ? ": " : "", SLICE_ARG(reason));
    if (hint.len) {
        (void)fprintf(stderr, "  %.*s\n", SLICE_ARG(hint));
    }
}

static int await(struct ctl *ctl, int64_t wait_ms, struct arena *arena)
{
    int64_t until_ms = now_ms() + wait_ms;
    struct answer answer;
    int code;

    while ((code = ask(ctl, true, arena, &answer)) == EXIT_UNREACHABLE && now_ms() < until_ms) {
        (void)usleep(AGAIN_US);
    }
    if (code != EXIT_OK && answer.status == 0) {
        code = ask(ctl, false, arena, &answer); /* this time it says why nobody answers */
    }
    if (code == EXIT_OK && ctl->output == OUTPUT_DATA) {
        print_data(ctl, answer.body);
    } else if (code == EXIT_OK) {
        (void)puts("ready");
    } else if (code == EXIT_UNREACHABLE && answer.status != 0) {
        tell_why(ctl, answer.body);
    }
    return code;
}

int cmd_ready(struct ctl *ctl, int argc, char **argv)
{
    const char *wait = NULL;
    const struct option options[] = {{"--wait", &wait, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    struct arguments names;
    struct arena arena;
    int64_t wait_ms = 0;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &names, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (names.count > 0) {
        return usage_error(ctl, "ready takes no arguments");
    }
    if (wait && !duration_parse(slice_of(wait), &wait_ms)) {
        return usage_error(ctl, "--wait is a duration such as 60s, not \"%s\"", wait);
    }
    arena_init(&arena, 4096);
    int code = await(ctl, wait_ms, &arena);

    arena_fini(&arena);
    return code;
}
