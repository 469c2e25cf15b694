/*
 * Runs an ended saga once more, as a saga of its own: the same input, a chosen version, and the business id with "~2",
 * "~3" and so on. The owner of the shard of the ended saga checks whether that is allowed, and starts the rerun like
 * any saga:
 *
 *   rerun_send() -> the owner: ERR_ENDED -> rerun_ended(): what stands is accepted?
 *     -> find ID~N -> there is none: start it -> a row beside the ended saga says who wanted it -> the new saga
 *                  -> there is one: read it -> of this request: the answer; not over, or well: refused; over, and what
 *                     it did is undone or accepted as well: N + 1
 *
 * The business id makes it one saga: two clients that ask at once start the same one, and one of them is told so. Two
 * tags link the new saga with the one before: `rerun_of`, and `rerun_key`, which identifies a repeat of the request.
 */
#include "run/request/act.h"
#include "run/request/calling.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/json.h"
#include "run/saga/cases.h"
#include "run/saga/fold.h"
#include "run/saga/live.h"
#include "run/shard/shard.h"
#include "store/business.h"

#define RERUNS_MAX 1000
#define KEY_DIGITS 32

struct rerun { /* a rerun, in the arena of its work */
    struct work *work;
    struct slice name, base, business_id, input, tags, key, accept_standing;
    uint32_t version, number;
    bool started;
    struct saga_id of, id;
    struct find_saga find;
    struct read_saga read;
    struct engine_request start;
    struct arena start_arena;
};

void rerun_send(struct work *work)
{
    if (!work->mail.input.rerun.id.ptr) {
        work_fail(work, ERR_INVALID, "a rerun needs an Idempotency-Key",
                  "send one with the request, so that a repeat of it starts nothing more");
    } else {
        route_send(work);
    }
}

/* --- what stands --- */

static bool stands(const struct saga *saga, uint32_t step)
{
    const struct operation *forward = &saga->steps[step].forward;

    return forward->attempts > 0 && forward->effect != EFFECT_READ &&
           (forward->took_effect == TOOK_EFFECT_YES || forward->took_effect == TOOK_EFFECT_MAYBE);
}

static bool is_accepted(struct slice names, struct slice step, struct arena *arena)
{
    struct json_walk walk = json_walk(names);
    struct slice name;

    while (names.ptr && json_next_element(&walk, &name)) {
        if (slice_equal(json_string(name, arena), step)) {
            return true;
        }
    }
    return false;
}

/* Returns the steps whose effects stand and were not accepted, as a text; SLICE_NONE when there are none. */
static struct slice not_accepted(const struct saga *saga, struct slice names, struct arena *arena)
{
    struct slice text = SLICE_NONE;

    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        struct slice id = saga->definition->steps[i].id;

        if (stands(saga, i) && !is_accepted(names, id, arena)) {
            text = arena_printf(arena, "%.*s%s%.*s", SLICE_ARG(text), text.ptr ? ", " : "", SLICE_ARG(id));
        }
    }
    return text;
}

/* --- the new saga --- */

static struct slice key_digits(struct slice key, struct arena *arena)
{
    struct slice fields[] = {key};
    struct digest digest = digest_fields("rerun", fields, COUNT_OF(fields));
    char hex[65];

    digest_hex(&digest, hex);
    return arena_slice(arena, (struct slice){hex, KEY_DIGITS});
}

static struct slice make_tags(struct rerun *rerun, struct slice tags)
{
    struct json_walk walk = json_walk(tags.ptr ? tags : SLICE("{}"));
    struct arena *arena = &rerun->work->arena;
    struct slice name_raw, value;
    char of[UUID_TEXT_BYTES];
    struct buffer out;
    struct json_writer w;

    uuid_text(&rerun->of.uuid, of);
    buffer_init(&out, tags.len + 1024);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    while (json_next_member(&walk, &name_raw, &value)) {
        struct slice name = json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, arena);

        if (!slice_is(name, "rerun_of") && !slice_is(name, "rerun_key")) {
            json_write_raw(&w, arena_text(arena, name), value);
        }
    }
    json_write_text(&w, "rerun_of", of);
    json_write_slice(&w, "rerun_key", rerun->key);
    json_object_end(&w);
    CHECK(!out.overflow);
    struct slice made = arena_slice(arena, buffer_slice(&out));

    buffer_fini(&out);
    return made;
}

/* Splits a business id: "o-7" into "o-7" and 1, and "o-7~3" of a rerun into "o-7" and 3. Without a business id the
 * saga's own id counts. */
static void split_id(struct rerun *rerun, const struct saga *saga)
{
    struct arena *arena = &rerun->work->arena;
    struct slice id = saga->business_id;
    bool is_rerun = saga->tags.ptr && json_member(saga->tags, "rerun_of").ptr;
    char own[UUID_TEXT_BYTES];
    size_t at = id.len;
    int64_t number = 1;

    uuid_text(&saga->id.uuid, own);
    while (is_rerun && at > 0 && id.ptr[at - 1] != '~') {
        at--;
    }
    is_rerun = is_rerun && at > 1 && slice_to_i64((struct slice){id.ptr + at, id.len - at}, &number) && number > 1 &&
               number < RERUNS_MAX;
    rerun->number = is_rerun ? (uint32_t)number : 1;
    rerun->base = arena_slice(arena, is_rerun ? (struct slice){id.ptr, at - 1} : id.ptr != NULL ? id : slice_of(own));
}

static void rerun_end(struct rerun *rerun, enum err_code code, const struct err *err)
{
    arena_fini(&rerun->start_arena);
    work_done(rerun->work, code, err);
}

static void rerun_fail(struct rerun *rerun, enum err_code code, const char *hint, const char *why, ...)
    PRINTF_LIKE(4, 5);

static void rerun_fail(struct rerun *rerun, enum err_code code, const char *hint, const char *why, ...)
{
    char text[240];
    struct err err = {0};
    va_list args;

    va_start(args, why);
    (void)vsnprintf(text, sizeof(text), why, args); /* a cut business id can still be recognised */
    va_end(args);
    (void)err_set(&err, code, "%s", text);
    err_hint(&err, "%s", hint);
    rerun_end(rerun, code, &err);
}

static void show_new(struct rerun *rerun)
{
    struct work *work = rerun->work;

    arena_fini(&rerun->start_arena);
    if (work->request) {
        work->request->created = rerun->started;
    }
    work->saga = rerun->id;
    query_saga_from_store(work);
}

static void rerun_look(struct rerun *rerun);

/* Refuses when an effect of the saga stands that was not accepted. Returns false when there is none. */
static bool refuses_standing(struct rerun *rerun, const struct saga *saga, const char *whose, struct slice id)
{
    struct slice left = not_accepted(saga, rerun->accept_standing, &rerun->work->arena);

    if (left.ptr) {
        rerun_fail(rerun, ERR_CONFLICT, "Name the steps in \"accept_standing\" if they may happen a second time.",
                   "what %s%.*s did stands, or may stand: %.*s", whose, (int)(id.len < 60 ? id.len : 60), id.ptr,
                   (int)(left.len < 120 ? left.len : 120), left.ptr);
    }
    return left.ptr != NULL;
}

/* --- it is there already --- */

/* Looks behind a rerun that ended badly: it was undone, or given up with standing effects. */
static void look_behind(struct rerun *rerun)
{
    struct work *work = rerun->work;
    struct err err = {0};
    const struct saga *saga = fold_turns(work->engine, rerun->read.id, work->namespace, rerun->read.turns,
                                         rerun->read.turn_count, &work->arena, &err);

    if (!saga) {
        rerun_end(rerun, err.code, &err);
    } else if (!refuses_standing(rerun, saga, "its rerun ", rerun->business_id)) {
        rerun_look(rerun);
    }
}

static bool has_tag(const struct saga_row *row, const char *name, struct slice value, struct arena *arena)
{
    return row->tags.ptr && slice_equal(json_string(json_member(row->tags, name), arena), value);
}

static void on_read(struct store_read *read)
{
    struct rerun *rerun = read->context;
    const struct saga_row *row = &rerun->read.row;
    struct arena *arena = &rerun->work->arena;
    char of[UUID_TEXT_BYTES];

    uuid_text(&rerun->of.uuid, of);
    if (read->code != ERR_OK) {
        rerun_end(rerun, read->code, &read->err);
    } else if (!row->tags.ptr || !json_member(row->tags, "rerun_of").ptr) {
        rerun_fail(rerun, ERR_TAKEN, "start it anew under an id of your own",
                   "the business id \"%.*s\" belongs to a saga that is no rerun", SLICE_ARG(rerun->business_id));
    } else if (has_tag(row, "rerun_key", rerun->key, arena) && has_tag(row, "rerun_of", slice_of(of), arena)) {
        rerun->id = row->id;
        show_new(rerun);
    } else if (!saga_status_is_final(row->status) || row->status == SAGA_COMPLETED) {
        rerun_fail(rerun, ERR_CONFLICT, "look at that one: what it did must not be done twice",
                   "a rerun of this saga, \"%.*s\", %s", SLICE_ARG(rerun->business_id),
                   row->status == SAGA_COMPLETED ? "has completed" : "has not ended");
    } else {
        look_behind(rerun);
    }
}

static void read_existing(struct rerun *rerun, struct saga_id id)
{
    rerun->read = (struct read_saga){.read = {.arena = &rerun->work->arena, .done = on_read, .context = rerun},
                                     .id = id,
                                     .namespace = rerun->work->namespace};
    store_read_saga(rerun->work->engine->store, &rerun->read);
}

/* --- it is not --- */

static void on_noted(void *context, enum err_code code)
{
    struct rerun *rerun = context;

    if (code != ERR_OK) {
        rerun_fail(rerun, code, "it runs: list the sagas with the tag rerun_of",
                   "it was started, but who wanted it could not be written");
    } else {
        show_new(rerun);
    }
}

static void on_started(struct engine_request *start)
{
    struct rerun *rerun = start->context;
    struct work *work = rerun->work;

    if (start->code == ERR_OTHER_INPUT) {
        rerun_fail(rerun, ERR_TAKEN, "start it anew under an id of your own",
                   "the business id \"%.*s\" belongs to another saga", SLICE_ARG(rerun->business_id));
    } else if (start->code != ERR_OK) {
        rerun_end(rerun, start->code, &start->err);
    } else if (!start->created) {
        read_existing(rerun, start->saga); /* another client was faster */
    } else {
        if (work->act) {
            work->act->saga = rerun->of;
            work->act->saga_name = rerun->name;
            work->act->detail = rerun->business_id;
        }
        const struct late_rerun row = {.saga = rerun->of,
                                       .rerun = start->saga,
                                       .namespace = work->namespace,
                                       .business_id = rerun->business_id,
                                       .actor = work->actor,
                                       .note = work->mail.input.rerun.note,
                                       .act = act_of_work(work)};

        rerun->id = start->saga;
        rerun->started = true;
        case_rerun(&work->engine->shards[saga_id_shard(rerun->of)], &row, on_noted, rerun);
    }
}

static void start_new(struct rerun *rerun)
{
    rerun->start = (struct engine_request){.arena = &rerun->start_arena,
                                           .namespace = rerun->work->namespace,
                                           .actor = rerun->work->actor,
                                           .done = on_started,
                                           .context = rerun,
                                           .in.start = {.saga = rerun->name,
                                                        .version = rerun->version,
                                                        .business_id = rerun->business_id,
                                                        .key = rerun->business_id,
                                                        .tags = rerun->tags,
                                                        .input = rerun->input}};
    engine_start_saga(rerun->work->engine, &rerun->start);
}

static void on_found(struct store_read *read)
{
    struct rerun *rerun = read->context;

    if (read->code == ERR_NOT_FOUND) {
        start_new(rerun);
    } else if (read->code != ERR_OK) {
        rerun_end(rerun, read->code, &read->err);
    } else {
        read_existing(rerun, rerun->find.id);
    }
}

/* Looks at the next number. */
static void rerun_look(struct rerun *rerun)
{
    struct work *work = rerun->work;

    rerun->number++;
    rerun->business_id = arena_printf(&work->arena, "%.*s~%u", SLICE_ARG(rerun->base), (unsigned)rerun->number);
    if (rerun->business_id.len > BUSINESS_ID_BYTES_MAX || rerun->number > RERUNS_MAX) {
        rerun_fail(rerun, ERR_CONFLICT, "start it anew under an id of your own",
                   "its business id has no room for another number");
        return;
    }
    struct digest digest = business_digest(work->namespace, rerun->name, rerun->business_id);

    rerun->find = (struct find_saga){.read = {.arena = &work->arena, .done = on_found, .context = rerun},
                                     .business_digest = digest,
                                     .shard = digest_shard(&digest)};
    store_find_saga(work->engine->store, &rerun->find);
}

bool rerun_ended(struct work *work)
{
    const struct live *live = work->mail.live;
    const struct saga_input *input = &work->mail.input;

    if (!live || live->dropped || saga_is_open(&live->saga)) {
        return false;
    }
    struct rerun *rerun = arena_alloc(&work->arena, sizeof(*rerun));

    rerun->work = work;
    rerun->of = live->saga.id;
    rerun->version = input->rerun.version;
    rerun->name = arena_slice(&work->arena, live->saga.definition->name);
    rerun->input = arena_slice(&work->arena, live->saga.input);
    rerun->key = key_digits(input->rerun.id, &work->arena);
    rerun->accept_standing = arena_slice(&work->arena, input->rerun.accept_standing);
    rerun->tags = make_tags(rerun, live->saga.tags);
    split_id(rerun, &live->saga);
    arena_init(&rerun->start_arena, 4096);
    if (!refuses_standing(rerun, &live->saga, "this saga", SLICE(""))) {
        rerun_look(rerun);
    }
    return true;
}
