/*
 * Shows that the checker finds bugs: the same runs against a machine with one broken rule must fail. The linker puts
 * these functions in front of the machine's own (-Wl,--wrap). PROPERTY_PLANTED names the broken rule.
 */
#include <stdlib.h>
#include <string.h>

#include "core/saga/machine.h"

bool __real_step_undone_before(const struct saga *saga, uint32_t a, uint32_t b);
bool __wrap_step_undone_before(const struct saga *saga, uint32_t a, uint32_t b);
bool __real_step_may_stand(const struct saga *saga, uint32_t step);
bool __wrap_step_may_stand(const struct saga *saga, uint32_t step);
bool __real_locks_are_held(const struct saga *saga);
bool __wrap_locks_are_held(const struct saga *saga);
bool __real_group_lets_begin(const struct saga *saga, uint32_t step);
bool __wrap_group_lets_begin(const struct saga *saga, uint32_t step);
bool __real_escalation_advance(struct machine *m);
bool __wrap_escalation_advance(struct machine *m);
bool __real_wait_advance(struct machine *m);
bool __wrap_wait_advance(struct machine *m);
bool __real_pause_holds(const struct saga *saga);
bool __wrap_pause_holds(const struct saga *saga);

bool __real_step_comes_before(const struct saga *saga, uint32_t a, uint32_t b);
bool __wrap_step_comes_before(const struct saga *saga, uint32_t a, uint32_t b);
enum err_code __real_saga_admits(const struct saga *saga, const struct tool *tool, enum effect effect, uint32_t except);
enum err_code __wrap_saga_admits(const struct saga *saga, const struct tool *tool, enum effect effect, uint32_t except);
const char *__real_saga_over_budget(const struct saga *saga, const struct tool *tool, bool is_emission, bool begins);
const char *__wrap_saga_over_budget(const struct saga *saga, const struct tool *tool, bool is_emission, bool begins);
const struct emission *__real_emissions_find(const struct emissions *emissions, struct slice id);
const struct emission *__wrap_emissions_find(const struct emissions *emissions, struct slice id);
bool __real_operation_is_contradicted(const struct machine *m);
bool __wrap_operation_is_contradicted(const struct machine *m);
void __real_forward_stop(struct machine *m, uint32_t step, struct why why, struct slice actor, struct slice note);
void __wrap_forward_stop(struct machine *m, uint32_t step, struct why why, struct slice actor, struct slice note);

bool __real_call_is_held(const struct machine *m, uint32_t step, enum direction direction);
bool __wrap_call_is_held(const struct machine *m, uint32_t step, enum direction direction);
void __real_hold_end(struct saga *saga, int64_t at_ms);
void __wrap_hold_end(struct saga *saga, int64_t at_ms);

void __real_operation_settled(struct machine *m);
void __wrap_operation_settled(struct machine *m);

static bool is_planted(const char *bug)
{
    static const char *planted;

    if (!planted) {
        planted = getenv("PROPERTY_PLANTED");
        planted = planted ? planted : "";
    }
    return strcmp(planted, bug) == 0;
}

bool __wrap_step_undone_before(const struct saga *saga, uint32_t a, uint32_t b)
{
    if (is_planted("forward")) {
        return __real_step_undone_before(saga, b, a);
    }
    if (is_planted("no_unit") && saga->steps[a].start_order != saga->steps[b].start_order) {
        return saga->steps[a].start_order > saga->steps[b].start_order;
    }
    return __real_step_undone_before(saga, a, b);
}

bool __wrap_step_may_stand(const struct saga *saga, uint32_t step)
{
    return __real_step_may_stand(saga, step) &&
           !(is_planted("forgets_element") && saga->definition->steps[step].element == 1);
}

bool __wrap_locks_are_held(const struct saga *saga)
{
    return is_planted("locks") || __real_locks_are_held(saga);
}

bool __wrap_group_lets_begin(const struct saga *saga, uint32_t step)
{
    return is_planted("all_at_once") || __real_group_lets_begin(saga, step);
}

bool __wrap_escalation_advance(struct machine *m)
{
    return !is_planted("nobody_asked") && __real_escalation_advance(m);
}

bool __wrap_wait_advance(struct machine *m)
{
    return !is_planted("kept_signal") && __real_wait_advance(m);
}

bool __wrap_pause_holds(const struct saga *saga)
{
    return !is_planted("pause") && __real_pause_holds(saga);
}

bool __wrap_step_comes_before(const struct saga *saga, uint32_t a, uint32_t b)
{
    return !(is_planted("order_of_calls") && saga_is_open(saga)) && __real_step_comes_before(saga, a, b);
}

enum err_code __wrap_saga_admits(const struct saga *saga, const struct tool *tool, enum effect effect, uint32_t except)
{
    return is_planted("unsealed") ? ERR_OK : __real_saga_admits(saga, tool, effect, except);
}

const char *__wrap_saga_over_budget(const struct saga *saga, const struct tool *tool, bool is_emission, bool begins)
{
    return is_planted("budget") ? NULL : __real_saga_over_budget(saga, tool, is_emission, begins);
}

const struct emission *__wrap_emissions_find(const struct emissions *emissions, struct slice id)
{
    return is_planted("repeat") ? NULL : __real_emissions_find(emissions, id);
}

bool __wrap_operation_is_contradicted(const struct machine *m)
{
    return !is_planted("late") && __real_operation_is_contradicted(m);
}

void __wrap_forward_stop(struct machine *m, uint32_t step, struct why why, struct slice actor, struct slice note)
{
    if (!is_planted("by_hand") || m->input->type != SAGA_INPUT_OPERATOR || !m->input->verdict.undone) {
        __real_forward_stop(m, step, why, actor, note);
    }
}

bool __wrap_call_is_held(const struct machine *m, uint32_t step, enum direction direction)
{
    return !is_planted("hold") && __real_call_is_held(m, step, direction);
}

void __wrap_hold_end(struct saga *saga, int64_t at_ms)
{
    __real_hold_end(saga, is_planted("hold_clock") ? saga->held_ms : at_ms);
}

void __wrap_operation_settled(struct machine *m)
{
    const struct saga_input *input = m->input;
    struct saga_input failed = *input;

    if (is_planted("denied_fails") && outcome_is_egress_denied(&failed.settled.outcome)) {
        failed.settled.outcome.kind = OUTCOME_FAILED;
        m->input = &failed;
    }
    __real_operation_settled(m);
    m->input = input;
}
