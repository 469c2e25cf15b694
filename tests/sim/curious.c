/*
 * An ACT_ASK: a reader who asks any engine for everything at any time, and also for what cannot exist. Every good
 * answer must be JSON, and no question may disturb the other clients. See drive.h.
 */
#include "tests/sim/drive.h"

#include <string.h>

#include "base/json.h"

#define TEXT_MAX 128
#define TOO_LARGE_BYTES (70 * 1024u)  /* larger than any scenario allows */
#define NEVER_GIVEN UINT64_C(1000000) /* a number that nothing has */

enum question {
    ASKS_SAGAS,
    ASKS_SAGAS_BY_STEP,
    ASKS_OPERATIONS,
    ASKS_OPERATIONS_OF,
    ASKS_OPERATION,
    ASKS_ESCALATIONS,
    ASKS_ESCALATION,
    ASKS_APPROVALS,
    ASKS_APPROVAL,
    ASKS_LOG,
    ASKS_STATS,
    ASKS_ENGINES,
    ASKS_DEFINITIONS,
    ASKS_HEALTH,
    ASKS_TO_DEFINE,
    ASKS_TO_DEFINE_WRONGLY,
    ASKS_TO_SIGN,
    ASKS_TO_SAY_COST,
    ASKS_TO_START_WRONGLY,
    ASKS_TO_OPEN,
    ASKS_TO_OPEN_WRONGLY,
    ASKS_TO_CALL_WRONGLY,
    ASKS_TO_SIGNAL_WRONGLY,
    ASKS_TO_DECIDE_WRONGLY,
    ASKS_TO_END_WRONGLY,
    ASKS_IN_PASSING,
    QUESTION_COUNT
};

static enum question question_of(const struct act *act)
{
    return (enum question)(act->variant % QUESTION_COUNT);
}

/* Returns the bits that say how the question is asked. */
static uint32_t manner_of(const struct act *act)
{
    return act->variant / QUESTION_COUNT;
}

/* Is the question asked in another namespace? Nothing of the sagas here may be visible there. Nobody looks after what
 * is begun there. */
static bool is_of_another_namespace(const struct act *act)
{
    return (manner_of(act) >> 18 & 7) == 0 && question_of(act) != ASKS_TO_OPEN;
}

/* What earlier answers said: the next page, an operation. */
static struct {
    char sagas[TEXT_MAX], operations[TEXT_MAX], escalations[TEXT_MAX], approvals[TEXT_MAX], key[TEXT_MAX],
        saga[TEXT_MAX];
} heard;

void curious_begin(void)
{
    memset(&heard, 0, sizeof(heard));
}

static void keep(char to[TEXT_MAX], struct slice text)
{
    size_t len = text.len < TEXT_MAX - 1 ? text.len : 0;

    if (len > 0) {
        memcpy(to, text.ptr, len);
    }
    to[len] = '\0';
}

static struct slice said(const char *text, struct arena *arena)
{
    return *text ? arena_slice(arena, slice_of(text)) : SLICE_NONE;
}

/* Returns the cursor of the next page or the first page, or nonsense. */
static struct slice cursor_of(const char *next, uint32_t manner, struct arena *arena)
{
    static const char *const nonsense[] = {"0",
                                           "x",
                                           "00000000-0000-0000-0000-000000000000",
                                           "01890a5d-ac96-774b-bcce-b302099a8057.x",
                                           "01890a5d-ac96-774b-bcce-b302099a8057",
                                           "01890a5d-ac96-774b-bcce-b302099a8057.1"};

    if ((manner >> 20 & 7) == 0) {
        return slice_of(nonsense[(manner >> 23) % COUNT_OF(nonsense)]);
    }
    return manner >> 20 & 1 ? said(next, arena) : SLICE_NONE;
}

static struct slice too_large(struct arena *arena)
{
    char *text = arena_alloc(arena, TOO_LARGE_BYTES);

    memset(text, 'x', TOO_LARGE_BYTES);
    text[0] = text[TOO_LARGE_BYTES - 1] = '"';
    return (struct slice){text, TOO_LARGE_BYTES};
}

static struct slice too_long(struct arena *arena)
{
    char *text = arena_alloc(arena, 300);

    memset(text, 'y', 300);
    return (struct slice){text, 300};
}

/* Returns a saga that exists, or one that does not. */
static struct saga_id some_saga(uint32_t manner, struct saga_id known)
{
    struct saga_id none = {.uuid = {.bytes = {1, 2, 3, 4, 5, 6, 0x77, 8, 0x89, 10, 11, 12, 13, 14, 0, 0}}};

    none.uuid.bytes[15] = (uint8_t)(manner >> 8 & (manner & 16 ? 0xff : 0x3f));
    return manner & 1 && !uuid_is_nil(&known.uuid) ? known : none;
}

/* --- lists --- */

static void ask_sagas(struct engine *engine, struct engine_request *request, uint32_t manner, bool by_step)
{
    static const char *const statuses[] = {"running",     "waiting", "escalated",         "completed",
                                           "compensated", "paused",  "escalated,running", "unheard"};
    static const char *const errors[] = {"refused", "timeout", "step_failed", "aborted"};

    request->in.sagas.limit = manner & 3;
    request->in.sagas.cursor = cursor_of(heard.sagas, manner, request->arena);
    request->in.sagas.status = manner & 4 ? SLICE_NONE : slice_of(statuses[(manner >> 3) % COUNT_OF(statuses)]);
    request->in.sagas.saga = manner >> 6 & 3 ? SLICE_NONE : manner & 256 ? SLICE("~open") : SLICE("s0");
    request->in.sagas.business_id = manner >> 9 & 7 ? SLICE_NONE : SLICE("b1");
    if ((manner >> 12 & 7) == 0) {
        static const struct engine_tag blue = {{"colour", 6}, {"blue", 4}};

        request->in.sagas.tags = &blue;
        request->in.sagas.tag_count = 1;
    }
    request->in.sagas.since_ms = manner >> 15 & 3 ? 0 : WORLD_START_MS + 500;
    request->in.sagas.until_ms = manner >> 17 & 3 ? 0 : WORLD_START_MS + 60000;
    if ((manner >> 19 & 15) == 0) {
        request->in.sagas.waits_for = SLICE("retry,hold,person,signal");
    }
    if (by_step) {
        request->in.sagas.step = manner & 32 ? SLICE("a0") : SLICE_NONE;
        request->in.sagas.error =
            manner & 64 || !(manner & 32) ? slice_of(errors[(manner >> 10) % COUNT_OF(errors)]) : SLICE_NONE;
    }
    engine_list_sagas(engine, request);
}

static void ask_operations(struct engine *engine, struct engine_request *request, uint32_t manner, bool of_run)
{
    static const char *const states[] = {"pending", "in_flight", "completed", "failed", "unknown", "escalated", "lost"};

    request->in.operations.limit = manner & 3;
    request->in.operations.cursor = cursor_of(heard.operations, manner, request->arena);
    request->in.operations.state = manner & 4 ? SLICE_NONE : slice_of(states[(manner >> 3) % COUNT_OF(states)]);
    request->in.operations.tool = manner >> 6 & 3 ? SLICE_NONE : SLICE("keyed");
    if (of_run) {
        request->in.operations.run =
            manner & 1024 ? (manner & 512 ? SLICE("run-0") : SLICE("run-9")) : said(heard.saga, request->arena);
    }
    engine_list_operations(engine, request);
}

static struct op_key some_key(uint32_t manner)
{
    struct op_key key = {.uuid = {.bytes = {9, 9, 9, 9, 9, 9, 0x89, 9, 0x89, 9, 9, 9, 9, 9, 9, 9}}};

    if (manner & 3 && tool_book.count > 0 && manner & 4) {
        const struct tool_entry *entry = &tool_book.entries[(manner >> 3) % tool_book.count];

        return entry->has_key ? entry->key : key;
    }
    if (manner & 3) {
        (void)uuid_parse(slice_of(heard.key), &key.uuid);
    }
    return key;
}

static void ask_definitions(struct engine *engine, struct engine_request *request, uint32_t manner)
{
    static const char *const names[] = {"s0", "keyed", "extra", "nothing"};

    request->in.definitions.kind = manner & 1 ? DEFINITION_TOOL : DEFINITION_SAGA;
    request->in.definitions.name = manner & 2 ? SLICE_NONE : slice_of(names[(manner >> 2) % COUNT_OF(names)]);
    request->in.definitions.version = manner >> 4 & 3;
    if (request->in.definitions.name.ptr && manner & 64) {
        engine_prove(engine, request);
    } else {
        engine_get_definitions(engine, request);
    }
}

/* --- tools that become others --- */

/* Returns the first tool of the scenario in other words with the same meaning. It is another version all the same. */
static struct slice first_tool(void)
{
    return json_element(json_member(scenario_now->definitions, "tools"), 0);
}

static void ask_for_another_version(struct engine *engine, struct engine_request *request, uint32_t manner)
{
    struct slice tool = first_tool();

    request->in.define.document = arena_printf(request->arena, "{\"tools\":[%.*s,\"description\":\"%u\"}]}",
                                               (int)tool.len - 1, tool.ptr, (unsigned)(manner >> 12 & 1));
    engine_define(engine, request);
}

static void ask_to_mend(struct engine *engine, struct engine_request *request, uint32_t manner, struct saga_id known)
{
    request->in.change.verb = VERB_MEND;
    request->in.change.saga = some_saga(manner, known);
    request->in.change.input.mend.tool = json_string(json_member(first_tool(), "name"), request->arena);
    request->in.change.input.mend.version = 1 + (manner >> 12 & 3);
    request->in.change.input.mend.note = SLICE("it asked with POST");
    engine_change(engine, request);
}

/* --- definitions that others do not use --- */

static void ask_to_define(struct engine *engine, struct engine_request *request, uint32_t manner)
{
    if (manner & 8) { /* the same tool again */
        request->in.define.document = arena_slice(request->arena, scenario_now->definitions);
    } else {
        request->in.define.document =
            arena_printf(request->arena,
                         "{\"tools\":[{\"name\":\"extra\",\"effect\":\"read\",\"timeout\":\"%us\",\"builtin\":{"
                         "\"tool\":\"extra\",\"do\":\"act\"}}],"
                         "\"sagas\":[{\"name\":\"extra\",\"steps\":[{\"id\":\"one\",\"call\":\"extra\"}]}]}",
                         (unsigned)(1 + manner % 3));
    }
    engine_define(engine, request);
}

static void ask_to_define_wrongly(struct engine *engine, struct engine_request *request, uint32_t manner)
{
    static const char *const documents[] = {
        "{",
        "[]",
        "{\"tools\":[{\"name\":\"lonely\",\"effect\":\"sometimes\"}]}",
        "{\"sagas\":[{\"name\":\"lost\",\"steps\":[{\"id\":\"one\",\"call\":\"nowhere\"}]}]}",
        "{\"tools\":[{\"name\":\"wrong\",\"effect\":\"idempotent\",\"builtin\":{\"do\":\"${ .args | nonsense( "
        "}\",\"of\":\"${ .args | . }\"}}]}",
        "{\"sagas\":[{\"name\":\"lost\",\"steps\":[{\"id\":\"one\",\"saga\":\"nowhere\"},{\"id\":\"one\",\"sleep\":"
        "\"x\"}]}]}"};

    request->in.define.document = slice_of(documents[manner % COUNT_OF(documents)]);
    engine_define(engine, request);
}

/* --- what is begun --- */

static void ask_to_start_wrongly(struct engine *engine, struct engine_request *request, uint32_t manner)
{
    request->in.start.saga = SLICE("s0");
    switch (manner % 5) {
    case 0:
        request->in.start.saga = SLICE("nothing");
        break;
    case 1:
        request->in.start.version = 7;
        break;
    case 2:
        request->in.start.input = too_large(request->arena);
        break;
    case 3:
        request->in.start.business_id = manner & 64 ? too_long(request->arena) : SLICE("");
        break;
    case 4:
        request->in.start.saga = SLICE("~open");
        break;
    }
    engine_start_saga(engine, request);
}

/* Asks to open a saga, always under a few names, so that most of them are known. */
static void ask_to_open(struct engine *engine, struct engine_request *request, uint32_t manner)
{
    request->in.open.business_id =
        manner & 3 ? arena_printf(request->arena, "asked-%u", (unsigned)(manner & 3)) : SLICE_NONE;
    request->in.open.tags = manner & 4 ? SLICE("{\"colour\":\"blue\"}") : SLICE_NONE;
    request->in.open.budget = manner & 8 ? SLICE("{\"calls\":2}") : SLICE_NONE;
    request->in.open.loop = manner & 16 ? SLICE("{\"repeats\":3}") : SLICE_NONE;
    request->in.open.on_timeout = manner & 32 ? (manner & 64 ? SLICE("escalate") : SLICE("abort")) : SLICE_NONE;
    request->in.open.deadline_ms = manner & 128 ? 12000 : 5000;
    engine_open_saga(engine, request);
}

static void ask_to_call_wrongly(struct engine *engine, struct engine_request *request, uint32_t manner,
                                struct saga_id known)
{
    struct arena *arena = request->arena;

    request->in.call.run = SLICE("run-7");
    request->in.call.tool = SLICE("keyed");
    request->in.call.args = SLICE("{\"n\":1}");
    switch (manner % 11) {
    case 0:
        request->in.call.args = too_large(arena);
        break;
    case 1:
        request->in.call.tool = SLICE("nothing");
        break;
    case 2:
        request->in.call.run = SLICE_NONE;
        break;
    case 3:
        request->in.call.run = too_long(arena);
        break;
    case 4:
        request->in.call.scope = too_long(arena);
        break;
    case 5:
        request->in.call.emission = SLICE("");
        break;
    case 6:
        request->in.call.conversation_turn = too_long(arena);
        break;
    case 7:
        request->in.call.step = SLICE("no step!");
        break;
    case 8: /* a tool that can only undo */
        request->in.call.tool = SLICE("undo_idem");
        break;
    case 9:
        request->in.call.run = SLICE_NONE;
        request->in.call.saga =
            some_saga(manner >> 4, known); /* mostly the saga of a definition, in which nothing can be called */
        request->in.call.tool = SLICE("undo_idem");
        break;
    case 10: /* the name of the run may be that of a saga */
        request->in.call.run = SLICE("b1");
        request->in.call.tool = SLICE("undo_idem");
        break;
    }
    request->in.call.wait_ms = manner & 512 ? 500 : 0;
    engine_call(engine, request);
}

/* --- what is done to them --- */

static void ask_to_signal_wrongly(struct engine *engine, struct engine_request *request, uint32_t manner,
                                  struct saga_id known)
{
    request->in.change.verb = VERB_SIGNAL;
    request->in.change.saga = some_saga(manner, known);
    request->in.change.input.signal.name = manner & 2 ? SLICE("unheard_of") : SLICE("g0");
    request->in.change.input.signal.payload = manner & 4 ? too_large(request->arena) : SLICE_NONE;
    engine_change(engine, request);
}

static void ask_to_decide_wrongly(struct engine *engine, struct engine_request *request, uint32_t manner)
{
    uint64_t number = manner & 8 ? NEVER_GIVEN : 1 + (manner >> 4 & 3);

    if (manner & 1) {
        request->in.change.verb = VERB_RESOLVE;
        request->in.change.input.verdict.escalation = manner & 2 ? NEVER_GIVEN : number;
        request->in.change.input.verdict.action = manner & 4 ? OPERATOR_RETRY : OPERATOR_RESOLVE;
        request->in.change.input.verdict.result = manner & 2 ? SLICE_NONE : too_large(request->arena);
        engine_change(engine, request);
    } else {
        request->in.change.verb = VERB_DECIDE;
        request->in.change.input.decision.approval = number;
        request->in.change.input.decision.approve = true;
        request->in.change.input.decision.role = manner & 2 ? ROLE_READER : ROLE_ADMIN;
        request->in.change.input.decision.hash =
            SLICE("0000000000000000000000000000000000000000000000000000000000000000");
        engine_change(engine, request);
    }
}

/* Asks for an end that must be refused. On existing sagas it uses only verbs that leave them unchanged. */
static void ask_to_end_wrongly(struct engine *engine, struct engine_request *request, uint32_t manner,
                               struct saga_id known)
{
    struct saga_id none = some_saga(manner & ~1u, known);

    switch (manner >> 16 & 3) {
    case 0:
        request->in.change.verb = VERB_ABORT;
        request->in.change.saga = none;
        engine_change(engine, request);
        return;
    case 1:
        request->in.change.verb = VERB_PAUSE;
        request->in.change.saga = none;
        engine_change(engine, request);
        return;
    case 2:
        request->in.change.verb = VERB_RESUME;
        request->in.change.saga = some_saga(manner, known);
        engine_change(engine, request);
        return;
    case 3:
        request->in.change.verb = VERB_COMPLETE;
        request->in.change.saga = some_saga(manner, known);
        request->in.change.input.complete.output = too_large(request->arena);
        engine_change(engine, request);
        return;
    }
}

enum { PASSING_CALL = 5, PASSING_COUNT };

/* Asks what other clients ask, too, but often leaves before the answer. */
static void ask_in_passing(struct engine *engine, struct engine_request *request, uint32_t manner, struct saga_id known)
{
    switch (manner % PASSING_COUNT) {
    case 0:
        request->in.get.id = known;
        request->in.get.wait_ms = 3000;
        engine_get_saga(engine, request);
        return;
    case 1:
        request->in.change.verb = VERB_SIGNAL;
        request->in.change.saga = known;
        request->in.change.input.signal.name = manner & 64 ? SLICE("g0") : SLICE("g1");
        engine_change(engine, request);
        return;
    case 2:
        request->in.change.verb = VERB_PAUSE;
        request->in.change.saga = known;
        engine_change(engine, request);
        return;
    case 3:
        request->in.change.verb = VERB_RESUME;
        request->in.change.saga = known;
        engine_change(engine, request);
        return;
    case 4:
        request->in.change.verb = VERB_COMPLETE;
        request->in.change.saga = known;
        request->in.change.wait_ms = 3000;
        engine_change(engine, request);
        return;
    case PASSING_CALL: /* the saga of the call does not exist */
        request->in.call.run = SLICE("run-1");
        request->in.call.tool = SLICE("keyed");
        request->in.call.scope = arena_printf(request->arena, "%u", (unsigned)(manner >> 6 & 3));
        request->in.call.wait_ms = 3000;
        engine_call(engine, request);
        return;
    }
}

int64_t curious_patience_us(const struct act *act, int64_t usual_us)
{
    static const int64_t little_us[] = {150, 700, 3000, 400000};

    return manner_of(act) >> 24 & 1 ? little_us[manner_of(act) >> 22 & 3] : usual_us;
}

/* --- of an engine itself --- */

static void look_at_health(struct engine *engine)
{
    struct engine_health health;
    struct buffer out;
    int64_t retry_after_ms;
    struct err err = {0};

    engine_health(engine, &health);
    buffer_init(&out, 1 << 20);
    engine_write_tool_metrics(engine, SLICE_NONE, &out);
    CHECK(!out.overflow);
    buffer_fini(&out);
    (void)engine_refuses_new(engine, &err, &retry_after_ms);
}

void curious_send(const struct act *act, struct saga_id known, struct engine *engine, struct engine_request *request)
{
    uint32_t manner = manner_of(act);

    if (is_of_another_namespace(act)) {
        request->namespace = SLICE("another");
    }
    switch (question_of(act)) {
    case ASKS_SAGAS:
    case ASKS_SAGAS_BY_STEP:
        ask_sagas(engine, request, manner, question_of(act) == ASKS_SAGAS_BY_STEP);
        return;
    case ASKS_OPERATIONS:
    case ASKS_OPERATIONS_OF:
        ask_operations(engine, request, manner, question_of(act) == ASKS_OPERATIONS_OF);
        return;
    case ASKS_OPERATION:
        request->in.operation.key = some_key(manner);
        if (manner >> 10 & 1) {
            request->in.preview.key = request->in.operation.key;
            engine_preview(engine, request);
            return;
        }
        engine_get_operation(engine, request);
        return;
    case ASKS_ESCALATIONS:
    case ASKS_ESCALATION:
        request->in.escalations.number = question_of(act) == ASKS_ESCALATIONS ? 0
                                         : manner & 8                         ? NEVER_GIVEN
                                                                              : 1 + (manner & 3);
        request->in.escalations.open_only = manner & 4;
        request->in.escalations.limit = manner & 3;
        request->in.escalations.cursor = cursor_of(heard.escalations, manner, request->arena);
        engine_get_escalations(engine, request);
        return;
    case ASKS_APPROVALS:
    case ASKS_APPROVAL:
        request->in.approvals.number = question_of(act) == ASKS_APPROVALS ? 0
                                       : manner & 8                       ? NEVER_GIVEN
                                                                          : 1 + (manner & 3);
        request->in.approvals.open_only = manner & 4;
        request->in.approvals.limit = manner & 3;
        request->in.approvals.cursor = cursor_of(heard.approvals, manner, request->arena);
        engine_get_approvals(engine, request);
        return;
    case ASKS_LOG:
        if (manner >> 10 & 1) {
            request->in.preview.id = some_saga(manner, known);
            request->in.preview.escalation = manner >> 11 & 1 ? 1 + (manner & 3) : 0;
            engine_preview(engine, request);
            return;
        }
        request->in.log.id = some_saga(manner, known);
        request->in.log.after_seq = manner & 64 ? UINT64_MAX : manner >> 2 & 7;
        request->in.log.limit = manner >> 5 & 3;
        engine_get_log(engine, request);
        return;
    case ASKS_STATS:
        engine_get_stats(engine, request);
        return;
    case ASKS_ENGINES:
        engine_get_engines(engine, request);
        return;
    case ASKS_DEFINITIONS:
        ask_definitions(engine, request, manner);
        return;
    case ASKS_HEALTH:
        look_at_health(engine);
        engine_get_stats(engine, request);
        return;
    case ASKS_TO_DEFINE:
        if ((manner & 72) == 72) {
            if (manner & 128) {
                ask_for_another_version(engine, request, manner);
            } else {
                ask_to_mend(engine, request, manner, known);
            }
        } else {
            ask_to_define(engine, request, manner);
        }
        return;
    case ASKS_TO_DEFINE_WRONGLY:
        ask_to_define_wrongly(engine, request, manner);
        return;
    case ASKS_TO_SIGN:
        request->in.change.verb = VERB_BYPASS;
        request->in.change.input.bypass.key = some_key(manner);
        request->in.change.input.bypass.note = SLICE("it has to be done twice");
        engine_change(engine, request);
        return;
    case ASKS_TO_SAY_COST:
        request->in.change.verb = VERB_COST;
        request->in.change.input.cost.key = some_key(manner);
        request->in.change.input.cost.micros = (int64_t)(manner % 1000);
        request->in.change.input.cost.note = SLICE("it stands on the invoice");
        engine_change(engine, request);
        return;
    case ASKS_TO_START_WRONGLY:
        ask_to_start_wrongly(engine, request, manner);
        return;
    case ASKS_TO_OPEN:
        ask_to_open(engine, request, manner);
        return;
    case ASKS_TO_OPEN_WRONGLY:
        request->in.open.business_id = manner & 1 ? too_long(request->arena) : SLICE("");
        engine_open_saga(engine, request);
        return;
    case ASKS_TO_CALL_WRONGLY:
        ask_to_call_wrongly(engine, request, manner, known);
        return;
    case ASKS_TO_SIGNAL_WRONGLY:
        ask_to_signal_wrongly(engine, request, manner, known);
        return;
    case ASKS_TO_DECIDE_WRONGLY:
        ask_to_decide_wrongly(engine, request, manner);
        return;
    case ASKS_TO_END_WRONGLY:
        ask_to_end_wrongly(engine, request, manner, known);
        return;
    case ASKS_IN_PASSING:
        ask_in_passing(engine, request, manner, known);
        return;
    case QUESTION_COUNT:
        break;
    }
    UNREACHABLE();
}

/* --- what is answered --- */

static void hear_operation(struct slice answer)
{
    struct json_walk walk = json_walk(answer);
    struct slice item;

    if (json_next_element(&walk, &item)) {
        keep(heard.key, json_string(json_member(item, "key"), &world->arena));
    }
}

static void hear_saga(struct slice answer)
{
    struct json_walk walk = json_walk(answer);
    struct slice item;

    if (json_next_element(&walk, &item)) {
        keep(heard.saga, json_string(json_member(item, "id"), &world->arena));
    }
}

void curious_answered(const struct act *act, const struct engine_request *request)
{
    enum question question = question_of(act);
    struct err err = {0};

    if (!request || request->code != ERR_OK) {
        if (request && (request->code == ERR_CORRUPT || request->code == ERR_INTERNAL)) {
            world_violate("I9", "act %u asks, and hears: %s: %s", (unsigned)act->id, err_name(request->code),
                          request->err.message);
        }
        return;
    }
    if (request->answer.len > 0 && json_check(request->answer, &json_limits_default, &err) != ERR_OK) {
        world_violate("I9", "act %u asks, and what it hears is no JSON: %s %s", (unsigned)act->id, err.message,
                      err.detail);
    }
    if (is_of_another_namespace(act) && question == ASKS_IN_PASSING && manner_of(act) % PASSING_COUNT != PASSING_CALL) {
        world_violate("CHECK", "act %u reaches a saga of another namespace", (unsigned)act->id);
    }
    if (question == ASKS_SAGAS || question == ASKS_SAGAS_BY_STEP) {
        keep(heard.sagas, request->next_cursor);
        hear_saga(request->answer);
    } else if (question == ASKS_OPERATIONS || question == ASKS_OPERATIONS_OF) {
        keep(heard.operations, request->next_cursor);
        hear_operation(request->answer);
    } else if (question == ASKS_ESCALATIONS) {
        keep(heard.escalations, request->next_cursor);
    } else if (question == ASKS_APPROVALS) {
        keep(heard.approvals, request->next_cursor);
    } else if (question == ASKS_TO_OPEN) {
        drive_follow(request->saga, true, act->id);
    }
}
