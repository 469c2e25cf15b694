/*
 * The pace of accepting new work follows the delays. While a delay is over its target the pace sinks by a tenth with
 * each look. It stays between half of the target and the whole. Below that it rises: slowly while there is a queue,
 * fast when there is next to none. It never sinks below half of what ends in a second, because that much leaves anyway,
 * and an empty queue wastes capacity.
 */
#include "run/intake/intake.h"

#include <string.h>

#define SMOOTH_MS 1000.0 /* rates are means over about this time */
#define IDLE_MS 5000     /* after this time without a look, older measures say nothing any more */
#define IDLE_PERCENT 12
#define CALM_MS 1000 /* the pace ends after this time with next to no queue, or with no refusal */
#define ROOM_MS 100  /* this much of the pace may come at once */
#define RETRY_MS_MIN 500
#define RETRY_MS_MAX 30000
#define PERCENT_MAX 100000

void intake_init(struct intake *intake, int64_t now_ms)
{
    memset(intake, 0, sizeof(*intake));
    intake->looked_ms = intake->filled_ms = now_ms;
}

void intake_ended(struct intake *intake)
{
    intake->ended_since++;
}

bool intake_is_due(const struct intake *intake, int64_t now_ms)
{
    return now_ms - intake->looked_ms >= INTAKE_LOOK_MS;
}

enum intake_queue intake_full(const struct intake *intake)
{
    enum intake_queue queue = 0;

    while (queue < INTAKE_QUEUE_COUNT && !intake->full[queue]) {
        queue++;
    }
    return queue;
}

static void look_at_queues(struct intake *intake, const struct intake_measures *measures)
{
    intake->excess = 0;
    for (size_t i = 0; i < INTAKE_QUEUE_COUNT; i++) {
        size_t now = measures->queues[i].now, max = measures->queues[i].max, low = max - max / 8;

        intake->full[i] = max > 0 && (now >= max || (intake->full[i] && now > low));
        /* Bytes do not say how many sagas have to end. */
        if (intake->full[i] && i != INTAKE_MEMORY && now > low && now - low > intake->excess) {
            intake->excess = now - low;
        }
    }
}

static void look_at_delays(struct intake *intake, const struct intake_measures *measures)
{
    intake->percent = 0;
    for (size_t i = 0; i < INTAKE_DELAY_COUNT; i++) {
        int64_t ms = measures->delays[i].ms, target_ms = measures->delays[i].target_ms;
        int64_t percent = target_ms <= 0 ? 0 : ms >= INT64_MAX / 100 ? PERCENT_MAX : ms * 100 / target_ms;

        percent = percent > PERCENT_MAX ? PERCENT_MAX : percent;
        if (percent > intake->percent) {
            intake->percent = (int)percent;
            intake->worst = (enum intake_delay)i;
        }
    }
}

static void measure_rates(struct intake *intake, int64_t passed_ms)
{
    double weight = (double)passed_ms / SMOOTH_MS;

    weight = weight > 1 ? 1 : weight;
    intake->ended += weight * (intake->ended_since * 1000.0 / (double)passed_ms - intake->ended);
    intake->refused += weight * (intake->refused_since * 1000.0 / (double)passed_ms - intake->refused);
    intake->taken += weight * (intake->taken_since * 1000.0 / (double)passed_ms - intake->taken);
    intake->ended_since = intake->refused_since = intake->taken_since = 0;
}

static double at_least(double value, double least)
{
    return value < least ? least : value;
}

static void set_pace(struct intake *intake, int64_t now_ms)
{
    if (!intake->paced) {
        if (intake->percent <= 100) {
            intake->over_since_ms = 0;
        } else if (intake->over_since_ms == 0) {
            intake->over_since_ms = now_ms;
        } else if (now_ms - intake->over_since_ms >= INTAKE_PATIENCE_MS) {
            intake->paced = true;
            intake->pace = at_least(at_least(intake->ended, intake->taken / 4), INTAKE_PACE_MIN);
            intake->room = 1;
            intake->refused_ms = intake->busy_ms = intake->filled_ms = now_ms;
        }
        return;
    }
    if (intake->percent > 100) {
        intake->pace = at_least(intake->pace * 0.9, at_least(intake->ended / 2, INTAKE_PACE_MIN));
    } else if (intake->percent < 50) {
        /* Beyond the rate of ends the pace rises carefully: more may be possible, or the queue may not show yet. */
        bool beyond = intake->pace > 1.5 * at_least(intake->ended, INTAKE_PACE_MIN);

        intake->pace *= intake->percent < IDLE_PERCENT ? 1.4 : beyond ? 1.03 : 1.1;
    }
    if (intake->percent >= IDLE_PERCENT) {
        intake->busy_ms = now_ms;
    }
    if (now_ms - intake->busy_ms >= CALM_MS || (intake->percent < 50 && now_ms - intake->refused_ms >= CALM_MS)) {
        intake->paced = false;
        intake->over_since_ms = 0;
    }
}

void intake_look(struct intake *intake, const struct intake_measures *measures, int64_t now_ms)
{
    int64_t passed_ms = now_ms - intake->looked_ms;

    look_at_queues(intake, measures);
    if (passed_ms <= 0) {
        return; /* too short a time to tell a rate */
    }
    if (passed_ms > IDLE_MS) {
        intake->paced = false;
        intake->over_since_ms = 0;
    }
    intake->looked_ms = now_ms;
    measure_rates(intake, passed_ms);
    look_at_delays(intake, measures);
    set_pace(intake, now_ms);
}

/*
 * Returns when a refused client should come again. The sagas that end in a second make the room, for the excess in the
 * queue and for the clients that are refused now and come again. The times are spread by steps of the golden ratio
 * between half of that and one and a half, so that each client comes at its own time.
 */
static int64_t retry_after(struct intake *intake)
{
    double leaves = at_least(intake->paced ? intake->pace : intake->ended, INTAKE_PACE_MIN);
    double wait_ms = ((double)intake->excess + intake->refused) / leaves * 1000;
    uint32_t step = ++intake->refusals * UINT32_C(2654435769);

    wait_ms = at_least(wait_ms, 2.0 * RETRY_MS_MIN);
    wait_ms = (wait_ms > RETRY_MS_MAX / 1.5 ? RETRY_MS_MAX / 1.5 : wait_ms) * (0.5 + step / 4294967296.0);
    return (int64_t)wait_ms;
}

static void refill(struct intake *intake, int64_t now_ms)
{
    double most = at_least(intake->pace * ROOM_MS / 1000, 2);

    intake->room += intake->pace * (double)(now_ms - intake->filled_ms) / 1000;
    intake->room = intake->room > most ? most : intake->room;
    intake->filled_ms = now_ms;
}

static bool has_room(struct intake *intake, int64_t now_ms)
{
    if (intake->paced && now_ms > intake->filled_ms) {
        refill(intake, now_ms);
    }
    return !intake->paced || intake->room >= 1;
}

bool intake_refuses(struct intake *intake, int64_t now_ms, int64_t *retry_after_ms)
{
    if (intake_full(intake) == INTAKE_QUEUE_COUNT && has_room(intake, now_ms)) {
        return false;
    }
    intake->refused_since++;
    intake->refused_ms = now_ms;
    *retry_after_ms = retry_after(intake);
    return true;
}

enum intake_verdict intake_take(struct intake *intake, int64_t now_ms, int64_t *retry_after_ms)
{
    if (intake_refuses(intake, now_ms, retry_after_ms)) {
        return intake_full(intake) == INTAKE_QUEUE_COUNT ? INTAKE_PACED : INTAKE_FULL;
    }
    intake->room -= intake->paced ? 1 : 0;
    intake->taken_since++;
    return INTAKE_TAKEN;
}
