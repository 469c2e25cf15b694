/*
 * Bearer tokens: who asks, in which namespace, with which role. Kept as SHA-256 only; compared in constant time.
 *
 * The file: {"tokens": [{"name", "sha256" | "certificate", "namespace" | "namespaces", "role", "tools"?,
 * "expires_at"?}]}; `sagactl token new` makes a row. A row with "certificate" is for client certificates with that
 * name: "DNS:NAME", "URI:URI" or "email:ADDRESS" of their subject alternative names.
 */
#ifndef SAGAD_API_AUTH_H
#define SAGAD_API_AUTH_H

#include "base/arena.h"
#include "base/digest.h"
#include "base/errors.h"
#include "base/role.h"

/* The tools of a token: names, or the beginnings of names with "*" behind them. */
struct token_tools {
    const struct slice *items;
    size_t count; /* 0: it is not bound to tools */
};

struct token {
    struct slice name;
    struct slice namespace;         /* where its requests are when they name none: the first of its namespaces */
    const struct slice *namespaces; /* at least one */
    size_t namespace_count;
    enum role role;
    struct digest digest;
    int64_t expires_ms; /* 0: never */
    struct token_tools tools;
    bool is_certificate; /* the digest is of the name of a certificate: no text that is shown is this token */
};

struct tokens {
    struct arena arena;
    struct token *items;
    size_t count;
};

/* `text` is the content of the file. ERR_CONFIG with every fault of it in the detail (as many as fit). Accepts a zeroed
 * `out`. */
MUST_USE enum err_code tokens_parse(struct slice text, struct tokens *out, struct err *err);
/* ERR_CONFIG also for a file that others than its owner may write: they could make themselves admins. */
MUST_USE enum err_code tokens_load(const char *path, struct tokens *out, struct err *err);
void tokens_fini(struct tokens *tokens);
/* NULL when there is none, or it has expired. Looks at every token, whatever matches. */
const struct token *tokens_find(const struct tokens *tokens, const struct digest *digest, int64_t now_ms);
bool token_tools_have(const struct token_tools *tools, struct slice name);
bool token_tools_equal(const struct token_tools *a, const struct token_tools *b);
struct token_tools token_tools_copy(const struct token_tools *tools, struct arena *arena);
/* The digest of the row of certificates with this name. */
struct digest token_certificate_digest(struct slice name);
/* 1 to 128 printable characters without spaces; a namespace is not "*" either, which stands for all of them. */
bool token_name_is_good(struct slice name);
bool token_namespace_is_good(struct slice name);
/* May the token act in this namespace? An admin of the namespace "*" may act in each. */
bool token_has_namespace(const struct token *token, struct slice namespace);

#endif
