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
/* Reads an answer by its Content-Length, or a stream until patience is over. Returns `out`. */
const struct raw_answer *raw_read(int fd, int patience_ms, struct raw_answer *out);
/* Sends one request on a connection of its own. `head` holds further header lines, each ended by CRLF; it may be "".
 * Returns `out`. */
const struct raw_answer *raw_ask(uint16_t port, const char *method, const char *target, const char *head,
                                 const char *body, struct raw_answer *out);
/* The same with a token. */
const struct raw_answer *raw_ask_as(uint16_t port, const char *token, const char *method, const char *target,
                                    const char *body, struct raw_answer *out);
bool raw_head_has(const struct raw_answer *answer, const char *line);
bool raw_body_has(const struct raw_answer *answer, const char *text);

/*
 * An exchange in one line: what is asked, the status that must come, and each text that its body must have.
 *
 *     expect(ask("POST", "/v1/sagas", "{}"), 422, "other-input", "\"pointer\"");
 *
 * The test fails at this line when something else comes, and prints what came.
 */
#define expect(answer, ...) expect_at(__FILE__, __LINE__, answer, __VA_ARGS__, (char *)NULL)
void expect_at(const char *file, int line, const struct raw_answer *answer, int status, ...) __attribute__((sentinel));
/* The body has each of these texts, whatever the status; or none of them. */
#define expect_body(answer, ...) expect_body_at(__FILE__, __LINE__, answer, __VA_ARGS__, (char *)NULL)
void expect_body_at(const char *file, int line, const struct raw_answer *answer, ...) __attribute__((sentinel));
#define expect_none(answer, ...) expect_none_at(__FILE__, __LINE__, answer, __VA_ARGS__, (char *)NULL)
void expect_none_at(const char *file, int line, const struct raw_answer *answer, ...) __attribute__((sentinel));
/* The head has each of these lines, or beginnings of lines. */
#define expect_head(answer, ...) expect_head_at(__FILE__, __LINE__, answer, __VA_ARGS__, (char *)NULL)
void expect_head_at(const char *file, int line, const struct raw_answer *answer, ...) __attribute__((sentinel));

/* Copies the text of `bytes` that stands behind `member` in the body. */
void answer_take(const struct raw_answer *answer, const char *member, size_t bytes, char *out);
/* Writes a target, a head or a body. The text stays good for three further calls. */
const char *text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
