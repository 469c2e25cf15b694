/*
 * The private PostgreSQL cluster of `sagad dev`: one server for one folder, reached over a Unix socket only, durable
 * like any other. Blocking; call it before the loop starts and after it has ended.
 *
 * The server is made to survive a SIGKILL of sagad. The next start finds it and goes on with it.
 */
#ifndef SAGAD_DEV_CLUSTER_H
#define SAGAD_DEV_CLUSTER_H

#include <sys/types.h>

#include "base/errors.h"
#include "dev/program.h"

struct dev_cluster {
    char dsn[256];                  /* for libpq, with ERR_OK */
    char directory[DEV_PATH_BYTES]; /* absolute */
    char data[DEV_PATH_BYTES];
    char socket_directory[64];
    char log_path[DEV_PATH_BYTES + 32];
    struct dev_user user;
    struct dev_postgres postgres;
    int lock_fd; /* one sagad at a time in a folder */
    pid_t postmaster;
    bool reused; /* the server was running already */
};

/* $XDG_STATE_HOME/sagad/NAME, or ~/.local/state/sagad/NAME. False when neither variable is set or the
 * path is too long. */
bool dev_cluster_default_directory(const char *name, char *out, size_t out_bytes);

/*
 * Make the folder and the cluster where they are missing, start the server where it is not running, wait until it takes
 * connections. `say` gets a line about each thing done; may be NULL. On failure nothing that this call started is left
 * running. ERR_CONFIG or ERR_IO with what to do.
 */
MUST_USE enum err_code dev_cluster_start(struct dev_cluster *cluster, const char *directory,
                                         void (*say)(const char *line), struct err *err);

/*
 * A file of ours in that folder, opened for reading and writing, made with `mode` where it is missing. A link, a file
 * of somebody else, with another name beside this one, or with more rights than `mode` is refused: -1, with the
 * sentence.
 */
MUST_USE int dev_file_open(const char *path, mode_t mode, struct err *err);

/* Stop the server, whoever started it, and let the folder go. The data stays. */
void dev_cluster_stop(struct dev_cluster *cluster);

#endif
