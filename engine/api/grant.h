/*
 * Grants: a host that may call hands one agent a token, or an address with the token in it, that is good for one run or
 * one saga. A grant is at most what its issuer is: its tools, its namespace, its time. It is good at /mcp only, where
 * it says what calls are for.
 *
 * A grant is read from the database with each request that shows it, so every engine refuses one that was revoked from
 * the next request on. It ends with its issuer, too: the token that made it is looked for with each request. A JWT is
 * in no file to look for; its grant ends no later than the JWT, and where its issuer is none of the settings any more.
 */
#ifndef SAGAD_API_GRANT_H
#define SAGAD_API_GRANT_H

#include "base/digest.h"
#include "base/id.h"
#include "base/text.h"
#include "run/engine.h"

/* A token is this prefix, then 32 hexadecimal digits of the grant's id, and 64 of its secret. */
#define GRANT_PREFIX "sagadg_"
#define GRANT_TOKEN_BYTES (sizeof(GRANT_PREFIX) + 32 + 64)

struct api;
struct api_request;

struct grant { /* a grant that one request shows; it lives in the arena of the request */
    struct uuid id;
    char id_text[UUID_TEXT_BYTES];
    struct digest secret;          /* the secret of the token that was shown */
    struct slice run, scope, turn; /* SLICE_NONE: it says nothing of it */
    bool has_saga;
    struct saga_id saga;
    struct slice tools;           /* JSON array of names; SLICE_NONE: all that its issuer may call */
    int64_t expires_ms, found_ms; /* the latter by the boot-time clock */
    bool holds;                   /* it was found, and its issuer */
    bool by_jwt;                  /* it was made by a JWT, and ends no later */
    bool is_over;                 /* it was revoked since, as far as this engine has heard */
    void (*then)(struct api_request *request);
};

/* --- the token --- */

void grant_token_make(const struct uuid *id, char out[GRANT_TOKEN_BYTES]);

/* --- a request that shows a grant (grant_use.c) --- */

/* Does the request show a grant, in its path or as its bearer token? */
bool grant_is_shown(const struct api_request *request);
/* Notes the grant. False: it was answered, because no grant can have this token, or none is good at this route. */
bool grant_note(struct api_request *request);
/* Finds the grant that was noted, which asks the database; then the request has its namespace and its actor, and `then`
 * goes on. Or answers. */
void grant_find(struct api_request *request, void (*then)(struct api_request *request));
/* Was it found so lately that it need not be asked for again? */
bool grant_is_fresh(const struct api_request *request);
bool grant_is_over(const struct api_request *request);
/* May this be called: a tool by the names that clients see and that it was registered under (SLICE_NONE: none)? */
bool grant_has_tool(const struct grant *grant, struct slice name, struct slice definition);

/* Looks now and then whether the grants of requests that wait still hold. */
struct grant_watch;
struct grant_watch *grant_watch_new(struct api *api);
void grant_watch_free(struct grant_watch *watch);
void grant_watch_begin(struct grant_watch *watch); /* somebody waits */
/* This grant was revoked: whoever waits by it waits no more. */
void grant_ended(struct api *api, const struct uuid *id);

/* Is the token that made the grant still there, with the rights that the grant has? */
bool grant_has_issuer(const struct api *api, const struct engine_grant *grant);

#endif
