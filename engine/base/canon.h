/*
 * The canonical form of a JSON text, for fingerprints and identities: members sorted and strings written as in RFC 8785,
 * numbers in exact decimal normal form (1.0 = 1 = 1e0; 9007199254740993 stays itself), no white space.
 * A number is its digits without zeros at either end times a power of ten: written as an integer or a decimal fraction
 * while that takes at most 40 digits, else as DIGITSeEXPONENT. Equal values have equal texts; -0 is 0.
 */
#ifndef SAGAD_BASE_CANON_H
#define SAGAD_BASE_CANON_H

#include "base/arena.h"
#include "base/digest.h"

/* `json` passed json_check(). `leave_out` are JSON Pointers of members to drop; may be NULL with count 0. */
struct slice canon(struct slice json, const struct slice *leave_out, size_t leave_out_count, struct arena *arena);
struct digest canon_digest(struct slice json, struct arena *scratch);

#endif
