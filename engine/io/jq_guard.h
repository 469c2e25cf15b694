/* What stands in front of every jq program: definitions that hide what a program must not reach. */
#ifndef SAGAD_IO_JQ_GUARD_H
#define SAGAD_IO_JQ_GUARD_H

/* PREFIX program SUFFIX is the text that is compiled. The prefix holds no line end: jq's line numbers stay right. */
extern const char jq_guard_prefix[];
extern const char jq_guard_suffix[];

#endif
