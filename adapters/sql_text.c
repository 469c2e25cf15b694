/*
 * Finds the parameters of an SQL statement as PostgreSQL's scan.l does (with standard_conforming_strings on).
 *
 * PostgreSQL does not know $key: it is replaced by the number of one more parameter. Nothing else in the text changes,
 * and no value ever gets into it.
 */
#include "adapters/sql_text.h"

#include <string.h>

struct sql_scan {
    const char *at, *end;
    const char *fault;
};

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
    return is_name_start(c) || is_digit(c) || c == '$';
}

static bool scan_sees(const struct sql_scan *s, const char *text)
{
    size_t len = strlen(text);

    return (size_t)(s->end - s->at) >= len && memcmp(s->at, text, len) == 0;
}

/* Skips the rest of a quoted text. With `backslash` it is E'...', where a backslash escapes. */
static void skip_quoted(struct sql_scan *s, char quote, bool backslash)
{
    for (s->at++; s->at < s->end; s->at++) {
        if (backslash && *s->at == '\\') {
            s->at++;
        } else if (*s->at == quote) {
            s->at++;
            if (s->at == s->end || *s->at != quote) {
                return;
            }
        }
    }
    s->at = s->end;
    s->fault = "a quote in the statement is not closed";
}

static void skip_comment(struct sql_scan *s)
{
    int depth = 0;

    do {
        if (scan_sees(s, "/*")) {
            depth++;
            s->at += 2;
        } else if (scan_sees(s, "*/")) {
            depth--;
            s->at += 2;
        } else {
            s->at++;
        }
    } while (depth > 0 && s->at < s->end);
    if (depth > 0) {
        s->at = s->end;
        s->fault = "a comment in the statement is not closed";
    }
}

static void skip_line(struct sql_scan *s)
{
    while (s->at < s->end && *s->at != '\n') {
        s->at++;
    }
}

/* Skips a $ that begins neither a parameter nor $key: it begins $tag$ ... $tag$ or stands alone. */
static void skip_dollar(struct sql_scan *s)
{
    const char *close = s->at + 1;
    size_t tag_len;
    const char *found;

    if (close < s->end && is_name_start(*close)) {
        while (close < s->end && is_name(*close) && *close != '$') {
            close++;
        }
    }
    if (close >= s->end || *close != '$') {
        s->at++;
        return;
    }
    tag_len = (size_t)(close + 1 - s->at);
    found = memmem(close + 1, (size_t)(s->end - close - 1), s->at, tag_len);
    if (!found) {
        s->at = s->end;
        s->fault = "a text between $$ in the statement is not closed";
        return;
    }
    s->at = found + tag_len;
}

/* Skips a name. A name may contain what looks like a parameter: a$1 is one name. */
static void skip_name(struct sql_scan *s, struct sql_text *out)
{
    const char *start = s->at;

    while (s->at < s->end && is_name(*s->at)) {
        s->at++;
    }
    if (!out->command.ptr) {
        out->command = (struct slice){start, (size_t)(s->at - start)};
    }
    if (s->at < s->end && *s->at == '\'' && s->at == start + 1 && (*start == 'e' || *start == 'E')) {
        skip_quoted(s, '\'', true);
    }
}

static void read_number(struct sql_scan *s, struct sql_text *out)
{
    int number = 0;

    for (s->at++; s->at < s->end && is_digit(*s->at); s->at++) {
        number = number <= SQL_PARAMS_MAX ? number * 10 + (*s->at - '0') : number;
    }
    if (number < 1 || number > SQL_PARAMS_MAX) {
        s->fault = "the parameters of a statement are $1 to $64 and $key";
        return;
    }
    out->used |= UINT64_C(1) << (number - 1);
    out->highest = number > out->highest ? number : out->highest;
}

static bool sees_key(const struct sql_scan *s)
{
    return scan_sees(s, "$key") && (s->end - s->at == 4 || !is_name(s->at[4]));
}

/* Only white space and comments may stand behind a semicolon. */
static void read_end(struct sql_scan *s)
{
    s->at++;
    while (s->at < s->end && !s->fault) {
        if (scan_sees(s, "--")) {
            skip_line(s);
        } else if (scan_sees(s, "/*")) {
            skip_comment(s);
        } else if (strchr(" \t\r\n\f\v;", *s->at) && *s->at) {
            s->at++;
        } else {
            s->fault = "there is more than one statement; a call is one, which may call a function of the database";
        }
    }
}

static struct slice upper(struct slice word, struct arena *arena)
{
    char *text = arena_text(arena, word);

    for (size_t i = 0; i < word.len; i++) {
        text[i] = (char)(text[i] >= 'a' && text[i] <= 'z' ? text[i] - 'a' + 'A' : text[i]);
    }
    return (struct slice){text, word.len};
}

const char *sql_text_read(struct slice statement, int param_count, struct arena *arena, struct sql_text *out)
{
    struct sql_scan s = {.at = statement.ptr, .end = statement.ptr + statement.len};
    struct buffer text;

    memset(out, 0, sizeof(*out));
    buffer_init(&text, 4 * statement.len + 64);
    while (s.at < s.end && !s.fault) {
        const char *from = s.at;
        bool is_key = sees_key(&s);

        if (is_key) {
            out->has_key = true;
            s.at += 4;
            buffer_printf(&text, "$%d", param_count + 1);
        } else if (*s.at == '\'' || *s.at == '"') {
            skip_quoted(&s, *s.at, false);
        } else if (scan_sees(&s, "--")) {
            skip_line(&s);
        } else if (scan_sees(&s, "/*")) {
            skip_comment(&s);
        } else if (*s.at == ';') {
            read_end(&s);
        } else if (*s.at == '$' && s.at + 1 < s.end && is_digit(s.at[1])) {
            read_number(&s, out);
        } else if (*s.at == '$') {
            skip_dollar(&s);
        } else if (is_name_start(*s.at)) {
            skip_name(&s, out);
        } else {
            s.at++;
        }
        if (!is_key) {
            buffer_put(&text, from, (size_t)(s.at - from));
        }
    }
    CHECK(!text.overflow);
    out->text = (struct slice){arena_text(arena, buffer_slice(&text)), text.len};
    out->command = upper(out->command, arena);
    buffer_fini(&text);
    if (!s.fault && out->command.len == 0) {
        s.fault = "there is no statement";
    }
    return s.fault;
}
