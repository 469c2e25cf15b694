/* See preview.h. The world of the proof (prove/world.h) plays the receivers; its books are not checked. */
#include "core/prove/preview.h"

#include "base/json.h"
#include "core/prove/world.h"
#include "core/saga/machine.h"

#define SAME_VERB_MAX 1000 /* the most questions that the verb answers in one play */

enum about { ABOUT_SAGA, ABOUT_ESCALATION, ABOUT_OPERATION };

/* The verbs, as the API names them. */
struct previewed_verb {
    const char *name, *as, *then;
    unsigned about; /* a set of bits of enum about */
    enum operator_action action;
    bool happened, undone, again, probe_happened;
    const char *branch; /* the answer of the probe that this row is about; NULL for verbs with one end */
};

#define VERDICT (BIT(ABOUT_ESCALATION) | BIT(ABOUT_OPERATION))
#define CASE BIT(ABOUT_ESCALATION)

static const struct previewed_verb verbs[] = {
    {.name = "abort", .about = BIT(ABOUT_SAGA)},
    {.name = "retry", .about = CASE, .action = OPERATOR_RETRY},
    {.name = "probe",
     .about = CASE,
     .action = OPERATOR_PROBE,
     .probe_happened = true,
     .branch = "the probe says that it happened"},
    {.name = "probe", .about = CASE, .action = OPERATOR_PROBE, .branch = "the probe says that it did not happen"},
    {.name = "resolve", .as = "happened", .about = VERDICT, .action = OPERATOR_RESOLVE, .happened = true},
    {.name = "resolve", .as = "not_happened", .about = VERDICT, .action = OPERATOR_RESOLVE},
    {.name = "resolve",
     .as = "not_happened",
     .then = "retry",
     .about = VERDICT,
     .action = OPERATOR_RESOLVE,
     .again = true},
    {.name = "resolve", .as = "undone", .about = VERDICT, .action = OPERATOR_RESOLVE, .happened = true, .undone = true},
    {.name = "skip", .about = CASE, .action = OPERATOR_SKIP},
    {.name = "waive", .about = CASE, .action = OPERATOR_WAIVE},
    {.name = "compensate", .about = CASE, .action = OPERATOR_COMPENSATE},
    {.name = "abandon", .about = CASE, .action = OPERATOR_ABANDON},
};

struct play {
    struct prove_world world;
    const struct previewed_verb *verb;
    uint32_t unless; /* the step whose condition is false in this play; STEP_NONE when all conditions hold */
    uint32_t conditions[PREVIEW_CONDITIONS_MAX]; /* the steps with conditions that the play came to */
    uint32_t condition_count;
    struct want *calls; /* in the order in which the calls leave */
    uint32_t call_count, call_capacity;
    uint32_t said; /* how many times the verb was used */
};

/* The state between two calls of preview_play(). A verb has several plays: one for each answer of a probe, and one for
 * each open condition. */
struct preview {
    const struct saga *saga;
    struct preview_question question;
    const struct definition *symbolic;
    enum about about;
    int64_t now_ms;
    struct arena play_arena, turn;
    struct json_writer w;
    const struct previewed_verb *verb, *end; /* the row being played, and the end of the rows of its verb */
    bool playing;                            /* the verb is allowed, and some of its plays are still to come */
    struct saga_input input;                 /* the input that carries the verb */
    struct play play;
    uint32_t conditions[PREVIEW_CONDITIONS_MAX],
        condition_count; /* the conditions met in the play in which all of them hold */
    uint32_t next_condition;
    uint64_t steps_seen,
        steps_max; /* steps visited, and how many steps this verb may visit; the cost of a turn grows with the steps */
};

static struct saga_input input_of(const struct preview *p, const struct previewed_verb *verb, const struct saga *saga,
                                  bool accept_double)
{
    struct saga_input input = {.type = SAGA_INPUT_OPERATOR, .now_ms = p->now_ms};

    if (p->about == ABOUT_SAGA) {
        input.type = SAGA_INPUT_ABORT;
        input.abort.actor = SLICE("somebody");
        input.abort.note = SLICE("a preview");
        return input;
    }
    input.verdict.action = verb->action;
    input.verdict.happened = verb->happened;
    input.verdict.undone = verb->undone;
    input.verdict.again = verb->again;
    input.verdict.accept_double = accept_double;
    input.verdict.actor = SLICE("somebody");
    input.verdict.note = SLICE("a preview");
    if (p->about == ABOUT_OPERATION) {
        input.verdict.key = p->question.key;
    } else {
        input.verdict.escalation = saga->escalation.number;
        input.verdict.round = saga_case_round(saga);
    }
    if (verb->happened) {
        input.verdict.result = SLICE("{}");
        input.verdict.undo_args = SLICE("{}");
    }
    if (verb->action == OPERATOR_RETRY && saga->escalation.step != STEP_NONE &&
        !operation_of(saga, saga->escalation.step, saga->escalation.direction)->args.ptr) {
        input.verdict.args = SLICE("{}");
    }
    return input;
}

/* --- one play --- */

static void keep_call(struct play *play, const struct want *want)
{
    if (play->call_count == play->call_capacity) {
        struct want *calls;

        play->call_capacity = play->call_capacity ? 2 * play->call_capacity : 16;
        calls = arena_array(play->world.arena, play->call_capacity, sizeof(*calls));
        for (uint32_t i = 0; i < play->call_count; i++) {
            calls[i] = play->calls[i];
        }
        play->calls = calls;
    }
    play->calls[play->call_count++] = *want;
}

/* Decides the condition of a step whose arguments are wanted. Returns false when the condition is false in this
 * play. */
static bool condition_holds(struct play *play, const struct want *want)
{
    if (want->type != WANT_EVALUATE || want->number != EVALUATE_ARGS || want->step == STEP_NONE ||
        !template_is_set(&play->world.saga.definition->steps[want->step].when)) {
        return true;
    }
    if (play->condition_count < PREVIEW_CONDITIONS_MAX) {
        play->conditions[play->condition_count++] = want->step;
    }
    return want->step != play->unless;
}

static bool say_again(const struct preview *p, struct play *play)
{
    return p->about == ABOUT_ESCALATION && play->said < SAME_VERB_MAX &&
           (saga_escalation_actions(&play->world.saga) & BIT(play->verb->action)) != 0;
}

/* Plays one step. Returns false when the play rests. */
static bool play_on(const struct preview *p, struct play *play)
{
    struct prove_world *world = &play->world;
    struct want want;
    bool more = prove_world_next(world, &want);

    if (world->saga.escalation.number && (!more || want.due_ms > world->now_ms) && say_again(p, play)) {
        play->said++;
        return prove_world_feed(world, input_of(p, play->verb, &world->saga, true));
    }
    if (!more) {
        return false;
    }
    if (want.type == WANT_CALL) {
        keep_call(play, &want);
    }
    if (condition_holds(play, &want)) {
        prove_world_do(world, &want);
    } else {
        prove_world_skip(world, want.step);
    }
    return true;
}

static void set_probe(const struct preview *p, struct play *play)
{
    const struct escalation *open = &p->saga->escalation;

    if (play->verb->action == OPERATOR_PROBE && open->step != STEP_NONE) {
        if (open->direction == DIRECTION_DO) {
            play->world.books[open->step].did = play->verb->probe_happened;
        } else {
            play->world.books[open->step].undone = play->verb->probe_happened;
        }
    }
}

/* Counts the cost of one turn over these steps. */
static void count_steps(struct preview *p)
{
    p->steps_seen += p->play.world.saga.definition->step_count + 1;
}

static void begin_play(struct preview *p, uint32_t unless)
{
    struct play *play = &p->play;

    arena_reset(&p->play_arena);
    *play = (struct play){.verb = p->verb, .unless = unless, .said = 1};
    prove_world_adopt(&play->world, p->saga, p->symbolic, p->now_ms, &p->play_arena, &p->turn);
    set_probe(p, play);
    (void)prove_world_feed(&play->world, p->input);
    count_steps(p);
}

/* --- what came of it, as JSON --- */

static struct slice step_id(const struct play *play, uint32_t step)
{
    return play->world.saga.definition->steps[step].id;
}

static void write_calls(struct json_writer *w, const struct play *play)
{
    json_array_begin(w, "calls");
    for (uint32_t i = 0; i < play->call_count; i++) {
        const struct want *call = &play->calls[i];

        json_object_begin(w, NULL);
        json_write_slice(w, "step", step_id(play, call->step));
        json_write_slice(w, "tool", saga_tool(&play->world.saga, call->step, call->direction)->name);
        json_write_text(w, "direction", direction_name(call->direction));
        json_object_end(w);
    }
    json_array_end(w);
}

static void write_undone(struct json_writer *w, const struct preview *p, const struct play *play)
{
    const struct saga *saga = &play->world.saga;

    json_array_begin(w, "undone");
    for (uint32_t i = 0; i < play->world.undone_count; i++) { /* in the order in which the compensators ran */
        json_write_slice(w, NULL, step_id(play, play->world.undone[i]));
    }
    for (uint32_t i = 0; i < p->saga->definition->step_count; i++) { /* steps that a person's verdict settled */
        if (saga->steps[i].forward.took_effect == TOOK_EFFECT_UNDONE && !play->world.books[i].undone &&
            p->saga->steps[i].forward.took_effect != TOOK_EFFECT_UNDONE) {
            json_write_slice(w, NULL, step_id(play, i));
        }
    }
    json_array_end(w);
}

static void write_standing(struct json_writer *w, const struct play *play)
{
    const struct saga *saga = &play->world.saga;

    json_array_begin(w, "standing");
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (step_has_call(saga, i) && !prove_is_read(&play->world, i) && step_may_stand(saga, i)) {
            json_object_begin(w, NULL);
            json_write_slice(w, "step", step_id(play, i));
            json_write_text(w, "took_effect", took_effect_name(saga_took_effect(saga, i)));
            json_object_end(w);
        }
    }
    json_array_end(w);
}

/* Says why the play stops; SLICE_NONE when the saga has ended. */
static struct slice waits_for(const struct preview *p, const struct play *play)
{
    const struct saga *saga = &play->world.saga;

    if (saga->phase == PHASE_ENDED) {
        return SLICE_NONE;
    }
    if (p->steps_seen >= p->steps_max) {
        return SLICE("more than a preview plays");
    }
    if (saga->escalation.number) {
        return saga->escalation.step == STEP_NONE
                   ? arena_printf(play->world.arena, "a person, because of: %.*s", SLICE_ARG(saga->escalation.reason))
                   : arena_printf(play->world.arena, "a person, because of: %.*s (%.*s)",
                                  SLICE_ARG(saga->escalation.reason), SLICE_ARG(step_id(play, saga->escalation.step)));
    }
    if (saga->paused.ptr) {
        return SLICE("a person who resumes it");
    }
    return saga_is_open(saga) ? SLICE("its agent") : SLICE("something from outside");
}

static void write_end(struct json_writer *w, const struct preview *p, const struct play *play)
{
    json_object_begin(w, NULL);
    json_write_text(w, "if", play->verb->branch);
    json_write_slice(w, "unless_begins", play->unless == STEP_NONE ? SLICE_NONE : step_id(play, play->unless));
    json_write_text(w, "status", saga_status_name(saga_status(&play->world.saga)));
    json_write_slice(w, "waits_for", waits_for(p, play));
    write_calls(w, play);
    write_undone(w, p, play);
    write_standing(w, play);
    json_object_end(w);
}

/* --- one verb --- */

static bool is_asked_for(const struct preview *p, const struct previewed_verb *verb)
{
    const struct saga_input *only = p->question.only;

    if (!only || p->about == ABOUT_SAGA) {
        return !only || only->type == SAGA_INPUT_ABORT;
    }
    return only->type == SAGA_INPUT_OPERATOR && only->verdict.action == verb->action &&
           (verb->action != OPERATOR_RESOLVE ||
            (only->verdict.undone == verb->undone && only->verdict.again == verb->again &&
             (only->verdict.happened || only->verdict.undone) == verb->happened));
}

static bool is_about(const struct preview *p, const struct previewed_verb *verb)
{
    return (verb->about & BIT(p->about)) != 0 && is_asked_for(p, verb);
}

/* Asks the saga whether it takes the verb. The refusal is the saga's own. A verb that needs "accept_double" is also
 * played. */
static enum err_code ask(struct preview *p, const struct previewed_verb *verb, struct saga_input *input,
                         bool *accept_double, struct err *err)
{
    struct records records;
    enum err_code code;

    *accept_double = false;
    *input = input_of(p, verb, p->saga, false);
    input->escalation_number = p->saga->escalation.number + 1;
    input->approval_number = UINT32_MAX;
    input->number_stride = 1;
    arena_reset(&p->turn);
    code = saga_decide(p->saga, input, &p->turn, &records, err);
    if (code != ERR_OK && verb->action == OPERATOR_RETRY && p->about == ABOUT_ESCALATION) {
        struct saga_input accepted = *input;
        struct err ignored = {0};

        accepted.verdict.accept_double = true;
        arena_reset(&p->turn);
        if (saga_decide(p->saga, &accepted, &p->turn, &records, &ignored) == ERR_OK) {
            *input = accepted;
            *accept_double = true;
            code = ERR_OK;
        }
    }
    return code;
}

static void write_verb_name(struct json_writer *w, const struct previewed_verb *verb)
{
    json_write_text(w, "verb", verb->name);
    if (verb->as) {
        json_write_text(w, "as", verb->as);
    }
    if (verb->then) {
        json_write_text(w, "then", verb->then);
    }
}

/* Begins a verb. The rows of one verb stand together: a probe has one row for each answer. */
static void begin_verb(struct preview *p)
{
    struct err err = {0};
    bool accept_double;
    enum err_code code = ask(p, p->verb, &p->input, &accept_double, &err);

    for (p->end = p->verb + 1; p->verb->branch && p->end < verbs + COUNT_OF(verbs) && p->end->branch; p->end++) {
    }
    p->steps_max = p->steps_seen + p->question.steps_max;
    p->steps_seen += p->saga->definition->step_count + 1;
    p->playing = code == ERR_OK;
    json_object_begin(&p->w, NULL);
    write_verb_name(&p->w, p->verb);
    json_write_bool(&p->w, "allowed", p->playing);
    if (p->playing) {
        if (accept_double) {
            json_write_bool(&p->w, "accept_double", true);
        }
        json_array_begin(&p->w, "ends");
        begin_play(p, STEP_NONE);
        return;
    }
    json_write_text(&p->w, "refused", err_name(code));
    json_write_text(&p->w, "because", err.message);
    json_object_end(&p->w);
    p->verb = p->end;
}

/* Ends a play and begins the next one. */
static void next_play(struct preview *p)
{
    const struct play *play = &p->play;

    write_end(&p->w, p, play);
    if (play->unless == STEP_NONE) {
        p->condition_count = play->condition_count;
        p->next_condition = 0;
        for (uint32_t i = 0; i < play->condition_count; i++) {
            p->conditions[i] = play->conditions[i];
        }
    }
    if (p->next_condition < p->condition_count) {
        begin_play(p, p->conditions[p->next_condition++]);
        return;
    }
    if (++p->verb < p->end) {
        begin_play(p, STEP_NONE);
        return;
    }
    json_array_end(&p->w);
    json_object_end(&p->w);
    p->playing = false;
}

static bool goes_on(struct preview *p)
{
    count_steps(p);
    return p->play.world.saga.phase != PHASE_ENDED && p->steps_seen < p->steps_max && play_on(p, &p->play);
}

bool preview_play(struct preview *p, uint32_t steps_max)
{
    const uint64_t until = p->steps_seen + steps_max;

    while (p->steps_seen < until) {
        if (p->playing) {
            if (!goes_on(p)) {
                next_play(p);
            }
        } else if (p->verb == verbs + COUNT_OF(verbs)) {
            json_array_end(&p->w);
            json_object_end(&p->w);
            return true;
        } else if (is_about(p, p->verb)) {
            begin_verb(p);
        } else {
            p->verb++;
        }
    }
    return false;
}

struct preview *preview_new(const struct saga *saga, const struct preview_question *question, int64_t now_ms,
                            struct arena *arena, struct buffer *out)
{
    struct preview *p = arena_alloc(arena, sizeof(*p));

    *p = (struct preview){.saga = saga, .question = *question, .now_ms = now_ms, .verb = verbs};
    p->about = question->escalation               ? ABOUT_ESCALATION
               : uuid_is_nil(&question->key.uuid) ? ABOUT_SAGA
                                                  : ABOUT_OPERATION;
    p->symbolic = saga->definition;
    if (!saga_is_open(saga)) {
        struct prove_symbols symbols;
        struct prove_variant none = {0};

        prove_symbolic(saga->definition, &none, arena, &symbols);
        p->symbolic = symbols.definition;
    }
    arena_init(&p->play_arena, 64 * 1024);
    arena_tie(arena, &p->play_arena);
    arena_init(&p->turn, 64 * 1024);
    arena_tie(arena, &p->turn);
    json_writer_init(&p->w, out);
    json_object_begin(&p->w, NULL);
    json_write_text(&p->w, "assumes",
                    "each later call succeeds, the same verb answers every open question of this saga, signals and "
                    "approvals come, and no deadline passes");
    json_array_begin(&p->w, "verbs");
    return p;
}
