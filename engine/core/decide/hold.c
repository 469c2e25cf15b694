/* What a hold means for the calls of a saga: they wait where nothing of them is durable but that they are wanted. */
#include "core/saga/hold.h"
#include "core/saga/machine.h"

bool call_is_held(const struct machine *m, uint32_t step, enum direction direction)
{
    const struct hold_set *holds = m->input->holds;

    return holds && holds->count > 0 && step_has_call(m->saga, step) &&
           hold_of_call(holds, m->saga, saga_tool(m->saga, step, direction)->name, direction, m->turn);
}
