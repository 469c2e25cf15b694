/*
 * Where notifications go, from a file of settings (--notify):
 *
 *     {"notify": [{"name", "namespace"?, "url", "secrets": [NAME, ...], "events"?: [TYPE, ...],
 *                  "timeout"?: "10s", "give_up_after"?: "3d"}]}
 *
 * Each line is one receiver of the events of one namespace. `secrets` are names of secrets of that namespace
 * (--secrets); each of them signs, so that a receiver can change its secret while another one still holds. All engines
 * should be given the same file.
 */
#ifndef SAGAD_RUN_NOTIFY_TARGETS_H
#define SAGAD_RUN_NOTIFY_TARGETS_H

#include "run/call/secrets.h"

#define NOTIFY_TARGETS_MAX 64
#define NOTIFY_SECRETS_MAX 4

struct notify_target {
    struct slice name, namespace, url;
    struct slice events; /* types with commas between; SLICE_NONE: all */
    struct slice secrets[NOTIFY_SECRETS_MAX];
    size_t secret_count; /* at least 1 */
    int64_t timeout_ms;  /* the timeout of one attempt */
    int64_t give_up_ms;  /* an event that was not delivered for so long becomes a dead letter */
};

struct notify_targets {
    struct arena arena;
    struct notify_target *items;
    size_t count;
};

/* `path` may be NULL. */
MUST_USE enum err_code notify_targets_load(struct notify_targets *targets, const char *path, struct err *err);
MUST_USE enum err_code notify_targets_parse(struct notify_targets *targets, struct slice text, struct err *err);
/* Is there a secret of each name, of which a signature can be made? */
MUST_USE enum err_code notify_targets_check(const struct notify_targets *targets, const struct secrets *secrets,
                                            struct err *err);
void notify_targets_fini(struct notify_targets *targets);

#endif
