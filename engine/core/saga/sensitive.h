/*
 * Which members of a saga's payloads are sensitive, and views of the saga without them.
 *
 * Tools and sagas declare JSON Pointers. What one of them declares holds for all payloads of the saga: a pointer into
 * arguments masks that place in the saga's input and in the arguments of every step, one that begins with "/result"
 * masks it in every result and in the output. Beside that, a value of six bytes and more that stands at such a place
 * is masked wherever else it turns up: in an approval, in what a receiver said, in a sentence.
 *
 * There is no other rule about this. Whoever shows a payload of a saga to somebody asks here.
 */
#ifndef SAGAD_CORE_SAGA_SENSITIVE_H
#define SAGAD_CORE_SAGA_SENSITIVE_H

#include "core/saga/saga.h"

#define SENSITIVE_MASK "***"
#define SENSITIVE_MASK_JSON "\"" SENSITIVE_MASK "\""

/* Does this saga, or a tool or a child of it, declare anything? */
bool saga_has_sensitive(const struct saga *saga);
/* Does the saga of this definition? Of what grows while it runs only what was written counts. */
bool definition_has_sensitive(const struct definition *definition);

/*
 * Appends `view`, JSON that shows this saga or a part of it, with what is sensitive masked; all else byte for byte. The
 * payloads are found by the names that our views and records give them: args, input, result, output, show and so on.
 * A null stays null. Where a result has sensitive members the body of a receiver's refusal is masked whole.
 */
void saga_mask(const struct saga *saga, struct slice view, struct buffer *out);
/* The same for the text in `out` from `from` on. Does nothing for a saga that declares nothing. */
void saga_mask_in(const struct saga *saga, struct buffer *out, size_t from);
/*
 * The sentences of a record that is about to be made durable: nobody reads a sensitive value there, in the log or in
 * what is made of it. They are for people, and no decision reads them.
 */
void saga_mask_sentences(const struct saga *saga, struct record *record, struct arena *arena);

#endif
