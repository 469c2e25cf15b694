/*
 * sagactl: what its files share. Data goes to stdout, talk to stderr; exit codes are those of errors.h:
 * 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict, 5 not permitted, 6 unreachable, 7 wait timed out, 8 the saga ended
 * compensated, 9 it needs a person.
 */
#ifndef SAGACTL_COMMAND_H
#define SAGACTL_COMMAND_H

#include "base/arena.h"
#include "base/errors.h"
#include "base/json.h"
#include "io/http/client.h"
#include "io/loop/loop.h"

enum {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_NOT_FOUND = 3,
    EXIT_CONFLICT = 4,
    EXIT_NOT_PERMITTED = 5,
    EXIT_UNREACHABLE = 6,
    EXIT_WAIT_OVER = 7,
    EXIT_COMPENSATED = 8,
    EXIT_NEEDS_PERSON = 9
};

enum output { OUTPUT_TABLE, OUTPUT_DATA /* the whole answer, for programs */, OUTPUT_NAME, OUTPUT_CSV };

#define SERVER_DEFAULT "http://127.0.0.1:8077"

struct input_text;

struct ctl {
    const char *program;    /* as it is called, in front of its sentences */
    struct arena arena;     /* until the program ends */
    const char *server;     /* without a slash at its end */
    bool server_is_given;   /* by --server or --context: commands that need none ask it then */
    const char *token;      /* NULL: none */
    const char *namespace;  /* that requests name; NULL: the first of the token's */
    bool all_namespaces;    /* -A: a list is of all namespaces of the token */
    const char *token_file; /* where it is from; NULL: from no file */
    const char *ca_file;    /* authorities that the server's certificate may come from; NULL: those of the system */
    enum output output;
    bool yaml;         /* OUTPUT_DATA as YAML */
    bool wide;         /* tables are not cut, and have columns more */
    const char *jq;    /* a program that answers go through; NULL: none */
    size_t printed;    /* YAML documents so far */
    bool is_frame;     /* of --watch or top: nothing is written over */
    bool print_failed; /* an answer could not be printed: the exit code is not EXIT_OK */
    bool yes;          /* --yes: ask nothing */
    bool colour;       /* stdout */
    bool progress;     /* stderr is a terminal */
    const struct command *command;
    const char *emission;          /* sent as Idempotency-Key; NULL: none */
    const struct input_text *sent; /* what the request is made of: faults of it have a line; NULL: no file */
    /* Say nothing about a server that does not answer or takes less at a time: it will be asked again. */
    bool quiet;
    struct loop *loop; /* made with the first request */
    struct http_client *http;
};

struct command {
    const char *name;                                   /* "" for a program that is one command */
    const char *summary;                                /* one line */
    const char *help;                                   /* usage, what it does, options, examples */
    int (*run)(struct ctl *ctl, int argc, char **argv); /* argv[0] is the first argument behind the name */
    bool can_watch;                                     /* takes --watch */
    bool is_live;                                       /* is watched at a terminal, without being asked */
    bool has_namespaces;                                /* takes -A: its list may be of several namespaces */
    bool has_csv;                                       /* takes -o csv: its table, with all columns */
};

extern const struct command commands[]; /* ends with a NULL name */

/* --- options (options.c) --- */

#define OPTION_REPEATS_MAX 32

struct option_values { /* for an option that may be given several times */
    const char *items[OPTION_REPEATS_MAX];
    size_t count;
};

struct option {
    const char *name;             /* "--wait"; also "-o" */
    const char **value;           /* takes a value */
    struct option_values *values; /* takes a value, several times */
    bool *flag;                   /* takes none */
};

struct arguments {
    const char **items;
    size_t count;
};

/*
 * Options of the command and the global ones, anywhere among the arguments; "--" ends them. False: a sentence was
 * printed, leave with EXIT_USAGE. `--help` prints the command's help and sets `*helped`; leave with EXIT_OK.
 */
MUST_USE bool options_read(struct ctl *ctl, int argc, char **argv, const struct option *options, struct arguments *out,
                           bool *helped);
int usage_error(const struct ctl *ctl, const char *format, ...) PRINTF_LIKE(2, 3); /* gives EXIT_USAGE */
/* The globals in front of the command; gives the index of the command, or argc. -1: a sentence was printed. */
int options_read_globals(struct ctl *ctl, int argc, char **argv, bool *help, bool *version);
MUST_USE bool options_finish(struct ctl *ctl); /* environment, token file; false: a sentence was printed */

/* A text, "@FILE" or "-", JSON or YAML (input_text.h): as JSON, checked. False: a sentence was printed. */
MUST_USE bool read_json_argument(struct ctl *ctl, const char *option, const char *value, struct slice *out);
MUST_USE bool read_file(struct ctl *ctl, const char *path, struct slice *out); /* "-" is stdin */

#endif
