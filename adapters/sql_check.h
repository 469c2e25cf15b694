/* Checks the settings of the adapter sql at registration, compares them, and looks for the barrier in them. */
#ifndef SAGAD_ADAPTERS_SQL_CHECK_H
#define SAGAD_ADAPTERS_SQL_CHECK_H

#include "adapters/adapter.h"

void sql_check(struct slice settings, struct slice pointer, enum key_place place, struct faults *faults);
bool sql_has_barrier(struct slice settings);
bool sql_shares_keys(struct slice undone, struct slice settings); /* see adapter.h */

#endif
