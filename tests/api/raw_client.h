/* A client without opinions: sends the bytes it is given and reads one answer. */
#ifndef SAGAD_TESTS_RAW_CLIENT_H
#define SAGAD_TESTS_RAW_CLIENT_H

#include "base/text.h"

struct raw_answer {
    int status;  /* 0: none came */
    bool closed; /* the server closed behind it (or instead of it) */
    char head[8192];
    char body[524288];
    size_t body_len;
};

int raw_connect(uint16_t port);
void raw_send(int fd, const char *bytes, size_t len);
void raw_read(int fd, int patience_ms,
              struct raw_answer *out); /* by Content-Length, or what came of a stream until patience is over */
/* One request on a connection of its own. `head` holds further header lines, each ended by CRLF; may be "". */
void raw_ask(uint16_t port, const char *method, const char *target, const char *head, const char *body,
             struct raw_answer *out);
bool raw_head_has(const struct raw_answer *answer, const char *line);

#endif
