/* A client without opinions: it sends the bytes that a test gives it and reads one answer. */
#ifndef SAGAD_TESTS_RAW_CLIENT_H
#define SAGAD_TESTS_RAW_CLIENT_H

#include "base/text.h"

struct raw_answer {
    int status;  /* 0: no answer came */
    bool closed; /* the server closed the connection after the answer (or instead of it) */
    char head[8192];
    char body[1 << 20];
    size_t body_len;
};

int raw_connect(uint16_t port);
void raw_send(int fd, const char *bytes, size_t len);
/* Reads an answer by its Content-Length, or a stream until patience is over. */
void raw_read(int fd, int patience_ms, struct raw_answer *out);
/* Sends one request on a connection of its own. `head` holds further header lines, each ended by CRLF; it may be "". */
void raw_ask(uint16_t port, const char *method, const char *target, const char *head, const char *body,
             struct raw_answer *out);
bool raw_head_has(const struct raw_answer *answer, const char *line);

#endif
