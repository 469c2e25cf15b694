/* Requests that show a JWT of the issuer as their bearer token (oidc.h). */
#ifndef SAGAD_API_JWT_USE_H
#define SAGAD_API_JWT_USE_H

#include "api/oidc.h"

struct api_request;

/* Notes the JWT and, where its key is known, whose it is. False: it was answered, because nobody has it. */
bool jwt_note(struct api_request *request, struct slice text);
/* Is its key not known yet? Then the request has no rights before jwt_find(). */
bool jwt_waits(const struct api_request *request);
/* Has its key looked for, before the body is read or while its request is handled; then the request has the rights of
 * the JWT, and `then` goes on, or it is answered. False: it was answered at once, because too much is looked for. */
bool jwt_find(struct api_request *request, void (*then)(struct api_request *request));
/* NULL: the request shows none, it waits, or it has expired. */
const struct token *jwt_token(const struct api_request *request);
struct slice jwt_text(const struct api_request *request); /* SLICE_NONE: the request shows none */

#endif
