/* A setting comes from the nearest of its sources, has its type and bounds, and a secret is never shown. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/settings.h"
#include "tests/lib/test.h"
#include "tests/lib/texts.h"

static const struct setting table[] = {
    {.name = "listen", .type = SETTING_TEXT, .value = "127.0.0.1:1", .text = "address and port"},
    {.name = "database", .type = SETTING_TEXT, .text = "the DSN", .secret = true},
    {.name = "in-flight",
     .type = SETTING_NUMBER,
     .unit = "calls",
     .value = "256",
     .min = 1,
     .max = 4096,
     .text = "at once"},
    {.name = "lease", .type = SETTING_DURATION, .value = "15s", .min = 1000, .max = 600000, .text = "how long"},
    {.name = "body-max", .type = SETTING_BYTES, .value = "1MiB", .min = 1024, .max = 1 << 30, .text = "of a request"},
    {.name = "quiet", .type = SETTING_SWITCH, .value = "false", .text = "says less"},
};

static const char *const names[] = {"SAGAD_LISTEN", "SAGAD_DATABASE", "SAGAD_IN_FLIGHT",
                                    "SAGAD_LEASE",  "SAGAD_BODY_MAX", "SAGAD_QUIET"};

static int start(void **state)
{
    struct settings *settings = malloc(sizeof(*settings));

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        (void)unsetenv(names[i]); /* the caller's own environment is not for this test */
    }
    settings_init(settings, table, COUNT_OF(table));
    *state = settings;
    return 0;
}

static int stop(void **state)
{
    settings_fini(*state);
    free(*state);
    return 0;
}

static enum err_code read_args(struct settings *settings, int *first_word, struct err *err, int argc,
                               const char *const *words)
{
    char program[] = "sagad", *argv[8] = {program};

    for (int i = 0; i < argc; i++) {
        argv[i + 1] = (char *)(uintptr_t)words[i]; /* as main() gets them */
    }
    return settings_from_args(settings, argc + 1, argv, 1, first_word, err);
}

#define ARGS(settings, first_word, err, ...)                                                                           \
    read_args(settings, first_word, err, (int)COUNT_OF(((const char *const[]){__VA_ARGS__})),                          \
              (const char *const[]){__VA_ARGS__})

static enum err_code read_text(struct settings *settings, const char *text, struct err *err)
{
    char path[] = "/tmp/sagad-test-settings-XXXXXX";
    int file = mkstemp(path);

    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    (void)close(file); /* the file is read at once */
    enum err_code code = settings_from_file(settings, path, err);

    (void)unlink(path); /* our own file in the folder for such files */
    return code;
}

TEST(defaults_hold_until_something_else_is_said)
{
    struct settings *settings = *state;

    assert_string_equal(settings_text(settings, "listen"), "127.0.0.1:1");
    assert_null(settings_text(settings, "database"));
    assert_int_equal(settings_number(settings, "in-flight"), 256);
    assert_int_equal(settings_number(settings, "lease"), 15000);
    assert_int_equal(settings_number(settings, "body-max"), 1 << 20);
    assert_false(settings_switch(settings, "quiet"));
}

TEST(flags_are_read_in_every_form_up_to_the_first_word)
{
    struct settings *settings = *state;
    int first = -1;

    assert_int_equal(ARGS(settings, &first, NULL, "--listen", "a:1", "--in-flight=7", "--quiet", "dev", "--lease"),
                     ERR_OK);
    assert_int_equal(first, 5);
    assert_string_equal(settings_text(settings, "listen"), "a:1");
    assert_int_equal(settings_number(settings, "in-flight"), 7);
    assert_true(settings_switch(settings, "quiet"));
    assert_int_equal(ARGS(settings, &first, NULL, "--quiet=false", "--listen=", "-o"), ERR_OK);
    assert_int_equal(first, 3);
    assert_false(settings_switch(settings, "quiet"));
    assert_string_equal(settings_text(settings, "listen"), "");
    assert_int_equal(ARGS(settings, &first, NULL, "--database", "--lease", "--", "--quiet"),
                     ERR_OK); /* a value may look like a flag */
    assert_int_equal(first, 4);
    assert_string_equal(settings_text(settings, "database"), "--lease");
    assert_int_equal(ARGS(settings, &first, NULL, "--lease", "2m"), ERR_OK);
    assert_int_equal(first, 3);
    assert_int_equal(settings_number(settings, "lease"), 120000);
}

TEST(the_nearest_source_wins_in_whatever_order_they_are_read)
{
    struct settings *settings = *state;
    int first;

    assert_int_equal(setenv("SAGAD_IN_FLIGHT", "20", 1), 0);
    assert_int_equal(setenv("SAGAD_LEASE", "20s", 1), 0);
    for (int order = 0; order < 2; order++) {
        if (order == 0) {
            assert_int_equal(ARGS(settings, &first, NULL, "--in-flight", "10"), ERR_OK);
            assert_int_equal(settings_from_environment(settings, "SAGAD_", NULL), ERR_OK);
        }
        assert_int_equal(read_text(settings, "{\"in-flight\":30,\"lease\":\"30s\",\"listen\":\"file:1\"}", NULL),
                         ERR_OK);
        if (order == 1) {
            assert_int_equal(settings_from_environment(settings, "SAGAD_", NULL), ERR_OK);
            assert_int_equal(ARGS(settings, &first, NULL, "--in-flight", "10"), ERR_OK);
        }
        assert_int_equal(settings_number(settings, "in-flight"), 10);
        assert_int_equal(settings_number(settings, "lease"), 20000);
        assert_string_equal(settings_text(settings, "listen"), "file:1");
        settings_fini(settings);
        settings_init(settings, table, COUNT_OF(table));
    }
}

TEST(a_file_has_values_of_their_own_types)
{
    struct settings *settings = *state;

    assert_int_equal(read_text(settings,
                               " {\"in-flight\":1e3,\"quiet\":true,\"body-max\":\"64KiB\",\"\\u006cease\":\"1m\","
                               "\"database\":\"a\\u00e9\"} ",
                               NULL),
                     ERR_OK);
    assert_int_equal(settings_number(settings, "in-flight"), 1000);
    assert_true(settings_switch(settings, "quiet"));
    assert_int_equal(settings_number(settings, "body-max"), 65536);
    assert_int_equal(settings_number(settings, "lease"), 60000);
    assert_string_equal(settings_text(settings, "database"), "a\xc3\xa9");
    assert_int_equal(read_text(settings, "{\"body-max\":2048}", NULL), ERR_OK);
    assert_int_equal(settings_number(settings, "body-max"), 2048);
}

static const struct {
    const char *flag, *says;
} bad_flags[] = {
    {"--colour=red", "no setting --colour"},
    {"--=x", "no setting --"},
    {"--in_flight=1", "no setting"},
    {"--listen", "value must follow --listen"},
    {"--in-flight=0", "\"in-flight\" cannot be \"0\""},
    {"--in-flight=4097", "cannot be"},
    {"--in-flight=x", "cannot be"},
    {"--in-flight=", "cannot be"},
    {"--in-flight=1.0", "cannot be"},
    {"--lease=999ms", "cannot be"},
    {"--lease=11m", "cannot be"},
    {"--lease=15", "cannot be"},
    {"--quiet=yes", "cannot be"},
    {"--body-max=1KB", "cannot be"},
    {"--body-max=KiB", "cannot be"},
    {"--body-max=1023", "cannot be"},
    {"--body-max=-1KiB", "cannot be"},
    {"--body-max=2GiB", "cannot be"},
    {"--body-max=99999999999999999GiB", "cannot be"},
    {"--body-max=", "cannot be"},
};

TEST(a_bad_flag_is_refused_with_what_would_be_right)
{
    struct settings *settings = *state;

    for (size_t i = 0; i < COUNT_OF(bad_flags); i++) {
        struct err err = {0};
        int first = -1;

        if (ARGS(settings, &first, &err, bad_flags[i].flag) != ERR_CONFIG || !strstr(err.message, bad_flags[i].says) ||
            first != -1) {
            fail_msg("%s: %s", bad_flags[i].flag, err.message);
        }
        assert_true(err.hint[0] || strstr(err.message, "must follow"));
    }
    defaults_hold_until_something_else_is_said(state);
}

static const struct {
    const char *text, *says;
} bad_files[] = {
    {"", "not the JSON"},
    {"{", "not the JSON"},
    {"[]", "JSON object"},
    {"{\"colour\":1}", "no setting \"colour\""},
    {"{\"listen\":1}", "\"listen\" cannot be \"1\""},
    {"{\"listen\":null}", "cannot be \"null\""},
    {"{\"listen\":{\"a\":1}}", "cannot be"},
    {"{\"in-flight\":\"7\"}", "cannot be"},
    {"{\"in-flight\":7.5}", "cannot be"},
    {"{\"in-flight\":0}", "cannot be"},
    {"{\"quiet\":\"true\"}", "cannot be"},
    {"{\"quiet\":1}", "cannot be"},
    {"{\"lease\":15000}", "cannot be"},
    {"{\"lease\":\"1s\",\"lease\":\"2s\"}", "not the JSON"},
    {"{\"in-flight\":7,}", "not the JSON"},
};

TEST(a_bad_file_is_refused_by_name)
{
    struct settings *settings = *state;
    struct err err = {0};

    for (size_t i = 0; i < COUNT_OF(bad_files); i++) {
        if (read_text(settings, bad_files[i].text, &err) != ERR_CONFIG || err.code != ERR_CONFIG ||
            !strstr(err.message, bad_files[i].says) || !strstr(err.message, "sagad-test-settings-")) {
            fail_msg("%s: %s", bad_files[i].text, err.message);
        }
    }
    assert_int_equal(settings_from_file(settings, "/nowhere/at/all", &err), ERR_CONFIG);
    assert_has(err.message, "/nowhere/at/all");
    assert_has(err.detail, "No such file");
    assert_int_equal(settings_from_file(settings, "/", &err), ERR_CONFIG);
    assert_has(err.detail, "directory");
    char *large = malloc(70001);

    memset(large, ' ', 70000);
    large[70000] = '\0';
    assert_int_equal(read_text(settings, large, &err), ERR_CONFIG);
    assert_has(err.message, "larger");
    free(large);
    defaults_hold_until_something_else_is_said(state);
}

TEST(a_bad_variable_is_refused_with_its_origin)
{
    struct settings *settings = *state;
    struct err err = {0};

    assert_int_equal(setenv("SAGAD_QUIET", "maybe", 1), 0);
    assert_int_equal(settings_from_environment(settings, "SAGAD_", &err), ERR_CONFIG);
    assert_has(err.detail, "environment");
    assert_string_equal(err.hint, "true or false");
}

TEST(a_secret_is_masked_wherever_it_is_shown)
{
    struct settings *settings = *state;
    struct buffer out;
    struct err err = {0};
    int first;

    buffer_init(&out, 1 << 16);
    settings_print(settings, &out);
    assert_non_null(strstr(buffer_c(&out), "\"database\":{\"value\":null,\"origin\":\"default\"}"));
    buffer_reset(&out);
    assert_int_equal(ARGS(settings, &first, NULL, "--database", "host=x password=hunter2", "--lease", "1m"), ERR_OK);
    assert_int_equal(read_text(settings, "{\"listen\":\"f:1\"}", NULL), ERR_OK);
    settings_print(settings, &out);
    assert_int_equal(json_check(buffer_slice(&out), &json_limits_default, NULL), ERR_OK);
    assert_null(strstr(buffer_c(&out), "hunter2"));
    assert_has(buffer_c(&out), "\"database\":{\"value\":\"***\",\"origin\":\"flag\"}",
               "\"lease\":{\"value\":\"1m\",\"origin\":\"flag\"}",
               "\"listen\":{\"value\":\"f:1\",\"origin\":\"file\"}");
    assert_int_equal(read_text(settings, "{\"database\":[\"hunter2\"]}", &err), ERR_CONFIG);
    assert_has_none(err.message, "hunter2");
    buffer_reset(&out);
    settings_help(settings, 0, &out);
    assert_null(strstr(buffer_c(&out), "hunter2"));
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        assert_has(buffer_c(&out), table[i].name, table[i].text);
    }
    buffer_reset(&out);
    settings_help(settings, 60, &out);
    for (const char *line = buffer_c(&out); *line; line += strcspn(line, "\n") + 1) {
        assert_in_range(strcspn(line, "\n"), 1, 60);
    }
    buffer_fini(&out);
}

TEST_PROGRAM_EACH(start, stop)
