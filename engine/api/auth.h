/*
 * Bearer tokens: who asks, in which namespace, with which role. Kept as SHA-256 only; compared in constant time.
 *
 * The file: {"tokens": [{"name", "sha256", "namespace", "role", "expires_at"?}]}; `sagactl token new` makes a row.
 */
#ifndef SAGAD_API_AUTH_H
#define SAGAD_API_AUTH_H

#include "base/arena.h"
#include "base/digest.h"
#include "base/errors.h"

/* Each role may do all that the ones before it may. ROLE_NONE is for what needs no token. */
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
bool role_parse(struct slice name, enum role *out); /* not "none" */

struct token {
    struct slice name, namespace;
    enum role role;
    struct digest digest;
    int64_t expires_ms; /* 0: never */
};

struct tokens {
    struct arena arena;
    struct token *items;
    size_t count;
};

/* `text` is the content of the file. ERR_CONFIG with every fault of it in the detail (as many as fit). Accepts a zeroed
 * `out`. */
MUST_USE enum err_code tokens_parse(struct slice text, struct tokens *out, struct err *err);
MUST_USE enum err_code tokens_load(const char *path, struct tokens *out, struct err *err);
void tokens_fini(struct tokens *tokens);
/* NULL when there is none, or it has expired. Looks at every token, whatever matches. */
const struct token *tokens_find(const struct tokens *tokens, struct slice text, int64_t now_ms);

#endif
