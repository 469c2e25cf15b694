/* Errors as RFC 9457 problem details: type, title, status, detail, retryable, errors. */
#ifndef SAGAD_API_PROBLEM_H
#define SAGAD_API_PROBLEM_H

#include "base/errors.h"
#include "io/http_server.h"

#define PROBLEM_TYPE_PREFIX "urn:sagad:problem:"

/* The JSON text, in the arena. `faults` may be NULL. */
struct slice problem_text(const struct err *err, const struct faults *faults, struct arena *arena);
/* Answers with it, and with the headers its code calls for (WWW-Authenticate, Retry-After). */
void problem_respond(struct http_exchange *exchange, const struct err *err, const struct faults *faults);

#endif
