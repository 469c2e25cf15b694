/*
 * What the check() functions of all adapters share: a table of the members that settings may have.
 *
 * Settings are templates: a string with ${ } in it may become anything, so it passes wherever it stands.
 */
#ifndef SAGAD_ADAPTERS_SETTINGS_H
#define SAGAD_ADAPTERS_SETTINGS_H

#include "base/errors.h"
#include "base/json.h"

struct setting {
    const char *name;
    uint32_t types; /* BIT(JSON_STRING) | ..., 0: any value */
    bool required;
    /* May be NULL. Judges a value of the right type that is no template. */
    void (*check)(struct slice value, struct slice pointer, struct faults *faults);
    /* May be NULL. Judges a value that is a template; without it any may stand here. */
    void (*check_template)(struct slice value, struct slice pointer, struct faults *faults);
};

bool setting_is_template(struct slice value); /* a string that holds ${ */

/* False when the settings are no object: then nothing else can be judged. */
bool settings_check(struct slice settings, struct slice pointer, const struct setting *table, size_t count,
                    struct faults *faults);

/* Of an object: every value is text, a number, a boolean, null or a template. `check_name` may be NULL. */
void settings_check_scalars(struct slice object, struct slice pointer, struct faults *faults,
                            void (*check_name)(struct slice name, struct slice pointer, struct faults *faults));

/*
 * The text of a rendered scalar: of a string what it says, of a number or boolean its JSON. SLICE_NONE for null,
 * arrays and objects.
 */
struct slice setting_text(struct slice value, struct arena *arena);

#endif
