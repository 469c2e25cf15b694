/*
 * Searches depth-first along "waits for". The row of a step is the union of the rows of the steps it waits for, and
 * those steps themselves. With at most 256 steps this makes 256 rows of four words, so a closure is cheaper than later
 * searches for paths.
 */
#include "core/definition/graph.h"

#define WORD_BITS 64

enum colour { COLOUR_WHITE, COLOUR_GREY, COLOUR_BLACK };

struct frame {
    uint32_t step, next; /* next: index into the `after` of the step */
};

static size_t graph_row_words(uint32_t step_count)
{
    return (step_count + WORD_BITS - 1) / WORD_BITS;
}

bool graph_close(const struct step_definition *steps, uint32_t step_count, struct arena *arena,
                 const uint64_t **ancestors, uint32_t *cycle_step)
{
    CHECK(step_count <= DEFINITION_STEPS_MAX);
    size_t words = graph_row_words(step_count);
    uint64_t *matrix = arena_array(arena, step_count ? step_count * words : 1, sizeof(*matrix));
    uint8_t colours[DEFINITION_STEPS_MAX] = {0};
    struct frame stack[DEFINITION_STEPS_MAX];

    for (uint32_t root = 0; root < step_count; root++) {
        size_t depth = 0;

        if (colours[root] != COLOUR_WHITE) {
            continue;
        }
        colours[root] = COLOUR_GREY;
        stack[depth++] = (struct frame){root, 0};
        while (depth > 0) {
            struct frame *top = &stack[depth - 1];
            const struct step_definition *step = &steps[top->step];

            if (top->next < step->after_count) {
                uint32_t before = step->after[top->next++];

                CHECK(before < step_count);
                if (colours[before] == COLOUR_GREY) {
                    *cycle_step = before;
                    return false;
                }
                if (colours[before] == COLOUR_WHITE) {
                    colours[before] = COLOUR_GREY;
                    stack[depth++] = (struct frame){before, 0};
                }
                continue;
            }
            uint64_t *row = matrix + top->step * words;

            for (uint32_t i = 0; i < step->after_count; i++) {
                uint32_t before = step->after[i];

                for (size_t w = 0; w < words; w++) {
                    row[w] |= matrix[before * words + w];
                }
                row[before / WORD_BITS] |= UINT64_C(1) << (before % WORD_BITS);
            }
            colours[top->step] = COLOUR_BLACK;
            depth--;
        }
    }
    *ancestors = matrix;
    return true;
}

bool graph_before(const struct definition *definition, uint32_t a, uint32_t b)
{
    uint32_t count = definition->written_count ? definition->written_count : definition->step_count;

    CHECK(a < definition->step_count && b < definition->step_count);
    if (!definition->ancestors || a >= count ||
        b >= count) { /* steps of open sagas and members of groups have no plan */
        return false;
    }
    const uint64_t *row = definition->ancestors + b * graph_row_words(count);

    return (row[a / WORD_BITS] >> (a % WORD_BITS)) & 1;
}
