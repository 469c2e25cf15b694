/* See saga_end.h. */
#include "tools/sagactl/saga_end.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/sagactl/output.h"

#define TURN_MS 2000    /* the time of one waiting request; a longer wait takes several */
#define TURN_FOR_MS 300 /* the server waits only for ends; other statuses are polled at this interval */

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

struct slice saga_why(struct ctl *ctl, struct slice saga)
{
    struct slice error = json_member(saga, "error"), step = show_member(ctl, error, "step");
    struct slice actor = show_member(ctl, error, "actor"), note = show_member(ctl, error, "note");

    if (json_type(error) != JSON_OBJECT) {
        return SLICE("");
    }
    return arena_printf(&ctl->arena, "%s%.*s%s%.*s%s%.*s%s%.*s%s", step.len ? "step " : "", SLICE_ARG(step),
                        step.len ? ": " : "", SLICE_ARG(error_of(ctl, saga)), actor.len ? " (" : "", SLICE_ARG(actor),
                        actor.len && note.len ? ": " : "", SLICE_ARG(actor.len ? note : actor), actor.len ? ")" : "");
}

bool saga_has_ended(struct slice saga)
{
    return saga_exit_code(saga) != EXIT_WAIT_OVER;
}

/* Takes the next status of "a,b". Returns false at the end. */
static bool next_status(const char **at, struct slice *status)
{
    size_t len = strcspn(*at, ",");

    if (**at == '\0') {
        return false;
    }
    *status = (struct slice){*at, len};
    *at += len + ((*at)[len] == ',');
    return true;
}

bool saga_is_one_of(struct slice saga, const char *statuses)
{
    struct slice status, is = json_member(saga, "status");

    while (next_status(&statuses, &status)) {
        if (is.len == status.len + 2 && memcmp(is.ptr + 1, status.ptr, status.len) == 0) {
            return true;
        }
    }
    return false;
}

bool saga_statuses_are_good(const char *statuses)
{
    static const char *const known[] = {"running",   "waiting",   "paused",      "compensating",
                                        "escalated", "completed", "compensated", "abandoned"};
    struct slice status;
    size_t good = 0, count = 0;

    while (next_status(&statuses, &status)) {
        count++;
        for (size_t i = 0; i < COUNT_OF(known); i++) {
            good += slice_is(status, known[i]);
        }
    }
    return count > 0 && good == count;
}

int saga_await(struct ctl *ctl, struct slice id, int64_t wait_ms, const char *statuses, struct slice *saga)
{
    int64_t until_ms = now_ms() + wait_ms, turn_ms = statuses ? TURN_FOR_MS : TURN_MS;

    while (!saga_has_ended(*saga) && !(statuses && saga_is_one_of(*saga, statuses))) {
        int64_t left_ms = until_ms - now_ms();
        struct answer answer;
        int code;

        if (left_ms <= 0) {
            break;
        }
        /* An escalation does not end the server's wait. Short requests make it visible soon. */
        left_ms = left_ms < turn_ms ? left_ms : turn_ms;
        progress_show(ctl, "%.*s: %.*s", SLICE_ARG(id), SLICE_ARG(show_member(ctl, *saga, "status")));
        ctl->quiet =
            until_ms - now_ms() > TURN_MS; /* the service may be restarting; the saga goes on when it is back */
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
