/*
 * Cases of which no log tells: a saga whose log cannot be read, a follower that was refused. Rows of their own beside
 * the log; see cases.c.
 */
#ifndef SAGAD_RUN_SAGA_CASES_H
#define SAGAD_RUN_SAGA_CASES_H

#include "run/query/walk.h"

/* The log of this saga makes no sense, and the shard is ours, or is being loaded. Opened once, whoever had the shard
 * before. */
void case_unreadable(struct shard *shard, struct saga_id id, struct slice namespace, const struct stored_turn *turns,
                     size_t count);
void case_readable(struct engine *engine, struct saga_id id); /* it makes sense again: the case closes itself */
void cases_go_on(struct shard *shard); /* the shard was loaded: what waits for a number is opened */
void cases_leave(struct shard *shard); /* the shard is not ours any more */
struct cases *cases_new(void);
void cases_free(struct engine *engine); /* the store has closed */

struct refused_follower {
    struct saga_id parent; /* the completed saga */
    struct slice namespace, name, business_id /* SLICE_NONE: none */, input /* JSON */;
    struct uuid input_id;  /* the row in the inbox, removed in the same transaction */
    const struct err *err; /* why */
};
/* Copies what it is given. `opened` comes once, later; without ERR_OK the row is still in the
 * inbox, and comes again. */
void case_follower(struct shard *shard, const struct refused_follower *refused,
                   void (*opened)(void *context, enum err_code code), void *context);

struct late_cost { /* what a person said of an operation after the end of its saga */
    struct saga_id saga;
    struct slice namespace, tool, actor, note;
    struct op_key key;
    int64_t micros;
    struct slice act; /* act_text(); SLICE_NONE: none */
};
/* A row that is resolved as it is written: who said it, when and why. Copies what it is given; `written` comes once,
 * later. */
void case_cost(struct shard *shard, const struct late_cost *cost, void (*written)(void *context, enum err_code code),
               void *context);

struct late_rerun { /* an ended saga was started once more */
    struct saga_id saga, rerun;
    struct slice namespace, business_id /* the name of the new saga */, actor, note;
    struct slice act; /* act_text(); SLICE_NONE: none */
};
/* A row like that of a cost. */
void case_rerun(struct shard *shard, const struct late_rerun *rerun, void (*written)(void *context, enum err_code code),
                void *context);

/* Is it one of these? Then a person's answer, work->mail.input.verdict, is carried out by the owner of its shard with
 * this. */
bool question_is_case(const struct question_row *row);
void case_resolve(struct work *work, const struct question_row *row);

#endif
