/*
 * The programs of PostgreSQL, found and run for `sagad dev`. initdb and postgres refuse to run as root, so as root they
 * run as `postgres`, or `nobody` where there is no such user; else as whoever we are. Blocking: before the loop starts.
 */
#ifndef SAGAD_DEV_PROGRAM_H
#define SAGAD_DEV_PROGRAM_H

#include <sys/types.h>

#include "base/errors.h"

#define DEV_PATH_BYTES 1024
#define DEV_POSTGRES_MAJOR_LEAST 15

struct dev_user { /* the user as whom the programs run */
    bool changes; /* we are root and become somebody else */
    uid_t uid;
    gid_t gid;
    char name[64];
};

struct dev_postgres {         /* an installed PostgreSQL */
    char bin[DEV_PATH_BYTES]; /* the folder of its programs */
    int major;
};

MUST_USE enum err_code dev_user_find(struct dev_user *user, struct err *err);

/*
 * An installed PostgreSQL of this major version; 0: the newest of 15 and more. Looked for where Debian, Red Hat and
 * PATH have it. ERR_CONFIG with what to install.
 */
MUST_USE enum err_code dev_postgres_find(struct dev_postgres *postgres, int major, struct err *err);

/*
 * Fork and run `bin`/`program` as `user`, in a session of its own, working in /, with an almost empty environment;
 * output goes to the end of `log_path`. Gives its pid, or -1 when the system cannot fork. A program that cannot be run
 * exits 127.
 */
pid_t dev_program_start(const struct dev_postgres *postgres, const char *program, const char *const arguments[],
                        const struct dev_user *user, const char *log_path);

/* Run it to its end. ERR_IO with the last line of the log when it exits other than 0. */
MUST_USE enum err_code dev_program_run(const struct dev_postgres *postgres, const char *program,
                                       const char *const arguments[], const struct dev_user *user, const char *log_path,
                                       struct err *err);

/* Can this user work in this folder? Asks by trying: a folder above may be closed to it. */
bool dev_user_reaches(const struct dev_user *user, const char *folder);

/* The last line of a log that is not empty, for a sentence; "" when there is none. */
void dev_log_last_line(const char *log_path, char *out, size_t out_bytes);

#endif
