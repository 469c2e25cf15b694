/*
 * What the files of sagactl share. Data goes to stdout, sentences for people to stderr. Exit codes are those below: 0
 * ok, 1 failed, 2 usage, 3 not found, 4 conflict, 5 not permitted, 6 unreachable, 7 wait timed out, 8 the saga ended
 * compensated, 9 the saga needs a person.
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
    const char *program;    /* the name with which the program's sentences begin */
    struct arena arena;     /* memory until the program ends */
    const char *server;     /* the address without a slash at its end */
    bool server_is_given;   /* --server or --context gave it: then commands that need no server ask it too */
    const char *token;      /* NULL: none */
    const char *namespace;  /* the namespace of requests; NULL: the first one of the token */
    bool all_namespaces;    /* -A: a list shows all namespaces of the token */
    const char *token_file; /* the file of the token; NULL: it is from no file */
    const char *cert, *key; /* the files of the client certificate and of its key; NULL: none */
    const char *ca_file;    /* the file of trusted authorities for the server's certificate; NULL: the system's */
    enum output output;
    bool yaml;         /* OUTPUT_DATA is YAML */
    bool wide;         /* tables are not cut, and have more columns */
    const char *jq;    /* a jq program that answers go through; NULL: none */
    size_t printed;    /* the number of YAML documents so far */
    bool is_frame;     /* the output is a frame of --watch or top: it has no progress line */
    bool print_failed; /* an answer could not be printed: the exit code is not EXIT_OK */
    bool yes;          /* --yes: the program asks nothing */
    bool colour;       /* stdout */
    bool progress;     /* stderr is a terminal */
    const struct command *command;
    const char *emission;          /* sent as Idempotency-Key; NULL: none */
    const struct input_text *sent; /* the text behind the request: its faults get a line number; NULL: no file */
    /* The program says nothing about a server that does not answer or accepts less at a time: it will ask again. */
    bool quiet;
    bool silent; /* the program prints nothing about a request that fails: the command tells it in its own words */
    struct loop *loop; /* made before the first request */
    struct http_client *http;
};

struct command {
    const char *name;                                   /* "" for a program that is one command */
    const char *summary;                                /* one line */
    const char *help;                                   /* usage, description, options, examples */
    int (*run)(struct ctl *ctl, int argc, char **argv); /* argv[0] is the first argument after the name */
    bool can_watch;                                     /* the command takes --watch */
    bool is_live;                                       /* the command watches at a terminal without --watch */
    bool has_namespaces;                                /* the command takes -A: its list may show several namespaces */
    bool has_csv;                                       /* the command takes -o csv: its table with all columns */
};

extern const struct command commands[]; /* a NULL name ends the list */

/* --- options (options.c) --- */

#define OPTION_REPEATS_MAX 32

struct option_values { /* the values of an option that may be given several times */
    const char *items[OPTION_REPEATS_MAX];
    size_t count;
};

struct option {
    const char *name;             /* "--wait"; also "-o" */
    const char **value;           /* for an option that takes a value */
    struct option_values *values; /* for an option that takes a value and may be repeated */
    bool *flag;                   /* takes none */
};

struct arguments {
    const char **items;
    size_t count;
};

/*
 * Reads the options of the command and the global ones, anywhere among the arguments; "--" ends them. False: it has
 * printed a sentence; leave with EXIT_USAGE. `--help` prints the command's help and sets `*helped`; leave with EXIT_OK.
 */
MUST_USE bool options_read(struct ctl *ctl, int argc, char **argv, const struct option *options, struct arguments *out,
                           bool *helped);
int usage_error(const struct ctl *ctl, const char *format, ...) PRINTF_LIKE(2, 3); /* gives EXIT_USAGE */
/* Reads the global options in front of the command. Gives the index of the command, or argc. -1: it has printed a
 * sentence. */
int options_read_globals(struct ctl *ctl, int argc, char **argv, bool *help, bool *version);
MUST_USE bool options_finish(struct ctl *ctl); /* reads environment and token file; false: it has printed a sentence */
/* A command that needs no server asks one after all: takes the current context and the token as others do. False: it
 * has printed a sentence. */
MUST_USE bool options_ask_server(struct ctl *ctl);

/* Reads a text, "@FILE" or "-", in JSON or YAML (input_text.h), and gives checked JSON. False: it has printed a
 * sentence. */
MUST_USE bool read_json_argument(struct ctl *ctl, const char *option, const char *value, struct slice *out);
MUST_USE bool read_file(struct ctl *ctl, const char *path, struct slice *out); /* "-" is stdin */

#endif
