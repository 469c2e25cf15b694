/* One paragraph about a saga for people: where it stands, why, and what comes next. */
#ifndef SAGAD_CORE_SHOW_EXPLAIN_H
#define SAGAD_CORE_SHOW_EXPLAIN_H

#include "core/saga/saga.h"

void explain(const struct saga *saga, int64_t now_ms, struct buffer *out);

#endif
