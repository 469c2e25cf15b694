/* Runs a command again and again: --watch, and top. */
#ifndef SAGACTL_WATCH_H
#define SAGACTL_WATCH_H

#include "tools/sagactl/command.h"

/*
 * Takes --watch (-w) and --interval out of the arguments. True: the command is to be watched. False with `*code`
 * EXIT_OK: it is not. False otherwise: a sentence was printed.
 */
bool watch_is_asked(const struct ctl *ctl, int *argc, char **argv, int64_t *interval_ms, int *code);

/*
 * Watches a command. At a terminal the screen shows the newest output until somebody types q. Elsewhere each output
 * that differs from the one before is printed, until nobody reads any more. Gives the exit code of the last run.
 */
int watch(struct ctl *ctl, int argc, char **argv, int64_t interval_ms);

#endif
