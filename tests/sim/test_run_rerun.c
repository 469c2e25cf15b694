/*
 * Reruns of an ended saga. Each request makes one saga, however often it comes and whichever engine is faster. There is
 * no rerun while an effect of the saga stands, or while another rerun may repeat it.
 */
#include "tests/sim/stage.h"

#include "base/json.h"

static const char document[] =
    "{'tools':[{'name':'pay','builtin':{'tool':'pay'},'effect':'once','terminal':true},"
    "{'name':'book','builtin':{'tool':'book'},'effect':'keyed','key':{'window':'1h'},'compensate':{'tool':'undo'}},"
    "{'name':'undo','builtin':{'tool':'undo'},'effect':'idempotent'}],"
    "'sagas':[{'name':'pays','tags':{'team':'a'},'steps':[{'id':'a','call':'pay','with':{}}]},"
    "{'name':'books','steps':[{'id':'a','call':'book','with':{}},{'id':'b','signal':{'name':'go'}}]}]}";

static struct saga_id start(const char *saga, const char *business_id)
{
    struct reply *reply = stage_ask(0, engine_start_saga,
                                    &(struct engine_request){.in.start = {.saga = slice_of(saga),
                                                                          .business_id = slice_of(business_id),
                                                                          .key = slice_of(business_id),
                                                                          .tags = stage_json("{'customer':'c-1'}"),
                                                                          .input = stage_json("{'n':7}")}});

    return stage_expect(reply, ERR_OK)->saga;
}

static struct reply *ask(uint32_t node, struct saga_id of, const char *key, const char *standing)
{
    return stage_ask(node, engine_change,
                     &(struct engine_request){
                         .in.change = {.verb = VERB_RERUN,
                                       .saga = of,
                                       .input.rerun = {.id = slice_of(key),
                                                       .accept_standing = standing ? stage_json(standing) : SLICE_NONE,
                                                       .note = SLICE("the bank is back")}}});
}

static struct saga_id id_of(const struct reply *reply)
{
    struct saga_id id = {0};

    assert_true(uuid_parse(json_string(json_member(reply->answer, "id"), &world->arena), &id.uuid));
    return id;
}

static void refuse_payment(struct saga_id id)
{
    stage_answer_first(OUTCOME_FAILED, "http-402", NULL);
    stage_until_saga(0, id, "compensated");
}

TEST(the_new_saga_has_the_same_input_a_number_and_links)
{
    struct saga_id of = start("pays", "o-1"), again;
    struct reply *reply;
    char text[UUID_TEXT_BYTES];

    refuse_payment(of);
    reply = stage_expect(ask(0, of, "k1", NULL), ERR_OK);
    assert_true(reply->created);
    again = id_of(reply);
    assert_true(json_string_is(json_member(reply->answer, "business_id"), "o-1~2"));
    assert_true(slice_is(json_member(reply->answer, "input"), "{\"n\":7}"));
    uuid_text(&of.uuid, text);
    struct slice tags = json_member(reply->answer, "tags");

    assert_true(json_string_is(json_member(tags, "rerun_of"), text));
    assert_true(json_string_is(json_member(tags, "customer"), "c-1"));
    assert_true(json_string_is(json_member(tags, "team"), "a"));
    /* The ended saga shows who wanted the rerun, and why. */
    struct reply *cases = stage_expect(
        stage_ask(0, engine_get_escalations, &(struct engine_request){.in.escalations = {.limit = 10}}), ERR_OK);
    struct slice row = json_element(cases->answer, 0);

    assert_true(json_string_is(json_member(row, "saga"), text));
    assert_true(json_string_is(json_member(row, "reason"), "rerun"));
    assert_true(json_string_is(json_member(row, "note"), "the bank is back"));
    uuid_text(&again.uuid, text);
    assert_true(json_string_is(json_member(json_member(row, "evidence"), "saga"), text));
    stage_answer_all();
    stage_until_saga(0, again, "completed");
}

TEST(a_repeat_is_the_same_saga_and_another_waits_for_how_it_ends)
{
    struct saga_id of = start("pays", "o-1"), second, third;

    refuse_payment(of);
    second = id_of(stage_expect(ask(0, of, "k1", NULL), ERR_OK));
    struct reply *repeat = stage_expect(ask(1, of, "k1", NULL), ERR_OK);

    assert_false(repeat->created);
    assert_memory_equal(&(struct saga_id[]){id_of(repeat)}[0], &second, sizeof(second));
    (void)stage_expect(ask(1, of, "k2", NULL), ERR_CONFLICT);    /* the first rerun may still pay */
    (void)stage_expect(ask(1, of, "k2", "['a']"), ERR_CONFLICT); /* whatever standing effects are accepted */
    refuse_payment(second);
    third = id_of(stage_expect(ask(1, of, "k2", NULL), ERR_OK));
    stage_answer_all();
    stage_until_saga(0, third, "completed");
    assert_true(json_string_is(json_member(stage_saga(0, third), "business_id"), "o-1~3"));
    (void)stage_expect(ask(0, of, "k3", NULL), ERR_CONFLICT);     /* it has paid */
    (void)stage_expect(ask(0, second, "k4", NULL), ERR_CONFLICT); /* whichever of them is run again */
}

TEST(one_of_two_reruns_at_once_is_refused)
{
    struct saga_id of = start("pays", "o-1");
    struct reply *one, *other;

    refuse_payment(of);
    one = ask(0, of, "k1", NULL);
    other = ask(1, of, "k2", NULL);
    (void)stage_wait(one);
    (void)stage_wait(other);
    assert_true((one->code == ERR_OK && other->code == ERR_CONFLICT) ||
                (one->code == ERR_CONFLICT && other->code == ERR_OK));
    stage_answer_all();
    stage_settle();
    assert_int_equal(stage_calls("pay"), 2); /* one call of the first saga, and one of a rerun */
}

TEST(a_standing_effect_is_accepted_by_name)
{
    struct saga_id of = start("pays", "o-1");
    struct reply *refused;

    stage_complete(stage_until_call("pay"), "{'id':1}");
    stage_until_saga(0, of, "completed");
    refused = stage_expect(ask(0, of, "k1", NULL), ERR_CONFLICT);
    assert_non_null(strstr(refused->err.message, "may stand: a"));
    (void)stage_expect(ask(0, of, "k1", "['b']"), ERR_CONFLICT);
    assert_true(stage_expect(ask(0, of, "k1", "['b','a']"), ERR_OK)->created);
    stage_answer_all();
}

/* The rerun was given up with a standing effect. Another rerun of the first saga would repeat that effect. */
TEST(an_effect_that_a_rerun_left_standing_is_accepted_by_name)
{
    struct saga_id of = start("pays", "o-1"), second;
    struct reply *refused;
    int64_t number = 0;

    refuse_payment(of);
    second = id_of(stage_expect(ask(0, of, "k1", NULL), ERR_OK));
    stage_answer_first(OUTCOME_UNKNOWN, "timeout", NULL);
    stage_until_saga(0, second, "escalated");
    assert_true(json_i64(json_member(stage_saga(0, second), "escalation"), &number));
    (void)stage_expect(stage_resolve(0, (uint64_t)number, OPERATOR_ABANDON, .note = SLICE("let it be")), ERR_OK);
    stage_until_saga(0, second, "abandoned");
    refused = stage_expect(ask(1, of, "k2", NULL), ERR_CONFLICT);
    assert_non_null(strstr(refused->err.message, "its rerun o-1~2 did stands, or may stand: a"));
    assert_true(stage_expect(ask(1, of, "k2", "['a']"), ERR_OK)->created);
    stage_answer_all();
}

TEST(what_cannot_be_is_refused)
{
    struct saga_id going_on = start("books", "o-1"), of = start("pays", "o-2"), opened = stage_open(0, "open");

    (void)start("pays", "o-2~2"); /* this saga belongs to somebody else */
    stage_answer(stage_until_call("pay"), (struct outcome){.kind = OUTCOME_FAILED, .error = SLICE("http-402")}, NULL);
    stage_until_saga(0, of, "compensated");
    (void)stage_expect(ask(0, going_on, "k1", NULL), ERR_CONFLICT);
    (void)stage_expect(ask(1, of, "k1", NULL), ERR_TAKEN);
    (void)stage_expect(ask(0, of, NULL, NULL), ERR_INVALID);
    (void)stage_expect(ask(0, opened, "k1", NULL), ERR_CONFLICT);
    stage_answer_all();
}

STAGE_PROGRAM(.node_count = 2, .definitions = document)
