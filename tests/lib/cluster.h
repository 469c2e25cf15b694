/*
 * A private PostgreSQL for a test: its own folder below /tmp, a Unix socket and nothing else, fsync on, ended with the
 * test.
 *
 * Works as root too: the server then runs as user postgres or nobody. Whatever goes wrong here ends the test program
 * with a sentence.
 */
#ifndef SAGAD_TESTS_CLUSTER_H
#define SAGAD_TESTS_CLUSTER_H

#include <stdbool.h>
#include <sys/types.h>

struct cluster {
    char directory[64]; /* holds data/, log, and the socket */
    char dsn[160];
    char binaries[200]; /* folder of postgres and initdb */
    const char *const *settings;
    uid_t uid;
    gid_t gid;
    pid_t pid; /* of the postmaster; 0: not running */
};

/* True when PostgreSQL's programs are on this machine: a test without them is skipped, not failed. */
bool cluster_possible(void);

/*
 * Makes and starts one; returns when it takes connections. `settings` are "name=value", NULL-terminated, borrowed; may
 * be NULL. For TCP: "listen_addresses=127.0.0.1" and "port=..." of a free one; everybody is trusted.
 */
void cluster_start(struct cluster *cluster, const char *const *settings);
const char *cluster_dsn(const struct cluster *cluster); /* of its superuser and the database postgres */

void cluster_stop(struct cluster *cluster);              /* fast: sessions are ended, the end is clean */
void cluster_kill(struct cluster *cluster);              /* SIGKILL of the postmaster, as in a crash of the machine */
void cluster_resume(struct cluster *cluster);            /* start again after a stop or kill */
void cluster_restart_immediate(struct cluster *cluster); /* end at once without a checkpoint, start, recover */
void cluster_free(struct cluster *cluster);              /* stop it and remove the folder; accepts a zeroed one */

#endif
