/* Decides what happens next. Each event is drawn by chance and noted. A fixed script repeats exactly what was noted. In
 * the end everything works. */
#include "tests/property/run.h"

#include <stdio.h>

#define PATIENCE 100 /* turns until everything works */

/* --- looking --- */

static void look(struct run *run)
{
    struct wants wants;

    arena_reset(&run->turn);
    saga_wants(&run->live, &run->turn, &wants);
    CHECK(wants.count <= COUNT_OF(run->wants));
    run->want_count = (uint32_t)wants.count;
    for (uint32_t i = 0; i < run->want_count; i++) {
        run->wants[i] = wants.items[i];
        if (wants.items[i].type == WANT_EVALUATE || wants.items[i].type == WANT_LOCK) {
            run->stale = wants.items[i];
            run->has_stale = true;
        }
    }
    world_send_calls(run);
    judge_rest(run);
}

static uint64_t name_of(const struct run *run, uint32_t step)
{
    return step == STEP_NONE ? 0 : run->judge.nodes[step].name;
}

static uint32_t find_node(const struct run *run, uint64_t name)
{
    for (uint32_t i = 0; i < run->judge.count; i++) {
        if (run->judge.nodes[i].name == name) {
            return i;
        }
    }
    return NODE_NONE;
}

static bool is_numbered(const struct want *want)
{
    return want->type == WANT_EVALUATE || want->type == WANT_LOCK ||
           (want->type == WANT_TIMER && want->step == STEP_NONE);
}

static const struct want *find_want(const struct run *run, const struct event *event)
{
    for (uint32_t i = 0; i < run->want_count; i++) {
        const struct want *want = &run->wants[i];

        if (want->type == event->want && want->direction == event->direction &&
            name_of(run, want->step) == event->name && (!is_numbered(want) || want->number == event->number)) {
            return want;
        }
    }
    return NULL;
}

/* --- what the engine would feed --- */

static void evaluate(struct run *run, const struct want *want, struct chance *chance)
{
    const struct node *node = want->step == STEP_NONE ? NULL : &run->judge.nodes[want->step];
    const struct sketch_saga *root = &run->script->sketch.sagas[0];
    struct saga_input input = {.type = SAGA_INPUT_EVALUATED};
    static const char *const arrays[] = {"[]", "[{\"n\":1}]", "[{\"n\":1},{\"n\":2}]", "[1,null,\"c\"]", "[4,3,2,1]"};

    input.evaluated.what = (enum evaluation)want->number;
    input.evaluated.step = want->step;
    input.evaluated.failed = !run->is_kind && chance_percent(chance, 4);
    input.evaluated.value = SLICE("{\"n\":2}");
    if (input.evaluated.failed) {
        input.evaluated.error = SLICE("it has no length");
    } else if (want->number == EVALUATE_ARGS && node->step->when == WHEN_PROGRAM && node->element == ELEMENT_NONE &&
               chance_percent(chance, 30)) {
        input.evaluated.skipped = true;
    } else if (want->number == EVALUATE_ARGS && node_is_fan(node)) {
        input.evaluated.value = slice_of(node->step->each == EACH_NO_ARRAY ? "1" : arrays[node->step->elements]);
    } else if (want->number == EVALUATE_ARGS && node->step->kind == STEP_SAGA) {
        input.evaluated.value = chance_percent(chance, 95) ? SLICE(SKETCH_INPUT) : SLICE("{\"m\":1,\"t\":true}");
    } else if (want->number == EVALUATE_ARGS && node->step->kind == STEP_SLEEP) {
        input.evaluated.value = chance_percent(chance, 90) ? SLICE("\"20s\"") : SLICE("\"1\"");
    } else if (want->number == EVALUATE_LOCKS) {
        static const char *const keys[] = {"[\"0:2\"]", "[\"0:2\",\"b:2\"]", "[\"0:2\",\"b:2\",\"a:2\"]"};

        input.evaluated.value = slice_of(keys[root->lock_count - 1]);
    }
    input.evaluated.scope =
        node && node->step->kind == STEP_CALL && !node_is_fan(node) && node->step->scope ? SLICE("7") : SLICE_NONE;
    if (want->step == STEP_NONE && want->number == EVALUATE_OUTPUT && root->follower_count > 0) {
        input.evaluated.followers = root->follower_count == 1
                                        ? SLICE("[{\"saga\":\"c0\",\"input\":{\"n\":1},\"business_id\":null}]")
                                        : SLICE("[{\"saga\":\"c0\",\"input\":{\"n\":1},\"business_id\":null},{\"saga\":"
                                                "\"c0\",\"input\":{},\"business_id\":\"f\"}]");
    }
    (void)run_feed(run, input);
}

static void admit(struct run *run, const struct want *want, struct chance *chance)
{
    struct saga_input input = {.type = SAGA_INPUT_ADMITTED, .admitted = {.step = want->step}};
    uint32_t luck = run->is_kind ? 0 : chance_below(chance, 100);
    bool granted;

    if (luck >= 60) {
        input.admitted.admission = luck < 75   ? ADMISSION_REFUSED
                                   : luck < 85 ? ADMISSION_UNASKED
                                   : luck < 95 ? ADMISSION_DONE
                                               : ADMISSION_BLOCKED;
        input.admitted.error = luck < 73   ? SLICE("rate-limited")
                               : luck < 75 ? SLICE("budget-exhausted")
                               : luck < 78 ? SLICE(OUTCOME_EGRESS_DENIED)
                                           : SLICE_NONE;
        input.admitted.result = SLICE("{\"id\":\"r-0\"}");
    }
    /* The precheck may have found an effect of our own, which the same key tells. */
    granted = input.admitted.admission == ADMISSION_GRANTED ||
              (input.admitted.admission != ADMISSION_REFUSED && input.admitted.admission != ADMISSION_UNASKED &&
               run->live.steps[want->step].forward.took_effect == TOOK_EFFECT_MAYBE);
    run->judge.nodes[want->step].admitted = granted ? want->number : 0;
    (void)run_feed(run, input);
}

static void take_lock(struct run *run, const struct want *want, struct chance *chance)
{
    struct saga_input input = {.type = SAGA_INPUT_LOCKED};

    run->now_ms += chance_percent(chance, 30) ? chance_below(chance, 60000) : 0;
    input.locked.key = arena_slice(&run->kept, run->live.locks[want->number].key);
    input.locked.refused = run->live.locks[want->number].fails && !run->is_kind && chance_percent(chance, 30);
    (void)run_feed(run, input);
}

/* Fires a timer early, since clocks differ. Nothing may come of it, but that a turn under a hold sees that the clocks
 * stand: then what was wanted before is no longer due. Returns whether it still is. */
static bool ring_early(struct run *run, const struct saga_input *timer, int64_t due_ms, struct chance *chance)
{
    uint64_t seq = run->judge.seq;

    run->now_ms += chance_below(chance, (uint32_t)(due_ms - run->now_ms));
    world_land(run);
    (void)run_feed(run, *timer);
    if (seq != run->judge.seq && run->holds.count == 0) {
        run_violate(run, "a timer counts before its time");
    }
    return seq == run->judge.seq;
}

static void do_want(struct run *run, const struct want *wanted, struct chance *chance)
{
    const struct want want = *wanted;
    struct saga_input timer = {
        .type = SAGA_INPUT_TIMER,
        .timer = {.step = want.step,
                  .timer = want.step == STEP_NONE ? (enum saga_timer)want.number : SAGA_TIMER_DEADLINE,
                  .direction = want.direction}};
    struct thing *thing;
    uint64_t seq;

    if (want.type == WANT_TIMER && want.due_ms > run->now_ms && chance_percent(chance, 15) &&
        !ring_early(run, &timer, want.due_ms, chance)) {
        return;
    }
    if (want.due_ms > run->now_ms) {
        run->now_ms = want.due_ms + (chance_percent(chance, 10) ? chance_below(chance, 100000) : 0);
        world_land(run);
    }
    switch (want.type) {
    case WANT_CALL:
        thing = world_thing(run, want.step, want.direction);
        if (!thing->has_answer) {
            run_violate(run, "%s is wanted again", run->judge.nodes[want.step].id);
        }
        thing->has_answer = false;
        run->now_ms += chance_below(chance, 300);
        (void)run_feed(run,
                       world_outcome(run, SAGA_INPUT_SETTLED, want.step, want.direction, want.number, thing->answer));
        return;
    case WANT_PROBE:
        (void)run_feed(run, world_outcome(run, SAGA_INPUT_PROBED, want.step, want.direction, want.number,
                                          world_answer_probe(run, want.step, want.direction, chance)));
        return;
    case WANT_ADMIT:
        admit(run, &want, chance);
        return;
    case WANT_TIMER:
        seq = run->judge.seq;
        (void)run_feed(run, timer);
        if (want.step == STEP_NONE && seq == run->judge.seq) {
            run_violate(run, "a timer of the saga is due, and nothing comes of it");
        }
        return;
    case WANT_EVALUATE:
        evaluate(run, &want, chance);
        return;
    case WANT_LOCK:
        take_lock(run, &want, chance);
        return;
    }
}

/* --- what else happens --- */

/* Crashes the engine, which loses all it knew. The next one folds the log and reports interrupted calls. */
static void crash(struct run *run, struct chance *chance)
{
    static struct want calls[COUNT_OF(((struct run *)0)->wants)];
    uint32_t count = 0;

    run_fold_again(run);
    for (uint32_t i = 0; i < run->want_count; i++) {
        if (run->wants[i].type == WANT_CALL) {
            calls[count++] = run->wants[i];
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        struct thing *thing = world_thing(run, calls[i].step, calls[i].direction);

        if (thing->has_answer && !thing->has_late && chance_percent(chance, 30)) {
            thing->has_late = true;
            thing->late = thing->answer;
            thing->late_attempt = calls[i].number;
        }
        thing->has_answer = false;
        if (thing->running) {
            thing->running = false;
            thing->lands_ms =
                run->now_ms + 1; /* the effect lands within the time that the tool promises for its visibility */
        }
        (void)run_feed(run, world_outcome(run, SAGA_INPUT_SETTLED, calls[i].step, calls[i].direction, calls[i].number,
                                          world_trouble(OUTCOME_UNKNOWN, false, "interrupted")));
    }
}

static void late_answers(struct run *run)
{
    for (uint32_t i = 0; i < run->judge.count; i++) {
        for (unsigned d = 0; d < DIRECTION_COUNT; d++) {
            struct thing *thing = &run->judge.nodes[i].things[d];

            if (thing->has_late && thing->late.kind != OUTCOME_RUNNING) {
                thing->has_late = false;
                thing->hidden = false; /* now the effect becomes visible */
                (void)run_feed(run, world_outcome(run, SAGA_INPUT_SETTLED, i, (enum direction)d, thing->late_attempt,
                                                  thing->late));
            }
        }
    }
}

/* Does only a person vouch for this operation? A receiver that knows nothing of it contradicts the person, who is then
 * asked again. */
static bool is_vouched_for(const struct run *run, uint32_t step, enum direction direction)
{
    const struct operation *op =
        direction == DIRECTION_UNDO ? step_undo(&run->live.steps[step]) : &run->live.steps[step].forward;

    return op->state == OP_COMPLETED && op->source == SOURCE_OPERATOR;
}

/* Sends inputs that come too late or make no sense. Nothing wrong may follow from them. */
static void nonsense(struct run *run, uint32_t step, struct chance *chance)
{
    struct saga_input input = {.type = SAGA_INPUT_TIMER};
    enum direction direction = (enum direction)chance_below(chance, DIRECTION_COUNT);
    uint64_t seq = run->judge.seq;
    bool vouched_for = is_vouched_for(run, step, direction);

    switch (chance_below(chance, 4)) {
    case 0:
        input.timer.step = step;
        input.timer.direction = direction;
        (void)run_feed(run, input); /* may be due */
        return;
    case 1:
        input.type = SAGA_INPUT_LOCKED;
        input.locked.key = SLICE("zzz");
        (void)run_feed(run, input);
        break;
    case 2:
        (void)run_feed(run, world_outcome(run, SAGA_INPUT_PROBED, step, direction, 900,
                                          world_trouble(OUTCOME_ABSENT, false, "absent")));
        if (vouched_for) {
            return;
        }
        break;
    default:
        input.type = SAGA_INPUT_SETTLED;
        input.settled.step = step;
        input.settled.direction = direction;
        input.settled.attempt = 900;
        input.settled.outcome = world_completed(run);
        (void)run_feed(run, input);
        break;
    }
    if (seq != run->judge.seq && run->holds.count == 0) {
        run_violate(run, "nonsense was taken for something");
    }
}

/* Can the operation's outcome be contradicted? Either an undo that was given up has happened, or the receiver knows
 * nothing of what a person vouched for. The contradiction goes into the log, and a person is asked. */
static bool is_contradictable(const struct run *run, uint32_t step, enum direction direction)
{
    const struct step *s = &run->live.steps[step];
    bool given_up = direction == DIRECTION_UNDO && s->plan == PLAN_FAILED && step_undo(s)->state == OP_FAILED &&
                    step_undo(s)->attempts > step_undo(s)->other_key_attempts;

    return node_is_call(&run->judge.nodes[step]) && (given_up || is_vouched_for(run, step, direction));
}

/* Finds a contradictable operation, from a place drawn by chance so that it is not always the first. Returns NODE_NONE
 * when there is none. */
static uint32_t find_contradictable(const struct run *run, uint32_t from)
{
    for (uint32_t i = 0; i < run->judge.count; i++) {
        uint32_t at = (from + i) % run->judge.count;

        if (is_contradictable(run, at, DIRECTION_DO) || is_contradictable(run, at, DIRECTION_UNDO)) {
            return at;
        }
    }
    return NODE_NONE;
}

static void contradict(struct run *run, uint32_t step)
{
    enum direction direction = is_contradictable(run, step, DIRECTION_UNDO) ? DIRECTION_UNDO : DIRECTION_DO;

    if (!is_contradictable(run, step, direction)) {
        return; /* a shortened script may name what is no longer there */
    }
    if (is_vouched_for(run, step, direction)) {
        (void)run_feed(run, world_outcome(run, SAGA_INPUT_PROBED, step, direction, 1,
                                          world_trouble(OUTCOME_ABSENT, false, "absent")));
    } else {
        (void)run_feed(run, world_outcome(run, SAGA_INPUT_SETTLED, step, direction,
                                          step_undo(&run->live.steps[step])->attempts,
                                          world_completed_late(run, step, direction)));
    }
}

/* --- events --- */

void event_tell(const struct run *run, const struct event *event)
{
    static const char *const kinds[EVENT_KIND_COUNT] = {"want",
                                                        "crash",
                                                        "late answers",
                                                        "person",
                                                        "person, unasked",
                                                        "abort",
                                                        "pause",
                                                        "a person has it asked",
                                                        "resume",
                                                        "signal",
                                                        "decision",
                                                        "nonsense",
                                                        "an answer that was asked for before",
                                                        "an answer that contradicts",
                                                        "an agent calls",
                                                        "an agent ends the work",
                                                        "a person signs one more off",
                                                        "a tool is registered anew",
                                                        "a day goes by",
                                                        "a tool is mended",
                                                        "a person holds or releases"};
    static const char *const wants[] = {"admit", "call answered", "probe", "timer", "evaluate", "lock"};
    uint32_t node = event->name ? find_node(run, event->name) : NODE_NONE;

    (void)printf("  %s %s%s%s\n", event->kind == EVENT_WANT ? wants[event->want] : kinds[event->kind],
                 node == NODE_NONE ? "" : run->judge.nodes[node].id,
                 event->direction == DIRECTION_UNDO ? " (undo)" : "",
                 event->kind == EVENT_SIGNAL ? event->number ? "g1" : "g0" : "");
}

static void perform(struct run *run, const struct event *event)
{
    struct chance chance = {event->luck};
    uint32_t node = event->name ? find_node(run, event->name) : NODE_NONE;
    const struct want *want;

    if (run->is_told) {
        event_tell(run, event);
    }
    run->tally->events[event->kind]++;
    switch (event->kind) {
    case EVENT_WANT:
        want = find_want(run, event);
        if (want) {
            do_want(run, want, &chance);
        }
        return;
    case EVENT_CRASH:
        crash(run, &chance);
        return;
    case EVENT_LATE:
        late_answers(run);
        return;
    case EVENT_PERSON:
        person_decides(run, &chance);
        return;
    case EVENT_UNASKED:
        if (node != NODE_NONE) {
            person_volunteers(run, node, event->direction, &chance);
        }
        return;
    case EVENT_ABORT:
        person_says(run, SAGA_INPUT_ABORT);
        return;
    case EVENT_ESCALATE:
        person_says(run, SAGA_INPUT_ESCALATE);
        return;
    case EVENT_PAUSE:
        person_says(run, SAGA_INPUT_PAUSE);
        return;
    case EVENT_MEND:
        person_mends(run, &chance);
        return;
    case EVENT_HOLD:
        person_holds(run, &chance);
        return;
    case EVENT_RESUME:
        run->now_ms += chance_below(&chance, 50000);
        person_says(run, SAGA_INPUT_RESUME);
        return;
    case EVENT_SIGNAL:
        person_signals(run, event->number, &chance);
        return;
    case EVENT_DECISION:
        if (node != NODE_NONE && run->judge.nodes[node].approval) {
            person_approves(run, node, &chance);
        }
        return;
    case EVENT_NONSENSE:
        nonsense(run, node == NODE_NONE ? 0 : node, &chance);
        return;
    case EVENT_STALE: /* the answer took its time, and much has happened meanwhile */
        if (run->has_stale) {
            do_want(run, &run->stale, &chance);
        }
        return;
    case EVENT_CONTRADICTION:
        if (node != NODE_NONE) {
            contradict(run, node);
        }
        return;
    case EVENT_CALL:
        agent_calls(run, &chance);
        return;
    case EVENT_COMPLETE:
        agent_ends(run, &chance);
        return;
    case EVENT_BYPASS:
        if (node != NODE_NONE) {
            person_signs(run, node, &chance);
        }
        return;
    case EVENT_REGISTER:
        agent_registers(run, &chance);
        return;
    case EVENT_DAY:
        run->now_ms += chance_percent(&chance, 50) ? 61000 : INT64_C(25) * 3600 * 1000;
        world_land(run);
        return;
    case EVENT_KIND_COUNT:
        break;
    }
    UNREACHABLE();
}

static struct event want_event(const struct run *run, const struct want *want, uint64_t luck)
{
    return (struct event){.kind = EVENT_WANT,
                          .want = want->type,
                          .direction = want->direction,
                          .number = is_numbered(want) ? want->number : 0,
                          .name = name_of(run, want->step),
                          .luck = luck};
}

/* Finds a waiting step of this kind, from a place drawn by chance. */
static uint32_t find_waiting(const struct run *run, enum step_kind kind, uint32_t from)
{
    const struct judge *judge = &run->judge;

    for (uint32_t i = 0; i < judge->count; i++) {
        uint32_t at = (i + from) % judge->count;

        if (judge->nodes[at].state == IS_WAITING && judge->nodes[at].step->kind == kind) {
            return at;
        }
    }
    return NODE_NONE;
}

static bool is_deadline(const struct run *run, const struct want *want)
{
    return want->type == WANT_TIMER && want->due_ms &&
           (want->step == STEP_NONE ? want->number == SAGA_TIMER_DEADLINE
                                    : run->judge.nodes[want->step].state == IS_OPEN);
}

/* Draws a kind event, in which everybody does their part: first what can be done now, then what is due first, then
 * people. */
static bool kind_event(struct run *run, struct chance *chance, struct event *event)
{
    const struct want *next = NULL;
    uint64_t luck = chance_next(chance);
    uint32_t from = chance_below(chance, 1000), waiting;

    *event = (struct event){.kind = run->holds.count > 0 ? EVENT_HOLD : EVENT_PERSON, .luck = luck};
    if (event->kind == EVENT_HOLD) {
        return true;
    }
    if (run->judge.escalations > 0 && chance_percent(chance, 30)) {
        return true;
    }
    for (uint32_t i = 0; i < run->want_count; i++) {
        const struct want *want = &run->wants[(i + from) % run->want_count];

        if (!is_deadline(run, want) && (!next || want->due_ms < next->due_ms)) {
            next = want;
        }
    }
    if (next && (next->due_ms <= run->now_ms || chance_percent(chance, 60))) {
        *event = want_event(run, next, luck);
        return true;
    }
    if (run->judge.is_paused) {
        event->kind = EVENT_RESUME;
        return true;
    }
    if (run->judge.escalations > 0 && chance_percent(chance, 60)) {
        return true;
    }
    waiting = find_waiting(run, STEP_APPROVE, from);
    if (waiting != NODE_NONE) {
        *event = (struct event){.kind = EVENT_DECISION, .name = run->judge.nodes[waiting].name, .luck = luck};
        return true;
    }
    waiting = find_waiting(run, STEP_SIGNAL, from);
    if (waiting != NODE_NONE) {
        *event = (struct event){.kind = EVENT_SIGNAL, .number = run->judge.nodes[waiting].step->signal, .luck = luck};
        return true;
    }
    if (next) {
        *event = want_event(run, next, luck);
    } else if (judge_is_open(&run->judge) && run->judge.escalations == 0) {
        event->kind = run->judge.is_looping ? EVENT_RESUME : run->judge.kind == SAGA_RUN ? EVENT_CALL : EVENT_COMPLETE;
        return true;
    }
    return next || run->judge.escalations > 0;
}

static bool waits_for_signals(const struct run *run)
{
    for (uint32_t i = 0; i < run->judge.count; i++) {
        if (run->judge.nodes[i].step->kind == STEP_SIGNAL) {
            return true;
        }
    }
    return false;
}

static bool has_late_answers(const struct run *run)
{
    for (uint32_t i = 0; i < run->judge.count; i++) {
        if (run->judge.nodes[i].things[DIRECTION_DO].has_late || run->judge.nodes[i].things[DIRECTION_UNDO].has_late) {
            return true;
        }
    }
    return false;
}

/* Finds an operation that a person may know about: it was called in this direction. */
static uint32_t find_called(const struct run *run, enum direction direction, uint32_t from)
{
    for (uint32_t i = 0; i < run->judge.count; i++) {
        uint32_t at = (i + from) % run->judge.count;

        if (run->judge.nodes[at].intents[direction] > 0) {
            return at;
        }
    }
    return NODE_NONE;
}

/* Draws an event of a run with an agent. */
static struct event draw_agent_event(struct run *run, struct chance *chance)
{
    struct event event = {.luck = chance_next(chance)};
    const struct judge *judge = &run->judge;
    uint32_t luck = chance_below(chance, 1000), from = chance_below(chance, 1000), called = NODE_NONE;
    uint32_t contradictable = luck < 240 ? find_contradictable(run, from) : NODE_NONE;
    uint32_t calls = judge->is_failing || judge->is_ended ? 260 : 550;

    if (luck < 35) {
        event.kind = EVENT_CRASH;
    } else if (luck < 85) {
        event.kind = EVENT_LATE;
    } else if (luck < 95) {
        event.kind = EVENT_REGISTER;
    } else if (luck < 105) {
        event.kind = EVENT_DAY;
    } else if (luck < 115) {
        event.kind = EVENT_COMPLETE;
    } else if (luck < 120) {
        event.kind = EVENT_PAUSE;
    } else if (luck < 160 && (judge->is_paused || judge->is_looping)) {
        event.kind = EVENT_RESUME;
    } else if (luck < 200 && judge->count > 0) {
        event.kind = luck < 170 ? EVENT_NONSENSE : EVENT_BYPASS;
        event.name = judge->nodes[from % judge->count].name;
    } else if (contradictable != NODE_NONE) {
        event.kind = EVENT_CONTRADICTION;
        event.name = judge->nodes[contradictable].name;
    } else if (luck < calls && run->agent.calls < CALLS_MAX) {
        event.kind = EVENT_CALL;
    } else if (luck < calls + 40) {
        event.direction = event.luck % 3 == 0 ? DIRECTION_UNDO : DIRECTION_DO;
        called = find_called(run, event.direction, from);
        event.kind = called == NODE_NONE ? EVENT_DAY : EVENT_UNASKED;
        event.name = called == NODE_NONE ? 0 : judge->nodes[called].name;
    } else if (judge->escalations > 0 && (run->want_count == 0 || luck < calls + 120)) {
        event.kind = EVENT_PERSON;
    } else if (run->want_count > 0) {
        event = want_event(run, &run->wants[from % run->want_count], event.luck);
    } else {
        event.kind = EVENT_CALL;
    }
    return event;
}

static struct event draw_event(struct run *run, struct chance *chance)
{
    struct event event = {.luck = chance_next(chance)};
    uint32_t luck = chance_below(chance, 1000), from = chance_below(chance, 1000),
             waiting = find_waiting(run, STEP_APPROVE, from), contradictable = find_contradictable(run, from), called;
    enum direction direction = event.luck % 3 == 0 ? DIRECTION_UNDO : DIRECTION_DO;

    if (luck < 35) {
        event.kind = EVENT_CRASH;
    } else if (luck < 55) {
        event.kind = EVENT_NONSENSE;
        event.name = run->judge.nodes[from % run->judge.count].name;
    } else if (luck < 62) {
        event.kind = EVENT_ABORT;
    } else if (luck < 110) {
        event.kind = EVENT_LATE;
    } else if (luck < (run->judge.is_paused ? 400 : 113)) {
        event.kind = EVENT_RESUME;
    } else if (luck < 120) {
        event.kind = EVENT_PAUSE;
    } else if (luck < 128) {
        event.kind = EVENT_MEND;
    } else if (luck < 134) {
        event.kind = EVENT_ESCALATE;
    } else if (luck < 140) {
        event.kind = EVENT_STALE;
    } else if (luck < (run->holds.count > 0 ? 220 : 150)) {
        event.kind = EVENT_HOLD;
    } else if (luck < 300 && run->judge.is_planned && has_late_answers(run)) {
        event.kind = EVENT_LATE;
    } else if (luck < 180 && contradictable != NODE_NONE) {
        event.kind = EVENT_CONTRADICTION;
        event.name = run->judge.nodes[contradictable].name;
    } else if (luck < 220 && waits_for_signals(run)) {
        event.kind = EVENT_SIGNAL;
        event.number = from % 2;
    } else if (luck >= 880 && (called = find_called(run, direction, from)) != NODE_NONE) {
        event.kind = EVENT_UNASKED;
        event.direction = direction;
        event.name = run->judge.nodes[called].name;
    } else if (luck < 350 && waiting != NODE_NONE) {
        event.kind = EVENT_DECISION;
        event.name = run->judge.nodes[waiting].name;
    } else if (run->judge.escalations > 0 && (run->want_count == 0 || luck < 400)) {
        event.kind = EVENT_PERSON;
    } else if (run->want_count > 0) {
        event = want_event(run, &run->wants[from % run->want_count], event.luck);
    } else {
        (void)kind_event(run, chance, &event);
    }
    return event;
}

void walk(struct run *run)
{
    struct script *script = run->script;
    struct chance chance = chance_of(script->seed, 99, 0), kind = chance_of(script->seed, 55, 0);
    uint32_t at = 0, patience = judge_is_open(&run->judge) ? EVENTS_MAX : PATIENCE;

    for (;;) {
        struct event event;

        look(run);
        if (run->judge.is_ended && (run->judge.kind != SAGA_RUN || run->is_kind)) {
            break;
        }
        if (script->is_fixed ? at < script->event_count : at < patience) {
            event = script->is_fixed             ? script->events[at]
                    : judge_is_open(&run->judge) ? draw_agent_event(run, &chance)
                                                 : draw_event(run, &chance);
            if (!script->is_fixed) {
                script->events[at] = event;
                script->event_count = at + 1;
            }
            at++;
        } else {
            run->is_kind = true;
            if (!kind_event(run, &kind, &event)) {
                run_violate(run, "nobody can do anything any more");
            }
        }
        perform(run, &event);
        if (run->turns > patience * 2 + 60 * run->judge.count) {
            run_violate(run, "it does not end");
        }
    }
    for (uint32_t i = 0; i < 3 && judge_is_open(&run->judge); i++) { /* the answers to earlier calls still come */
        agent_calls(run, &kind);
    }
    for (uint32_t i = 0; i < 3 && run->judge.count > 0; i++) { /* nothing may happen after the end */
        nonsense(run, chance_below(&kind, run->judge.count), &kind);
    }
    late_answers(run);
    person_says(run, SAGA_INPUT_ABORT);
    person_says(run, SAGA_INPUT_PAUSE);
    person_says(run, SAGA_INPUT_RESUME);
    person_signals(run, 0, &kind);
}
