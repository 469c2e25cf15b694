/* What a saga waits for. See waits.h. */
#include "core/show/waits.h"

#include "core/saga/hold.h"
#include "core/saga/machine.h"

static const char *const names[SAGA_WAIT_COUNT] = {
#define X(id, name) [id] = name,
    SAGA_WAIT_MAP(X)
#undef X
};

bool saga_wait_parse(struct slice name, enum saga_wait *out)
{
    for (unsigned i = 0; i < SAGA_WAIT_COUNT; i++) {
        if (slice_is(name, names[i])) {
            *out = (enum saga_wait)i;
            return true;
        }
    }
    return false;
}

static uint32_t wait_of_state(enum op_state state)
{
    return state == OP_RETRYING ? BIT(SAGA_WAIT_RETRY) : state == OP_PROBING ? BIT(SAGA_WAIT_PROBE) : 0;
}

static uint32_t wait_of_kind(enum step_kind kind)
{
    switch (kind) {
    case STEP_SLEEP:
        return BIT(SAGA_WAIT_TIME);
    case STEP_SIGNAL:
        return BIT(SAGA_WAIT_SIGNAL);
    case STEP_APPROVE:
        return BIT(SAGA_WAIT_APPROVAL);
    case STEP_CALL:
    case STEP_SAGA:
        return 0;
    }
    UNREACHABLE();
}

/* Would it begin, or be tried again, if nobody held it? */
static bool may_begin(const struct saga *saga, uint32_t step, enum direction direction)
{
    const struct operation *op = operation_of(saga, step, direction);

    return op->state == OP_RETRYING ||
           (direction == DIRECTION_DO ? op->state == OP_PENDING || step_is_ready(saga, step)
                                      : op->state == OP_PENDING || saga->steps[step].plan == PLAN_READY);
}

static bool is_held(const struct saga *saga, uint32_t step, enum direction direction, struct arena *scratch)
{
    return may_begin(saga, step, direction) &&
           hold_of_call(saga->holds, saga, saga_tool(saga, step, direction)->name, direction, scratch);
}

uint32_t saga_waits(const struct saga *saga)
{
    uint32_t waits = saga->escalation.number ? BIT(SAGA_WAIT_PERSON) : 0;
    struct arena scratch;

    if (saga->phase == PHASE_ENDED) {
        return 0;
    }
    arena_init(&scratch, 256);
    waits |= saga->lock_taken < saga->lock_count ? BIT(SAGA_WAIT_LOCK) : 0;
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        const struct operation *op = &saga->steps[i].forward;

        waits |= wait_of_state(op->state) | wait_of_state(step_undo(&saga->steps[i])->state);
        waits |= op->state == OP_WAITING ? wait_of_kind(saga->definition->steps[i].kind) : 0;
        if (step_has_call(saga, i) && saga->holds && saga->holds->count > 0 &&
            (is_held(saga, i, DIRECTION_DO, &scratch) ||
             (saga->definition->steps[i].compensate.is_set && is_held(saga, i, DIRECTION_UNDO, &scratch)))) {
            waits |= BIT(SAGA_WAIT_HOLD);
        }
    }
    arena_fini(&scratch);
    return waits;
}
