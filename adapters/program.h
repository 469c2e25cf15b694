/* What the adapters that run a program share: its argv, its environment, its directory. */
#ifndef SAGAD_ADAPTERS_PROGRAM_H
#define SAGAD_ADAPTERS_PROGRAM_H

#include "base/arena.h"
#include "base/errors.h"

struct programs;

/* At registration: of "argv" and "env". */
void program_check_argv(struct slice value, struct slice pointer, struct faults *faults);
void program_refuse_template(struct slice value, struct slice pointer,
                             struct faults *faults); /* adds a fault: the whole of "argv" is a template */
void program_check_env(struct slice value, struct slice pointer, struct faults *faults);

/* Of rendered settings. Each gives NULL, or a sentence on what they lack. `given` may be SLICE_NONE where it may be
 * left out. */
const char *program_argv(struct slice given, struct arena *arena, char ***out);
/* PATH, HOME and LANG of ours (HOME of the user that it runs as), then `given`, then the key if there is one: later
 * wins. */
const char *program_env(struct slice given, struct slice key_name, struct slice key, const struct programs *programs,
                        struct arena *arena, char ***out);
const char *program_search(char *const *env); /* its PATH; NULL: none */
const char *program_cwd(struct slice given, struct arena *arena, const char **out);

#endif
