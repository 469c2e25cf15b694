/* Writes what really happened to a saga as a scenario, from its durable log. */
#ifndef SAGACTL_SCENARIO_RECORD_H
#define SAGACTL_SCENARIO_RECORD_H

#include "tools/sagactl/scenario/scenario.h"

struct recording {
    struct arena *arena;
    struct slice saga;           /* the saga as `GET /v1/sagas/{id}` answers it */
    const struct slice *entries; /* the entries of its log, in order */
    size_t entry_count;
    /* Names the tool of an operation by its key. SLICE_NONE: nobody knows it. */
    struct slice (*tool_of)(struct recording *recording, struct slice key);
    void *context;
};

/* Writes a file of scenarios with this one. ERR_UNSUPPORTED: an open saga, whose steps are an agent's calls. */
MUST_USE enum err_code recording_write(struct recording *recording, struct buffer *out, struct err *err);

#endif
