/*
 * Checks that the log says what the machine decides. Each written record is read back at once, and every member must be
 * the same. The state in memory is made from the record, the state after a restart from its text; a member missing in
 * the text would make the two differ.
 */
#include <string.h>

#include "core/definition/definition.h"
#include "core/record/record_fields.h"
#include "tests/sim/world.h"

void __real_record_write(const struct record *record, const struct definition *definition, struct buffer *out);
void __wrap_record_write(const struct record *record, const struct definition *definition, struct buffer *out);

static const struct {
    const char *name;
    size_t at;
} texts[] = {
#define TEXT(member)                                                                                                   \
    {                                                                                                                  \
#member, offsetof(struct record, member)                                                                       \
    }
    TEXT(args),
    TEXT(scope),
    TEXT(error),
    TEXT(detail),
    TEXT(answer),
    TEXT(result),
    TEXT(undo_args),
    TEXT(undo_error),
    TEXT(result_error),
    TEXT(cost_unknown),
    TEXT(saga_name),
    TEXT(namespace),
    TEXT(business_id),
    TEXT(tags),
    TEXT(input),
    TEXT(tools),
    TEXT(sagas),
    TEXT(run),
    TEXT(budget),
    TEXT(loop),
    TEXT(on_timeout),
    TEXT(emission),
    TEXT(conversation_turn),
    TEXT(call_step),
    TEXT(label),
    TEXT(tool_name),
    TEXT(undo_name),
    TEXT(decision),
    TEXT(pointers),
    TEXT(pattern),
    TEXT(signal),
    TEXT(lock),
    TEXT(followers),
    TEXT(reason),
    TEXT(action),
    TEXT(verdict),
    TEXT(actor),
    TEXT(note)
#undef TEXT
};

static bool same_steps(const uint32_t *a, uint32_t a_count, const uint32_t *b, uint32_t b_count)
{
    return a_count == b_count && (a_count == 0 || memcmp(a, b, a_count * sizeof(*a)) == 0);
}

/* Other types of records already say which direction and class they are about. */
static bool has_direction(const struct record *record)
{
    return record_shape(record->type)->may & FIELD_BIT(FIELD_ESCALATION);
}

static bool has_effect(const struct record *record)
{
    return record->conditional || record->type == RECORD_STEP_CALLED;
}

/* Returns the name of a member that differs; NULL when none does. `seq` and `at` are stored beside the text. */
static const char *difference(const struct record *a, const struct record *b)
{
#define DIFFERS(member) (a->member != b->member) ? #member
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        const struct slice *x = (const void *)((const char *)a + texts[i].at),
                           *y = (const void *)((const char *)b + texts[i].at);

        if (!x->ptr != !y->ptr || !slice_equal(*x, *y)) {
            return texts[i].name;
        }
    }
    return DIFFERS(type)
        : DIFFERS(step)
        : DIFFERS(attempt)
        : DIFFERS(generation)
        : DIFFERS(due_ms)
        : DIFFERS(unsent)
        : DIFFERS(maybe)
        : DIFFERS(accept_double)
        : DIFFERS(source)
        : DIFFERS(cost_micros)
        : DIFFERS(version)
        : DIFFERS(tool_version)
        : DIFFERS(undo_version)
        : DIFFERS(repeats)
        : DIFFERS(approval)
        : DIFFERS(escalation)
        : has_direction(a) && a->direction != b->direction
               ? "direction"
           : a->type != RECORD_STEP_CALLED && a->conditional != b->conditional     ? "conditional"
           : has_effect(a) && a->effect != b->effect                               ? "effect"
           : !uuid_equal(&a->key.uuid, &b->key.uuid)                               ? "key"
           : !uuid_equal(&a->earlier_key.uuid, &b->earlier_key.uuid)               ? "earlier_key"
           : memcmp(&a->fingerprint, &b->fingerprint, sizeof(a->fingerprint)) != 0 ? "fingerprint"
           : !same_steps(a->plan, a->plan_count, b->plan, b->plan_count)           ? "plan"
           : !same_steps(a->debts, a->debt_count, b->debts, b->debt_count)         ? "debts"
                                                                                   : NULL;
#undef DIFFERS
}

void __wrap_record_write(const struct record *record, const struct definition *definition, struct buffer *out)
{
    size_t before = out->len;
    struct record again;
    struct arena arena;
    struct err err;
    struct slice text;
    const char *what;

    __real_record_write(record, definition, out);
    if (out->overflow) {
        return; /* a turn that is too large is not written */
    }
    text = (struct slice){out->ptr + before, out->len - before};
    arena_init(&arena, 4096);
    if (record_read(text, definition, &arena, &again, &err) != ERR_OK) {
        world_violate("I9", "what is written cannot be read: %s: %.*s", err.message, SLICE_ARG(text));
    }
    what = difference(record, &again);
    if (what) {
        world_violate("I9", "%s of a record is another when it is read: %.*s", what, SLICE_ARG(text));
    }
    arena_fini(&arena);
}
