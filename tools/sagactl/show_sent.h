/* What a saga was given, and what it sent: its input, and the arguments of its operations. */
#ifndef SAGACTL_SHOW_SENT_H
#define SAGACTL_SHOW_SENT_H

#include "tools/sagactl/command.h"

/* One line for the input, or three at most; `full`: all of it. */
void show_input(struct ctl *ctl, struct slice saga, bool full);

/*
 * Each operation of the saga with its arguments, its key, how often it was sent and when; undoing too. They are asked
 * for one by one. Gives EXIT_OK, or the exit code once the problem was printed.
 */
MUST_USE int show_sent(struct ctl *ctl, struct slice saga);

#endif
