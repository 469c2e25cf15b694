/* Secrets: their sources, which source has precedence, and the message about a wrong file, which never shows a
 * secret. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/call/secrets.h"
#include "tests/lib/scratch.h"
#include "tests/lib/test.h"

static void refuses(const char *why)
{
    struct secrets secrets;
    struct err err = {0};

    assert_int_equal(secrets_load(&secrets, scratch_file, &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, why));
    assert_null(strstr(err.message, "hush"));
    assert_null(strstr(err.detail, "hush"));
    secrets_fini(&secrets);
}

TEST(a_wrong_file_is_refused_and_nothing_of_it_is_shown)
{
    struct secrets secrets;
    struct err err = {0};

    scratch_write("{\"mail\": \"hush", 1);
    refuses("is not a JSON object");
    scratch_write("[\"hush\"]", 1);
    refuses("is not a JSON object");
    scratch_write("{\"mail\": \"hush\", \"port\": 5}", 1);
    refuses("the value of \"port\" is not a text");
    scratch_write("                                                                ", (1 << 20) / 64 + 1);
    refuses("larger than 1024 KiB");
    assert_int_equal(secrets_load(&secrets, "/nowhere/secrets.json", &err), ERR_CONFIG);
    secrets_fini(&secrets);
    assert_int_equal(secrets_load(&secrets, "/", &err), ERR_CONFIG); /* a folder can be opened but not read */
    secrets_fini(&secrets);
}

static void assert_secret(const struct secrets *secrets, const char *name, const char *json)
{
    struct arena arena;

    arena_init(&arena, 1024);
    struct slice found = secrets_json(secrets, SLICE("default"), slice_of(name), &arena);

    if (json ? !slice_is(found, json) : found.ptr != NULL) {
        fail_msg("%s is %.*s", name, SLICE_ARG(found));
    }
    arena_fini(&arena);
}

TEST(the_file_goes_before_the_environment)
{
    struct secrets secrets;
    struct err err = {0};

    scratch_write("{\"mail\": \"of the file\"}", 1);
    assert_int_equal(setenv("SAGAD_SECRET_MAIL", "of the environment", 1), 0);
    assert_int_equal(setenv("SAGAD_SECRET_DATA_BASE_2", "a \"word\"", 1), 0);
    assert_int_equal(secrets_load(&secrets, scratch_file, &err), ERR_OK);
    assert_secret(&secrets, "mail", "\"of the file\"");
    assert_secret(&secrets, "data-base.2", "\"a \\\"word\\\"\"");
    assert_secret(&secrets, "unknown", NULL);
    secrets_fini(&secrets);
}

static struct slice secret_of(const struct secrets *secrets, const char *namespace, const char *name,
                              struct arena *arena)
{
    return secrets_json(secrets, slice_of(namespace), slice_of(name), arena);
}

TEST(a_secret_belongs_to_one_namespace)
{
    struct secrets secrets;
    struct err err = {0};
    struct arena arena;

    arena_init(&arena, 1024);
    scratch_write(
        "{\"bank\": \"of default\", \"b/bank\": \"of b\", \"default/mail\": \"of default too\", \"c/own\": \"of c\"}",
        1);
    assert_int_equal(setenv("SAGAD_SECRET_TOKEN", "of the environment", 1), 0);
    assert_int_equal(setenv("SAGAD_SECRET_B_TOKEN", "no secret of b", 1), 0);
    assert_int_equal(secrets_load(&secrets, scratch_file, &err), ERR_OK);
    assert_true(slice_is(secret_of(&secrets, "default", "bank", &arena), "\"of default\""));
    assert_true(slice_is(secret_of(&secrets, "default", "mail", &arena), "\"of default too\""));
    assert_true(slice_is(secret_of(&secrets, "b", "bank", &arena), "\"of b\""));
    assert_true(slice_is(secret_of(&secrets, "default", "token", &arena), "\"of the environment\""));
    assert_null(secret_of(&secrets, "c", "bank", &arena).ptr);
    assert_null(secret_of(&secrets, "b", "token", &arena).ptr);
    assert_null(secret_of(&secrets, "default", "b/bank", &arena).ptr);
    assert_null(secret_of(&secrets, "c", "b/bank", &arena).ptr);
    assert_null(secret_of(&secrets, "default", "own", &arena).ptr);
    secrets_fini(&secrets);
    arena_fini(&arena);
}

TEST(secrets_come_from_the_environment_without_a_file)
{
    struct secrets secrets;
    struct err err = {0};

    assert_int_equal(setenv("SAGAD_SECRET_MAIL", "of the environment", 1), 0);
    assert_int_equal(secrets_load(&secrets, NULL, &err), ERR_OK);
    assert_secret(&secrets, "mail", "\"of the environment\"");
    secrets_fini(&secrets);
    assert_null(getenv("SAGAD_SECRET_MAIL")); /* read once, and wiped */
    assert_int_equal(setenv("SAGAD_SECRET_MAIL", "of the environment", 1), 0);
    assert_int_equal(secrets_load(&secrets, "", &err), ERR_OK);
    assert_secret(&secrets, "mail", "\"of the environment\"");
    secrets_fini(&secrets);
}

/* Half of a name finds no secret, and half of a secret opens nothing. */
TEST(a_text_that_is_too_long_is_no_secret)
{
    char name[257], *text = malloc(100001);
    struct secrets secrets;
    struct err err = {0};

    assert_non_null(text);
    memset(name, 'n', 256);
    name[256] = '\0';
    memset(text, 't', 100000);
    text[100000] = '\0';
    assert_int_equal(setenv("SAGAD_SECRET_LONG", text, 1), 0);
    assert_int_equal(secrets_load(&secrets, NULL, &err), ERR_OK);
    assert_secret(&secrets, name, NULL);
    assert_secret(&secrets, "long", NULL);
    secrets_fini(&secrets);
    free(text);
}

TEST(a_name_that_is_too_long_for_a_variable_is_not_that_of_a_shorter_one)
{
    char name[200], variable[200] = "SAGAD_SECRET_";
    struct secrets secrets = {0};
    struct err err;

    assert_int_equal(secrets_load(&secrets, NULL, &err), ERR_OK);
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    memset(variable + strlen(variable), 'A', 159 - strlen("SAGAD_SECRET_")); /* the longest part that is looked for */
    assert_int_equal(setenv(variable, "hush", 1), 0);
    assert_secret(&secrets, name, NULL);
    assert_int_equal(unsetenv(variable), 0);
    secrets_fini(&secrets);
}

TEST_PROGRAM(scratch_make_file, scratch_remove_file)
