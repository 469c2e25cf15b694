/* A program of the command line, run against the API over a fake engine: what it prints and its exit code. */
#ifndef TESTS_API_PROGRAM_RUN_H
#define TESTS_API_PROGRAM_RUN_H

#include "tests/api/api_host.h"

extern const char *program; /* its path; set by main() */
extern struct api_host host;
extern char out[1 << 20], talk[65536]; /* what the last run printed on stdout and on stderr */

/* Runs the program with the arguments, split at spaces but within quotes '...'; gives its exit code. */
int run(const char *arguments);

/* The same at a pseudo-terminal of 80 columns and 24 lines, where somebody types `typed`. All it prints is in `out`. */
int run_at_terminal(const char *arguments, const char *typed);

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
