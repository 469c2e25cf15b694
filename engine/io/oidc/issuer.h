/*
 * An issuer of OpenID Connect: its keys, read over HTTP, and the JWTs that it has signed.
 *
 * The keys are found by discovery (URL/.well-known/openid-configuration names them), are read again every ten minutes,
 * and at once when a token names a key that is not known; how often that may happen is bounded, because anybody may
 * send such a token. While the issuer is away, the keys as they were still hold.
 */
#ifndef SAGAD_IO_OIDC_ISSUER_H
#define SAGAD_IO_OIDC_ISSUER_H

#include "io/http/egress.h"
#include "io/loop/loop.h"
#include "io/oidc/jwt.h"

struct issuer;

struct issuer_options { /* borrowed as long as the issuer lives */
    const char *url;    /* what "iss" says, to the letter */
    const char *audience;
    const struct egress *egress; /* the addresses that may be asked; copied. NULL: as a zeroed one */
};

/* ERR_CONFIG: the URL is neither https nor http on loopback, or the audience is missing. Asks nobody. */
MUST_USE enum err_code issuer_check(const struct issuer_options *options, struct err *err);
struct issuer *issuer_open(struct loop *loop, const struct issuer_options *options); /* begins to read the keys */
void issuer_refresh(struct issuer *issuer);                                          /* reads the keys again, soon */
/* The time since the keys were last read, or since the issuer was opened. */
int64_t issuer_age_ms(const struct issuer *issuer);
/* Nobody may be asking. `closed` is called later, once. */
void issuer_close(struct issuer *issuer, void (*closed)(void *context), void *context);

struct issuer_asking {
    /* in */
    struct slice token; /* borrowed until done */
    struct arena *arena;
    void (*done)(struct issuer_asking *asking); /* the end of issuer_wait() */

    /* out */
    enum err_code code; /* ERR_OK: the issuer has signed it, and it is good now */
    struct err err;
    int64_t retry_after_ms; /* where a later try can help */
    struct slice claims;    /* with ERR_OK: JSON, in the arena */
    int64_t expires_ms;     /* when it stops being accepted */
    struct list_link link;
};

/* Judges the token by the keys that are known. False: it names a key that is not, and the keys have to be read first.
 */
bool issuer_judge(struct issuer *issuer, struct issuer_asking *asking);
/* Has the keys read, then judges; `done` follows, never at once. False: it does not, because the keys may not be read
 * again yet, or too many wait; `code` and `err` are set. */
bool issuer_wait(struct issuer *issuer, struct issuer_asking *asking);
void issuer_forget(struct issuer *issuer, struct issuer_asking *asking); /* `done` does not follow */

#endif
