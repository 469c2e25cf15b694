/* What `sagactl hammer` may say of a receiver, by what was seen; and where a call goes that is sent to another one. */
#include <string.h>

#include "tests/lib/test.h"
#include "tools/sagactl/hammer/strike.h"
#include "tools/sagactl/hammer/verdict.h"

/* An honest receiver of class keyed, counted by a tool. Each case bends it. */
static struct evidence honest(void)
{
    struct evidence e = {.counter = COUNTER_TOOL, .tells_apart = true, .has_probe = true, .probes = 10};

    for (int trial = TRIAL_SINGLE; trial <= TRIAL_CUT; trial++) {
        e.tallies[trial] = (struct tally){.operations = 5, .calls = 10, .effects = 5, .most = 1};
    }
    e.tallies[TRIAL_OTHER_KEY] = (struct tally){.operations = 5, .calls = 10, .effects = 10, .most = 2};
    e.tallies[TRIAL_OTHER_ARGS] = (struct tally){.operations = 5, .calls = 10, .effects = 5, .most = 1};
    e.tallies[TRIAL_UNDO_FIRST] = (struct tally){.operations = 5, .calls = 10};
    e.tallies[TRIAL_UNDO_TWICE] = (struct tally){.operations = 5, .calls = 15, .effects = 5, .most = 1};
    e.late[0] = (struct lateness){.after_ms = 1000, .most_ms = 1010, .operations = 2, .calls = 4};
    e.late[1] = (struct lateness){.after_ms = 60000, .most_ms = 60010, .operations = 2, .calls = 4};
    e.late_count = 2;
    return e;
}

static struct declared as_declared(enum effect effect)
{
    return (struct declared){.effect = effect,
                             .window_ms = 60000,
                             .has_undo = true,
                             .tolerates_absent = true,
                             .voids_key = true,
                             .has_settles = true};
}

static void nothing(struct evidence *e)
{
    (void)e;
}

static void ignores_keys(struct evidence *e)
{
    e->tallies[TRIAL_REPEATED] = (struct tally){.operations = 5, .calls = 25, .effects = 25, .most = 5};
}

static void races(struct evidence *e)
{
    e->tallies[TRIAL_AT_ONCE] = (struct tally){.operations = 5, .calls = 40, .effects = 6, .most = 2};
}

static void acts_again_after_a_cut(struct evidence *e)
{
    e->tallies[TRIAL_CUT] = (struct tally){.operations = 5, .calls = 10, .effects = 6, .most = 2};
}

static void knows_no_keys_but_states(struct evidence *e)
{
    e->tallies[TRIAL_OTHER_KEY] = (struct tally){.operations = 5, .calls = 10, .effects = 5, .most = 1};
}

static void forgets_at_once(struct evidence *e)
{
    e->late[0].again = 1;
    e->late[1].again = 2;
}

static void probe_denies(struct evidence *e)
{
    e->probe_said_absent = 1;
}

static void probe_confirms_nothing(struct evidence *e)
{
    e->probe_said_done = 1;
}

static void probe_is_mute(struct evidence *e)
{
    e->probe_unsure = 10;
}

static void has_no_probe(struct evidence *e)
{
    e->has_probe = false;
    e->probes = 0;
}

static void counter_is_blind(struct evidence *e)
{
    for (int trial = 0; trial < TRIAL_COUNT; trial++) {
        e->tallies[trial].effects = e->tallies[trial].most = 0;
    }
    e->tells_apart = false;
}

static void counter_stands_still(struct evidence *e)
{
    e->tallies[TRIAL_SINGLE].effects = 1;
    e->tells_apart = false;
}

static void only_answers_count(struct evidence *e)
{
    e->counter = COUNTER_ANSWERS;
}

static void answers_are_all_alike(struct evidence *e)
{
    e->counter = COUNTER_ANSWERS;
    e->tells_apart = false;
}

static void acts_twice(struct evidence *e)
{
    e->tallies[TRIAL_SINGLE] = (struct tally){.operations = 5, .calls = 5, .effects = 10, .most = 2};
}

static void denies_what_it_did(struct evidence *e)
{
    e->tallies[TRIAL_SINGLE].refused = 1;
}

static void loses_one(struct evidence *e)
{
    e->tallies[TRIAL_AT_ONCE].lost = 1;
}

static struct arena arena;

TEST(each_class_is_shown_refuted_or_not_seen_by_what_was_counted)
{
    static const enum shown y = SHOWN, n = REFUTED, o = NOT_SHOWN;
    const struct {
        const char *name;
        void (*bend)(struct evidence *e);
        enum shown read, idempotent, keyed, checked, once;
    } cases[] = {
        {"honest", nothing, n, n, y, y, y},
        {"ignores keys", ignores_keys, n, n, n, y, y},
        {"races", races, n, n, n, y, y},
        {"acts again after a cut", acts_again_after_a_cut, n, n, n, y, y},
        {"a state", knows_no_keys_but_states, n, y, y, y, y},
        {"forgets at once", forgets_at_once, n, n, n, y, y},
        {"the probe denies", probe_denies, n, n, y, n, y},
        {"the probe confirms nothing", probe_confirms_nothing, n, n, y, n, y},
        {"the probe is mute", probe_is_mute, n, n, y, o, y},
        {"no probe", has_no_probe, n, n, y, o, y},
        {"a blind counter", counter_is_blind, y, o, o, o, y},
        {"a counter that stands still", counter_stands_still, n, n, o, o, y},
        {"only answers count", only_answers_count, n, n, y, y, y},
        {"answers are alike", answers_are_all_alike, n, n, o, y, y},
        {"acts twice", acts_twice, n, n, n, n, n},
        {"denies what it did", denies_what_it_did, n, n, n, n, n},
        {"loses one", loses_one, n, n, n, n, n},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct evidence evidence = honest();
        struct declared declared = as_declared(EFFECT_KEYED);
        struct verdict verdict;
        enum shown wanted[EFFECT_COUNT] = {cases[i].read, cases[i].idempotent, cases[i].keyed, cases[i].checked,
                                           cases[i].once};

        cases[i].bend(&evidence);
        verdict_of(&evidence, &declared, &arena, &verdict);
        for (int effect = 0; effect < EFFECT_COUNT; effect++) {
            if (verdict.claims[effect].shown != wanted[effect]) {
                fail_msg("%s: %s is %d, not %d: %.*s", cases[i].name, effect_name((enum effect)effect),
                         verdict.claims[effect].shown, wanted[effect], SLICE_ARG(verdict.claims[effect].why));
            }
            assert_true(verdict.claims[effect].why.len > 0);
        }
        /* A definition may declare just what was seen. */
        for (int effect = 0; effect < EFFECT_COUNT; effect++) {
            declared = as_declared((enum effect)effect);
            verdict_of(&evidence, &declared, &arena, &verdict);
            if ((verdict.excess_count == 0) != (wanted[effect] == SHOWN)) {
                fail_msg("%s declared as %s: %zu excesses", cases[i].name, effect_name((enum effect)effect),
                         verdict.excess_count);
            }
        }
    }
}

static bool says(const struct slice *sentences, size_t count, const char *what)
{
    for (size_t i = 0; i < count; i++) {
        if (memmem(sentences[i].ptr, sentences[i].len, what, strlen(what))) {
            return true;
        }
    }
    return false;
}

TEST(a_window_may_be_as_long_as_repeats_were_harmless)
{
    struct evidence evidence = honest();
    struct declared declared = as_declared(EFFECT_KEYED);
    struct verdict verdict;

    verdict_of(&evidence, &declared, &arena, &verdict);
    assert_int_equal(verdict.window_ms, 60000);
    assert_int_equal(verdict.excess_count, 0);

    declared.window_ms = 60001;
    verdict_of(&evidence, &declared, &arena, &verdict);
    assert_true(says(verdict.excess, verdict.excess_count, "were tried up to"));
    declared.believe_window = true;
    verdict_of(&evidence, &declared, &arena, &verdict);
    assert_int_equal(verdict.excess_count, 0);
    assert_true(says(verdict.notes, verdict.note_count, "is believed"));

    /* What was seen to be forgotten is not believed. */
    evidence.late[1].again = 1;
    verdict_of(&evidence, &declared, &arena, &verdict);
    assert_int_equal(verdict.window_ms, 1000);
    assert_int_equal(verdict.forgot_ms, 60010);
    assert_true(says(verdict.excess, verdict.excess_count, "declare at most"));
    declared.window_ms = 1000;
    verdict_of(&evidence, &declared, &arena, &verdict);
    assert_int_equal(verdict.excess_count, 0);

    evidence.late_count = 0;
    verdict_of(&evidence, &declared, &arena, &verdict);
    assert_int_equal(verdict.claims[EFFECT_KEYED].shown, NOT_SHOWN);
}

TEST(the_report_notes_other_arguments_and_ends_with_the_next_step)
{
    struct evidence evidence = honest();
    struct declared declared = as_declared(EFFECT_KEYED);
    struct verdict verdict;

    verdict_of(&evidence, &declared, &arena, &verdict);
    assert_int_equal(verdict.note_count, 0);
    assert_true(says(&verdict.next, 1, "sagactl apply"));

    /* A receiver that looks at no key, and so takes other arguments under the same one. */
    ignores_keys(&evidence);
    evidence.tallies[TRIAL_OTHER_ARGS].most = 2;
    verdict_of(&evidence, &declared, &arena, &verdict);
    assert_true(says(verdict.notes, verdict.note_count, "other arguments under the same key"));
    assert_true(says(&verdict.next, 1, "\"effect\": \"checked\""));

    has_no_probe(&evidence);
    verdict_of(&evidence, &declared, &arena, &verdict);
    assert_true(says(&verdict.next, 1, "\"effect\": \"once\""));

    evidence = honest();
    declared.window_ms = 60001; /* the class is true, its window is not */
    verdict_of(&evidence, &declared, &arena, &verdict);
    assert_true(says(&verdict.next, 1, "declare less"));
    evidence.tells_apart = false;
    verdict_of(&evidence, &declared, &arena, &verdict);
    assert_true(says(&verdict.next, 1, "--count"));
}

TEST(declarations_of_undo_and_refusals_are_held_against_the_evidence)
{
    static const char *const cases[] = {"`voids_key`", "`tolerates_absent`", "undoing twice", "`key.settles`",
                                        "could not be tried"};

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct evidence evidence = honest();
        struct declared declared = as_declared(EFFECT_KEYED);
        struct verdict verdict;

        evidence.tallies[TRIAL_UNDO_FIRST].effects = i == 0;
        evidence.undo_refused = i == 1;
        evidence.tallies[TRIAL_UNDO_TWICE].most += i == 2;
        evidence.settled = i == 3;
        evidence.tallies[TRIAL_UNDO_FIRST].operations = i == 4 ? 0 : 5;
        verdict_of(&evidence, &declared, &arena, &verdict);
        assert_int_equal(verdict.excess_count, 1);
        assert_true(says(verdict.excess, 1, cases[i]));
        declared.has_undo = declared.has_settles = false;
        verdict_of(&evidence, &declared, &arena, &verdict);
        assert_int_equal(verdict.excess_count, 0);
    }
}

TEST(a_key_that_is_kept_for_ever_makes_a_call_idempotent)
{
    struct evidence evidence = honest();
    struct declared declared = as_declared(EFFECT_IDEMPOTENT);
    struct verdict verdict;

    verdict_of(&evidence, &declared, &arena, &verdict);
    assert_int_equal(verdict.claims[EFFECT_IDEMPOTENT].shown, REFUTED); /* another key took effect again */
    declared.keeps_keys = true;
    verdict_of(&evidence, &declared, &arena, &verdict);
    assert_int_equal(verdict.claims[EFFECT_IDEMPOTENT].shown, SHOWN);
    assert_int_equal(verdict.excess_count, 0);
    evidence.tallies[TRIAL_REPEATED].most = 2;
    verdict_of(&evidence, &declared, &arena, &verdict);
    assert_int_equal(verdict.claims[EFFECT_IDEMPOTENT].shown, REFUTED);
}

static const struct {
    const char *adapter, *settings, *put; /* put: NULL where there is no place for the receiver */
} placed[] = {
    {"http", "{\"method\":\"PUT\",\"url\":\"https://bank.example/a\"}",
     "{\"method\":\"PUT\",\"url\":\"http://127.0.0.1:9/a\"}"},
    {"http", "{\"url\":7}", NULL},
    {"mcp", "{\"server\":{\"url\":\"https://crm.example/mcp\",\"bearer\":\"b\"},\"tool\":\"t\"}",
     "{\"server\":{\"url\":\"http://127.0.0.1:9/mcp\",\"bearer\":\"b\"},\"tool\":\"t\"}"},
    {"mcp", "{\"server\":{\"argv\":[\"crm\"]},\"tool\":\"t\"}", NULL}, /* a program, and none may run */
    {"mcp", "{\"server\":{},\"tool\":\"t\"}", NULL},
    {"sql", "{\"database\":\"postgresql://bank.example/a\",\"statement\":\"select 1\"}",
     "{\"database\":\"postgresql://u:secret@h/test?x=y\",\"statement\":\"select 1\"}"},
    {"exec", "{\"argv\":[\"charge\"]}", NULL},
    {"builtin", "{\"do\":\"echo\"}", NULL},
};

TEST(each_adapter_gets_the_receiver_in_its_own_place)
{
    struct receiver receiver = {.http = SLICE("http://127.0.0.1:9"),
                                .database = SLICE("postgresql://u:secret@h/test?x=y")};
    const char *fault;

    for (size_t i = 0; i < COUNT_OF(placed); i++) {
        struct slice put =
            receiver_put(&receiver, slice_of(placed[i].adapter), slice_of(placed[i].settings), &arena, &fault);

        if (placed[i].put ? !slice_is(put, placed[i].put) : put.ptr != NULL) {
            fail_msg("%s: got %.*s", placed[i].settings, SLICE_ARG(put));
        }
    }
    assert_true(slice_is(receiver_text(&receiver, &arena), "http://127.0.0.1:9 and postgresql://h/test"));
    receiver = (struct receiver){.programs = true};
    assert_true(slice_is(receiver_put(&receiver, SLICE("exec"), slice_of(placed[6].settings), &arena, &fault),
                         placed[6].settings));
    assert_null(receiver_put(&receiver, SLICE("http"), slice_of(placed[0].settings), &arena, &fault).ptr);
}

TEST(a_call_goes_to_the_receiver_that_was_named_and_to_no_other)
{
    static const struct {
        const char *url, *to;
    } cases[] = {
        {"https://bank.example/charges?a=b", "http://127.0.0.1:9/charges?a=b"},
        {"http://user@bank.example:8080/a/b", "http://127.0.0.1:9/a/b"},
        {"https://bank.example", "http://127.0.0.1:9/"},
        {"https://bank.example?x=/y", "http://127.0.0.1:9/?x=/y"},
        {"https://bank.example#x", "http://127.0.0.1:9/#x"},
        {"ftp://bank.example/", NULL},
        {"", NULL},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct slice to = receiver_url(slice_of(cases[i].url), SLICE("http://127.0.0.1:9"), &arena);

        if (cases[i].to) {
            assert_true(slice_is(to, cases[i].to));
        } else {
            assert_null(to.ptr);
        }
    }
}

TEST_PROGRAM_ARENA(arena)
