/*
 * What the store says to the engines of a directed test: a request is refused, is kept until the test lets it go, or
 * the test is there when its answer comes. A part of the stage (stage.h), which resets it where it begins and ends.
 */
#ifndef SAGAD_TESTS_SIM_STAGE_STORE_H
#define SAGAD_TESTS_SIM_STAGE_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "base/id.h"

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
    STORE_COUNT_LOOKED,
    STORE_LIST_QUESTIONS,
    STORE_LIST_ENGINES,
    STORE_COUNT_VERSIONS,
    STORE_COUNT_SAGAS,
    STORE_LOAD_DEFINITIONS,
    STORE_PUT_DEFINITIONS,
    STORE_GUARD_LIST,
    STORE_GUARD_ASK,
    STORE_GUARD_TELL,
    STORE_GUARD_COUNT,
    STORE_SERIES_ADD,
    STORE_CALL_COUNT
};
/* The next so many of these are not done and end with this code. */
void stage_refuse(enum store_call call, enum err_code code, uint32_t times);
/* Inside of the node, with what was asked for and its answer, before the engine gets to see it; only the next one. */
void stage_on_answer(enum store_call call, void (*look)(void *request, enum err_code *code));
/* From now on requests of this kind are kept: the store gets none of them before the test says so. */
void stage_hold(enum store_call call);
size_t stage_held(enum store_call call);  /* that are kept now */
void *stage_oldest(enum store_call call); /* the oldest of them: a struct of store.h; there has to be one */
/* These take the oldest: it is done, as it always would be, or it ends with this code. They return after its answer. */
void stage_let(enum store_call call);
void stage_fail(enum store_call call, enum err_code code);
void stage_release(enum store_call call);   /* those that are kept are done, and those that come */
uint32_t stage_asked(enum store_call call); /* how often, since stage_store_reset(), held and refused ones too */
/* A row comes into the inbox of a shard by the hand of that node. Returns its id; pg_inbox_rows() counts those left. */
struct uuid stage_deliver(uint32_t node, const char *kind, uint32_t shard, struct saga_id saga, const char *payload);
extern int64_t stage_sender_ahead_ms; /* so far the clock of whoever puts such a row is ahead */
/* A turn that nobody here has decided is written through the store of that node; its engine does not hear of it. The
 * epoch of the shard is the node's own where the turn says none. */
struct append;
void stage_write(uint32_t node, const struct append *turn);
void stage_store_release(void); /* of each kind */
void stage_store_reset(void);   /* nothing is ordered, nothing was asked, no answer is awaited */

#endif
