/* The rights of a token: each role may do all that the roles before it may. ROLE_NONE is for requests that need no
 * token. */
#ifndef SAGAD_BASE_ROLE_H
#define SAGAD_BASE_ROLE_H

#include "base/text.h"

#define ROLE_MAP(X)                                                                                                    \
    X(ROLE_NONE, "none")                                                                                               \
    X(ROLE_READER, "reader")                                                                                           \
    X(ROLE_AGENT, "agent")                                                                                             \
    X(ROLE_OPERATOR, "operator")                                                                                       \
    X(ROLE_ADMIN, "admin")
#define X(id, name) id,
enum role { ROLE_MAP(X) ROLE_COUNT };
#undef X

const char *role_name(enum role role);
bool role_parse(struct slice name, enum role *out); /* refuses "none" */

#endif
