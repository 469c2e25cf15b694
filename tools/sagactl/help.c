/* Prints help for a terminal: filled paragraphs, rows with their text in one column, and long examples that can still
 * be run. */
#include "tools/sagactl/help.h"

#include <stdio.h>
#include <string.h>

#include "tools/sagactl/output.h"

#define WIDTH 80
#define USAGE_INDENT 15 /* the indent below "sagactl start" on the lines that follow */

static bool is_usage(struct slice line)
{
    return slice_starts_with(line, "sagactl ") || slice_starts_with(line, "bench-load ");
}

static bool is_prose(struct slice line)
{
    return line.len > 0 && line.ptr[0] != ' ' && !is_usage(line);
}

/* Where the text of a row such as "  --id   of this very request" begins; 0: it is no row. */
static size_t text_column(struct slice line)
{
    size_t at = 0;

    while (at < line.len && line.ptr[at] == ' ') {
        at++;
    }
    for (size_t i = at; at > 0 && i + 2 < line.len; i++) {
        if (line.ptr[i] == ' ' && line.ptr[i + 1] == ' ') {
            while (i < line.len && line.ptr[i] == ' ') {
                i++;
            }
            return i < line.len ? i : 0;
        }
    }
    return 0;
}

/* Returns the last blank at which the line ends within `width`, outside of brackets if possible; 0 when there is none
 * behind `from`. */
static size_t break_of(struct slice line, size_t from, size_t width)
{
    size_t anywhere = 0, between = 0;
    int depth = 0;

    for (size_t i = 0; i < line.len && i <= width; i++) {
        depth += (line.ptr[i] == '[') - (line.ptr[i] == ']');
        if (line.ptr[i] == ' ' && i >= from) {
            anywhere = i;
            between = depth == 0 ? i : between;
        }
    }
    return between > 0 ? between : anywhere;
}

/* Prints a broken line. Each part but the last ends with `mark`, for the shell. */
static void print_broken(struct slice line, size_t indent, const char *mark)
{
    size_t from = 0, used = 0;

    while (text_width(line) + used > WIDTH) {
        size_t at = break_of(line, from > 0 ? from : indent + 1, WIDTH - used - strlen(mark));

        if (at == 0) {
            break; /* a word as long as the line */
        }
        (void)printf("%.*s%s\n%*s", (int)at, line.ptr, mark, (int)indent, "");
        line = slice_trim((struct slice){line.ptr + at, line.len - at});
        used = indent;
        from = 1;
    }
    (void)printf("%.*s\n", SLICE_ARG(line));
}

static struct slice next_line(const char **text)
{
    size_t len = strcspn(*text, "\n");
    struct slice line = {*text, len};

    *text += len + ((*text)[len] == '\n');
    return line;
}

/* Does the line go on with the text of a row whose text begins in `column`? */
static bool goes_on(struct slice line, size_t column)
{
    for (size_t i = 0; i < column; i++) {
        if (i >= line.len || line.ptr[i] != ' ') {
            return false;
        }
    }
    return line.len > column && line.ptr[column] != ' ' && text_column(line) == 0;
}

/* Prints a row with the lines that belong to it as one text, so that none of them is a rest of one word. */
static void print_row(struct slice line, size_t column, const char **text)
{
    struct buffer row;

    buffer_init(&row, 65536);
    buffer_put_slice(&row, line);
    while (**text && goes_on((struct slice){*text, strcspn(*text, "\n")}, column)) {
        buffer_put_char(&row, ' ');
        buffer_put_slice(&row, slice_trim(next_line(text)));
    }
    print_broken(buffer_slice(&row), column, "");
    buffer_fini(&row);
}

void help_print(const char *text)
{
    while (*text) {
        struct slice line = next_line(&text);

        if (is_prose(line)) {
            struct buffer paragraph;

            buffer_init(&paragraph, 65536);
            buffer_put_slice(&paragraph, line);
            while (*text && is_prose((struct slice){text, strcspn(text, "\n")})) {
                buffer_put_char(&paragraph, ' ');
                buffer_put_slice(&paragraph, next_line(&text));
            }
            print_wrapped(buffer_slice(&paragraph), 0, WIDTH);
            buffer_fini(&paragraph);
        } else if (is_usage(line)) {
            print_broken(line, USAGE_INDENT, "");
        } else {
            size_t column = text_column(line);
            bool runs = slice_starts_with(line, "  sagactl ") || slice_starts_with(line, "  bench-load ");

            if (column && !runs) {
                print_row(line, column, &text);
            } else {
                print_broken(line, runs ? 6 : 4, runs ? " \\" : "");
            }
        }
    }
}
