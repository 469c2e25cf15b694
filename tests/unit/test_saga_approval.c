/* Who may approve: people with the role, but not the person who started the saga. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

static struct trial trial;

TEST(only_the_named_roles_and_higher_ones_may_decide)
{
    static const struct {
        const char *roles;
        enum role role;
        enum err_code code;
    } cases[] = {
        {"['operator']", ROLE_AGENT, ERR_FORBIDDEN}, {"['operator']", ROLE_OPERATOR, ERR_OK},
        {"['operator']", ROLE_ADMIN, ERR_OK},        {"['agent']", ROLE_READER, ERR_FORBIDDEN},
        {"['agent']", ROLE_AGENT, ERR_OK},           {"['admin']", ROLE_OPERATOR, ERR_FORBIDDEN},
        {"['admin']", ROLE_ADMIN, ERR_OK},           {"['admin','agent']", ROLE_AGENT, ERR_OK},
        {"['operator']", ROLE_NONE, ERR_FORBIDDEN},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = {0};

        arena_init(&arena, 4096);
        trial_begin(
            &trial,
            arena_text(&arena,
                       arena_printf(&arena, "%s%s%s",
                                    "{'tools':[],'sagas':[{'name':'trial','steps':[{'id':'ok','approve':{'roles':",
                                    cases[i].roles, "}}]}]}")),
            "{}");
        assert_int_equal(trial_decide(&trial, "ok", true, cases[i].role), cases[i].code);
        trial_close_sound(&trial);
        arena_fini(&arena);
    }
}

/* The person who started the saga may refuse, but not approve ("four eyes"). */
TEST(the_starter_of_a_saga_may_not_approve_it)
{
    static const struct {
        const char *started_by;
        enum role role;
        bool approve;
        enum err_code code;
    } cases[] = {
        {"ann", ROLE_OPERATOR, true, ERR_FORBIDDEN},
        {"ann", ROLE_ADMIN, true, ERR_FORBIDDEN},
        {"ann", ROLE_OPERATOR, false, ERR_OK},
        {"bob", ROLE_AGENT, true, ERR_FORBIDDEN},
        {"bob", ROLE_OPERATOR, true, ERR_OK},
        {NULL, ROLE_OPERATOR, true, ERR_FORBIDDEN}, /* nobody knows who started it, so it may have been ann */
        {NULL, ROLE_OPERATOR, false, ERR_OK},
        {NULL, ROLE_ADMIN, true, ERR_OK},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct slice waits_for;

        trial_begin(&trial, TRIAL_SAGA("{'id':'ok','approve':{'not_by':'starter'}}"), "{}");
        waits_for = json_at(trial_view(&trial, &trial.arena), SLICE("/steps/0/waits_for"));
        assert_true(slice_equal(waits_for, trial_json(&trial.arena, "{'kind':'approve','approval':64,'show':null,"
                                                                    "'roles':['operator'],'not_by':'starter'}")));
        assert_int_equal(
            trial_input(&trial, (struct saga_input){.type = SAGA_INPUT_DECISION,
                                                    .decision = {.approval = 64,
                                                                 .approve = cases[i].approve,
                                                                 .role = cases[i].role,
                                                                 .actor = SLICE("ann"),
                                                                 .started_by = cases[i].started_by
                                                                                   ? slice_of(cases[i].started_by)
                                                                                   : SLICE_NONE}}),
            cases[i].code);
        assert_int_equal(trial.saga.steps[0].forward.state, cases[i].code != ERR_OK ? OP_WAITING
                                                            : cases[i].approve      ? OP_COMPLETED
                                                                                    : OP_FAILED);
        trial_close_sound(&trial);
    }
}

TEST_PROGRAM_CLOSING(trial, trial_close_sound)
