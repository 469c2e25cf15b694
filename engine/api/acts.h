/* Which requests are acts of persons, and which refusals are counted. */
#ifndef SAGAD_API_ACTS_H
#define SAGAD_API_ACTS_H

#include "base/errors.h"

struct api_request;
struct verb;

/* Before the handler: says whose act the change is, unless the request is no act. */
void request_mark_act(struct api_request *request);
/* The same of a verb that another route carries. */
void request_mark_act_of(struct api_request *request, const struct verb *verb);
/* The request is answered with this problem. Counts where it was a change, or a right was missing. */
void request_count_refusal(struct api_request *request, enum err_code code);

#endif
