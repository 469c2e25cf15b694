/*
 * The transactions of one connection that wait to be sent, and the rules by which each of them ends, exactly once, as
 * db.h promises. Nothing here knows who carries them: db.c has libpq do it, the simulator its own network, under the
 * same rules.
 */
#ifndef SAGAD_IO_POSTGRES_QUEUE_H
#define SAGAD_IO_POSTGRES_QUEUE_H

#include "io/postgres/db.h"

struct db_queue {
    struct list waiting; /* transactions */
    size_t pending;      /* submitted and not done: those that wait and those that are sent */
    struct err lost_err; /* why there is no connection, for those that are refused meanwhile */
};

void db_queue_init(struct db_queue *queue); /* expects a zeroed queue */
void db_queue_submit(struct db_queue *queue, struct db_transaction *transaction);
/* Refuses those that wait now: one that comes back at once is for the next turn. */
void db_queue_refuse_waiting(struct db_queue *queue);

/* The ends of one that was sent and is in no list any more; each calls done(). */
void db_queue_end(struct db_queue *queue, struct db_transaction *transaction, enum db_outcome outcome);
/* The answer will not come. */
void db_queue_lose(struct db_queue *queue, struct db_transaction *transaction, const struct err *reason);
/* The COMMIT came back with the warning. */
void db_queue_unconfirmed(struct db_queue *queue, struct db_transaction *transaction);

/* How long until the next attempt to connect. Engines that lost one server must not all come back in one moment. */
int64_t db_retry_delay_ms(int attempts_failed, uint32_t random);

const char **db_setup_copy(struct arena *arena, const char *const *setup); /* NULL is an empty one */

#endif
