/* How much memory this process has, as the kernel counts it, and how much there is to have. */
#ifndef SAGAD_BASE_RESIDENT_H
#define SAGAD_BASE_RESIDENT_H

#include <stddef.h>

size_t resident_bytes(void);       /* of this process, now; a read of a few microseconds. 0: the kernel does not say */
size_t resident_bytes_there(void); /* of the machine, or of the control group that this process is in; 0: not known */
/*
 * The least limit of the control groups that `groups_file` names (as /proc/self/cgroup does) and of those above them,
 * in `folder`, where both versions of control groups are found (/sys/fs/cgroup). systemd's MemoryMax= is such a limit.
 * 0: there is none.
 */
size_t resident_group_bytes(const char *groups_file, const char *folder);

#endif
