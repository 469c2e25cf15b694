/*
 * Makes a scenario smaller as long as it still breaks the same invariant: fewer faults, acts, steps and engines,
 * plainer settings. Each candidate is run. A candidate with invalid definitions does not fail in the same way, so no
 * rules about definitions are needed here.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "tests/sim/campaign.h"

#define APART_SECONDS_MAX 60
#define SECONDS_MAX 120
#define SAME_BYTES 24 /* compares so much of a violation "SIM", which has no number */

struct shrinking {
    struct scenario *best;
    const struct outcome_of_run *failure;
    struct arena *arena;
    uint32_t runs_left;
    time_t until; /* a failure that needs 30 virtual minutes takes long */
};

static bool fails_alike(const struct shrinking *s, const struct outcome_of_run *outcome)
{
    bool is_numbered = s->failure->invariant[0] == 'I';

    return outcome->failed && strcmp(outcome->invariant, s->failure->invariant) == 0 &&
           (is_numbered || strncmp(outcome->violation, s->failure->violation, SAME_BYTES) == 0);
}

void run_apart(const struct scenario *scenario, struct outcome_of_run *out)
{
    struct outcome_of_run *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = 0;
    pid_t pid;

    CHECK(shared != MAP_FAILED);
    (void)fflush(NULL);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)alarm(APART_SECONDS_MAX);
        (void)freopen("/dev/null", "w", stderr); /* the message of the crash was printed before */
        run_scenario(scenario, false, shared);
        _exit(0);
    }
    (void)waitpid(pid, &status, 0);
    *out = *shared;
    (void)munmap(shared, sizeof(*shared));
    if (status != 0) {
        out->failed = true;
        (void)snprintf(out->invariant, sizeof(out->invariant), CRASH);
        (void)snprintf(out->violation, sizeof(out->violation), "the program %s (%s %d)",
                       WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "hangs" : "crashes",
                       WIFSIGNALED(status) ? "signal" : "status",
                       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
}

/* Keeps the candidate as the best one when it is as bad. */
static void run_here(const struct scenario *scenario, struct outcome_of_run *out)
{
    run_scenario(scenario, false, out);
}

static bool try(struct shrinking *s, const struct scenario *candidate)
{
    struct outcome_of_run outcome;

    if (s->runs_left == 0 || time(NULL) > s->until) {
        s->runs_left = 0;
        return false;
    }
    s->runs_left--;
    (strcmp(s->failure->invariant, CRASH) == 0 ? run_apart : run_here)(candidate, &outcome);
    if (!fails_alike(s, &outcome)) {
        return false;
    }
    *s->best = *candidate;
    return true;
}

/* --- spans of acts and faults --- */

static void drop_acts(struct scenario *scenario, uint32_t from, uint32_t count)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < scenario->act_count; i++) {
        if (i < from || i >= from + count) {
            scenario->acts[kept++] = scenario->acts[i];
        }
    }
    scenario->act_count = kept;
}

static void drop_faults(struct scenario *scenario, uint32_t from, uint32_t count)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        if (i < from || i >= from + count) {
            scenario->faults[kept++] = scenario->faults[i];
        }
    }
    scenario->fault_count = kept;
}

static bool shrink_spans(struct shrinking *s, bool acts)
{
    bool any = false;
    uint32_t count = acts ? s->best->act_count : s->best->fault_count;

    for (uint32_t span = count; span > 0; span /= 2) {
        for (uint32_t from = 0; from < (acts ? s->best->act_count : s->best->fault_count) && s->runs_left > 0;) {
            struct scenario candidate = *s->best;

            (acts ? drop_acts : drop_faults)(&candidate, from, span);
            if (try(s, &candidate)) {
                any = true;
            } else {
                from += span;
            }
        }
    }
    return any;
}

/* --- settings --- */

static bool plainer(struct scenario *c, uint32_t which)
{
    struct scenario was = *c;

    switch (which) {
    case 0:
        c->commit_percent = 0;
        break;
    case 1:
        c->tool_percent = 0;
        break;
    case 2:
        c->node_count -= c->node_count > 1 ? 1 : 0;
        break;
    case 3:
        c->options.writers = c->options.readers = 1;
        break;
    case 4:
        c->options.sagas_max = 1000;
        break;
    case 5:
        c->options.calls_max = 64;
        break;
    case 6:
        c->options.park_after_ms = 2000;
        break;
    case 7:
        c->options.lease_ms = 2000;
        break;
    case 8:
        c->chaos_us /= 2;
        break;
    case 9:
        c->swarm &= ~(UINT64_C(1) << SWARM_LOST_ANSWERS);
        break;
    case 10:
        c->swarm &= ~(UINT64_C(1) << SWARM_TWO_PEOPLE | UINT64_C(1) << SWARM_HOLDS | UINT64_C(1) << SWARM_TOOL_HOLDS);
        break;
    case 11:
        c->swarm &= ~(UINT64_C(1) << SWARM_SLOW_PEOPLE);
        break;
    case 12:
        c->commit_percent /= 2;
        break;
    case 13:
        c->tool_percent /= 2;
        break;
    case 14:
        c->options.key_look_ms = 0;
        break;
    case 15:
        c->swarm &= ~(UINT64_C(1) << SWARM_BULK | UINT64_C(1) << SWARM_NOTIFY | UINT64_C(1) << SWARM_SCHEDULE);
        break;
    case 16:
        c->options.bulk_rate = 0;
        break;
    case 17:
        c->options.sealing = 0;
        break;
    default:
        break;
    }
    return memcmp(&was, c, sizeof(was)) != 0;
}
#define PLAINER_COUNT 18

static bool shrink_settings(struct shrinking *s)
{
    bool any = false;

    for (uint32_t i = 0; i < PLAINER_COUNT; i++) {
        struct scenario candidate = *s->best;

        any = (plainer(&candidate, i) && try(s, &candidate)) || any;
    }
    return any;
}

/* --- definitions --- */

struct dropping {
    struct buffer *out;
    uint32_t left; /* counts down to the part that is left out */
    bool dropped;
};

/* Writes a value without its n-th part, counted from the outside in. */
static void write_without(struct dropping *d, struct slice value)
{
    bool is_object = json_type(value) == JSON_OBJECT, any = false;
    struct json_walk walk = json_walk(value);
    struct slice name = SLICE_NONE, part;

    if (!is_object && json_type(value) != JSON_ARRAY) {
        buffer_put_slice(d->out, json_trim(value));
        return;
    }
    buffer_put_char(d->out, is_object ? '{' : '[');
    while (is_object ? json_next_member(&walk, &name, &part) : json_next_element(&walk, &part)) {
        if (!d->dropped && d->left-- == 0) {
            d->dropped = true;
            continue;
        }
        buffer_put_text(d->out, any ? "," : "");
        buffer_put_text(d->out, !is_object && json_type(part) == JSON_OBJECT ? "\n" : "");
        any = true;
        if (is_object) {
            buffer_printf(d->out, "\"%.*s\":", SLICE_ARG(name));
        }
        write_without(d, part);
    }
    buffer_put_char(d->out, is_object ? '}' : ']');
}

static bool shrink_definitions(struct shrinking *s)
{
    bool any = false;

    for (uint32_t n = 0; s->runs_left > 0;) {
        struct scenario candidate = *s->best;
        struct buffer out;
        struct dropping dropping = {.out = &out, .left = n};

        buffer_init(&out, 1 << 20);
        write_without(&dropping, s->best->definitions);
        candidate.definitions = arena_slice(s->arena, buffer_slice(&out));
        buffer_fini(&out);
        if (!dropping.dropped) {
            break;
        }
        if (try(s, &candidate)) {
            any = true;
        } else {
            n++;
        }
    }
    return any;
}

/* --- numbers of acts and faults --- */

static bool shrink_numbers(struct shrinking *s)
{
    bool any = false;

    for (uint32_t i = 0; i < s->best->act_count; i++) {
        static const uint32_t masks[] = {0x200, 0x2ff, 0xff01, 0xffff};

        for (size_t k = 0; k < COUNT_OF(masks) && s->best->acts[i].variant; k++) {
            struct scenario candidate = *s->best;

            candidate.acts[i].variant &= masks[k];
            if (candidate.acts[i].variant != s->best->acts[i].variant && try(s, &candidate)) {
                any = true;
                break;
            }
        }
    }
    for (uint32_t i = 0; i < s->best->fault_count; i++) {
        struct scenario candidate = *s->best;

        candidate.faults[i].for_us /= 2;
        any = (candidate.faults[i].for_us != s->best->faults[i].for_us && try(s, &candidate)) || any;
    }
    return any;
}

void scenario_shrink(struct scenario *scenario, const struct outcome_of_run *failure, uint32_t runs_max,
                     struct arena *arena)
{
    struct shrinking shrinking = {.best = scenario,
                                  .failure = failure,
                                  .arena = arena,
                                  .runs_left = runs_max,
                                  .until = time(NULL) + SECONDS_MAX},
                     *s = &shrinking;
    bool any = true;

    while (any && s->runs_left > 0) {
        any = shrink_spans(s, false);
        any = shrink_spans(s, true) || any;
        any = shrink_settings(s) || any;
        any = shrink_definitions(s) || any;
    }
    (void)shrink_numbers(s);
}
