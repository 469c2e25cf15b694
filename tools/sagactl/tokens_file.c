/* See tokens_file.h. sagad reads the file at any moment, so the new text takes its place whole, by rename(). */
#include "tools/sagactl/tokens_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"

#define FILE_KIB_MAX 1024 /* sagad reads no larger one */

static bool fail(const char *path, const char *why)
{
    (void)fprintf(stderr, "sagactl: %s: %s\n", path, why);
    return false;
}

static bool has_name(struct ctl *ctl, struct slice rows, struct slice name)
{
    struct json_walk walk = json_walk(rows);
    struct slice row;

    while (json_next_element(&walk, &row)) {
        if (slice_equal(json_string(json_member(row, "name"), &ctl->arena), name)) {
            return true;
        }
    }
    return false;
}

static struct slice with_row(struct ctl *ctl, struct slice text, struct slice rows, struct slice row)
{
    size_t end = (size_t)(rows.ptr - text.ptr) + rows.len - 1; /* the place of its closing bracket */
    struct slice head = json_trim((struct slice){text.ptr, end}), tail = {text.ptr + end, text.len - end};

    return arena_printf(&ctl->arena, "%.*s%s\n    %.*s\n  %.*s", SLICE_ARG(head), json_count(rows) > 0 ? "," : "",
                        SLICE_ARG(row), SLICE_ARG(tail));
}

/* The secret of nobody is in the file, but whoever may change it may do everything: so the rights are there first. */
static bool replace(struct ctl *ctl, const char *path, struct slice text)
{
    const char *next = arena_text(&ctl->arena, arena_printf(&ctl->arena, "%s.next", path));
    struct stat old;
    int fd = stat(path, &old) == 0 ? open(next, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    bool good = fd >= 0 && fchown(fd, old.st_uid, old.st_gid) == 0 && fchmod(fd, old.st_mode & 07777) == 0 &&
                write(fd, text.ptr, text.len) == (ssize_t)text.len && fsync(fd) == 0;
    int error = errno;

    good = fd >= 0 && close(fd) == 0 && good && rename(next, path) == 0;
    if (!good) {
        if (fd >= 0) {
            error = error ? error : errno;
            (void)unlink(next); /* ours: it was not there before */
        }
        (void)fprintf(stderr, "sagactl: %s cannot be written: %s\n", next, strerror(error));
    }
    return good;
}

bool tokens_file_add(struct ctl *ctl, const char *path, struct slice name, struct slice row)
{
    char *real = realpath(path, NULL); /* where the path is a link, its file is replaced */
    struct slice text = SLICE_NONE, rows;
    struct err err = {0};
    bool good = false;

    if (!real) {
        return fail(path, strerror(errno));
    }
    if (file_read(real, "tokens", FILE_KIB_MAX, FILE_OF_ITS_OWNER, &ctl->arena, &text, &err) != ERR_OK) {
        (void)fprintf(stderr, "sagactl: %s\n", err.message);
    } else if (json_check(text, &json_limits_default, NULL) != ERR_OK ||
               json_type(rows = json_trim(json_member(text, "tokens"))) != JSON_ARRAY) {
        (void)fail(path, "this is no file of tokens; an empty one is {\"tokens\": []}");
    } else if (has_name(ctl, rows, name)) {
        (void)fail(path, "it has a row of this name; give another name, or take that row out first");
    } else {
        good = replace(ctl, real, with_row(ctl, text, rows, row));
    }
    free(real);
    return good;
}
