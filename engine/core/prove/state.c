/* Decides whether two plays are in the same state, so that the same can follow: see prove/world.h. */
#include "core/prove/world.h"
#include "core/saga/machine.h"

/* Does the rest of the play depend on a person, who answers later or never? */
static bool is_answered_by_people(enum prove_answer answer)
{
    return answer != ANSWER_NONE && answer != ANSWER_AGAIN && answer != ANSWER_PROBE_DONE &&
           answer != ANSWER_PROBE_ABSENT && answer != ANSWER_LATE;
}

bool prove_world_is_spent(const struct prove_world *w)
{
    const struct operation *op;
    uint32_t step;

    if (w->abort_next || is_answered_by_people(w->point.answer) ||
        ((w->point.step != STEP_NONE || w->point.trouble == TROUBLE_LOCKED) && !w->struck)) {
        return false;
    }
    if (w->point.step == STEP_NONE || w->point.trouble == TROUBLE_DEADLINE) {
        return true;
    }
    step = prove_world_step(w, w->point.step);
    if (step == STEP_NONE) {
        return false;
    }
    op = prove_operation(w, step, w->point.direction);
    return op->state == OP_COMPLETED || op->state == OP_FAILED || op->state == OP_SKIPPED;
}

static void put_operation(struct buffer *out, const struct operation *op)
{
    const uint8_t head[] = {(uint8_t)op->state, (uint8_t)op->took_effect, op->late, op->accepted};
    const uint32_t counts[] = {op->attempts, op->counted, op->unsent, op->probes};

    buffer_put(out, head, sizeof(head));
    if (operation_is_open(op)) { /* operations that are over may have taken any number of attempts */
        buffer_put(out, counts, sizeof(counts));
    }
}

/* Sorts the steps of the saga by their numbers. */
static void sort_steps(const struct prove_world *w, uint32_t *steps)
{
    uint32_t count = w->book_count, *at = arena_array(w->turn, count + 1, sizeof(*at)), n = 0;

    for (uint32_t i = 0; i < count; i++) {
        at[i] = STEP_NONE;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (w->books[i].number < count && at[w->books[i].number] == STEP_NONE) {
            at[w->books[i].number] = i;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (at[i] != STEP_NONE) {
            steps[n++] = at[i];
        }
    }
    for (uint32_t i = 0; i < count && n < count; i++) {
        if (w->books[i].number >= count || at[w->books[i].number] != i) {
            steps[n++] = i;
        }
    }
}

/*
 * Leaves out all times and the order of starting, except in the undo plan, so that two ways to the same state count as
 * one. The outcome of a step that is no longer to be undone does not matter either.
 */
struct digest prove_world_digest(const struct prove_world *w, bool exact)
{
    const struct saga *saga = &w->saga;
    bool is_asked = saga->escalation.number != 0;
    const uint32_t head[] = {saga->phase,
                             saga->end,
                             !is_asked                            ? STEP_NONE - 1
                             : saga->escalation.step == STEP_NONE ? STEP_NONE
                                                                  : w->books[saga->escalation.step].number,
                             saga->escalation.direction,
                             w->decisions,
                             saga->lock_taken,
                             saga->locks_wanted,
                             saga->signal_kept};
    uint32_t *order;
    struct buffer out;
    struct digest digest;

    buffer_init(&out, (size_t)1 << 20);
    buffer_put(&out, head, sizeof(head));
    if (!prove_world_is_spent(w)) {
        const uint32_t point[] = {w->point.step, w->point.direction, w->point.trouble, w->point.answer,
                                  w->struck,     w->healed,          w->abort_next};

        buffer_put(&out, point, sizeof(point));
    }
    for (uint32_t i = 0; i < saga->plan_count; i++) {
        if (prove_world_stands(w, saga->plan[i])) {
            buffer_put(&out, &w->books[saga->plan[i]].number, sizeof(uint32_t));
        }
    }
    arena_reset(w->turn);
    order = arena_array(w->turn, w->book_count + 1, sizeof(*order));
    sort_steps(w, order);
    for (uint32_t k = 0; k < w->book_count; k++) {
        uint32_t i = order[k];
        const struct step *step = &saga->steps[i];
        const uint8_t flags[] = {(uint8_t)step->plan, prove_world_stands(w, i), (uint8_t)step->group_phase};

        if (saga->phase == PHASE_UNDO && !flags[1] && step->plan != PLAN_VERDICT && step->plan != PLAN_READY &&
            step->plan != PLAN_ACTIVE && step->plan != PLAN_FAILED && step->plan != PLAN_WAIVED) {
            buffer_put_char(&out, '.');
            continue;
        }
        if (exact) {
            buffer_put(&out, &step->start_order, sizeof(step->start_order));
        }
        buffer_put(&out, flags, sizeof(flags));
        put_operation(&out, &step->forward);
        put_operation(&out, step_undo(step));
    }
    CHECK(!out.overflow);
    digest = digest_sha256(buffer_slice(&out));
    buffer_fini(&out);
    return digest;
}
