/*
 * Starts a program on the loop, as little of us as it can be: its own session and process group, no descriptor but its
 * three, no new privileges, bounds on what it may use, the rights of another user where that is set; and it ends when
 * we do.
 *
 * uv_spawn() offers no place for most of that between fork() and exec(). Only io/ includes this.
 */
#ifndef SAGAD_IO_PROCESS_SPAWN_H
#define SAGAD_IO_PROCESS_SPAWN_H

#include <sys/resource.h>
#include <sys/types.h>
#include <uv.h>

#include "io/loop/loop.h"
#include "io/process/programs.h"

struct spawned {
    uv_signal_t signal; /* tells of the end; to be closed like any handle, its data is the owner's */
    pid_t pid;          /* 0: it has ended, or never began */
    void (*exited)(struct spawned *spawned, int exit_code, int signal_number); /* once */
};

struct spawn {
    char *const *argv, *const *env;
    const char *cwd;                 /* NULL: ours */
    uv_pipe_t *pipes[3];             /* initialised; NULL: /dev/null. Opened for what stands at the other end */
    const struct programs *programs; /* NULL: any program, as ourselves */
    rlim_t processor_s;              /* for each process, then SIGKILL; 0: no bound */
};

/* 0, or a negative code of uv_strerror(): nothing runs then. The handle is initialised in any case. */
int spawn(struct loop *loop, struct spawned *spawned, const struct spawn *spawn);

#endif
