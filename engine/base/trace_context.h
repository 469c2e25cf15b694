/*
 * W3C Trace Context: which trace a request belongs to. It is handed on to tools and means nothing else: it is in no
 * key and no fingerprint. That of a start is in the log, where traces are sent.
 */
#ifndef SAGAD_BASE_TRACE_CONTEXT_H
#define SAGAD_BASE_TRACE_CONTEXT_H

#include "base/text.h"

struct trace_context {
    struct slice parent, state; /* SLICE_NONE: there is none; a state never comes without a parent */
};

/* Borrows both. A parent that is not as the recommendation says is no trace at all; a state that is not is left out. */
struct trace_context trace_context_read(struct slice parent, struct slice state);

#endif
