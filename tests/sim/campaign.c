/* See campaign.h. Workers are processes, so that no worker can disturb another one. The parent reports a worker that
 * crashes. */
#include "tests/sim/campaign.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS_MAX 64
#define RUN_SECONDS_MAX 300 /* a run that takes longer hangs */
#define TWICE_EVERY 100
#define PROGRESS_SECONDS 10.0
#define ARENA_BLOCK_BYTES 65536

struct tally { /* the figures of one worker; the parent reads them while the worker writes, because they are only for
                  people */
    uint64_t item;
    bool is_busy;
    uint64_t runs, events, commits, turns, kills, freezes, drains, restarts, takeovers, escalations;
    uint64_t seen[SEEN_COUNT];
};

struct shared {
    _Atomic uint64_t next, failures;
    struct tally tallies[JOBS_MAX];
};

static double now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* --- telling of failures --- */

static bool write_file(const char *path, const struct scenario *scenario, const char *name,
                       const struct outcome_of_run *outcome)
{
    struct buffer text;
    FILE *file = fopen(path, "w");
    bool written;

    if (!file) {
        return false;
    }
    buffer_init(&text, 4 << 20);
    buffer_printf(&text, "# %s\n# %s: %.400s\n", name, outcome->invariant, outcome->violation);
    scenario_write(scenario, &text);
    written = fwrite(text.ptr, 1, text.len, file) == text.len;
    written = fclose(file) == 0 && written;
    buffer_fini(&text);
    return written;
}

static void file_name(const struct campaign *campaign, const char *name, char *out, size_t bytes)
{
    size_t at;

    (void)snprintf(out, bytes, "%s/sim-failure-%s.txt", campaign->folder, name);
    for (at = strlen(campaign->folder) + 1; out[at]; at++) {
        out[at] = (out[at] == ' ' || out[at] == '/' || out[at] == ',') ? '-' : out[at];
    }
}

static void tell(const struct campaign *campaign, const struct scenario *scenario, const char *name, const char *replay,
                 const struct outcome_of_run *failure)
{
    static struct scenario smallest;
    struct outcome_of_run again;
    struct arena arena;
    char path[512];

    printf("FAILED %s: %s is broken: %s\n", name, failure->invariant, failure->violation);
    if (replay) {
        printf("  replay: %s\n", replay);
    }
    (void)fflush(stdout);
    arena_init(&arena, ARENA_BLOCK_BYTES);
    smallest = *scenario;
    if (campaign->shrink_runs) {
        scenario_shrink(&smallest, failure, campaign->shrink_runs, &arena);
    }
    if (strcmp(failure->invariant, CRASH) == 0) {
        run_apart(&smallest, &again);
    } else {
        run_scenario(&smallest, false, &again);
    }
    file_name(campaign, name, path, sizeof(path));
    if (write_file(path, &smallest, name, &again)) {
        printf("  the smallest that fails alike has %u engines, %u acts, %u faults, %" PRIu64
               " events: sim --scenario %s --trace\n",
               (unsigned)smallest.node_count, (unsigned)smallest.act_count, (unsigned)smallest.fault_count,
               again.events, path);
    } else {
        printf("  %s cannot be written\n", path);
    }
    (void)fflush(stdout);
    arena_fini(&arena);
}

/* --- runs --- */

/* Runs one scenario twice. Both runs must be the same, event by event. */
static void run_and_compare(const struct scenario *scenario, bool twice, struct outcome_of_run *outcome)
{
    struct outcome_of_run again;

    run_scenario(scenario, false, outcome);
    if (!twice || outcome->failed) {
        return;
    }
    run_scenario(scenario, false, &again);
    if (again.hash != outcome->hash || again.events != outcome->events) {
        outcome->failed = true;
        (void)snprintf(outcome->invariant, sizeof(outcome->invariant), "TWICE");
        (void)snprintf(outcome->violation, sizeof(outcome->violation),
                       "the same scenario ran differently the second time: hash %016" PRIx64 " after %" PRIu64
                       " events, then %016" PRIx64 " after %" PRIu64 "%s%.600s",
                       outcome->hash, outcome->events, again.hash, again.events, again.failed ? ": " : "",
                       again.violation);
    }
}

bool campaign_one(const struct campaign *campaign, const struct scenario *scenario, const char *name,
                  const char *replay, bool traced)
{
    struct outcome_of_run outcome;

    if (traced) {
        run_scenario(scenario, true, &outcome);
    } else {
        run_and_compare(scenario, campaign->twice, &outcome);
    }
    if (outcome.failed) {
        if (traced) {
            printf("FAILED %s: %s is broken: %s\n", name, outcome.invariant, outcome.violation);
        } else {
            tell(campaign, scenario, name, replay, &outcome);
        }
        return false;
    }
    printf("%s: sound after %s, %" PRIu64 " events, %" PRIu64 " commits; hash %016" PRIx64 "\n", name, outcome.end,
           outcome.events, outcome.commits, outcome.hash);
    return true;
}

static void count(struct tally *tally, const struct outcome_of_run *outcome)
{
    tally->runs++;
    tally->events += outcome->events;
    tally->commits += outcome->commits;
    tally->turns += outcome->turns;
    tally->kills += outcome->kills;
    tally->freezes += outcome->freezes;
    tally->drains += outcome->drains;
    tally->restarts += outcome->restarts;
    tally->takeovers += outcome->takeovers;
    tally->escalations += outcome->escalations;
    for (unsigned i = 0; i < SEEN_COUNT; i++) {
        tally->seen[i] += outcome->seen >> i & 1;
    }
}

static void work(const struct campaign *campaign, struct shared *shared, struct tally *tally)
{
    static struct scenario scenario;
    char name[CAMPAIGN_NAME_BYTES], replay[CAMPAIGN_NAME_BYTES + 64];
    struct outcome_of_run outcome;
    struct arena arena;

    arena_init(&arena, ARENA_BLOCK_BYTES);
    while (atomic_load(&shared->failures) < campaign->failures_max) {
        uint64_t item = atomic_fetch_add(&shared->next, 1);

        if (item >= campaign->count) {
            break;
        }
        tally->item = item;
        tally->is_busy = true;
        (void)alarm(RUN_SECONDS_MAX);
        campaign->make(campaign, item, &scenario, name, &arena);
        run_and_compare(&scenario, campaign->twice || item % TWICE_EVERY == 0, &outcome);
        count(tally, &outcome);
        if (outcome.failed && atomic_fetch_add(&shared->failures, 1) < campaign->failures_max) {
            (void)snprintf(replay, sizeof(replay), "sim --seed %" PRIu64 " --trace", scenario.seed);
            (void)alarm(0);
            tell(campaign, &scenario, name, scenario.point_count ? NULL : replay, &outcome);
        }
        tally->is_busy = false;
        arena_reset(&arena);
    }
    arena_fini(&arena);
}

/* --- workers --- */

/* _exit() does not write these in a build that counts branches: see tools/coverage. */
#ifdef SAGAD_COVERAGE
void __gcov_dump(void);
#define write_counters() __gcov_dump()
#else
#define write_counters() ((void)0)
#endif

static pid_t begin_worker(const struct campaign *campaign, struct shared *shared, uint32_t job)
{
    (void)fflush(NULL);
    pid_t pid = fork();

    if (pid == 0) {
        work(campaign, shared, &shared->tallies[job]);
        (void)fflush(NULL);
        write_counters();
        _exit(0);
    }
    return pid;
}

static void tell_of_crash(const struct campaign *campaign, struct shared *shared, uint32_t job, int status)
{
    static struct scenario scenario;
    char name[CAMPAIGN_NAME_BYTES], replay[64];
    struct outcome_of_run failure;
    struct arena arena;

    if (!shared->tallies[job].is_busy) {
        return;
    }
    arena_init(&arena, ARENA_BLOCK_BYTES);
    campaign->make(campaign, shared->tallies[job].item, &scenario, name, &arena);
    (void)snprintf(replay, sizeof(replay), "sim --seed %" PRIu64 " --trace", scenario.seed);
    run_apart(&scenario, &failure);
    if (failure.failed) {
        tell(campaign, &scenario, name, scenario.point_count ? NULL : replay, &failure);
    } else {
        printf("FAILED %s: the program has ended (status %d), and does not when it is tried again\n", name, status);
        (void)fflush(stdout);
    }
    arena_fini(&arena);
    (void)atomic_fetch_add(&shared->failures, 1);
}

static void add_up(const struct shared *shared, uint32_t jobs, struct tally *sum)
{
    memset(sum, 0, sizeof(*sum));
    for (uint32_t i = 0; i < jobs; i++) {
        const struct tally *t = &shared->tallies[i];

        sum->runs += t->runs;
        sum->events += t->events;
        sum->commits += t->commits;
        sum->turns += t->turns;
        sum->kills += t->kills;
        sum->freezes += t->freezes;
        sum->drains += t->drains;
        sum->restarts += t->restarts;
        sum->takeovers += t->takeovers;
        sum->escalations += t->escalations;
        for (unsigned k = 0; k < SEEN_COUNT; k++) {
            sum->seen[k] += t->seen[k];
        }
    }
}

/* Waits for all workers, prints their progress, and replaces a worker that crashed. */
static void watch(const struct campaign *campaign, struct shared *shared, pid_t *workers, double began_s)
{
    double told_s = began_s;
    uint32_t left = campaign->jobs;
    struct tally sum;

    while (left > 0) {
        int status = 0;
        pid_t pid = waitpid(-1, &status, WNOHANG);

        if (pid == 0) {
            struct timespec pause = {0, 50000000};

            (void)nanosleep(&pause, NULL);
        }
        for (uint32_t i = 0; i < campaign->jobs && pid > 0; i++) {
            if (workers[i] == pid) {
                workers[i] = 0;
                if (status != 0) {
                    tell_of_crash(campaign, shared, i, status);
                    shared->tallies[i].is_busy = false;
                }
                if (status != 0 && atomic_load(&shared->failures) < campaign->failures_max) {
                    workers[i] = begin_worker(campaign, shared, i);
                } else {
                    left--;
                }
            }
        }
        if (now_s() - told_s > PROGRESS_SECONDS) {
            told_s = now_s();
            add_up(shared, campaign->jobs, &sum);
            fprintf(stderr, "%" PRIu64 " of %" PRIu64 " %s, %.0f a minute, %" PRIu64 " failed\n", sum.runs,
                    campaign->count, campaign->what, (double)sum.runs * 60 / (told_s - began_s),
                    (uint64_t)atomic_load(&shared->failures));
        }
    }
}

/* --- the end --- */

static uint32_t tell_unseen(const struct tally *sum)
{
    uint32_t unseen = 0;

    for (unsigned i = 0; i < SEEN_COUNT; i++) {
        if (sum->seen[i] == 0) {
            printf("NEVER SEEN: %s\n", sim_seen[i]);
            unseen++;
        }
    }
    return unseen;
}

static void print_sum(const struct campaign *campaign, const struct tally *sum, uint64_t failures, double seconds)
{
    printf("%" PRIu64 " %s in %.1f s (%.0f a minute on %u processes): %" PRIu64 " failed\n", sum->runs, campaign->what,
           seconds, (double)sum->runs * 60 / seconds, (unsigned)campaign->jobs, failures);
    printf("events %" PRIu64 ", turns %" PRIu64 ", commits %" PRIu64 ", kills %" PRIu64 ", freezes %" PRIu64
           ", drains %" PRIu64 ", restarts %" PRIu64 ", takeovers %" PRIu64 ", resolutions %" PRIu64 "\n",
           sum->events, sum->turns, sum->commits, sum->kills, sum->freezes, sum->drains, sum->restarts, sum->takeovers,
           sum->escalations);
    for (unsigned i = 0; i < SEEN_COUNT; i++) {
        printf("  in %10" PRIu64 " runs %s\n", sum->seen[i], sim_seen[i]);
    }
}

static void print_json(const struct campaign *campaign, const struct tally *sum, uint64_t failures, double seconds)
{
    printf("{\"what\":\"%s\",\"runs\":%" PRIu64 ",\"failed\":%" PRIu64
           ",\"seconds\":%.1f,\"a_minute\":%.0f,\"jobs\":%u,\"events\":%" PRIu64 ",\"turns\":%" PRIu64
           ",\"commits\":%" PRIu64 ",\"kills\":%" PRIu64 ",\"freezes\":%" PRIu64 ",\"drains\":%" PRIu64
           ",\"restarts\":%" PRIu64 ",\"takeovers\":%" PRIu64 ",\"resolutions\":%" PRIu64 ",\"seen\":{",
           campaign->what, sum->runs, failures, seconds, (double)sum->runs * 60 / seconds, (unsigned)campaign->jobs,
           sum->events, sum->turns, sum->commits, sum->kills, sum->freezes, sum->drains, sum->restarts, sum->takeovers,
           sum->escalations);
    for (unsigned i = 0; i < SEEN_COUNT; i++) {
        printf("%s\"%s\":%" PRIu64, i ? "," : "", sim_seen[i], sum->seen[i]);
    }
    printf("}}\n");
}

bool campaign_run(const struct campaign *given)
{
    struct campaign campaign = *given;
    struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t workers[JOBS_MAX] = {0};
    double began_s = now_s(), seconds;
    struct tally sum;
    bool sound;

    CHECK(shared != MAP_FAILED);
    campaign.jobs = campaign.jobs < 1 ? 1 : campaign.jobs > JOBS_MAX ? JOBS_MAX : campaign.jobs;
    for (uint32_t i = 0; i < campaign.jobs; i++) {
        workers[i] = begin_worker(&campaign, shared, i);
        CHECK(workers[i] > 0);
    }
    watch(&campaign, shared, workers, began_s);
    seconds = now_s() - began_s;
    add_up(shared, campaign.jobs, &sum);
    sound = atomic_load(&shared->failures) == 0;
    (campaign.is_json ? print_json : print_sum)(&campaign, &sum, atomic_load(&shared->failures), seconds);
    if (sound && campaign.wants_all_seen && tell_unseen(&sum) > 0) {
        printf("FAILED: what a campaign of this size has to see it has not seen; the scenarios do not reach it any "
               "more\n");
        sound = false;
    }
    (void)munmap(shared, sizeof(*shared));
    return sound;
}
