/* The meaning of a plain scalar of YAML, by the core schema of YAML 1.2. */
#ifndef SAGACTL_YAML_SCALAR_H
#define SAGACTL_YAML_SCALAR_H

#include "base/text.h"

enum yaml_scalar_kind {
    YAML_SCALAR_NULL,
    YAML_SCALAR_BOOL,
    YAML_SCALAR_JSON_NUMBER,
    YAML_SCALAR_OTHER_NUMBER, /* a number in a form of YAML only: +1, 0x1F, 0o17, .5, 007, .inf */
    YAML_SCALAR_STRING
};

enum yaml_scalar_kind yaml_scalar_kind(struct slice text);

/* Puts the scalar's JSON. Gives NULL, or the reason why it has none. Hexadecimal and octal numbers become decimal
 * ones. */
const char *yaml_scalar_put(struct slice text, struct buffer *out);

/* Is this U+0085, U+2028 or U+2029? They end lines in YAML 1.1, which libyaml implements, and are plain characters in
 * 1.2. */
bool yaml_is_old_line_end(const char *at, size_t left);

/* Does some reader of YAML, also one of version 1.1, take this text for anything but a string, unless it has quotes? */
bool yaml_scalar_needs_quotes(struct slice text);

#endif
