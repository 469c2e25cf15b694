/*
 * The tools that a server of the Model Context Protocol says it has, page by page, by the sessions and processes of the
 * adapter `mcp`. It is not in the table of adapters, so no definition can name it: `sagad mcp-tools` begins its calls.
 */
#ifndef SAGAD_ADAPTERS_MCP_LIST_H
#define SAGAD_ADAPTERS_MCP_LIST_H

#include "adapters/adapter.h"

/*
 * The settings are {"server": as for `mcp`, "cursor": TEXT}, the cursor left out for the first page. The `result` of
 * the response is what the server answered: {"tools": [...], "nextCursor": TEXT}, unchecked.
 */
extern const struct adapter adapter_mcp_list;

#endif
