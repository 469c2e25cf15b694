/*
 * The judge of a proof alone. Small sagas are played, and one thing after the other is bent in their books or in their
 * state. Each invariant that the judge checks is seen broken. The machine's own check is switched off (-Wl,--wrap),
 * because it would refuse most bent states first.
 */
#include <stdio.h>
#include <string.h>

#include "core/prove/world.h"
#include "core/saga/machine.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

#define MOVES_MAX 60

static bool refuses;

bool __wrap_record_check(const struct saga *saga, const struct record *record, struct err *err);
bool __wrap_record_check(const struct saga *saga, const struct record *record, struct err *err)
{
    (void)saga;
    (void)record;
    if (refuses) {
        (void)err_set(err, ERR_CORRUPT, "refused by the test");
    }
    return !refuses;
}

/* The sentences of violations; a "%" stands for the name of a step. */
static const char *const sentences[] = {
    "% is begun before %",
    "% is begun beside too many others",
    "% is begun although the saga is being undone",
    "% is begun before the locks are taken",
    "% is begun although it is not open: %",
    "% is begun before the end of %",
    "% is undone although it did not happen",
    "% is completed before the end of %",
    "% is left standing, and it counts as undone: %",
    "something happens after the end",
    "refused by the test",
    "% counts as undone, and is not",
    "% counts as done, and did not happen",
    "% counts as failed, and happened",
    "% is left standing, and the saga ended compensated",
    "% is left standing, and the saga ended completed",
    "% was undone, and the saga ended completed",
    "% is not over, and the saga ended completed",
    "% is left standing, and is no debt",
    "the saga is abandoned, and nobody has said so",
};
static unsigned seen[COUNT_OF(sentences)];

static bool says(struct slice text, const char *sentence)
{
    const char *from = strchr(sentence, '%'), *to = strrchr(sentence, '%');

    if (!from) {
        return slice_is(text, sentence);
    }
    from = from == sentence ? sentence + 1 : sentence;
    to = to == sentence ? sentence + strlen(sentence) : to;
    return memmem(text.ptr, text.len, from, (size_t)(to - from)) != NULL;
}

static void look(const struct prove_world *w)
{
    for (size_t i = 0; w->violation.ptr && i < COUNT_OF(sentences); i++) {
        seen[i] += says(w->violation, sentences[i]);
    }
}

#define BENDS (8 + OP_STATE_COUNT + PLAN_DROPPED + 1)

static void bend(struct prove_world *w, uint32_t step, unsigned how)
{
    struct prove_book *book = &w->books[step];
    struct step *s = &w->saga.steps[step];

    switch (how) {
    case 0:
        return;
    case 1:
        book->did = !book->did;
        return;
    case 2:
        book->undone = !book->undone;
        return;
    case 3:
        book->maybe = !book->maybe;
        if (w->saga.definition->steps[step].group != STEP_NONE) { /* and its group is undone on its own */
            w->saga.steps[w->saga.definition->steps[step].group].group_phase = PHASE_UNDO;
        }
        return;
    case 4:
        book->undo_begun = !book->undo_begun;
        return;
    case 5:
        s->group_phase = s->group_phase == PHASE_FORWARD ? PHASE_UNDO : PHASE_FORWARD;
        return;
    case 6:
        w->saga.lock_taken = 0;
        return;
    case 7:
        w->saga.locks_wanted = false;
        return;
    default:
        break;
    }
    if (how < 8 + OP_STATE_COUNT) {
        s->forward.state = (enum op_state)(how - 8);
    } else {
        s->plan = (enum plan_state)(how - 8 - OP_STATE_COUNT);
    }
}

static void judge_records(const struct prove_world *bent, uint32_t step, struct arena *arena)
{
    static const enum record_type types[] = {
        RECORD_STEP_PENDING,   RECORD_STEP_OPENED,         RECORD_STEP_WAITING,
        RECORD_STEP_INTENT,    RECORD_COMPENSATION_INTENT, RECORD_COMPENSATION_COMPLETED,
        RECORD_STEP_COMPLETED, RECORD_STEP_FAILED,         RECORD_STEP_PROBED};

    for (size_t i = 0; i < COUNT_OF(types); i++) {
        struct record record = {.type = types[i], .step = step, .attempt = 1};
        struct prove_world w;

        prove_world_fork(&w, bent, arena);
        prove_check_record(&w, &record);
        look(&w);
        prove_check_record(&w, &record); /* the first violation is the cause */
    }
}

static void judge_ends(const struct prove_world *bent, struct arena *arena)
{
    for (int end = SAGA_COMPLETED; end <= SAGA_ABANDONED; end++) {
        for (uint32_t decisions = 0; decisions < 2; decisions++) {
            struct prove_world w;

            prove_world_fork(&w, bent, arena);
            w.saga.end = (enum saga_status)end;
            w.decisions = decisions;
            prove_check_end(&w);
            look(&w);
        }
    }
}

static void bend_everything(const struct prove_world *world, struct arena *arena)
{
    uint32_t count = world->saga.definition->step_count;

    for (uint32_t step = 0; step < count; step++) {
        for (unsigned how = 0; how < BENDS; how++) {
            for (uint32_t other = 0; other < count; other++) {
                struct prove_world w;

                prove_world_fork(&w, world, arena);
                bend(&w, step, how);
                if (other == 0) {
                    judge_ends(&w, arena);
                }
                judge_records(&w, other, arena);
                arena_reset(arena);
            }
        }
    }
}

/* Plays a saga that is aborted after `abort_after` moves and in which step `fails` fails. */
static void play(const char *document, unsigned abort_after, uint32_t fails)
{
    struct arena kept, scratch, turn;
    struct prove_symbols symbols = {0};
    struct prove_world world = {0};

    arena_init(&kept, 65536);
    arena_init(&scratch, (size_t)1 << 20);
    arena_init(&turn, 65536);
    prove_symbolic(trial_compile(&kept, trial_json(&kept, document)), &(struct prove_variant){0}, &kept, &symbols);
    prove_world_open(&world, symbols.items[0].symbolic, NULL, &kept, &turn);
    world.point = (struct prove_point){.step = fails, .trouble = fails == STEP_NONE ? TROUBLE_NONE : TROUBLE_FAILS};
    refuses = true;
    judge_records(&world, 0, &scratch);
    refuses = false;
    for (unsigned i = 0; i < MOVES_MAX; i++) {
        bend_everything(&world, &scratch);
        if (i == abort_after) {
            prove_world_abort(&world);
        } else if (!prove_world_move(&world)) {
            break;
        }
    }
    arena_fini(&turn);
    arena_fini(&scratch);
    arena_fini(&kept);
}

#define CHILD                                                                                                          \
    "{'name':'child','steps':[{'id':'x','call':'keyed'},{'id':'y','call':'voidable'},{'id':'r','call':'read'}]}"

static const char *const documents[] = {
    "{'tools':[" TRIAL_TOOLS "],'sagas':[{'name':'trial','locks':['k'],'steps':[{'id':'a','call':'keyed'},{'id':'b','"
    "call':'voidable','on_failure':'continue'},{'id':'nap','sleep':'1s'}]}]}",
    "{'tools':[" TRIAL_TOOLS "],'sagas':[{'name':'trial','steps':[{'id':'each','call':'keyed','for_each':'${ "
    ".input.list }'},{'id':'z','call':'keyed'}]}]}",
    "{'tools':[" TRIAL_TOOLS
    "],'sagas':[{'name':'trial','compensation':{'concurrency':2},'steps':[{'id':'c','saga':'child','on_failure':'"
    "continue'},{'id':'each','call':'keyed','concurrency':2,'for_each':'${ .input.list }','after':[]}]}," CHILD "]}",
};

TEST(each_invariant_of_the_judge_is_seen_broken)
{
    for (size_t i = 0; i < COUNT_OF(documents); i++) {
        for (unsigned abort_after = 2; abort_after < 9; abort_after += 3) {
            play(documents[i], abort_after, STEP_NONE);
        }
        play(documents[i], MOVES_MAX, STEP_NONE);
    }
    for (uint32_t fails = 3; fails < 6; fails++) { /* a step of the child that is undone on its own */
        play(documents[2], MOVES_MAX, fails);
    }
    for (size_t i = 0; i < COUNT_OF(sentences); i++) {
        if (seen[i] == 0) {
            fail_msg("never seen: %s", sentences[i]);
        }
    }
}

TEST_PROGRAM(NULL, NULL)
