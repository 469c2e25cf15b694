/*
 * Secrets by name: from a file and from SAGAD_SECRET_NAME variables. Resolved at call time only; never stored, logged
 * or shown.
 *
 * A secret belongs to a namespace: "b/bank" in the file is the secret "bank" of the namespace "b". A name without one
 * belongs to the namespace "default", and so does what the environment holds. The variables are read once and wiped, so
 * that no program that is started inherits them and nobody reads them in /proc.
 */
#ifndef SAGAD_RUN_CALL_SECRETS_H
#define SAGAD_RUN_CALL_SECRETS_H

#include "base/arena.h"
#include "base/errors.h"

struct secrets {
    struct arena arena;
    struct slice file; /* checked JSON object of texts; SLICE_NONE: no file */
    struct secret_variable {
        struct slice name, text;
    } * variables; /* the variables of the environment, without SAGAD_SECRET_ */
    size_t variable_count;
};

MUST_USE enum err_code secrets_load(struct secrets *secrets, const char *path, struct err *err); /* path may be NULL */
void secrets_fini(struct secrets *secrets);
/* The text as a JSON string in the arena; SLICE_NONE when the namespace has no such secret. The file goes before the
 * environment. */
struct slice secrets_json(const struct secrets *secrets, struct slice namespace, struct slice name,
                          struct arena *arena);

#endif
