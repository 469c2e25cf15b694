/*
 * Every statement that the store sends. Each has a name and is prepared once for each connection. Its conditions say
 * what it relies on. schema/migrations describes the tables.
 */
#ifndef SAGAD_STORE_SQL_H
#define SAGAD_STORE_SQL_H

#include "io/postgres/db.h"

/* the append, in the order of the pipeline */
extern const struct db_statement sql_fence;
extern const struct db_statement sql_start;
extern const struct db_statement sql_start_unique; /* starts with a business id; returns the ids that were new */
extern const struct db_statement sql_lower_low;
extern const struct db_statement sql_log;
/* the rows of starts with a business id, only where the start was new */
extern const struct db_statement sql_log_unique;
extern const struct db_statement sql_key_bundle;
extern const struct db_statement sql_key_for_older;
extern const struct db_statement sql_key_sweep;
extern const struct db_statement sql_status;
extern const struct db_statement sql_escalation_open;
extern const struct db_statement sql_escalation_change;
extern const struct db_statement sql_awake_add;
extern const struct db_statement sql_awake_remove;
extern const struct db_statement sql_inbox_consume;
extern const struct db_statement sql_approval_open;
extern const struct db_statement sql_approval_end;
extern const struct db_statement sql_follow; /* starts of other sagas, for the owners of their shards */
extern const struct db_statement sql_unpark;
extern const struct db_statement sql_forget_later;
extern const struct db_statement sql_forget_first;
extern const struct db_statement sql_act_put;
extern const struct db_statement sql_lock_release;

/* questions about an append */
extern const struct db_statement sql_taken; /* returns who has the business ids */
extern const struct db_statement sql_epochs;
extern const struct db_statement sql_end_backend;
extern const struct db_statement sql_hold_shards;
extern const struct db_statement sql_look;

/* start-up */
extern const struct db_statement sql_check_server;
extern const struct db_statement sql_check_schema;
extern const struct db_statement sql_check_transaction;
extern const struct db_statement sql_payload_key_put;
extern const struct db_statement sql_payload_keys;
extern const struct db_statement sql_history_missing;
extern const struct db_statement sql_history_open;
extern const struct db_statement sql_history_marks;
extern const struct db_statement sql_history_found;
extern const struct db_statement sql_history_sagas;
extern const struct db_statement sql_history_shards;
extern const struct db_statement sql_history_mark;
extern const struct db_statement sql_history_calls;
extern const struct db_statement sql_history_accepted;

/* leases */
extern const struct db_statement sql_lease_table;
extern const struct db_statement sql_lease_end_backends;
extern const struct db_statement sql_lease_lock;
extern const struct db_statement sql_lease_unlock;
extern const struct db_statement sql_lease_take;
extern const struct db_statement sql_lease_renew;
extern const struct db_statement sql_lease_release;
extern const struct db_statement sql_lease_unlock_all;

/* living engines, for fair shares */
extern const struct db_statement sql_engine_put;
extern const struct db_statement sql_engine_table;
extern const struct db_statement sql_database_facts;
extern const struct db_statement sql_engine_remove;
extern const struct db_statement sql_engine_tell;

/* loads and reads */
extern const struct db_statement sql_load;
extern const struct db_statement sql_load_forgotten;
extern const struct db_statement sql_load_numbers; /* the highest numbers that were given */
extern const struct db_statement sql_saga_row;
extern const struct db_statement sql_saga_turns;
extern const struct db_statement sql_saga_by_business_id;
extern const struct db_statement sql_saga_logs;
extern const struct db_statement sql_run_turns;
extern const struct db_statement sql_saga_by_key;
extern const struct db_statement sql_saga_list;
extern const struct db_statement sql_saga_looked;
extern const struct db_statement sql_saga_sum;
extern const struct db_statement sql_saga_list_of_id;
extern const struct db_statement sql_saga_count;
extern const struct db_statement sql_case_put;
extern const struct db_statement sql_case_remark;
extern const struct db_statement sql_debt_settle;
extern const struct db_statement sql_debt_settled;
extern const struct db_statement sql_escalation_list;
extern const struct db_statement sql_escalation_list_open;
extern const struct db_statement sql_escalation_sum;
extern const struct db_statement sql_escalation_sum_open;
extern const struct db_statement sql_escalation_one;
extern const struct db_statement sql_approval_list;
extern const struct db_statement sql_approval_list_open;
extern const struct db_statement sql_approval_sum;
extern const struct db_statement sql_approval_sum_open;
extern const struct db_statement sql_approval_one;
extern const struct db_statement sql_version_count;

/* parked and ended sagas */
extern const struct db_statement sql_park;   /* returns the positions of those whose shard is at its epoch */
extern const struct db_statement sql_forget; /* returns the same positions */
extern const struct db_statement sql_due;
extern const struct db_statement sql_due_next;
extern const struct db_statement sql_due_let_go;

/* schedules */
extern const struct db_statement sql_schedule_put;
extern const struct db_statement sql_schedule_list;
extern const struct db_statement sql_schedule_hold;
extern const struct db_statement sql_schedule_delete;
extern const struct db_statement sql_zone;
extern const struct db_statement sql_schedule_due;
extern const struct db_statement sql_schedule_next;
extern const struct db_statement sql_schedule_move;

/* events */
extern const struct db_statement sql_event_list;

/* figures over time */
extern const struct db_statement sql_series_add;
extern const struct db_statement sql_series_roll; /* returns how many rows of minutes became rows of hours */
extern const struct db_statement sql_series_drop; /* returns how many rows of hours were deleted */
extern const struct db_statement sql_series_list;

/* holds */
extern const struct db_statement sql_hold_put;
extern const struct db_statement sql_hold_release;
extern const struct db_statement sql_hold_list;
extern const struct db_statement sql_hold_one;
extern const struct db_statement sql_hold_version;
extern const struct db_statement sql_hold_in_force;
extern const struct db_statement sql_hold_seen;
extern const struct db_statement sql_hold_tell_ended;
extern const struct db_statement sql_hold_unseen;
extern const struct db_statement sql_hold_renewed;

/* acts of people */
extern const struct db_statement sql_act_define; /* writes the act of registering a document, if that made something */
extern const struct db_statement sql_act_refuse;
extern const struct db_statement sql_act_forget;
extern const struct db_statement sql_act_list;

/* grants */
extern const struct db_statement sql_grant_put;
extern const struct db_statement sql_grant_read;
extern const struct db_statement sql_grant_list;
extern const struct db_statement sql_grant_revoke;

/* bulk jobs */
extern const struct db_statement sql_bulk_begin;
extern const struct db_statement sql_bulk_add;
extern const struct db_statement sql_bulk_freeze;
extern const struct db_statement sql_bulk_move;
extern const struct db_statement sql_bulk_list;
extern const struct db_statement sql_bulk_one;
extern const struct db_statement sql_bulk_items;
extern const struct db_statement sql_bulk_due;
extern const struct db_statement sql_bulk_next;
extern const struct db_statement sql_bulk_settle;
extern const struct db_statement sql_bulk_forget;

/* notifications */
extern const struct db_statement sql_notify_cursor;
extern const struct db_statement sql_notify_due;
extern const struct db_statement sql_notify_put;
extern const struct db_statement sql_notify_settle;
extern const struct db_statement sql_notification_list;
extern const struct db_statement sql_notification_replay;

/* locks on business keys */
extern const struct db_statement sql_lock_take;

/* inbox */
extern const struct db_statement sql_inbox_put;
extern const struct db_statement sql_inbox_read;
extern const struct db_statement sql_inbox_drop;
extern const struct db_statement sql_inbox_find;

/* answers */
extern const struct db_statement sql_answer_put; /* puts many answers, and notifies their readers */
extern const struct db_statement sql_answer_drop_inputs;
extern const struct db_statement sql_answer_take;
extern const struct db_statement sql_answer_sweep;

/* definitions */
extern const struct db_statement sql_definition_put; /* kind DEFINITION_SAGA */
extern const struct db_statement sql_tool_put;       /* kind DEFINITION_TOOL */
extern const struct db_statement sql_definition_notify;
extern const struct db_statement sql_definition_load;
extern const struct db_statement sql_definition_state; /* a value that changes with each registration */

/* guards */
extern const struct db_statement sql_guard_ask;
extern const struct db_statement sql_guard_tell;
extern const struct db_statement sql_guard_price;
extern const struct db_statement sql_guard_breaker_set;
extern const struct db_statement sql_guard_count;
extern const struct db_statement sql_guard_list;

/* The statements that run for every turn or every input. Tests check that their plans use an index, whatever the size
 * of the tables. */
extern const struct db_statement *const sql_hot[];

#define SQL_INBOX_CHANNEL "sagad_inbox"
#define SQL_ANSWERS_CHANNEL "sagad_answers"
#define SQL_DEFINITIONS_CHANNEL "sagad_definitions"
#define SQL_SCHEDULES_CHANNEL "sagad_schedules"
#define SQL_HOLDS_CHANNEL "sagad_holds"
#define SQL_BULK_CHANNEL "sagad_bulk"
#define SQL_LEASES_CHANNEL "sagad_leases"

#endif
