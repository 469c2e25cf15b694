/* The memory that this process uses, as the kernel counts it, and the memory that it may use. */
#ifndef SAGAD_BASE_RESIDENT_H
#define SAGAD_BASE_RESIDENT_H

#include <stddef.h>

size_t resident_bytes(void); /* used by this process now; takes a few microseconds. 0: the kernel does not say */
size_t resident_bytes_there(
    void); /* the memory of the machine, or the limit of our control group if that is less; 0: not known */
/*
 * The least memory limit of the control groups that `groups_file` names (as /proc/self/cgroup does), and of the groups
 * above them. `folder` is the place of both versions of control groups (/sys/fs/cgroup). systemd's MemoryMax= is such a
 * limit. 0: there is none.
 */
size_t resident_group_bytes(const char *groups_file, const char *folder);

#endif
