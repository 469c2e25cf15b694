/* See saga_end.h. */
#include "tools/sagactl/saga_end.h"

#include <time.h>
#include <unistd.h>

#include "tools/sagactl/output.h"

#define TURN_MS 2000 /* of one request that waits; longer waits are several */

int64_t now_ms(void)
{
    struct timespec now;

    return clock_gettime(CLOCK_REALTIME, &now) == 0 ? (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 : 0;
}

int saga_exit_code(struct slice saga)
{
    struct slice status = json_member(saga, "status");

    if (json_string_is(status, "completed")) {
        return EXIT_OK;
    }
    if (json_string_is(status, "compensated")) {
        return EXIT_COMPENSATED;
    }
    if (json_string_is(status, "escalated")) {
        return EXIT_NEEDS_PERSON;
    }
    return json_string_is(status, "abandoned") ? EXIT_FAILED : EXIT_WAIT_OVER;
}

bool saga_has_ended(struct slice saga)
{
    return saga_exit_code(saga) != EXIT_WAIT_OVER;
}

int saga_await(struct ctl *ctl, struct slice id, int64_t wait_ms, struct slice *saga)
{
    int64_t until_ms = now_ms() + wait_ms;

    while (!saga_has_ended(*saga)) {
        int64_t left_ms = until_ms - now_ms();
        struct answer answer;
        int code;

        if (left_ms <= 0) {
            break;
        }
        /* An escalation does not end the server's wait: ask in short turns, so that it is seen. */
        left_ms = left_ms < TURN_MS ? left_ms : TURN_MS;
        progress_show(ctl, "%.*s: %.*s", SLICE_ARG(id), SLICE_ARG(show_member(ctl, *saga, "status")));
        ctl->quiet =
            until_ms - now_ms() > TURN_MS; /* the service may be starting again: the saga goes on when it is back */
        code = client_call(ctl, "GET",
                           arena_printf(&ctl->arena, "/v1/sagas/%.*s?wait=%lldms", SLICE_ARG(id), (long long)left_ms),
                           SLICE_NONE, left_ms + 30000, &ctl->arena, &answer);
        if (code == EXIT_UNREACHABLE && ctl->quiet) {
            (void)usleep(200000);
            continue;
        }
        if (code != EXIT_OK) {
            ctl->quiet = false;
            progress_clear(ctl);
            return code;
        }
        *saga = answer.body;
    }
    ctl->quiet = false;
    progress_clear(ctl);
    return EXIT_OK;
}
