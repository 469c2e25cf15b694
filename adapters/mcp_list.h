/*
 * Lists the tools of a server of the Model Context Protocol, page by page, over the sessions and processes of the
 * adapter `mcp`. This adapter is not in the table of adapters, so no definition can name it. `sagad mcp-tools` begins
 * its calls.
 */
#ifndef SAGAD_ADAPTERS_MCP_LIST_H
#define SAGAD_ADAPTERS_MCP_LIST_H

#include "adapters/adapter.h"

/*
 * The settings are {"server": as for `mcp`, "cursor": TEXT}; the first page has no cursor. The `result` of the response
 * is the unchecked answer of the server: {"tools": [...], "nextCursor": TEXT}.
 */
extern const struct adapter adapter_mcp_list;

#endif
