/* What people hand over: JSON, which stays the bytes that it is, or YAML that says the same. */
#ifndef SAGACTL_INPUT_TEXT_H
#define SAGACTL_INPUT_TEXT_H

#include "tools/sagactl/command.h"
#include "tools/sagactl/yaml_text.h"

struct input_text {
    const char *path;        /* for sentences: that of the file, "-", or the option */
    struct slice json;       /* not checked yet; "" where the YAML is broken */
    struct yaml_text yaml;   /* mark_count 0: it was JSON */
    struct yaml_fault fault; /* position.line 0: it is not broken */
};

/*
 * A file called *.yaml or *.yml is YAML, and one called *.json is JSON. Anything else is JSON where it begins with {, [
 * or ", or is JSON; else it is YAML, and must then be a mapping or a sequence: a file name without its @ is no input.
 */
void input_parse(struct ctl *ctl, const char *path, struct slice text, struct input_text *out);
/* "-" is standard input. False: it cannot be read, and a sentence was printed. */
MUST_USE bool input_read(struct ctl *ctl, const char *path, struct input_text *out);
/* The same, and broken YAML is false, too: FILE:LINE:COLUMN: was printed. */
MUST_USE bool input_read_whole(struct ctl *ctl, const char *path, struct input_text *out);

/* Where the value of a pointer begins, or of what is around it where it is missing; none where it is no JSON. */
struct text_position input_position(const struct input_text *text, struct slice pointer);
/* FILE:LINE:COLUMN: POINTER: what is wrong, on one line of stderr. */
void input_print_fault(const struct input_text *text, struct slice pointer, struct slice detail);

#endif
