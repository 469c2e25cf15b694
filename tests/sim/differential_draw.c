/* Draws the statements of a transaction, and the statement after which a gate stands. */
#include <string.h>

#include "store/sql.h"
#include "tests/sim/differential_args.h"
#include "tests/sim/differential_dump.h"

/* --- all of them, those of the append in its order --- */

#define THEMES                                                                                                         \
    "aldkgpiebsfhunww"                                                                                                 \
    "\0\0"                                                                                                             \
    "alkdg" /* the topics of most statements of a script; the last place means all topics */

const struct kind gate_kind = {.statement = &sql_gate, .columns = "v"};
const struct kind start_all_kind = {.statement = &sql_start, .columns = "", .put = draw_start_all, .affects = true};
const struct kind park_all_kind = {.statement = &sql_park, .columns = "i", .put = draw_park_all, .unordered = true};
const struct kind take_all_kind = {.statement = &sql_lease_take, .columns = "iiti", .put = draw_take_all};
const struct kind renew_all_kind = {
    .statement = &sql_lease_renew, .columns = "itm", .put = draw_renew_all, .unordered = true};

#define SAGA_ROW "ubbibbbttt"
#define BULK_ROW "ubbbiiiibmtbbm"
#define NOTIFICATION_ROW "bibbbimmmb"

const struct kind kinds[] = {
    {&sql_gate, "v", draw_gate, .themes = "e", .weight = 2},
    {&sql_fence, "v", draw_fence, .themes = "al", .weight = 20},
    {&sql_start, "", draw_start, .affects = true, .themes = "akd", .weight = 3},
    {&sql_start_unique, "u", draw_start_unique, .affects = true, .themes = "a", .weight = 14},
    {&sql_lower_low, "", draw_lower_low, .affects = true, .themes = "al", .weight = 3},
    {&sql_log, "", draw_log, .affects = true, .themes = "ad", .weight = 10},
    {&sql_log_unique, "", draw_log, .affects = true, .themes = "a", .weight = 6},
    {&sql_key_bundle, "", draw_key_bundle, .affects = true, .themes = "ab", .weight = 4},
    {&sql_key_for_older, "", draw_key_for_older, .affects = true, .themes = "ab", .weight = 3},
    {&sql_key_sweep, "ii", draw_key_sweep, .themes = "b", .weight = 4},
    {&old_key, "", draw_old_key, .affects = true, .themes = "d", .weight = 3},
    {&sql_status, "v", draw_status, .themes = "akd", .weight = 12},
    {&sql_unpark, "", draw_some_sagas, .affects = true, .themes = "dw", .weight = 4},
    {&sql_forget_later, "", draw_forget_later, .affects = true, .themes = "dw", .weight = 4},
    {&sql_forget_first, "", draw_forget_later, .affects = true, .themes = "d", .weight = 3},
    {&sql_awake_add, "", draw_some_sagas, .affects = true, .themes = "d", .weight = 4},
    {&sql_awake_remove, "", draw_some_sagas, .affects = true, .themes = "d", .weight = 3},
    {&sql_escalation_open, "", draw_escalation_open, .affects = true, .themes = "pd", .weight = 4},
    {&sql_escalation_change, "v", draw_escalation_change, .themes = "p", .weight = 2},
    {&sql_approval_open, "", draw_approval_open, .affects = true, .themes = "pd", .weight = 4},
    {&sql_approval_end, "v", draw_approval_end, .themes = "p", .weight = 3},
    {&sql_follow, "v", draw_follow, .themes = "i", .weight = 4},
    {&sql_inbox_consume, "v", draw_consume, .themes = "i", .weight = 5},
    {&sql_lock_release, "v", draw_some_sagas, .themes = "k", .weight = 6},
    {&sql_lock_take, "i", draw_lock_take, .themes = "k", .weight = 14},
    {&sql_taken, "iubbi", draw_taken, .unordered = true, .themes = "a", .weight = 2},
    {&sql_epochs, "ii", draw_some_shards, .unordered = true, .themes = "l", .weight = 2},
    {&sql_hold_shards, "i", draw_some_shards, .themes = "l", .weight = 3},
    {&sql_look, "ibi", draw_look, .unordered = true, .themes = "a", .weight = 2},
    {&sql_lease_table, "iibbmtni", .themes = "l", .weight = 3},
    {&sql_lease_end_backends, "i", draw_end_backends, .themes = "", .weight = 1},
    {&sql_end_backend, "i", draw_end_backend, .themes = "", .weight = 1},
    {&sql_lease_lock, "ii", draw_lease_lock, .themes = "l", .weight = 3},
    {&sql_lease_unlock, "i", draw_lease_lock, .themes = "l", .weight = 2},
    {&sql_lease_unlock_all, "v", .themes = "", .weight = 1},
    {&sql_lease_release, "iv", draw_lease_release, .themes = "l", .weight = 3},
    {&sql_engine_put, "", draw_engine, .affects = true, .themes = "leh", .weight = 3},
    {&sql_lease_take, "iiti", draw_lease_take, .themes = "l", .weight = 12},
    {&sql_lease_renew, "itm", draw_lease_renew, .unordered = true, .themes = "l", .weight = 8},
    {&sql_engine_table, "bbbbiiimniii", .themes = "e", .weight = 2},
    {&sql_engine_remove, "", draw_engine_remove, .affects = true, .themes = "e", .weight = 1},
    {&sql_engine_tell, "v", .themes = "", .weight = 1},
    {&sql_load, "ubitbi", draw_load, .themes = "ad", .weight = 6},
    {&sql_load_numbers, "iii", draw_one_shard, .themes = "p", .weight = 3},
    {&sql_saga_row, SAGA_ROW, draw_saga_row, .themes = "", .weight = 2},
    {&sql_saga_turns, "itb", draw_saga_turns, .themes = "", .weight = 2},
    {&sql_saga_by_business_id, "ub", draw_by_business_id, .themes = "a", .weight = 2},
    {&sql_run_turns, "iuitb", draw_run_turns, .themes = "ad", .weight = 4},
    {&sql_saga_by_key, "u", draw_by_key, .themes = "b", .weight = 3},
    {&sql_saga_list, SAGA_ROW "ii", draw_list, .themes = "a", .weight = 5},
    {&sql_saga_sum, "biu", draw_sum, .unordered = true, .themes = "a", .weight = 3},
    {&sql_saga_looked, "i", draw_looked, .themes = "a", .weight = 2},
    {&sql_saga_list_of_id, SAGA_ROW "ii", draw_list_of_id, .themes = "a", .weight = 2},
    {&sql_saga_count, "biu", draw_count, .unordered = true, .themes = "a", .weight = 4},
    {&sql_escalation_list, "iubitbbbbiibtbib", draw_questions_filtered, .themes = "p", .weight = 1},
    {&sql_escalation_list_open, "iubitbbbbiibtbib", draw_questions_filtered, .themes = "p", .weight = 1},
    {&sql_escalation_sum, "ibbbbbbittbii", draw_questions_grouped, .themes = "p", .weight = 1},
    {&sql_escalation_sum_open, "ibbbbbbittbii", draw_questions_grouped, .themes = "p", .weight = 1},
    {&sql_debt_settle, "b", draw_debt_settle, .themes = "d", .weight = 6},
    {&sql_debt_settled, "uub", draw_debt_settled, .unordered = true, .themes = "d", .weight = 3},
    {&sql_case_remark, "i", draw_case_remark, .themes = "p", .weight = 3},
    {&sql_case_put, "i", draw_case, .themes = "p", .weight = 4},
    {&sql_escalation_one, "iubitbbbbiibtbib", draw_question, .themes = "p", .weight = 1},
    {&sql_approval_list, "iubitbbbbiibtbib", draw_questions_filtered, .themes = "p", .weight = 1},
    {&sql_approval_list_open, "iubitbbbbiibtbib", draw_questions_filtered, .themes = "p", .weight = 1},
    {&sql_approval_sum, "ibbbbbbittbii", draw_questions_grouped, .themes = "p", .weight = 1},
    {&sql_approval_sum_open, "ibbbbbbittbii", draw_questions_grouped, .themes = "p", .weight = 1},
    {&sql_approval_one, "iubitbbbbiibtbib", draw_question, .themes = "p", .weight = 1},
    {&sql_version_count, "bii", draw_namespace, .themes = "", .weight = 2},
    {&sql_park, "i", draw_park, .unordered = true, .themes = "dlw", .weight = 8},
    {&sql_forget, "i", draw_forget, .themes = "d", .weight = 6},
    {&sql_due, "iuibt", draw_due, .themes = "dw", .weight = 3},
    {&sql_due_next, "t", draw_due, .themes = "dw", .weight = 2},
    {&sql_due_let_go, "i", draw_due_let_go, .themes = "dw", .weight = 4},
    {&sql_schedule_put, "i", draw_schedule_put, .themes = "s", .weight = 3},
    {&sql_schedule_list, "ibbuibbbmmbb", draw_schedule_list, .unordered = true, .themes = "s", .weight = 1},
    {&sql_schedule_hold, "v", draw_schedule_hold, .themes = "s", .weight = 2},
    {&sql_schedule_delete, "i", draw_schedule_delete, .themes = "s", .weight = 1},
    {&sql_zone, "b", draw_zone, .themes = "", .weight = 1},
    {&sql_schedule_due, "ibbuibbbmmbb", draw_schedule_due, .unordered = true, .themes = "s", .weight = 2},
    {&sql_schedule_next, "m", draw_schedule_next, .themes = "s", .weight = 1},
    {&sql_schedule_move, "i", draw_schedule_move, .themes = "s", .weight = 6},
    {&sql_event_list, "vvvvuitbbibbiitbvvbbb", draw_event_list, .themes = "ad", .weight = 3},
    {&sql_series_add, "", draw_series_add, .affects = true, .themes = "f", .weight = 4},
    {&sql_series_roll, "i", draw_series_roll, .themes = "f", .weight = 3},
    {&sql_series_drop, "i", draw_series_drop, .themes = "f", .weight = 1},
    {&sql_series_list, "tbiiiiiiiiiiii", draw_series_list, .themes = "f", .weight = 3},
    {&sql_act_put, "v", draw_act_put, .themes = "a", .weight = 2},
    {&sql_act_refuse, "v", draw_act_refuse, .themes = "a", .weight = 1},
    {&sql_act_forget, "i", draw_act_forget, .themes = "a", .weight = 1},
    {&sql_act_list, "", draw_act_list, .themes = "a", .weight = 1},
    {&sql_grant_put, "m", draw_grant_put, .themes = "h", .weight = 3},
    {&sql_grant_read, "ubbbmtmb", draw_grant_read, .unordered = true, .themes = "h", .weight = 2},
    {&sql_grant_list, "ubbbmtmb", draw_grant_list, .themes = "h", .weight = 1},
    {&sql_grant_revoke, "ubbbmtmbi", draw_grant_revoke, .themes = "h", .weight = 3},
    {&sql_hold_put, "i", draw_hold_put, .themes = "h", .weight = 3},
    {&sql_hold_release, "i", draw_hold_release, .themes = "h", .weight = 2},
    {&sql_hold_list, "ibbmtmb", draw_hold_list, .themes = "h", .weight = 1},
    {&sql_hold_one, "ibbmtmb", draw_hold_one, .themes = "h", .weight = 1},
    {&sql_hold_version, "i", .themes = "h", .weight = 1},
    {&sql_hold_renewed, "i", .themes = "h", .weight = 3},
    {&sql_hold_in_force, "ibbmtmb", .themes = "h", .weight = 1},
    {&sql_hold_seen, "", draw_hold_seen, .affects = true, .themes = "h", .weight = 2},
    {&sql_hold_tell_ended, "n", .themes = "h", .weight = 3},
    {&sql_hold_unseen, "bi", draw_hold_unseen, .themes = "h", .weight = 1},
    {&sql_notify_cursor, "ic", draw_notify_cursor, .themes = "n", .weight = 2},
    {&sql_notify_due, NOTIFICATION_ROW, draw_notify_due, .themes = "n", .weight = 3},
    {&sql_notify_put, "i", draw_notify_put, .themes = "n", .weight = 6},
    {&sql_notify_settle, "i", draw_notify_settle, .themes = "n", .weight = 6},
    {&sql_notification_list, NOTIFICATION_ROW, draw_notification_list, .themes = "n", .weight = 2},
    {&sql_notification_replay, "i", draw_notification_replay, .themes = "n", .weight = 3},
    {&sql_bulk_begin, "i", draw_bulk_begin, .themes = "u", .weight = 4},
    {&sql_bulk_add, "", draw_bulk_add, .affects = true, .themes = "u", .weight = 4},
    {&sql_bulk_freeze, "i" BULK_ROW, draw_bulk_freeze, .themes = "u", .weight = 3},
    {&sql_bulk_move, "b", draw_bulk_move, .themes = "u", .weight = 4},
    {&sql_bulk_list, "i" BULK_ROW, draw_bulk_list, .unordered = true, .themes = "u", .weight = 1},
    {&sql_bulk_one, "i" BULK_ROW, draw_bulk_one, .themes = "u", .weight = 1},
    {&sql_bulk_items, "ibbb", draw_bulk_items, .themes = "u", .weight = 2},
    {&sql_bulk_due, "i" BULK_ROW "ib", draw_bulk_due, .themes = "u", .weight = 3},
    {&sql_bulk_next, "m", draw_bulk_next, .themes = "u", .weight = 1},
    {&sql_bulk_settle, "i", draw_bulk_settle, .themes = "u", .weight = 8},
    {&sql_bulk_forget, "i", draw_bulk_forget, .themes = "u", .weight = 3},
    {&sql_inbox_put, "v", draw_inbox, .themes = "i", .weight = 10},
    {&sql_inbox_read, "ixubb", draw_inbox_read, .themes = "ik", .weight = 4},
    {&sql_inbox_drop, "", draw_input, .affects = true, .themes = "i", .weight = 2},
    {&sql_inbox_find, "i", draw_input, .themes = "i", .weight = 1},
    {&sql_answer_put, "v", draw_answers, .themes = "i", .weight = 4},
    {&sql_answer_drop_inputs, "", draw_inputs, .affects = true, .themes = "i", .weight = 2},
    {&sql_answer_take, "ub", draw_inputs, .unordered = true, .themes = "i", .weight = 4},
    {&sql_answer_sweep, "", .affects = true, .themes = "", .weight = 1},
    {&sql_definition_put, "iiii", draw_definitions, .themes = "e", .weight = 3},
    {&sql_tool_put, "iiii", draw_definitions, .themes = "e", .weight = 2},
    {&sql_definition_notify, "v", .themes = "", .weight = 2},
    {&sql_definition_load, "ibbibbmi", .themes = "e", .weight = 1},
    {&sql_definition_state, "i", .themes = "e", .weight = 1},
    {&sql_guard_ask, "bni", draw_guard_ask, .themes = "g", .weight = 14},
    {&sql_guard_tell, "bi", draw_guard_tell, .themes = "g", .weight = 12},
    {&sql_guard_price, "i", draw_guard_price, .themes = "g", .weight = 4},
    {&sql_guard_breaker_set, "v", draw_guard_breaker_set, .themes = "g", .weight = 3},
    {&sql_guard_count, "", draw_guard_count, .affects = true, .themes = "g", .weight = 3},
    {&sql_guard_list, "bbbbmmiibm", draw_namespace_or_null, .themes = "g", .weight = 2},
};
const size_t kind_count = sizeof(kinds) / sizeof(kinds[0]);

static uint32_t weight_of(const struct kind *kind, char theme)
{
    return theme == '\0' || strchr(kind->themes, theme) ? kind->weight * 20 : kind->weight;
}

static size_t draw_kind(struct chance *chance, char theme)
{
    uint32_t all = 0, at;

    for (size_t i = 0; i < kind_count; i++) {
        all += weight_of(&kinds[i], theme);
    }
    at = chance_below(chance, all);
    for (size_t i = 0; i < kind_count; i++) {
        uint32_t weight = weight_of(&kinds[i], theme);

        if (at < weight) {
            return i;
        }
        at -= weight;
    }
    UNREACHABLE();
}

void transaction_add(struct transaction *transaction, const struct kind *kind, struct db_args *args)
{
    CHECK(transaction->count < QUERIES);
    transaction->kinds[transaction->count] = kind;
    transaction->queries[transaction->count++] = (struct db_query){.statement = kind->statement, .args = args};
}

static void add_gate(struct transaction *transaction, struct arena *arena, int gate)
{
    struct db_args *args = db_args_new(arena);

    db_arg_int4(args, GATE_CLASS);
    db_arg_int4(args, gate);
    transaction_add(transaction, &gate_kind, args);
}

void transaction_draw(struct transaction *transaction, struct arena *arena, uint64_t seed, uint32_t actor,
                      uint32_t number, int *next_gate)
{
    struct chance chance = chance_of(seed, 100 + actor, number);
    size_t count = actor == 0 ? 1 : 1 + chance_below(&chance, QUERIES / 2 - 2), drawn[QUERIES];
    bool in_order = chance_percent(&chance, 80);
    char theme = THEMES[seed % (sizeof(THEMES) - 1)];

    for (size_t i = 0; i < count; i++) {
        size_t at = i;

        drawn[at] = draw_kind(&chance, theme);
        for (size_t kind = drawn[at]; in_order && at > 0 && drawn[at - 1] > kind; at--) {
            drawn[at] = drawn[at - 1];
            drawn[at - 1] = kind;
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct db_args *args = kinds[drawn[i]].put ? db_args_new(arena) : NULL;

        if (args) {
            kinds[drawn[i]].put(args, &chance);
        }
        if (i > 0) {
            add_gate(transaction, arena, (*next_gate)++);
        }
        transaction_add(transaction, &kinds[drawn[i]], args);
    }
}
