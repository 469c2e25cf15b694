/* What stands in front of every jq program: definitions that hide what a program must not reach. */
#ifndef SAGAD_IO_PROCESS_JQ_GUARD_H
#define SAGAD_IO_PROCESS_JQ_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* PREFIX program SUFFIX is the text that is compiled. The prefix holds no line end: jq's line numbers stay right. */
extern const char jq_guard_prefix[];
extern const char jq_guard_suffix[];

/*
 * PREFIX program, without a suffix, compiles at registration where the program is one by itself and names nothing that
 * is refused. Else jq's sentence may begin with JQ_GUARD_UNKNOWN and the refused name.
 */
extern const char jq_guard_check_prefix[];
#define JQ_GUARD_UNKNOWN "__refused__"

/* Why a name is refused, and what to use instead. */
const char *jq_guard_reason(const char *name, size_t len);

/* Both read the text of a program, which must hold no NUL byte. */

/* Does a program name the variable `$ENV`, outside of texts and comments? libjq breaks when it compiles that. */
bool jq_guard_names_env(const char *text, size_t len);

/*
 * Does the program close what it opens, and nothing else? Then `(` PROGRAM `)` holds the program as one expression,
 * whatever stands around it. False for a program with a comment, because libjq changed where a comment ends.
 */
bool jq_guard_is_closed(const char *text, size_t len);

#endif
