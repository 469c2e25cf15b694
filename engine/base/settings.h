/*
 * Settings are rows of one table: flags, environment, file, help and the printed configuration all come from it. A flag
 * beats the environment, the environment beats the file, and the file beats the default, in whatever order they are
 * read.
 */
#ifndef SAGAD_BASE_SETTINGS_H
#define SAGAD_BASE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/errors.h"

/* BYTES are written 65536, 64KiB, 16MiB or 2GiB; DURATION as in instant.h; SWITCH true or false. */
enum setting_type { SETTING_TEXT, SETTING_NUMBER, SETTING_DURATION /* ms */, SETTING_SWITCH, SETTING_BYTES };
enum setting_origin { ORIGIN_DEFAULT, ORIGIN_FILE, ORIGIN_ENVIRONMENT, ORIGIN_FLAG };

struct setting {
    const char
        *name; /* "lease" is --lease, SAGAD_LEASE and the member "lease" of the file; "log-level" is SAGAD_LOG_LEVEL */
    enum setting_type type;
    const char *unit;  /* for people; may be NULL */
    const char *value; /* the default, as it would be written; NULL: none */
    int64_t min, max;  /* SETTING_NUMBER, SETTING_DURATION and SETTING_BYTES */
    const char *text;  /* what it does */
    bool secret;       /* masked when printed */
};

struct setting_value {
    struct slice text; /* SLICE_NONE: not set */
    int64_t number;    /* milliseconds, bytes, number, or 0 and 1 */
    enum setting_origin origin;
};

struct settings {
    struct arena arena;
    const struct setting *table;
    struct setting_value *values;
    size_t count;
};

/* The table is borrowed as long as the settings live. A default that breaks its own row is a broken condition. */
void settings_init(struct settings *settings, const struct setting *table, size_t count);
void settings_fini(struct settings *settings);

/*
 * Flags are `--name VALUE`, `--name=VALUE`, and `--name` for switches; argv[from] is the first. They end before the
 * first argument that is none, or behind `--`: `first_word` is the index of what follows (argc when nothing does), set
 * on success only. All three sources end with ERR_CONFIG for an unknown name or a value out of its bounds; values read
 * before it stay set.
 */
MUST_USE enum err_code settings_from_args(struct settings *settings, int argc, char **argv, int from, int *first_word,
                                          struct err *err);
MUST_USE enum err_code settings_from_environment(struct settings *settings, const char *prefix, struct err *err);
MUST_USE enum err_code settings_from_file(struct settings *settings, const char *path,
                                          struct err *err); /* a JSON object, each value with the type of its row */

/* The name must stand in the table. */
const char *settings_text(const struct settings *settings, const char *name); /* NULL when not set */
int64_t settings_number(const struct settings *settings, const char *name);   /* 0 when not set */
bool settings_switch(const struct settings *settings, const char *name);

/* Writes a line for each setting, for programs; or lines of at most `width` columns, for people. `width` 0: no bound.
 */
void settings_help(const struct settings *settings, size_t width, struct buffer *out);
void settings_print(const struct settings *settings,
                    struct buffer *out); /* JSON: {name: {value, origin}}; secrets masked */

#endif
