/* The fake engine's notifications, holds, breakers and bulk jobs: fixed answers of the right shape. */
#include "tests/lib/fake_engine_state.h"

#include "base/json.h"

static bool is_default(const struct engine_request *request) /* all fixed answers belong to this namespace */
{
    return slice_is(request->namespace, "default");
}

/* --- notifications: one waits, one is dead --- */

#define NOTIFICATION(more)                                                                                             \
    "{\"receiver\":\"ops\"," more ",\"since\":\"2026-01-02T02:00:00.000Z\","                                           \
    "\"gives_up_at\":\"2026-01-05T02:00:00.000Z\",\"event\":{\"specversion\":\"1.0\","                                 \
    "\"id\":\"01920000-0000-7000-8000-000000000001/7\",\"source\":\"/sagad/default\",\"type\":\"case.opened\","        \
    "\"subject\":\"01920000-0000-7000-8000-000000000001\",\"time\":\"2026-01-02T02:00:00.000Z\","                      \
    "\"datacontenttype\":\"application/json\",\"data\":{\"n\":1}}}"

void engine_get_notifications(struct engine *engine, struct engine_request *request)
{
    static const char two[] = "[" NOTIFICATION(
        "\"n\":1,\"state\":\"dead\",\"attempts\":12,\"error\":\"the receiver answered with the "
        "status 500\",\"next_at\":null,\"died_at\":\"2026-01-05T02:00:00.000Z\"") "," NOTIFICATION("\"n\":2,"
                                                                                                   "\"state\":"
                                                                                                   "\"pending\","
                                                                                                   "\"attempts\":0,"
                                                                                                   "\"error\":null,"
                                                                                                   "\"next_at\":"
                                                                                                   "\"2026-01-"
                                                                                                   "02T02:00:00."
                                                                                                   "000Z\","
                                                                                                   "\"died_at\":"
                                                                                                   "null") "]";

    fake_finish_text(engine, request, is_default(request) ? slice_of(two) : SLICE("[]"));
}

void engine_replay_notifications(struct engine *engine, struct engine_request *request)
{
    fake_finish_text(engine, request, is_default(request) ? SLICE("{\"replayed\":1}") : SLICE("{\"replayed\":0}"));
}

/* --- holds: the first one, which is always there --- */

#define HOLD                                                                                                           \
    "{\"n\":1,\"tool\":\"card.pay\",\"note\":\"the bank is "                                                           \
    "down\",\"actor\":\"ops\",\"starts\":\"wait\",\"undo\":false,"                                                     \
    "\"pace\":50,\"until\":null,\"made_at\":\"2026-01-02T02:00:00.000Z\",\"status\":\"held\",\"released\":null}"

#define BREAKER(state) "{\"tool\":\"card.pay\",\"breaker\":\"" state "\",\"by\":" BREAKER_BY "}"
#define BREAKER_BY "{\"actor\":\"ops\",\"at\":\"2026-01-02T02:00:00.000Z\",\"note\":\"the bank is down\"}"

static const char hold_in_force[] =
    "{\"n\":1,\"tag\":{\"customer\":\"ada\"},\"note\":\"the bank is down\",\"actor\":\"ops\",\"starts\":\"refuse\","
    "\"undo\":true,\"pace\":2,\"until\":\"2026-01-03T02:00:00.000Z\",\"made_at\":\"2026-01-02T02:00:00.000Z\","
    "\"status\":\"released\",\"released\":{\"at\":\"2026-01-02T03:00:00.000Z\",\"actor\":\"ops\",\"note\":\"it is "
    "up\"},"
    "\"ignored_by\":[\"old:1\"],\"in_force\":false}";

static bool is_first_hold(struct engine *engine, struct engine_request *request)
{
    if (is_default(request) && request->in.hold.number == 1) {
        return true;
    }
    fake_finish(engine, request, fake_not_found(request));
    return false;
}

void engine_put_hold(struct engine *engine, struct engine_request *request)
{
    if (json_string_is(json_member(request->in.hold.body, "tool"), "nothing")) {
        faults_init(&request->faults, request->arena);
        faults_add(&request->faults, SLICE("/tool"), "there is no such tool");
        fake_finish(engine, request, err_set(&request->err, ERR_INVALID, "this hold is not right"));
        return;
    }
    request->created = true;
    fake_finish_text(engine, request, slice_of(hold_in_force));
}

void engine_get_holds(struct engine *engine, struct engine_request *request)
{
    if (!request->in.hold.number) {
        fake_finish_text(engine, request, SLICE("[" HOLD "]"));
    } else if (is_first_hold(engine, request)) {
        fake_finish_text(engine, request, SLICE(HOLD));
    }
}

void engine_release_hold(struct engine *engine, struct engine_request *request)
{
    if (is_first_hold(engine, request)) {
        fake_finish_text(engine, request, slice_of(hold_in_force));
    }
}

void engine_set_breaker(struct engine *engine, struct engine_request *request)
{
    if (!is_default(request) || slice_is(request->in.breaker.tool, "nothing")) {
        fake_finish(engine, request, fake_not_found(request));
        return;
    }
    fake_finish_text(engine, request, request->in.breaker.is_open ? SLICE(BREAKER("open")) : SLICE(BREAKER("closed")));
}

/* --- bulk jobs: one, which is always there --- */

#define BULK "01890a5d-ac96-774b-bcce-b302099a0007"
#define BULK_ITEM_FACTS                                                                                                \
    "\"saga\":\"01890a5d-ac96-774b-bcce-b302099a0009\",\"saga_name\":\"order\",\"business_id\":\"o-1\","               \
    "\"step\":\"pay\",\"escalation\":1,\"operation\":\"5e0bd5d6-9f3a-8d5b-9a5c-2f7f0d0b2c11\""
#define BULK_JOB(state, outcomes)                                                                                      \
    "{\"bulk\":\"" BULK "\",\"state\":\"" state "\",\"count\":3,\"action\":\"resolve\",\"as\":\"happened\","           \
    "\"note\":\"by the bank\",\"looked\":3,\"applies\":2,"                                                             \
    "\"refused\":[{\"reason\":\"a call of this operation is under way\",\"count\":1,\"examples\":[\"o-2\"]}],"         \
    "\"unmatched\":[{\"reason\":\"there is no saga with this business id\",\"count\":1,\"examples\":[\"o-9\"]}],"      \
    "\"leads_to\":[{\"status\":\"completed\",\"count\":2}],\"sample\":[{" BULK_ITEM_FACTS "}],\"outcomes\":" outcomes  \
    ",\"created_at\":\"2026-01-01T00:00:00.000Z\",\"created_by\":\"ops\",\"expires_at\":\"2026-01-01T00:15:00.000Z\"," \
    "\"run\":{\"actor\":\"ops\",\"at\":\"2026-01-01T00:01:00.000Z\"},\"stop\":null,\"ended_at\":null}"
#define BULK_FROZEN BULK_JOB("frozen", "{\"open\":3,\"done\":0,\"changed\":0,\"refused\":0}")
#define BULK_DONE BULK_JOB("done", "{\"open\":0,\"done\":1,\"changed\":1,\"refused\":1}")

static bool is_bulk(struct engine *engine, struct engine_request *request)
{
    char text[UUID_TEXT_BYTES];

    uuid_text(&request->in.bulk.id.uuid, text);
    if (is_default(request) && slice_is(SLICE(BULK), text)) {
        return true;
    }
    fake_finish(engine, request, fake_not_found(request));
    return false;
}

void engine_freeze_bulk(struct engine *engine, struct engine_request *request)
{
    if (json_member(request->in.bulk.body, "action").ptr) {
        fake_finish_text(engine, request, SLICE(BULK_FROZEN));
        return;
    }
    faults_init(&request->faults, request->arena);
    faults_add(&request->faults, SLICE("/action"), "none");
    fake_finish(engine, request, err_set(&request->err, ERR_INVALID, "this bulk job is not right"));
}

void engine_get_bulk(struct engine *engine, struct engine_request *request)
{
    if (uuid_is_nil(&request->in.bulk.id.uuid)) {
        fake_finish_text(engine, request, SLICE("[" BULK_DONE "]"));
    } else if (is_bulk(engine, request)) {
        fake_finish_text(engine, request, SLICE(BULK_DONE));
    }
}

void engine_get_bulk_items(struct engine *engine, struct engine_request *request)
{
    if (is_bulk(engine, request)) {
        fake_finish_text(engine, request,
                         SLICE("[{\"n\":1," BULK_ITEM_FACTS ",\"outcome\":\"changed\",\"error\":{\"code\":"
                               "\"already-decided\",\"message\":\"decided\",\"detail\":null}}]"));
    }
}

void engine_run_bulk(struct engine *engine, struct engine_request *request)
{
    if (is_bulk(engine, request)) {
        fake_finish_text(engine, request, SLICE(BULK_DONE));
    }
}

void engine_stop_bulk(struct engine *engine, struct engine_request *request)
{
    if (is_bulk(engine, request)) {
        fake_finish_text(engine, request, SLICE(BULK_DONE));
    }
}
