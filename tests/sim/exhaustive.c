/*
 * Tries every commit of a scenario with everything that can happen to it. After the commit all engines crash, or the
 * committing engine freezes. The commit fails, warns, is lost before or after it was done, or is done late. Faults are
 * tried singly and in pairs. Pairs leave out the faults that add little to others: a reported failure, a warning, a
 * freeze.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/campaign.h"
#include "tests/sim/exhaustive.h"
#include "tests/sim/pg.h"

static const int single_fates[] = {POINT_CRASH,        POINT_FREEZE,      COMMIT_FAILS, COMMIT_WARNS,
                                   COMMIT_LOST_BEFORE, COMMIT_LOST_AFTER, COMMIT_LATE};
static const int pair_fates[] = {POINT_CRASH, COMMIT_LOST_BEFORE, COMMIT_LOST_AFTER, COMMIT_LATE};

struct points {
    const struct scenario *scenarios;
    uint32_t scenario_count;
    uint64_t *commits; /* the commits of each scenario when nothing goes wrong */
    uint64_t *ends;    /* where the runs of each scenario end in the enumeration */
    bool pairs;
};

static const char *fate_name(int fate)
{
    static const char *const names[] = {
        [COMMIT_OK] = "ok",
        [COMMIT_FAILS] = "fails",
        [COMMIT_WARNS] = "warns",
        [COMMIT_LOST_BEFORE] = "lost before",
        [COMMIT_LOST_AFTER] = "lost after",
        [COMMIT_LATE] = "late",
    };

    return fate == POINT_CRASH       ? "crash"
           : fate == POINT_FREEZE    ? "freeze"
           : fate == POINT_KILL      ? "kill"
           : fate == POINT_KILL_LATE ? "kill late"
                                     : names[fate];
}

static uint64_t count_runs(uint64_t commits, bool pairs)
{
    return pairs ? commits * (commits - 1) / 2 * COUNT_OF(pair_fates) * COUNT_OF(pair_fates)
                 : commits * COUNT_OF(single_fates);
}

static void make_single(struct scenario *out, uint64_t i, char name[CAMPAIGN_NAME_BYTES], uint32_t which)
{
    out->point_count = 1;
    out->points[0].commit = 1 + i / COUNT_OF(single_fates);
    out->points[0].fate = single_fates[i % COUNT_OF(single_fates)];
    (void)snprintf(name, CAMPAIGN_NAME_BYTES, "scenario %u, commit %llu %s", (unsigned)which + 1,
                   (unsigned long long)out->points[0].commit, fate_name(out->points[0].fate));
}

static void make_pair(struct scenario *out, uint64_t i, char name[CAMPAIGN_NAME_BYTES], uint32_t which)
{
    uint64_t fates = COUNT_OF(pair_fates) * COUNT_OF(pair_fates), pair = i / fates, second = 2;

    while (pair >= second - 1) { /* the pairs are (1,2), (1,3), (2,3), (1,4), ... */
        pair -= second - 1;
        second++;
    }
    out->point_count = 2;
    out->points[0].commit = pair + 1;
    out->points[0].fate = pair_fates[i % fates / COUNT_OF(pair_fates)];
    out->points[1].commit = second;
    out->points[1].fate = pair_fates[i % COUNT_OF(pair_fates)];
    (void)snprintf(name, CAMPAIGN_NAME_BYTES, "scenario %u, commit %llu %s, %llu %s", (unsigned)which + 1,
                   (unsigned long long)out->points[0].commit, fate_name(out->points[0].fate),
                   (unsigned long long)second, fate_name(out->points[1].fate));
}

static void make(const struct campaign *campaign, uint64_t i, struct scenario *out, char name[CAMPAIGN_NAME_BYTES],
                 struct arena *arena)
{
    const struct points *points = campaign->context;
    uint32_t which = 0;

    (void)arena;
    while (i >= points->ends[which]) {
        which++;
    }
    i -= which ? points->ends[which - 1] : 0;
    *out = points->scenarios[which];
    (points->pairs ? make_pair : make_single)(out, i, name, which);
}

/* Counts the commits of a scenario when nothing goes wrong. Returns false when the scenario fails even then. */
static bool count_commits(const struct scenario *scenario, uint32_t which, uint64_t *commits)
{
    static struct scenario quiet;
    struct outcome_of_run outcome;

    quiet = *scenario;
    quiet.point_count = 1; /* a point that is never reached, which takes chance out of the run */
    quiet.points[0].commit = UINT64_MAX;
    run_scenario(&quiet, false, &outcome);
    if (outcome.failed) {
        printf("FAILED scenario %u, where nothing goes wrong: %s is broken: %s\n", (unsigned)which + 1,
               outcome.invariant, outcome.violation);
    }
    *commits = outcome.commits;
    return !outcome.failed;
}

bool exhaust(const struct campaign *how, const struct scenario *scenarios, uint32_t count, bool pairs)
{
    struct points points = {.scenarios = scenarios, .scenario_count = count, .pairs = pairs};
    struct campaign campaign = *how;
    bool sound = true;

    points.commits = memory_alloc((count + 1) * sizeof(*points.commits));
    points.ends = memory_alloc((count + 1) * sizeof(*points.ends));
    for (uint32_t i = 0; i < count; i++) {
        sound = count_commits(&scenarios[i], i, &points.commits[i]) && sound;
        points.ends[i] = (i ? points.ends[i - 1] : 0) + count_runs(points.commits[i], pairs);
        printf("scenario %u: %llu commits\n", (unsigned)i + 1, (unsigned long long)points.commits[i]);
    }
    campaign.what = pairs ? "pairs of faults at commits" : "faults at commits";
    campaign.count = count ? points.ends[count - 1] : 0;
    campaign.make = make;
    campaign.context = &points;
    sound = campaign_run(&campaign) && sound;
    free(points.commits);
    free(points.ends);
    return sound;
}
