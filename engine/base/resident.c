/* What the allocator has handed out is not what is resident: only the kernel knows what a limit on it will meet. */
#include "base/resident.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "base/text.h"

/* The file's first word behind `skip` others, as a number; false where there is none ("max"). */
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
    static int fd = -2; /* kept open: asked often */
    size_t pages = 0;

    if (fd == -2) {
        fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    }
    if (fd < 0 || !read_number(fd, 1, &pages)) {
        return 0;
    }
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

size_t resident_bytes_there(void)
{
    static const char *const limits[] = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    long pages = sysconf(_SC_PHYS_PAGES);
    size_t least = pages > 0 ? (size_t)pages * (size_t)sysconf(_SC_PAGESIZE) : 0;

    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        int fd = open(limits[i], O_RDONLY | O_CLOEXEC);
        size_t bytes = 0;

        if (fd >= 0 && read_number(fd, 0, &bytes) && bytes > 0 && (least == 0 || bytes < least)) {
            least = bytes;
        }
        if (fd >= 0) {
            (void)close(fd); /* only read */
        }
    }
    return least;
}
