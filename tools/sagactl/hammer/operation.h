/* One operation that is hammered: its key, its arguments, and how often it took effect. */
#ifndef SAGACTL_HAMMER_OPERATION_H
#define SAGACTL_HAMMER_OPERATION_H

#include "tools/sagactl/hammer/hammer.h"

struct operation {
    struct hammer *hammer;
    const struct tool *tool;
    enum effect effect;
    struct slice args, key;
    int64_t base;           /* what the counter showed before */
    uint32_t calls;         /* sent so far */
    uint32_t completed;     /* answers that said so */
    uint32_t failed;        /* answers that meant "no effect" */
    uint32_t settled;       /* of these, with a status of key.settles */
    struct digest *results; /* of the answers, each once */
    size_t result_count;
    struct slice result;       /* of the newest answer that completed it; SLICE_NONE: none did */
    struct slice probe_result; /* of operation_probe(), where the probe said completed */
    struct slice trouble;      /* what the newest answer said that did not; SLICE_NONE */
};

/* A new operation; the counter is read before anything is sent. False: hammer->broken. So of all below. */
MUST_USE bool operation_new(struct hammer *hammer, struct operation *out);
MUST_USE bool operation_with_key(struct operation *first, struct operation *out);  /* the same under another key */
MUST_USE bool operation_with_args(struct operation *first, struct operation *out); /* others under the same key */
MUST_USE bool operation_rebase(struct operation *operation);                       /* count from now on */

/* The operation that undoes it. False: its arguments cannot be rendered, for they need a result that is not there. */
MUST_USE bool operation_undo(struct operation *operation, struct operation *out);

/* Send `count` calls of it at once, the connections cut `cut_ms` after they began (STRIKE_WHOLE: not). */
void operation_send(struct operation *operation, size_t count, int64_t cut_ms);
/* Send it again until an answer says completed or "no effect". False: none did. */
bool operation_finish(struct operation *operation);

/* How often it took effect, after the time that an effect may need to show. */
MUST_USE bool operation_effects(struct operation *operation, int64_t *effects);

/* What the probe says of it, asked again and again until it says completed, or was asked after `patience_ms`.
 * `unseen_ms` is when it was last asked and did not say completed; 0: it did at once. */
enum outcome_kind operation_probe(struct operation *operation, int64_t patience_ms, int64_t *unseen_ms);

#endif
