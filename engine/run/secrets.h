/* Secrets by name: from a file and from SAGAD_SECRET_NAME variables. Resolved at call time only; never stored, logged or shown. */
#ifndef SAGAD_RUN_SECRETS_H
#define SAGAD_RUN_SECRETS_H

#include "base/arena.h"
#include "base/errors.h"

struct secrets {
    struct arena arena;
    struct slice file; /* checked JSON object of texts; SLICE_NONE: no file */
};

MUST_USE enum err_code secrets_load(struct secrets *secrets, const char *path, struct err *err); /* path may be NULL */
void secrets_fini(struct secrets *secrets);
/* The text as a JSON string in the arena; SLICE_NONE when there is no such secret. The file goes before the environment. */
struct slice secrets_json(const struct secrets *secrets, struct slice name, struct arena *arena);

#endif
