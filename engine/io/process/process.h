/* Child processes: an argv, never a shell; own process group, ended as one; bounded output. */
#ifndef SAGAD_IO_PROCESS_PROCESS_H
#define SAGAD_IO_PROCESS_PROCESS_H

#include "base/arena.h"
#include "io/loop/loop.h"

struct programs;

struct process_run {
    /* in; borrowed until done */
    char *const *argv;               /* NULL-terminated; argv[0] is looked up in PATH */
    char *const *env;                /* NULL-terminated NAME=VALUE; the whole environment of the child */
    const char *cwd;                 /* NULL: ours */
    const struct programs *programs; /* NULL: any program, as ourselves */
    struct slice input;              /* standard input; closed behind it */
    int64_t timeout_ms;              /* SIGTERM to the group then, SIGKILL 2 s later; bounds processor time, too */
    size_t output_bytes_max;         /* the bytes of each of stdout and stderr; more ends the process group */
    struct arena *arena;             /* for the output */
    void (*done)(
        struct process_run *run); /* exactly once, on the loop, when the child is reaped and its pipes are closed */

    /* out */
    bool started;      /* false: nothing ran; `error` says why */
    int exit_code;     /* -1 when ended by a signal */
    int signal_number; /* 0 when it exited */
    bool timed_out, too_large, cancelled;
    struct slice stdout_text, stderr_text;
    const char *error;

    void *internal;
};

void process_start(struct loop *loop, struct process_run *run);
void process_cancel(struct process_run *run); /* ends the group; done follows */

#endif
