/* Grants: tokens that a host makes for one agent, for one run or one saga. See schema/migrations/0031_grant.sql. */
#ifndef SAGAD_STORE_GRANTS_H
#define SAGAD_STORE_GRANTS_H

#include "base/digest.h"
#include "store/store.h"

struct grant_row {
    struct uuid id;
    struct digest secret;
    struct slice namespace, body;            /* body: JSON */
    struct slice revocation;                 /* JSON; SLICE_NONE: nobody has revoked it */
    int64_t made_ms, expires_ms, revoked_ms; /* revoked_ms 0: nobody has revoked it */
};

struct grant_put { /* may be made again with the same id; ERR_NOT_FOUND when its saga is not there, or has ended */
    struct store_read read;
    struct uuid id;               /* in */
    struct digest secret;         /* in: SHA-256 of the token */
    struct slice namespace, body; /* in; body: JSON */
    int64_t expires_ms;           /* in */
    struct saga_id saga;          /* in; nil: it is for a run */
    struct slice act;             /* in: JSON; SLICE_NONE: none */
    int64_t made_ms;              /* out */
};
void store_grant_put(struct store *store, struct grant_put *put);

struct grant_read { /* the grants that hold, of these, in any order */
    struct store_read read;
    const struct uuid *ids; /* in */
    size_t id_count;        /* in */
    struct grant_row *rows; /* out */
    size_t count;           /* out */
};
void store_grant_read(struct store *store, struct grant_read *grants);

struct grant_list { /* newest first */
    struct store_read read;
    struct slice namespace; /* in */
    struct uuid before;     /* in; nil: from the newest */
    bool with_ended;        /* in */
    size_t limit;           /* in */
    struct grant_row *rows; /* out */
    size_t count;           /* out */
};
void store_grant_list(struct store *store, struct grant_list *list);

struct grant_revoke { /* ERR_NOT_FOUND */
    struct store_read read;
    struct uuid id;                     /* in */
    struct slice namespace, revocation; /* in; revocation: JSON */
    struct slice issuer_token;          /* in: SHA-256 in hex of the token that made it; SLICE_NONE: whichever did */
    struct slice act;                   /* in: JSON, written unless it was revoked before; SLICE_NONE: none */
    struct grant_row *row;              /* out */
};
void store_grant_revoke(struct store *store, struct grant_revoke *revoke);

#endif
