/*
 * YAML 1.2 with its core schema, read as JSON and written from it.
 *
 * Only what JSON can say is read. Anchors, aliases, tags (but `!!str`) and a second document are refused, so that a
 * short text cannot become a large one; so are members that stand twice, keys that are no scalars, and .inf and .nan. A
 * plain scalar that is a JSON number goes through as its text; `yes`, `no`, `on`, `off`, dates and 1:30 are strings.
 */
#ifndef SAGACTL_YAML_TEXT_H
#define SAGACTL_YAML_TEXT_H

#include "base/arena.h"
#include "base/errors.h"

struct text_position { /* from 1 on, in characters; 0: there is none */
    unsigned line, column;
};

struct yaml_mark { /* the value at this offset of the JSON stands there in the YAML */
    size_t offset;
    struct text_position position;
};

struct yaml_text {
    struct slice json; /* whatever json_check() says about its size, numbers and U+0000 is still to be asked */
    const struct yaml_mark *marks; /* one for each value, in the order of offsets */
    size_t mark_count;
};

struct yaml_fault {
    struct text_position position;
    char detail[200];
};

/* False: why not, and where. `out` lies in the arena. */
MUST_USE bool yaml_read(struct slice yaml, struct arena *arena, struct yaml_text *out, struct yaml_fault *fault);
/* Of the value at `offset` of the JSON. */
struct text_position yaml_position(const struct yaml_text *text, size_t offset);

/* The YAML of a text that passed json_check(), ending with a line end. yaml_read() gives the same value again, to the
 * digit. False: there is no memory, or libyaml refuses. */
MUST_USE bool yaml_write(struct slice json, struct buffer *out);

#endif
