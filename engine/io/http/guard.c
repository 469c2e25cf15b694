/* RFC 9110 and 9112 say what a head may look like; http/guard.h says why we check it ourselves. */
#include "io/http/guard.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"

bool http_name_is(struct slice name, const char *lower_case)
{
    return strlen(lower_case) == name.len && strncasecmp(name.ptr, lower_case, name.len) == 0;
}

static bool is_token(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        if (c >= 0x7f || (!isalnum(c) && (c == 0 || !strchr("!#$%&'*+-.^_`|~", c)))) {
            return false;
        }
    }
    return text.len > 0;
}

static bool is_value(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    return true;
}

/* Accepts a host with an optional port: no list, no spaces, no user, no path. */
static bool is_host(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        if (c >= 0x7f || (!isalnum(c) && (c == 0 || !strchr("-._~:[]%", c)))) {
            return false;
        }
    }
    return text.len > 0 && text.len < 256;
}

static bool is_length(struct slice text, int64_t *length)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return false;
        }
    }
    return text.len > 0 && slice_to_i64(text, length);
}

const char *http_guard_headers(struct slice method, struct slice version, const struct http_pair *headers, size_t count,
                               int64_t *content_length)
{
    size_t host_count = 0, length_count = 0, encoding_count = 0, authorization_count = 0;

    *content_length = -1;
    if (!is_token(method)) {
        return "the method is not a token";
    }
    if (!slice_is(version, "HTTP/1.1") && !slice_is(version, "HTTP/1.0")) {
        return "only HTTP/1.1 is spoken here";
    }
    if (count > HTTP_HEADERS_MAX) {
        return "more than 64 header fields";
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_token(headers[i].name)) {
            return "the name of a header field is not a token";
        }
        if (!is_value(headers[i].value)) {
            return "the value of a header field holds a control character";
        }
        if (!text_is_utf8(headers[i].value)) {
            return "the value of a header field is not UTF-8";
        }
        if (http_name_is(headers[i].name, "host")) {
            host_count++;
            if (!is_host(headers[i].value)) {
                return "Host is not a host and a port";
            }
        } else if (http_name_is(headers[i].name, "content-length")) {
            length_count++;
            if (!is_length(headers[i].value, content_length)) {
                return "Content-Length is not a number";
            }
        } else if (http_name_is(headers[i].name, "transfer-encoding")) {
            encoding_count++;
            if (!http_name_is(headers[i].value, "chunked")) {
                return "Transfer-Encoding is something else than chunked";
            }
        }
        authorization_count += http_name_is(headers[i].name, "authorization");
    }
    if (host_count != 1) {
        return host_count == 0 ? "Host is missing" : "Host stands there more than once";
    }
    if (length_count > 1) {
        return "Content-Length stands there more than once";
    }
    if (authorization_count > 1) {
        return "Authorization stands there more than once";
    }
    if (encoding_count > 1) {
        return "Transfer-Encoding stands there more than once";
    }
    if (encoding_count && length_count) {
        return "Transfer-Encoding and Content-Length stand side by side";
    }
    if (encoding_count && slice_is(version, "HTTP/1.0")) {
        return "HTTP/1.0 knows no Transfer-Encoding";
    }
    return NULL;
}

/* Does nothing but white space stand between two places of the head? The library leaves NUL where it cut. */
static bool is_blank(const char *from, const char *to)
{
    if (to < from || to - from > HTTP_HEAD_BYTES_MAX) {
        return false;
    }
    for (; from < to; from++) {
        if (*from != '\0' && *from != ' ' && *from != '\t' && *from != '\r' && *from != '\n') {
            return false;
        }
    }
    return true;
}

const char *http_guard_layout(struct slice method, struct slice path, struct slice version,
                              const struct http_pair *headers, size_t count)
{
    const char *at = version.ptr + version.len;

    if (!is_blank(method.ptr + method.len, path.ptr)) {
        return "the method holds a NUL";
    }
    for (size_t i = 0; i < count; i++) {
        const char *name_end = headers[i].name.ptr + headers[i].name.len;

        if (!is_blank(name_end, headers[i].value.ptr)) {
            return "a header field is folded over several lines";
        }
        if (!is_blank(at, headers[i].name.ptr)) {
            return "a line of the head is no header field";
        }
        at = headers[i].value.ptr + headers[i].value.len;
    }
    return NULL;
}

const char *http_guard_decoded(struct slice path, const struct http_pair *query, size_t count)
{
    if (!text_is_utf8(path)) {
        return "the path is not UTF-8 when it is decoded";
    }
    for (size_t i = 0; i < count; i++) {
        if (!text_is_utf8(query[i].name) || !text_is_utf8(query[i].value)) {
            return "a query parameter is not UTF-8 when it is decoded";
        }
    }
    return NULL;
}

const char *http_guard_target(struct slice target)
{
    bool in_query = false;

    if (target.len == 0 || target.ptr[0] != '/') {
        return "the target is not a path";
    }
    for (size_t i = 0; i < target.len; i++) {
        unsigned char c = (unsigned char)target.ptr[i];

        if (c <= 0x20 || c >= 0x7f) {
            return "the target holds a character that must be percent-encoded";
        }
        if (c == '%') {
            if (i + 2 >= target.len || !isxdigit((unsigned char)target.ptr[i + 1]) ||
                !isxdigit((unsigned char)target.ptr[i + 2])) {
                return "the target holds a % that encodes nothing";
            }
            if (target.ptr[i + 1] == '0' && target.ptr[i + 2] == '0') {
                return "the target holds %00";
            }
            if (!in_query && target.ptr[i + 1] == '2' && (target.ptr[i + 2] | 0x20) == 'f') {
                return "the path holds an encoded slash";
            }
        }
        in_query |= c == '?';
        if (c == '#') {
            return "the target holds a fragment";
        }
    }
    return NULL;
}
