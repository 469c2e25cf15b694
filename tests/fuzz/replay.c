/*
 * The main() of a fuzz target where there is no libFuzzer: runs the files and folders named, each input once, so that a
 * corpus is a regression test with any compiler. What does not hold ends the process; the input is named before.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

#define PATH_BYTES_MAX 4096

static const char *current = "";
static size_t count;

/* In memory of its own size, so that AddressSanitizer sees the end of it. */
static bool run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat st;
    uint8_t *bytes;
    bool ok;

    if (!file || fstat(fileno(file), &st) != 0) {
        (void)fprintf(stderr, "cannot read %s\n", path);
        if (file) {
            (void)fclose(file);
        }
        return false;
    }
    bytes = malloc(st.st_size > 0 ? (size_t)st.st_size : 1);
    ok = bytes && fread(bytes, 1, (size_t)st.st_size, file) == (size_t)st.st_size;
    (void)fclose(file);
    if (ok) {
        current = path;
        (void)LLVMFuzzerTestOneInput(bytes, (size_t)st.st_size);
        count++;
    }
    free(bytes);
    return ok;
}

static bool run(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    bool ok = true;

    if (!folder) {
        return run_file(path);
    }
    while ((entry = readdir(folder)) != NULL) {
        char inner[PATH_BYTES_MAX];

        if (entry->d_name[0] != '.' && snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name) < (int)sizeof(inner)) {
            ok = run_file(inner) && ok;
        }
    }
    (void)closedir(folder);
    return ok;
}

static void on_signal(int number)
{
    (void)fprintf(stderr, "the input is %s\n", current); /* not for signal handlers in general, but the process ends */
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

int main(int argc, char **argv)
{
    bool ok = argc > 1;

    (void)signal(SIGABRT, on_signal);
    for (int i = 1; i < argc; i++) {
        ok = run(argv[i]) && ok;
    }
    (void)printf("%zu inputs\n", count);
    return ok && count > 0 ? 0 : 1;
}
