/*
 * Takes away functions of jq that expressions must not use.
 *
 * In jq a later definition hides an earlier one, even for operators: `a * b` is a call of _multiply(a; b). A prefix of
 * definitions therefore takes away every function that reads the environment, files, the clock or the time zone, writes
 * to our streams or ends the process. It also takes away regular expressions, which are single operations without a
 * bound.
 *
 * A program cannot escape by closing the parenthesis behind the prefix, because definitions reach to the end of the
 * text. The suffix begins with a line end for programs that end with a comment.
 *
 * Registration uses another prefix, which makes the same names unknown. A definition whose body calls a missing
 * function is an error only for programs that use it. So a program that calls a refused function is refused, but not a
 * program that defines its own `sub` or reads a member of that name.
 *
 * `fromjson` and `tonumber` of text are replaced by ours, because those of libjq would round numbers. Our functions use
 * `debug` and `input`, which no other program may call, to carry the text to io/process/jq_child.c and the value back.
 */
#include "io/process/jq_guard.h"

#include <string.h>

/* clang-format off */
/* All refused names with their parameters. */
#define REFUSED_NAMES(D) \
    /* environment, files, modules, streams */ \
    D("env", "") D("input", "") D("inputs", "") D("_input", "") D("debug", "") D("stderr", "") D("input_filename", "") \
    D("input_line_number", "") D("modulemeta", "") D("get_search_list", "") D("get_jq_origin", "") \
    D("get_prog_origin", "") \
    /* the end of the process */ \
    D("halt", "") D("halt_error", "") D("halt_error", "(a)") \
    /* clock and time zone */ \
    D("now", "") D("localtime", "") D("strflocaltime", "(a)") \
    /* regular expressions */ \
    D("test", "(a)") D("test", "(a; b)") D("match", "(a)") D("match", "(a; b)") D("capture", "(a)") \
    D("capture", "(a; b)") D("scan", "(a)") D("split", "(a; b)") D("splits", "(a)") D("splits", "(a; b)") \
    D("sub", "(a; b)") D("sub", "(a; b; c)") D("gsub", "(a; b)") D("gsub", "(a; b; c)") D("_match_impl", "(a; b; c)")

/* Our own functions, which the definitions in front of them use. */
#define OUR_NAMES(D) D("_exact", "") D("_fromjson", "") D("_tonumber", "") D("_implode", "") D("_times", "(a; b)")

#define FAILS(name, parameters) "def " name parameters ": error(\"" name " is not available in expressions\");"
#define IS_UNKNOWN(name, parameters) "def " name parameters ": " JQ_GUARD_UNKNOWN name ";"

#define OURS \
    "def _exact: debug | input;" \
    "def _fromjson: fromjson; def fromjson: if type == \"string\" then {fromjson: .} | _exact else _fromjson end;" \
    "def _tonumber: tonumber; def tonumber: if type == \"string\" then {tonumber: .} | _exact else _tonumber end;" \
    /* libjq asserts on a number that is no code point */ \
    "def _implode: implode;" \
    "def implode: if type == \"array\" and all(.[]; type == \"number\" and . >= 1 and . <= 1114111 and" \
    " (. < 55296 or . > 57343))" \
    " then _implode else error(\"implode needs an array of code points\") end;" \
    /* "x" * 2000000000 */ \
    "def _times(a; b): a * b;" \
    "def _multiply(a; b): b as $b | a as $a | if ($a | type) == \"string\" or ($b | type) == \"string\"" \
    " then error(\"text cannot be multiplied in expressions\") else _times($a; $b) end;"
/* clang-format on */

/* Without this variable `$ENV` makes libjq free its own memory twice. */
#define VARIABLES "{} as $ENV | {} as $__prog_args | "

const char jq_guard_prefix[] = OURS REFUSED_NAMES(FAILS) OUR_NAMES(FAILS) VARIABLES "(";
const char jq_guard_suffix[] = "\n)";
const char jq_guard_check_prefix[] = OURS REFUSED_NAMES(IS_UNKNOWN) OUR_NAMES(IS_UNKNOWN) VARIABLES;

static bool is_one_of(const char *name, size_t len, const char *const *names)
{
    for (; *names; names++) {
        if (strlen(*names) == len && memcmp(name, *names, len) == 0) {
            return true;
        }
    }
    return false;
}

const char *jq_guard_reason(const char *name, size_t len)
{
    static const char *const regexes[] = {"test",   "match", "capture", "scan",        "split",
                                          "splits", "sub",   "gsub",    "_match_impl", NULL};
    static const char *const clocks[] = {"now", "localtime", "strflocaltime", NULL};
    static const char *const ends[] = {"halt", "halt_error", NULL};

    if (is_one_of(name, len, regexes)) {
        return "it takes a regular expression, which has no bound in time; use split(TEXT), startswith, endswith, "
               "contains, ltrimstr or rtrimstr";
    }
    if (is_one_of(name, len, clocks)) {
        return "an expression sees no clock and no time zone, so that it gives the same value again; hand the time "
               "over in the input";
    }
    if (is_one_of(name, len, ends)) {
        return "an expression cannot end a process; use error(TEXT)";
    }
    return "an expression sees no environment, files or streams; hand the value over in the input, or use secret(NAME)";
}

/* --- reading a program's text ---------------------------------------------------------------------------------- */

/* Goes over what stands outside of texts and comments. */
struct walk {
    const char *text;
    size_t len, at;
    char opened[1024]; /* each opening that waits for its end: ( [ {, or " of a program within a text */
    size_t depth;
    bool in_text, has_comment;
    bool fits; /* each bracket closed what was open, as far as was read */
};

static void walk_open(struct walk *walk, char c)
{
    if (walk->depth < sizeof(walk->opened)) {
        walk->opened[walk->depth++] = c;
    } else {
        walk->fits = false;
    }
}

static void walk_close(struct walk *walk, char c)
{
    char opened = walk->depth > 0 ? walk->opened[walk->depth - 1] : '\0';
    char wanted = c == ')' ? '(' : c == ']' ? '[' : '{';

    if (c == ')' && opened == '"') {
        walk->in_text = true;
    } else if (opened != wanted) {
        walk->fits = false;
        return;
    }
    walk->depth--;
}

static void walk_text(struct walk *walk, char c)
{
    if (c == '"') {
        walk->in_text = false;
    } else if (c == '\\' && walk->at < walk->len && walk->text[walk->at++] == '(') {
        walk_open(walk, '"');
        walk->in_text = false;
    }
}

/* The next character of the program itself, or NUL at the end. */
static char walk_next(struct walk *walk)
{
    while (walk->at < walk->len) {
        char c = walk->text[walk->at++];

        if (walk->in_text) {
            walk_text(walk, c);
        } else if (c == '"') {
            walk->in_text = true;
        } else if (c == '#') {
            const char *end = memchr(walk->text + walk->at, '\n', walk->len - walk->at);

            walk->has_comment = true;
            walk->at = end ? (size_t)(end - walk->text) : walk->len;
        } else {
            if (strchr("([{", c)) {
                walk_open(walk, c);
            } else if (strchr(")]}", c)) {
                walk_close(walk, c);
            }
            return c;
        }
    }
    return '\0';
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool jq_guard_names_env(const char *text, size_t len)
{
    struct walk walk = {.text = text, .len = len, .fits = true};
    char c;

    while ((c = walk_next(&walk)) != '\0') {
        size_t at = walk.at;

        while (c == '$' && at < len && strchr(" \t\r\n", text[at])) {
            at++;
        }
        if (c == '$' && len - at >= 3 && memcmp(text + at, "ENV", 3) == 0 &&
            (at + 3 == len || !is_name_byte(text[at + 3]))) {
            return true;
        }
    }
    return false;
}

bool jq_guard_is_closed(const char *text, size_t len)
{
    struct walk walk = {.text = text, .len = len, .fits = true};

    while (walk_next(&walk) != '\0') {
    }
    return walk.fits && walk.depth == 0 && !walk.in_text && !walk.has_comment;
}
