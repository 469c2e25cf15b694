/* Sends requests to the service, one after the other. */
#ifndef SAGACTL_CLIENT_H
#define SAGACTL_CLIENT_H

#include "tools/sagactl/command.h"

struct answer {
    int status;                      /* 0: no answer came */
    struct slice body;               /* JSON, checked; SLICE_NONE: the answer has no JSON */
    struct slice table;              /* the body of an answer in text/csv; SLICE_NONE: other answers */
    struct slice location, first_at; /* first_at: when the original of a replayed answer was asked for */
    int64_t retry_after_s;           /* 0: not said */
    struct slice why;                /* why no answer came */
};

/*
 * Sends a request. Gives 0, or the exit code after it printed the problem. `path` begins with a slash. `arena` holds
 * the answer. `timeout_ms` counts for the whole request.
 */
MUST_USE int client_call(struct ctl *ctl, const char *method, struct slice path, struct slice body, int64_t timeout_ms,
                         struct arena *arena, struct answer *out);
MUST_USE int client_get(struct ctl *ctl, struct slice path, struct arena *arena, struct answer *out); /* 30 s */

/* A stream of server-sent events: `on_event` gets each event; false ends the stream. client_follow() gives 0 also when
 * the server ended the stream; an answer 204 ends it at once. */
struct client_stream {
    struct ctl *ctl;
    struct slice path;
    uint64_t last_id; /* in and out */
    bool (*on_event)(struct client_stream *stream, struct slice data);
    void *context;
    bool finished; /* out: on_event or an answer 204 has ended the stream */
    struct buffer line, data;
    struct http_request *request;
};
MUST_USE int client_follow(struct client_stream *stream);

void client_close(struct ctl *ctl);
struct slice url_escape(struct slice text, struct arena *arena);
int print_problem(const struct ctl *ctl, int status, struct slice body); /* gives the exit code */

#endif
