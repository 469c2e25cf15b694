/* The statements of differential.h that read whole tables. */
#ifndef SAGAD_TESTS_SIM_DIFFERENTIAL_DUMP_H
#define SAGAD_TESTS_SIM_DIFFERENTIAL_DUMP_H

#include "tests/sim/differential.h"

extern const struct db_statement sql_gate; /* waits for an advisory lock until the end of the transaction */
extern const struct db_statement old_key;  /* writes a key as engines of the previous schema did */
extern const struct db_statement dump_saga, dump_log, dump_operation_key, dump_key_bundle, dump_inbox, dump_awake,
    dump_due, dump_answer, dump_escalation, dump_approval, dump_number_gone, dump_lock, dump_guard, dump_guard_place,
    dump_guard_breaker, dump_guard_budget, dump_guard_reservation, dump_schedule, dump_series, dump_hold,
    dump_engine_holds, dump_bulk, dump_bulk_item, dump_case_event, dump_event_gone, dump_case_remark, dump_debt_settled,
    dump_event, dump_notify, dump_notification, dump_grant;

#endif
