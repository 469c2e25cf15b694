/* The pieces of a request that a rendered tool is turned into: query parameters and a key inside a body. */
#ifndef SAGAD_ADAPTERS_HTTP_PARTS_H
#define SAGAD_ADAPTERS_HTTP_PARTS_H

#include "base/arena.h"
#include "base/errors.h"
#include "base/outcome.h"

/*
 * `url` with the members of `query` behind it: text, numbers and booleans once, arrays of these once an element, null
 * not at all. SLICE_NONE when there is anything else in it.
 */
struct slice url_add_query(struct slice url, struct slice query, struct arena *arena);
struct slice url_add_parameter(struct slice url, struct slice name, struct slice value, struct arena *arena);

/*
 * `body` with the JSON `value` at the place of the pointer: replaced, or added where it was absent; objects on the way
 * are made. Everything else stays byte for byte. SLICE_NONE when the way leads through something that is no container.
 */
struct slice body_set(struct slice body, struct slice pointer, struct slice value, struct arena *arena);

/* Is a whole segment of its path "." or ".."? A receiver, or a proxy before it, would take another path for meant. */
bool url_has_dot_segment(struct slice url);

/* At registration: of a "url", which may be a template, and of "headers". */
void http_check_url(struct slice value, struct slice pointer, struct faults *faults);
void http_check_url_template(struct slice value, struct slice pointer, struct faults *faults);
void http_check_headers(struct slice value, struct slice pointer, struct faults *faults);
bool http_text_is_token(struct slice text); /* could be the name of a header */

/* The table of definitions: what an answer means when the tool does not say otherwise. */
enum outcome_kind http_status_outcome(int status);
int64_t http_retry_after_ms(struct slice value, int64_t now_ms,
                            struct arena *arena); /* of the header, seconds or a date; 0: none */

#endif
