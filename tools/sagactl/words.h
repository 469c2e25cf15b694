/* What the service says, in the words of the command line: flags instead of members. */
#ifndef SAGACTL_WORDS_H
#define SAGACTL_WORDS_H

#include "base/arena.h"

struct slice words_of_flags(struct slice text, struct arena *arena);
/* The flag that a JSON Pointer of a request means, such as --as of /as; SLICE_NONE: none does. */
struct slice words_flag_of(struct slice pointer, struct arena *arena);

#endif
