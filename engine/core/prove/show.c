/* See show.h. */
#include "core/prove/show.h"

#include <stdio.h>

static void write_steps(struct json_writer *w, const char *name, const struct definition *saga, const uint32_t *steps,
                        uint32_t count)
{
    json_array_begin(w, name);
    for (uint32_t i = 0; i < count; i++) {
        json_write_slice(w, NULL, saga->steps[steps[i]].id);
    }
    json_array_end(w);
}

/* Writes what happens in words: of an undo, and of one of two classes, they say so. */
static void write_what(struct json_writer *w, const struct prove_end *end)
{
    const struct prove_point *point = &end->point;
    const char *trouble = prove_trouble_text(point->trouble);
    bool is_undo = point->direction == DIRECTION_UNDO;
    char text[256];

    (void)snprintf(text, sizeof(text), "%s%s%s%s", point->varies && !is_undo ? "as " : "",
                   point->varies && !is_undo ? effect_name(point->effect) : "",
                   point->varies && !is_undo ? ": "
                   : is_undo                 ? "its undo "
                                             : "",
                   is_undo && point->trouble == TROUBLE_UNKNOWN ? "gives no answer" : trouble);
    json_write_text(w, "what", text);
}

static void write_end(struct json_writer *w, const struct definition *saga, const struct prove_end *end)
{
    const struct prove_point *point = &end->point;

    json_object_begin(w, NULL);
    json_write_slice(w, "step", point->step == STEP_NONE ? SLICE_NONE : saga->steps[point->step].id);
    json_write_text(w, "direction", direction_name(point->direction));
    if (point->step != STEP_NONE && saga->steps[point->step].tool && !step_is_group(&saga->steps[point->step])) {
        json_write_text(w, "effect", effect_name(point->effect));
    }
    json_write_text(w, "happens", prove_trouble_name(point->trouble));
    json_write_text(w, "then", prove_answer_name(point->answer));
    write_what(w, end);
    json_write_text(w, "settled", prove_answer_text(point->answer));
    json_write_slice(w, "place", end->place);
    json_write_text(w, "end", saga_status_name(end->status));
    json_write_slice(w, "waits_for", end->waits_for);
    write_steps(w, "undone", saga, end->undone, end->undone_count);
    write_steps(w, "standing", saga, end->standing, end->standing_count);
    json_write_slice(w, "violation", end->violation);
    json_object_end(w);
}

void prove_write(struct json_writer *w, struct slice saga, const struct prove_report *report)
{
    json_object_begin(w, NULL);
    json_write_slice(w, "saga", saga);
    json_write_bool(w, "ok", report->violation_count == 0);
    json_write_i64(w, "violations", report->violation_count);
    json_object_begin(w, "covered");
    json_write_i64(w, "points", report->end_count - 1);
    json_write_i64(w, "plays", report->plays);
    json_write_i64(w, "states", report->states);
    json_write_bool(w, "all_states", !report->bounded);
    json_write_bool(w, "all_points", !report->cut);
    write_steps(w, "unreached", report->definition, report->unreached, report->unreached_count);
    json_object_end(w);
    json_array_begin(w, "ends");
    for (uint32_t i = 0; i < report->end_count; i++) {
        write_end(w, report->definition, &report->ends[i]);
    }
    json_array_end(w);
    json_object_end(w);
}
