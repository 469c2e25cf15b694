/*
 * What the store says to the engines of a directed test: a request is refused, or the test is there when its answer
 * comes. A part of the stage (stage.h), which resets it where it begins and ends.
 */
#ifndef SAGAD_TESTS_SIM_STAGE_STORE_H
#define SAGAD_TESTS_SIM_STAGE_STORE_H

#include <stdint.h>

#include "base/errors.h"

enum store_call {
    STORE_APPEND,
    STORE_PARK,
    STORE_FORGET,
    STORE_LOAD_SHARD,
    STORE_INBOX_PUT,
    STORE_ANSWER_PUT,
    STORE_DUE_TAKE,
    STORE_LOCK_TAKE,
    STORE_READ_SAGA,
    STORE_FIND_SAGA,
    STORE_FIND_OPERATION,
    STORE_FIND_INPUT,
    STORE_LIST_SAGAS,
    STORE_LIST_QUESTIONS,
    STORE_LIST_ENGINES,
    STORE_COUNT_VERSIONS,
    STORE_COUNT_SAGAS,
    STORE_LOAD_DEFINITIONS,
    STORE_PUT_DEFINITIONS,
    STORE_GUARD_LIST,
    STORE_CALL_COUNT
};
/* The next so many of these are not done and end with this code. */
void stage_refuse(enum store_call call, enum err_code code, uint32_t times);
/* Inside of the node, with what was asked for and its answer, before the engine gets to see it; only the next one. */
void stage_on_answer(enum store_call call, void (*look)(void *request, enum err_code *code));
uint32_t stage_asked(enum store_call call); /* how often, since stage_store_reset() */
void stage_store_reset(void);               /* nothing is ordered, nothing was asked, no answer is awaited */

#endif
