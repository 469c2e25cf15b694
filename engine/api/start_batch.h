/*
 * POST /v1/sagas/batch: many starts as one request. Each element is a request of its own that goes the way of a single
 * start; what it would have answered to a client it answers to its batch.
 */
#ifndef SAGAD_API_START_BATCH_H
#define SAGAD_API_START_BATCH_H

#include "api/request.h"

/* The start of an element is durable: now, or a little later, saga_read_started() or an answer with its id alone. */
void start_batch_started(struct api_request *element);
/* An element has its answer. The text stays in its arena. */
void start_batch_take(struct api_request *element, int status, struct slice body, int64_t retry_after_s);
/* What stands for the header Idempotency-Key of the whole request in one element. */
struct slice start_batch_key(const struct api_request *element, struct slice key, struct faults *faults);

#endif
