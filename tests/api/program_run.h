/* A program of the command line, run against the API over a fake engine: what it prints and its exit code. */
#ifndef TESTS_API_PROGRAM_RUN_H
#define TESTS_API_PROGRAM_RUN_H

#include <sys/types.h>

#include "tests/api/api_host.h"

extern const char *program; /* its path; set by main() */
extern struct api_host host;
extern char out[1 << 20], talk[65536]; /* what the last run printed on stdout and on stderr */

/* Runs the program with the arguments, split at spaces but within quotes '...'; gives its exit code. */
int run(const char *arguments);

int run_beside(const char *arguments); /* the same; `out` and `talk` stay */
/* The same at a pseudo-terminal of 80 columns and 24 lines, where somebody types `typed`. All it prints is in `out`. */
int run_at_terminal(const char *arguments, const char *typed);

/* A program at a pseudo-terminal, a step at a time. */
struct terminal {
    int fd; /* what the program sees as its terminal, from the other side */
    pid_t pid;
    size_t len, from; /* of `out`: what was read, and from where on the next terminal_until() looks */
};
struct terminal terminal_begin(const char *arguments, unsigned short columns, unsigned short rows);
void terminal_type(const struct terminal *terminal, const char *typed);
void terminal_until(struct terminal *terminal, const char *says); /* reads until the program has printed it */
int terminal_end(struct terminal *terminal); /* reads until the program has gone; its exit code, 128 by a signal */

/* Of cmocka's groups: the service, its address in the environment, and that it ends. */
int program_setup(void **state);
int program_teardown(void **state);

struct program_case {
    const char *arguments;
    int code;
    const char *says; /* on either stream */
};
void program_cases(const struct program_case *cases, size_t count); /* each as it says, or the test has failed */

#endif
