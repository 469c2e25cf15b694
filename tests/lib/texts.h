/*
 * Texts that must stand in another text, and texts that may not, in one line:
 *
 *     assert_has(page, "sagad_turns_total 7\n", "sagad_retries_total 0\n");
 *
 * The test fails at this line. It names the text that is missing, and shows the one that it was looked for in.
 */
#ifndef SAGAD_TESTS_LIB_TEXTS_H
#define SAGAD_TESTS_LIB_TEXTS_H

#include <stdbool.h>
#include <string.h>

#include "tests/lib/test.h"

#define assert_has(text, ...) assert_texts_at(__FILE__, __LINE__, text, true, __VA_ARGS__, (char *)NULL)
#define assert_has_none(text, ...) assert_texts_at(__FILE__, __LINE__, text, false, __VA_ARGS__, (char *)NULL)

__attribute__((sentinel)) static inline void assert_texts_at(const char *file, int line, const char *text, bool stands,
                                                             ...)
{
    va_list parts;
    const char *part;

    va_start(parts, stands);
    while ((part = va_arg(parts, const char *)) != NULL) {
        if ((strstr(text, part) != NULL) != stands) {
            print_error("ERROR: %s: %s\n--- in\n%s\n", stands ? "this is missing" : "this may not be there", part,
                        text);
            _fail(file, line);
        }
    }
    va_end(parts);
}

#endif
