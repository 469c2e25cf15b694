/* Questions before actions that cannot be undone. */
#ifndef SAGACTL_ASK_H
#define SAGACTL_ASK_H

#include "tools/sagactl/command.h"

/*
 * Asks "VERB what it is about, on SERVER? [y/N]". EXIT_OK: go ahead. Else a sentence was printed: leave with this code.
 *
 * The program asks only where a person sits, with standard input and stderr at a terminal, and not with --yes.
 * Elsewhere an action on one thing goes ahead, as it did before there were questions. An action on several things needs
 * --yes: no script says that yet.
 */
MUST_USE int ask_first(const struct ctl *ctl, size_t count, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
