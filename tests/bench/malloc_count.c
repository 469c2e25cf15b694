/*
 * Counts what a program asks of malloc(): loaded before all others (LD_PRELOAD), it adds one to a 64-bit number for each malloc(), calloc() and
 * realloc() of any thread. The number stands in a file that others may read meanwhile; MALLOC_COUNT_FILE names it. For glibc, whose own
 * functions do the work.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

static uint64_t unseen; /* before the file is there, or when there is none */
static uint64_t *counter = &unseen;

__attribute__((constructor)) static void count_into_file(void)
{
    const char *path = getenv("MALLOC_COUNT_FILE");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

    if (fd >= 0) {
        void *map = mmap(NULL, sizeof(*counter), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        counter = map == MAP_FAILED ? &unseen : map;
        (void)close(fd);
    }
}

static void count(void)
{
    (void)__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t bytes)
{
    count();
    return __libc_malloc(bytes);
}

void *calloc(size_t items, size_t bytes)
{
    count();
    return __libc_calloc(items, bytes);
}

void *realloc(void *old, size_t bytes)
{
    count();
    return __libc_realloc(old, bytes);
}
