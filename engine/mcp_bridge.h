/* The command `sagad mcp`: a server of the Model Context Protocol over standard input and output, for hosts that only
 * start programs. Every message goes to the endpoint of a service, and its answer comes back. */
#ifndef SAGAD_MCP_BRIDGE_H
#define SAGAD_MCP_BRIDGE_H

/* argv[0] is the word "mcp". The exit code: 0 standard input has ended, 1 it cannot be read, 2 wrong usage. */
int mcp_bridge(int argc, char **argv);

#endif
