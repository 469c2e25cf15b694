/* Shows what a saga was given, and what it sent: its input, and the arguments of its operations. */
#ifndef SAGACTL_SHOW_SENT_H
#define SAGACTL_SHOW_SENT_H

#include "tools/sagactl/command.h"

/* Prints the input on one line, or on at most three; `full`: all of it. */
void show_input(struct ctl *ctl, struct slice saga, bool full);

/* Prints the tags on a line, if there are any. */
void show_tags(struct ctl *ctl, struct slice saga);

/*
 * Prints each operation of the saga, undoing included: its arguments, its key, how often it was sent and when. It asks
 * for them one by one. Gives EXIT_OK, or the exit code after it printed the problem.
 */
MUST_USE int show_sent(struct ctl *ctl, struct slice saga);

#endif
