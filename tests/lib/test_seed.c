/* Draws one seed for all random tests of a run: see test_seed.h. */
#include "tests/lib/test_seed.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RANGE UINT64_C(1000000) /* a run may use this many seeds before it meets those of the next run */

uint64_t test_seed(void)
{
    const char *given = getenv("SAGAD_TEST_SEED");
    struct timespec now;

    if (given && *given) {
        return strtoull(given, NULL, 10);
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec ^ (uint64_t)now.tv_nsec;
}

bool test_seed_read(const char *text, uint64_t *out)
{
    char *end;

    if (!text || !*text) {
        return false;
    }
    if (strcmp(text, "new") == 0) {
        *out = (test_seed() & UINT32_MAX) * RANGE + 1;
        return true;
    }
    *out = strtoull(text, &end, 10);
    return *end == '\0';
}
