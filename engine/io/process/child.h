/*
 * A child process that stays: lines go to its standard input, lines come from its standard output. An argv, never a
 * shell; it leads a process group of its own, which is ended as one.
 *
 * Its standard error goes nowhere: what a foreign program says there is not ours to keep.
 */
#ifndef SAGAD_IO_PROCESS_CHILD_H
#define SAGAD_IO_PROCESS_CHILD_H

#include "base/text.h"
#include "io/loop/loop.h"

struct programs;

/* All of one owner, so that none outlives it. */
struct children {
    struct loop *loop;
    const struct programs *programs; /* NULL: any program, as ourselves; may be set after children_init() */
    struct list jobs;                /* the jobs, those too that were let go and have not ended yet */
};

void children_init(struct children *children, struct loop *loop);
void children_kill(
    struct children *children); /* SIGKILL to all, for the end of the loop: nothing of them is waited for */

struct child {
    /* in; borrowed until ended or let go */
    size_t line_bytes_max;   /* the bytes of a line that it writes; a longer one is dropped, and on_long is told */
    size_t unread_bytes_max; /* the bytes that it has not read yet */
    size_t idle_bytes_max;   /* what it writes between two calls of child_heard(); one that writes more is ended */
    void (*on_line)(struct child *child, struct slice line); /* without its end; borrowed until this returns */
    void (*on_long)(struct child *child);
    void (*on_end)(struct child *child); /* exactly once: it will say nothing more; not after child_stop() */

    void *internal;
};

/* NULL, or a sentence on why nothing was started; then no callback follows. argv[0] is looked up in PATH. */
const char *child_start(struct children *children, struct child *child, char *const *argv, char *const *env,
                        const char *cwd);

void child_heard(struct child *child); /* what it has written was good for something */

/* Queue a line (its end is added). False: too much is unread or it is gone, and not a byte was taken. */
bool child_write(struct child *child, struct slice line);

void child_stop(
    struct child *child); /* let go: end of input, SIGTERM at once, SIGKILL 2 s later; accepts one that ended */

#endif
