/* What the statements that ask the guards share with those that tell them. Only pg_guard*.c use this file. */
#ifndef SAGAD_TESTS_SIM_PG_GUARD_H
#define SAGAD_TESTS_SIM_PG_GUARD_H

#include "tests/sim/pg_statements.h"

int64_t guard_us(double seconds); /* make_interval(secs => seconds) */
/* Makes the key of a reservation; its slices are borrowed from the arguments. */
struct row_guard_reservation guard_reservation_key(struct pg_call *call, int operation_arg);
struct row_guard_breaker guard_breaker_key(struct pg_call *call);
enum pg_progress guard_add_to_budget(struct pg_call *call, struct pg_row *row, int64_t calls, int64_t emissions,
                                     int64_t micros, int64_t unpriced);

#endif
