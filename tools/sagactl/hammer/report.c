/* See report.h. */
#include "tools/sagactl/hammer/report.h"

#include <stdio.h>
#include <string.h>

#include "base/instant.h"
#include "base/json.h"
#include "tools/sagactl/output.h"

static const char *counter_text(const struct hammer *hammer)
{
    switch (hammer->evidence.counter) {
    case COUNTER_TOOL:
        return arena_printf(&hammer->ctl->arena, "by %.*s", SLICE_ARG(hammer->counter->name)).ptr;
    case COUNTER_PROBE:
        return "by the tool's probe";
    case COUNTER_ANSWERS:
        break;
    }
    return "by the results of the answers";
}

static struct slice duration(struct ctl *ctl, int64_t ms)
{
    char text[INSTANT_TEXT_BYTES];

    duration_text(ms, text);
    return arena_slice(&ctl->arena, slice_of(text));
}

/* --- for people --- */

static void put_row(struct table *table, struct slice what, uint32_t operations, int64_t calls, int64_t effects,
                    bool is_worse)
{
    struct ctl *ctl = table->ctl;
    struct cell *row = table_row(table);

    row[0].text = what;
    row[1].text = arena_printf(&ctl->arena, "%u", operations);
    row[2].text = arena_printf(&ctl->arena, "%lld", (long long)calls);
    row[3].text = arena_printf(&ctl->arena, "%lld", (long long)effects);
    row[3].colour = is_worse ? COLOUR_RED : COLOUR_NONE;
}

static void print_trials(struct hammer *hammer)
{
    static const char *const titles[] = {"WHAT WAS SENT", "OPERATIONS", "CALLS", "EFFECTS", NULL};
    const struct evidence *e = &hammer->evidence;
    struct ctl *ctl = hammer->ctl;
    struct table table;

    table_init(&table, ctl, titles);
    for (int trial = 0; trial < TRIAL_COUNT; trial++) {
        const struct tally *tally = &e->tallies[trial];

        if (tally->operations > 0) {
            struct slice what = slice_of(trial_text((enum trial)trial));

            put_row(&table, what, tally->operations, tally->calls, tally->effects,
                    trial == TRIAL_UNDO_FIRST ? tally->effects > 0 : tally->most > 1);
        }
    }
    for (size_t i = 0; i < e->late_count; i++) {
        const struct lateness *late = &e->late[i];

        if (late->operations > 0) {
            put_row(
                &table,
                arena_printf(&ctl->arena, "the same call again after %.*s", SLICE_ARG(duration(ctl, late->after_ms))),
                late->operations, late->calls, late->operations + late->again, late->again > 0);
        }
    }
    table_print(&table, 2);
    if (e->has_probe) {
        (void)printf("  The probe was asked about %u operations. It was wrong about %u and could not say of %u.\n",
                     e->probes, e->probe_said_absent + e->probe_said_done, e->probe_unsure);
    }
}

static void print_sentence(const char *mark, struct slice sentence)
{
    size_t width = output_width();

    (void)printf("  %s", mark);
    print_wrapped(sentence, 2 + strlen(mark), width > 0 ? width : 10000);
}

static void print_claims(struct ctl *ctl, const struct verdict *verdict)
{
    static const char *const titles[] = {"EFFECT", "MAY BE DECLARED", "BECAUSE", NULL};
    struct table table;

    table_init(&table, ctl, titles);
    for (int effect = 0; effect < EFFECT_COUNT; effect++) {
        const struct claim *claim = &verdict->claims[effect];
        struct cell *row = table_row(&table);

        row[0].text = slice_of(effect_name((enum effect)effect));
        row[1].text = claim->shown == SHOWN ? SLICE("yes") : claim->shown == REFUTED ? SLICE("no") : SLICE("not seen");
        row[1].colour = claim->shown == SHOWN ? COLOUR_GREEN : claim->shown == REFUTED ? COLOUR_RED : COLOUR_YELLOW;
        row[2].text = claim->why;
    }
    table_print(&table, 2);
}

static void print_people(struct hammer *hammer, const struct declared *declared, const struct verdict *verdict)
{
    struct ctl *ctl = hammer->ctl;

    (void)printf("%s%.*s%s at %.*s, effects counted %s\n\n", colour_on(ctl, COLOUR_BOLD), SLICE_ARG(hammer->tool->name),
                 colour_off(ctl, COLOUR_BOLD), SLICE_ARG(receiver_text(&hammer->target.receiver, &ctl->arena)),
                 counter_text(hammer));
    print_trials(hammer);
    (void)printf("\n");
    print_claims(ctl, verdict);
    (void)printf("\n%sDeclared: \"effect\": \"%s\"", colour_on(ctl, COLOUR_BOLD), effect_name(declared->effect));
    if (declared->effect == EFFECT_KEYED) {
        (void)printf(", \"window\": %.*s", SLICE_ARG(duration(ctl, declared->window_ms)));
    }
    (void)printf(". %s%s\n",
                 verdict->excess_count == 0 ? "Nothing was seen against it." : "This is more than what was seen:",
                 colour_off(ctl, COLOUR_BOLD));
    for (size_t i = 0; i < verdict->excess_count; i++) {
        print_sentence("- ", verdict->excess[i]);
    }
    for (size_t i = 0; i < verdict->note_count; i++) {
        print_sentence("Note: ", verdict->notes[i]);
    }
    print_sentence("Next: ", verdict->next);
}

/* --- for programs --- */

static void write_trials(struct json_writer *w, const struct evidence *e)
{
    json_array_begin(w, "trials");
    for (int trial = 0; trial < TRIAL_COUNT; trial++) {
        const struct tally *tally = &e->tallies[trial];

        json_object_begin(w, NULL);
        json_write_text(w, "trial", trial_name((enum trial)trial));
        json_write_i64(w, "operations", tally->operations);
        json_write_i64(w, "calls", tally->calls);
        json_write_i64(w, "effects", tally->effects);
        json_write_i64(w, "most_of_one", tally->most);
        json_write_i64(w, "lost", tally->lost);
        json_write_i64(w, "refused", tally->refused);
        json_write_i64(w, "unanswered", tally->unanswered);
        json_object_end(w);
    }
    json_array_end(w);
    json_array_begin(w, "late");
    for (size_t i = 0; i < e->late_count; i++) {
        json_object_begin(w, NULL);
        json_write_i64(w, "after_ms", e->late[i].after_ms);
        json_write_i64(w, "operations", e->late[i].operations);
        json_write_i64(w, "again", e->late[i].again);
        json_object_end(w);
    }
    json_array_end(w);
    json_object_begin(w, "probe");
    json_write_i64(w, "asked", e->probes);
    json_write_i64(w, "said_absent", e->probe_said_absent);
    json_write_i64(w, "said_completed", e->probe_said_done);
    json_write_i64(w, "unsure", e->probe_unsure);
    json_write_i64(w, "unseen_ms", e->probe_unseen_ms);
    json_object_end(w);
}

static const char *const counter_names[] = {
    [COUNTER_TOOL] = "tool", [COUNTER_PROBE] = "probe", [COUNTER_ANSWERS] = "answers"};
static const char *const shown_names[] = {[SHOWN] = "yes", [NOT_SHOWN] = "not_seen", [REFUTED] = "no"};

static void write_sentences(struct json_writer *w, const char *name, const struct slice *sentences, size_t count)
{
    json_array_begin(w, name);
    for (size_t i = 0; i < count; i++) {
        json_write_slice(w, NULL, sentences[i]);
    }
    json_array_end(w);
}

static void print_programs(struct hammer *hammer, const struct declared *declared, const struct verdict *verdict)
{
    struct json_writer w;
    struct buffer out;

    buffer_init(&out, (size_t)1 << 20);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    char definition[65];

    digest_hex(&hammer->identity, definition);
    json_write_slice(&w, "tool", hammer->tool->name);
    json_write_text(&w, "definition", definition);
    json_write_slice(&w, "against", receiver_text(&hammer->target.receiver, &hammer->ctl->arena));
    json_write_bool(&w, "ok", verdict->excess_count == 0);
    json_object_begin(&w, "declared");
    json_write_text(&w, "effect", effect_name(declared->effect));
    json_write_i64(&w, "window_ms", declared->window_ms);
    json_object_end(&w);
    json_array_begin(&w, "may");
    for (int effect = 0; effect < EFFECT_COUNT; effect++) {
        json_object_begin(&w, NULL);
        json_write_text(&w, "effect", effect_name((enum effect)effect));
        json_write_text(&w, "may", shown_names[verdict->claims[effect].shown]);
        json_write_slice(&w, "why", verdict->claims[effect].why);
        json_object_end(&w);
    }
    json_array_end(&w);
    json_write_i64(&w, "window_ms", verdict->window_ms);
    json_write_i64(&w, "forgot_ms", verdict->forgot_ms);
    write_sentences(&w, "excess", verdict->excess, verdict->excess_count);
    write_sentences(&w, "notes", verdict->notes, verdict->note_count);
    json_write_slice(&w, "next", verdict->next);
    json_write_text(&w, "counted_by", counter_names[hammer->evidence.counter]);
    json_write_i64(&w, "calls", hammer->target.sent);
    write_trials(&w, &hammer->evidence);
    json_object_end(&w);
    CHECK(!out.overflow);
    print_data(hammer->ctl, buffer_slice(&out));
    buffer_fini(&out);
}

void report_print(struct hammer *hammer, const struct declared *declared, const struct verdict *verdict)
{
    switch (hammer->ctl->output) {
    case OUTPUT_DATA:
        print_programs(hammer, declared, verdict);
        return;
    case OUTPUT_NAME:
        for (int effect = 0; effect < EFFECT_COUNT; effect++) {
            if (verdict->claims[effect].shown == SHOWN) {
                (void)printf("%s\n", effect_name((enum effect)effect));
            }
        }
        return;
    case OUTPUT_TABLE:
    case OUTPUT_CSV:
        print_people(hammer, declared, verdict);
        return;
    }
}
