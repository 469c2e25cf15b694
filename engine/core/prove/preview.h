/*
 * What would follow from a verb, played on a copy of the saga before anybody says it.
 *
 * The play assumes that nothing else fails: each later call succeeds, each open question about the same saga is
 * answered by the same verb, a signal comes, an approval is given, no deadline passes. Values are symbolic as in
 * prove.h: what expressions give is not worked out. A step whose condition is still open begins; beside that, each
 * such condition has an end of its own in which it does not hold.
 */
#ifndef SAGAD_CORE_PROVE_PREVIEW_H
#define SAGAD_CORE_PROVE_PREVIEW_H

#include "core/saga/saga.h"

#define PREVIEW_CONDITIONS_MAX 8    /* conditions of a verb that get an end of their own */
#define PREVIEW_STEPS_MAX 10000000u /* for `steps_max`; 1,000 steps undone take about 2,000,000 */

/* What the verb is about. */
struct preview_question {
    uint64_t escalation;           /* the open one; 0: not about an escalation */
    struct op_key key;             /* an operation; nil: not about one operation */
                                   /* neither: about the saga */
    uint64_t steps_max;            /* steps that one verb may look at, in all of its plays */
    const struct saga_input *only; /* the verb of this input alone; NULL: all of them */
};

/*
 * The preview of each verb that the question has, as JSON: {"assumes", "verbs": [...]}. A verb that is refused now has
 * the code and the sentence of its refusal. The saga is not changed. It has to be one of the caller's own, folded from
 * its log, and has to live as long as the preview, which lies in `arena`, does.
 */
struct preview *preview_new(const struct saga *saga, const struct preview_question *question, int64_t now_ms,
                            struct arena *arena, struct buffer *out);
/*
 * Plays on, and looks at about `steps_max` steps: each turn of a saga looks at all of its steps, so that a turn of
 * 1,000 steps takes as long as a hundred turns of 10. True: `out` is whole, and the preview is not to be played any
 * more. A verb looks at ten million steps at most; where its plays need more, an end "waits_for" what is not played.
 */
bool preview_play(struct preview *preview, uint32_t steps_max);

#endif
