/*
 * What is due at an instant that a table knows: parked sagas, ended ones to be removed, schedules. One timer waits for
 * the first of them. Then a batch is read, its rows are begun in order, and when all have ended the next is looked for.
 *
 *     due_at(instant) -> take() reads a batch -> due_rows() -> begin() each row -> due_ended() each -> over()
 *
 * Whoever has such a table embeds a struct due and says in a struct due_kind what is done at each of these places.
 */
#ifndef SAGAD_RUN_SAGA_DUE_H
#define SAGAD_RUN_SAGA_DUE_H

#include "run/engine_state.h"

struct due {
    struct list_link link; /* in the dues of the room */
    const struct due_kind *kind;
    struct engine *engine;
    struct timer timer;
    int64_t next_ms;       /* when the next one is due; INT64_MAX: nothing is, as far as is known */
    int64_t pause_boot_ms; /* no batch begins before */
    struct arena arena;    /* the arena of the batch; emptied after over() */
    struct deferred ended;
    size_t count, at, under_way; /* rows of the batch; those begun, and of these those that have not ended */
    bool busy;                   /* a batch is being read, or carried out */
    bool stopped, beginning;
};

struct due_kind {
    size_t under_way_max; /* rows at work at once */
    /* Asks the store for what is due; due_rows() follows, with 0 where there was no answer. */
    void (*take)(struct due *due, uint64_t shards, int64_t now_ms);
    /* One row. Where it goes on beyond this call, due_begun() was called in it, and due_ended() follows. */
    void (*begin)(struct due *due, size_t row);
    void (*over)(struct due *due); /* says with due_at() when to look again; not called any more once stopped */
};

void due_init(struct due *due, struct engine *engine, const struct due_kind *kind);
void due_fini(struct due *due);
void due_at(struct due *due, int64_t at_ms); /* something is due then; 0: look now; INT64_MAX: nothing is */
void due_rows(struct due *due, size_t count);
void due_begun(struct due *due);
void due_ended(struct due *due);

void dues_look(struct engine *engine); /* a shard was gained: what of it is due, and when comes the next? */
void dues_stop(struct engine *engine); /* draining */

#endif
