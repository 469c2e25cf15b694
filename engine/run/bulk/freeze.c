/*
 * Makes and freezes the set of a job:
 *
 *     read the request -> gather -> look -> write the items -> write what was found -> answer
 *
 * Gathering reads pages of the list of cases or of sagas, or the elements of the request. Looking reads sagas from
 * their logs, a few at a time, so that an element finds its operation and the preview can say what would follow. A
 * filter looks at a bounded number of sagas, and the answer says how many. None of this changes a saga.
 */
#include "run/bulk/freeze.h"

#include "base/json.h"
#include "run/query/filter.h"
#include "run/saga/cases.h"

#define PAGE_ITEMS 500
#define ADD_ITEMS 200
#define SAMPLE_MAX 10
#define BODY_BYTES_MAX (1u << 20)

static struct arena *arena_of(struct freeze *freeze)
{
    return &freeze->work->arena;
}

void freeze_fail(struct freeze *freeze, enum err_code code, const struct err *err)
{
    freeze->over = true;
    if (freeze->under_way == 0) {
        work_done(freeze->work, code, err);
    } else {
        freeze->work->code = code; /* reported when the last look has come back */
        freeze->work->err = *err;
    }
}

/* --- candidates --- */

bool freeze_add(struct freeze *freeze, struct candidate candidate)
{
    struct err err = {0};

    if (freeze->count == freeze->most) {
        (void)err_set(&err, ERR_INVALID, "this is about more than %zu items", freeze->most);
        err_hint(&err, "name fewer with a narrower filter, and do it in several jobs");
        freeze_fail(freeze, ERR_INVALID, &err);
        return false;
    }
    if (freeze->count == freeze->capacity) {
        size_t capacity = freeze->capacity ? 2 * freeze->capacity : PAGE_ITEMS;
        struct candidate *grown = arena_array(arena_of(freeze), capacity, sizeof(*grown));

        for (size_t i = 0; i < freeze->count; i++) {
            grown[i] = freeze->candidates[i];
        }
        freeze->candidates = grown;
        freeze->capacity = capacity;
    }
    freeze->candidates[freeze->count++] = candidate;
    return true;
}

static struct slice uuid_name(const struct uuid *id, struct arena *arena)
{
    char text[UUID_TEXT_BYTES];

    uuid_text(id, text);
    return arena_slice(arena, slice_of(text));
}

struct slice freeze_name(const struct bulk_item *item, struct arena *arena)
{
    return item->business_id.len ? item->business_id : uuid_name(&item->saga.uuid, arena);
}

static struct item_identity identity_of(const struct bulk_item *item)
{
    return verbs[item->verb].on == ON_SAGA
               ? (struct item_identity){.saga = item->saga.uuid}
               : (struct item_identity){.saga = item->saga.uuid, .key = item->key.uuid, .escalation = item->escalation};
}

/* Sets what the verb is about. Returns false when the item has nothing that the verb could be about. */
bool freeze_aim(struct bulk_item *item)
{
    const struct verb *verb = &verbs[item->verb];

    switch (verb->on) {
    case ON_SAGA:
        return true;
    case ON_OPERATION:
        *verb_key(verb, &item->input) = item->key;
        return !uuid_is_nil(&item->key.uuid);
    case ON_ESCALATION:
        *verb_number(verb, &item->input) = item->escalation;
        return item->escalation != 0;
    case ON_APPROVAL:
        break;
    }
    UNREACHABLE();
}

bool freeze_keep(struct freeze *freeze, struct candidate *candidate, struct bulk_item *item)
{
    struct work *work = freeze->work;

    candidate->body = bulk_item_write(item, loop_wall_ms(work->engine->loop), &work->arena);
    return candidate->body.ptr != NULL;
}

static bool freeze_seen_before(struct freeze *freeze, const struct bulk_item *item)
{
    const struct item_identity identity = identity_of(item);
    struct item_identity *key;

    if (map_find(&freeze->seen, &identity, sizeof(identity))) {
        return true;
    }
    key = arena_dup(arena_of(freeze), &identity, sizeof(identity));
    map_put(&freeze->seen, key, sizeof(*key), key);
    return false;
}

/* Nobody can tell from the file which of two verdicts is right, least of all from the order in which they were looked
 * at. */
const char *freeze_repeats(struct freeze *freeze, struct candidate *candidate, const struct bulk_item *item)
{
    static const char contradicted[] = "the items about it say different things";
    const struct item_identity identity = identity_of(item);
    struct candidate *before = map_find(&freeze->seen, &identity, sizeof(identity));
    struct slice body = candidate->body;

    if (!before) {
        map_put(&freeze->seen, arena_dup(arena_of(freeze), &identity, sizeof(identity)), sizeof(identity), candidate);
        return NULL;
    }
    candidate->body = SLICE_NONE;
    if (slice_equal(before->body, body)) {
        return "the same item stands there before";
    }
    if (before->body.ptr) {
        before->body = SLICE_NONE;
        groups_add(&freeze->unmatched, slice_of(contradicted), before->name, arena_of(freeze));
    }
    return contradicted;
}

/* --- gather: cases --- */

static void gather_page(struct freeze *freeze);

static void item_of_case(struct freeze *freeze, const struct question_row *row, const struct saga_input *input,
                         struct bulk_item *item)
{
    struct slice evidence = json_member(row->body, "evidence");
    int64_t attempts = 0, round = 1; /* engines of an earlier release wrote neither */

    *item = (struct bulk_item){.saga = row->saga,
                               .saga_name = row->saga_name,
                               .business_id = row->business_id.len ? row->business_id : SLICE_NONE,
                               .step = json_string(json_member(row->body, "step"), &freeze->page),
                               .escalation = row->number,
                               .verb = freeze->plan.verb,
                               .input = *input};
    if (verbs[item->verb].on != ON_SAGA) {
        (void)uuid_parse(json_string(json_member(evidence, "operation"), &freeze->page), &item->key.uuid);
        (void)json_i64(json_member(row->body, "round"), &round);
        (void)json_i64(json_member(evidence, "attempts"), &attempts); /* a case about a whole saga has no attempts */
        item->attempts = (uint32_t)attempts;
        bulk_item_set_round(item, (uint64_t)round);
    }
}

static void add_case(struct freeze *freeze, const struct question_row *row, const struct saga_input *input)
{
    struct candidate candidate = {0};
    struct bulk_item item;

    item_of_case(freeze, row, input, &item);
    if (question_is_case(row)) {
        groups_add(&freeze->unmatched, SLICE("the log of the saga cannot be read"), freeze_name(&item, &freeze->page),
                   arena_of(freeze));
    } else if (!freeze_aim(&item)) {
        groups_add(&freeze->unmatched, SLICE("the case is about no operation"), freeze_name(&item, &freeze->page),
                   arena_of(freeze));
    } else if (!freeze_seen_before(freeze, &item) && freeze_keep(freeze, &candidate, &item)) {
        (void)freeze_add(freeze, candidate);
    }
}

static void on_cases(struct store_read *read)
{
    struct freeze *freeze = read->context;
    const struct list_questions *list = &freeze->cases;
    struct saga_input input;
    struct faults faults;

    if (read->code != ERR_OK) {
        freeze_fail(freeze, read->code, &read->err);
        return;
    }
    faults_init(&faults, &freeze->page);
    bulk_plan_members(&freeze->plan, SLICE_NONE, &freeze->page, &input, &faults);
    for (size_t i = 0; i < list->count && !freeze->over; i++) {
        add_case(freeze, &list->rows[i], &input);
    }
    if (freeze->over) {
        return;
    }
    if (list->count == list->limit) {
        freeze->cases.before = list->rows[list->count - 1].number;
        freeze->cases.before_ms = list->rows[list->count - 1].opened_ms;
    } else if (list->has_edge) {
        freeze->cases.before = list->edge;
        freeze->cases.before_ms = list->edge_ms;
    } else {
        freeze_look(freeze);
        return;
    }
    gather_page(freeze);
}

/* --- gather: sagas --- */

static void on_sagas(struct store_read *read)
{
    struct freeze *freeze = read->context;
    const struct list_sagas *list = &freeze->sagas;
    struct saga_input input;
    struct faults faults;

    if (read->code != ERR_OK) {
        freeze_fail(freeze, read->code, &read->err);
        return;
    }
    faults_init(&faults, &freeze->page);
    bulk_plan_members(&freeze->plan, SLICE_NONE, &freeze->page, &input, &faults);
    for (size_t i = 0; i < list->count && !freeze->over; i++) {
        const struct saga_row *row = &list->rows[i];

        if (slice_is(row->saga_name, RUN_SAGA_NAME)) { /* no saga to people */
            continue;
        }
        struct candidate candidate = {0};
        struct bulk_item item = {.saga = row->id,
                                 .saga_name = row->saga_name,
                                 .business_id = row->business_id.len ? row->business_id : SLICE_NONE,
                                 .verb = freeze->plan.verb,
                                 .input = input};

        if (freeze_keep(freeze, &candidate, &item)) {
            (void)freeze_add(freeze, candidate);
        }
    }
    if (freeze->over) {
        return;
    }
    if (list->has_edge) {
        freeze->sagas.before = list->edge;
    } else if (list->count < list->limit) {
        freeze_look(freeze);
        return;
    } else {
        freeze->sagas.before = list->rows[list->count - 1].id.uuid;
    }
    gather_page(freeze);
}

/* Comes from the loop, so that the memory of the page before is freed only when nobody uses it any more. */
static void on_gather(struct deferred *deferred)
{
    struct freeze *freeze = container_of(deferred, struct freeze, deferred);
    struct work *work = freeze->work;

    arena_reset(&freeze->page);
    if (!work->request) {
        work_done(work, ERR_TIMEOUT, NULL); /* nobody waits for the result any more */
    } else if (freeze->plan.of == BULK_OF_CASES) {
        freeze->cases.read = (struct store_read){.arena = &freeze->page, .done = on_cases, .context = freeze};
        store_list_questions(work->engine->store, &freeze->cases);
    } else {
        freeze->sagas.read = (struct store_read){.arena = &freeze->page, .done = on_sagas, .context = freeze};
        store_list_sagas(work->engine->store, &freeze->sagas);
    }
}

static void gather_page(struct freeze *freeze)
{
    loop_defer(freeze->work->engine->loop, &freeze->deferred, on_gather);
}

static void gather_items(struct freeze *freeze)
{
    struct json_walk walk = json_walk(freeze->plan.items);
    struct slice item;

    freeze->names = definitions_list(freeze->work->engine->definitions, DEFINITION_SAGA, freeze->work->namespace,
                                     arena_of(freeze), &freeze->name_count);
    while (!freeze->over && json_next_element(&walk, &item)) {
        (void)freeze_add(freeze, (struct candidate){.asked = item});
    }
    if (!freeze->over) {
        freeze_look(freeze);
    }
}

/* --- write --- */

static void add_answer(struct freeze *freeze, const struct candidate *candidate)
{
    if (candidate->says.ptr) {
        freeze->looked++;
        freeze->applies += candidate->applies;
        groups_add(candidate->applies ? &freeze->leads_to : &freeze->refused, candidate->says, candidate->name,
                   arena_of(freeze));
    }
}

static void choose_bodies(struct freeze *freeze)
{
    freeze->bodies = arena_array(arena_of(freeze), freeze->count + 1, sizeof(*freeze->bodies));
    for (size_t i = 0; i < freeze->count; i++) {
        if (freeze->candidates[i].body.ptr) {
            freeze->bodies[freeze->body_count++] = freeze->candidates[i].body;
            add_answer(freeze, &freeze->candidates[i]);
        }
    }
}

static void write_verb(struct freeze *freeze, struct json_writer *w)
{
    static const char *const said[] = {"action", "as", "then", "result", "args", "accept_double", "note", "filter"};

    for (size_t i = 0; i < COUNT_OF(said); i++) {
        struct slice value = json_member(freeze->plan.body, said[i]);

        if (value.ptr) {
            json_write_raw(w, said[i], value);
        }
    }
}

/* Returns the body of the job, which it shows for as long as it is kept. */
static struct slice body_of(struct freeze *freeze)
{
    struct buffer text;
    struct json_writer w;

    buffer_init(&text, BODY_BYTES_MAX);
    json_writer_init(&w, &text);
    json_object_begin(&w, NULL);
    write_verb(freeze, &w);
    json_write_i64(&w, "looked", (int64_t)freeze->looked);
    json_write_i64(&w, "applies", (int64_t)freeze->applies);
    groups_write(&freeze->refused, "refused", "reason", true, &w);
    groups_write(&freeze->unmatched, "unmatched", "reason", true, &w);
    groups_write(&freeze->leads_to, "leads_to", "status", false, &w);
    json_array_begin(&w, "sample");
    for (size_t i = 0; i < freeze->body_count && i < SAMPLE_MAX; i++) {
        json_object_begin(&w, NULL);
        bulk_item_show(freeze->bodies[i], &w);
        json_object_end(&w);
    }
    json_array_end(&w);
    json_object_end(&w);
    struct slice body = text.overflow ? SLICE_NONE : arena_slice(arena_of(freeze), buffer_slice(&text));

    buffer_fini(&text);
    return body;
}

static void on_frozen(struct store_read *read)
{
    struct freeze *freeze = read->context;
    struct work *work = freeze->work;
    struct json_writer w;

    if (read->code != ERR_OK) {
        freeze_fail(freeze, read->code, &read->err);
        return;
    }
    json_writer_init(&w, &work->out);
    bulk_show(work, &freeze->done.row, &w);
    work_done(work, ERR_OK, NULL);
}

static void write_end(struct freeze *freeze)
{
    struct work *work = freeze->work;

    freeze->done = (struct bulk_freeze){.read = {.arena = &work->arena, .done = on_frozen, .context = freeze},
                                        .id = freeze->id,
                                        .body = freeze->begin.body,
                                        .count = freeze->body_count};
    store_bulk_freeze(work->engine->store, &freeze->done);
}

static void write_items(struct freeze *freeze);

static void on_write(struct deferred *deferred)
{
    write_items(container_of(deferred, struct freeze, deferred));
}

static void on_added(struct store_read *read)
{
    struct freeze *freeze = read->context;

    if (read->code != ERR_OK) {
        freeze_fail(freeze, read->code, &read->err);
        return;
    }
    freeze->written += freeze->add.count;
    loop_defer(freeze->work->engine->loop, &freeze->deferred, on_write);
}

static void write_items(struct freeze *freeze)
{
    struct work *work = freeze->work;
    size_t left = freeze->body_count - freeze->written;

    arena_reset(&freeze->page);
    if (left == 0) {
        write_end(freeze);
        return;
    }
    freeze->add = (struct bulk_add){.read = {.arena = &freeze->page, .done = on_added, .context = freeze},
                                    .id = freeze->id,
                                    .before = freeze->written,
                                    .bodies = freeze->bodies + freeze->written,
                                    .count = left < ADD_ITEMS ? left : ADD_ITEMS,
                                    .look_ms = loop_wall_ms(work->engine->loop)};
    store_bulk_add(work->engine->store, &freeze->add);
}

static void on_begun(struct store_read *read)
{
    struct freeze *freeze = read->context;
    struct err err = {0};

    if (read->code != ERR_OK) {
        freeze_fail(freeze, read->code, &read->err);
    } else if (!freeze->begin.begun) {
        (void)err_set(&err, ERR_INVALID, "this namespace has %zu bulk jobs that run or may be run", freeze->begin.max);
        err_hint(&err, "wait for one, stop one with `sagactl bulk stop`, or let one expire");
        freeze_fail(freeze, ERR_INVALID, &err);
    } else {
        write_items(freeze);
    }
}

void freeze_write(struct freeze *freeze)
{
    struct work *work = freeze->work;
    struct err err = {0};
    int64_t now_ms = loop_wall_ms(work->engine->loop);

    choose_bodies(freeze);
    freeze->begin = (struct bulk_begin){.read = {.arena = &work->arena, .done = on_begun, .context = freeze},
                                        .id = freeze->id,
                                        .namespace = work->namespace,
                                        .body = body_of(freeze),
                                        .actor = work->actor,
                                        .expires_ms = now_ms + BULK_RUN_WITHIN_MS,
                                        .max = work->engine->options.bulk_jobs_max};
    if (!freeze->begin.body.ptr) {
        freeze_fail(freeze, err_set(&err, ERR_TOO_LARGE, "the request is larger than a job may be"), &err);
    } else {
        store_bulk_begin(work->engine->store, &freeze->begin);
    }
}

/* --- begin --- */

static void release(void *object)
{
    struct freeze *freeze = object;

    map_fini(&freeze->seen);
    arena_fini(&freeze->page);
    for (size_t i = 0; i < LOOKS_AT_ONCE; i++) {
        arena_fini(&freeze->looks[i].arena);
    }
}

static struct freeze *freeze_new(struct work *work)
{
    struct freeze *freeze = arena_alloc(&work->arena, sizeof(*freeze));
    int64_t now_ms = loop_wall_ms(work->engine->loop);
    struct uuid drawn = uuid_v7(now_ms);

    freeze->work = work;
    freeze->id = saga_id_new(now_ms, drawn.bytes[sizeof(drawn.bytes) - 1] % SHARD_COUNT);
    freeze->most = work->engine->options.bulk_items_max;
    map_init(&freeze->seen);
    arena_init(&freeze->page, 65536);
    for (size_t i = 0; i < LOOKS_AT_ONCE; i++) {
        arena_init(&freeze->looks[i].arena, 65536);
    }
    arena_on_release(&work->arena, release, freeze);
    return freeze;
}

static bool read_plan(struct freeze *freeze, struct engine_request *request)
{
    struct work *work = freeze->work;
    struct faults faults;
    struct err err = {0};

    faults_init(&faults, request->arena);
    bulk_plan_read(arena_slice(&work->arena, request->in.bulk.body), &work->arena, &freeze->plan, &faults);
    if (faults.count > 0) {
        work_fail_by_faults(work, &faults, "this bulk job is not right");
        return false;
    }
    if (request->in.bulk.role < verbs[freeze->plan.verb].least) {
        (void)err_set(&err, ERR_FORBIDDEN, "this needs the role %s", role_name(verbs[freeze->plan.verb].least));
        work_done(work, ERR_FORBIDDEN, &err);
        return false;
    }
    return true;
}

void engine_freeze_bulk(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct freeze *freeze;

    if (work_refused(work)) {
        return;
    }
    freeze = freeze_new(work);
    if (!read_plan(freeze, request)) {
        return;
    }
    switch (freeze->plan.of) {
    case BULK_OF_ITEMS:
        gather_items(freeze);
        return;
    case BULK_OF_SAGAS:
        if (work_read_sagas(work, &freeze->plan.sagas, &freeze->sagas)) {
            freeze->sagas.limit = PAGE_ITEMS;
            gather_page(freeze);
        }
        return;
    case BULK_OF_DEBTS:
        if (work_read_sagas(work, &freeze->plan.sagas, &freeze->sagas)) {
            freeze_gather_debts(freeze);
        }
        return;
    case BULK_OF_CASES:
        freeze->cases = (struct list_questions){.kind = QUESTION_ESCALATION, .namespace = work->namespace};
        freeze->plan.cases.limit = PAGE_ITEMS;
        if (work_read_questions(work, &freeze->plan.cases, &freeze->cases)) {
            gather_page(freeze);
        }
        return;
    }
    UNREACHABLE();
}
