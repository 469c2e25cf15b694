/* The adapters that are compiled in; only adapters.c and the adapters themselves need their names. */
#ifndef SAGAD_ADAPTERS_ADAPTERS_H
#define SAGAD_ADAPTERS_ADAPTERS_H

#include "adapters/adapter.h"

extern const struct adapter adapter_http;
extern const struct adapter adapter_exec;
extern const struct adapter adapter_sql;
extern const struct adapter adapter_mcp;
extern const struct adapter adapter_builtin;

#endif
