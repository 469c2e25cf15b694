/* Builds and checks the parts of HTTP requests: URLs, query parameters, headers, and a key inside a body. */
#ifndef SAGAD_ADAPTERS_HTTP_PARTS_H
#define SAGAD_ADAPTERS_HTTP_PARTS_H

#include "base/arena.h"
#include "base/errors.h"
#include "base/outcome.h"

/*
 * Returns `url` with the members of `query` appended. Texts, numbers and booleans become one parameter each, arrays of
 * these one parameter for each element, null none. Returns SLICE_NONE when the query holds anything else.
 */
struct slice url_add_query(struct slice url, struct slice query, struct arena *arena);
struct slice url_add_parameter(struct slice url, struct slice name, struct slice value, struct arena *arena);

/*
 * Returns `body` with the JSON `value` at the place that the pointer names. The value is replaced, or added with the
 * objects that lead to it. All other bytes stay the same. Returns SLICE_NONE when the pointer leads through something
 * that is neither an object nor an array.
 */
struct slice body_set(struct slice body, struct slice pointer, struct slice value, struct arena *arena);

/* Is a whole segment of the path "." or ".."? A receiver, or a proxy in front of it, would resolve it to another path.
 * */
bool url_has_dot_segment(struct slice url);

/* Checks at registration: a "url", which may be a template, and "headers". */
void http_check_url(struct slice value, struct slice pointer, struct faults *faults);
void http_check_url_template(struct slice value, struct slice pointer, struct faults *faults);
void http_check_headers(struct slice value, struct slice pointer, struct faults *faults);
bool http_text_is_token(struct slice text); /* true for a text that can be the name of a header */

/* The outcome of a status code when the definition of the tool does not say otherwise. */
enum outcome_kind http_status_outcome(int status);
int64_t http_retry_after_ms(struct slice value, int64_t now_ms,
                            struct arena *arena); /* the header Retry-After, seconds or a date; 0: none */

#endif
