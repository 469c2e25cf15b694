/*
 * Queries: what the database cannot say is reported as such. A query in the moment in which a saga begins, moves or
 * ends gets the durable answer. A page goes on where the last one ended.
 */
#include "run/saga/live.h"
#include "tests/sim/stage.h"

#include <stdio.h>

#include "base/json.h"
#include "run/query/walk.h"
#include "run/request/work.h"
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
    stage_begin(&(struct stage_plan){.definitions = document, .is_automatic = true});
    stage_says("fail", OUTCOME_FAILED, "no-such-room", NULL);
    return 0;
}

static struct engine *engine_now(void)
{
    return nodes[0].engine;
}

static struct saga_id ended(void)
{
    struct saga_id id = stage_start(0, "acts", "{}");

    stage_until_saga(0, id, "completed");
    return id;
}

/* Writes the key of the first step as text. */
static void key_of(struct saga_id id, char key[UUID_TEXT_BYTES])
{
    struct slice text = json_member(json_element(json_member(stage_saga(0, id), "steps"), 0), "key");

    assert_int_equal(text.len, UUID_TEXT_BYTES + 1);
    memcpy(key, text.ptr + 1, UUID_TEXT_BYTES - 1);
    key[UUID_TEXT_BYTES - 1] = '\0';
}

/* --- who asks for what --- */

static char id_now[UUID_TEXT_BYTES];
static struct saga_id saga_now;
static struct op_key key_now;

static request_verb *sagas(struct engine_request *what)
{
    (void)what;
    return engine_list_sagas;
}

static request_verb *sagas_by_step(struct engine_request *what)
{
    what->in.sagas.step = SLICE("a");
    return engine_list_sagas;
}

static request_verb *sagas_that_wait(struct engine_request *what)
{
    what->in.sagas.waits_for = SLICE("signal,retry");
    return engine_list_sagas;
}

static request_verb *operations(struct engine_request *what)
{
    (void)what;
    return engine_list_operations;
}

static request_verb *operations_of(struct engine_request *what)
{
    what->in.operations.run = slice_of(id_now);
    return engine_list_operations;
}

static request_verb *operation(struct engine_request *what)
{
    what->in.operation.key = key_now;
    return engine_get_operation;
}

static request_verb *escalations(struct engine_request *what)
{
    (void)what;
    return engine_get_escalations;
}

static request_verb *escalation(struct engine_request *what)
{
    what->in.escalations.number = 64;
    return engine_get_escalations;
}

static request_verb *record(struct engine_request *what)
{
    what->in.log.id = saga_now;
    return engine_get_log;
}

static request_verb *saga(struct engine_request *what)
{
    what->in.get.id = saga_now;
    return engine_get_saga;
}

static request_verb *stats(struct engine_request *what)
{
    (void)what;
    return engine_get_stats;
}

static request_verb *engines(struct engine_request *what)
{
    (void)what;
    return engine_get_engines;
}

static request_verb *definitions(struct engine_request *what)
{
    what->in.definitions.kind = DEFINITION_SAGA;
    return engine_get_definitions;
}

typedef request_verb *question(struct engine_request *what);

static struct reply *asks(question *question_now)
{
    struct engine_request what = {0};
    request_verb *verb = question_now(&what);

    return stage_ask(0, verb, &what);
}

static void assert_asks(question *question_now, enum err_code code)
{
    (void)stage_expect(asks(question_now), code);
}

static void choose(struct saga_id id)
{
    char key[UUID_TEXT_BYTES];

    saga_now = id;
    uuid_text(&id.uuid, id_now);
    key_of(id, key);
    assert_true(uuid_parse(slice_of(key), &key_now.uuid));
}

TEST(a_query_that_the_database_cannot_answer_is_told_as_such)
{
    static const struct {
        question *question;
        enum store_call call;
        enum err_code code, told;
    } table[] = {
        {sagas, STORE_LIST_SAGAS, ERR_STORE, ERR_STORE},
        {sagas_by_step, STORE_LIST_SAGAS, ERR_STORE, ERR_STORE},
        {sagas_by_step, STORE_READ_SAGA, ERR_STORE, ERR_STORE},
        {sagas_that_wait, STORE_LIST_SAGAS, ERR_STORE, ERR_STORE},
        {sagas_by_step, STORE_READ_SAGA, ERR_NOT_FOUND,
         ERR_OK}, /* one saga was removed meanwhile, and the others are shown */
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

    choose(ended());
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        uint32_t asked = stage_asked(table[i].call);

        stage_refuse(table[i].call, table[i].code, 1);
        assert_asks(table[i].question, table[i].told);
        if (stage_asked(table[i].call) == asked) {
            fail_msg("question %zu does not ask that", i);
        }
        assert_asks(table[i].question, table[i].question == escalation
                                           ? ERR_NOT_FOUND
                                           : ERR_OK); /* and then the question can be answered */
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

TEST(a_log_that_makes_no_sense_is_told_as_that_and_does_not_hide_the_others)
{
    static question *const alone[] = {saga, operations_of, operation, record};
    static question *const among_others[] = {sagas_by_step, operations};
    struct reply *a;

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
        a = stage_expect(asks(among_others[i]), ERR_OK);
        assert_int_equal(json_count(a->answer), 1);
    }
}

/* --- in this very moment --- */

static struct reply *early[3];

static void ask_early(void *request, enum err_code *code)
{
    const struct append *append = request;

    assert_int_equal(*code, ERR_OK);
    saga_now = append->saga;
    uuid_text(&append->saga.uuid, id_now);
    early[0] = asks(saga);
    early[1] = asks(operations_of);
    early[2] = stage_change(0, VERB_ABORT, append->saga);
}

TEST(a_saga_that_is_just_beginning_is_shown_as_it_is_durable)
{
    stage_on_answer(STORE_APPEND, ask_early);
    struct saga_id id = stage_start(0, "listens", "{}");

    for (size_t i = 0; i < COUNT_OF(early); i++) {
        (void)stage_expect(early[i], ERR_OK);
    }
    assert_true(json_string_is(json_member(early[0]->answer, "status"), "waiting"));
    assert_true(slice_is(early[1]->answer, "[]"));
    stage_until_saga(0, id, "compensated");
}

static struct reply *while_read[2];

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
    while_read[0] = asks(saga);
    while_read[1] = asks(operations_of);
}

TEST(a_saga_of_a_shard_that_is_being_read_is_shown_from_its_log)
{
    saga_now = stage_start(0, "listens", "{}");
    uuid_text(&saga_now.uuid, id_now);
    stage_until_saga(0, saga_now, "waiting");
    node_kill(&nodes[0]);
    stage_on_answer(STORE_LOAD_SHARD, ask_while_read);
    stage_again(0);
    stage_run(1000);
    for (size_t i = 0; i < COUNT_OF(while_read); i++) {
        (void)stage_expect(while_read[i], ERR_OK);
    }
}

TEST(what_cannot_be_is_not_found)
{
    struct engine_request what = {.namespace = SLICE("other")};
    struct reply *a;

    choose(ended());
    saga_now.uuid.bytes[14] = 0xff; /* an id of a shard that does not exist */
    assert_asks(saga, ERR_NOT_FOUND);
    saga_now = stage_start(0, "listens", "{}"); /* in memory, but in another namespace */
    uuid_text(&saga_now.uuid, id_now);
    (void)operations_of(&what);
    a = stage_expect(stage_ask(0, engine_list_operations, &what), ERR_OK);
    assert_true(slice_is(a->answer, "[]"));
    what.in = (typeof(what.in)){.get.id = saga_now};
    (void)stage_expect(stage_ask(0, engine_get_saga, &what), ERR_NOT_FOUND);
}

/* --- pages --- */

static struct reply *list_operations(const char *cursor)
{
    return stage_ask(0, engine_list_operations, &(struct engine_request){.in.operations.cursor = slice_of(cursor)});
}

TEST(nonsense_is_no_cursor)
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
    struct reply *a;

    for (size_t i = 0; i < COUNT_OF(cursors); i++) {
        (void)stage_expect(list_operations(cursors[i]), ERR_MALFORMED);
    }
    /* A cursor behind the newest possible id finds everything. Its successor carries through all bytes of an id. */
    (void)ended();
    a = stage_expect(list_operations("ffffffff-ffff-ffff-ffff-ffffffffffff.1"), ERR_OK);
    assert_int_equal(json_count(a->answer), 1);
    a = stage_expect(list_operations("fffffffe-ffff-ffff-ffff-ffffffffffff.1"), ERR_OK);
    assert_int_equal(json_count(a->answer), 1);
}

/* A walk looks at a bounded number of sagas. Its cursor leads on until all were looked at once. */
TEST(a_long_walk_goes_on_where_it_ended)
{
    enum { MANY = WALK_SAGAS_MAX + 60 };
    static request_verb *const walks[] = {engine_list_sagas, engine_list_operations};
    char cursor[64] = "";
    struct reply *a;

    (void)ended();
    engine_now()->options.sagas_max = 2 * MANY;
    for (int i = 0; i < MANY; i++) {
        (void)stage_start(0, "listens", "{}");
    }
    for (size_t i = 0; i < COUNT_OF(walks); i++) {
        cursor[0] = '\0';
        size_t found = 0, pages = 0;
        int64_t looked = 0, looked_ms = 0;

        do {
            struct engine_request what = {0};

            if (i == 0) {
                what.in.sagas.error = SLICE("no-such-error");
                what.in.sagas.cursor = slice_of(cursor);
            } else {
                what.in.operations.cursor = slice_of(cursor);
            }
            a = stage_expect(stage_ask(0, walks[i], &what), ERR_OK);
            if (pages == 0) {
                looked = a->looked_count;
                looked_ms = a->looked_ms;
            }
            found += json_count(a->answer);
            (void)snprintf(cursor, sizeof(cursor), "%.*s", SLICE_ARG(a->next_cursor));
            pages++;
        } while (cursor[0]);
        assert_int_equal(pages, 2);
        assert_true(looked == WALK_SAGAS_MAX && looked_ms > WORLD_START_MS); /* what the first page said */
        assert_int_equal(a->looked_ms, 0);
        assert_int_equal(found, i); /* the operation of the first saga; no saga has that error */
    }
}

static void has_an_edge(void *request, enum err_code *code)
{
    struct list_questions *list = container_of(request, struct list_questions, read);

    (void)code;
    list->has_edge = true;
    list->looked = 17;
    list->edge_ms = WORLD_START_MS + 1;
    list->edge = 64;
}

TEST(a_list_of_cases_says_how_many_it_looked_at)
{
    struct reply *a;

    stage_on_answer(STORE_LIST_QUESTIONS, has_an_edge);
    a = stage_expect(stage_ask(0, engine_get_escalations, &(struct engine_request){.in = {{0}}}), ERR_OK);
    assert_int_equal(a->looked_count, 17);
    assert_int_equal(a->looked_ms, WORLD_START_MS + 1);
}

static struct reply *list_sagas(struct engine_sagas in)
{
    return stage_expect(stage_ask(0, engine_list_sagas, &(struct engine_request){.in.sagas = in}), ERR_OK);
}

static size_t count_of_groups(struct slice groups)
{
    struct json_walk walk = json_walk(groups);
    struct slice group;
    int64_t count = 0, sum = 0;

    while (json_next_element(&walk, &group)) {
        assert_true(json_i64(json_member(group, "count"), &count) && count > 0);
        assert_true(json_member(json_member(group, "group"), "status").ptr != NULL);
        sum += count;
    }
    return (size_t)sum;
}

TEST(sagas_are_found_by_several_values_and_by_what_they_wait_for)
{
    static const struct engine_tag tags[] = {
        {{"team", 4}, {"blue", 4}}, {{"team", 4}, {"red", 3}}, {{"size", 4}, {"large", 5}}};
    struct {
        const char *name;
        struct engine_sagas in;
        size_t found;
    } table[] = {
        {"one status", {.status = SLICE("waiting")}, 2},
        {"two statuses", {.status = SLICE("waiting,completed")}, 3},
        {"two names", {.saga = SLICE("acts,listens")}, 3},
        {"a name among others", {.saga = SLICE("strict,acts")}, 1},
        {"one thing", {.waits_for = SLICE("signal")}, 2},
        {"two things", {.waits_for = SLICE("retry,signal")}, 2},
        {"another thing", {.waits_for = SLICE("retry")}, 0},
        {"nothing that has ended waits", {.waits_for = SLICE("signal"), .status = SLICE("completed")}, 0},
        {"a step among others", {.step = SLICE("b,a"), .status = SLICE("completed")}, 1},
        {"one value of each tag", {.tags = tags, .tag_count = 3}, 1},
        {"one value of a tag", {.tags = tags, .tag_count = 2}, 2},
        {"a business id under any name", {.business_id = SLICE("one, two")}, 1},
        {"a business id under one of two names", {.business_id = SLICE("one, two"), .saga = SLICE("acts,listens")}, 1},
        {"a business id under another name", {.business_id = SLICE("one, two"), .saga = SLICE("acts")}, 0},
        {"a business id and what it waits for", {.business_id = SLICE("one, two"), .waits_for = SLICE("signal")}, 1},
        {"another business id", {.business_id = SLICE("one")}, 0},
        {"how a business id begins", {.business_prefix = SLICE("one,")}, 1},
        {"how a business id ends", {.business_prefix = SLICE("two")}, 0},
        {"a version", {.version = SLICE("1")}, 3},
        {"a version among others, and a name", {.version = SLICE("7,1"), .saga = SLICE("listens")}, 2},
        {"another version", {.version = SLICE("2")}, 0},
        {"a version of what waits", {.version = SLICE("2"), .waits_for = SLICE("signal")}, 0},
    };
    static const char *const no_versions[] = {"0", "1,", "v1", "1.5", "-1"};
    static const char *const wrong[] = {"running,done", "", ",running", "running,"};

    (void)ended();
    for (int i = 0; i < 2; i++) {
        struct engine_request what = {
            .in.start = {.saga = SLICE("listens"),
                         .business_id = i ? SLICE("one, two") : SLICE_NONE,
                         .tags = i ? SLICE("{\"team\":\"red\",\"size\":\"large\"}") : SLICE("{\"team\":\"blue\"}")}};

        stage_until_saga(0, stage_expect(stage_ask(0, engine_start_saga, &what), ERR_OK)->saga, "waiting");
    }
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct reply *a = list_sagas(table[i].in);

        if (json_count(a->answer) != table[i].found || a->looked_ms != 0) {
            fail_msg("%s: %.*s", table[i].name, SLICE_ARG(a->answer));
        }
        table[i].in.by_status = true;
        a = list_sagas(table[i].in);
        if (count_of_groups(a->answer) != table[i].found || a->looked_ms != 0) {
            fail_msg("%s, by status: %.*s", table[i].name, SLICE_ARG(a->answer));
        }
    }
    for (size_t i = 0; i < COUNT_OF(no_versions); i++) {
        (void)stage_expect(
            stage_ask(0, engine_list_sagas, &(struct engine_request){.in.sagas.version = slice_of(no_versions[i])}),
            ERR_MALFORMED);
    }
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        (void)stage_expect(
            stage_ask(0, engine_list_sagas, &(struct engine_request){.in.sagas.status = slice_of(wrong[i])}),
            ERR_MALFORMED);
        (void)stage_expect(
            stage_ask(0, engine_list_sagas, &(struct engine_request){.in.sagas.waits_for = slice_of(wrong[i])}),
            ERR_MALFORMED);
    }
}

TEST(sagas_are_found_by_the_error_of_a_step_its_undo_or_the_whole)
{
    static const struct {
        const char *step, *error;
        size_t found;
    } table[] = {
        {NULL, "no-such-room", 2}, {"b", "no-such-room", 1}, {"b", NULL, 1}, {"a", "no-such-room", 1},
        {NULL, "abort", 1},        {"a", "abort", 0},        {"c", NULL, 0}, {NULL, "nothing", 0},
    };
    struct reply *a;
    struct saga_id id = stage_start(0, "fails", "{}");

    stage_until_saga(0, id, "compensated");
    /* An open saga was aborted, and its undo is refused. */
    stage_says("undo", OUTCOME_FAILED, "no-such-room", NULL);
    a = stage_expect(stage_ask(0, engine_open_saga, &(struct engine_request){.in.open.business_id = SLICE("o")}),
                     ERR_OK);
    id = a->saga;
    (void)stage_expect(
        stage_ask(0, engine_call,
                  &(struct engine_request){
                      .in.call = {.saga = id, .step = SLICE("a"), .tool = SLICE("act"), .wait_ms = 1000}}),
        ERR_OK);
    (void)stage_expect(stage_change(0, VERB_ABORT, id), ERR_OK);
    stage_until_saga(0, id, "escalated");
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        a = stage_expect(stage_ask(0, engine_list_sagas,
                                   &(struct engine_request){
                                       .in.sagas = {.step = table[i].step ? slice_of(table[i].step) : SLICE_NONE,
                                                    .error = table[i].error ? slice_of(table[i].error) : SLICE_NONE}}),
                         ERR_OK);
        if (json_count(a->answer) != table[i].found) {
            fail_msg("line %zu: %.*s", i, SLICE_ARG(a->answer));
        }
    }
}

/* --- operations --- */

TEST(an_operation_is_found_by_the_key_that_it_had_before)
{
    struct saga_id id;
    struct reply *a;
    int64_t number;

    stage_says("undo", OUTCOME_FAILED, "no-such-room", NULL);
    id = stage_start(0, "fails", "{}");
    stage_until_saga(0, id, "escalated");
    a = stage_expect(asks(escalations), ERR_OK);
    assert_true(json_i64(json_member(json_element(a->answer, 0), "n"), &number));
    assert_true(
        uuid_parse(json_string(json_member(json_element(a->answer, 0), "operation"), &world->arena), &key_now.uuid));
    stage_says("undo", OUTCOME_COMPLETED, NULL, "{}");
    (void)stage_expect(stage_resolve(0, (uint64_t)number, OPERATOR_RETRY, .args = SLICE("{\"n\":2}"),
                                     .note = SLICE("with another number")),
                       ERR_OK);
    stage_until_saga(0, id, "compensated");
    a = stage_expect(asks(operation), ERR_OK); /* by the key of before */
    assert_true(json_string_is(json_member(a->answer, "state"), "completed"));
    key_now.uuid.bytes[3] ^= 1;
    assert_asks(operation, ERR_NOT_FOUND);
}

TEST(an_operation_of_a_run_is_found_by_its_key)
{
    struct reply *a;

    a = stage_expect(
        stage_ask(0, engine_call,
                  &(struct engine_request){
                      .in.call = {.run = SLICE("run-1"), .step = SLICE("a"), .tool = SLICE("act"), .wait_ms = 1000}}),
        ERR_OK);
    assert_true(uuid_parse(a->call.key, &key_now.uuid));
    assert_asks(operation, ERR_OK);
}

/* --- proofs --- */

static struct reply *asks_proof(const char *name, uint32_t version)
{
    return stage_ask(0, engine_prove,
                     &(struct engine_request){.in.definitions = {.name = slice_of(name), .version = version}});
}

static bool is_played(void *context)
{
    (void)context;
    return !engine_now()->works->proof_under_way;
}

TEST(a_registered_saga_is_proved_one_at_a_time)
{
    struct reply *first = asks_proof("fails", 0), *second = asks_proof("acts", 1);
    bool good = false;

    (void)stage_expect(second, ERR_BUSY);
    (void)stage_expect(first, ERR_OK);
    assert_true(json_bool(json_member(first->answer, "ok"), &good) && good);
    assert_true(json_string_is(json_member(first->answer, "saga"), "fails"));
    assert_true(json_count(json_member(first->answer, "ends")) > 10);
    (void)stage_expect(asks_proof("acts", 1), ERR_OK);
}

TEST(what_is_not_registered_is_not_proved)
{
    (void)stage_expect(asks_proof("acts", 2), ERR_NOT_FOUND);
    (void)stage_expect(asks_proof("nothing", 0), ERR_NOT_FOUND);
    (void)stage_expect(asks_proof(OPEN_SAGA_NAME, 0), ERR_NOT_FOUND);
}

TEST(a_proof_goes_on_without_its_client_and_makes_room_for_the_next)
{
    struct reply *left = asks_proof("fails", 0);

    stage_hang_up(left);
    (void)stage_expect(asks_proof("acts", 0), ERR_BUSY);
    stage_until(is_played, NULL, "the end of the proof");
    (void)stage_expect(asks_proof("acts", 0), ERR_OK);
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

TEST(the_reason_that_stops_a_tool_is_shown_with_the_time_until_when)
{
    struct slice guard;
    struct reply *a;

    stage_until_saga(0, stage_start(0, "guarded", "{}"), "completed");
    a = stage_expect(asks(stats), ERR_OK);
    guard = json_element(json_member(a->answer, "guards"), 0);
    assert_true(json_string_is(json_member(guard, "breaker"), "closed"));
    assert_null(json_member(guard, "open_until").ptr);
    stage_on_answer(STORE_GUARD_LIST, set_guard);
    a = stage_expect(asks(stats), ERR_OK);
    guard = json_element(json_member(a->answer, "guards"), 0);
    assert_true(json_string_is(json_member(guard, "breaker"), "open"));
    assert_true(json_string_is(json_member(guard, "open_until"), "2023-11-14T22:13:25.000Z"));
    assert_true(json_string_is(json_member(guard, "paused_until"), "2023-11-14T22:13:27.000Z"));
}

static void add_newer(struct engine *engine, void *context)
{
    const struct definition_row row = {.namespace = SLICE("default"),
                                       .kind = DEFINITION_SAGA,
                                       .name = SLICE("acts"),
                                       .version = 9,
                                       .body = SLICE("{\"name\":\"acts\",\"steps\":[]}"),
                                       .created_ms = WORLD_START_MS};

    (void)context;
    definitions_add(engine->definitions, &row);
}

TEST(versions_that_are_not_known_here_yet_are_left_out)
{
    struct slice item;
    struct reply *a;
    size_t versions = 0;

    stage_tool("act")->delay_ms = 60000;
    (void)stage_start(0, "acts", "{}");
    (void)stage_start(0, "listens", "{}");
    stage_inside(0, add_newer, NULL); /* this version and those before it were registered elsewhere */
    a = stage_expect(asks(definitions), ERR_OK);
    for (struct json_walk walk = json_walk(a->answer); json_next_element(&walk, &item);) {
        if (json_string_is(json_member(item, "name"), "acts")) {
            versions += json_count(json_member(item, "versions"));
        }
    }
    assert_int_equal(versions, 2);
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
    list->shards[5].left_ms = 1000; /* nobody holds the shard */
    list->shards[5].identity = SLICE_NONE;
}

TEST(engines_are_shown_as_they_are)
{
    static const char *const states[] = {"alive", "leaving", "expired"};
    struct reply *a;

    stage_on_answer(STORE_LIST_ENGINES, change_engines);
    a = stage_expect(asks(engines), ERR_OK);
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        assert_true(json_string_is(json_member(json_element(json_member(a->answer, "items"), i), "state"), states[i]));
    }
}

/* --- nobody listens any more --- */

TEST(a_client_that_hangs_up_is_told_once_and_disturbs_nobody)
{
    static question *const questions[] = {sagas,  sagas_by_step, operations, operations_of, operation,
                                          record, saga,          stats,      definitions};
    struct reply *a;

    choose(ended());
    for (size_t i = 0; i < COUNT_OF(questions); i++) {
        a = asks(questions[i]);
        stage_hang_up(a);
        stage_hang_up(a); /* the answer is under way */
        (void)stage_expect(a, ERR_TIMEOUT);
        stage_run(100);
    }
    assert_int_equal(engine_now()->works->all.count, 0);
}

TEST(an_answer_that_grows_too_large_is_refused)
{
    struct reply *a;

    choose(ended());
    a = asks(saga);
    ((struct work *)a->request->internal)->out.bytes_max = 16;
    (void)stage_expect(a, ERR_TOO_LARGE);
}

/* --- starting --- */

TEST(a_start_that_does_not_fit_is_refused_with_each_place)
{
    struct reply *a;

    a = stage_expect(stage_ask(0, engine_start_saga, &(struct engine_request){.in.start.saga = SLICE("strict")}),
                     ERR_INVALID);
    assert_int_equal(a->faults, 1);
    /* Without an input the input is empty. */
    (void)stage_expect(stage_ask(0, engine_start_saga, &(struct engine_request){.in.start.saga = SLICE("acts")}),
                       ERR_OK);
}

TEST(a_start_whose_client_has_gone_is_there_all_the_same)
{
    struct reply *a;
    struct saga_id id;

    for (int again = 0; again < 2; again++) {
        a = stage_ask(0, engine_start_saga,
                      &(struct engine_request){.in.start = {.saga = SLICE("acts"), .business_id = SLICE("b1")}});
        stage_hang_up(a);
        (void)stage_expect(a, ERR_TIMEOUT);
        stage_run(500);
    }
    a = stage_expect(
        stage_ask(0, engine_start_saga,
                  &(struct engine_request){.in.start = {.saga = SLICE("acts"), .business_id = SLICE("b1")}}),
        ERR_OK);
    assert_false(a->created);
    id = a->saga;
    stage_until_saga(0, id, "completed");
}

TEST(a_large_way_to_ask_for_an_open_saga_is_told_apart_too)
{
    static char spaces[90000];
    struct reply *a;

    for (int i = 0; i < 3; i++) {
        memset(spaces, ' ', sizeof(spaces) - 1);
        memcpy(spaces, "{\"calls\":5", 10);
        spaces[9] = i == 2 ? '6' : '5';
        spaces[sizeof(spaces) - 2] = '}';
        a = stage_expect(
            stage_ask(0, engine_open_saga,
                      &(struct engine_request){.in.open = {.business_id = SLICE("o1"), .budget = slice_of(spaces)}}),
            i == 2 ? ERR_OTHER_INPUT : ERR_OK);
        assert_int_equal(a->created, i == 0);
    }
}

TEST_PROGRAM_EACH(setup, stage_teardown)
