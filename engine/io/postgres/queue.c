/* The transactions that wait for one connection, and how each of them ends: see postgres/queue.h. */
#include "io/postgres/queue.h"

#include <string.h>

enum { RETRY_MS_MIN = 100, RETRY_MS_MAX = 1000 };

void db_queue_init(struct db_queue *queue)
{
    list_init(&queue->waiting);
}

void db_queue_submit(struct db_queue *queue, struct db_transaction *transaction)
{
    CHECK(transaction->done && transaction->count > 0);
    transaction->outcome = DB_REFUSED;
    transaction->sqlstate[0] = '\0';
    transaction->failed_query = 0;
    memset(&transaction->err, 0, sizeof(transaction->err));
    list_push(&queue->waiting, &transaction->link);
    queue->pending++;
}

void db_queue_end(struct db_queue *queue, struct db_transaction *transaction, enum db_outcome outcome)
{
    transaction->outcome = outcome;
    queue->pending--;
    transaction->done(transaction);
}

void db_queue_refuse_waiting(struct db_queue *queue)
{
    struct list_link *link;

    for (size_t count = queue->waiting.count; count > 0 && (link = list_pop(&queue->waiting)) != NULL; count--) {
        struct db_transaction *transaction = container_of(link, struct db_transaction, link);

        transaction->err = queue->lost_err;
        transaction->err.code = ERR_STORE;
        db_queue_end(queue, transaction, DB_REFUSED);
    }
}

void db_queue_lose(struct db_queue *queue, struct db_transaction *transaction, const struct err *reason)
{
    if (transaction->read_only) {
        transaction->err = *reason;
        db_queue_end(queue, transaction, DB_REFUSED);
    } else {
        err_set(&transaction->err, ERR_LOST_COMMIT, "the answer to a COMMIT was lost");
        err_detail(&transaction->err, "%s", reason->detail[0] ? reason->detail : reason->message);
        db_queue_end(queue, transaction, DB_UNKNOWN);
    }
}

void db_queue_unconfirmed(struct db_queue *queue, struct db_transaction *transaction)
{
    err_set(&transaction->err, ERR_LOST_COMMIT, "the database did not confirm that the COMMIT reached its standby");
    err_hint(&transaction->err, "look at the synchronous standby, and at who cancels statements");
    db_queue_end(queue, transaction, DB_UNKNOWN);
}

bool db_is_data_error(const struct db_transaction *transaction)
{
    return strncmp(transaction->sqlstate, "22", 2) == 0 || strncmp(transaction->sqlstate, "23", 2) == 0;
}

int64_t db_retry_delay_ms(int attempts_failed, uint32_t random)
{
    int64_t delay_ms = RETRY_MS_MIN;

    for (int i = 0; i < attempts_failed && delay_ms < RETRY_MS_MAX; i++) {
        delay_ms *= 2;
    }
    delay_ms += random % delay_ms / 2;
    return delay_ms < RETRY_MS_MAX ? delay_ms : RETRY_MS_MAX - random % (RETRY_MS_MAX / 3);
}

const char **db_setup_copy(struct arena *arena, const char *const *setup)
{
    const char **copy;
    size_t count = 0;

    while (setup && setup[count]) {
        count++;
    }
    copy = arena_array(arena, count + 1, sizeof(*copy));
    for (size_t i = 0; i < count; i++) {
        copy[i] = arena_text(arena, slice_of(setup[i]));
    }
    return copy;
}
