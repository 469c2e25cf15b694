/* Filters of lists as parts of a URL. Each function is false after it printed a sentence: leave with EXIT_USAGE. */
#ifndef SAGACTL_QUERY_H
#define SAGACTL_QUERY_H

#include "tools/sagactl/command.h"

/* Adds "&name=value"; adds nothing where the value is NULL. */
MUST_USE bool query_put(struct ctl *ctl, struct buffer *path, const char *name, const char *value);
/* The same for an option that may be given several times: "&name=one,other". */
MUST_USE bool query_put_all(struct ctl *ctl, struct buffer *path, const char *name, const struct option_values *values);
/* Reads an instant, or a time from now such as 2h. */
MUST_USE bool read_until(const char *value, int64_t *ms);
/* Adds an instant; `value` may be an age such as 2h, which counts back from now. */
MUST_USE bool query_put_time(struct ctl *ctl, struct buffer *path, const char *name, const char *value);
/* Adds a tag. `value` is NAME=VALUE, or NULL. */
MUST_USE bool query_put_tag(struct ctl *ctl, struct buffer *path, const char *tag);

#endif
