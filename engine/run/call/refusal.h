/*
 * What the receiver said when it was no success, for people and for the log.
 *
 * Status, the headers that the tool names and the beginning of the body, as
 * {"status", "headers"?, "body", "cut"?, "not_utf8"?, "by"?}: a body that is JSON and is
 * kept whole stays JSON, the beginning of a longer one is text and marked "cut", bytes that are no UTF-8 become U+FFFD
 * and are marked. Values of the secrets that the request was made with never come through: where the receiver repeats
 * one, "[secret]" stands.
 */
#ifndef SAGAD_RUN_CALL_REFUSAL_H
#define SAGAD_RUN_CALL_REFUSAL_H

#include "run/call/activity.h"

/*
 * Puts it into the activity's outcome, which is about to be reported, and takes secrets out of its sentence.
 * `settings`: what the request was made from.
 */
void refusal_keep(struct activity *activity, const struct template *settings);
/* Takes them out of all that has come: its sentence, its result and the response. */
void refusal_hide(struct activity *activity, const struct template *settings);

#endif
