/*
 * Definitions that a namespace shares with others, read-only. Each of these gets a copy of the document, whose items
 * name in `shared_by` where they come from. So versions, pins, quotas, secrets and acts are those of the namespace that
 * has the copy, and a saga that runs on one does not depend on the other namespace.
 *
 * Whoever shares may register in each of the namespaces. There, only somebody who may register in the sharing
 * namespace, too, changes what is shared: it is then a definition of their own. What another engine registered a moment
 * ago may not be known here yet; then both are versions, and the later one is the newest.
 */
#ifndef SAGAD_RUN_REQUEST_SHARE_H
#define SAGAD_RUN_REQUEST_SHARE_H

#include "run/request/work.h"

struct share {
    struct slice namespace;
    struct document document;
};

/* Makes and checks the copies of work->document. Faults go to work->jq_faults. True: whoever asks has no right to share
 * with one of the namespaces, and the work has ended. */
bool share_is_refused(struct work *work);

#endif
