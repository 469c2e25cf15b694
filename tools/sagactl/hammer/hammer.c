/* See hammer.h. */
#include "tools/sagactl/hammer/hammer.h"

#include "base/json.h"
#include "tools/sagactl/hammer/operation.h"
#include "tools/sagactl/output.h"

#define REPEATS 4         /* how often one operation is repeated after its first call */
#define LATE_OPERATIONS 2 /* for each lateness */
#define LATE_POINTS 4     /* an eighth, a quarter, half and all of --late */

static bool broken(struct hammer *hammer, struct slice why)
{
    hammer->broken = why;
    return false;
}

/* Counts one operation: its calls, and the effects that it had. */
static void tally_count(struct tally *tally, uint32_t calls, int64_t effects)
{
    tally->operations++;
    tally->calls += calls;
    tally->effects += effects;
    tally->most = effects > tally->most ? effects : tally->most;
}

/* Adds to the tally of a trial how one operation ended. */
static bool tally_add(struct hammer *hammer, enum trial trial, struct operation *operation)
{
    struct tally *tally = &hammer->evidence.tallies[trial];
    int64_t effects;

    if (!operation_effects(operation, &effects)) {
        return false;
    }
    tally_count(tally, operation->calls, effects);
    tally->lost += operation->completed > 0 && effects == 0;
    tally->refused += effects > 0 ? operation->failed : 0;
    hammer->evidence.settled += effects > 0 ? operation->settled : 0;
    tally->unanswered += operation->completed == 0 && operation->failed == 0;
    return true;
}

/* --- what the probe says, held against the counter --- */

static bool probe_hold(struct hammer *hammer, struct operation *operation)
{
    struct evidence *e = &hammer->evidence;
    int64_t unseen_ms, effects;
    enum outcome_kind said;

    if (!e->has_probe) {
        return true;
    }
    said = operation_probe(operation, operation->calls == 0 ? 0 : hammer->tool->probe.visibility_ms, &unseen_ms);
    if (!operation_effects(operation, &effects)) {
        return false;
    }
    bool happened = e->counter == COUNTER_ANSWERS ? operation->completed > 0 : effects > 0;
    bool is_known = happened || e->counter != COUNTER_ANSWERS || operation->calls == 0;

    e->probes++;
    e->probe_said_absent += said == OUTCOME_ABSENT && happened;
    e->probe_said_done += said == OUTCOME_COMPLETED && !happened && is_known;
    e->probe_unsure += said != OUTCOME_ABSENT && said != OUTCOME_COMPLETED;
    e->probe_unseen_ms = happened && unseen_ms > e->probe_unseen_ms ? unseen_ms : e->probe_unseen_ms;
    return true;
}

/* --- the trials --- */

/* Chooses how effects are counted. A probe whose result is a number counts them; else the results of the answers do. */
static bool find_counter(struct hammer *hammer)
{
    struct operation operation;
    int64_t unseen_ms, number;

    hammer->evidence.counter = hammer->counter ? COUNTER_TOOL : COUNTER_ANSWERS;
    if (hammer->counter || !hammer->evidence.has_probe) {
        return true;
    }
    if (!operation_new(hammer, &operation)) {
        return false;
    }
    (void)operation_finish(&operation); /* try_single() says what is wrong with such a call */
    if (operation_probe(&operation, hammer->tool->probe.visibility_ms, &unseen_ms) == OUTCOME_COMPLETED &&
        json_i64(operation.probe_result, &number)) {
        hammer->evidence.counter = COUNTER_PROBE;
    }
    return true;
}

static bool single_ends(struct hammer *hammer, struct operation *operation)
{
    if (operation->completed == 0 && hammer->evidence.tallies[TRIAL_SINGLE].effects == 0) {
        return broken(hammer, arena_printf(&hammer->ctl->arena, "a single call is not completed: %.*s",
                                           SLICE_ARG(operation->trouble)));
    }
    return true;
}

static bool try_single(struct hammer *hammer, uint32_t round)
{
    struct tally *tally = &hammer->evidence.tallies[TRIAL_SINGLE];
    struct operation operation, never;
    int64_t before = tally->effects;

    if (!operation_new(hammer, &operation)) {
        return false;
    }
    (void)operation_finish(&operation); /* single_ends() looks */
    if (!tally_add(hammer, TRIAL_SINGLE, &operation) || !single_ends(hammer, &operation) ||
        !probe_hold(hammer, &operation)) {
        return false;
    }
    if (tally->effects != before + 1 || (hammer->evidence.counter == COUNTER_ANSWERS && round > 0 &&
                                         digest_equal(&hammer->last_result, &operation.results[0]))) {
        hammer->evidence.tells_apart = false;
    }
    hammer->last_result = operation.results[0];
    /* An operation that was never sent is absent. */
    return !hammer->evidence.has_probe || (operation_new(hammer, &never) && probe_hold(hammer, &never));
}

static bool try_repeated(struct hammer *hammer, uint32_t round)
{
    struct operation operation;

    (void)round;
    if (!operation_new(hammer, &operation)) {
        return false;
    }
    for (int i = 0; i <= REPEATS; i++) {
        operation_send(&operation, 1, STRIKE_WHOLE);
    }
    return tally_add(hammer, TRIAL_REPEATED, &operation);
}

static bool try_at_once(struct hammer *hammer, uint32_t round)
{
    struct operation operation;

    (void)round;
    if (!operation_new(hammer, &operation)) {
        return false;
    }
    operation_send(&operation, hammer->at_once, STRIKE_WHOLE);
    (void)operation_finish(&operation); /* the tally has who got no answer */
    return tally_add(hammer, TRIAL_AT_ONCE, &operation);
}

static bool try_cut(struct hammer *hammer, uint32_t round)
{
    static const int64_t cuts_ms[] = {1, 0, 3, 10, 30};
    struct operation operation;

    if (!operation_new(hammer, &operation)) {
        return false;
    }
    operation_send(&operation, 1, cuts_ms[round % COUNT_OF(cuts_ms)]);
    if (!probe_hold(hammer, &operation)) {
        return false;
    }
    (void)operation_finish(&operation); /* the tally has who got no answer */
    return tally_add(hammer, TRIAL_CUT, &operation);
}

static bool try_other_key(struct hammer *hammer, uint32_t round)
{
    struct tally *tally = &hammer->evidence.tallies[TRIAL_OTHER_KEY];
    struct operation first, other;
    int64_t effects, more;

    (void)round;
    if (!operation_new(hammer, &first)) {
        return false;
    }
    (void)operation_finish(&first);
    if (!operation_effects(&first, &effects) || !operation_with_key(&first, &other)) {
        return false;
    }
    (void)operation_finish(&other); /* a refusal is an answer too: the count decides */
    if (!operation_effects(&other, &more)) {
        return false;
    }
    tally_count(tally, first.calls + other.calls, effects + more);
    return true;
}

static bool try_other_args(struct hammer *hammer, uint32_t round)
{
    struct tally *tally = &hammer->evidence.tallies[TRIAL_OTHER_ARGS];
    struct operation first, other;
    int64_t effects, more;

    (void)round;
    if (!operation_new(hammer, &first)) {
        return false;
    }
    (void)operation_finish(&first);
    if (!operation_effects(&first, &effects) || !operation_with_args(&first, &other)) {
        return false;
    }
    if (slice_equal(first.args, other.args)) {
        return true; /* nothing in them differs */
    }
    (void)operation_finish(&other);
    if (!operation_effects(&other, &more)) {
        return false;
    }
    tally_count(tally, first.calls + other.calls, effects + more);
    return true;
}

/* Sends the undo first, and then the call, as late as a network may bring it. */
static bool try_undo_first(struct hammer *hammer, uint32_t round)
{
    struct tally *tally = &hammer->evidence.tallies[TRIAL_UNDO_FIRST];
    struct operation operation, undo;
    int64_t effects;

    (void)round;
    if (!operation_new(hammer, &operation)) {
        return false;
    }
    if (!operation_undo(&operation, &undo)) {
        return true; /* it needs the result, so sagad never sends it before there is one */
    }
    (void)operation_finish(&undo);
    hammer->evidence.undo_refused += undo.completed == 0;
    if (!operation_rebase(&operation)) {
        return false;
    }
    operation_send(&operation, 1, STRIKE_WHOLE);
    if (!operation_effects(&operation, &effects)) {
        return false;
    }
    if (hammer->evidence.counter == COUNTER_ANSWERS) {
        effects = operation.completed > 0;
    }
    tally_count(tally, operation.calls + undo.calls, effects);
    return true;
}

static bool try_undo_twice(struct hammer *hammer, uint32_t round)
{
    struct tally *tally = &hammer->evidence.tallies[TRIAL_UNDO_TWICE];
    struct operation operation, undo;
    int64_t once, twice;

    (void)round;
    if (!operation_new(hammer, &operation)) {
        return false;
    }
    if (!operation_finish(&operation) || !operation_undo(&operation, &undo)) {
        return true;
    }
    (void)operation_finish(&undo);
    if (!operation_effects(&operation, &once)) {
        return false;
    }
    (void)operation_finish(&undo);
    if (!operation_effects(&operation, &twice)) {
        return false;
    }
    tally_count(tally, operation.calls + undo.calls, 1 + (twice != once));
    return true;
}

static bool hammer_rounds(struct hammer *hammer, enum trial trial)
{
    static bool (*const tries[TRIAL_COUNT])(struct hammer *, uint32_t) = {
        [TRIAL_SINGLE] = try_single,         [TRIAL_REPEATED] = try_repeated,
        [TRIAL_AT_ONCE] = try_at_once,       [TRIAL_CUT] = try_cut,
        [TRIAL_OTHER_KEY] = try_other_key,   [TRIAL_OTHER_ARGS] = try_other_args,
        [TRIAL_UNDO_FIRST] = try_undo_first, [TRIAL_UNDO_TWICE] = try_undo_twice,
    };

    if ((trial == TRIAL_UNDO_FIRST || trial == TRIAL_UNDO_TWICE) && !hammer->undo) {
        return true;
    }
    for (uint32_t round = 0; round < hammer->rounds; round++) {
        progress_show(hammer->ctl, "%s: %u of %u", trial_text(trial), round + 1, hammer->rounds);
        if (!tries[trial](hammer, round)) {
            return false;
        }
    }
    return true;
}

/* --- late repeats --- */

struct late {
    struct operation operations[LATE_OPERATIONS];
    int64_t begun_ms[LATE_OPERATIONS];
};

static bool late_begin(struct hammer *hammer, struct late *late)
{
    for (size_t i = 0; i < LATE_OPERATIONS; i++) {
        if (!operation_new(hammer, &late->operations[i])) {
            return false;
        }
        late->begun_ms[i] = loop_boot_ms_now();
        (void)operation_finish(&late->operations[i]); /* try_single() has seen that such calls end */
    }
    return true;
}

static void late_wait(struct hammer *hammer, int64_t due_ms)
{
    for (int64_t left; (left = due_ms - loop_boot_ms_now()) > 0;) {
        progress_show(hammer->ctl, "late repeats: %lld s to go", (long long)(left / 1000));
        target_wait(&hammer->target, left < 1000 ? left : 1000);
    }
}

static bool late_repeat(struct hammer *hammer, struct late *late, struct lateness *out)
{
    for (size_t i = 0; i < LATE_OPERATIONS; i++) {
        struct operation *operation = &late->operations[i];
        int64_t effects;

        late_wait(hammer, late->begun_ms[i] + out->after_ms);
        if (!operation_rebase(operation)) {
            return false;
        }
        (void)operation_finish(operation); /* a refusal is an answer too: the count decides */
        int64_t after_ms = loop_boot_ms_now() - late->begun_ms[i];

        if (!operation_effects(operation, &effects)) {
            return false;
        }
        out->most_ms = after_ms > out->most_ms ? after_ms : out->most_ms;
        out->operations++;
        out->calls += operation->calls;
        out->again += effects > 0;
    }
    return true;
}

/* Sends all first calls before the first repeat, so that the trial takes no longer than the longest wait. */
static bool try_late(struct hammer *hammer)
{
    struct late *late = arena_array(&hammer->ctl->arena, LATE_POINTS, sizeof(*late));
    struct evidence *e = &hammer->evidence;
    bool good = true;

    for (size_t i = 0; good && hammer->late_ms > 0 && i < LATE_POINTS; i++) {
        e->late[e->late_count++].after_ms = hammer->late_ms >> (LATE_POINTS - 1 - i);
        good = late_begin(hammer, &late[i]);
    }
    for (size_t i = 0; good && i < e->late_count; i++) {
        good = late_repeat(hammer, &late[i], &e->late[i]);
    }
    return good;
}

struct class_wait {
    struct effect_of_call effect;
    struct loop *loop;
    bool is_done;
};

static void on_class(struct effect_of_call *effect)
{
    struct class_wait *wait = container_of(effect, struct class_wait, effect);

    wait->is_done = true;
    loop_stop(wait->loop);
}

/* Returns the declared class of a call with these arguments: a class may depend on them. */
static enum effect declared_class(struct hammer *hammer)
{
    struct class_wait wait = {
        .effect = {.tool = hammer->tool, .args = hammer->args, .arena = &hammer->ctl->arena, .done = on_class},
        .loop = hammer->target.loop};

    effect_of_call(wait.loop, &wait.effect);
    while (!wait.is_done) {
        loop_run(wait.loop);
    }
    return wait.effect.effect;
}

bool hammer_run(struct hammer *hammer)
{
    bool good;

    hammer->run = uuid_v7(loop_wall_ms(hammer->target.loop));
    hammer->effect = declared_class(hammer);
    hammer->evidence.has_probe = hammer->tool->has_probe;
    hammer->evidence.tells_apart = true;
    good = find_counter(hammer);
    for (int trial = TRIAL_SINGLE; good && trial < TRIAL_COUNT; trial++) {
        good = hammer_rounds(hammer, (enum trial)trial);
    }
    good = good && try_late(hammer);
    progress_clear(hammer->ctl);
    return good;
}
