/*
 * A private PostgreSQL for a test: it has its own folder below /tmp, listens on a Unix socket only, has fsync on, and
 * ends with the test.
 *
 * It works as root too: the server then runs as user postgres or nobody. Any error in this file ends the test program
 * with a sentence.
 */
#ifndef SAGAD_TESTS_CLUSTER_H
#define SAGAD_TESTS_CLUSTER_H

#include <stdbool.h>
#include <sys/types.h>

struct cluster {
    char directory[64]; /* the folder of data/, the log and the socket */
    char dsn[160];
    char binaries[200]; /* folder of postgres and initdb */
    const char *const *settings;
    uid_t uid;
    gid_t gid;
    pid_t pid; /* the postmaster's; 0: it is not running */
};

/* True when PostgreSQL's programs are on this machine: a test without them is skipped, not failed. */
bool cluster_possible(void);

/*
 * Makes a cluster, starts it, and returns when it takes connections. `settings` are "name=value", NULL-terminated and
 * borrowed; they may be NULL. For TCP give "listen_addresses=127.0.0.1" and "port=..." of a free port; the server
 * trusts everybody.
 */
void cluster_start(struct cluster *cluster, const char *const *settings);
const char *cluster_dsn(const struct cluster *cluster); /* names the superuser and the database postgres */

void cluster_stop(struct cluster *cluster);   /* ends all sessions and shuts down cleanly ("fast") */
void cluster_kill(struct cluster *cluster);   /* SIGKILL to the postmaster, as in a crash of the machine */
void cluster_resume(struct cluster *cluster); /* starts the server again after cluster_stop() or cluster_kill() */
/* Ends the server without a checkpoint, starts it, and lets it recover. */
void cluster_restart_immediate(struct cluster *cluster);
void cluster_free(struct cluster *cluster); /* stops the server and removes its folder; accepts a zeroed cluster */

#endif
