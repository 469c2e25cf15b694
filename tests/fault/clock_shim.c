/*
 * Moves the wall clock of one process. Loaded before all other libraries (LD_PRELOAD), it adds an offset to
 * CLOCK_REALTIME. Another process writes the offset into the file CLOCK_SHIM_FILE at any time, as a signed 64-bit
 * number of nanoseconds. Clocks that only go forward (monotonic, boot time) stay as they are, as in a real jump of the
 * wall clock.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

static volatile int64_t *offset;

static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void shim_load(void)
{
    const char *path = getenv("CLOCK_SHIM_FILE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    *(void **)&real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    if (fd >= 0) {
        void *map = mmap(NULL, sizeof(*offset), PROT_READ, MAP_SHARED, fd, 0);

        offset = map == MAP_FAILED ? NULL : map;
        close(fd);
    }
}

static int64_t shifted(const struct timespec *now)
{
    return now->tv_sec * SECOND + now->tv_nsec + (offset ? *offset : 0);
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    int result;

    if (!real_clock_gettime) {
        shim_load(); /* asked by the constructor of another library */
    }
    result = real_clock_gettime(clock, out);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t moved = shifted(out);

        out->tv_sec = moved / SECOND;
        out->tv_nsec = moved % SECOND;
    }
    return result;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) {
        return -1;
    }
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (out) {
        *out = now.tv_sec;
    }
    return now.tv_sec;
}
