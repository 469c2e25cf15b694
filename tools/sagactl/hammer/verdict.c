/* See verdict.h. The rules say what each class needs, and what refutes it. */
#include "tools/sagactl/hammer/verdict.h"

#include "base/instant.h"

static const struct {
    const char *name, *text;
} trials[TRIAL_COUNT] = {
#define X(id, name, text) [id] = {name, text},
    TRIAL_MAP(X)
#undef X
};

const char *trial_name(enum trial trial)
{
    CHECK((unsigned)trial < TRIAL_COUNT);
    return trials[trial].name;
}

const char *trial_text(enum trial trial)
{
    CHECK((unsigned)trial < TRIAL_COUNT);
    return trials[trial].text;
}

struct judge {
    const struct evidence *evidence;
    const struct declared *declared;
    struct arena *arena;
    struct verdict *out;
};

static const struct tally *tally_of(const struct judge *j, enum trial trial)
{
    return &j->evidence->tallies[trial];
}

static struct slice duration(const struct judge *j, int64_t ms)
{
    char text[INSTANT_TEXT_BYTES];

    duration_text(ms, text);
    return arena_slice(j->arena, slice_of(text));
}

static struct claim claim(enum shown shown, struct slice why)
{
    return (struct claim){shown, why};
}

static void exceeds(struct judge *j, struct slice what)
{
    CHECK(j->out->excess_count < EXCESS_MAX);
    j->out->excess[j->out->excess_count++] = what;
}

static void note(struct judge *j, struct slice what)
{
    CHECK(j->out->note_count < EXCESS_MAX);
    j->out->notes[j->out->note_count++] = what;
}

/* Finds, among the repeats under one key, the trial in which an operation took effect more than once; TRIAL_COUNT:
 * there is none. */
static enum trial doubled(const struct judge *j)
{
    static const enum trial repeats[] = {TRIAL_REPEATED, TRIAL_AT_ONCE, TRIAL_CUT};

    for (size_t i = 0; i < COUNT_OF(repeats); i++) {
        if (tally_of(j, repeats[i])->most > 1) {
            return repeats[i];
        }
    }
    return TRIAL_COUNT;
}

static struct slice doubled_sentence(const struct judge *j, enum trial trial)
{
    const struct tally *tally = tally_of(j, trial);

    return arena_printf(j->arena, "%s: %u operations had %lld effects", trials[trial].text, tally->operations,
                        (long long)tally->effects);
}

/* Returns what holds against every class; SHOWN: nothing does. */
static struct claim any_class(const struct judge *j)
{
    const struct tally *single = tally_of(j, TRIAL_SINGLE);

    if (single->most > 1) {
        return claim(REFUTED, arena_printf(j->arena, "a single call took effect %lld times", (long long)single->most));
    }
    if (single->refused > 0) {
        return claim(REFUTED, SLICE("an answer that means \"no effect\" was given to a call that took effect"));
    }
    for (int trial = TRIAL_SINGLE; trial <= TRIAL_CUT && j->evidence->tells_apart; trial++) {
        if (j->evidence->tallies[trial].lost > 0) {
            return claim(REFUTED, SLICE("an operation was answered as completed and had no effect"));
        }
    }
    if (!j->evidence->tells_apart && j->evidence->counter != COUNTER_ANSWERS && single->effects > 0) {
        return claim(NOT_SHOWN, SLICE("the counter does not rise by one with each new operation: put {unique} into a "
                                      "text of --args, or name another --count"));
    }
    return claim(SHOWN, SLICE(""));
}

static struct claim claim_read(const struct judge *j)
{
    for (int trial = 0; trial < TRIAL_COUNT; trial++) {
        if (j->evidence->tallies[trial].effects > 0) {
            return claim(REFUTED, SLICE("a call takes effect"));
        }
    }
    if (j->evidence->counter == COUNTER_ANSWERS) {
        return claim(NOT_SHOWN, SLICE("nothing counts the effects; name a --count"));
    }
    return claim(SHOWN, SLICE("the counter never rose"));
}

static struct claim claim_idempotent(const struct judge *j)
{
    const struct tally *other = tally_of(j, TRIAL_OTHER_KEY);
    enum trial trial = doubled(j);

    if (trial != TRIAL_COUNT) {
        return claim(REFUTED, doubled_sentence(j, trial));
    }
    if (other->most > 1 && !j->declared->keeps_keys) { /* sagad repeats a call under its key */
        return claim(REFUTED, arena_printf(j->arena, "%s took effect again", trials[TRIAL_OTHER_KEY].text));
    }
    if (j->out->forgot_ms > 0) {
        return claim(REFUTED, arena_printf(j->arena, "a repeat after %.*s took effect again",
                                           SLICE_ARG(duration(j, j->out->forgot_ms))));
    }
    if (j->evidence->counter == COUNTER_ANSWERS) {
        return claim(NOT_SHOWN, SLICE("only a counter can show it; name a --count"));
    }
    return claim(SHOWN, j->declared->keeps_keys ? SLICE("the same call took effect once: the barrier keeps its key")
                                                : SLICE("the same arguments took effect once, under whatever key"));
}

static struct claim claim_keyed(const struct judge *j)
{
    enum trial trial = doubled(j);

    if (trial != TRIAL_COUNT) {
        return claim(REFUTED, doubled_sentence(j, trial));
    }
    if (j->out->window_ms == 0) {
        return j->out->forgot_ms > 0 ? claim(REFUTED, arena_printf(j->arena, "a repeat after %.*s took effect again",
                                                                   SLICE_ARG(duration(j, j->out->forgot_ms))))
                                     : claim(NOT_SHOWN, SLICE("no late repeat was sent; give --late a time"));
    }
    return claim(SHOWN,
                 arena_printf(j->arena, "with \"window\" of at most %.*s", SLICE_ARG(duration(j, j->out->window_ms))));
}

static struct claim claim_checked(const struct judge *j)
{
    const struct evidence *e = j->evidence;

    if (!e->has_probe) {
        return claim(NOT_SHOWN, SLICE("the tool has no `probe`"));
    }
    if (e->probe_said_absent > 0) {
        return claim(REFUTED, arena_printf(j->arena,
                                           "the probe said absent %.*s after a call that had taken effect; a longer "
                                           "`visibility` may help",
                                           SLICE_ARG(duration(j, e->probe_unseen_ms))));
    }
    if (e->probe_said_done > 0) {
        return claim(REFUTED, SLICE("the probe said completed, and the call had not taken effect"));
    }
    if (e->probes == 0 || e->probe_unsure > 0) {
        return claim(NOT_SHOWN, arena_printf(j->arena, "the probe did not say what became of %u of %u calls",
                                             e->probe_unsure, e->probes));
    }
    return claim(SHOWN, arena_printf(j->arena, "the probe was right each of %u times", e->probes));
}

static void find_window(struct judge *j)
{
    const struct evidence *e = j->evidence;

    for (size_t i = 0; i < e->late_count; i++) {
        CHECK(i == 0 || e->late[i].after_ms > e->late[i - 1].after_ms);
        if (e->late[i].again > 0) {
            j->out->forgot_ms = e->late[i].most_ms;
            return;
        }
        j->out->window_ms = e->late[i].operations > 0 ? e->late[i].after_ms : j->out->window_ms;
    }
}

static void find_claims(struct judge *j)
{
    struct claim any = any_class(j);
    struct claim *claims = j->out->claims;

    claims[EFFECT_READ] = claim_read(j);
    claims[EFFECT_IDEMPOTENT] = claim_idempotent(j);
    claims[EFFECT_KEYED] = claim_keyed(j);
    claims[EFFECT_CHECKED] = claim_checked(j);
    claims[EFFECT_ONCE] = claim(SHOWN, SLICE("it is never called again"));
    for (int effect = 0; effect < EFFECT_COUNT && any.shown != SHOWN; effect++) {
        if (effect != EFFECT_READ && claims[effect].shown != REFUTED &&
            (effect != EFFECT_ONCE || any.shown == REFUTED)) {
            claims[effect] = any;
        }
    }
    /* A counter that never rose may be blind. Only a tool that is said to read is expected to leave it as it was. */
    for (int effect = 0; effect < EFFECT_COUNT && tally_of(j, TRIAL_SINGLE)->effects == 0; effect++) {
        if (effect != EFFECT_READ && effect != EFFECT_ONCE && claims[effect].shown == SHOWN) {
            claims[effect] = claim(NOT_SHOWN, SLICE("no call was seen to take effect"));
        }
    }
    if (!j->evidence->tells_apart && j->evidence->counter == COUNTER_ANSWERS) {
        static const enum effect need[] = {EFFECT_IDEMPOTENT, EFFECT_KEYED};

        for (size_t i = 0; i < COUNT_OF(need); i++) {
            if (claims[need[i]].shown == SHOWN) {
                claims[need[i]] = claim(NOT_SHOWN, SLICE("the results of two operations are the same, so they cannot "
                                                         "count effects; name a --count"));
            }
        }
    }
}

/* --- what is declared --- */

static void check_window(struct judge *j)
{
    const struct verdict *v = j->out;

    if (v->forgot_ms > 0 && j->declared->window_ms > v->window_ms) {
        exceeds(j, arena_printf(j->arena,
                                "`key.window` is %.*s, and a repeat after %.*s took effect again; declare at most %.*s",
                                SLICE_ARG(duration(j, j->declared->window_ms)), SLICE_ARG(duration(j, v->forgot_ms)),
                                SLICE_ARG(duration(j, v->window_ms))));
    } else if (j->declared->window_ms > v->window_ms && j->declared->believe_window) {
        note(j, arena_printf(j->arena, "`key.window` is %.*s; what is beyond %.*s was not tried, and is believed",
                             SLICE_ARG(duration(j, j->declared->window_ms)), SLICE_ARG(duration(j, v->window_ms))));
    } else if (j->declared->window_ms > v->window_ms) {
        exceeds(j, arena_printf(j->arena,
                                "`key.window` is %.*s, and repeats were tried up to %.*s only; give --late the whole "
                                "window, or take the receiver's word with --believe-window",
                                SLICE_ARG(duration(j, j->declared->window_ms)), SLICE_ARG(duration(j, v->window_ms))));
    }
}

static void check_undo(struct judge *j)
{
    const struct tally *first = tally_of(j, TRIAL_UNDO_FIRST);

    if (j->declared->voids_key && first->operations == 0) {
        exceeds(j, SLICE("`voids_key` is declared, and undoing before the call could not be tried"));
    } else if (j->declared->voids_key && first->effects > 0) {
        exceeds(j, arena_printf(j->arena,
                                "`voids_key` is declared, and %lld of %u calls took effect after they had been undone",
                                (long long)first->effects, first->operations));
    }
    if (j->declared->tolerates_absent && j->evidence->undo_refused > 0) {
        exceeds(j, arena_printf(j->arena,
                                "`tolerates_absent` is declared, and %u of %u undos of what was not there did not "
                                "complete",
                                j->evidence->undo_refused, first->operations));
    }
    if (tally_of(j, TRIAL_UNDO_TWICE)->most > 1) {
        exceeds(j, SLICE("undoing twice under one key took effect twice"));
    }
}

static void check_declared(struct judge *j)
{
    const struct claim *own = &j->out->claims[j->declared->effect];

    if (own->shown != SHOWN) {
        exceeds(j, arena_printf(j->arena, "`effect` is \"%s\", %s: %.*s", effect_name(j->declared->effect),
                                own->shown == REFUTED ? "and that was seen to be wrong" : "and that was not seen",
                                SLICE_ARG(own->why)));
    } else if (j->declared->effect == EFFECT_KEYED) {
        check_window(j);
    }
    if (j->declared->has_undo) {
        check_undo(j);
    }
    if (j->declared->has_settles && j->evidence->settled > 0) {
        exceeds(j, arena_printf(j->arena,
                                "`key.settles` names a status that %u repeats got although their operation "
                                "had taken effect",
                                j->evidence->settled));
    }
}

static void find_notes(struct judge *j)
{
    const struct tally *other = tally_of(j, TRIAL_OTHER_ARGS);
    uint32_t refused = 0, unanswered = 0;

    for (int trial = 0; trial < TRIAL_COUNT; trial++) {
        refused += trial == TRIAL_SINGLE ? 0 : j->evidence->tallies[trial].refused;
        unanswered += j->evidence->tallies[trial].unanswered;
    }
    if (other->most > 1 && j->out->claims[EFFECT_IDEMPOTENT].shown != SHOWN) {
        note(j, SLICE("other arguments under the same key took effect too: the receiver should refuse them"));
    }
    if (refused > 0) {
        note(j, arena_printf(j->arena,
                             "%u repeats were refused although their operation had taken effect: give them "
                             "the first answer again, else a lost answer needs a probe or a person",
                             refused));
    }
    if (unanswered > 0) {
        note(j, arena_printf(j->arena, "%u operations got no answer that settles them, however often they were sent",
                             unanswered));
    }
    if (j->evidence->counter == COUNTER_ANSWERS) {
        note(j, SLICE("effects were counted by the results of the answers: a receiver that acts again and repeats its "
                      "first answer is not seen. Name a --count"));
    }
}

/* Says what the author of the definition does now. */
static struct slice next_step(const struct judge *j)
{
    static const enum effect by_worth[] = {EFFECT_READ, EFFECT_IDEMPOTENT, EFFECT_KEYED, EFFECT_CHECKED, EFFECT_ONCE};

    if (j->out->excess_count == 0) {
        return SLICE("`sagactl apply` it: the definition says what the receiver does");
    }
    if (j->evidence->counter == COUNTER_ANSWERS || !j->evidence->tells_apart) {
        return SLICE("name a --count that rises by one with each operation, and run this again");
    }
    for (size_t i = 0; i < COUNT_OF(by_worth); i++) {
        if (j->out->claims[by_worth[i]].shown == SHOWN && j->out->claims[j->declared->effect].shown != SHOWN) {
            return arena_printf(j->arena,
                                "declare \"effect\": \"%s\", or mend the receiver, and run this again: see "
                                "schema/declare.md",
                                effect_name(by_worth[i]));
        }
    }
    return SLICE("declare less, as each line above says, or mend the receiver, and run this again: see "
                 "schema/declare.md");
}

void verdict_of(const struct evidence *evidence, const struct declared *declared, struct arena *arena,
                struct verdict *out)
{
    struct judge j = {evidence, declared, arena, out};

    *out = (struct verdict){.window_ms = 0};
    find_window(&j);
    find_claims(&j);
    check_declared(&j);
    find_notes(&j);
    out->next = next_step(&j);
}
