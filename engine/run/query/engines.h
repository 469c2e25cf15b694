/* The JSON of the engines on a database: `GET /v1/engines`, and `sagactl doctor` that looks at a database itself. */
#ifndef SAGAD_RUN_QUERY_ENGINES_H
#define SAGAD_RUN_QUERY_ENGINES_H

#include "base/json.h"
#include "store/store.h"

void engines_write(struct json_writer *w, const struct list_engines *list);

#endif
