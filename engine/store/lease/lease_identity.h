/*
 * The identity of a lease's holder, as text in the lease table: host, boot, pid namespace, pid, start time of the
 * process, instance.
 *
 * An engine that restarts on the same machine need not wait until its old leases expire: the text proves that the
 * process which held them has ended.
 */
#ifndef SAGAD_STORE_LEASE_LEASE_IDENTITY_H
#define SAGAD_STORE_LEASE_LEASE_IDENTITY_H

#include <stdbool.h>

#include "base/text.h"

#define LEASE_IDENTITY_BYTES 256

void lease_identity_own(const char *instance, char out[LEASE_IDENTITY_BYTES]);
bool lease_identity_is_dead(struct slice identity,
                            const char *own);                /* true only when the process has certainly ended */
struct slice lease_identity_instance(struct slice identity); /* SLICE_NONE when the identity names no instance */

#endif
