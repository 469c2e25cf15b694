/* The names of outcomes, both ways, from the one table. */
#include "base/outcome.h"

static const char *const outcome_names[OUTCOME_KIND_COUNT] = {
#define X(id, name) [id] = name,
    OUTCOME_MAP(X)
#undef X
};

bool outcome_is_egress_denied(const struct outcome *outcome)
{
    return outcome->kind == OUTCOME_RETRY && outcome->unsent && slice_is(outcome->error, OUTCOME_EGRESS_DENIED);
}

const char *outcome_name(enum outcome_kind kind)
{
    return outcome_names[kind];
}

bool outcome_parse(struct slice name, enum outcome_kind *out)
{
    for (int i = 0; i < OUTCOME_KIND_COUNT; i++) {
        if (slice_is(name, outcome_names[i])) {
            *out = (enum outcome_kind)i;
            return true;
        }
    }
    return false;
}
