/* Requests to the service, one after the other. */
#ifndef SAGACTL_CLIENT_H
#define SAGACTL_CLIENT_H

#include "tools/sagactl/command.h"

struct answer {
    int status;                      /* 0: there was none */
    struct slice body;               /* JSON, checked; SLICE_NONE where there was none */
    struct slice table;              /* the body where it is text/csv; SLICE_NONE: it is not */
    struct slice location, first_at; /* first_at: of a replay, when it was asked for first */
    int64_t retry_after_s;           /* 0: not said */
};

/*
 * 0, or the exit code after the problem was printed. `path` begins with a slash. `arena` holds the answer.
 * `timeout_ms` counts for the whole request.
 */
MUST_USE int client_call(struct ctl *ctl, const char *method, struct slice path, struct slice body, int64_t timeout_ms,
                         struct arena *arena, struct answer *out);
MUST_USE int client_get(struct ctl *ctl, struct slice path, struct arena *arena, struct answer *out); /* 30 s */

/* Server-sent events: `on_event` gets each; false ends the stream. 0 also when the server ended it; 204 ends it at
 * once. */
struct client_stream {
    struct ctl *ctl;
    struct slice path;
    uint64_t last_id; /* in and out */
    bool (*on_event)(struct client_stream *stream, struct slice data);
    void *context;
    bool finished; /* out: by on_event or by 204 */
    struct buffer line, data;
    struct http_request *request;
};
MUST_USE int client_follow(struct client_stream *stream);

void client_close(struct ctl *ctl);
struct slice url_escape(struct slice text, struct arena *arena);
int print_problem(const struct ctl *ctl, int status, struct slice body); /* gives the exit code */

#endif
