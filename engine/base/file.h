/* Reads the small files that hold settings: configuration, tokens, secrets, budgets. */
#ifndef SAGAD_BASE_FILE_H
#define SAGAD_BASE_FILE_H

#include "base/arena.h"
#include "base/errors.h"
#include "base/text.h"

enum file_trust {
    FILE_OF_ANYBODY,
    FILE_OF_ITS_OWNER /* the file is refused when others than its owner may write it */
};

/*
 * Reads a whole file into the arena. `what` names the kind of file in messages: "tokens".
 *
 * Ends with ERR_CONFIG when the file cannot be read, is larger than `kib_max`, or is not trusted. No other copy of the
 * text stays in memory.
 */
MUST_USE enum err_code file_read(const char *path, const char *what, size_t kib_max, enum file_trust trust,
                                 struct arena *arena, struct slice *text, struct err *err);

#endif
