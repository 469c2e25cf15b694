/* The console as tools/console/build.mjs made it: files that are compressed by gzip, compiled in. */
#ifndef SAGAD_API_CONSOLE_FILES_H
#define SAGAD_API_CONSOLE_FILES_H

#include <stddef.h>

struct console_file {
    const char *name; /* behind /console/; "" is the page itself */
    const char *type; /* Content-Type */
    const char *etag; /* with its quotes; of the compressed bytes */
    const char *begin, *end;
};

extern const struct console_file console_files[];
extern const size_t console_file_count; /* 0: this program was built without the console */

#endif
