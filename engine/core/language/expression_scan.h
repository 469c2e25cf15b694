/* Just enough of jq's lexer to know what is text, what is a comment and where brackets
 * close. Private to expressions. */
#ifndef SAGAD_CORE_LANGUAGE_EXPRESSION_SCAN_H
#define SAGAD_CORE_LANGUAGE_EXPRESSION_SCAN_H

#include "base/arena.h"

struct template_spot {
    struct slice
        before;  /* literal text in front of the spot; one spot more than there are expressions holds the tail */
    bool inside; /* of a longer string: the value is put in as text */
    bool of_url; /* inside a URL: the text is percent-encoded */
};

/* `*at` is behind an opening "${": moves it onto the "}" that closes it. False when nothing does. */
bool scan_close(struct slice text, size_t *at);

/* A copy in which comments, and the contents of strings but not what is interpolated into them, are
 * blanked by bytes 1. */
struct slice scan_mask(struct slice program, struct arena *arena);

bool scan_is_name_start(char c);
bool scan_is_name(char c);
/* Where the name that begins at `at` ends; `at` when none begins there. */
size_t scan_name(struct slice text, size_t at);
size_t scan_space(struct slice text, size_t at);

#endif
