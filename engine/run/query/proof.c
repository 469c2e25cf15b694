/*
 * The proof of a registered saga (core/prove). It is played on a thread of its own, because it takes longer than the
 * loop may be away. Only one is played at a time, and bounds hold its time and its memory; `sagactl prove` has none.
 */
#include "core/prove/show.h"
#include "io/loop/worker.h"
#include "run/request/definitions.h"
#include "run/request/work.h"

#define STEPS_MAX 10000000u  /* looked at: see prove_options; about half a second */
#define STATES_MAX 256u      /* the states of parallel branches */
#define PROOF_STEPS_MAX 100u /* the steps of the saga and its children; each state of the play has a copy of all */
#define TEXT_BYTES_MAX (8u << 20)

struct proof {
    struct worker_job job;
    struct work *work;
    const struct definition *definition; /* compiled definitions live as long as the engine and do not change */
    struct arena arena;                  /* the thread's alone until the job is done */
    struct buffer out;
};

static void play(struct worker_job *job)
{
    struct proof *proof = container_of(job, struct proof, job);
    const struct prove_options options = {.states_max = STATES_MAX, .steps_max = STEPS_MAX};
    struct prove_report report;
    struct json_writer w;

    prove_saga(proof->definition, &options, &proof->arena, &report);
    json_writer_init(&w, &proof->out);
    prove_write(&w, proof->definition->name, &report);
}

static void on_played(struct worker_job *job)
{
    struct proof *proof = container_of(job, struct proof, job);
    struct work *work = proof->work;

    work->engine->works->proof_under_way = false;
    if (!proof->out.overflow) {
        buffer_put_slice(&work->out, buffer_slice(&proof->out));
    }
    buffer_fini(&proof->out);
    arena_fini(&proof->arena);
    if (work->out.len == 0) {
        work_fail(work, ERR_INVALID, "the proof of this saga is longer than an answer may be",
                  "`sagactl prove` has no such bound");
    } else {
        work_done(work, ERR_OK, NULL);
    }
}

/* Counts the steps as the play has them: for_each has two elements, a child its own steps. */
static uint64_t steps_of(const struct definition *definition)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < definition->step_count; i++) {
        const struct step_definition *step = &definition->steps[i];
        uint64_t each = 1 + (step->kind == STEP_SAGA ? steps_of(step->child) : 0);

        count += template_is_set(&step->for_each) ? 1 + 2 * each : each;
    }
    return count;
}

void engine_prove(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct err err = {0};

    if (work_refused(work)) {
        return;
    }
    const struct slice name = request->in.definitions.name;
    const uint32_t version = request->in.definitions.version;

    if (!definitions_row(engine->definitions, DEFINITION_SAGA, work->namespace, name, version)) {
        work_fail(work, ERR_NOT_FOUND, "there is no such definition, or no such version of it", NULL);
        return;
    }
    const struct definition *definition = definitions_newest(engine->definitions, work->namespace, name, version, &err);

    if (!definition) {
        work_done(work, err.code, &err);
    } else if (steps_of(definition) > PROOF_STEPS_MAX) {
        work_fail(work, ERR_INVALID, "this saga has more steps than an engine proves",
                  "`sagactl prove` on its file has no such bound");
    } else if (engine->works->proof_under_way) {
        work_fail(work, ERR_BUSY, "another proof is under way on this engine", "ask again in a second");
    } else {
        struct proof *proof = arena_alloc(&work->arena, sizeof(*proof));

        *proof = (struct proof){.job = {.work = play, .done = on_played}, .work = work, .definition = definition};
        arena_init(&proof->arena, (size_t)1 << 20);
        buffer_init(&proof->out, TEXT_BYTES_MAX);
        engine->works->proof_under_way = true;
        worker_submit(engine->loop, &proof->job);
    }
}
