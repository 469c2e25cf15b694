/*
 * The engine's functions (run/engine.h) for fuzz_api.c. They note the requests that are under way, and check everything
 * that the API passes against the promises of run/engine.h. Nothing malformed may come this far.
 */
#include "tests/fuzz/engine_door.h"
#include "core/definition/exposure.h"

#include "tests/fuzz/fuzz.h"

struct engine_door engine_door;

static void must_be_json_or_none(struct slice json)
{
    MUST(!json.ptr || fuzz_is_json(json));
}

static void must_be_plain(struct slice text, size_t bytes_max)
{
    MUST(text.len > 0 && text.len <= bytes_max);
    for (size_t i = 0; i < text.len; i++) {
        MUST((unsigned char)text.ptr[i] >= 0x20 && text.ptr[i] != 0x7f);
    }
}

static void must_be_plain_or_none(struct slice text, size_t bytes_max)
{
    if (text.ptr) {
        must_be_plain(text, bytes_max);
    }
}

static void must_be_limit(size_t limit)
{
    MUST(limit >= 1 && limit <= 500);
}

static void must_be_wait(int64_t wait_ms)
{
    MUST(wait_ms >= 0 && wait_ms <= 5 * 60 * 1000);
}

static void take(struct engine_request *request, enum door door)
{
    MUST(engine_door.count < DOOR_MAX);
    for (size_t i = 0; i < engine_door.count;
         i++) { /* several requests at once belong to one batch: starts, and sagas that are read back */
        MUST(engine_door.waiting[i].request != request);
        MUST(door == DOOR_START || door == DOOR_THING);
    }
    MUST(request->done && request->arena && request->namespace.len > 0 && request->actor.len > 0);
    engine_door.waiting[engine_door.count++] = (struct door_request){.request = request, .door = door};
}

void engine_define(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    MUST(fuzz_is_json(request->in.define.document));
    take(request, DOOR_LIST);
}

void engine_get_definitions(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    MUST(request->in.definitions.version <= INT32_MAX);
    take(request, request->in.definitions.name.ptr ? DOOR_THING : DOOR_LIST);
}

void engine_prove(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    MUST(request->in.definitions.name.len > 0 && request->in.definitions.version <= INT32_MAX);
    take(request, DOOR_THING);
}

void engine_start_saga(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    MUST(request->in.start.saga.ptr && request->in.start.version <= INT32_MAX);
    must_be_json_or_none(request->in.start.input);
    must_be_json_or_none(request->in.start.tags);
    must_be_plain_or_none(request->in.start.business_id, 256);
    take(request, DOOR_START);
}

void engine_open_saga(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    must_be_json_or_none(request->in.open.tags);
    must_be_json_or_none(request->in.open.budget);
    must_be_json_or_none(request->in.open.loop);
    must_be_plain_or_none(request->in.open.business_id, 256);
    MUST(request->in.open.deadline_ms >= 0);
    MUST(!request->in.open.on_timeout.ptr || slice_is(request->in.open.on_timeout, "abort") ||
         slice_is(request->in.open.on_timeout, "escalate"));
    take(request, DOOR_START);
}

void engine_call(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    must_be_plain(request->in.call.tool, 256);
    must_be_plain_or_none(request->in.call.run, 256);
    must_be_plain_or_none(request->in.call.step, 128);
    must_be_plain_or_none(request->in.call.emission, 256);
    must_be_plain_or_none(request->in.call.conversation_turn, 128);
    must_be_json_or_none(request->in.call.args);
    must_be_wait(request->in.call.wait_ms);
    MUST(uuid_is_nil(&request->in.call.saga.uuid) == (request->in.call.run.ptr != NULL));
    MUST(request->in.call.scope.len <= 256);
    take(request, DOOR_CALL);
}

/* Checks that what the API has read by the row of a verb is within its bounds. */
static void must_be_member(const struct verb_member *member, const struct saga_input *input)
{
    const void *at = (const char *)input + member->at;

    if (member->left_out && verb_lacks(member, input)) {
        return;
    }
    switch (member->kind) {
    case MEMBER_TEXT:
        MUST(((const struct slice *)at)->ptr);
        return;
    case MEMBER_NOTE:
        MUST(member->characters_max == 0 || ((const struct slice *)at)->len <= 4 * member->characters_max);
        return;
    case MEMBER_HASH:
        must_be_plain_or_none(*(const struct slice *)at, 64);
        return;
    case MEMBER_ID:
        must_be_plain_or_none(*(const struct slice *)at, 256);
        return;
    case MEMBER_JSON:
        must_be_json_or_none(*(const struct slice *)at);
        return;
    case MEMBER_NUMBER:
        MUST(*(const uint64_t *)at > 0);
        return;
    case MEMBER_VERSION:
        MUST(*(const uint32_t *)at >= 1 && *(const uint32_t *)at <= INT32_MAX);
        return;
    case MEMBER_INSTANT:
        MUST(*(const int64_t *)at > 0);
        return;
    case MEMBER_MICROS:
        MUST(*(const int64_t *)at >= 0 && *(const int64_t *)at <= COST_MICROS_MAX);
        return;
    case MEMBER_OPKEY:
        MUST(!uuid_is_nil(&((const struct op_key *)at)->uuid));
        return;
    case MEMBER_ROLE:
        MUST(*(const enum role *)at < ROLE_COUNT);
        return;
    case MEMBER_ACTION:
        MUST(*(const enum operator_action *)at < OPERATOR_ACTION_COUNT);
        return;
    case MEMBER_FLAG:
    case MEMBER_WORDS:
        return;
    }
    UNREACHABLE();
}

void engine_change(struct engine *engine, struct engine_request *request)
{
    const struct change *change = &request->in.change;
    const struct verb *verb = &verbs[change->verb];

    (void)engine;
    MUST(change->verb < VERB_COUNT);
    for (size_t i = 0; i < verb->member_count; i++) {
        must_be_member(&verb->members[i], &change->input);
    }
    must_be_wait(change->wait_ms);
    take(request, DOOR_THING);
}

void engine_get_approvals(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    if (request->in.approvals.number == 0) {
        must_be_limit(request->in.approvals.limit);
    }
    take(request, request->in.approvals.number ? DOOR_THING : DOOR_LIST);
}

void engine_find_saga(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    MUST(request->in.find.name.len > 0 && request->in.find.business_id.len > 0);
    take(request, DOOR_FIND);
}

void engine_get_saga(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    must_be_wait(request->in.get.wait_ms);
    take(request, DOOR_THING);
}

void engine_preview(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    take(request, DOOR_THING);
}

void engine_get_log(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    must_be_limit(request->in.log.limit);
    take(request, DOOR_LOG);
}

void engine_list_sagas(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    must_be_limit(request->in.sagas.limit);
    take(request, DOOR_LIST);
}

void engine_list_acts(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    must_be_limit(request->in.acts.limit);
    take(request, DOOR_LIST);
}

void engine_count_refusal(struct engine *engine, const struct engine_refusal *refusal)
{
    (void)engine;
    MUST(refusal->by.via && refusal->verb.len > 0);
}

void engine_list_debts(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    must_be_limit(request->in.debts.limit);
    take(request, DOOR_LIST);
}

void engine_list_operations(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    must_be_limit(request->in.operations.limit);
    take(request, DOOR_LIST);
}

void engine_get_operation(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    take(request, DOOR_THING);
}

void engine_get_escalations(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    if (request->in.escalations.number == 0) {
        must_be_limit(request->in.escalations.limit);
    }
    take(request, request->in.escalations.number ? DOOR_THING : DOOR_LIST);
}

void engine_get_notifications(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    must_be_limit(request->in.notifications.limit);
    take(request, DOOR_LIST);
}

void engine_replay_notifications(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    MUST(request->in.notifications.note.len > 0);
    for (size_t i = 0; i < request->in.notifications.event_count; i++) {
        MUST(request->in.notifications.events[i].len > 0);
    }
    take(request, DOOR_THING);
}

void engine_put_hold(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    MUST(fuzz_is_json(request->in.hold.body));
    take(request, DOOR_THING);
}

void engine_get_holds(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    take(request, request->in.hold.number ? DOOR_THING : DOOR_LIST);
}

void engine_release_hold(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    MUST(request->in.hold.number > 0 && request->in.hold.note.len > 0);
    take(request, DOOR_THING);
}

void engine_set_breaker(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    MUST(request->in.breaker.tool.len > 0 && request->in.breaker.note.len > 0);
    take(request, DOOR_THING);
}

void engine_put_grant(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    MUST(fuzz_is_json(request->in.grant.body) && !uuid_is_nil(&request->in.grant.id));
    take(request, DOOR_GRANTS);
}

void engine_find_grants(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    MUST(request->in.grant.id_count > 0 && request->in.grant.ids);
    take(request, DOOR_GRANTS);
}

void engine_list_grants(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    must_be_limit(request->in.grant.limit);
    take(request, DOOR_GRANTS);
}

void engine_revoke_grant(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    take(request, DOOR_GRANTS);
}

void engine_freeze_bulk(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    MUST(fuzz_is_json(request->in.bulk.body));
    take(request, DOOR_THING);
}

void engine_get_bulk(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    take(request, uuid_is_nil(&request->in.bulk.id.uuid) ? DOOR_LIST : DOOR_THING);
}

void engine_get_bulk_items(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    MUST(!uuid_is_nil(&request->in.bulk.id.uuid));
    take(request, DOOR_LIST);
}

void engine_run_bulk(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    MUST(!uuid_is_nil(&request->in.bulk.id.uuid));
    take(request, DOOR_THING);
}

void engine_stop_bulk(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    MUST(request->in.bulk.note.len > 0);
    take(request, DOOR_THING);
}

void engine_put_schedule(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    MUST(fuzz_is_json(request->in.schedule.body));
    take(request, DOOR_THING);
}

void engine_get_schedules(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    take(request, request->in.schedule.name.ptr ? DOOR_THING : DOOR_LIST);
}

void engine_get_schedule_next(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    MUST(request->in.schedule.limit >= 1 && request->in.schedule.limit <= 1000);
    take(request, DOOR_THING);
}

void engine_change_schedule(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    take(request, DOOR_THING);
}

void engine_get_stats(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    take(request, DOOR_THING);
}

void engine_get_events(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    MUST(request->in.events.limit <= 500 && request->in.events.wait_ms <= 300000);
    take(request, DOOR_LIST);
}

void engine_get_series(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    MUST(request->in.series.by != SERIES_BY_ALL || !request->in.series.name.ptr);
    take(request, DOOR_THING);
}

void engine_get_clock(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    take(request, DOOR_THING);
}

void engine_move_clock(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    MUST((request->in.clock.by_ms > 0) + (request->in.clock.until_ms > 0) + request->in.clock.to_next == 1);
    take(request, DOOR_THING);
}

void engine_get_engines(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    take(request, DOOR_LIST);
}

void engine_cancel(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    MUST(engine_door.count == 1 && engine_door.waiting[0].request == request);
    engine_door.waiting[0].cancelled = true;
}

void engine_write_tool_metrics(const struct engine *engine, struct slice namespace, struct buffer *out)
{
    (void)namespace;
    (void)engine;
    (void)out;
}

bool engine_refuses_new(struct engine *engine, struct err *err, int64_t *retry_after_ms)
{
    (void)engine;
    if (engine_door.busy) {
        *retry_after_ms = 1500;
        (void)err_set(err, ERR_BUSY, "there is too much work");
    }
    return engine_door.busy;
}

void engine_health(const struct engine *engine, struct engine_health *out)
{
    (void)engine;
    *out = (struct engine_health){.alive = true};
}

void engine_watch_add(struct engine *engine, struct engine_watch *watch)
{
    (void)engine;
    MUST(!engine_door.watch && watch->changed);
    engine_door.watch = watch;
}

void engine_watch_remove(struct engine *engine, struct engine_watch *watch)
{
    (void)engine;
    MUST(engine_door.watch == watch);
    engine_door.watch = NULL;
}

/* Two tools that may be called, and a definition that may be started. */
const struct offers *engine_offers(struct engine *engine, struct slice namespace, struct err *err)
{
    const struct offered definitions[] = {
        {DEFINITION_TOOL, SLICE("t.one"),
         SLICE("{\"effect\":\"keyed\",\"terminal\":true,\"expose\":{\"step\":true,\"scope\":true}}")},
        {DEFINITION_TOOL, SLICE("t.read"),
         SLICE("{\"effect\":\"read\",\"mcp\":{},\"input\":{\"properties\":{\"n\":{}}}}")},
        {DEFINITION_SAGA, SLICE("quick"), SLICE("{\"expose\":true}")},
    };
    static struct offers offers;

    (void)engine;
    MUST(namespace.len > 0);
    if (engine_door.busy) {
        (void)err_set(err, ERR_STORE, "the database does not answer");
        return NULL;
    }
    if (!offers.items) {
        offers_build(definitions, COUNT_OF(definitions), &offers);
    }
    return &offers;
}
