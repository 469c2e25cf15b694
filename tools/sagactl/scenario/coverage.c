/* See coverage.h. */
#include "tools/sagactl/scenario/coverage.h"

#include <string.h>

static bool same_text(struct slice a, struct slice b)
{
    return (!a.ptr && !b.ptr) || (a.ptr && b.ptr && slice_equal(a, b));
}

/* `prove` gives each for_each two elements: a later one counts as the second. */
static bool same_step(struct slice proven, struct slice played)
{
    const char *mark = played.ptr ? memchr(played.ptr, '#', played.len) : NULL;
    size_t before, digits = 0;

    if (same_text(proven, played)) {
        return true;
    }
    if (!mark || !proven.ptr) {
        return false;
    }
    before = (size_t)(mark - played.ptr) + 1;
    while (before + digits < played.len && played.ptr[before + digits] >= '0' && played.ptr[before + digits] <= '9') {
        digits++;
    }
    struct slice rest = {played.ptr + before + digits, played.len - before - digits};

    return proven.len == before + 1 + rest.len && memcmp(proven.ptr, played.ptr, before) == 0 &&
           proven.ptr[before] == '1' && memcmp(proven.ptr + before + 1, rest.ptr, rest.len) == 0;
}

static struct coverage_point *find(struct coverage *coverage, struct slice step, enum direction direction,
                                   enum prove_trouble trouble)
{
    for (size_t i = 0; i < coverage->count; i++) {
        struct coverage_point *point = &coverage->points[i];

        if (point->direction == direction && point->trouble == trouble && same_step(point->step, step)) {
            return point;
        }
    }
    return NULL;
}

void coverage_open(struct coverage *coverage, const struct definition *definition, struct arena *arena)
{
    const struct prove_options options = {0};
    struct prove_report report;

    *coverage = (struct coverage){.definition = definition};
    prove_saga(definition, &options, arena, &report);
    coverage->points = arena_array(arena, report.end_count + 1, sizeof(*coverage->points));
    for (uint32_t i = 0; i < report.end_count; i++) {
        const struct prove_point *point = &report.ends[i].point;
        struct slice step = point->step == STEP_NONE ? SLICE_NONE : report.definition->steps[point->step].id;

        if (point->trouble != TROUBLE_NONE && !find(coverage, step, point->direction, point->trouble)) {
            coverage->points[coverage->count++] =
                (struct coverage_point){step, point->direction, point->trouble, false};
        }
    }
}

void coverage_take(struct coverage *coverage, const struct stage *stage)
{
    for (size_t i = 0; i < stage->struck_count; i++) {
        const struct stage_struck *struck = &stage->struck[i];
        struct coverage_point *point = find(coverage, struck->step, struck->direction, struck->trouble);

        if (point && !point->is_covered) {
            point->is_covered = true;
            coverage->covered_count++;
        }
    }
}
