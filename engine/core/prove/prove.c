/* See prove.h. This file chooses the plays; prove/world.c plays them. */
#include "core/prove/prove.h"

#include "base/map.h"
#include "core/prove/world.h"

#define STATES_DEFAULT_MAX 4096
#define STATE_STEPS_MAX 60000 /* the most states times steps, which bounds their memory */
#define PLAYS_MAX 100000
#define PASSED_MAX 512      /* the most states of one play that are remembered */
#define POINTS_MAX 32       /* the most points of one operation */
#define STRAYS_SHOWN_MAX 20 /* the most violations shown that only another order of branches has */
#define PROGRESS_PLAYS 1000

struct text {
    const char *name, *text;
};

static const struct text troubles[PROVE_TROUBLE_COUNT] = {
#define X(id, name, text) [id] = {name, text},
    PROVE_TROUBLE_MAP(X)
#undef X
};

static const struct text answers[PROVE_ANSWER_COUNT] = {
#define X(id, name, text) [id] = {name, text},
    PROVE_ANSWER_MAP(X)
#undef X
};

const char *prove_trouble_name(enum prove_trouble trouble)
{
    CHECK(trouble < PROVE_TROUBLE_COUNT);
    return troubles[trouble].name;
}

const char *prove_trouble_text(enum prove_trouble trouble)
{
    CHECK(trouble < PROVE_TROUBLE_COUNT);
    return troubles[trouble].text;
}

const char *prove_answer_name(enum prove_answer answer)
{
    CHECK(answer < PROVE_ANSWER_COUNT);
    return answers[answer].name;
}

const char *prove_answer_text(enum prove_answer answer)
{
    CHECK(answer < PROVE_ANSWER_COUNT);
    return answers[answer].text;
}

struct tail { /* how a play went on from a state in which nothing was wrong any more */
    struct digest digest;
    uint32_t end;         /* index into out->ends */
    uint32_t undone_from; /* the first step in the list of undone steps that came after the state */
};

struct prover {
    const struct definition *definition; /* the definition as it was written */
    struct prove_symbols symbols;        /* the symbols of the classes being played */
    const struct definition *canon;      /* the definition with all members of groups; NULL until it is known */
    struct prove_symbols canon_symbols;  /* the symbols that `canon` is made of */
    uint32_t *order; /* the steps of `canon` in the order of the report: members behind their group */
    const struct prove_options *options;
    struct arena *arena; /* holds the report and everything else that lasts */
    struct arena play, turn;
    struct prove_report *out;
    struct prove_world *way; /* the states after each turn of the play in which nothing goes wrong */
    uint32_t way_count;
    struct map walked, played; /* digests of states: walked on the ways of branches, played in plays with trouble */
    struct map tails;
    uint32_t strays;
    uint64_t steps; /* looked at, as in the options */
};

/* --- which points an operation has --- */

struct points {
    struct prove_point items[POINTS_MAX];
    uint32_t count;
};

static void add(struct points *points, struct prove_point point, enum prove_trouble trouble, enum prove_answer answer)
{
    CHECK(points->count < POINTS_MAX);
    point.trouble = trouble;
    point.answer = answer;
    points->items[points->count++] = point;
}

/* Adds an unknown outcome once for each way in which this class can find out the truth. */
static void add_unknown(struct points *points, struct prove_point point, const struct tool *tool, bool blind)
{
    if (point.effect == EFFECT_READ || point.effect == EFFECT_IDEMPOTENT || point.effect == EFFECT_KEYED) {
        add(points, point, TROUBLE_UNKNOWN, ANSWER_AGAIN);
    }
    if (tool->has_probe && point.effect != EFFECT_READ) {
        add(points, point, TROUBLE_UNKNOWN, ANSWER_PROBE_DONE);
        add(points, point, TROUBLE_UNKNOWN, ANSWER_PROBE_ABSENT);
    }
    add(points, point, TROUBLE_UNKNOWN, ANSWER_NOBODY);
    if (point.effect == EFFECT_READ) {
        return;
    }
    if (point.direction == DIRECTION_DO) {
        add(points, point, TROUBLE_UNKNOWN, ANSWER_LATE);
    }
    if (!blind) { /* a blind step is undone without a question */
        add(points, point, TROUBLE_UNKNOWN, ANSWER_HAPPENED);
        add(points, point, TROUBLE_UNKNOWN, ANSWER_NOT_HAPPENED);
        add(points, point, TROUBLE_UNKNOWN, ANSWER_WAIVE);
    }
}

/* Adds a certain failure with all answers that a person may give. */
static void add_failure(struct points *points, struct prove_point point, const struct step_definition *definition,
                        enum prove_trouble trouble)
{
    if (definition->on_failure != ON_FAILURE_ESCALATE) {
        add(points, point, trouble, ANSWER_NONE);
        return;
    }
    add(points, point, trouble, ANSWER_NOBODY);
    if (definition->kind == STEP_CALL && trouble == TROUBLE_FAILS) {
        add(points, point, trouble, ANSWER_RETRY);
    }
    add(points, point, trouble, ANSWER_SKIP);
    add(points, point, trouble, ANSWER_COMPENSATE);
}

/* Returns the step as the document has it. */
static const struct step_definition *written_step(const struct prove_symbols *symbols,
                                                  const struct step_definition *definition)
{
    return &prove_written(symbols, definition->written_in)->steps[definition->member];
}

static void call_points(const struct prover *p, const struct step_definition *definition, struct prove_point point,
                        struct points *points)
{
    const struct compensator *undo = &definition->compensate;

    point.varies = written_step(&p->symbols, definition)->tool->conditional;
    if (definition->tool->has_precheck) {
        add(points, point, TROUBLE_BEFORE, ANSWER_NONE);
        add(points, point, TROUBLE_BLOCKED, ANSWER_NONE);
    }
    add(points, point, TROUBLE_UNSENT, ANSWER_NONE);
    add(points, point, TROUBLE_BUSY, ANSWER_NONE);
    add_failure(points, point, definition, TROUBLE_FAILS);
    add_unknown(points, point, definition->tool, undo->is_set && undo->tolerates_absent && undo->voids_key);
    if (undo->is_set && written_step(&p->symbols, definition)->compensate.with.count > 0) {
        add(points, point, TROUBLE_UNDO_ARGUMENTS, ANSWER_NOBODY);
        add(points, point, TROUBLE_UNDO_ARGUMENTS, ANSWER_RETRY);
        add(points, point, TROUBLE_UNDO_ARGUMENTS, ANSWER_WAIVE);
    }
}

static bool has_main_program(const struct step_definition *definition)
{
    const struct template *main = template_is_set(&definition->for_each) ? &definition->for_each
                                  : definition->kind == STEP_SLEEP       ? &definition->sleep
                                  : definition->kind == STEP_APPROVE     ? &definition->show
                                                                         : &definition->with;

    return main->program_count > 0;
}

/* Collects the points of the step with this number on its way forward. */
static void forward_points(const struct prover *p, const struct step_definition *definition, uint32_t number,
                           struct points *points)
{
    bool is_call = definition->kind == STEP_CALL && !step_is_group(definition);
    struct prove_point point = {.step = number, .direction = DIRECTION_DO, .effect = EFFECT_READ};

    points->count = 0;
    point.effect = is_call ? definition->tool->effect : EFFECT_READ;
    if (definition->when.program_count > 0) {
        add(points, point, TROUBLE_SKIPPED, ANSWER_NONE);
    }
    if (has_main_program(definition) || definition->when.program_count > 0) {
        add(points, point, TROUBLE_ARGUMENTS, ANSWER_NONE);
    }
    if (is_call) {
        call_points(p, definition, point, points);
        return;
    }
    if (step_is_group(definition)) {
        return;
    }
    if (definition->kind == STEP_APPROVE) {
        add_failure(points, point, definition, TROUBLE_REFUSED);
    }
    if (definition->wait_timeout_ms > 0) {
        add_failure(points, point, definition, TROUBLE_TIMEOUT);
    }
}

static void undo_points(const struct step_definition *definition, uint32_t number, struct points *points)
{
    const struct compensator *undo = &definition->compensate;
    struct prove_point point = {.step = number, .direction = DIRECTION_UNDO};

    points->count = 0;
    if (!undo->is_set || definition->kind != STEP_CALL || step_is_group(definition)) {
        return;
    }
    point.effect = undo->tool->effect;
    add(points, point, TROUBLE_BUSY, ANSWER_NONE);
    add(points, point, TROUBLE_FAILS, ANSWER_NOBODY);
    add(points, point, TROUBLE_FAILS, ANSWER_RETRY);
    add(points, point, TROUBLE_FAILS, ANSWER_WAIVE);
    add_unknown(points, point, undo->tool, false);
    add(points, point, TROUBLE_UNKNOWN, ANSWER_RETRY);
}

/* --- one play, and its row --- */

static void count_play(struct prover *p)
{
    const struct prove_options *options = p->options;

    p->out->plays++;
    if (options && options->on_progress && p->out->plays % PROGRESS_PLAYS == 0) {
        options->on_progress(options->context, p->out->plays, p->out->states);
    }
}

/* Was as much looked at as the options allow? */
static bool is_spent(const struct prover *p)
{
    return p->options && p->options->steps_max > 0 && p->steps >= p->options->steps_max;
}

static bool move(struct prover *p, struct prove_world *w)
{
    p->steps += w->book_count;
    return prove_world_move(w);
}

static struct slice waits_for(const struct prover *p, const struct prove_world *w)
{
    const struct escalation *open = &w->saga.escalation;

    if (!open->number) {
        return SLICE_NONE;
    }
    if (open->step == STEP_NONE) {
        return arena_slice(p->arena, open->reason);
    }
    return arena_printf(p->arena, "%.*s: %.*s", SLICE_ARG(w->saga.definition->steps[open->step].id),
                        SLICE_ARG(open->reason));
}

static struct prove_end *next_end(struct prover *p)
{
    struct prove_report *out = p->out;

    if (out->end_count == out->end_capacity) {
        uint32_t capacity = out->end_capacity ? out->end_capacity * 2 : 64;
        struct prove_end *ends = arena_array(p->arena, capacity, sizeof(*ends));

        for (uint32_t i = 0; i < out->end_count; i++) {
            ends[i] = out->ends[i];
        }
        out->ends = ends;
        out->end_capacity = capacity;
    }
    return &out->ends[out->end_count++];
}

/* Adds a row for the end of a play. `tail` tells how an earlier play went on from the same state; NULL when this play
 * went to its end. */
static void add_end(struct prover *p, const struct prove_world *w, struct slice place, const struct tail *tail)
{
    uint32_t count = p->canon->step_count, *standing = arena_array(p->arena, count + 1, sizeof(*standing));
    uint32_t *undone = arena_array(p->arena, w->book_count + count + 1, sizeof(*undone));
    bool *is_undone = arena_array(&p->play, count + 1, sizeof(*is_undone));
    bool *stands = arena_array(&p->play, count + 1, sizeof(*stands));
    struct prove_end *end = next_end(p);

    *end = (struct prove_end){.point = w->point, .place = place, .undone = undone, .standing = standing};
    end->status = tail ? p->out->ends[tail->end].status : saga_status(&w->saga);
    end->waits_for = tail ? p->out->ends[tail->end].waits_for : waits_for(p, w);
    for (uint32_t i = 0; i < w->undone_count; i++) {
        undone[end->undone_count++] = w->undone[i];
    }
    for (uint32_t i = tail ? tail->undone_from : 0; tail && i < p->out->ends[tail->end].undone_count; i++) {
        uint32_t step = p->out->ends[tail->end].undone[i];

        undone[end->undone_count++] = step;
        is_undone[step] = true;
    }
    for (uint32_t i = 0; i < w->book_count; i++) {
        stands[w->books[i].number] = stands[w->books[i].number] || prove_world_stands(w, i);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (end->status != SAGA_COMPLETED && stands[p->order[i]] && !is_undone[p->order[i]]) {
            standing[end->standing_count++] = p->order[i];
        }
    }
    end->violation = w->violation.ptr ? arena_slice(p->arena, w->violation) : SLICE_NONE;
    p->out->violation_count += w->violation.ptr != NULL;
}

/* --- what follows once nothing is wrong any more --- */

static const struct tail *find_tail(const struct prover *p, const struct digest *digest)
{
    return map_find(&p->tails, digest->bytes, sizeof(digest->bytes));
}

/* Remembers how a play goes on from each of these states. A play that ended badly is always played out again. */
static void keep_tails(struct prover *p, const struct tail *passed, size_t count)
{
    uint32_t end = p->out->end_count - 1;

    for (size_t i = 0; i < count && !p->out->ends[end].violation.ptr; i++) {
        struct tail *tail = arena_dup(p->arena, &passed[i], sizeof(*tail));

        tail->end = end;
        map_put(&p->tails, tail->digest.bytes, sizeof(tail->digest.bytes), tail);
    }
}

/* Starts the trouble when it is not about an operation. */
static void strike(struct prove_world *w)
{
    if (w->point.trouble == TROUBLE_ABORT) {
        prove_world_abort(w);
    } else if (w->point.trouble == TROUBLE_DEADLINE) {
        prove_world_deadline(w, w->point.step == STEP_NONE ? STEP_NONE : prove_world_step(w, w->point.step));
        w->struck = true;
    }
}

/*
 * Plays from this state to the end, or to a state from which an earlier play went on. Returns false when the trouble
 * did not occur, so that there is nothing to report.
 */
static bool play(struct prover *p, const struct prove_world *from, struct prove_point point, bool aborted,
                 struct slice place)
{
    struct tail passed[PASSED_MAX];
    const struct tail *tail = NULL;
    struct prove_world w;
    size_t count = 0;

    if (is_spent(p)) {
        p->out->cut = true;
        return false;
    }
    arena_reset(&p->play);
    prove_world_fork(&w, from, &p->play);
    w.point = point;
    strike(&w);
    if (aborted) {
        prove_world_abort(&w);
    }
    do {
        if (prove_world_is_spent(&w) && !w.violation.ptr && w.saga.phase != PHASE_ENDED && w.decisions == 0 &&
            count < PASSED_MAX) {
            passed[count] = (struct tail){prove_world_digest(&w, true), 0, w.undone_count};
            tail = find_tail(p, &passed[count].digest);
            count++;
        }
    } while (!tail && move(p, &w));
    count_play(p);
    if (point.step != STEP_NONE && (!w.struck || w.abort_next) && !w.violation.ptr) {
        return false;
    }
    add_end(p, &w, place, tail);
    keep_tails(p, passed, count);
    return true;
}

/* --- the way on which nothing goes wrong --- */

static void walk_way(struct prover *p)
{
    uint32_t capacity = 64;
    struct prove_world w;
    bool more = true;

    p->way = arena_array(p->arena, capacity, sizeof(*p->way));
    p->way_count = 0;
    prove_world_open(&w, p->symbols.definition, p->canon, p->arena, &p->turn);
    while (more) {
        if (p->way_count == capacity) {
            struct prove_world *grown = arena_array(p->arena, capacity * 2, sizeof(*grown));

            for (uint32_t i = 0; i < capacity; i++) {
                grown[i] = p->way[i];
            }
            p->way = grown;
            capacity *= 2;
        }
        p->way[p->way_count++] = w;
        prove_world_fork(&w, &p->way[p->way_count - 1], p->arena);
        more = prove_world_move(&w);
    }
    p->way[p->way_count - 1] = w; /* with what the last look found */
}

static bool wants_step(struct prover *p, const struct prove_world *w, uint32_t number)
{
    struct wants wants;

    arena_reset(&p->turn);
    prove_world_wants(w, &p->turn, &wants);
    for (size_t i = 0; i < wants.count; i++) {
        if (wants.items[i].step != STEP_NONE && w->books[wants.items[i].step].number == number &&
            wants.items[i].direction == DIRECTION_DO) {
            return true;
        }
    }
    return false;
}

/* Finds the first state in which the step is about to begin or has begun. Returns NULL when the step never begins. */
static const struct prove_world *before_step(struct prover *p, uint32_t number)
{
    for (uint32_t i = 0; i < p->way_count; i++) {
        p->steps += p->way[i].book_count;
        if (p->way[i].saga.phase == PHASE_FORWARD && wants_step(p, &p->way[i], number)) {
            return &p->way[i];
        }
    }
    return NULL;
}

/* Returns the step as the way has it, with the classes being played. */
static const struct step_definition *step_of_way(const struct prover *p, uint32_t number)
{
    const struct prove_world *w = &p->way[p->way_count - 1];
    uint32_t step = prove_world_step(w, number);

    return step == STEP_NONE ? &p->canon->steps[number] : &w->saga.definition->steps[step];
}

static void play_step(struct prover *p, uint32_t number)
{
    const struct prove_world *from = is_spent(p) ? NULL : before_step(p, number);
    struct points points;

    p->out->cut = p->out->cut || is_spent(p);
    if (!from) {
        return;
    }
    forward_points(p, step_of_way(p, number), number, &points);
    for (uint32_t i = 0; i < points.count; i++) {
        (void)play(p, from, points.items[i], false, SLICE_NONE);
    }
}

/* Would an abort undo something of this step? */
static bool is_begun(const struct prove_world *w, uint32_t number)
{
    uint32_t step = prove_world_step(w, number);
    enum op_state state = step == STEP_NONE ? OP_NONE : w->saga.steps[step].forward.state;

    return w->saga.phase == PHASE_FORWARD && (state == OP_IN_FLIGHT || state == OP_COMPLETED);
}

/* Aborts the saga as late as possible, so that the step is undone together with as many others as possible. */
static void play_undo(struct prover *p, uint32_t number)
{
    uint32_t from = p->way_count;
    struct points points;

    undo_points(step_of_way(p, number), number, &points);
    for (uint32_t i = 0; i < points.count; i++) {
        while (
            from > 0 && !p->out->cut &&
            (!is_begun(&p->way[from - 1], number) || !play(p, &p->way[from - 1], points.items[i], true, SLICE_NONE))) {
            from--; /* an abort undoes nothing here: the terminal step is under way */
        }
    }
}

static struct slice place_of(struct prover *p, const struct prove_world *w)
{
    const char *type = record_type_name(w->last_type);

    if (w->last_step == STEP_NONE) {
        return arena_printf(p->arena, "after %s", type);
    }
    return arena_printf(p->arena, "after %s %.*s", type, SLICE_ARG(w->saga.definition->steps[w->last_step].id));
}

/* Plays this trouble in each state of the way in which the child is open; STEP_NONE means the saga. */
static void play_between(struct prover *p, enum prove_trouble trouble, uint32_t number)
{
    const struct prove_point point = {.step = number, .effect = EFFECT_READ, .trouble = trouble};

    for (uint32_t i = 0; i < p->way_count; i++) {
        const struct prove_world *w = &p->way[i];
        uint32_t step = number == STEP_NONE ? STEP_NONE : prove_world_step(w, number);
        bool is_there = number == STEP_NONE || (step != STEP_NONE && w->saga.steps[step].forward.state == OP_OPEN);

        if (w->saga.phase == PHASE_FORWARD && is_there) {
            (void)play(p, w, point, false, place_of(p, w));
        }
    }
}

/* Plays a lock that somebody else holds and that the saga does not wait for. Nothing has begun yet, so one play stands
 * for all locks. */
static void play_locks(struct prover *p)
{
    const struct prove_point point = {.step = STEP_NONE, .trouble = TROUBLE_LOCKED};
    bool fails = false;

    for (uint32_t i = 0; i < p->definition->lock_count; i++) {
        fails = fails || p->definition->locks[i].fails;
    }
    if (fails) {
        (void)play(p, &p->way[0], point, false, SLICE_NONE);
    }
}

/* --- the orders in which branches get on --- */

/* Was a state played from which the same follows? If not, the state is remembered. */
static bool seen_before(struct prover *p, struct map *seen, const struct prove_world *w)
{
    struct digest digest = prove_world_digest(w, false), *kept;

    if (map_find(seen, digest.bytes, sizeof(digest.bytes))) {
        return true;
    }
    kept = arena_dup(p->arena, &digest, sizeof(digest));
    map_put(seen, kept->bytes, sizeof(kept->bytes), kept);
    return false;
}

static struct slice whereabouts(struct prover *p, const struct prove_world *w)
{
    struct slice text = SLICE("");

    for (uint32_t i = 0; i < w->saga.definition->step_count; i++) {
        enum op_state state = w->saga.steps[i].forward.state;

        if (state == OP_PENDING || state == OP_IN_FLIGHT || state == OP_RETRYING || state == OP_PROBING ||
            state == OP_WAITING) {
            text = arena_printf(p->arena, "%.*s%s%.*s", SLICE_ARG(text), text.len ? " and " : "with ",
                                SLICE_ARG(w->saga.definition->steps[i].id));
        }
    }
    return text.len ? arena_printf(p->arena, "%.*s under way", SLICE_ARG(text)) : place_of(p, w);
}

static void play_stray(struct prover *p, const struct prove_world *from, struct prove_point point)
{
    struct prove_world w;

    arena_reset(&p->play);
    prove_world_fork(&w, from, &p->play);
    w.point = point;
    strike(&w);
    count_play(p);
    while (!seen_before(p, &p->played, &w)) {
        if (!move(p, &w)) {
            break;
        }
    }
    if (!w.violation.ptr) {
        return;
    }
    if (++p->strays > STRAYS_SHOWN_MAX) {
        p->out->violation_count++;
        return;
    }
    add_end(p, &w, whereabouts(p, from), NULL);
}

static void play_state(struct prover *p, const struct prove_world *w, const struct want *wants, size_t count)
{
    struct points points;

    play_stray(p, w, (struct prove_point){.step = STEP_NONE, .trouble = TROUBLE_ABORT});
    if (p->definition->deadline_ms) {
        play_stray(p, w, (struct prove_point){.step = STEP_NONE, .trouble = TROUBLE_DEADLINE});
    }
    for (uint32_t i = 0; i < w->book_count; i++) {
        const struct operation *op = &w->saga.steps[i].forward;

        if (op->state == OP_OPEN && op->due_ms) {
            play_stray(p, w, (struct prove_point){.step = w->books[i].number, .trouble = TROUBLE_DEADLINE});
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (wants[i].step == STEP_NONE || wants[i].direction != DIRECTION_DO) {
            continue;
        }
        forward_points(p, &w->saga.definition->steps[wants[i].step], w->books[wants[i].step].number, &points);
        for (uint32_t k = 0; k < points.count; k++) {
            play_stray(p, w, points.items[k]);
        }
    }
}

static void go(struct prove_world *next, const struct prove_world *from, const struct want *want, bool skip,
               struct arena *arena)
{
    prove_world_fork(next, from, arena);
    if (skip) {
        prove_world_skip(next, want->step);
    } else {
        prove_world_do(next, want);
    }
}

/* Queues the state that this want leads to, unless it is known or has no forward work left. Returns false when the
 * queue is full. */
static bool go_on(struct prover *p, struct prove_world *queue, uint32_t *queued, uint32_t states_max,
                  const struct prove_world *from, const struct want *want, bool skip)
{
    struct prove_world next;

    if (*queued == states_max) {
        p->out->bounded = true;
        return false;
    }
    arena_reset(&p->play); /* most states are known, so only new ones are built where they stay */
    go(&next, from, want, skip, &p->play);
    if (next.saga.phase == PHASE_FORWARD && !seen_before(p, &p->walked, &next)) {
        go(&queue[(*queued)++], from, want, skip, p->arena);
    }
    return true;
}

/* Walks breadth first. Whatever is wanted may happen next, and every condition may be true or false. */
static void walk_branches(struct prover *p)
{
    uint32_t count = p->canon->step_count ? p->canon->step_count : 1;
    uint32_t states_max = p->options && p->options->states_max ? p->options->states_max : STATES_DEFAULT_MAX;
    uint32_t queued = 0;
    struct prove_world *queue;

    states_max = states_max > STATE_STEPS_MAX / count ? STATE_STEPS_MAX / count : states_max;
    queue = arena_array(p->arena, states_max + 1, sizeof(*queue));
    prove_world_open(&queue[0], p->symbols.definition, p->canon, p->arena, &p->turn);
    (void)seen_before(p, &p->walked, &queue[0]);
    queued = 1;
    for (uint32_t at = 0; at < queued; at++) {
        struct arena look = {0};
        struct wants wants;

        if (p->out->plays >= PLAYS_MAX || is_spent(p)) {
            p->out->bounded = true;
            return;
        }
        p->out->states++;
        arena_init(&look, 4096);
        prove_world_wants(&queue[at], &look, &wants);
        play_state(p, &queue[at], wants.items, wants.count);
        for (size_t i = 0; i < wants.count; i++) {
            const struct want *want = &wants.items[i];
            bool is_asked = want->type == WANT_EVALUATE && want->step != STEP_NONE && want->direction == DIRECTION_DO &&
                            queue[at].saga.definition->steps[want->step].when.program_count > 0;

            if (!go_on(p, queue, &queued, states_max, &queue[at], want, false) ||
                (is_asked && !go_on(p, queue, &queued, states_max, &queue[at], want, true))) {
                break;
            }
        }
        arena_fini(&look);
    }
}

/* --- all of it --- */

static void look_at(struct prover *p, const struct prove_variant *variant)
{
    prove_symbolic(p->definition, variant, p->arena, &p->symbols);
    map_fini(&p->tails); /* another class may lead to other ends */
    map_init(&p->tails);
    walk_way(p);
}

static const struct prove_variant no_variant = {.written = NULL};

/* Plays a tool whose class depends on the arguments once more, under its other class. */
static void play_other_class(struct prover *p, uint32_t number, enum direction direction)
{
    const struct step_definition *step = &p->canon->steps[number], *written = written_step(&p->canon_symbols, step);
    const struct tool *tool = direction == DIRECTION_DO ? written->tool : written->compensate.tool;
    struct prove_variant variant = {prove_written(&p->canon_symbols, step->written_in), step->member, direction,
                                    EFFECT_READ};

    if (step->kind != STEP_CALL || step_is_group(step) || !tool || !tool->conditional) {
        return;
    }
    variant.effect = tool->effect_then == tool->effect ? tool->effect_else : tool->effect_then;
    if (variant.effect == tool->effect) {
        return;
    }
    look_at(p, &variant);
    if (direction == DIRECTION_DO) {
        play_step(p, number);
    } else {
        play_undo(p, number);
    }
    look_at(p, &no_variant);
}

static void put_in_order(struct prover *p, uint32_t group, uint32_t *count)
{
    for (uint32_t i = 0; i < p->canon->step_count; i++) {
        if (p->canon->steps[i].group == group) {
            p->order[(*count)++] = i;
            if (step_is_group(&p->canon->steps[i])) {
                put_in_order(p, i, count);
            }
        }
    }
}

static void play_all(struct prover *p)
{
    const struct prove_world *last = &p->way[p->way_count - 1];
    struct prove_report *out = p->out;

    out->unreached = arena_array(p->arena, p->canon->step_count + 1, sizeof(*out->unreached));
    add_end(p, last, SLICE_NONE, NULL);
    for (uint32_t i = 0; i < p->canon->step_count; i++) {
        if (last->saga.steps[p->order[i]].start_order == 0) {
            out->unreached[out->unreached_count++] = p->order[i];
        }
    }
    play_locks(p);
    for (uint32_t i = 0; i < p->canon->step_count; i++) {
        uint32_t number = p->order[i];
        const struct step_definition *step = &p->canon->steps[number];

        play_step(p, number);
        play_other_class(p, number, DIRECTION_DO);
        play_undo(p, number);
        play_other_class(p, number, DIRECTION_UNDO);
        if (step->kind == STEP_SAGA && !template_is_set(&step->for_each) && step->child->deadline_ms) {
            play_between(p, TROUBLE_DEADLINE, number);
        }
    }
    play_between(p, TROUBLE_ABORT, STEP_NONE);
    if (p->definition->deadline_ms) {
        play_between(p, TROUBLE_DEADLINE, STEP_NONE);
    }
    walk_branches(p);
}

void prove_saga(const struct definition *definition, const struct prove_options *options, struct arena *arena,
                struct prove_report *out)
{
    struct prover p = {.definition = definition, .options = options, .arena = arena, .out = out};
    uint32_t ordered = 0;

    *out = (struct prove_report){0};
    arena_init(&p.play, (size_t)256 << 10);
    arena_init(&p.turn, (size_t)64 << 10);
    map_init(&p.walked);
    map_init(&p.played);
    map_init(&p.tails);
    look_at(&p, &no_variant);
    p.canon = out->definition = p.way[p.way_count - 1].saga.definition;
    p.canon_symbols = p.symbols;
    p.order = arena_array(arena, p.canon->step_count + 1, sizeof(*p.order));
    put_in_order(&p, STEP_NONE, &ordered);
    for (uint32_t i = 0; i < p.way_count; i++) {
        p.way[i].canon = p.canon; /* the steps are numbered by `canon` */
    }
    play_all(&p);
    map_fini(&p.tails);
    map_fini(&p.played);
    map_fini(&p.walked);
    arena_fini(&p.turn);
    arena_fini(&p.play);
}
