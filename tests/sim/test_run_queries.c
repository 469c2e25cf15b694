/*
 * Looking at things: what the database cannot say is told as just that, what is asked for in the moment in which it
 * begins, moves or ends is answered as it is durable, and a page goes on where the last one ended.
 */
#include "tests/sim/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "run/query/walk.h"
#include "store/guard.h"

static const char document[] =
    "{'tools':["
    "{'name':'act','builtin':{'tool':'act'},'effect':'idempotent','compensate':{'tool':'undo'}},"
    "{'name':'fail','builtin':{'tool':'fail'},'effect':'idempotent','compensate':{'tool':'undo'}},"
    "{'name':'wary','builtin':{'tool':'act'},'effect':'idempotent','rate':{'limit':10,'per':'1s'},'compensate':{'tool':"
    "'undo'}},"
    "{'name':'undo','builtin':{'tool':'undo'},'effect':'idempotent'}],"
    "'sagas':["
    "{'name':'acts','steps':[{'id':'a','call':'act','with':{}}]},"
    "{'name':'guarded','steps':[{'id':'a','call':'wary','with':{}}]},"
    "{'name':'listens','steps':[{'id':'a','signal':{'name':'paid'}}]},"
    "{'name':'fails','steps':[{'id':'a','call':'act','with':{}},{'id':'b','call':'fail','with':{}}]},"
    "{'name':'strict','input':{'type':'object','required':['n']},'steps':[{'id':'a','call':'act','with':{}}]}"
    "]}";

static int setup(void **state)
{
    (void)state;
    rig_begin();
    rig_start(0);
    rig_define(document);
    rig_tool("fail")->kind = OUTCOME_FAILED;
    rig_tool("fail")->error = "no-such-room";
    rig_tool("fail")->response = NULL;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rig_end();
    return 0;
}

static struct engine *engine_now(void)
{
    return nodes[0].engine;
}

static struct saga_id ended(void)
{
    struct saga_id id = rig_saga(0, "acts", "{}");

    rig_until_status(0, id, "completed");
    return id;
}

/* The key of the first step, as text. */
static void key_of(struct saga_id id, char key[UUID_TEXT_BYTES])
{
    struct slice text = json_member(json_element(json_member(rig_show(0, id), "steps"), 0), "key");

    assert_int_equal(text.len, UUID_TEXT_BYTES + 1);
    memcpy(key, text.ptr + 1, UUID_TEXT_BYTES - 1);
    key[UUID_TEXT_BYTES - 1] = '\0';
}

/* --- who asks for what --- */

static char id_now[UUID_TEXT_BYTES];
static struct saga_id saga_now;
static struct op_key key_now;

static request_verb *sagas(struct ask *a)
{
    (void)a;
    return engine_list_sagas;
}

static request_verb *sagas_by_step(struct ask *a)
{
    a->request.in.sagas.step = SLICE("a");
    return engine_list_sagas;
}

static request_verb *operations(struct ask *a)
{
    (void)a;
    return engine_list_operations;
}

static request_verb *operations_of(struct ask *a)
{
    a->request.in.operations.run = slice_of(id_now);
    return engine_list_operations;
}

static request_verb *operation(struct ask *a)
{
    a->request.in.operation.key = key_now;
    return engine_get_operation;
}

static request_verb *escalations(struct ask *a)
{
    (void)a;
    return engine_get_escalations;
}

static request_verb *escalation(struct ask *a)
{
    a->request.in.escalations.number = 64;
    return engine_get_escalations;
}

static request_verb *record(struct ask *a)
{
    a->request.in.log.id = saga_now;
    return engine_get_log;
}

static request_verb *saga(struct ask *a)
{
    a->request.in.get.id = saga_now;
    return engine_get_saga;
}

static request_verb *stats(struct ask *a)
{
    (void)a;
    return engine_get_stats;
}

static request_verb *engines(struct ask *a)
{
    (void)a;
    return engine_get_engines;
}

static request_verb *definitions(struct ask *a)
{
    a->request.in.definitions.kind = DEFINITION_SAGA;
    return engine_get_definitions;
}

typedef request_verb *question(struct ask *a);

static void asks(struct ask *a, question *question_now)
{
    ask_begin(a, 0);
    (void)ask(a, question_now(a));
}

static void assert_asks(question *question_now, enum err_code code)
{
    struct ask a;

    asks(&a, question_now);
    assert_code(&a, code);
    ask_end(&a);
}

static void choose(struct saga_id id)
{
    char key[UUID_TEXT_BYTES];

    saga_now = id;
    uuid_text(&id.uuid, id_now);
    key_of(id, key);
    assert_true(uuid_parse(slice_of(key), &key_now.uuid));
}

static void what_the_database_cannot_say_is_told_as_that(void **state)
{
    static const struct {
        question *question;
        enum store_call call;
        enum err_code code, told;
    } table[] = {
        {sagas, STORE_LIST_SAGAS, ERR_STORE, ERR_STORE},
        {sagas_by_step, STORE_LIST_SAGAS, ERR_STORE, ERR_STORE},
        {sagas_by_step, STORE_READ_SAGA, ERR_STORE, ERR_STORE},
        {sagas_by_step, STORE_READ_SAGA, ERR_NOT_FOUND, ERR_OK}, /* removed meanwhile: the others are shown */
        {operations, STORE_LIST_SAGAS, ERR_STORE, ERR_STORE},
        {operations, STORE_READ_SAGA, ERR_STORE, ERR_STORE},
        {operations_of, STORE_FIND_SAGA, ERR_STORE, ERR_STORE},
        {operations_of, STORE_READ_SAGA, ERR_STORE, ERR_STORE},
        {operations_of, STORE_READ_SAGA, ERR_NOT_FOUND, ERR_OK},
        {operation, STORE_FIND_OPERATION, ERR_STORE, ERR_STORE},
        {operation, STORE_FIND_OPERATION, ERR_NOT_FOUND, ERR_NOT_FOUND},
        {operation, STORE_READ_SAGA, ERR_STORE, ERR_STORE},
        {operation, STORE_READ_SAGA, ERR_NOT_FOUND, ERR_NOT_FOUND},
        {escalations, STORE_LIST_QUESTIONS, ERR_STORE, ERR_STORE},
        {escalation, STORE_LIST_QUESTIONS, ERR_STORE, ERR_STORE},
        {escalation, STORE_LIST_QUESTIONS, ERR_NOT_FOUND, ERR_NOT_FOUND},
        {record, STORE_READ_SAGA, ERR_STORE, ERR_STORE},
        {record, STORE_READ_SAGA, ERR_NOT_FOUND, ERR_NOT_FOUND},
        {saga, STORE_READ_SAGA, ERR_STORE, ERR_STORE},
        {saga, STORE_READ_SAGA, ERR_NOT_FOUND, ERR_NOT_FOUND},
        {stats, STORE_COUNT_SAGAS, ERR_STORE, ERR_STORE},
        {stats, STORE_GUARD_LIST, ERR_STORE, ERR_STORE},
        {engines, STORE_LIST_ENGINES, ERR_STORE, ERR_STORE},
        {definitions, STORE_COUNT_VERSIONS, ERR_STORE, ERR_STORE},
    };

    (void)state;
    choose(ended());
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        uint32_t asked = stage_asked(table[i].call);

        stage_refuse(table[i].call, table[i].code, 1);
        assert_asks(table[i].question, table[i].told);
        if (stage_asked(table[i].call) == asked) {
            fail_msg("question %zu does not ask that", i);
        }
        assert_asks(table[i].question, table[i].question == escalation ? ERR_NOT_FOUND : ERR_OK); /* and then it can */
    }
}

static void spoil_turn(void *request, enum err_code *code)
{
    struct read_saga *read = container_of(request, struct read_saga, read);

    assert_int_equal(*code, ERR_OK);
    read->turns[0].payload = SLICE("[7]");
}

static void empty_record(void *request, enum err_code *code)
{
    struct read_saga *read = container_of(request, struct read_saga, read);

    assert_int_equal(*code, ERR_OK);
    read->turns[0].payload = SLICE("[{}]");
}

static void a_log_that_makes_no_sense_is_told_as_that_and_does_not_hide_the_others(void **state)
{
    static question *const alone[] = {saga, operations_of, operation, record};
    static question *const among_others[] = {sagas_by_step, operations};
    struct ask a;

    (void)state;
    (void)ended();
    choose(ended());
    for (size_t i = 0; i < COUNT_OF(alone); i++) {
        stage_on_answer(STORE_READ_SAGA, spoil_turn);
        assert_asks(alone[i], ERR_CORRUPT);
    }
    stage_on_answer(STORE_READ_SAGA, empty_record);
    assert_asks(record, ERR_CORRUPT);
    for (size_t i = 0; i < COUNT_OF(among_others); i++) {
        stage_on_answer(STORE_READ_SAGA, spoil_turn);
        asks(&a, among_others[i]);
        assert_code(&a, ERR_OK);
        assert_int_equal(json_count(a.request.answer), 1);
        ask_end(&a);
    }
}

/* --- in this very moment --- */

static struct ask early[3];

static void ask_early(void *request, enum err_code *code)
{
    const struct append *append = request;

    assert_int_equal(*code, ERR_OK);
    saga_now = append->saga;
    uuid_text(&append->saga.uuid, id_now);
    for (size_t i = 0; i < COUNT_OF(early); i++) {
        early[i].request.context = &early[i];
    }
    saga (&early[0])(engine_now(), &early[0].request);
    operations_of (&early[1])(engine_now(), &early[1].request);
    early[2].request.in.abort.id = append->saga;
    engine_abort_saga(engine_now(), &early[2].request);
}

static void a_saga_that_is_just_beginning_is_shown_as_it_is_durable(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(early); i++) {
        ask_begin(&early[i], 0);
    }
    stage_on_answer(STORE_APPEND, ask_early);
    struct saga_id id = rig_saga(0, "listens", "{}");

    for (size_t i = 0; i < COUNT_OF(early); i++) {
        ask_wait(&early[i]);
        assert_code(&early[i], ERR_OK);
    }
    assert_true(json_string_is(json_member(early[0].request.answer, "status"), "waiting"));
    assert_true(slice_is(early[1].request.answer, "[]"));
    for (size_t i = 0; i < COUNT_OF(early); i++) {
        ask_end(&early[i]);
    }
    rig_until_status(0, id, "compensated");
}

static struct ask while_read[2];

static void ask_while_read(void *request, enum err_code *code)
{
    const struct shard_load *load = request;

    assert_int_equal(*code, ERR_OK);
    if (load->shard != saga_id_shard(saga_now)) {
        stage_on_answer(STORE_LOAD_SHARD, ask_while_read);
        return;
    }
    assert_int_equal(engine_now()->shards[load->shard].state, SHARD_LOADING);
    assert_non_null(live_find(engine_now(), saga_now));
    for (size_t i = 0; i < COUNT_OF(while_read); i++) {
        ask_begin(&while_read[i], 0);
        while_read[i].request.context = &while_read[i];
    }
    saga (&while_read[0])(engine_now(), &while_read[0].request);
    operations_of (&while_read[1])(engine_now(), &while_read[1].request);
}

static void a_saga_of_a_shard_that_is_being_read_is_shown_from_its_log(void **state)
{
    (void)state;
    saga_now = rig_saga(0, "listens", "{}");
    uuid_text(&saga_now.uuid, id_now);
    rig_until_status(0, saga_now, "waiting");
    node_kill(&nodes[0]);
    stage_on_answer(STORE_LOAD_SHARD, ask_while_read);
    rig_start(0);
    rig_for(1000);
    for (size_t i = 0; i < COUNT_OF(while_read); i++) {
        ask_wait(&while_read[i]);
        assert_code(&while_read[i], ERR_OK);
        ask_end(&while_read[i]);
    }
}

static void what_cannot_be_is_not_found(void **state)
{
    struct ask a;
    struct saga_id id = ended();

    (void)state;
    choose(id);
    saga_now.uuid.bytes[14] = 0xff; /* of a shard that there is not */
    assert_asks(saga, ERR_NOT_FOUND);
    saga_now = rig_saga(0, "listens", "{}"); /* in memory, of another namespace */
    uuid_text(&saga_now.uuid, id_now);
    ask_begin(&a, 0);
    a.request.namespace = SLICE("other");
    assert_int_equal(ask(&a, operations_of(&a)), ERR_OK);
    assert_true(slice_is(a.request.answer, "[]"));
    ask_end(&a);
    ask_begin(&a, 0);
    a.request.namespace = SLICE("other");
    assert_int_equal(ask(&a, saga(&a)), ERR_NOT_FOUND);
    ask_end(&a);
}

/* --- pages --- */

static void list_operations(struct ask *a, const char *cursor, size_t limit)
{
    ask_begin(a, 0);
    a->request.in.operations.cursor = slice_of(cursor);
    a->request.in.operations.limit = limit;
    (void)ask(a, engine_list_operations);
}

static void nonsense_is_no_cursor(void **state)
{
    static const char *const cursors[] = {
        "x",
        "not-a-uuid-not-a-uuid-not-a-uuid-not",
        "00000000-0000-0000-0000-000000000000",
        "00000000-0000-0000-0000-000000000000.1",
        "01890a5d-ac96-774b-bcce-b302099a8057x1",
        "01890a5d-ac96-774b-bcce-b302099a8057.x",
        "01890a5d-ac96-774b-bcce-b302099a8057.-1",
        "01890a5d-ac96-774b-bcce-b302099a8057.4294967295",
    };
    struct ask a;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cursors); i++) {
        list_operations(&a, cursors[i], 0);
        assert_code(&a, ERR_MALFORMED);
        ask_end(&a);
    }
    /* Behind the newest that can be: everything. A carry goes through all of an id. */
    (void)ended();
    list_operations(&a, "ffffffff-ffff-ffff-ffff-ffffffffffff.1", 0);
    assert_code(&a, ERR_OK);
    assert_int_equal(json_count(a.request.answer), 1);
    ask_end(&a);
    list_operations(&a, "fffffffe-ffff-ffff-ffff-ffffffffffff.1", 0);
    assert_code(&a, ERR_OK);
    assert_int_equal(json_count(a.request.answer), 1);
    ask_end(&a);
}

/* A walk looks at so many sagas and no more; the cursor that it gives then leads on, until all were looked at once. */
static void a_long_walk_goes_on_where_it_ended(void **state)
{
    enum { MANY = WALK_SAGAS_MAX + 60 };
    static question *const walks[] = {sagas_by_step, operations};
    char cursor[64] = "";
    struct ask a;
    struct saga_id first = ended();

    (void)state;
    (void)first;
    engine_now()->options.sagas_max = 2 * MANY;
    for (int i = 0; i < MANY; i++) {
        (void)rig_saga(0, "listens", "{}");
    }
    for (size_t i = 0; i < COUNT_OF(walks); i++) {
        cursor[0] = '\0';
        size_t found = 0, pages = 0;

        do {
            ask_begin(&a, 0);
            request_verb *verb = walks[i](&a);

            if (i == 0) {
                a.request.in.sagas.saga = SLICE_NONE;
                a.request.in.sagas.step = SLICE_NONE;
                a.request.in.sagas.error = SLICE("no-such-error");
                a.request.in.sagas.cursor = slice_of(cursor);
            } else {
                a.request.in.operations.cursor = slice_of(cursor);
            }
            assert_int_equal(ask(&a, verb), ERR_OK);
            found += json_count(a.request.answer);
            (void)snprintf(cursor, sizeof(cursor), "%.*s", SLICE_ARG(a.request.next_cursor));
            ask_end(&a);
            pages++;
        } while (cursor[0]);
        assert_int_equal(pages, 2);
        assert_int_equal(found, i); /* the operation of the first saga; no saga has that error */
    }
}

static void sagas_are_found_by_the_error_of_a_step_its_undo_or_the_whole(void **state)
{
    static const struct {
        const char *step, *error;
        size_t found;
    } table[] = {
        {NULL, "no-such-room", 2}, {"b", "no-such-room", 1}, {"b", NULL, 1}, {"a", "no-such-room", 1},
        {NULL, "abort", 1},        {"a", "abort", 0},        {"c", NULL, 0}, {NULL, "nothing", 0},
    };
    struct ask a;
    struct saga_id id = rig_saga(0, "fails", "{}");

    (void)state;
    rig_until_status(0, id, "compensated");
    /* One whose undo is refused, after it was aborted. */
    rig_tool("undo")->kind = OUTCOME_FAILED;
    rig_tool("undo")->error = "no-such-room";
    rig_tool("undo")->response = NULL;
    ask_begin(&a, 0);
    a.request.in.open.business_id = SLICE("o");
    assert_int_equal(ask(&a, engine_open_saga), ERR_OK);
    id = a.request.saga;
    ask_end(&a);
    ask_begin(&a, 0);
    a.request.in.call.saga = id;
    a.request.in.call.step = SLICE("a");
    a.request.in.call.tool = SLICE("act");
    a.request.in.call.wait_ms = 1000;
    assert_int_equal(ask(&a, engine_call), ERR_OK);
    ask_end(&a);
    ask_begin(&a, 0);
    a.request.in.abort.id = id;
    assert_int_equal(ask(&a, engine_abort_saga), ERR_OK);
    ask_end(&a);
    rig_until_status(0, id, "escalated");
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        ask_begin(&a, 0);
        a.request.in.sagas.step = table[i].step ? slice_of(table[i].step) : SLICE_NONE;
        a.request.in.sagas.error = table[i].error ? slice_of(table[i].error) : SLICE_NONE;
        assert_int_equal(ask(&a, engine_list_sagas), ERR_OK);
        if (json_count(a.request.answer) != table[i].found) {
            fail_msg("line %zu: %.*s", i, SLICE_ARG(a.request.answer));
        }
        ask_end(&a);
    }
}

/* --- operations --- */

static void an_operation_is_found_by_the_key_that_it_had_before(void **state)
{
    struct saga_id id;
    struct ask a;
    int64_t number;

    (void)state;
    rig_tool("undo")->kind = OUTCOME_FAILED;
    rig_tool("undo")->error = "no-such-room";
    rig_tool("undo")->response = NULL;
    id = rig_saga(0, "fails", "{}");
    rig_until_status(0, id, "escalated");
    asks(&a, escalations);
    assert_true(json_i64(json_member(json_element(a.request.answer, 0), "n"), &number));
    assert_true(
        uuid_parse(json_string(json_member(json_element(a.request.answer, 0), "operation"), &a.arena), &key_now.uuid));
    ask_end(&a);
    rig_tool("undo")->kind = OUTCOME_COMPLETED;
    rig_tool("undo")->response = "{}";
    rig_tool("undo")->error = NULL;
    ask_begin(&a, 0);
    a.request.in.resolve.number = (uint64_t)number;
    a.request.in.resolve.action = OPERATOR_RETRY;
    a.request.in.resolve.args = SLICE("{\"n\":2}");
    a.request.in.resolve.note = SLICE("with another number");
    (void)ask(&a, engine_resolve);
    assert_code(&a, ERR_OK);
    ask_end(&a);
    rig_until_status(0, id, "compensated");
    asks(&a, operation); /* by its key of before */
    assert_code(&a, ERR_OK);
    assert_true(json_string_is(json_member(a.request.answer, "state"), "completed"));
    ask_end(&a);
    key_now.uuid.bytes[3] ^= 1;
    assert_asks(operation, ERR_NOT_FOUND);
}

static void an_operation_of_a_run_is_found_by_its_key(void **state)
{
    struct ask a;

    (void)state;
    ask_begin(&a, 0);
    a.request.in.call.run = SLICE("run-1");
    a.request.in.call.step = SLICE("a");
    a.request.in.call.tool = SLICE("act");
    a.request.in.call.wait_ms = 1000;
    assert_int_equal(ask(&a, engine_call), ERR_OK);
    assert_true(uuid_parse(a.request.call.key, &key_now.uuid));
    ask_end(&a);
    asks(&a, operation);
    assert_code(&a, ERR_OK);
    ask_end(&a);
}

/* --- stats, definitions, engines --- */

static void set_guard(void *request, enum err_code *code)
{
    struct guard_list *list = container_of(request, struct guard_list, read);

    assert_int_equal(*code, ERR_OK);
    assert_int_equal(list->count, 1);
    list->rows[0].breaker_state = BREAKER_OPEN;
    list->rows[0].open_until_ms = WORLD_START_MS + 5000;
    list->rows[0].paused_until_ms = WORLD_START_MS + 7000;
}

static void what_stops_a_tool_is_shown_with_the_time_until_when(void **state)
{
    struct slice guard;
    struct ask a;

    (void)state;
    rig_until_status(0, rig_saga(0, "guarded", "{}"), "completed");
    asks(&a, stats);
    assert_code(&a, ERR_OK);
    guard = json_element(json_member(a.request.answer, "guards"), 0);
    assert_true(json_string_is(json_member(guard, "breaker"), "closed"));
    assert_null(json_member(guard, "open_until").ptr);
    ask_end(&a);
    stage_on_answer(STORE_GUARD_LIST, set_guard);
    asks(&a, stats);
    assert_code(&a, ERR_OK);
    guard = json_element(json_member(a.request.answer, "guards"), 0);
    assert_true(json_string_is(json_member(guard, "breaker"), "open"));
    assert_true(json_string_is(json_member(guard, "open_until"), "2023-11-14T22:13:25.000Z"));
    assert_true(json_string_is(json_member(guard, "paused_until"), "2023-11-14T22:13:27.000Z"));
    ask_end(&a);
}

static void add_newer(struct engine *engine, void *context)
{
    const struct definition_row row = {.namespace = SLICE("sim"),
                                       .kind = DEFINITION_SAGA,
                                       .name = SLICE("acts"),
                                       .version = 9,
                                       .body = SLICE("{\"name\":\"acts\",\"steps\":[]}"),
                                       .created_ms = WORLD_START_MS};

    (void)context;
    definitions_add(engine->definitions, &row);
}

static void versions_that_are_not_known_here_yet_are_left_out(void **state)
{
    struct slice item;
    struct ask a;
    size_t versions = 0;

    (void)state;
    rig_tool("act")->delay_ms = 60000;
    (void)rig_saga(0, "acts", "{}");
    (void)rig_saga(0, "listens", "{}");
    rig_inside(0, add_newer, NULL); /* it was registered elsewhere, and so were those between */
    asks(&a, definitions);
    assert_code(&a, ERR_OK);
    for (struct json_walk walk = json_walk(a.request.answer); json_next_element(&walk, &item);) {
        if (json_string_is(json_member(item, "name"), "acts")) {
            versions += json_count(json_member(item, "versions"));
        }
    }
    assert_int_equal(versions, 2);
    ask_end(&a);
}

static void change_engines(void *request, enum err_code *code)
{
    struct list_engines *list = container_of(request, struct list_engines, read);

    assert_int_equal(*code, ERR_OK);
    assert_int_equal(list->count, 1);
    struct engine_row *rows = arena_array(list->read.arena, 3, sizeof(*rows));

    for (size_t i = 0; i < 3; i++) {
        rows[i] = list->rows[0];
        rows[i].leaving = i == 1;
        rows[i].left_ms = i == 2 ? 0 : 1000;
    }
    list->rows = rows;
    list->count = 3;
    list->shards[5].left_ms = 1000; /* held by nobody */
    list->shards[5].identity = SLICE_NONE;
}

static void engines_are_shown_as_they_are(void **state)
{
    static const char *const states[] = {"alive", "leaving", "expired"};
    struct ask a;

    (void)state;
    stage_on_answer(STORE_LIST_ENGINES, change_engines);
    asks(&a, engines);
    assert_code(&a, ERR_OK);
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        assert_true(
            json_string_is(json_member(json_element(json_member(a.request.answer, "items"), i), "state"), states[i]));
    }
    ask_end(&a);
}

/* --- nobody listens any more --- */

static void whoever_hangs_up_is_told_once_and_disturbs_nobody(void **state)
{
    static question *const questions[] = {sagas,  sagas_by_step, operations, operations_of, operation,
                                          record, saga,          stats,      definitions};
    struct ask a;

    (void)state;
    choose(ended());
    for (size_t i = 0; i < COUNT_OF(questions); i++) {
        ask_begin(&a, 0);
        ask_send(&a, questions[i](&a));
        ask_cancel(&a);
        ask_cancel(&a); /* its answer is on the way */
        ask_wait(&a);
        assert_code(&a, ERR_TIMEOUT);
        ask_end(&a);
        rig_for(100);
    }
    assert_int_equal(engine_now()->works.count, 0);
}

static void an_answer_that_grows_too_large_is_refused(void **state)
{
    struct ask a;

    (void)state;
    choose(ended());
    ask_begin(&a, 0);
    ask_send(&a, saga(&a));
    ((struct work *)a.request.internal)->out.bytes_max = 16;
    ask_wait(&a);
    assert_code(&a, ERR_TOO_LARGE);
    ask_end(&a);
}

/* --- starting --- */

static void a_start_that_does_not_fit_is_refused_with_each_place(void **state)
{
    struct ask a;

    (void)state;
    ask_begin(&a, 0);
    a.request.in.start.saga = SLICE("strict");
    assert_int_equal(ask(&a, engine_start_saga), ERR_INVALID);
    assert_int_equal(a.request.faults.count, 1);
    ask_end(&a);
    ask_begin(&a, 0);
    a.request.in.start.saga = SLICE("acts"); /* no input is an empty one */
    assert_int_equal(ask(&a, engine_start_saga), ERR_OK);
    ask_end(&a);
}

static void a_start_whose_client_has_gone_is_there_all_the_same(void **state)
{
    struct ask a;
    struct saga_id id;

    (void)state;
    for (int again = 0; again < 2; again++) {
        ask_begin(&a, 0);
        a.request.in.start.saga = SLICE("acts");
        a.request.in.start.business_id = SLICE("b1");
        ask_send(&a, engine_start_saga);
        ask_cancel(&a);
        ask_wait(&a);
        assert_code(&a, ERR_TIMEOUT);
        ask_end(&a);
        rig_for(500);
    }
    ask_begin(&a, 0);
    a.request.in.start.saga = SLICE("acts");
    a.request.in.start.business_id = SLICE("b1");
    assert_int_equal(ask(&a, engine_start_saga), ERR_OK);
    assert_false(a.request.created);
    id = a.request.saga;
    ask_end(&a);
    rig_until_status(0, id, "completed");
}

static void a_large_way_to_ask_for_an_open_saga_is_told_apart_too(void **state)
{
    static char spaces[90000];
    struct ask a;

    (void)state;
    for (int i = 0; i < 3; i++) {
        memset(spaces, ' ', sizeof(spaces) - 1);
        memcpy(spaces, "{\"calls\":5", 10);
        spaces[9] = i == 2 ? '6' : '5';
        spaces[sizeof(spaces) - 2] = '}';
        ask_begin(&a, 0);
        a.request.in.open.business_id = SLICE("o1");
        a.request.in.open.budget = slice_of(spaces);
        (void)ask(&a, engine_open_saga);
        assert_code(&a, i == 2 ? ERR_OTHER_INPUT : ERR_OK);
        assert_int_equal(a.request.created, i == 0);
        ask_end(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_the_database_cannot_say_is_told_as_that, setup, teardown),
        cmocka_unit_test_setup_teardown(a_log_that_makes_no_sense_is_told_as_that_and_does_not_hide_the_others, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_saga_that_is_just_beginning_is_shown_as_it_is_durable, setup, teardown),
        cmocka_unit_test_setup_teardown(a_saga_of_a_shard_that_is_being_read_is_shown_from_its_log, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_is_not_found, setup, teardown),
        cmocka_unit_test_setup_teardown(nonsense_is_no_cursor, setup, teardown),
        cmocka_unit_test_setup_teardown(a_long_walk_goes_on_where_it_ended, setup, teardown),
        cmocka_unit_test_setup_teardown(sagas_are_found_by_the_error_of_a_step_its_undo_or_the_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(an_operation_is_found_by_the_key_that_it_had_before, setup, teardown),
        cmocka_unit_test_setup_teardown(an_operation_of_a_run_is_found_by_its_key, setup, teardown),
        cmocka_unit_test_setup_teardown(what_stops_a_tool_is_shown_with_the_time_until_when, setup, teardown),
        cmocka_unit_test_setup_teardown(versions_that_are_not_known_here_yet_are_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(engines_are_shown_as_they_are, setup, teardown),
        cmocka_unit_test_setup_teardown(whoever_hangs_up_is_told_once_and_disturbs_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(an_answer_that_grows_too_large_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_start_that_does_not_fit_is_refused_with_each_place, setup, teardown),
        cmocka_unit_test_setup_teardown(a_start_whose_client_has_gone_is_there_all_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(a_large_way_to_ask_for_an_open_saga_is_told_apart_too, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
