/*
 * YAML 1.2 with its core schema, read as JSON and written from JSON.
 *
 * It reads only what JSON can say. It refuses anchors, aliases, tags (except `!!str`) and a second document, so that a
 * short text cannot become a large one. It also refuses duplicate members, keys that are no scalars, .inf and .nan. A
 * plain scalar that is a JSON number keeps its text; `yes`, `no`, `on`, `off`, dates and 1:30 are strings.
 */
#ifndef SAGACTL_YAML_TEXT_H
#define SAGACTL_YAML_TEXT_H

#include "base/arena.h"
#include "base/errors.h"

struct text_position { /* counts from 1, in characters; 0: there is no position */
    unsigned line, column;
};

struct yaml_mark { /* the place in the YAML of the value at this offset of the JSON */
    size_t offset;
    struct text_position position;
};

struct yaml_text {
    struct slice json;             /* JSON whose size, numbers and U+0000 json_check() has still to check */
    const struct yaml_mark *marks; /* one for each value, in the order of offsets */
    size_t mark_count;
};

struct yaml_fault {
    struct text_position position;
    char detail[200];
};

/* Reads YAML. False: `fault` says why not, and where. `out` lies in the arena. */
MUST_USE bool yaml_read(struct slice yaml, struct arena *arena, struct yaml_text *out, struct yaml_fault *fault);
/* Gives the position of the value at `offset` of the JSON. */
struct text_position yaml_position(const struct yaml_text *text, size_t offset);

/* Writes a text that passed json_check() as YAML that ends with a line end. yaml_read() gives the same value again, to
 * the digit. False: there is no memory, or libyaml refuses. */
MUST_USE bool yaml_write(struct slice json, struct buffer *out);

#endif
