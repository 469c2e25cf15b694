/* Verbs on many sagas: filters choose them instead of names, or the rows of a file. */
#ifndef SAGACTL_BULK_H
#define SAGACTL_BULK_H

#include "tools/sagactl/command.h"

/* Do the arguments of a verb have a filter or a file? Then the verb is about many sagas. */
bool bulk_is_meant(int argc, char **argv);
/* The same for `mend`, whose --tool is no filter. */
bool bulk_is_meant_of_sagas(int argc, char **argv);
/* Freezes the set, shows it, asks, runs the job and waits for its end. `verb` NULL: the first argument names the verb,
 * and otherwise it is resolve. Gives the exit code. */
int bulk_do(struct ctl *ctl, const char *verb, int argc, char **argv);
/* Prints the subject of a job and what became of it, for people. */
void bulk_print(struct ctl *ctl, struct slice job);

#endif
