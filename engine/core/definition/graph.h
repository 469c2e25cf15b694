/* The order over the steps of a definition, and its inverse: which step comes before which, through every path. */
#ifndef SAGAD_CORE_DEFINITION_GRAPH_H
#define SAGAD_CORE_DEFINITION_GRAPH_H

#include "core/definition/definition.h"

/* The transitive closure as a bit matrix of step_count rows of whole words. False when there is a cycle;
 * `cycle_step` is on it. */
bool graph_close(const struct step_definition *steps, uint32_t step_count, struct arena *arena,
                 const uint64_t **ancestors, uint32_t *cycle_step);
/* Is there a path from a to b? None in an open saga, and none from or to a member of a group: ask the definition that
 * it is written in. */
bool graph_before(const struct definition *definition, uint32_t a, uint32_t b);

#endif
