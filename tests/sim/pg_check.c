/* The questions that a server is asked first. This server gives the answers of a good one. */
#include "store/migrate.h"
#include "tests/sim/pg_statements.h"

enum pg_progress pg_statement_check_server(struct pg_call *call)
{
    put_int(call, pg_own_pid(call));
    put_int(call, pg_own_started_us(call));
    put_bytes(call, SLICE("on"));
    put_bytes(call, SLICE("on"));
    put_bytes(call, SLICE("on"));
    put_int(call, false); /* a standby takes no sessions here */
    put_int(call, pg_timeline(call));
    put_bytes(call, SLICE("off"));
    put_bytes(call, SLICE("sagad"));
    put_int(call, true);
    put_int(call, true);
    put_null(call);
    put_int(call, false);
    put_int(call, 0);
    put_int(call, false);
    return end_with_row(call);
}

enum pg_progress pg_statement_check_schema(struct pg_call *call)
{
    put_int(call, migrate_newest());
    put_int(call, pg_own_pid(call));
    return end_with_row(call);
}

enum pg_progress pg_statement_check_transaction(struct pg_call *call)
{
    put_int(call, pg_tx(call));
    put_int(call, pg_own_pid(call));
    return end_with_row(call);
}

enum pg_progress pg_statement_database_facts(struct pg_call *call)
{
    put_int(call, -pg_left_ms(call, 0)); /* the time left until 1970 */
    put_bytes(call, SLICE("15.14"));
    put_int(call, pg_timeline(call));
    put_int(call, migrate_newest());
    put_bytes(call, SLICE("on"));
    put_bytes(call, SLICE("on"));
    put_bytes(call, SLICE("on"));
    put_bytes(call, SLICE(""));
    put_int(call, 97);
    put_int(call, 1);
    put_int(call, 0);
    put_null(call);
    put_int(call, 0);
    return end_with_row(call);
}

static bool is_backend(int pid, int64_t started_us, const char *application_name, void *context)
{
    struct pg_call *call = context;

    (void)application_name;
    return pid == arg_int(call, 0) && started_us == arg_int(call, 1);
}

enum pg_progress pg_statement_end_backend(struct pg_call *call)
{
    put_int(call, (int64_t)pg_end_sessions(call, is_backend, call));
    return end_with_row(call);
}
