/*
 * How long ended sagas are kept whose definition does not say it, open sagas and runs among them: the setting
 * --retention.
 *
 *     30d               those of every namespace
 *     30d,billing=60d  those of billing for 60 days, those of all others for 30
 *     tests=1h          those of tests for an hour, those of all others for ever
 *
 * A run never ends. It is kept for as long after its last call.
 */
#ifndef SAGAD_RUN_SAGA_RETENTION_RULES_H
#define SAGAD_RUN_SAGA_RETENTION_RULES_H

#include "base/errors.h"
#include "base/text.h"

MUST_USE enum err_code retention_rules_check(const char *rules, struct err *err); /* NULL is good: for ever */
/* The rules are good, or NULL. 0: for ever. */
int64_t retention_rules_ms(const char *rules, struct slice namespace);

#endif
