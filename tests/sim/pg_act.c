/* Acts of people, as in migration 0028. The simulation keeps none: no invariant of the judge rests on them, and the
 * database writes them in the transaction of the change or not at all. */
#include "tests/sim/pg_statements.h"

enum pg_progress pg_statement_act_put(struct pg_call *call)
{
    for (size_t i = 0; i < arg_count(call, 0); i++) {
        pg_put_void(call);
    }
    return PG_DONE;
}

enum pg_progress pg_statement_act_define(struct pg_call *call)
{
    (void)arg_bytes(call, 0);
    return PG_DONE;
}

enum pg_progress pg_statement_act_refuse(struct pg_call *call)
{
    (void)arg_bytes(call, 0);
    pg_put_void(call);
    return PG_DONE;
}

enum pg_progress pg_statement_act_forget(struct pg_call *call)
{
    (void)arg_time_ms(call, 0);
    put_int(call, 0);
    return end_with_row(call);
}

enum pg_progress pg_statement_act_list(struct pg_call *call)
{
    (void)arg_bytes(call, 0);
    return PG_DONE;
}
