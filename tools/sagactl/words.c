/* See words.h. */
#include "tools/sagactl/words.h"

#include <string.h>

#include "base/errors.h"

/* Longer phrases come first, because the first match is used. */
static const struct {
    const char *says, *means;
} phrases[] = {
    {"Set \"accept_double\": true to take that upon yourself", "Add --accept-double if a second effect is acceptable"},
    {"needs accept_double", "needs --accept-double"},
    {"\"accept_double\": true", "--accept-double"},
    {"Name the steps in \"accept_standing\"", "Name the steps with --accept-standing"},
    {"\"accept_double\"", "--accept-double"},
    {"; see `errors` for each place", ""},
    {"\"as\": \"not_happened\"", "--as not_happened"},
    {"\"as\": \"happened\"", "--as happened"},
    {"\"as\": \"undone\"", "--as undone"},
    {"\"as\"", "--as"},
    {"\"then\": \"retry\"", "--then retry"},
    {"\"then\"", "--then"},
    {"\"result\"", "--result"},
    {"\"args\"", "--args"},
    {"\"round\"", "--round"},
    {"the member \"note\"", "--note"},
    {"\"note\"", "--note"},
    {"the query parameter \"business_id\"", "--id"},
    {"the query parameter \"business_id_prefix\"", "--id-prefix"},
};

static const char *const flags[] = {"as",    "then",          "result", "args",  "note",
                                    "round", "accept_double", "reason", "input", "tags"};

#define PARAMETER "the query parameter \""

/* Reads "the query parameter "limit"" and writes --limit. Returns the number of bytes read; 0 when the text is
 * something else. */
static size_t put_parameter(struct slice rest, struct buffer *out)
{
    size_t at = sizeof(PARAMETER) - 1;
    const char *end = slice_starts_with(rest, PARAMETER) ? memchr(rest.ptr + at, '"', rest.len - at) : NULL;

    if (!end) {
        return 0;
    }
    buffer_put_text(out, "--");
    for (const char *c = rest.ptr + at; c < end; c++) {
        buffer_put_char(out, *c == '_' ? '-' : *c);
    }
    return (size_t)(end - rest.ptr) + 1;
}

struct slice words_of_flags(struct slice text, struct arena *arena)
{
    struct buffer out;

    buffer_init(&out, SIZE_MAX / 2);
    while (text.len > 0) {
        size_t taken = 0;

        for (size_t i = 0; i < COUNT_OF(phrases) && taken == 0; i++) {
            if (slice_starts_with(text, phrases[i].says)) {
                buffer_put_text(&out, phrases[i].means);
                taken = strlen(phrases[i].says);
            }
        }
        taken = taken > 0 ? taken : put_parameter(text, &out);
        if (taken == 0) {
            buffer_put_char(&out, *text.ptr);
            taken = 1;
        }
        text = (struct slice){text.ptr + taken, text.len - taken};
    }
    struct slice words = arena_slice(arena, buffer_slice(&out));

    buffer_fini(&out);
    return words.ptr ? words : SLICE("");
}

struct slice words_flag_of(struct slice pointer, struct arena *arena)
{
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        if (pointer.len > 1 && slice_is((struct slice){pointer.ptr + 1, pointer.len - 1}, flags[i])) {
            return strcmp(flags[i], "accept_double") == 0 ? SLICE("--accept-double")
                   : strcmp(flags[i], "tags") == 0        ? SLICE("--tag")
                                                          : arena_printf(arena, "--%s", flags[i]);
        }
    }
    return SLICE_NONE;
}
