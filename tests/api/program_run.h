/* Tests of a command line program: they run the program against the API over a fake engine, and look at what it prints
 * and at its exit code. */
#ifndef TESTS_API_PROGRAM_RUN_H
#define TESTS_API_PROGRAM_RUN_H

#include <sys/types.h>

#include "tests/api/api_host.h"
#include "tests/api/raw_client.h"

extern const char *program; /* the path of the program; main() sets it */
extern struct api_host host;
extern char out[1 << 20], talk[65536]; /* what the last run printed on stdout and on stderr */

/* Runs the program with the arguments, which are split at spaces except within quotes '...'. Gives the exit code. */
int run(const char *arguments);

/*
 * A run in one line: its exit code, and what it must print on stdout, or on stderr.
 *
 *     expect_out(run(text_of("show %s", id)), 0, "open saga", "running");
 *
 * The test fails at this line when something else comes, and prints what came.
 */
#define expect_out(code, ...) expect_run_at(__FILE__, __LINE__, out, code, __VA_ARGS__, (char *)NULL)
#define expect_talk(code, ...) expect_run_at(__FILE__, __LINE__, talk, code, __VA_ARGS__, (char *)NULL)
void expect_run_at(const char *file, int line, const char *where, int code, int expected, ...)
    __attribute__((sentinel));
/* What the last run printed has each of these texts. */
#define expect_printed(where, ...) expect_printed_at(__FILE__, __LINE__, where, __VA_ARGS__, (char *)NULL)
void expect_printed_at(const char *file, int line, const char *where, ...) __attribute__((sentinel));

int run_beside(const char *arguments); /* the same, but `out` and `talk` stay */
/* Runs the program at a pseudo-terminal of 80 columns and 24 lines, where somebody types `typed`. All that the program
 * prints is in `out`. */
int run_at_terminal(const char *arguments, const char *typed);

/* A program at a pseudo-terminal that a test drives step by step. */
struct terminal {
    int fd; /* the far side of the program's terminal */
    pid_t pid;
    size_t len, from; /* places in `out`: the end of what was read, and where the next terminal_until() looks */
};
struct terminal terminal_begin(const char *arguments, unsigned short columns, unsigned short rows);
void terminal_type(const struct terminal *terminal, const char *typed);
void terminal_until(struct terminal *terminal, const char *says); /* reads until the program has printed `says` */
/* Reads until the program has ended; gives its exit code, or 128 after a signal. */
int terminal_end(struct terminal *terminal);

/* The fixture of cmocka for a group: it starts the service, and puts its address into the environment.
 * api_host_teardown() ends the service. */
int program_setup(void **state);

struct program_case {
    const char *arguments;
    int code;
    const char *says; /* a text that stdout or stderr must have */
};
/* Runs each case; the test fails when one differs. */
void program_cases(const struct program_case *cases, size_t count);

#endif
