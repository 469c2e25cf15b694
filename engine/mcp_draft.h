/*
 * A definition document as a draft, made of what a server of the Model Context Protocol says of its tools. What is
 * printed passes `sagactl check`; whether it is true is for a person to decide, and the notes on stderr say what to
 * look at.
 */
#ifndef SAGAD_MCP_DRAFT_H
#define SAGAD_MCP_DRAFT_H

#include "base/arena.h"
#include "base/errors.h"

#define MCP_DRAFT_TOOLS_MAX 1000 /* the tools that one document takes */

struct mcp_draft {
    struct arena *arena;
    struct slice server; /* JSON: `server` as the definitions have it */
    struct slice prefix; /* the prefix of the names; may be empty */
    struct slice names[MCP_DRAFT_TOOLS_MAX];
    struct slice tools[MCP_DRAFT_TOOLS_MAX]; /* JSON */
    size_t count;
    size_t offered; /* with those left out */
    bool suggests_once;
};

/* One element of `tools`, as the server gave it. Prints a line on stderr: what is suggested and why, or why it is left
 * out. */
void mcp_draft_add(struct mcp_draft *draft, struct slice offered);

/* The whole document on stdout. An error: nothing was printed. */
MUST_USE enum err_code mcp_draft_print(const struct mcp_draft *draft, struct err *err);

#endif
