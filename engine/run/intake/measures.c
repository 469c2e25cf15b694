/* The measures of this engine that the intake looks at, and what a refused client is told. */
#include "run/intake/measures.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/metric.h"
#include "base/resident.h"
#include "run/call/call_queue.h"
#include "run/exchange/exchange.h"
#include "run/intake/intake.h"
#include "run/intake/quotas.h"
#include "run/request/work.h"
#include "run/saga/live.h"
#include "run/saga/summon.h"
#include "run/saga/turn.h"
#include "run/shard/shard.h"

#define QUEUED_PER_CALL 64 /* waiting calls for each place */
#define APPENDS_MAX 20000
#define BETWEEN_MAX 4096 /* inputs between engines, both those at work here and those from here */
#define TRIM_EVERY_MS 5000
#define SMOOTH_MS 1000.0
#define TURNS_MANY 500        /* a batch */
#define ELSEWHERE_MS_MAX 1000 /* the owner's word about its load counts for this time at most */

struct intake_seen {  /* what left a queue since the intake looked last */
    int64_t least_us; /* the shortest wait; INT64_MAX when none has left */
    uint32_t count;
    double per_second; /* smoothed over the looks before */
};

struct measures {
    struct intake intake;
    struct quotas quotas;
    struct list turns_open;           /* turns that are being appended, the oldest first */
    struct intake_seen turns_seen[2]; /* [1] counts turns that begin a saga */
    struct intake_seen calls_seen[2]; /* [1] counts those of CALL_QUEUE_FIRST */
    size_t resident;                  /* bytes of the process, as last read */
    int64_t trimmed_ms;               /* boot-time clock: when memory was last given back to the system */
};

/* --- measures --- */

static void seen_leave(struct intake_seen *seen, int64_t us)
{
    seen->least_us = us < seen->least_us ? us : seen->least_us;
    seen->count++;
}

/*
 * Returns how long a newcomer to the queue will wait. One measure is the shortest wait of those that left: when even
 * that one was long, the queue is no passing burst. The other is the time that the waiting ones will need at the rate
 * at which they leave.
 */
static int64_t seen_delay_ms(struct intake_seen *seen, size_t waiting, int64_t passed_ms)
{
    int64_t least_ms = seen->least_us == INT64_MAX ? 0 : seen->least_us / 1000, needed_ms = 0;
    double weight = (double)passed_ms / SMOOTH_MS;

    seen->per_second += (weight > 1 ? 1 : weight) * (seen->count * 1000.0 / (double)passed_ms - seen->per_second);
    if (seen->per_second >= 1) {
        needed_ms = (int64_t)((double)waiting * 1000 / seen->per_second);
    }
    seen->least_us = INT64_MAX;
    seen->count = 0;
    return needed_ms > least_ms ? needed_ms : least_ms;
}

struct measures *measures_new(struct engine *engine, struct err *err)
{
    struct measures *measures = memory_alloc(sizeof(*measures));

    if (quotas_load(&measures->quotas, engine->options.quotas_file, err) != ERR_OK) {
        free(measures);
        return NULL;
    }
    list_init(&measures->turns_open);
    for (int i = 0; i < 2; i++) {
        measures->calls_seen[i].least_us = measures->turns_seen[i].least_us = INT64_MAX;
    }
    intake_init(&measures->intake, loop_boot_ms(engine->loop));
    return measures;
}

void measures_free(struct measures *measures)
{
    if (measures) {
        quotas_fini(&measures->quotas);
        free(measures);
    }
}

void intake_work_ended(struct engine *engine)
{
    intake_ended(&engine->measures->intake);
}

void intake_turn_begun(struct engine *engine, struct list_link *turn)
{
    list_push(&engine->measures->turns_open, turn);
}

void intake_turn_over(struct engine *engine, struct list_link *turn, bool begins, int64_t us)
{
    list_remove(&engine->measures->turns_open, turn);
    seen_leave(&engine->measures->turns_seen[begins], us);
}

void intake_call_left(struct engine *engine, bool first, int64_t waited_ms)
{
    seen_leave(&engine->measures->calls_seen[first], waited_ms == INT64_MAX ? INT64_MAX : waited_ms * 1000);
}

/* Turns that begin a saga wait behind the others, so both count. When none has ended, the oldest one counts. */
static int64_t commit_delay_ms(struct engine *engine, int64_t passed_ms)
{
    bool none = engine->measures->turns_seen[0].count + engine->measures->turns_seen[1].count == 0;
    int64_t begin_ms = seen_delay_ms(&engine->measures->turns_seen[1], 0, passed_ms);
    int64_t delay_ms = seen_delay_ms(&engine->measures->turns_seen[0], 0, passed_ms);
    double per_second = engine->measures->turns_seen[0].per_second + engine->measures->turns_seen[1].per_second;
    /* A few open turns say nothing: they come so slowly, and do not leave so slowly. */
    int64_t needed_ms = engine->measures->turns_open.count < TURNS_MANY || per_second < 1
                            ? 0
                            : (int64_t)((double)engine->measures->turns_open.count * 1000 / per_second);

    if (none && !list_empty(&engine->measures->turns_open)) {
        delay_ms = (loop_boot_us(engine->loop) - turn_began_us(list_first(&engine->measures->turns_open))) / 1000;
    }
    delay_ms = begin_ms > delay_ms ? begin_ms : delay_ms;
    return needed_ms > delay_ms ? needed_ms : delay_ms;
}

/*
 * The number of waiting calls counts only while they wait for places. A paused call, or one that waits for a child
 * process, holds up no other call.
 */
static int64_t queue_delay_ms(struct engine *engine, enum call_queue_kind kind, struct intake_seen *seen,
                              int64_t passed_ms)
{
    size_t waiting = call_queue_count(engine, kind);
    bool full = calls_are_full(engine), none = seen->count == 0;
    int64_t delay_ms = seen_delay_ms(seen, full ? waiting : 0, passed_ms);

    if (waiting == 0 || (none && !full)) {
        return 0;
    }
    return none ? call_queue_waited_ms(engine, kind) : delay_ms;
}

static int64_t call_delay_ms(struct engine *engine, int64_t passed_ms)
{
    int64_t begun_ms = queue_delay_ms(engine, CALL_QUEUE_BEGUN, &engine->measures->calls_seen[0], passed_ms);
    int64_t first_ms = queue_delay_ms(engine, CALL_QUEUE_FIRST, &engine->measures->calls_seen[1], passed_ms);

    return begun_ms > first_ms ? begun_ms : first_ms;
}

/*
 * Each look reads it: large inputs can fill a tenth of a gigabyte in half a second. Freed memory is not given back by
 * itself. Giving it back is tried before memory leads to a refusal.
 */
static size_t bytes_now(struct engine *engine)
{
    int64_t now_ms = loop_boot_ms(engine->loop);
    size_t max = engine->options.memory_bytes_max;

    engine->measures->resident = resident_bytes();
    if (max > 0 && engine->measures->resident > max - max / 8 &&
        now_ms - engine->measures->trimmed_ms >= TRIM_EVERY_MS) {
        engine->measures->trimmed_ms = now_ms;
        memory_give_back();
        engine->measures->resident = resident_bytes();
    }
    return engine->measures->resident;
}

/* New work leaves a sixteenth of the room for sagas that must come back because of an input. */
static size_t sagas_max(const struct engine *engine)
{
    return engine->options.sagas_max - engine->options.sagas_max / 16;
}

static size_t sagas_now(const struct engine *engine)
{
    return lives_count(engine) + summons_under_way(engine);
}

/* When nothing in memory could leave, waiting makes no room, and clients would be refused for ever. */
static size_t held_bytes(struct engine *engine)
{
    size_t bytes = bytes_now(engine);

    return sagas_now(engine) > 0 ? bytes : 0;
}

static void tell_changes(const struct intake *before, const struct intake *after)
{
    static const char *const queues[INTAKE_QUEUE_COUNT] = {"sagas", "memory",     "appends",
                                                           "calls", "deliveries", "errands"};
    enum intake_queue full = intake_full(after);

    if (full != intake_full(before)) {
        log_warn("intake", LOG_TEXT("full", full == INTAKE_QUEUE_COUNT ? "nothing any more" : queues[full]));
    }
    if (after->paced != before->paced) {
        log_warn("intake", LOG_TEXT("paced", after->paced ? "begins" : "is over"),
                 LOG_TEXT("delay", after->worst == INTAKE_CALL_DELAY ? "calls" : "commits"),
                 LOG_I64("percent", after->percent), LOG_I64("ended_per_second", (int64_t)after->ended));
    }
}

static void look(struct engine *engine)
{
    const struct engine_options *options = &engine->options;
    struct intake before = engine->measures->intake;
    int64_t passed_ms = loop_boot_ms(engine->loop) - before.looked_ms;

    passed_ms = passed_ms < 1 ? 1 : passed_ms;
    struct intake_measures measures = {
        .queues = {[INTAKE_SAGAS] = {sagas_now(engine), sagas_max(engine)},
                   [INTAKE_MEMORY] = {held_bytes(engine), options->memory_bytes_max},
                   [INTAKE_APPENDS] = {engine->store ? store_appends_waiting(engine->store) : 0, APPENDS_MAX},
                   [INTAKE_CALLS] = {call_queue_waiting(engine), (size_t)options->calls_max * QUEUED_PER_CALL},
                   [INTAKE_DELIVERIES] = {deliveries_count(engine), BETWEEN_MAX},
                   [INTAKE_ERRANDS] = {errands_count(engine), BETWEEN_MAX}},
        .delays = {[INTAKE_COMMIT_DELAY] = {commit_delay_ms(engine, passed_ms), options->commit_delay_ms},
                   [INTAKE_CALL_DELAY] = {call_delay_ms(engine, passed_ms), options->call_delay_ms}}};

    intake_look(&engine->measures->intake, &measures, loop_boot_ms(engine->loop));
    tell_changes(&before, &engine->measures->intake);
}

static void look_if_due(struct engine *engine)
{
    if (intake_is_due(&engine->measures->intake, loop_boot_ms(engine->loop)) ||
        (sagas_now(engine) >= sagas_max(engine) && !engine->measures->intake.full[INTAKE_SAGAS])) {
        look(engine);
    }
}

void intake_show(struct engine *engine)
{
    look_if_due(engine);
    gauge_set(GAUGE_INTAKE_PERCENT, engine->measures->intake.percent);
    gauge_set(GAUGE_INTAKE_SHUT,
              engine->measures->intake.paced || intake_full(&engine->measures->intake) != INTAKE_QUEUE_COUNT);
    gauge_set(GAUGE_CALLS_WAITING, (int64_t)call_queue_waiting(engine));
    gauge_set(GAUGE_RESIDENT, (int64_t)engine->measures->resident);
}

/* --- the answer --- */

static const struct {
    const char *message, *hint;
} full_sentences[INTAKE_QUEUE_COUNT] = {
    [INTAKE_SAGAS] = {"this engine has as many unfinished sagas as it may keep in memory",
                      "try again when some have ended, or raise --sagas-max"},
    [INTAKE_MEMORY] = {"this engine has as much memory as it may have", "try again later, or raise --memory-max"},
    [INTAKE_APPENDS] = {"too much waits for the database", "try again later; is the database slow?"},
    [INTAKE_CALLS] = {"too many calls wait for their turn",
                      "try again later, or raise --calls-max if the tools can bear it"},
    [INTAKE_DELIVERIES] = {"too many requests from other engines wait here", "try again later"},
    [INTAKE_ERRANDS] = {"too many requests wait for other engines", "try again later"},
};

static void tell_refused(const struct intake *intake, struct err *err)
{
    enum intake_queue full = intake_full(intake);

    if (full != INTAKE_QUEUE_COUNT) {
        metric_add(METRIC_INTAKE_FULL, 1);
        (void)err_set(err, ERR_BUSY, "%s", full_sentences[full].message);
        err_hint(err, "%s", full_sentences[full].hint);
        return;
    }
    metric_add(METRIC_INTAKE_PACED, 1);
    (void)err_set(err, ERR_BUSY, "more is asked for than this engine gets done");
    err_detail(err, intake->worst == INTAKE_CALL_DELAY ? "calls wait too long for a place among --calls-max"
                                                       : "commits take too long");
    err_hint(err, "try again later; what was taken in goes on");
}

bool engine_refuses_new(struct engine *engine, struct err *err, int64_t *retry_after_ms)
{
    look_if_due(engine);
    if (!intake_refuses(&engine->measures->intake, loop_boot_ms(engine->loop), retry_after_ms)) {
        return false;
    }
    tell_refused(&engine->measures->intake, err);
    return true;
}

bool intake_admits(struct engine *engine, struct err *err, int64_t *retry_after_ms)
{
    look_if_due(engine);
    if (intake_take(&engine->measures->intake, loop_boot_ms(engine->loop), retry_after_ms) == INTAKE_TAKEN) {
        return true;
    }
    tell_refused(&engine->measures->intake, err);
    return false;
}

static bool refuse_over_quota(struct work *work, const struct err *err, int64_t retry_after_ms)
{
    metric_add(METRIC_OVER_QUOTA, 1);
    work->request->call = (struct call_result){.retry_after_ms = retry_after_ms};
    work_done(work, ERR_QUOTA, err);
    return true;
}

bool work_is_over_quota(struct work *work, enum quota_kind kind, size_t payload_bytes)
{
    struct quotas *quotas = &work->engine->measures->quotas;
    int64_t now_ms = loop_boot_ms(work->engine->loop), retry_after_ms = 0;
    struct err err = {0};

    return !(quotas_admit(quotas, kind, work->namespace, 1, now_ms, &err, &retry_after_ms) &&
             quotas_admit(quotas, QUOTA_BYTES, work->namespace, (int64_t)payload_bytes, now_ms, &err,
                          &retry_after_ms)) &&
           refuse_over_quota(work, &err, retry_after_ms);
}

static int64_t count_sagas(void *context, struct slice namespace)
{
    return (int64_t)lives_of_namespace(context, namespace);
}

bool work_is_over_sagas(struct work *work)
{
    const struct quota_sagas sagas = {count_sagas, work->engine};
    int64_t retry_after_ms = 0;
    struct err err = {0};

    return !quotas_admit_saga(&work->engine->measures->quotas, work->namespace, &sagas,
                              loop_boot_ms(work->engine->loop), &err, &retry_after_ms) &&
           refuse_over_quota(work, &err, retry_after_ms);
}

bool work_has_definitions_quota(const struct work *work, struct slice namespace)
{
    return quotas_bound(&work->engine->measures->quotas, QUOTA_DEFINITIONS, namespace);
}

bool work_is_over_definitions(struct work *work, struct slice namespace, size_t count)
{
    int64_t retry_after_ms = 0;
    struct err err = {0};

    return !quotas_allow(&work->engine->measures->quotas, QUOTA_DEFINITIONS, namespace, (int64_t)count, &err,
                         &retry_after_ms) &&
           refuse_over_quota(work, &err, retry_after_ms);
}

bool work_is_not_taken_in(struct work *work)
{
    struct err err = {0};
    int64_t retry_after_ms = 0;

    if (intake_admits(work->engine, &err, &retry_after_ms)) {
        return false;
    }
    work->request->call = (struct call_result){.retry_after_ms = retry_after_ms};
    work_done(work, ERR_BUSY, &err);
    return true;
}

/* --- other engines --- */

void intake_elsewhere(struct shard *shard, int64_t retry_after_ms)
{
    shard->busy_until_ms =
        loop_boot_ms(shard->engine->loop) + (retry_after_ms < ELSEWHERE_MS_MAX ? retry_after_ms : ELSEWHERE_MS_MAX);
}

bool work_is_not_sent_on(struct work *work, uint32_t number)
{
    struct engine *engine = work->engine;
    int64_t left_ms = engine->shards[number].busy_until_ms - loop_boot_ms(engine->loop);
    struct err err = {0};

    if (left_ms <= 0 && errands_count(engine) < BETWEEN_MAX) {
        return false;
    }
    metric_add(METRIC_INTAKE_FULL, 1);
    (void)err_set(&err, ERR_BUSY, "%s",
                  left_ms > 0 ? "the engine that owns this shard takes in nothing new now"
                              : full_sentences[INTAKE_ERRANDS].message);
    err_hint(&err, "try again later");
    if (work->request) {
        work->request->call = (struct call_result){.retry_after_ms = left_ms > 0 ? left_ms : 1000};
    }
    work_done(work, ERR_BUSY, &err);
    return true;
}
