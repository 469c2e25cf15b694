/* The command `sagad mcp-tools`: asks a server of the Model Context Protocol for its tools and drafts definitions of
 * them. */
#ifndef SAGAD_MCP_TOOLS_H
#define SAGAD_MCP_TOOLS_H

/* argv[0] is the word "mcp-tools". The exit code: 0 printed, 1 the server gave no list, 2 wrong usage. */
int mcp_tools(int argc, char **argv);

#endif
