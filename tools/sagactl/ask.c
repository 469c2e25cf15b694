/* See ask.h. */
#include "tools/sagactl/ask.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

int ask_first(const struct ctl *ctl, size_t count, const char *format, ...)
{
    char line[16] = {0};
    va_list arguments;

    if (ctl->yes) {
        return EXIT_OK;
    }
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        return count <= 1 ? EXIT_OK : usage_error(ctl, "%zu at once: add --yes to mean it", count);
    }
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, ", on %s? [y/N] ", ctl->server);
    if (fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y')) {
        return EXIT_OK;
    }
    (void)fputs("Nothing was done.\n", stderr);
    return EXIT_FAILED;
}
