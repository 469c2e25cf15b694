/* Options as parts of a URL, which filter a list, and as members of the body of a request. A function that is false
 * has printed a sentence: leave with EXIT_USAGE. */
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

/* Writes a member; writes nothing where the text is NULL. */
void body_put(struct json_writer *w, const char *name, const char *text);
void body_put_names(struct json_writer *w, const char *name, const char *names); /* "a,b" as an array */
/* The same as query_put_time(). */
MUST_USE bool body_put_time(struct ctl *ctl, struct json_writer *w, const char *name, const char *value);

#endif
