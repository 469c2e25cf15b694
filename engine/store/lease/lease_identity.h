/*
 * Who holds a lease, as text in the lease table: host, boot, pid namespace, pid, start time of the process, instance.
 *
 * An engine that was restarted on the same machine need not wait for its old leases to expire: the text tells that the
 * process which held them surely does not run any more.
 */
#ifndef SAGAD_STORE_LEASE_LEASE_IDENTITY_H
#define SAGAD_STORE_LEASE_LEASE_IDENTITY_H

#include <stdbool.h>

#include "base/text.h"

#define LEASE_IDENTITY_BYTES 256

void lease_identity_own(const char *instance, char out[LEASE_IDENTITY_BYTES]);
bool lease_identity_is_dead(struct slice identity, const char *own); /* certainly; in doubt it is not */
struct slice lease_identity_instance(struct slice identity);         /* SLICE_NONE when it has none */

#endif
