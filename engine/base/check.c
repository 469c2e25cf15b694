/* A broken condition prints one line that says where it is, and then aborts: the crash path is the recovery path. */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void check_failed(const char *file, int line, const char *what)
{
    (void)fprintf(stderr, "%s:%d: broken: %s\n", file, line, what);
    abort();
}
