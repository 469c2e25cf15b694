/*
 * The main() of a fuzz target without libFuzzer. It runs each input of the named archives, folders and files once, so
 * that a corpus is a regression test with any compiler. A failed check ends the process; the name of the input is
 * printed first.
 *
 * An archive is a file whose name ends in .tar, in the ustar form. For each input it has a header of one block and then
 * its bytes, filled up to whole blocks. An empty name is the end. tools/fuzz makes archives.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

#define PATH_BYTES_MAX 4096

enum { BLOCK_BYTES = 512, NAME_BYTES = 100, SIZE_AT = 124, SIZE_BYTES = 12, TYPE_AT = 156, MAGIC_AT = 257 };

static const char *current = "", *current_member = "";
static size_t count;

/* Runs a copy in memory of exactly its size, so that AddressSanitizer notices a read beyond the end. */
static bool run_bytes(const uint8_t *bytes, size_t len)
{
    uint8_t *own = malloc(len > 0 ? len : 1);

    if (!own) {
        return false;
    }
    if (len > 0) {
        memcpy(own, bytes, len);
    }
    (void)LLVMFuzzerTestOneInput(own, len);
    count++;
    free(own);
    return true;
}

static bool run_archive(const char *path, const uint8_t *bytes, size_t len)
{
    char name[NAME_BYTES + 1] = "", size[SIZE_BYTES + 1] = "";

    while (len >= BLOCK_BYTES && bytes[0] != '\0') {
        memcpy(name, bytes, NAME_BYTES);
        memcpy(size, bytes + SIZE_AT, SIZE_BYTES);
        size_t input_len = strtoull(size, NULL, 8);
        size_t blocks = 1 + (input_len + BLOCK_BYTES - 1) / BLOCK_BYTES;

        if (memcmp(bytes + MAGIC_AT, "ustar", 5) != 0 || bytes[TYPE_AT] != '0' || blocks > len / BLOCK_BYTES) {
            (void)fprintf(stderr, "%s: damaged at %s\n", path, name);
            return false;
        }
        current_member = name;
        if (!run_bytes(bytes + BLOCK_BYTES, input_len)) {
            return false;
        }
        bytes += blocks * BLOCK_BYTES;
        len -= blocks * BLOCK_BYTES;
    }
    current_member = "";
    if (len < BLOCK_BYTES) {
        (void)fprintf(stderr, "%s: its end is missing\n", path);
        return false;
    }
    return true;
}

static bool ends_in_tar(const char *path)
{
    size_t len = strlen(path);

    return len > 4 && strcmp(path + len - 4, ".tar") == 0;
}

static bool run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat st;
    uint8_t *bytes = NULL;
    size_t len = 0;
    bool ok = file && fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode);

    if (ok) {
        len = (size_t)st.st_size;
        bytes = malloc(len > 0 ? len : 1);
        ok = bytes && fread(bytes, 1, len, file) == len;
    }
    if (file) {
        (void)fclose(file);
    }
    if (ok) {
        current = path;
        ok = ends_in_tar(path) ? run_archive(path, bytes, len) : run_bytes(bytes, len);
    } else {
        (void)fprintf(stderr, "cannot read %s\n", path);
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

        if (entry->d_name[0] != '.' &&
            snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name) < (int)sizeof(inner)) {
            ok = run_file(inner) && ok;
        }
    }
    (void)closedir(folder);
    return ok;
}

static void on_signal(int number)
{
    /* printf is not safe in signal handlers, but the process ends anyway. */
    (void)fprintf(stderr, "the input is %s%s%s\n", current, current_member[0] ? ", member " : "", current_member);
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
