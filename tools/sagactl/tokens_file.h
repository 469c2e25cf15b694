/* The file of tokens of sagad: a row is added, and all that stands there stays as it is. */
#ifndef SAGACTL_TOKENS_FILE_H
#define SAGACTL_TOKENS_FILE_H

#include "tools/sagactl/command.h"

/*
 * Adds the row, a JSON object of the name, to the file {"tokens": [ROW, ...]}. Whoever reads the file sees it without
 * the row or with it, and owner and rights stay those of the file. Returns false after it said why not.
 */
bool tokens_file_add(struct ctl *ctl, const char *path, struct slice name, struct slice row);

#endif
