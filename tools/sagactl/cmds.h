/* The commands, with their help: each noun has one cmd_*.c. */
#ifndef SAGACTL_CMDS_H
#define SAGACTL_CMDS_H

#include "tools/sagactl/command.h"

#define CMD_MAP(X)                                                                                                     \
    X(check)                                                                                                           \
    X(apply)                                                                                                           \
    X(diff)                                                                                                            \
    X(retire)                                                                                                          \
    X(tools)                                                                                                           \
    X(definitions)                                                                                                     \
    X(start)                                                                                                           \
    X(list)                                                                                                            \
    X(show)                                                                                                            \
    X(log)                                                                                                             \
    X(call)                                                                                                            \
    X(open)                                                                                                            \
    X(complete)                                                                                                        \
    X(bypass)                                                                                                          \
    X(cost)                                                                                                            \
    X(signal)                                                                                                          \
    X(pause)                                                                                                           \
    X(resume)                                                                                                          \
    X(mend)                                                                                                            \
    X(rerun)                                                                                                           \
    X(approvals)                                                                                                       \
    X(approve)                                                                                                         \
    X(acknowledge)                                                                                                     \
    X(assign)                                                                                                          \
    X(comment)                                                                                                         \
    X(escalate)                                                                                                        \
    X(abort)                                                                                                           \
    X(wait)                                                                                                            \
    X(rekey)                                                                                                           \
    X(replay)                                                                                                          \
    X(escalations)                                                                                                     \
    X(preview)                                                                                                         \
    X(bulk)                                                                                                            \
    X(resolve)                                                                                                         \
    X(settle)                                                                                                          \
    X(operations)                                                                                                      \
    X(hold)                                                                                                            \
    X(holds)                                                                                                           \
    X(breaker)                                                                                                         \
    X(release)                                                                                                         \
    X(schedules)                                                                                                       \
    X(stats)                                                                                                           \
    X(acts)                                                                                                            \
    X(grants)                                                                                                          \
    X(debts)                                                                                                           \
    X(ready)                                                                                                           \
    X(doctor)                                                                                                          \
    X(export)                                                                                                          \
    X(me)                                                                                                              \
    X(top)                                                                                                             \
    X(engines)                                                                                                         \
    X(events)                                                                                                          \
    X(notifications)                                                                                                   \
    X(token)                                                                                                           \
    X(config)                                                                                                          \
    X(console)                                                                                                         \
    X(browse)                                                                                                          \
    X(time)                                                                                                            \
    X(prove)                                                                                                           \
    X(test)                                                                                                            \
    X(record)                                                                                                          \
    X(hammer)                                                                                                          \
    X(graph)

#define X(name)                                                                                                        \
    int cmd_##name(struct ctl *ctl, int argc, char **argv);                                                            \
    extern const char help_##name[];
CMD_MAP(X)
#undef X

/* In cmd_start_batch.c: makes the starts that are the lines of a file. Gives the exit code. */
int start_batch(struct ctl *ctl, const char *path, int64_t patience_ms);

/* In cmd_define.c: shows one tool or saga as it was registered; `path` is the path of its list. Gives the exit code. */
int show_definition(struct ctl *ctl, const char *path, const char *name, const char *version);

#endif
