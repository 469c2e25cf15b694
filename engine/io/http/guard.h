/*
 * The guard in front of the HTTP library: refuses requests that two readers (a proxy and we) could understand
 * differently. libmicrohttpd by itself accepts Transfer-Encoding beside Content-Length, doubled Content-Length and
 * Host, no Host at all, odd names. Pure, so that its list of cases is a table in the tests.
 *
 * Most faults of Content-Length never come here. The library refuses them by itself, and version 0.9.75 writes the head
 * of that 400 or 413 twice: its parser queues the answer, then overwrites the state that says so, and begins the answer
 * again. We cannot prevent it: between the request line and that answer the library calls nobody, and it shows the rest
 * of the head to nobody. It is harmless: the library closes the connection and takes no further request from it, which
 * tests/api/test_api_guard.c holds.
 */
#ifndef SAGAD_IO_HTTP_GUARD_H
#define SAGAD_IO_HTTP_GUARD_H

#include "io/http/server.h"

#define HTTP_HEADERS_MAX 64
#define HTTP_QUERY_MAX 32
#define HTTP_HEAD_BYTES_MAX (16 * 1024)

/* NULL, or the sentence that says what is wrong with the head. `content_length` is -1 when none was given. */
const char *http_guard_headers(struct slice method, struct slice version, const struct http_pair *headers, size_t count,
                               int64_t *content_length);
/*
 * Checks where the library has left the texts of a head, which it cuts in place, in one block of memory. It misreads a
 * folded line: the rest of the value becomes a part of the name, in memory elsewhere, so that a Content-Length is lost.
 * Lines that it drops, and a method that it cut at a NUL, leave bytes between two texts.
 */
const char *http_guard_layout(struct slice method, struct slice path, struct slice version,
                              const struct http_pair *headers, size_t count);
/* The request target as it came over the wire. */
const char *http_guard_target(struct slice target);
/* Checks the path and the query after percent-decoding. */
const char *http_guard_decoded(struct slice path, const struct http_pair *query, size_t count);
bool http_name_is(struct slice name, const char *lower_case);

#endif
