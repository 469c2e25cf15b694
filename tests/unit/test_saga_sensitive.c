/* What is masked in views of a saga, and that all else stays byte for byte. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "core/saga/sensitive.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

#define CARD "4111-1111-1111"
#define TOOLS                                                                                                          \
    "'tools':[{'name':'charge','builtin':{'do':'echo'},'effect':'keyed','key':{'window':'1h'},'terminal':true,"        \
    "'sensitive':['/cards/*/n','/pin','/result/token']},"                                                              \
    "{'name':'plain','builtin':{'do':'echo'},'effect':'keyed','key':{'window':'1h'},'terminal':true}]"
#define OF(saga) "{" TOOLS ",'sagas':[{'name':'s'," saga "}]}"
#define CHARGE "'steps':[{'id':'a','call':'charge','with':'${ .input }'}]"

static struct trial trial;
static struct buffer out;

static void open_with(const char *document, const char *input)
{
    trial_open(&trial, document);
    buffer_init(&out, 1 << 20);
    trial_start(&trial, input);
}

static void close_trial(void)
{
    buffer_fini(&out);
    trial_close_sound(&trial);
}

/* The view as it is shown, with ' for ". */
static const char *shown(const char *view)
{
    struct slice json = trial_json(&trial.arena, view);
    struct err err;

    buffer_reset(&out);
    saga_mask(&trial.saga, json, &out);
    assert_int_equal(json_check(buffer_slice(&out), &json_limits_default, &err), ERR_OK);
    for (size_t i = 0; i < out.len; i++) {
        out.ptr[i] = out.ptr[i] == '"' ? '\'' : out.ptr[i];
    }
    return buffer_c(&out);
}

static void is_shown(const char *view, const char *wanted)
{
    assert_string_equal(shown(view), wanted);
}

static void stays(const char *view)
{
    is_shown(view, view);
}

TEST(what_is_declared_is_masked_at_its_place_and_all_else_stays)
{
    open_with(OF(CHARGE), "{'pin':7,'cards':[{'n':'" CARD "','of':'ada'}]}");
    is_shown("{'args':{'pin':7,'n':1.0e0,'cards':[{'n':1,'of':'ada'},{'n':null}]},'id':'x'}",
             "{'args':{'pin':'***','n':1.0e0,'cards':[{'n':'***','of':'ada'},{'n':null}]},'id':'x'}");
    is_shown("{ 'result' : {'token': {'a':[1]}, 'pin':7} }", "{ 'result' : {'token': '***', 'pin':7} }");
    is_shown("[{'steps':[{'compensation':{'result':{'token':1}}}]}]",
             "[{'steps':[{'compensation':{'result':{'token':'***'}}}]}]");
    stays("{'args':{'cards':{'n':1},'token':2},'pin':7,'token':3}");
    close_trial();
}

TEST(a_value_is_masked_wherever_else_it_turns_up)
{
    open_with(OF(CHARGE), "{'pin':123456,'cards':[{'n':'" CARD "'},{'n':'a\\u00e9\\\\b\\nc'}]}");
    is_shown("{'show':{'text':'pay with " CARD " now'}}", "{'show':{'text':'pay with *** now'}}");
    is_shown("{'detail':'no card " CARD "," CARD "'}", "{'detail':'no card ***,***'}");
    is_shown("{'detail':'string 4111-11... and number'}", "{'detail':'string ***... and number'}");
    is_shown("{'output':{'sum':1234567,'" CARD "':[true]}}", "{'output':{'sum':'***','***':[true]}}");
    is_shown("{'tags':{'t':'xa\\u00e9\\\\b\\ncx'}}", "{'tags':{'t':'x***x'}}");
    stays("{'cost':123456,'n':1234567,'detail':'4111 and 4111-1 ... are others'}");
    close_trial();
}

/* Whoever chooses both can make them so alike that looking would take minutes. */
TEST(a_text_that_nobody_has_looked_at_to_its_end_is_masked_whole)
{
    static char alike[20001];
    char *input, *view;

    memset(alike, 'a', sizeof(alike) - 1);
    trial_open(&trial, OF(CHARGE));
    buffer_init(&out, 1 << 20);
    input = arena_text(&trial.arena, arena_printf(&trial.arena, "{'cards':[{'n':'%sc'}]}", alike));
    view = arena_text(&trial.arena, arena_printf(&trial.arena, "{'detail':'%sb','note':'short','seq':1}", alike));
    trial_start(&trial, input);
    is_shown(view, "{'detail':'***','note':'***','seq':1}");
    is_shown("{'detail':'short','seq':1}", "{'detail':'short','seq':1}"); /* another view begins anew */
    close_trial();
}

TEST(words_of_our_own_stay_whatever_a_value_says)
{
    open_with(OF(CHARGE), "{'cards':[{'n':'completed'},{'n':'charge'}]}");
    stays("{'status':'completed','tool':'charge','type':'step.completed','error':null}");
    is_shown("{'detail':'completed','error':{'code':'charge','detail':'no charge'}}",
             "{'detail':'***','error':{'code':'charge','detail':'no ***'}}");
    close_trial();
}

TEST(what_a_receiver_said_is_masked_whole_where_its_result_is_sensitive)
{
    open_with(OF(CHARGE), "{}");
    is_shown("{'error':{'code':'http-500','status':500,'body':{'any':1}}}",
             "{'error':{'code':'http-500','status':500,'body':'***'}}");
    is_shown("{'error':{'headers':{'x-any':'1'},'status':500}}", "{'error':{'headers':'***','status':500}}");
    is_shown("{'fingerprint':'00ff'}", "{'fingerprint':'***'}");
    close_trial();
    open_with(OF("'sensitive':['/pin'],'steps':[{'id':'a','call':'plain'}]"), "{'pin':'secret-word'}");
    is_shown("{'error':{'body':{'any':'a secret-word'}}}", "{'error':{'body':{'any':'a ***'}}}");
    is_shown("{'error':{'headers':{'x-any':'a secret-word'}}}", "{'error':{'headers':{'x-any':'a ***'}}}");
    is_shown("{'input':{'pin':'secret-word'}}", "{'input':{'pin':'***'}}");
    close_trial();
}

TEST(a_whole_result_may_be_sensitive)
{
    open_with(OF("'sensitive':['/result'],'steps':[{'id':'a','call':'plain'}]"), "{}");
    is_shown("{'output':[1,2],'result':null,'args':{'result':1}}",
             "{'output':'***','result':null,'args':{'result':1}}");
    close_trial();
}

TEST(a_saga_that_declares_nothing_is_not_touched)
{
    open_with(OF("'steps':[{'id':'a','call':'plain'}]"), "{'pin':'secret-word'}");
    assert_false(saga_has_sensitive(&trial.saga));
    buffer_put_text(&out, "{'args':{'pin':1}}");
    saga_mask_in(&trial.saga, &out, 0);
    assert_string_equal(buffer_c(&out), "{'args':{'pin':1}}");
    close_trial();
}

/* Settles step a with this sentence, and gives the sentence that its record has. */
static const char *recorded(const char *detail, const char *answer)
{
    struct outcome outcome = {.kind = OUTCOME_FAILED, .error = SLICE("refused"), .detail = slice_of(detail)};

    outcome.answer = answer ? trial_json(&trial.arena, answer) : SLICE_NONE;
    assert_int_equal(trial_input(&trial, trial_outcome(&trial, SAGA_INPUT_SETTLED, 0, DIRECTION_DO, 1, outcome)),
                     ERR_OK);
    for (size_t i = 0; i < trial.records.count; i++) {
        if (trial.records.items[i].detail.ptr) {
            return arena_text(&trial.arena, trial.records.items[i].detail);
        }
    }
    return "";
}

TEST(no_sentence_in_the_log_has_a_sensitive_value)
{
    open_with(OF(CHARGE), "{'cards':[{'n':'" CARD "'}]}");
    assert_string_equal(recorded("the card " CARD " is void", NULL), "the card *** is void");
    close_trial();
    open_with(OF(CHARGE), "{'cards':[{'n':'" CARD "'}]}");
    assert_non_null(strstr(recorded("any token", "{'status':402,'body':{'token':1}}"), "is not kept here"));
    close_trial();
    open_with(OF("'steps':[{'id':'a','call':'plain'}]"), "{}");
    assert_string_equal(recorded("the card " CARD " is void", "{'status':402}"), "the card " CARD " is void");
    close_trial();
}

TEST_PROGRAM(NULL, NULL)
