/*
 * Looking at sagas as they stand, newest first, or at just one: from memory where this engine has it, from its log
 * otherwise. For what the tables do not know: steps, errors, operations.
 */
#ifndef SAGAD_RUN_QUERY_WALK_H
#define SAGAD_RUN_QUERY_WALK_H

#include "run/request/work.h"

#define WALK_SAGAS_MAX 2000 /* looked at for one request: each is a read and a fold */

struct walk {
    struct work *work;
    struct list_sagas page; /* in: the filter of the table, and `before` */
    void *context;          /* in: the caller's */
    /* False: no further; this saga counts as not visited. `row` is NULL in a walk over one saga. */
    bool (*visit)(struct walk *walk, const struct saga_row *row, const struct saga *saga);
    void (*done)(struct walk *walk, bool more); /* ends the work; more: there may be sagas not visited */
    struct saga_id last;                        /* out: the last one that is over with; nil: none yet */

    /* the walk's own */
    size_t at, looked_at;
    struct uuid begin; /* `before` as it was */
    struct count_looked looked;
    bool one;
    struct arena arena; /* the arena of the saga being looked at */
    struct read_saga read;
    struct deferred deferred;
};

struct walk *walk_new(struct work *work); /* lies in the work's arena */
void walk_all(struct walk *walk);         /* a log that does not make sense is left out, with a line in our own */
void walk_one(struct walk *walk, struct saga_id id); /* where there is none, `done` comes without a visit */

/* The saga if it stands in memory, complete, and belongs to this namespace; else NULL. */
const struct saga *walk_live(struct engine *engine, struct saga_id id, struct slice namespace);

/* What more there is, for the one who asked, if still there. */
void work_next_cursor(struct work *work, struct slice cursor);
void work_bad_cursor(struct work *work);
/* A list was not looked through: so many were looked at, back to there. */
void work_looked(struct work *work, int64_t back_to_ms, int64_t count);

/* query/questions.c. Ends the work with one escalation or approval as the API shows it. */
/* The case was answered under the Idempotency-Key of this work before: that answer is shown, and the work is over. */
bool work_answered_before(struct work *work, const struct question_row *row);
void work_show_question(struct work *work, const struct question_row *row);
/* Reads one by its number; `done` gets the work as its context. */
void work_read_question(struct work *work, enum question_kind kind, uint64_t number,
                        void (*done)(struct store_read *read));
/* Ends the work with it as it stands. */
void work_answer_question(struct work *work, enum question_kind kind, uint64_t number);
/* The one that was asked for by its number, when it has been read. NULL: the work has been ended. */
const struct question_row *work_question(struct work *work);
void work_no_question(struct work *work, enum question_kind kind); /* ends it: none has this number */
/* As the turn being told of has left it; borrows from that turn. False: the turn did not touch it. */
bool question_of_turn(const struct live *live, enum question_kind kind, uint64_t number, struct question_row *row);
/* question_filter.c: which ones, how many, in groups or not, and where the page before ended. False: the work has been
 * ended, since what is wanted cannot be read. */
bool work_read_questions(struct work *work, const struct engine_questions *wanted, struct list_questions *list);

#endif
