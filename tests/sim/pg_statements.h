/*
 * The statements of store/sql.c as functions of the same names, and helpers of several statements. Only pg_*.c use this
 * file; pg_statements.c has the table that finds the functions.
 */
#ifndef SAGAD_TESTS_SIM_PG_STATEMENTS_H
#define SAGAD_TESTS_SIM_PG_STATEMENTS_H

#include "tests/sim/pg_call.h"

/* Each function is in the file that its section names. */
#define PG_STATEMENTS(X)                                                                                               \
    /* pg_append.c */                                                                                                  \
    X(fence)                                                                                                           \
    X(start)                                                                                                           \
    X(start_unique)                                                                                                    \
    X(lower_low)                                                                                                       \
    X(log)                                                                                                             \
    X(log_unique)                                                                                                      \
    X(status)                                                                                                          \
    X(awake_add)                                                                                                       \
    X(awake_remove)                                                                                                    \
    X(taken)                                                                                                           \
    X(epochs)                                                                                                          \
    X(hold_shards)                                                                                                     \
    X(look)                                                                                                            \
    X(history_missing)                                                                                                 \
    X(history_marks)                                                                                                   \
    X(history_open)                                                                                                    \
    X(history_found)                                                                                                   \
    X(history_sagas)                                                                                                   \
    X(history_shards)                                                                                                  \
    X(history_mark)                                                                                                    \
    X(history_calls)                                                                                                   \
    X(history_accepted)                                                                                                \
    /* pg_bundle.c */                                                                                                  \
    X(key_bundle)                                                                                                      \
    X(key_for_older)                                                                                                   \
    X(key_sweep)                                                                                                       \
    X(saga_by_key)                                                                                                     \
    /* pg_people.c */                                                                                                  \
    X(escalation_open)                                                                                                 \
    X(escalation_change)                                                                                               \
    X(approval_open)                                                                                                   \
    X(approval_end)                                                                                                    \
    /* pg_questions.c */                                                                                               \
    X(escalation_list)                                                                                                 \
    X(escalation_list_open)                                                                                            \
    X(escalation_sum)                                                                                                  \
    X(escalation_sum_open)                                                                                             \
    X(escalation_one)                                                                                                  \
    X(approval_list)                                                                                                   \
    X(approval_list_open)                                                                                              \
    X(approval_sum)                                                                                                    \
    X(approval_sum_open)                                                                                               \
    X(approval_one)                                                                                                    \
    /* pg_inbox.c */                                                                                                   \
    X(inbox_put)                                                                                                       \
    X(inbox_read)                                                                                                      \
    X(inbox_drop)                                                                                                      \
    X(inbox_find)                                                                                                      \
    X(inbox_consume)                                                                                                   \
    X(follow)                                                                                                          \
    /* pg_answer.c */                                                                                                  \
    X(answer_put)                                                                                                      \
    X(answer_drop_inputs)                                                                                              \
    X(answer_take)                                                                                                     \
    X(answer_sweep)                                                                                                    \
    /* pg_due.c */                                                                                                     \
    X(park)                                                                                                            \
    X(unpark)                                                                                                          \
    X(forget_later)                                                                                                    \
    X(forget_first)                                                                                                    \
    X(forget)                                                                                                          \
    X(due)                                                                                                             \
    X(due_let_go)                                                                                                      \
    X(due_next)                                                                                                        \
    /* pg_act.c */                                                                                                     \
    X(act_put)                                                                                                         \
    X(act_define)                                                                                                      \
    X(act_refuse)                                                                                                      \
    X(act_forget)                                                                                                      \
    X(act_list)                                                                                                        \
    /* pg_hold.c */                                                                                                    \
    X(hold_put)                                                                                                        \
    X(hold_release)                                                                                                    \
    X(hold_list)                                                                                                       \
    X(hold_one)                                                                                                        \
    X(hold_version)                                                                                                    \
    X(hold_renewed)                                                                                                    \
    X(hold_in_force)                                                                                                   \
    X(hold_seen)                                                                                                       \
    X(hold_tell_ended)                                                                                                 \
    X(hold_unseen)                                                                                                     \
    /* pg_grant.c */                                                                                                   \
    X(grant_put)                                                                                                       \
    X(grant_read)                                                                                                      \
    X(grant_list)                                                                                                      \
    X(grant_revoke)                                                                                                    \
    /* pg_schedule.c */                                                                                                \
    X(schedule_put)                                                                                                    \
    X(schedule_list)                                                                                                   \
    X(schedule_hold)                                                                                                   \
    X(schedule_delete)                                                                                                 \
    X(zone)                                                                                                            \
    X(schedule_due)                                                                                                    \
    X(schedule_next)                                                                                                   \
    X(schedule_move)                                                                                                   \
    /* pg_notify.c */                                                                                                  \
    X(notify_cursor)                                                                                                   \
    X(notify_due)                                                                                                      \
    X(notify_put)                                                                                                      \
    X(notify_settle)                                                                                                   \
    X(notification_list)                                                                                               \
    X(notification_replay)                                                                                             \
    /* pg_event.c */                                                                                                   \
    X(event_list)                                                                                                      \
    /* pg_series.c */                                                                                                  \
    X(series_add)                                                                                                      \
    X(series_roll)                                                                                                     \
    X(series_drop)                                                                                                     \
    X(series_list)                                                                                                     \
    /* pg_bulk.c */                                                                                                    \
    X(bulk_begin)                                                                                                      \
    X(bulk_add)                                                                                                        \
    X(bulk_freeze)                                                                                                     \
    X(bulk_move)                                                                                                       \
    X(bulk_list)                                                                                                       \
    X(bulk_one)                                                                                                        \
    X(bulk_items)                                                                                                      \
    X(bulk_due)                                                                                                        \
    X(bulk_next)                                                                                                       \
    X(bulk_settle)                                                                                                     \
    X(bulk_forget)                                                                                                     \
    /* pg_lock_key.c */                                                                                                \
    X(lock_take)                                                                                                       \
    X(lock_release)                                                                                                    \
    /* pg_check.c */                                                                                                   \
    X(check_server)                                                                                                    \
    X(check_schema)                                                                                                    \
    X(check_transaction)                                                                                               \
    X(database_facts)                                                                                                  \
    X(end_backend)                                                                                                     \
    /* pg_seal.c */                                                                                                    \
    X(payload_key_put)                                                                                                 \
    X(payload_keys)                                                                                                    \
    /* pg_lease.c */                                                                                                   \
    X(lease_table)                                                                                                     \
    X(lease_end_backends)                                                                                              \
    X(lease_lock)                                                                                                      \
    X(lease_unlock)                                                                                                    \
    X(lease_take)                                                                                                      \
    X(lease_renew)                                                                                                     \
    X(lease_release)                                                                                                   \
    X(lease_unlock_all)                                                                                                \
    /* pg_engine.c */                                                                                                  \
    X(engine_put)                                                                                                      \
    X(engine_table)                                                                                                    \
    X(engine_remove)                                                                                                   \
    X(engine_tell)                                                                                                     \
    /* pg_load.c */                                                                                                    \
    X(load)                                                                                                            \
    X(load_numbers)                                                                                                    \
    X(load_forgotten)                                                                                                  \
    X(saga_row)                                                                                                        \
    X(saga_turns)                                                                                                      \
    X(saga_by_business_id)                                                                                             \
    X(run_turns)                                                                                                       \
    /* pg_list.c */                                                                                                    \
    X(saga_list)                                                                                                       \
    X(saga_sum)                                                                                                        \
    X(saga_looked)                                                                                                     \
    X(saga_list_of_id)                                                                                                 \
    X(saga_count)                                                                                                      \
    X(version_count)                                                                                                   \
    /* pg_definition.c */                                                                                              \
    X(definition_put)                                                                                                  \
    X(tool_put)                                                                                                        \
    X(definition_notify)                                                                                               \
    X(definition_load)                                                                                                 \
    X(definition_state)                                                                                                \
    /* pg_guard.c, pg_guard_tell.c */                                                                                  \
    X(guard_ask)                                                                                                       \
    X(case_remark)                                                                                                     \
    X(debt_settle)                                                                                                     \
    X(debt_settled)                                                                                                    \
    X(case_put)                                                                                                        \
    X(guard_tell)                                                                                                      \
    X(guard_breaker_set)                                                                                               \
    X(guard_price)                                                                                                     \
    X(guard_count)                                                                                                     \
    X(guard_list)

#define DECLARE_STATEMENT(name) enum pg_progress pg_statement_##name(struct pg_call *call);
PG_STATEMENTS(DECLARE_STATEMENT)
#undef DECLARE_STATEMENT

/* For differential.c: adds a statement that is not in store/sql.c. */
void pg_statement_add(const struct db_statement *statement, pg_statement *function);

/* --- what several need --- */

#define ERROR_UNIQUE "23505"
#define ERROR_CHECK "23514"
#define ERROR_TORN "SG003"
#define ERROR_TWICE "21000" /* the error of ON CONFLICT DO UPDATE that touches a row a second time */
#define ERROR_EXPECT "SG002"
#define ERROR_FENCE "SG001"

/* The rows that the statement has changed. UPDATE and DELETE leave out a row that comes a second time. */
struct pg_touched {
    struct pg_row **rows;
    size_t count, capacity;
};
void pg_touch(struct pg_call *call, struct pg_touched *touched, struct pg_row *row);
bool pg_is_touched(const struct pg_touched *touched, const struct pg_row *row);

/* Takes the row of one key for UPDATE or DELETE. NULL: the row is not seen, was touched before, or is gone after the
 * wait. */
enum pg_progress pg_take(struct pg_call *call, struct pg_touched *touched, struct pg_row *row, enum pg_lock_mode mode,
                         const void **current);
/* Inserts with ON CONFLICT DO NOTHING. */
enum pg_progress pg_insert_new(struct pg_call *call, enum pg_table table, const void *data, bool *inserted);
/* Inserts with ON CONFLICT DO UPDATE. *row NULL: the row was inserted. Else the row is locked, *current is its data,
 * and the caller updates it. */
enum pg_progress pg_insert_or_lock(struct pg_call *call, enum pg_table table, const void *data,
                                   struct pg_touched *touched, struct pg_row **row, const void **current);
enum pg_progress pg_delete_key(struct pg_call *call, enum pg_table table, const void *key, struct pg_touched *touched,
                               bool *deleted);
/* Does sagad.expect(), which is asked only where it complains: where no row was touched. */
enum pg_progress pg_expect(struct pg_call *call, size_t touched, size_t due);
void pg_put_void(struct pg_call *call);

/* Gives the saga as the statement sees it; NULL: none. */
const struct row_saga *pg_saga(struct pg_call *call, int64_t shard, struct uuid id);
const struct row_saga *pg_saga_of_business(struct pg_call *call, int64_t shard, struct slice digest);
const struct row_saga *pg_saga_of_start_key(struct pg_call *call, struct slice digest);
const struct row_shard *pg_shard(struct pg_call *call, int64_t shard);
void pg_put_saga(struct pg_call *call, const struct row_saga *saga); /* puts a row of the columns ROW_COLUMNS */
struct uuid pg_id_floor(int64_t ms);                                 /* does sagad.id_floor() */
/* Gives the time from clock_timestamp() on, rounded as ::int8 does. */
int64_t pg_left_ms(struct pg_call *call, int64_t at_ms);
struct slice pg_number_text(struct pg_call *call, int64_t number);
void pg_escape_json(struct buffer *out, struct slice text); /* escapes as escape_json() of PostgreSQL does */

/* The array of this argument holds the value, "" where there is none; or the array is empty. */
bool pg_is_one_of(struct pg_call *call, int arg, struct slice value);
/* The tags of the saga include one of the JSON objects of this argument; or there are none of those. */
bool pg_has_tags(struct pg_call *call, const struct row_saga *saga, int arg);
/* Does sagad.event_add() of migration 0030; nothing here is 30 days old. */
enum pg_progress pg_event_add(struct pg_call *call, const struct row_event *event);
/* Gives printed text that lives as long as the rows. */
struct slice pg_keep_printed(struct pg_call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool pg_bulk_is_open(const struct row_bulk *bulk, int64_t now_ms);
/* Does tags ->> name; SLICE_NONE is null. */
struct slice pg_tag_of(struct pg_call *call, struct slice tags, struct slice name);

/* Gives the indices 0 to count - 1 in the order of an argument of integers; equal integers keep their order. */
size_t *pg_order_of_ints(struct pg_call *call, int arg);

#endif
