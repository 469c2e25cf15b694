/* Which programs tools may run, and as whom: what the settings --exec-user, --exec-as-me and --exec-path say. */
#ifndef SAGAD_IO_PROCESS_PROGRAMS_H
#define SAGAD_IO_PROCESS_PROGRAMS_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/errors.h"

#define PROGRAM_PATHS_MAX 64

struct programs {
    bool allowed; /* false: none may run */
    bool as_user; /* the programs run as another user than ourselves */
    uid_t uid;
    gid_t gid;
    char home[256];                 /* the home of that user */
    char *paths[PROGRAM_PATHS_MAX]; /* files, and folders with all that is below them; resolved */
    size_t path_count;              /* 0: any program */
    bool path_is_set;
};

/* `user` and `paths` (absolute, with colons between them) may be NULL. */
MUST_USE enum err_code programs_read(struct programs *programs, const char *user, bool as_me, const char *paths,
                                     struct err *err);
void programs_fini(struct programs *programs);

/* NULL when this program may run, else a sentence. `search` is the PATH that it is looked up in; NULL: none. */
const char *programs_refusal(const struct programs *programs, const char *program, const char *search);

#endif
