/* sagad itself has no fixtures. The program for the conformance suite has a table of its own in this one's place. */
#include "api/mcp/fixtures.h"

const struct mcp_fixtures mcp_fixtures = {0};
