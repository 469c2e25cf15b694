/*
 * The check() functions of all adapters share this: a table of the members that settings may have.
 *
 * Settings are templates: a string with ${ } in it may become anything, so it passes everywhere.
 */
#ifndef SAGAD_ADAPTERS_TOOL_SETTINGS_H
#define SAGAD_ADAPTERS_TOOL_SETTINGS_H

#include "base/errors.h"
#include "base/json.h"

struct tool_setting {
    const char *name;
    uint32_t types; /* BIT(JSON_STRING) | ..., 0: any value */
    bool required;
    /* May be NULL. Checks a value that has the right type and is not a template. */
    void (*check)(struct slice value, struct slice pointer, struct faults *faults);
    /* Checks a value that is a template. NULL: every template passes. */
    void (*check_template)(struct slice value, struct slice pointer, struct faults *faults);
};

bool setting_is_template(struct slice value); /* true for a string that holds ${ */

/* Returns false when the settings are not an object: then nothing else can be checked. */
bool settings_check(struct slice settings, struct slice pointer, const struct tool_setting *table, size_t count,
                    struct faults *faults);

/* Checks that every value of an object is text, a number, a boolean, null or a template. `check_name` may be NULL. */
void settings_check_scalars(struct slice object, struct slice pointer, struct faults *faults,
                            void (*check_name)(struct slice name, struct slice pointer, struct faults *faults));

/*
 * Returns the text of a rendered scalar: the content of a string, the JSON of a number or boolean. Returns SLICE_NONE
 * for null, arrays and objects.
 */
struct slice setting_text(struct slice value, struct arena *arena);

#endif
