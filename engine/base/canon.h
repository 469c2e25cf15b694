/*
 * The canonical form of a JSON text, for fingerprints and identities: members sorted and strings written as in RFC
 * 8785, numbers in exact decimal normal form (1.0 = 1 = 1e0; 9007199254740993 stays itself), no white space.
 *
 * A number is sign * digits * 10^exponent, the digits without zeros at either end. Zero and negative zero are 0. With a
 * positive or no exponent it is written as an integer if that has at most 40 digits. With a negative one it is written
 * as a decimal fraction: 12.5 if it has at most 40 digits, 0.00125 if at most 40 stand behind the point. Anything else
 * is DIGITSeEXPONENT. Equal values therefore have equal texts, and different values have different texts. The text is
 * for comparing and hashing: 10e400 becomes 1e401, which json_check() would refuse.
 */
#ifndef SAGAD_BASE_CANON_H
#define SAGAD_BASE_CANON_H

#include "base/arena.h"
#include "base/digest.h"

/* `json` passed json_check(). `leave_out` are JSON Pointers of members to drop (never of elements), in which the
 * segment `*` stands for every element of an array and every member of an object; may be NULL with count 0. */
struct slice canon(struct slice json, const struct slice *leave_out, size_t leave_out_count, struct arena *arena);
/* Does `pattern`, a JSON Pointer in which `*` stands for any one segment, name the place `pointer`? */
bool canon_pointer_matches(struct slice pattern, struct slice pointer);
/* Can either of two such pointers name a place that lies at or within a place of the other? */
bool canon_pointers_overlap(struct slice a, struct slice b);
struct digest canon_digest(struct slice json, struct arena *scratch);

#endif
