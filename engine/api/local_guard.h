/*
 * Without tokens everybody who reaches the service is its admin. This keeps out those who reach it through somebody
 * else's program: web pages in a browser on this machine, and clients of a proxy.
 */
#ifndef SAGAD_API_LOCAL_GUARD_H
#define SAGAD_API_LOCAL_GUARD_H

#include "io/http/server.h"

/* NULL, or the sentence that says why a service without tokens refuses this request. */
const char *local_guard_fault(const struct http_exchange *exchange);

#endif
