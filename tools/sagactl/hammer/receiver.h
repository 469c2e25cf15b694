/*
 * Where the calls of `sagactl hammer` go. Definitions name the receivers of production; what a user names takes their
 * place, and what has no such place is not called. A program is the exception: nobody can tell what it reaches, so the
 * user has to say that programs may run.
 */
#ifndef SAGACTL_HAMMER_RECEIVER_H
#define SAGACTL_HAMMER_RECEIVER_H

#include "base/arena.h"
#include "base/text.h"

struct receiver {
    struct slice http;     /* replaces scheme, host and port of URLs; without a slash at its end. SLICE_NONE: none */
    struct slice database; /* replaces `database`: postgresql://...; SLICE_NONE: none */
    bool programs;         /* programs may run on this machine */
};

enum reach { REACH_NOTHING, REACH_HTTP, REACH_DATABASE, REACH_PROGRAM };

/* What does a tool with these settings reach? They are those of the definition, with their templates. */
enum reach receiver_reach(struct slice adapter, struct slice settings);
bool receiver_has(const struct receiver *receiver, enum reach reach);

/* Gives the rendered settings with this receiver; SLICE_NONE: `fault` says what they have no place for. */
struct slice receiver_put(const struct receiver *receiver, struct slice adapter, struct slice settings,
                          struct arena *arena, const char **fault);
/* Returns `url` with the scheme, host and port of `against`; SLICE_NONE: it is no URL of HTTP. */
struct slice receiver_url(struct slice url, struct slice against, struct arena *arena);

/* For people; without the user and the password of a database. */
struct slice receiver_text(const struct receiver *receiver, struct arena *arena);

#endif
