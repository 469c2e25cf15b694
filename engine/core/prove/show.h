/* A proof as JSON, for the API and for sagactl. */
#ifndef SAGAD_CORE_PROVE_SHOW_H
#define SAGAD_CORE_PROVE_SHOW_H

#include "base/json.h"
#include "core/prove/prove.h"

/*
 * Writes {"saga", "ok", "violations", "covered", "ends"}. An end says what goes wrong, how that is settled and how the
 * saga ends: "happens" and "then" by name, "what" and "settled" in words.
 */
void prove_write(struct json_writer *w, struct slice saga, const struct prove_report *report);

#endif
