/* What starting a defined saga and opening one have in common. */
#ifndef SAGAD_API_SAGAS_H
#define SAGAD_API_SAGAS_H

#include "api/request.h"

/* The business id: member `id` of the body, else the header Idempotency-Key, else SLICE_NONE. `key`: that header, which
 * names the saga beside an id. */
struct slice saga_read_id(struct api_request *request, struct slice id, struct slice *key, struct faults *faults);
void saga_check_tags(struct slice tags, struct arena *arena, struct faults *faults);
/* The `done` of a start: 201 or 200, Location, and the saga, after `wait` where it was asked for. */
void saga_on_started(struct engine_request *asked);
/* The last part of that, which a batch puts off: reads the saga back and answers with it. */
void saga_read_started(struct api_request *request);

#endif
