/* The sets from which scripts draw, and a function for the arguments of each kind of statement. */
#ifndef SAGAD_TESTS_SIM_DIFFERENTIAL_ARGS_H
#define SAGAD_TESTS_SIM_DIFFERENTIAL_ARGS_H

#include "tests/sim/differential.h"

enum { SAGAS = 9, SHARDS = 3, KEYS = 6, INPUTS = 5, ITEMS_MAX = 9 };

#define LONG_MS INT64_C(1000000000000) /* 31 years: a span that does not end while a script runs */

int saga_shard(uint32_t saga);
struct uuid saga_id(uint32_t saga);
int key_shard(uint32_t key);
struct uuid key_id(uint32_t key);
struct uuid input_id(uint32_t input);
struct uuid holder_id(uint32_t holder);

/* Some members of a set: normally each once, in any order. */
struct some {
    uint32_t item[ITEMS_MAX];
    size_t count;
};
struct some some_of(struct chance *chance, uint32_t of);
uint32_t a_saga(struct chance *chance); /* draws three of the sagas more often than the others */
struct some some_sagas(struct chance *chance);

#define COLUMN(type, some, put)                                                                                        \
    do {                                                                                                               \
        db_array_begin(args, (type), (some).count);                                                                    \
        for (size_t column_i = 0; column_i < (some).count; column_i++) {                                               \
            const uint32_t x = (some).item[column_i];                                                                  \
            (void)x;                                                                                                   \
            put;                                                                                                       \
        }                                                                                                              \
        db_array_end(args);                                                                                            \
    } while (0)

void item_id(struct db_args *args, struct uuid id);
void arg_id(struct db_args *args, struct uuid id);
void item_text(struct db_args *args, const char *text); /* NULL: null */
void arg_text(struct db_args *args, const char *text);
void item_time_or_null(struct db_args *args, struct chance *chance, uint32_t null_percent);
const char *one_of(struct chance *chance, const char *const *texts, uint32_t count);

#define ONE_OF(...)                                                                                                    \
    one_of(chance, (const char *const[]){__VA_ARGS__},                                                                 \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* Whole arguments: arrays as long as the other arrays of the statement. */
void add_shards(struct db_args *args, struct some sagas);
void add_sagas(struct db_args *args, struct some sagas); /* adds two arrays: shards and ids */
int epoch_of_most(void);                                 /* the epoch that most shards have, see draw_begin() */
void arg_epoch(struct db_args *args, struct chance *chance);
void add_epochs(struct db_args *args, struct chance *chance, size_t count);
void add_bytes(struct db_args *args, struct chance *chance, size_t count, bool may_be_null);

void draw_fence(struct db_args *args, struct chance *chance);
void draw_start(struct db_args *args, struct chance *chance);
void draw_take_all(struct db_args *args, struct chance *chance);
void draw_renew_all(struct db_args *args, struct chance *chance);
void draw_start_all(struct db_args *args, struct chance *chance);
void draw_start_unique(struct db_args *args, struct chance *chance);
void draw_lower_low(struct db_args *args, struct chance *chance);
void draw_log(struct db_args *args, struct chance *chance);
void draw_key_for_older(struct db_args *args, struct chance *chance);
void draw_key_bundle(struct db_args *args, struct chance *chance);
void draw_key_sweep(struct db_args *args, struct chance *chance);
void draw_old_key(struct db_args *args, struct chance *chance);
void draw_status(struct db_args *args, struct chance *chance);
void draw_some_sagas(struct db_args *args, struct chance *chance);
void draw_escalation_open(struct db_args *args, struct chance *chance);
void draw_escalation_change(struct db_args *args, struct chance *chance);
void draw_approval_open(struct db_args *args, struct chance *chance);
void draw_approval_end(struct db_args *args, struct chance *chance);
void draw_consume(struct db_args *args, struct chance *chance);
void draw_follow(struct db_args *args, struct chance *chance);
void draw_forget_later(struct db_args *args, struct chance *chance);
void draw_taken(struct db_args *args, struct chance *chance);
void draw_some_shards(struct db_args *args, struct chance *chance);
void draw_look(struct db_args *args, struct chance *chance);
void draw_end_backends(struct db_args *args, struct chance *chance);
void draw_end_backend(struct db_args *args, struct chance *chance);
void draw_lease_lock(struct db_args *args, struct chance *chance);
void draw_lease_take(struct db_args *args, struct chance *chance);
void draw_lease_renew(struct db_args *args, struct chance *chance);
void draw_lease_release(struct db_args *args, struct chance *chance);
void draw_engine(struct db_args *args, struct chance *chance);
void draw_engine_remove(struct db_args *args, struct chance *chance);
void draw_load(struct db_args *args, struct chance *chance);
void draw_one_shard(struct db_args *args, struct chance *chance);
void draw_saga_row(struct db_args *args, struct chance *chance);
void draw_saga_turns(struct db_args *args, struct chance *chance);
void draw_by_business_id(struct db_args *args, struct chance *chance);
void draw_run_turns(struct db_args *args, struct chance *chance);
void draw_by_key(struct db_args *args, struct chance *chance);
void draw_list(struct db_args *args, struct chance *chance);
void draw_sum(struct db_args *args, struct chance *chance);
void draw_looked(struct db_args *args, struct chance *chance);
void draw_list_of_id(struct db_args *args, struct chance *chance);
void draw_namespace(struct db_args *args, struct chance *chance);
void draw_count(struct db_args *args, struct chance *chance);
void draw_debt_settle(struct db_args *args, struct chance *chance);
void draw_debt_settled(struct db_args *args, struct chance *chance);
void draw_case_remark(struct db_args *args, struct chance *chance);
void draw_case(struct db_args *args, struct chance *chance);
void draw_questions_filtered(struct db_args *args, struct chance *chance);
void draw_questions_grouped(struct db_args *args, struct chance *chance);
void draw_question(struct db_args *args, struct chance *chance);
void draw_park_all(struct db_args *args, struct chance *chance);
void draw_park(struct db_args *args, struct chance *chance);
void draw_forget(struct db_args *args, struct chance *chance);
void draw_due(struct db_args *args, struct chance *chance);
void draw_act_put(struct db_args *args, struct chance *chance);
void draw_act_refuse(struct db_args *args, struct chance *chance);
void draw_act_forget(struct db_args *args, struct chance *chance);
void draw_act_list(struct db_args *args, struct chance *chance);
void draw_due_let_go(struct db_args *args, struct chance *chance);
void draw_grant_put(struct db_args *args, struct chance *chance);
void draw_grant_read(struct db_args *args, struct chance *chance);
void draw_grant_list(struct db_args *args, struct chance *chance);
void draw_grant_revoke(struct db_args *args, struct chance *chance);
void draw_hold_put(struct db_args *args, struct chance *chance);
void draw_hold_release(struct db_args *args, struct chance *chance);
void draw_hold_list(struct db_args *args, struct chance *chance);
void draw_hold_one(struct db_args *args, struct chance *chance);
void draw_hold_seen(struct db_args *args, struct chance *chance);
void draw_hold_unseen(struct db_args *args, struct chance *chance);
void draw_notify_cursor(struct db_args *args, struct chance *chance);
void draw_notify_due(struct db_args *args, struct chance *chance);
void draw_notify_put(struct db_args *args, struct chance *chance);
void draw_notify_settle(struct db_args *args, struct chance *chance);
void draw_notification_list(struct db_args *args, struct chance *chance);
void draw_notification_replay(struct db_args *args, struct chance *chance);
void draw_schedule_put(struct db_args *args, struct chance *chance);
void draw_schedule_list(struct db_args *args, struct chance *chance);
void draw_schedule_hold(struct db_args *args, struct chance *chance);
void draw_schedule_delete(struct db_args *args, struct chance *chance);
void draw_zone(struct db_args *args, struct chance *chance);
void draw_schedule_due(struct db_args *args, struct chance *chance);
void draw_schedule_next(struct db_args *args, struct chance *chance);
void draw_schedule_move(struct db_args *args, struct chance *chance);
void draw_event_list(struct db_args *args, struct chance *chance);
void draw_series_add(struct db_args *args, struct chance *chance);
void draw_series_roll(struct db_args *args, struct chance *chance);
void draw_series_drop(struct db_args *args, struct chance *chance);
void draw_series_list(struct db_args *args, struct chance *chance);
void draw_bulk_begin(struct db_args *args, struct chance *chance);
void draw_bulk_add(struct db_args *args, struct chance *chance);
void draw_bulk_freeze(struct db_args *args, struct chance *chance);
void draw_bulk_move(struct db_args *args, struct chance *chance);
void draw_bulk_list(struct db_args *args, struct chance *chance);
void draw_bulk_one(struct db_args *args, struct chance *chance);
void draw_bulk_items(struct db_args *args, struct chance *chance);
void draw_bulk_due(struct db_args *args, struct chance *chance);
void draw_bulk_next(struct db_args *args, struct chance *chance);
void draw_bulk_settle(struct db_args *args, struct chance *chance);
void draw_bulk_forget(struct db_args *args, struct chance *chance);
void draw_lock_take(struct db_args *args, struct chance *chance);
void draw_inbox(struct db_args *args, struct chance *chance);
void draw_inbox_read(struct db_args *args, struct chance *chance);
void draw_input(struct db_args *args, struct chance *chance);
void draw_inputs(struct db_args *args, struct chance *chance);
void draw_answers(struct db_args *args, struct chance *chance);
void draw_definitions(struct db_args *args, struct chance *chance);
void draw_tool(struct db_args *args, struct chance *chance);
void draw_guard_ask(struct db_args *args, struct chance *chance);
void draw_guard_tell(struct db_args *args, struct chance *chance);
void draw_guard_price(struct db_args *args, struct chance *chance);
void draw_guard_breaker_set(struct db_args *args, struct chance *chance);
void draw_guard_count(struct db_args *args, struct chance *chance);
void draw_namespace_or_null(struct db_args *args, struct chance *chance);
void draw_gate(struct db_args *args, struct chance *chance);

#endif
