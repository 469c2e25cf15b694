/* The allocator's figures do not say how much memory is resident. Only the kernel knows the figure that a limit applies
 * to. */
#include "base/resident.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "base/text.h"

/* Reads the word behind the first `skip` words of the file as a number. False when it is not a number ("max"). */
static bool read_number(int fd, int skip, size_t *out)
{
    char text[256];
    ssize_t len = pread(fd, text, sizeof(text) - 1, 0);
    char *at = text;

    if (len <= 0) {
        return false;
    }
    text[len] = '\0';
    for (; skip > 0 && *at; at++) {
        skip -= *at == ' ';
    }
    struct slice word = {at, 0};
    int64_t number = 0;

    while (at[word.len] >= '0' && at[word.len] <= '9') {
        word.len++;
    }
    if (!slice_to_i64(word, &number) || number < 0) {
        return false;
    }
    *out = (size_t)number;
    return true;
}

size_t resident_bytes(void)
{
    static _Thread_local int fd = -2; /* stays open, because it is read often; each thread has its own */
    size_t pages = 0;

    if (fd == -2) {
        fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    }
    if (fd < 0 || !read_number(fd, 1, &pages)) {
        return 0;
    }
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void keep_less(size_t *least, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t bytes = 0;

    if (fd >= 0 && read_number(fd, 0, &bytes) && bytes > 0 && (*least == 0 || bytes < *least)) {
        *least = bytes;
    }
    if (fd >= 0) {
        (void)close(fd); /* only read */
    }
}

/*
 * The limits of a group and of all groups above it hold together. This namespace may not show a group and still show
 * the groups above it.
 */
static void keep_less_of_group(size_t *least, const char *folder, struct slice group, const char *limit)
{
    char path[PATH_MAX];

    for (;;) {
        int len = snprintf(path, sizeof(path), "%s%.*s/%s", folder, SLICE_ARG(group), limit);

        if (len > 0 && (size_t)len < sizeof(path)) {
            keep_less(least, path);
        }
        if (group.len == 0) {
            return;
        }
        do {
            group.len--;
        } while (group.len > 0 && group.ptr[group.len] != '/');
    }
}

/* True when one of the names between commas is `name`. */
static bool lists(struct slice names, const char *name)
{
    struct slice parts[16];
    size_t count = slice_split(names, ',', parts, COUNT_OF(parts));

    for (size_t i = 0; i < count; i++) {
        if (slice_is(parts[i], name)) {
            return true;
        }
    }
    return false;
}

/* The form of a line is "NUMBER:CONTROLLERS:PATH"; version 2 has the number 0 and no controllers: cgroups(7). */
size_t resident_group_bytes(const char *groups_file, const char *folder)
{
    char text[8192], memory[PATH_MAX];
    struct slice lines[64], parts[3];
    size_t least = 0;
    int fd = open(groups_file, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, text, sizeof(text)) : -1;

    if (fd >= 0) {
        (void)close(fd); /* only read */
    }
    if (len < 0) {
        return 0;
    }
    (void)snprintf(memory, sizeof(memory), "%s/memory", folder);
    size_t count = slice_split((struct slice){text, (size_t)len}, '\n', lines, COUNT_OF(lines));

    for (size_t i = 0; i < count; i++) {
        if (slice_split(lines[i], ':', parts, COUNT_OF(parts)) < COUNT_OF(parts)) {
            continue;
        }
        parts[2].len = (size_t)(lines[i].ptr + lines[i].len - parts[2].ptr); /* a path may hold the separator */
        if (parts[1].len == 0) {
            keep_less_of_group(&least, folder, parts[2], "memory.max");
        } else if (lists(parts[1], "memory")) {
            keep_less_of_group(&least, memory, parts[2], "memory.limit_in_bytes");
        }
    }
    return least;
}

size_t resident_bytes_there(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    size_t machine = pages > 0 ? (size_t)pages * (size_t)sysconf(_SC_PAGESIZE) : 0;
    size_t group = resident_group_bytes("/proc/self/cgroup", "/sys/fs/cgroup");

    return machine == 0 || (group > 0 && group < machine) ? group : machine;
}
