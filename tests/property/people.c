/* See run.h. People answer whether or not they are asked, and wisely or not, but they tell the truth about what
 * happened. */
#include "tests/property/run.h"

static enum operator_action choose_action(const struct run *run, unsigned allowed, struct chance *chance)
{
    static const enum operator_action kind[] = {OPERATOR_RESOLVE, OPERATOR_RETRY, OPERATOR_SKIP, OPERATOR_WAIVE,
                                                OPERATOR_COMPENSATE};
    enum operator_action action = (enum operator_action)chance_below(chance, OPERATOR_ACTION_COUNT);

    if (action == OPERATOR_ABANDON && chance_percent(chance, 80)) {
        action = OPERATOR_RESOLVE;
    }
    if (run->is_kind && chance_percent(chance, 80)) {
        action = OPERATOR_ABANDON;
        for (size_t i = COUNT_OF(kind); i-- > 0;) {
            action = allowed & BIT(kind[i]) ? kind[i] : action;
        }
    }
    return action;
}

static void wait_for(struct run *run, const struct thing *thing)
{
    if (thing->lands_ms > run->now_ms) {
        run->now_ms = thing->lands_ms;
        world_land(run);
    }
}

/* Tells the truth about an operation, as far as a person can know it. Returns true when the person also undoes its step
 * by hand. */
static bool tell_truth(struct run *run, uint32_t step, enum direction direction, struct chance *chance,
                       struct saga_input *input)
{
    struct node *node = &run->judge.nodes[step];

    wait_for(run, &node->things[DIRECTION_DO]);
    wait_for(run, &node->things[DIRECTION_UNDO]);
    if (node_is_call(node) && world_stands(run, step) && chance_percent(chance, 25)) {
        input->verdict.undone = true;
        return true;
    }
    if (node->things[direction].effects == 0) {
        input->verdict.again = chance_percent(chance, 40);
        return false;
    }
    input->verdict.happened = true;
    input->verdict.result = SLICE("{\"id\":\"r-1\"}");
    if (direction == DIRECTION_DO) {
        input->verdict.undo_args =
            world_outcome(run, SAGA_INPUT_SETTLED, step, direction, 1, world_completed(run)).settled.undo_args;
    }
    return false;
}

/* Feeds a verdict. An effect that is undone by hand is gone before the person says so. */
static enum err_code feed_verdict(struct run *run, struct thing *thing, struct thing *undo, bool by_hand,
                                  struct saga_input input)
{
    const struct thing before = *undo;
    enum err_code code;

    if (by_hand) {
        undo->effects++;
        undo->first_ms = run->now_ms;
    }
    code = run_feed(run, input);
    if (code != ERR_OK) {
        *undo = before;
    } else if (input.verdict.again) {
        thing->sends = 0; /* the person has ruled out what was sent before */
    }
    return code;
}

/* Gives any verb, wise or not, for the open question. */
void person_decides(struct run *run, struct chance *chance)
{
    uint32_t step = run->live.escalation.step;
    enum direction direction = run->live.escalation.direction;
    struct saga_input input = {.type = SAGA_INPUT_OPERATOR};
    unsigned allowed = saga_escalation_actions(&run->live);
    struct thing nothing = {0}, *thing = step == STEP_NONE ? &nothing : world_thing(run, step, direction);
    enum took_effect took_effect = step == STEP_NONE             ? TOOK_EFFECT_NO
                                   : direction == DIRECTION_UNDO ? step_undo(&run->live.steps[step])->took_effect
                                                                 : run->live.steps[step].forward.took_effect;
    enum operator_action action = choose_action(run, allowed, chance);
    bool by_hand = false;

    if (!run->live.escalation.number) {
        return;
    }
    wait_for(run, thing);
    input.verdict.action = action;
    input.verdict.escalation = run->live.escalation.number - (chance_percent(chance, 3) ? 64 : 0);
    input.verdict.round = saga_case_round(&run->live);
    input.verdict.actor = SLICE("ann");
    input.verdict.note = SLICE("looked it up");
    if (action == OPERATOR_RESOLVE && step != STEP_NONE) {
        by_hand = tell_truth(run, step, direction, chance, &input);
    }
    if (action == OPERATOR_RETRY) {
        input.verdict.accept_double = chance_percent(chance, 40);
        if (took_effect == TOOK_EFFECT_NO && chance_percent(chance, 60)) {
            input.verdict.args = SLICE("{\"n\":3,\"id\":\"by-hand\"}");
        }
    }
    if (feed_verdict(run, thing, step == STEP_NONE ? &nothing : world_thing(run, step, DIRECTION_UNDO), by_hand,
                     input) != ERR_OK) {
        return;
    }
    run->tally->actions[action]++;
    if (!(allowed & BIT(action))) {
        run_violate(run, "a person may not %s, and did", operator_action_name(action));
    }
    if (action == OPERATOR_RETRY && took_effect == TOOK_EFFECT_MAYBE && input.verdict.accept_double) {
        thing->doubled = true;
    } else if (action == OPERATOR_RETRY && took_effect != TOOK_EFFECT_MAYBE) {
        thing->sends = 0; /* an operation that surely had no effect may leave again when a person says so */
    }
}

/* Tells the outcome of an operation, whether or not it was asked for. */
void person_volunteers(struct run *run, uint32_t step, enum direction direction, struct chance *chance)
{
    const struct step *s = &run->live.steps[step];
    struct saga_input input = {.type = SAGA_INPUT_OPERATOR};
    uint64_t seq = run->judge.seq;
    bool by_hand, is_out;

    if (!node_is_call(&run->judge.nodes[step]) || run->judge.nodes[step].intents[direction] == 0) {
        return;
    }
    input.verdict.action = OPERATOR_RESOLVE;
    input.verdict.actor = SLICE("ann");
    input.verdict.note = SLICE("looked it up");
    input.verdict.key = direction == DIRECTION_UNDO ? step_undo(s)->key : s->forward.key;
    by_hand = tell_truth(run, step, direction, chance, &input);
    is_out = run->judge.nodes[step].flies[direction];
    if (feed_verdict(run, world_thing(run, step, direction), world_thing(run, step, DIRECTION_UNDO), by_hand, input) ==
        ERR_OK) {
        run->tally->volunteered += run->judge.seq > seq;
        if (is_out) {
            run_violate(run, "a person decides %s while a call of it is under way", run->judge.nodes[step].id);
        }
    }
}

void person_signals(struct run *run, uint32_t name, struct chance *chance)
{
    struct saga_input input = {.type = SAGA_INPUT_SIGNAL};
    bool again = run->signalled[name] > 0 && chance_percent(chance, 15);
    uint32_t number = again ? run->signalled[name] : run->signals_sent + 1;
    uint64_t seq = run->judge.seq;
    enum err_code code;

    if (run->judge.signal_count > SIGNALS_KEPT_MAX - 2) {
        return;
    }
    input.signal.name = name ? SLICE("g1") : SLICE("g0");
    input.signal.payload = arena_printf(&run->kept, "{\"p\":%u}", (unsigned)number);
    input.signal.id = arena_printf(&run->kept, "signal-%u-%u", (unsigned)name, (unsigned)number);
    input.signal.actor = SLICE("ann");
    code = run_feed(run, input);
    if (again && run->judge.seq != seq) {
        run_violate(run, "a signal is taken twice");
    }
    if (!again && code == ERR_OK) {
        if (run->judge.seq == seq) {
            run_violate(run, "a signal is lost");
        }
        run->signals_sent = run->signalled[name] = number;
    }
}

void person_approves(struct run *run, uint32_t at, struct chance *chance)
{
    static const enum role roles[] = {ROLE_AGENT, ROLE_OPERATOR, ROLE_ADMIN};
    struct saga_input input = {.type = SAGA_INPUT_DECISION};
    const struct node *node = &run->judge.nodes[at];
    enum role role = run->is_kind ? ROLE_ADMIN : roles[chance_below(chance, 3)];
    bool wrong = !run->is_kind && chance_percent(chance, 10), was_waiting = node->state == IS_WAITING;
    char hash[65];
    uint64_t seq = run->judge.seq;

    digest_hex(&node->hash, hash);
    hash[0] = wrong ? (hash[0] == '0' ? '1' : '0') : hash[0];
    input.decision.approval = node->approval + (chance_percent(chance, 3) ? 1 : 0); /* no approval has that number */
    input.decision.approve = chance_percent(chance, run->is_kind ? 100 : 70);
    input.decision.role = role;
    input.decision.hash = wrong || chance_percent(chance, 50) ? slice_of(hash) : SLICE_NONE;
    input.decision.actor = SLICE("bob");
    input.decision.note = SLICE("seen");
    if (run_feed(run, input) == ERR_OK &&
        (wrong || !was_waiting || role < (node->step->admin_only ? ROLE_ADMIN : ROLE_OPERATOR)) &&
        run->judge.seq != seq) {
        run_violate(run, "%s is decided by somebody who may not", node->id);
    }
}

static bool has_begun(const struct run *run, struct slice tool)
{
    for (uint32_t i = 0; i < run->judge.count; i++) {
        const struct node *node = &run->judge.nodes[i];

        if (node_is_call(node) && slice_is(tool, node->kit->name) && node->state != IS_NOTHING) {
            return true;
        }
    }
    return false;
}

static bool is_under_way(const struct run *run, struct slice tool)
{
    for (uint32_t i = 0; i < run->judge.count; i++) {
        const struct node *node = &run->judge.nodes[i];
        const struct tool *undo = run->live.definition->steps[i].compensate.tool;

        if ((node->flies[DIRECTION_DO] && slice_is(tool, node->kit->name)) ||
            (node->flies[DIRECTION_UNDO] && slice_equal(tool, undo->name))) {
            return true;
        }
    }
    return false;
}

/* Mends a tool. A version of another class is tried only where a call has begun, and must be refused there. */
void person_mends(struct run *run, struct chance *chance)
{
    struct saga_input input = {.type = SAGA_INPUT_MEND};
    const struct definition *definition = run->live.definition;
    bool bad = chance_percent(chance, 30), was_out;
    uint64_t seq = run->judge.seq;

    if (definition->tool_count == 0) {
        return;
    }
    input.mend.tool = definition->tools[chance_below(chance, definition->tool_count)]->name;
    input.mend.version = bad ? SKETCH_VERSION_BAD : 1 + chance_below(chance, 3);
    input.mend.accept_double = chance_percent(chance, 30);
    input.mend.actor = SLICE("ann");
    input.mend.note = SLICE("it asked with POST");
    if (bad && !has_begun(run, input.mend.tool)) {
        return;
    }
    was_out = is_under_way(run, input.mend.tool);
    if (run_feed(run, input) == ERR_OK && run->judge.seq > seq && (bad || was_out)) {
        run_violate(run, "the tool %.*s is mended %s", SLICE_ARG(input.mend.tool),
                    bad ? "into another class" : "while a call of it is under way");
    }
}

/* Time goes by before a release. The engine has the saga look afterwards, because its clocks may stand now, or go on.
 */
void person_holds(struct run *run, struct chance *chance)
{
    const struct definition *definition = run->live.definition;
    bool is_about_all = definition->tool_count == 0 || chance_percent(chance, 50);

    if (run->holds.count > 0) {
        run->now_ms += chance_below(chance, 60000);
        run->holds.count = 0;
    } else {
        run->hold = (struct hold){.number = 1,
                                  .namespace = SLICE("default"),
                                  .kind = is_about_all ? HOLD_NAMESPACE : HOLD_TOOL,
                                  .undo = chance_percent(chance, 40)};
        run->hold.name =
            is_about_all ? SLICE("default") : definition->tools[chance_below(chance, definition->tool_count)]->name;
        run->holds.count = 1;
    }
    (void)run_feed(
        run, (struct saga_input){.type = SAGA_INPUT_TIMER, .timer = {.step = STEP_NONE, .timer = SAGA_TIMER_HOLD}});
}

void person_says(struct run *run, enum saga_input_type type)
{
    struct saga_input input = {.type = type};

    if (type == SAGA_INPUT_ABORT) {
        input.abort.actor = SLICE("ann");
        input.abort.note = SLICE("enough");
    } else if (type == SAGA_INPUT_PAUSE) {
        input.pause.actor = SLICE("ann");
        input.pause.note = SLICE("wait");
    } else if (type == SAGA_INPUT_ESCALATE) {
        input.escalate.actor = SLICE("ann");
        input.escalate.note = SLICE("look at this");
    } else {
        input.resume.actor = SLICE("ann");
        input.resume.note = SLICE("go on");
    }
    (void)run_feed(run, input);
}
