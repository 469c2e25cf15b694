/* What a program that is built for the conformance suite answers beside sagad: tests/conformance/fixtures.c. */
#ifndef SAGAD_API_MCP_FIXTURES_H
#define SAGAD_API_MCP_FIXTURES_H

#include <stdbool.h>
#include <stdint.h>

struct mcp_exchange;

struct mcp_fixtures {
    int64_t wait_ms, progress_ms; /* for api_options: 0: as in sagad */
    /* NULL, or whether it has answered a message that is good in its revision. */
    bool (*answer)(struct mcp_exchange *exchange);
};
extern const struct mcp_fixtures mcp_fixtures;

#endif
