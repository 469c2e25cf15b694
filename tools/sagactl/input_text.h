/* Texts that people hand over: JSON, whose bytes stay as they are, or YAML with the same meaning. */
#ifndef SAGACTL_INPUT_TEXT_H
#define SAGACTL_INPUT_TEXT_H

#include "tools/sagactl/command.h"
#include "tools/sagactl/yaml_text.h"

struct input_text {
    const char *path;        /* the name of the text in sentences: the path, "-", or the option */
    struct slice json;       /* JSON that is not checked yet; "" where the YAML is broken */
    struct yaml_text yaml;   /* mark_count 0: the text was JSON */
    struct yaml_fault fault; /* position.line 0: the YAML has no fault */
};

/*
 * Parses a text. A file called *.yaml or *.yml is YAML, and one called *.json is JSON. Any other text is JSON where it
 * begins with {, [ or ", or is JSON. Else it is YAML, and must be a mapping or a sequence: a file name without its @ is
 * no input.
 */
void input_parse(struct ctl *ctl, const char *path, struct slice text, struct input_text *out);
/* Reads a file; "-" is standard input. False: it cannot be read, and input_read() has printed a sentence. */
MUST_USE bool input_read(struct ctl *ctl, const char *path, struct input_text *out);
/* The same, but it is false for broken YAML, too, after it printed FILE:LINE:COLUMN: and the fault. */
MUST_USE bool input_read_whole(struct ctl *ctl, const char *path, struct input_text *out);

/* Gives the place of the value at a pointer, or of the value around it where it is missing. No place: the text is no
 * JSON. */
struct text_position input_position(const struct input_text *text, struct slice pointer);
/* Prints FILE:LINE:COLUMN: POINTER: and the fault, on one line of stderr. */
void input_print_fault(const struct input_text *text, struct slice pointer, struct slice detail);

#endif
