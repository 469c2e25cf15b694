/*
 * The one table of error codes: name in problem documents, HTTP status, exit code of sagactl, whether a retry can help.
 *
 * An error is a sentence in three parts. Message: what did not work. Detail: the facts. Hint: what the reader can do.
 */
#ifndef SAGAD_BASE_ERRORS_H
#define SAGAD_BASE_ERRORS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/text.h"

/*  code               name in "type"            title                                      HTTP exit retryable */
#define ERR_MAP(X)                                                                                                     \
    X(ERR_OK, "ok", "No error", 200, 0, false)                                                                         \
    X(ERR_MALFORMED, "malformed", "The request cannot be read", 400, 1, false)                                         \
    X(ERR_UNAUTHENTICATED, "unauthenticated", "A valid token is required", 401, 5, false)                              \
    X(ERR_FORBIDDEN, "forbidden", "The role of this token does not allow it", 403, 5, false)                           \
    X(ERR_NOT_FOUND, "not-found", "There is no such thing", 404, 3, false)                                             \
    X(ERR_METHOD, "method-not-allowed", "This method is not known here", 405, 2, false)                                \
    X(ERR_CONFLICT, "conflict", "The state does not allow it", 409, 4, false)                                          \
    X(ERR_DECIDED, "already-decided", "Somebody decided this before", 409, 4, false)                                   \
    X(ERR_PAST_RETURN, "past-point-of-no-return", "A step that cannot be undone has completed", 409, 4, false)         \
    X(ERR_ENDED, "ended", "The saga has ended", 409, 4, false)                                                         \
    X(ERR_TAKEN, "id-taken", "This business id belongs to another saga", 409, 4, false)                                \
    X(ERR_IN_FLIGHT, "in-flight", "The same operation is under way", 409, 7, true)                                     \
    X(ERR_CALL_OUT, "call-under-way", "A call of this operation is under way", 409, 7, true)                           \
    X(ERR_PROBE_OUT, "probe-under-way", "A probe of this operation is under way", 409, 7, true)                        \
    X(ERR_DUPLICATE, "duplicate-call", "This was called before", 409, 4, false)                                        \
    X(ERR_OUTCOME_UNKNOWN, "outcome-unknown", "Nobody can say yet whether it happened", 409, 4, true)                  \
    X(ERR_AWAITING, "awaiting-operator", "A person has to decide first", 409, 9, true)                                 \
    X(ERR_LOOP, "loop-detected", "The same calls go round in a loop", 409, 4, false)                                   \
    X(ERR_SEALED, "saga-sealed", "A call that cannot be undone ends the saga", 409, 4, false)                          \
    X(ERR_CLOSED, "saga-closed", "The saga takes no new calls", 409, 4, false)                                         \
    X(ERR_UNSETTLED, "unsettled", "Something is not settled yet", 409, 4, true)                                        \
    X(ERR_PAUSED, "paused", "The saga is paused", 409, 9, true)                                                        \
    X(ERR_EXPIRED, "expired", "The record of this call has expired", 410, 4, false)                                    \
    X(ERR_GONE, "gone", "What was asked for is not kept any more", 410, 4, false)                                      \
    X(ERR_DRIFT, "arguments-differ", "The same call was made with other arguments", 422, 4, false)                     \
    X(ERR_BLOCKED, "blocked-by-precheck", "The state does not allow this call", 422, 1, false)                         \
    X(ERR_BUDGET, "budget-exhausted", "The budget is used up", 403, 5, false)                                          \
    X(ERR_RATE, "rate-limited", "Too many calls of this tool", 429, 6, true)                                           \
    X(ERR_QUOTA, "quota-exceeded", "The namespace asks for more than its quota", 429, 6, true)                         \
    X(ERR_BREAKER, "breaker-open", "The tool keeps failing and rests", 503, 6, true)                                   \
    X(ERR_HELD, "held", "A person holds it", 503, 6, true)                                                             \
    X(ERR_TOO_LARGE, "too-large", "The request is larger than allowed", 413, 1, false)                                 \
    X(ERR_INVALID, "invalid", "The request was understood but is wrong", 422, 1, false)                                \
    X(ERR_OTHER_INPUT, "other-input", "The same id was used with other input", 422, 4, false)                          \
    X(ERR_TOOL_FAILED, "tool-failed", "The tool failed for good", 424, 1, false)                                       \
    X(ERR_BUSY, "busy", "Too much work at the moment", 503, 6, true)                                                   \
    X(ERR_STORE, "database-away", "The database does not answer", 503, 6, true)                                        \
    X(ERR_FENCED, "fenced", "Another engine owns this shard", 503, 6, true)                                            \
    X(ERR_LOST_COMMIT, "commit-unknown", "The answer to a COMMIT was lost", 503, 6, true)                              \
    X(ERR_STOPPING, "stopping", "The engine is stopping", 503, 6, true)                                                \
    X(ERR_UNREACHABLE, "unreachable", "The server cannot be reached", 503, 6, true)                                    \
    X(ERR_TIMEOUT, "timeout", "The time is over", 504, 7, true)                                                        \
    X(ERR_CONFIG, "configuration", "A setting is wrong", 500, 2, false)                                                \
    X(ERR_IO, "io", "The system refused an operation", 500, 1, false)                                                  \
    X(ERR_CORRUPT, "corrupt", "Stored data does not make sense", 500, 1, false)                                        \
    X(ERR_UNSUPPORTED, "not-supported-yet", "Not supported yet", 422, 1, false)                                        \
    X(ERR_INTERNAL, "internal", "A mistake of sagad itself", 500, 1, false)

enum err_code {
#define X(code, name, title, status, exit_code, retryable) code,
    ERR_MAP(X)
#undef X
        ERR_COUNT
};

struct err {
    enum err_code code;
    char message[240];
    char detail[480];
    char hint[240];
};

const char *err_name(enum err_code code);
const char *err_title(enum err_code code);
int err_http_status(enum err_code code);
int err_exit_code(enum err_code code);
bool err_retryable(enum err_code code);

/* Fill and return `code`, so that a function can end with `return err_set(err, ...)`. `err` may be NULL. */
enum err_code err_set(struct err *err, enum err_code code, const char *message, ...) PRINTF_LIKE(3, 4);
void err_detail(struct err *err, const char *format, ...) PRINTF_LIKE(2, 3);
void err_hint(struct err *err, const char *format, ...) PRINTF_LIKE(2, 3);
enum err_code err_context(struct err *err, const char *format, ...)
    PRINTF_LIKE(2, 3);                                      /* puts "CONTEXT: " in front of the message */
void err_print(const struct err *err, const char *program); /* "program: message", detail and hint below, on stderr */

/*
 * Every fault of a document, each with the JSON Pointer of its place. Strings live in the arena given. Faults beyond
 * `count_max` are counted, not kept.
 */
struct fault {
    struct slice pointer; /* "" is the whole document */
    struct slice detail;  /* what was found and what would be right */
    bool not_supported;   /* a member of a later version of the format, refused by name */
};

struct faults {
    struct arena *arena;
    struct fault *items;
    size_t count, capacity, count_max, dropped;
};

void faults_init(struct faults *faults, struct arena *arena);
void faults_add(struct faults *faults, struct slice pointer, const char *format, ...) PRINTF_LIKE(3, 4);
void faults_add_not_supported(struct faults *faults, struct slice pointer, const char *member);

#endif
