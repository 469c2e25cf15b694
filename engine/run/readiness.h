/* What an engine needs to be ready, and what keeps it from being so. See readiness.c. */
#ifndef SAGAD_RUN_READINESS_H
#define SAGAD_RUN_READINESS_H

#include "run/engine_state.h"

struct readiness *readiness_new(struct engine *engine);
void readiness_free(struct readiness *readiness);
void readiness_watch(struct engine *engine, struct store_options *options); /* fills in its callbacks */
void readiness_stop(struct engine *engine); /* the store is closed, and says nothing more of the database */

bool engine_has_database(const struct engine *engine);      /* it is connected */
bool engine_knows_definitions(const struct engine *engine); /* definitions have been read once */
void engine_reload_definitions(struct engine *engine);
void engine_start_leases(struct engine *engine); /* as soon as definitions and holds are known */
void engine_check_ready(struct engine *engine);
/* The database has answered within a lease: what is here may be shown, and new work be taken. */
bool engine_is_current(const struct engine *engine);
/* Why this engine takes no work now: of what keeps it from being ready. */
void engine_reason(const struct engine *engine, struct err *err);

#endif
