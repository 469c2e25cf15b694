/*
 * What the definition of a tool says about one call: how an adapter sends it, and what its answer means. The engine
 * and `sagactl hammer` send and judge calls with these functions, so that what is hammered is what is sent.
 */
#ifndef SAGAD_RUN_CALL_TERMS_H
#define SAGAD_RUN_CALL_TERMS_H

#include "adapters/adapter.h"
#include "core/definition/definition.h"
#include "run/call/rendering.h"

bool effect_is_safe(enum effect effect); /* the same call twice does no harm */

/*
 * Fill the members of `call` that come from the tool. `effect` is the class of this call. A question is a probe or a
 * precheck. The caller sets the rest: settings, arguments, key, timeout, and whom to tell.
 */
void call_terms_fill(struct call *call, const struct tool *tool, enum effect effect, bool is_question);

/* Name the conditions that an answer is judged by, in the order of `items`. Gives how many there are, at most 4. */
size_t call_terms_conditions(const struct tool *tool, bool is_probe, struct rendering_item *items);

/* Judge `outcome`, which is the adapter's, by the rendered conditions. */
void call_terms_judge(const struct tool *tool, bool is_probe, const struct rendering_item *items, struct arena *arena,
                      struct outcome *outcome);

#endif
