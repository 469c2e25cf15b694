/*
 * What the shop knows: reservations, charges, refunds, mails and tags. It lives in memory and is rebuilt from the
 * ledger; books_apply() is the only function that changes it, live and on restart.
 *
 * A body may carry "request": the name of what a customer wanted, whoever sends it and however often. Effects are
 * counted by it, beside the count by idempotency key, so that two keys for one wish show too.
 *
 * Not thread-safe: the shop holds its one lock around every call.
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
    X(ENTRY_VOID, "void", "vd") /* a key that was called off before it came */

#define X(id, name, prefix) id,
enum entry_kind { ENTRY_MAP(X) ENTRY_KIND_COUNT };
#undef X

const char *entry_kind_name(enum entry_kind kind);
bool entry_kind_parse(struct slice name, enum entry_kind *out);

/* The routes that do something, and the reads. Names are used by fault rules. */
#define ROUTE_MAP(X)                                                                                                   \
    X(ROUTE_RESERVATIONS, "reservations")                                                                              \
    X(ROUTE_RELEASES, "releases")                                                                                      \
    X(ROUTE_CHARGES, "charges")                                                                                        \
    X(ROUTE_REFUNDS, "refunds")                                                                                        \
    X(ROUTE_MAILS, "mails")                                                                                            \
    X(ROUTE_TAGS, "tags")                                                                                              \
    X(ROUTE_UNTAGS, "untags")                                                                                          \
    X(ROUTE_PROBES, "probes")       /* every GET of a thing, by id or by key */                                        \
    X(ROUTE_SHIPMENTS, "shipments") /* a read that is never twice the same */                                          \
    X(ROUTE_PRICES, "prices")       /* a read that always is */                                                        \
    X(ROUTE_REQUESTS, "requests")   /* what was done and undone for one request */

#define X(id, name) id,
enum route { ROUTE_MAP(X) ROUTE_COUNT };
#undef X

const char *route_name(enum route route);

struct books_request {
    enum route route;
    enum entry_kind kind; /* of the thing that is made or looked up */
    struct slice key;     /* SLICE_NONE without an Idempotency-Key */
    struct slice target;  /* id, key or name in the path; SLICE_NONE on POST */
    bool target_is_key;
    struct slice body; /* checked JSON, or empty */
    uint64_t number;   /* of the request, counted since the ledger began */
};

struct books_answer {
    unsigned status;
    bool effect; /* something changes: an entry of `kind` with `id` */
    enum entry_kind kind;
    char id[BOOKS_ID_BYTES];
    struct slice body; /* JSON, in the arena */
    struct slice
        request; /* whose wish it was; of what is undone, the one it was made for; SLICE_NONE where nobody said */
};

struct books {
    bool ignore_keys;   /* every request is a new effect */
    bool ignore_voids;  /* a key that was called off is served all the same when it comes */
    bool no_status;     /* nothing can be looked up by its key */
    int64_t forget_ms;  /* a key is forgotten that long after it came; 0: never */
    int64_t now_ms;     /* when the request came that is decided or applied; the shop sets it */
    struct arena arena; /* things live as long as the shop */
    struct map by_id, by_key, by_tag, by_request;
    uint64_t entries; /* effects so far: the next id */
    struct {
        int64_t reserved, released, reserved_units, standing_units;
        int64_t charges, refunds, charged, refunded, mails, voided, tags;
    } sum;
};

void books_init(struct books *books, bool ignore_keys);
void books_fini(struct books *books);

/* What the answer to this request is, and whether it has an effect. Changes nothing. */
void books_decide(const struct books *books, const struct books_request *request, struct arena *arena,
                  struct books_answer *answer);

/* Make the effect of an answer true; also called for each effect that the ledger tells of. */
void books_apply(struct books *books, enum entry_kind kind, struct slice id, struct slice key, struct slice target,
                 struct slice body);

void books_write_summary(const struct books *books, struct buffer *out);

#endif
