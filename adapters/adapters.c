/* The table of the adapters that are compiled in, and call_settle(), the only way in which a call ends. */
#include "adapters/adapters.h"
#include "adapters/adapter.h"

#include "base/json.h"

static const struct adapter *const adapters[] = {
    &adapter_http, &adapter_exec, &adapter_sql, &adapter_mcp, &adapter_builtin,
};

const struct adapter *adapter_at(size_t index)
{
    return index < COUNT_OF(adapters) ? adapters[index] : NULL;
}

const struct adapter *adapter_find(struct slice name)
{
    for (size_t i = 0; i < COUNT_OF(adapters); i++) {
        if (slice_is(name, adapters[i]->name)) {
            return adapters[i];
        }
    }
    return NULL;
}

void adapter_host_close(struct adapter_host *host)
{
    for (size_t i = 0; i < COUNT_OF(adapters); i++) {
        if (adapters[i]->close) {
            adapters[i]->close(host);
        }
    }
}

static bool json_is_sound(struct slice json)
{
    struct json_limits limits = json_limits_default;

    limits.bytes_max = SIZE_MAX;
    return json_check(json, &limits, NULL) == ERR_OK;
}

/* An adapter that breaks its promise has a bug. This check stops the engine before the bug becomes a second payment. */
static void outcome_verify(const struct call *call)
{
    const struct outcome *outcome = &call->outcome;

    CHECK((unsigned)outcome->kind < OUTCOME_KIND_COUNT);
    CHECK(outcome->kind != OUTCOME_ABSENT); /* only the conditions of a probe can find that */
    CHECK(!outcome->unsent || outcome->kind == OUTCOME_RETRY || outcome->kind == OUTCOME_FAILED);
    CHECK(outcome->kind == OUTCOME_COMPLETED || outcome->error.len > 0);
    INVARIANT(!outcome->result.ptr || json_is_sound(outcome->result));
}

void call_settle(struct call *call)
{
    void (*settled)(struct call * call) = call->settled;

    CHECK(settled); /* NULL: the call was settled before */
    outcome_verify(call);
    call->settled = NULL;
    settled(call);
}
