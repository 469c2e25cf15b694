/* The settings that every adapter of programs has: argv, environment, directory. */
#ifndef SAGAD_ADAPTERS_PROGRAM_H
#define SAGAD_ADAPTERS_PROGRAM_H

#include "base/arena.h"
#include "base/errors.h"
#include "base/trace_context.h"

struct programs;

/* Check "argv" and "env" at registration. */
void program_check_argv(struct slice value, struct slice pointer, struct faults *faults);
void program_refuse_template(struct slice value, struct slice pointer,
                             struct faults *faults); /* adds a fault when the whole of "argv" is a template */
void program_check_env(struct slice value, struct slice pointer, struct faults *faults);

/* These read rendered settings. Each returns NULL, or a sentence that says what is wrong. `given` may be SLICE_NONE for
 * a setting that is optional. */
const char *program_argv(struct slice given, struct arena *arena, char ***out);
/* The environment is our PATH, HOME and LANG (HOME of the user that runs the program), then `given`, then the key if
 * there is one. A later variable replaces an earlier one. */
const char *program_env(struct slice given, struct slice key_name, struct slice key, const struct trace_context *trace,
                        const struct programs *programs, struct arena *arena, char ***out);
const char *program_search(char *const *env); /* returns its PATH; NULL: none */
const char *program_cwd(struct slice given, struct arena *arena, const char **out);

#endif
