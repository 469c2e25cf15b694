/* How much memory this process has, as the kernel counts it, and how much there is to have. */
#ifndef SAGAD_BASE_RESIDENT_H
#define SAGAD_BASE_RESIDENT_H

#include <stddef.h>

size_t resident_bytes(void);       /* of this process, now; a read of a few microseconds. 0: the kernel does not say */
size_t resident_bytes_there(void); /* of the machine, or of the control group that this process is in; 0: not known */

#endif
