/* See file.h. */
#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static enum err_code unreadable(const char *path, const char *what, struct err *err)
{
    enum err_code code = err_set(err, ERR_CONFIG, "the %s file %s cannot be read", what, path);

    err_detail(err, "%s", strerror(errno));
    return code;
}

static bool others_may_write(FILE *file)
{
    struct stat st;

    return fstat(fileno(file), &st) != 0 || (st.st_mode & (S_IWGRP | S_IWOTH));
}

enum err_code file_read(const char *path, const char *what, size_t kib_max, enum file_trust trust, struct arena *arena,
                        struct slice *text, struct err *err)
{
    size_t bytes_max = kib_max * 1024;
    FILE *file = fopen(path, "re");
    enum err_code code = ERR_OK;

    if (!file) {
        return unreadable(path, what, err);
    }
    if (trust == FILE_OF_ITS_OWNER && others_may_write(file)) {
        code = err_set(err, ERR_CONFIG, "the %s file %s may be written by others than its owner", what, path);
        err_hint(err, "take that right away: chmod go-w %s", path);
    } else {
        char *bytes = arena_alloc(arena, bytes_max + 1);

        (void)setvbuf(file, NULL, _IONBF, 0); /* a buffer would keep a copy */
        *text = (struct slice){bytes, fread(bytes, 1, bytes_max + 1, file)};
        if (ferror(file)) {
            code = unreadable(path, what, err);
        } else if (text->len > bytes_max) {
            code = err_set(err, ERR_CONFIG, "the %s file %s is larger than %zu KiB", what, path, kib_max);
        }
    }
    (void)fclose(file); /* only read from */
    return code;
}
