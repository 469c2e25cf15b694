/*
 * The state of a run that rests, in a few hundred bytes. The turn with which a run goes to rest stores them beside its
 * records, so that a repeat of a call is answered without reading the run's log again.
 *
 * They say nothing that the log does not say. Whoever cannot read them, or finds none, reads the log.
 */
#ifndef SAGAD_CORE_SAGA_REST_H
#define SAGAD_CORE_SAGA_REST_H

#include "core/saga/saga.h"

#define REST_FORM 2         /* the form of the bytes: this version writes and reads no other one */
#define REST_BYTES_MAX 1536 /* so that the row of such a turn stays in one piece in its table */

/* Writes the state of a run that rests. False, and nothing is written: it is none, or it has something that this form
 * does not hold, or too much of it. */
MUST_USE bool saga_write_rest(const struct saga *saga, struct buffer *out);
/*
 * Makes the state in `saga`, as the fold of the run's log makes it. `definition` is what a run begins with. `seq` is
 * that of the last record of the run's last turn, whose row had the bytes.
 *
 * With a sentence, and `saga` is of no use then, while the log may still be read:
 *   ERR_CORRUPT      the bytes are damaged, or those of another run or of another record
 *   ERR_UNSUPPORTED  they have the form of another release, or a tool of the run is not known here
 */
MUST_USE enum err_code saga_read_rest(struct saga *saga, struct arena *arena, struct saga_id id,
                                      const struct definition *definition, struct slice namespace, uint64_t seq,
                                      struct slice bytes, struct err *err);

uint32_t saga_rest_form(struct slice bytes); /* 0: the bytes have none */

#endif
