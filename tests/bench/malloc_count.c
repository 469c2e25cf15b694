/*
 * Counts what a program asks of malloc(): loaded before all others (LD_PRELOAD), it adds one to a 64-bit number for
 * each malloc(), calloc() and realloc() of any thread. The number stands in a file that others may read meanwhile;
 * MALLOC_COUNT_FILE names it. Whoever would have been asked without us does the work: libmimalloc or glibc.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* Asked for again and again until it is there: found the first time, and the same for every thread. dlsym() allocates
 * only when it fails. */
static void *the_real(void **function, const char *name)
{
    void *found = __atomic_load_n(function, __ATOMIC_RELAXED);

    if (!found) {
        found = dlsym(RTLD_NEXT, name);
        __atomic_store_n(function, found, __ATOMIC_RELAXED);
    }
    return found;
}

void *malloc(size_t bytes)
{
    static void *real;

    count();
    return ((void *(*)(size_t))the_real(&real, "malloc"))(bytes);
}

void *calloc(size_t items, size_t bytes)
{
    static void *real;

    count();
    return ((void *(*)(size_t, size_t))the_real(&real, "calloc"))(items, bytes);
}

void *realloc(void *old, size_t bytes)
{
    static void *real;

    count();
    return ((void *(*)(void *, size_t))the_real(&real, "realloc"))(old, bytes);
}
