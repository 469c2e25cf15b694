/* Errors as RFC 9457 problem details: type, title, status, detail, retryable, errors. */
#ifndef SAGAD_API_PROBLEM_H
#define SAGAD_API_PROBLEM_H

#include "base/errors.h"
#include "io/http/server.h"

#define PROBLEM_TYPE_PREFIX "urn:sagad:problem:"

struct problem_more {                          /* what a problem may carry beside its sentence; each may be absent */
    const struct faults *faults;               /* `errors` */
    struct slice operation, pointers, pattern; /* JSON, members of these names */
    struct slice cursor;                       /* text, a member of this name: where to go on */
    struct slice challenge;                    /* the WWW-Authenticate of a 401; SLICE_NONE: the usual one */
    int64_t retry_after_ms;                    /* 0: what the code calls for */
};

/* The JSON text, in the arena. `more` may be NULL. */
struct slice problem_text(const struct err *err, const struct problem_more *more, struct arena *arena);
/* Seconds after which asking again makes sense; 0: no time would help. `more` may be NULL. */
int64_t problem_retry_after_s(const struct err *err, const struct problem_more *more);
/* Answers with it, and with the headers its code calls for (WWW-Authenticate, Retry-After). */
void problem_respond(struct http_exchange *exchange, const struct err *err, const struct problem_more *more);

#endif
