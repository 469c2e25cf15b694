/*
 * What the program of a tool may not ask of the kernel (seccomp), whoever it runs as: to look into other processes, to
 * signal this one by its number, to leave its process group, to get at namespaces, mounts, keys, clocks and modules,
 * and the parts of the kernel that are seldom used and often broken. Files and the network are not its business: the
 * rights of
 * --exec-user are.
 */
#ifndef SAGAD_IO_PROCESS_SANDBOX_H
#define SAGAD_IO_PROCESS_SANDBOX_H

#include <stdbool.h>
#include <sys/types.h>

/* Holds for this process and all that it begins, for ever. `engine` is the process that may not be touched. Called
 * between fork() and exec(), after PR_SET_NO_NEW_PRIVS. True also where the kernel has no seccomp; false: see errno. */
bool sandbox_enter(pid_t engine);

#endif
