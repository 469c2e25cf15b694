/* Puts the sentences of the service into the words of the command line: flags instead of members. */
#ifndef SAGACTL_WORDS_H
#define SAGACTL_WORDS_H

#include "base/arena.h"

struct slice words_of_flags(struct slice text, struct arena *arena);
/* Gives the flag for a JSON Pointer of a request, such as --as for /as; SLICE_NONE: there is none. */
struct slice words_flag_of(struct slice pointer, struct arena *arena);

#endif
