/*
 * What the store says to the engines of a directed test: the store refuses a request, keeps a request until the test
 * lets it go, or calls the test when the answer comes. It is a part of the stage (stage.h), which resets it at its
 * begin and end.
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
    STORE_READ_LOGS,
    STORE_READ_RUN,
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
    STORE_HOLD_TELL_ENDED,
    STORE_CALL_COUNT
};
/* The next so many requests of this kind are not done and end with this code. */
void stage_refuse(enum store_call call, enum err_code code, uint32_t times);
/* Calls `look` inside of the node with the request and its answer, before the engine sees the answer; only for the next
 * request. */
void stage_on_answer(enum store_call call, void (*look)(void *request, enum err_code *code));
/* Keeps requests of this kind from now on: the store gets them when the test says so. */
void stage_hold(enum store_call call);
size_t stage_held(enum store_call call);  /* the number of requests that are kept now */
void *stage_oldest(enum store_call call); /* the oldest kept request: a struct of store.h; there must be one */
/* These functions take the oldest kept request. stage_let() lets the store do it, stage_fail() ends it with this code.
 * They return after its answer. */
void stage_let(enum store_call call);
void stage_fail(enum store_call call, enum err_code code);
void stage_release(enum store_call call); /* lets the store do all kept requests, and all that come */
uint32_t
stage_asked(enum store_call call); /* the number of requests since stage_store_reset(), held and refused ones too */
/* That node puts a row into the inbox of a shard. Returns the id of the row; pg_inbox_rows() counts those left. */
struct uuid stage_deliver(uint32_t node, const char *kind, uint32_t shard, struct saga_id saga, const char *payload);
extern int64_t stage_sender_ahead_ms; /* how far the clock of the row's sender is ahead */
/* Writes a turn that no engine has decided through the store of that node; its engine does not hear of it. The epoch of
 * the shard is the node's own where the turn gives none. */
struct append;
void stage_write(uint32_t node, const struct append *turn);
void stage_store_release(void); /* stage_release() for each kind */
void stage_store_reset(void);   /* forgets all orders, counts and awaited answers */

#endif
