/* One operation that is hammered: its key, its arguments, and how often it took effect. */
#ifndef SAGACTL_HAMMER_OPERATION_H
#define SAGACTL_HAMMER_OPERATION_H

#include "tools/sagactl/hammer/hammer.h"

struct operation {
    struct hammer *hammer;
    const struct tool *tool;
    enum effect effect;
    struct slice args, key;
    struct slice undoes;    /* the key of what it undoes, where both tools remember keys in the same place */
    int64_t base;           /* what the counter showed before */
    uint32_t calls;         /* sent so far */
    uint32_t completed;     /* answers that said so */
    uint32_t failed;        /* answers that meant "no effect" */
    uint32_t settled;       /* the number of these with a status of key.settles */
    struct digest *results; /* the results of the answers, each once */
    size_t result_count;
    struct slice result;       /* the result of the newest answer that completed it; SLICE_NONE: none did */
    struct slice probe_result; /* the result of operation_probe(), where the probe said completed */
    struct slice trouble;      /* what the newest answer said that did not; SLICE_NONE */
};

/* Makes a new operation, and reads the counter before anything is sent. This and all below return false when the trials
 * cannot go on; hammer->broken then says why. */
MUST_USE bool operation_new(struct hammer *hammer, struct operation *out);
/* Makes an operation with the same arguments under another key. */
MUST_USE bool operation_with_key(struct operation *first, struct operation *out);
/* Makes an operation with other arguments under the same key. */
MUST_USE bool operation_with_args(struct operation *first, struct operation *out);
/* Counts the effects of the operation from now on. */
MUST_USE bool operation_rebase(struct operation *operation);

/* Makes the operation that undoes this one. Returns false when its arguments cannot be rendered, because they need a
 * result that is not there. */
MUST_USE bool operation_undo(struct operation *operation, struct operation *out);

/* Sends `count` calls of the operation at once, and cuts their connections `cut_ms` after they began (STRIKE_WHOLE: it
 * cuts none). */
void operation_send(struct operation *operation, size_t count, int64_t cut_ms);
/* Sends the operation again until an answer says completed or "no effect". Returns false when none did. */
bool operation_finish(struct operation *operation);

/* Counts how often the operation took effect, after the time that an effect may need to show. */
MUST_USE bool operation_effects(struct operation *operation, int64_t *effects);

/* Asks the probe about the operation, again and again, until the probe says completed or `patience_ms` are over.
 * `unseen_ms` is when the probe was last asked and did not say completed; 0: it said so at once. */
enum outcome_kind operation_probe(struct operation *operation, int64_t patience_ms, int64_t *unseen_ms);

#endif
