/* The part of jq's lexer that finds texts, comments and closing brackets. Private to expressions. */
#ifndef SAGAD_CORE_LANGUAGE_EXPRESSION_SCAN_H
#define SAGAD_CORE_LANGUAGE_EXPRESSION_SCAN_H

#include "base/arena.h"

struct template_spot {
    struct slice before; /* the literal text in front of the spot; one extra spot holds the tail */
    bool inside;         /* the spot is inside a longer string: the value is put in as text */
    bool of_url;         /* the spot is inside a URL: the text is percent-encoded */
};

/* Moves `*at` from behind an opening "${" onto the "}" that closes it. Returns false when nothing closes it. */
bool scan_close(struct slice text, size_t *at);

/* Returns a copy in which bytes 1 replace comments and the contents of strings, but not what is interpolated into
 * strings. */
struct slice scan_mask(struct slice program, struct arena *arena);

bool scan_is_name_start(char c);
bool scan_is_name(char c);
/* Returns the end of the name that begins at `at`, or `at` when none begins there. */
size_t scan_name(struct slice text, size_t at);
size_t scan_space(struct slice text, size_t at);

#endif
