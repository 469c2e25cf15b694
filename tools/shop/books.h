/*
 * What the shop knows: reservations, charges, refunds, mails and tags. The books live in memory and are rebuilt from
 * the ledger. Only books_apply() changes them, in normal work and on a restart.
 *
 * A body may carry "request": the name of what a customer wanted, whoever sends the body and however often. The shop
 * counts effects by it, beside the count by idempotency key. So two keys for one wish show too.
 *
 * The books are not thread-safe: the shop holds its one lock around every call.
 */
#ifndef SHOP_BOOKS_H
#define SHOP_BOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/digest.h"
#include "base/map.h"
#include "base/text.h"

#define BOOKS_ID_BYTES 32

/*  id                   in the ledger   prefix of its ids */
#define ENTRY_MAP(X)                                                                                                   \
    X(ENTRY_NONE, "", "")                                                                                              \
    X(ENTRY_RESERVATION, "reserve", "rs")                                                                              \
    X(ENTRY_RELEASE, "release", "rl")                                                                                  \
    X(ENTRY_CHARGE, "charge", "ch")                                                                                    \
    X(ENTRY_REFUND, "refund", "rf")                                                                                    \
    X(ENTRY_MAIL, "mail", "ml")                                                                                        \
    X(ENTRY_TAG, "tag", "tg")                                                                                          \
    X(ENTRY_UNTAG, "untag", "ut")                                                                                      \
    X(ENTRY_VOID, "void", "vd") /* a key that was called off before its request came */

#define X(id, name, prefix) id,
enum entry_kind { ENTRY_MAP(X) ENTRY_KIND_COUNT };
#undef X

const char *entry_kind_name(enum entry_kind kind);
bool entry_kind_parse(struct slice name, enum entry_kind *out);

/* The routes that change something, and the reads. Fault rules use these names. */
#define ROUTE_MAP(X)                                                                                                   \
    X(ROUTE_RESERVATIONS, "reservations")                                                                              \
    X(ROUTE_RELEASES, "releases")                                                                                      \
    X(ROUTE_CHARGES, "charges")                                                                                        \
    X(ROUTE_REFUNDS, "refunds")                                                                                        \
    X(ROUTE_MAILS, "mails")                                                                                            \
    X(ROUTE_TAGS, "tags")                                                                                              \
    X(ROUTE_UNTAGS, "untags")                                                                                          \
    X(ROUTE_PROBES, "probes")       /* every GET of a thing by id or by key */                                         \
    X(ROUTE_SHIPMENTS, "shipments") /* a read whose answers always differ */                                           \
    X(ROUTE_PRICES, "prices")       /* a read whose answers are always the same */                                     \
    X(ROUTE_REQUESTS, "requests")   /* a read of what was done and undone for one request */

#define X(id, name) id,
enum route { ROUTE_MAP(X) ROUTE_COUNT };
#undef X

const char *route_name(enum route route);

struct books_request {
    enum route route;
    enum entry_kind kind; /* kind of the thing that is made or looked up */
    struct slice key;     /* SLICE_NONE: the request has no Idempotency-Key */
    struct slice target;  /* id, key or name in the path; SLICE_NONE on POST */
    bool target_is_key;
    struct slice body; /* checked JSON, or empty */
    uint64_t number;   /* the number of the request, counted since the ledger began */
};

struct books_answer {
    unsigned status;
    bool effect; /* the request changes something: an entry of `kind` with `id` */
    enum entry_kind kind;
    char id[BOOKS_ID_BYTES];
    struct slice body; /* JSON, in the arena */
    struct slice
        request; /* the customer's request; of an undo, the request of what is undone; SLICE_NONE: none was given */
};

struct books {
    bool ignore_keys;   /* every request is a new effect */
    bool ignore_voids;  /* a key that was called off is served all the same */
    bool no_status;     /* nothing can be looked up by its key */
    int64_t forget_ms;  /* how long the shop remembers a key; 0: for ever */
    int64_t now_ms;     /* the arrival of the request that is decided or applied; the shop sets it */
    struct arena arena; /* memory of the things, which live as long as the shop */
    struct map by_id, by_key, by_tag, by_request;
    uint64_t entries; /* the number of effects so far: the next id */
    struct {
        int64_t reserved, released, reserved_units, standing_units;
        int64_t charges, refunds, charged, refunded, mails, voided, tags;
    } sum;
};

void books_init(struct books *books, bool ignore_keys);
void books_fini(struct books *books);

/* Decides the answer to this request, and whether it has an effect. Changes nothing. */
void books_decide(const struct books *books, const struct books_request *request, struct arena *arena,
                  struct books_answer *answer);

/* Makes the effect of an answer true. The shop also calls it for each effect in the ledger when it starts. */
void books_apply(struct books *books, enum entry_kind kind, struct slice id, struct slice key, struct slice target,
                 struct slice body);

void books_write_summary(const struct books *books, struct buffer *out);

#endif
