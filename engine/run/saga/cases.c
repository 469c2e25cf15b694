/*
 * Cases that no log tells of, because nothing can be appended: the log of a saga cannot be read, or the saga has ended
 * and its follower was refused. Such a case has its own row beside the log, in the shard of its number. Only the owner
 * of that shard opens and resolves it. People see and answer it like any escalation.
 *
 *   unreadable   abandon: ends the saga for good. What stands by the readable part of its log is listed. Nothing is
 *                appended.
 *   follower     retry: the same start goes into the inbox once more; a business id is started once, so that saying
 *                it twice does no harm. abandon: somebody has settled it by hand, or it is not wanted any more.
 *   cost         what an operation cost, said after the end of its saga: a note of who said it, resolved as it is
 *                written.
 *
 * A newer program or a mended row may make the log readable again, and then the case closes itself.
 */
#include "run/saga/cases.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/log.h"
#include "base/metric.h"
#include "core/saga/machine.h"
#include "run/request/act.h"
#include "run/saga/fold.h"
#include "run/saga/live.h"
#include "run/saga/saga_room.h"
#include "run/shard/shard.h"
#include "store/cases.h"

#define BODY_BYTES_MAX ((size_t)4 << 20)
#define OPEN_ITEMS_MAX 100

struct cases {
    struct map unreadable; /* saga id -> struct late_case: whose log cannot be read */
};

static const char unreadable[] = "unreadable", follower[] = "follower", said_cost[] = "cost", said_rerun[] = "rerun";

struct late_case { /* a case that is being written; an unreadable one stays among the cases of its engine, so that it is
                      opened once */
    struct engine *engine;
    struct shard *shard;
    struct arena arena;
    struct saga_id saga; /* key */
    struct slice evidence;
    struct case_put put;
    bool is_kept, is_out; /* is_kept: in the map; is_out: with the store */
    void (*opened)(void *context, enum err_code code);
    void *context;
};

/* --- the text of a case --- */

struct case_action {
    const char *action, *does;
};

static const struct case_action unreadable_actions[] = {
    {"abandon",
     "ends the saga for good; every effect that stands by the readable part of its log stays, as listed here"}};
static const struct case_action follower_actions[] = {
    {"retry", "starts the follower once more, with the newest version of its definition"},
    {"abandon", "closes the case: it was settled by hand, or is not wanted any more"}};

struct resolution {
    int64_t at_ms; /* 0: open */
    const char *action;
    struct slice actor, note;
};

static void write_actions(struct json_writer *w, const char *reason)
{
    bool is_follower = reason == follower;
    const struct case_action *actions = is_follower ? follower_actions : unreadable_actions;
    size_t count = is_follower ? COUNT_OF(follower_actions) : COUNT_OF(unreadable_actions);

    for (size_t i = 0; i < count; i++) {
        json_object_begin(w, NULL);
        json_write_text(w, "action", actions[i].action);
        json_write_text(w, "does", actions[i].does);
        json_object_end(w);
    }
}

/* Writes the case as the API shows it, with the same members as saga_write_escalation(). */
static struct slice case_text(const struct case_put *put, const char *reason, struct slice evidence,
                              const struct resolution *resolution, struct arena *arena)
{
    char saga[UUID_TEXT_BYTES];
    struct buffer out;
    struct json_writer w;
    struct slice text;

    buffer_init(&out, BODY_BYTES_MAX);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_write_i64(&w, "n", (int64_t)put->number);
    uuid_text(&put->saga.uuid, saga);
    json_write_text(&w, "saga", saga);
    json_write_null(&w, "step");
    json_write_null(&w, "operation");
    json_write_text(&w, "reason", reason);
    json_write_text(&w, "status", resolution->at_ms ? "resolved" : "open");
    json_write_instant(&w, "opened_at", put->opened_ms);
    json_write_i64(&w, "round", 1);
    json_write_null(&w, "cost");
    json_write_raw(&w, "evidence", evidence);
    json_array_begin(&w, "actions");
    if (!resolution->at_ms) {
        write_actions(&w, reason);
    }
    json_array_end(&w);
    json_write_instant(&w, "resolved_at", resolution->at_ms);
    json_write_slice(&w, "action", resolution->at_ms ? slice_of(resolution->action) : SLICE_NONE);
    json_write_slice(&w, "actor", resolution->actor);
    json_write_slice(&w, "note", resolution->note);
    json_object_end(&w);
    CHECK(!out.overflow); /* payloads are bounded */
    text = arena_slice(arena, buffer_slice(&out));
    buffer_fini(&out);
    return text;
}

/* --- opening --- */

static struct late_case *case_new(struct shard *shard, struct saga_id saga, struct slice namespace)
{
    struct late_case *c = memory_alloc(sizeof(*c));

    *c = (struct late_case){.engine = shard->engine, .shard = shard, .saga = saga};
    arena_init(&c->arena, 2048);
    c->put.saga = saga;
    c->put.namespace = arena_slice(&c->arena, namespace);
    return c;
}

static void case_free(struct late_case *c)
{
    if (c->is_kept) {
        (void)map_remove(&c->engine->saga_room->cases->unreadable, &c->saga, sizeof(c->saga));
    }
    arena_fini(&c->arena);
    free(c);
}

static void count_open(struct shard *shard, int64_t more)
{
    shard->escalations_open += more;
    gauge_add(GAUGE_ESCALATIONS_OPEN, more);
    metric_add(METRIC_ESCALATIONS, more > 0 ? 1 : 0);
}

static void on_opened(struct store_read *read)
{
    struct late_case *c = read->context;
    bool stands = read->code == ERR_OK && c->put.stands_as > 0;

    c->is_out = false;
    if (stands && c->put.stands_as == c->put.number && c->shard->state == SHARD_OWNED &&
        c->shard->epoch == c->put.epoch && c->put.resolved_ms == 0) {
        count_open(c->shard, 1);
    }
    if (!stands) {
        log_warn("case_not_opened", LOG_UUID("saga", &c->saga.uuid), LOG_SLICE("reason", c->put.reason),
                 LOG_ERR(&read->err));
    }
    if (c->opened) {
        c->opened(c->context, stands ? ERR_OK : read->code == ERR_OK ? ERR_FENCED : read->code);
    }
    if (!stands || !c->is_kept) {
        case_free(c); /* a case that was not opened is opened when the saga is looked at again */
    }
}

static void case_write(struct late_case *c, const char *reason, const struct resolution *resolution)
{
    struct shard *shard = c->shard;

    shard->escalation_counter++;
    c->put.shard = shard->number;
    c->put.epoch = shard->epoch;
    c->put.number = shard->escalation_counter * SHARD_COUNT + shard->number;
    c->put.opened_ms = loop_wall_ms(c->engine->loop);
    c->put.reason = slice_of(reason);
    c->put.resolved_ms = resolution->at_ms;
    c->put.body = case_text(&c->put, reason, c->evidence, resolution, &c->arena);
    c->put.read = (struct store_read){.arena = &c->arena, .done = on_opened, .context = c};
    c->is_out = true;
    store_case_put(c->engine->store, &c->put);
}

static void case_open(struct late_case *c, const char *reason)
{
    const struct resolution open = {0};

    case_write(c, reason, &open);
}

/* --- a saga that cannot be read --- */

static void write_standing(struct json_writer *w, const struct saga *saga)
{
    uint32_t listed = 0;

    json_array_begin(w, "open");
    for (uint32_t i = 0; saga->definition && i < saga->definition->step_count && listed < OPEN_ITEMS_MAX; i++) {
        const struct step *step = &saga->steps[i];
        char key[UUID_TEXT_BYTES];

        if (!step_has_call(saga, i) || !step_may_stand(saga, i)) {
            continue;
        }
        listed++;
        uuid_text(&step->forward.key.uuid, key);
        json_object_begin(w, NULL);
        json_write_slice(w, "step", saga->definition->steps[i].id);
        json_write_text(w, "status", step_status_name(saga_step_status(saga, i)));
        json_write_text(w, "took_effect", took_effect_name(step->forward.took_effect));
        json_write_bool(w, "needs_person", true);
        json_write_slice(w, "tool", saga_tool(saga, i, DIRECTION_DO)->name);
        json_write_text(w, "operation", key);
        json_object_end(w);
    }
    json_array_end(w);
}

/* Folds the saga again, so that the records before the one that does not fit can be shown. */
static struct slice unreadable_evidence(struct late_case *c, const struct stored_turn *turns, size_t count)
{
    struct arena arena;
    struct saga saga = {0};
    struct err err = {0};
    struct buffer out;
    struct json_writer w;
    struct slice text;

    arena_init(&arena, 4096);
    (void)fold_into(c->engine, &saga, &arena, c->saga, c->put.namespace, turns, count, &err);
    buffer_init(&out, BODY_BYTES_MAX);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_write_text(&w, "last_error", unreadable);
    json_write_text(&w, "detail", err.message);
    json_write_i64(&w, "records_read", (int64_t)saga.seq);
    write_standing(&w, &saga);
    json_object_end(&w);
    text = arena_slice(&c->arena, buffer_slice(&out));
    buffer_fini(&out);
    arena_fini(&arena);
    return text;
}

void case_unreadable(struct shard *shard, struct saga_id id, struct slice namespace, const struct stored_turn *turns,
                     size_t count)
{
    struct engine *engine = shard->engine;
    struct late_case *c;

    if (map_find(&engine->saga_room->cases->unreadable, &id, sizeof(id))) {
        return;
    }
    c = case_new(shard, id, namespace);
    c->evidence = unreadable_evidence(c, turns, count);
    c->is_kept = true;
    map_put(&engine->saga_room->cases->unreadable, &c->saga, sizeof(c->saga), c);
    if (shard->state ==
        SHARD_OWNED) { /* otherwise cases_go_on() opens it, because the used numbers are not known yet */
        case_open(c, unreadable);
    }
}

void cases_go_on(struct shard *shard)
{
    size_t position = 0;
    void *value;

    while (map_next(&shard->engine->saga_room->cases->unreadable, &position, &value)) {
        struct late_case *c = value;

        if (c->shard == shard && c->put.number == 0) {
            case_open(c, unreadable);
        }
    }
}

static struct late_case *some_case_of(struct engine *engine, const struct shard *shard)
{
    size_t position = 0;
    void *value;

    while (map_next(&engine->saga_room->cases->unreadable, &position, &value)) {
        struct late_case *c = value;

        if (!shard || c->shard == shard) {
            return c;
        }
    }
    return NULL;
}

/* Forgets a case. When the store still has it, it is freed when the store answers. */
static void case_forget(struct late_case *c)
{
    (void)map_remove(&c->engine->saga_room->cases->unreadable, &c->saga, sizeof(c->saga));
    c->is_kept = false;
    if (!c->is_out) {
        case_free(c);
    }
}

void cases_leave(struct shard *shard)
{
    struct late_case *c;

    while ((c = some_case_of(shard->engine, shard)) != NULL) {
        case_forget(c);
    }
}

struct cases *cases_new(void)
{
    struct cases *cases = memory_alloc(sizeof(*cases));

    map_init(&cases->unreadable);
    return cases;
}

void cases_free(struct engine *engine)
{
    struct late_case *c;

    while ((c = some_case_of(engine, NULL)) != NULL) {
        case_forget(c);
    }
    map_fini(&engine->saga_room->cases->unreadable);
    free(engine->saga_room->cases);
}

static void on_closed(struct store_read *read)
{
    struct late_case *c = read->context;

    if (read->code == ERR_OK && c->put.stands_as > 0 && c->shard->epoch == c->put.epoch &&
        c->shard->state == SHARD_OWNED) {
        count_open(c->shard, -1);
    }
    c->is_out = false;
    if (!c->is_kept) {
        case_free(c);
    }
}

void case_readable(struct engine *engine, struct saga_id id)
{
    struct late_case *c = map_find(&engine->saga_room->cases->unreadable, &id, sizeof(id));
    struct resolution again = {
        .action = "evidence", .actor = SLICE("sagad"), .note = SLICE("the log of the saga can be read again")};

    if (!c || c->is_out || c->put.number == 0) {
        return;
    }
    (void)map_remove(&engine->saga_room->cases->unreadable, &c->saga, sizeof(c->saga));
    c->is_kept = false;
    c->is_out = true;
    again.at_ms = c->put.resolved_ms = loop_wall_ms(engine->loop);
    c->put.number = c->put.stands_as; /* an earlier owner may have opened it */
    c->put.body = case_text(&c->put, unreadable, c->evidence, &again, &c->arena);
    c->put.read.done = on_closed;
    store_case_put(engine->store, &c->put);
}

/* --- a follower that is refused --- */

void case_follower(struct shard *shard, const struct refused_follower *refused,
                   void (*opened)(void *context, enum err_code code), void *context)
{
    struct late_case *c = case_new(shard, refused->parent, refused->namespace);
    struct buffer out;
    struct json_writer w;

    buffer_init(&out, BODY_BYTES_MAX);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_write_text(&w, "last_error", err_name(refused->err->code));
    json_write_slice(&w, "detail",
                     refused->err->detail[0]
                         ? arena_printf(&c->arena, "%s: %s", refused->err->message, refused->err->detail)
                         : slice_of(refused->err->message));
    json_object_begin(&w, "follower");
    json_write_slice(&w, "saga", refused->name);
    json_write_slice(&w, "business_id", refused->business_id);
    json_write_raw(&w, "input", refused->input.ptr ? refused->input : SLICE("{}"));
    json_object_end(&w);
    json_object_end(&w);
    CHECK(!out.overflow);
    c->evidence = arena_slice(&c->arena, buffer_slice(&out));
    buffer_fini(&out);
    c->put.input = refused->input_id;
    c->opened = opened;
    c->context = context;
    case_open(c, follower);
}

/* --- what a person says after the end --- */

void case_cost(struct shard *shard, const struct late_cost *cost, void (*written)(void *context, enum err_code code),
               void *context)
{
    struct late_case *c = case_new(shard, cost->saga, cost->namespace);
    const struct resolution said = {.at_ms = loop_wall_ms(shard->engine->loop),
                                    .action = said_cost,
                                    .actor = arena_slice(&c->arena, cost->actor),
                                    .note = arena_slice(&c->arena, cost->note)};
    char key[UUID_TEXT_BYTES];
    struct buffer out;
    struct json_writer w;

    uuid_text(&cost->key.uuid, key);
    buffer_init(&out, BODY_BYTES_MAX);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_write_slice(&w, "tool", cost->tool);
    json_write_text(&w, "operation", key);
    json_write_i64(&w, "micros", cost->micros);
    json_object_end(&w);
    c->evidence = arena_slice(&c->arena, buffer_slice(&out));
    buffer_fini(&out);
    c->opened = written;
    c->context = context;
    c->put.act = arena_slice(&c->arena, cost->act);
    case_write(c, said_cost, &said);
}

void case_rerun(struct shard *shard, const struct late_rerun *rerun, void (*written)(void *context, enum err_code code),
                void *context)
{
    struct late_case *c = case_new(shard, rerun->saga, rerun->namespace);
    const struct resolution said = {.at_ms = loop_wall_ms(shard->engine->loop),
                                    .action = said_rerun,
                                    .actor = arena_slice(&c->arena, rerun->actor),
                                    .note = arena_slice(&c->arena, rerun->note)};
    char id[UUID_TEXT_BYTES];
    struct buffer out;
    struct json_writer w;

    uuid_text(&rerun->rerun.uuid, id);
    buffer_init(&out, BODY_BYTES_MAX);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_write_text(&w, "saga", id);
    json_write_slice(&w, "business_id", rerun->business_id);
    json_object_end(&w);
    c->evidence = arena_slice(&c->arena, buffer_slice(&out));
    buffer_fini(&out);
    c->opened = written;
    c->context = context;
    c->put.act = arena_slice(&c->arena, rerun->act);
    case_write(c, said_rerun, &said);
}

/* --- what a person decides --- */

struct deciding { /* a decision, in the arena of its work */
    struct work *work;
    const char *reason;
    struct slice evidence;
    struct case_put put;
    struct inbox_put start;
    struct saga_id follower;
};

static void on_decided(struct store_read *read)
{
    struct deciding *d = read->context;
    struct work *work = d->work;
    struct shard *shard = &work->engine->shards[d->put.shard];

    if (work_read_failed(work, read)) {
        return;
    }
    if (d->put.fenced || d->put.decided) {
        work_fail(work, d->put.fenced ? ERR_FENCED : ERR_DECIDED,
                  d->put.fenced ? "another engine owns the shard of this case" : "this case has been resolved already",
                  "`sagactl escalations N` shows how it stands");
        return;
    }
    if (shard->state == SHARD_OWNED && shard->epoch == d->put.epoch) {
        count_open(shard, -1);
    }
    struct late_case *kept = map_find(&work->engine->saga_room->cases->unreadable, &d->put.saga, sizeof(d->put.saga));

    if (kept && d->reason == unreadable) {
        case_forget(kept);
    }
    work_answer_question(work, QUESTION_ESCALATION, d->put.number);
}

static void decide(struct deciding *d, const char *action, struct slice actor, struct slice note, bool ends_saga)
{
    struct work *work = d->work;
    const struct resolution resolution = {
        .at_ms = loop_wall_ms(work->engine->loop), .action = action, .actor = actor, .note = note};

    d->put.resolved_ms = resolution.at_ms;
    /* A case that closes itself is nobody's act. */
    d->put.act = slice_equal(actor, work->actor) ? act_of_work(work) : SLICE_NONE;
    d->put.ends_saga = ends_saga;
    d->put.body = case_text(&d->put, d->reason, d->evidence, &resolution, &work->arena);
    d->put.read = (struct store_read){.arena = &work->arena, .done = on_decided, .context = d};
    store_case_put(work->engine->store, &d->put);
}

/* A newer program or a mended row may have made it readable. Then nothing is ended. */
static void on_saga_read(struct store_read *read)
{
    struct deciding *d = read->context;
    struct work *work = d->work;
    const struct saga_input *input = &work->mail.input;
    struct err err = {0};

    if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
    } else if (fold_turns(work->engine, d->put.saga, work->namespace, work->read.turns, work->read.turn_count,
                          &work->reading, &err)) {
        decide(d, "evidence", SLICE("sagad"), SLICE("the log of the saga can be read again: nothing was ended"), false);
    } else {
        log_warn("saga_abandoned_unread", LOG_UUID("saga", &d->put.saga.uuid), LOG_SLICE("actor", input->verdict.actor),
                 LOG_ERR(&err));
        decide(d, "abandon", input->verdict.actor, input->verdict.note, true);
    }
}

static void on_follower_put(struct inbox_put *put)
{
    struct deciding *d = container_of(put, struct deciding, start);
    const struct saga_input *input = &d->work->mail.input;

    if (put->code != ERR_OK) {
        work_done(d->work, put->code, &put->err);
    } else {
        decide(d, "retry", input->verdict.actor, input->verdict.note, false);
    }
}

/* Writes the start again as the completed saga asked for it. */
static void follow_again(struct deciding *d)
{
    struct work *work = d->work;
    struct slice asked = json_member(d->evidence, "follower");
    int64_t now_ms = loop_wall_ms(work->engine->loop);
    char parent[UUID_TEXT_BYTES];
    struct buffer out;
    struct json_writer w;

    uuid_text(&d->put.saga.uuid, parent);
    buffer_init(&out, BODY_BYTES_MAX);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_write_slice(&w, "namespace", work->namespace);
    json_write_text(&w, "actor", "sagad");
    json_write_text(&w, "follows", parent);
    json_write_raw(&w, "saga", json_member(asked, "saga"));
    json_write_i64(&w, "version", 0);
    json_write_raw(&w, "business_id", json_member(asked, "business_id"));
    json_write_raw(&w, "input", json_member(asked, "input"));
    json_object_end(&w);
    d->start = (struct inbox_put){.row = {.shard = d->put.shard,
                                          .saga = saga_id_new(now_ms, d->put.shard),
                                          .kind = SLICE("start"),
                                          .payload = arena_slice(&work->arena, buffer_slice(&out))},
                                  .done = on_follower_put};
    buffer_fini(&out);
    store_inbox_put(work->engine->store, &d->start);
}

static bool is_case_reason(struct slice reason, const char **out)
{
    *out = slice_is(reason, unreadable) ? unreadable : slice_is(reason, follower) ? follower : NULL;
    return *out != NULL;
}

bool question_is_case(const struct question_row *row)
{
    struct arena arena;
    const char *reason;
    bool found;

    arena_init(&arena, 256);
    found = is_case_reason(json_string(json_member(row->body, "reason"), &arena), &reason);
    arena_fini(&arena);
    return found;
}

void case_resolve(struct work *work, const struct question_row *row)
{
    struct deciding *d = arena_alloc(&work->arena, sizeof(*d));
    enum operator_action action = work->mail.input.verdict.action;
    uint32_t shard = (uint32_t)(row->number % SHARD_COUNT);

    d->work = work;
    (void)is_case_reason(json_string(json_member(row->body, "reason"), &work->arena), &d->reason);
    d->evidence = json_member(row->body, "evidence");
    d->put.shard = shard;
    d->put.epoch = work->engine->shards[shard].epoch;
    d->put.number = row->number;
    d->put.saga = row->saga;
    d->put.namespace = work->namespace;
    d->put.opened_ms = row->opened_ms;
    d->put.reason = slice_of(d->reason);
    if (work->engine->shards[shard].state != SHARD_OWNED) {
        work_fail(work, ERR_FENCED, "another engine owns the shard of this case", "ask again in a moment");
    } else if (action != OPERATOR_ABANDON && (d->reason == unreadable || action != OPERATOR_RETRY)) {
        work_fail(work, ERR_CONFLICT,
                  d->reason == unreadable ? "this case takes: abandon" : "this case takes: retry, abandon",
                  "`sagactl escalations N` says what each does");
    } else if (d->reason == unreadable) {
        work->read = (struct read_saga){.read = {.arena = &work->reading, .done = on_saga_read, .context = d},
                                        .id = row->saga,
                                        .namespace = work->namespace};
        store_read_saga(work->engine->store, &work->read);
    } else if (action == OPERATOR_RETRY) {
        follow_again(d);
    } else {
        decide(d, "abandon", work->mail.input.verdict.actor, work->mail.input.verdict.note, false);
    }
}
