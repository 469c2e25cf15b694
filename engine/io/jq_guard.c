/*
 * In jq a later definition hides an earlier one, operators included: `a * b` is a call of _multiply(a; b). So a
 * prefix of definitions takes away what reads the environment, files, the clock or the time zone, what writes to our
 * streams, what ends the process, and regular expressions, which are single operations without a bound.
 *
 * Closing the parenthesis behind the prefix does not escape it: definitions reach to the end of the text. The line
 * end in the suffix is for programs that end with a comment.
 */
#include "io/jq_guard.h"

#define REFUSED0(name) "def " name ": error(\"" name " is not available in expressions\");"
#define REFUSED1(name) "def " name "(a): error(\"" name " is not available in expressions\");"
#define REFUSED2(name) "def " name "(a; b): error(\"" name " is not available in expressions\");"
#define REFUSED3(name) "def " name "(a; b; c): error(\"" name " is not available in expressions\");"

const char jq_guard_prefix[] =
    /* environment, files, modules, streams */
    REFUSED0("env") REFUSED0("input") REFUSED0("inputs") REFUSED0("_input") REFUSED0("debug") REFUSED0("stderr")
    REFUSED0("input_filename") REFUSED0("input_line_number") REFUSED0("modulemeta") REFUSED0("get_search_list")
    REFUSED0("get_jq_origin") REFUSED0("get_prog_origin")
    /* the end of the process */
    REFUSED0("halt") REFUSED0("halt_error") REFUSED1("halt_error")
    /* clock and time zone */
    REFUSED0("now") REFUSED0("localtime") REFUSED1("strflocaltime")
    /* regular expressions */
    REFUSED1("test") REFUSED2("test") REFUSED1("match") REFUSED2("match") REFUSED1("capture") REFUSED2("capture")
    REFUSED1("scan") REFUSED2("split") REFUSED1("splits") REFUSED2("splits") REFUSED2("sub") REFUSED3("sub")
    REFUSED2("gsub") REFUSED3("gsub") REFUSED3("_match_impl")
    /* an assertion of libjq on what is no code point */
    "def _implode: implode;"
    "def implode: if type == \"array\" and all(.[]; type == \"number\" and . >= 1 and . <= 1114111 and (. < 55296 or . > 57343))"
    " then _implode else error(\"implode needs an array of code points\") end;"
    REFUSED0("_implode")
    /* "x" * 2000000000 */
    "def _times(a; b): a * b;"
    "def _multiply(a; b): b as $b | a as $a | if ($a | type) == \"string\" or ($b | type) == \"string\""
    " then error(\"text cannot be multiplied in expressions\") else _times($a; $b) end;"
    REFUSED2("_times")
    "{} as $ENV | {} as $__prog_args | (";

const char jq_guard_suffix[] = "\n)";
