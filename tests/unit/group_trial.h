/* Helpers of the tests of groups: small sagas with elements and children, and functions that run them to their end. */
#ifndef SAGAD_TESTS_GROUP_TRIAL_H
#define SAGAD_TESTS_GROUP_TRIAL_H

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

#define SAGAS(root, children)                                                                                          \
    "{'tools':[" TRIAL_TOOLS "],'sagas':[{'name':'trial',"                                                             \
    "'steps':[" root "]}," children "]}"
#define ROOT(members, root, children)                                                                                  \
    "{'tools':[" TRIAL_TOOLS "],'sagas':[{'name':'trial'," members ",'steps':[" root "]}," children "]}"

static inline struct slice result_of(const struct trial *trial, const char *step)
{
    return trial->saga.steps[trial_step(trial, step)].forward.result;
}

static inline struct slice args_of(const struct trial *trial, const char *step)
{
    return trial->saga.steps[trial_step(trial, step)].forward.args;
}

static inline void same(struct slice text, const char *expected)
{
    char copy[4096];

    assert_true(text.ptr != NULL && text.len < sizeof(copy));
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    assert_string_equal(copy, expected);
}

/* Gives the first call that the saga wants in this direction, or STEP_NONE. */
static inline uint32_t wanted_call(struct trial *trial, enum direction direction)
{
    struct wants wants;

    saga_wants(&trial->saga, &trial->arena, &wants);
    for (size_t i = 0; i < wants.count; i++) {
        if (wants.items[i].type == WANT_CALL && wants.items[i].direction == direction) {
            return wants.items[i].step;
        }
    }
    return STEP_NONE;
}

/* Lets all wanted calls succeed, in the order of steps, until there are none. Gives the names of the calls in order. */
static inline const char *run_all(struct trial *trial, enum direction direction)
{
    struct slice order = SLICE("");
    uint32_t step;

    while ((step = wanted_call(trial, direction)) != STEP_NONE) {
        const char *id = arena_text(&trial->arena, trial->saga.definition->steps[step].id);

        order = arena_printf(&trial->arena, "%.*s%s%s", SLICE_ARG(order), order.len ? " " : "", id);
        if (direction == DIRECTION_DO) {
            trial_settle(trial, id, OUTCOME_COMPLETED);
        } else {
            trial_settle_undo(trial, id, OUTCOME_COMPLETED);
        }
    }
    return arena_text(&trial->arena, order);
}

static inline void is(const struct trial *trial, enum saga_status status)
{
    assert_string_equal(saga_status_name(saga_status(&trial->saga)), saga_status_name(status));
}

#define EACH "{'id':'book','call':'keyed','for_each':'${ .input.list }','with':{'n':'${ .item.n }'}}"
#define EACH_AND_AFTER                                                                                                 \
    "{'id':'a','call':'keyed'}," EACH ",{'id':'z','call':'keyed','with':{'all':'${ .steps.book.result }'}}"
#define LIST "{'list':[{'n':7},{'n':8},{'n':9}]}"

#define TRIP                                                                                                           \
    "{'name':'trip','output':{'hotel':'${ .steps.hotel.result.id }','who':'${ .saga.name }'},'steps':["                \
    "{'id':'flight','call':'keyed','with':{'to':'${ .input.to }'}},"                                                   \
    "{'id':'hotel','call':'keyed','with':{'of':'${ .steps.flight.result.id }'}}]}"
#define WITH_TRIP(members)                                                                                             \
    "{'id':'a','call':'keyed'},{'id':'trip','saga':'trip','with':{'to':'${ .input.to }'}" members "},"                 \
    "{'id':'z','call':'keyed','with':{'trip':'${ .steps.trip.status }'}}"

#define PAIR(name) "{'name':'" name "','steps':[{'id':'x','call':'keyed'},{'id':'y','call':'keyed'}]}"

#endif
