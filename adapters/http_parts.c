/* Builds the parts of an HTTP request. These functions take text and return text. */
#include "adapters/http_parts.h"

#include <string.h>
#include <strings.h>
#include <time.h>

#include "adapters/tool_settings.h"
#include "base/json.h"

#define RETRY_AFTER_MS_MAX (INT64_C(7) * 24 * 3600 * 1000)

static void put_percent(struct buffer *out, struct slice text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] && strchr(plain, text.ptr[i])) {
            buffer_put_char(out, text.ptr[i]);
        } else {
            buffer_printf(out, "%%%02X", (unsigned)(unsigned char)text.ptr[i]);
        }
    }
}

struct slice url_add_parameter(struct slice url, struct slice name, struct slice value, struct arena *arena)
{
    const char *hash = url.len ? memchr(url.ptr, '#', url.len) : NULL;
    const char *mark;
    struct buffer out;
    struct slice result;

    if (hash) {
        url.len = (size_t)(hash - url.ptr); /* a fragment is never sent */
    }
    mark = url.len ? memchr(url.ptr, '?', url.len) : NULL;
    buffer_init(&out, url.len + 3 * (name.len + value.len) + 3);
    buffer_put_slice(&out, url);
    if (!mark) {
        buffer_put_char(&out, '?');
    } else if (url.ptr[url.len - 1] != '?' && url.ptr[url.len - 1] != '&') {
        buffer_put_char(&out, '&');
    }
    put_percent(&out, name);
    buffer_put_char(&out, '=');
    put_percent(&out, value);
    CHECK(!out.overflow);
    result = arena_slice(arena, buffer_slice(&out));
    buffer_fini(&out);
    return result;
}

static struct slice add_value(struct slice url, struct slice name, struct slice value, struct arena *arena)
{
    struct slice text;

    if (json_type(value) == JSON_NULL) {
        return url;
    }
    text = setting_text(value, arena);
    return text.ptr ? url_add_parameter(url, name, text, arena) : SLICE_NONE;
}

/* Returns the name of a member with its escapes resolved. */
static struct slice member_name(struct slice raw, struct arena *arena)
{
    return json_string(arena_printf(arena, "\"%.*s\"", SLICE_ARG(raw)), arena);
}

struct slice url_add_query(struct slice url, struct slice query, struct arena *arena)
{
    struct json_walk walk = json_walk(query);
    struct slice raw, value, element;

    while (url.ptr && json_next_member(&walk, &raw, &value)) {
        struct slice name = member_name(raw, arena);

        if (json_type(value) == JSON_ARRAY) {
            struct json_walk elements = json_walk(value);

            while (url.ptr && json_next_element(&elements, &element)) {
                url = add_value(url, name, element, arena);
            }
        } else {
            url = add_value(url, name, value, arena);
        }
    }
    return url;
}

/* Splits a JSON Pointer into its first part, with ~1 and ~0 resolved, and the rest. */
static struct slice pointer_split(struct slice pointer, struct slice *rest, struct arena *arena)
{
    const char *slash = memchr(pointer.ptr + 1, '/', pointer.len - 1);
    size_t len = slash ? (size_t)(slash - pointer.ptr) : pointer.len;
    char *part = arena_alloc(arena, len + 1);
    size_t out = 0;

    for (size_t i = 1; i < len; i++) {
        if (pointer.ptr[i] == '~' && i + 1 < len && (pointer.ptr[i + 1] == '0' || pointer.ptr[i + 1] == '1')) {
            part[out++] = pointer.ptr[++i] == '1' ? '/' : '~';
        } else {
            part[out++] = pointer.ptr[i];
        }
    }
    *rest = (struct slice){pointer.ptr + len, pointer.len - len};
    return (struct slice){part, out};
}

static bool put_at(struct buffer *out, struct slice body, struct slice pointer, struct slice value,
                   struct arena *arena);

static bool put_in_object(struct buffer *out, struct slice body, struct slice part, struct slice rest,
                          struct slice value, struct arena *arena)
{
    struct json_walk walk = json_walk(body);
    struct slice raw, member;
    bool found = false, ok = true;
    const char *comma = "";

    buffer_put_char(out, '{');
    while (ok && json_next_member(&walk, &raw, &member)) {
        bool here = slice_equal(member_name(raw, arena), part);

        buffer_printf(out, "%s\"%.*s\":", comma, SLICE_ARG(raw));
        comma = ",";
        found = found || here;
        if (here) {
            ok = put_at(out, member, rest, value, arena);
        } else {
            buffer_put_slice(out, member);
        }
    }
    if (ok && !found) {
        buffer_put_text(out, comma);
        json_put_string(out, part);
        buffer_put_char(out, ':');
        ok = put_at(out, SLICE("{}"), rest, value, arena);
    }
    buffer_put_char(out, '}');
    return ok;
}

static bool put_in_array(struct buffer *out, struct slice body, struct slice part, struct slice rest,
                         struct slice value, struct arena *arena)
{
    struct json_walk walk = json_walk(body);
    struct slice element;
    int64_t wanted, at = 0;
    bool ok = true;

    if (slice_is(part, "-")) {
        wanted = (int64_t)json_count(body);
    } else if ((part.len > 1 && part.ptr[0] == '0') || !slice_to_i64(part, &wanted) || wanted < 0) {
        return false; /* RFC 6901, section 4: no leading zeros */
    }
    buffer_put_char(out, '[');
    for (; ok && json_next_element(&walk, &element); at++) {
        buffer_put_text(out, at ? "," : "");
        if (at == wanted) {
            ok = put_at(out, element, rest, value, arena);
        } else {
            buffer_put_slice(out, element);
        }
    }
    if (ok && at <= wanted) {
        buffer_put_text(out, at ? "," : "");
        ok = at == wanted && put_at(out, SLICE("{}"), rest, value, arena);
    }
    buffer_put_char(out, ']');
    return ok;
}

/* The recursion is as deep as the pointer is long, and the check of definitions bounds that. */
static bool put_at(struct buffer *out, struct slice body, struct slice pointer, struct slice value, struct arena *arena)
{
    struct slice part, rest;

    if (pointer.len == 0) {
        buffer_put_slice(out, value);
        return true;
    }
    if (pointer.ptr[0] != '/') {
        return false;
    }
    part = pointer_split(pointer, &rest, arena);
    if (json_type(body) == JSON_OBJECT) {
        return put_in_object(out, body, part, rest, value, arena);
    }
    return json_type(body) == JSON_ARRAY && put_in_array(out, body, part, rest, value, arena);
}

struct slice body_set(struct slice body, struct slice pointer, struct slice value, struct arena *arena)
{
    struct slice result = SLICE_NONE;
    struct buffer out;

    buffer_init(&out, body.len + value.len + 8 * pointer.len + 64);
    if (put_at(&out, body, pointer, value, arena) && !out.overflow) {
        result = arena_slice(arena, buffer_slice(&out));
    }
    buffer_fini(&out);
    return result;
}

/* --- checks and texts for every adapter that speaks HTTP ---------------------------------------------------- */

bool http_text_is_token(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        if (c <= ' ' || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c)) {
            return false;
        }
    }
    return text.len > 0;
}

void http_check_url(struct slice value, struct slice pointer, struct faults *faults)
{
    struct slice url = json_string(value, faults->arena);
    bool plain = true;

    if (!slice_starts_with(url, "http://") && !slice_starts_with(url, "https://")) {
        faults_add(faults, pointer, "the URL must begin with http:// or https://");
        return;
    }
    for (size_t i = 0; i < url.len; i++) {
        plain = plain && (unsigned char)url.ptr[i] > ' ' && url.ptr[i] != 0x7f;
    }
    if (!plain || url.len == strlen("http://") || slice_is(url, "https://")) {
        faults_add(faults, pointer, "the URL needs a host and may hold neither spaces nor control characters");
    } else if (url_has_dot_segment(url)) {
        faults_add(faults, pointer, "a segment of the path is \".\" or \"..\"; write the path that is meant");
    }
}

bool url_has_dot_segment(struct slice url)
{
    const char *end = url.ptr + url.len, *at = memmem(url.ptr, url.len, "://", 3);

    at = at ? at + 3 : url.ptr;
    while (at < end && !strchr("/?#", *at)) {
        at++; /* user, host and port */
    }
    while (at < end && *at == '/') {
        const char *begin = ++at;
        size_t dots = 0, others = 0;

        while (at < end && !strchr("/?#", *at)) {
            if (at + 2 < end && strncasecmp(at, "%2e", 3) == 0) {
                dots++;
                at += 3;
                continue;
            }
            dots += *at == '.';
            others += *at != '.';
            at++;
        }
        if (at > begin && others == 0 && dots <= 2) {
            return true;
        }
    }
    return false;
}

/* Returns the text behind a leading "${ secret(\"name\") }", or SLICE_NONE when the text begins with anything else. */
static struct slice behind_secret(struct slice text)
{
    static const char *const words[] = {"${", "secret", "(", "\"", NULL, "\"", ")", "}"}; /* NULL: the name */
    const char *at = text.ptr, *end = text.ptr + text.len;

    for (size_t i = 0; i < COUNT_OF(words); i++) {
        while (i > 0 && at < end && *at == ' ' && words[i] && i != 5) {
            at++;
        }
        if (!words[i]) {
            while (at < end && *at != '"' && *at != '\\') {
                at++;
            }
            continue;
        }
        if ((size_t)(end - at) < strlen(words[i]) || memcmp(at, words[i], strlen(words[i])) != 0) {
            return SLICE_NONE;
        }
        at += strlen(words[i]);
    }
    return (struct slice){at, (size_t)(end - at)};
}

/* Anyone who can put text in front of the first slash chooses who receives the request and the secrets in it. */
void http_check_url_template(struct slice value, struct slice pointer, struct faults *faults)
{
    struct slice url = json_string(value, faults->arena);
    struct slice rest = slice_starts_with(url, "${") ? behind_secret(url) : SLICE_NONE;
    const char *template = memmem(url.ptr, url.len, "${", 2);
    size_t at = slice_starts_with(url, "http://") ? 7 : slice_starts_with(url, "https://") ? 8 : 0;

    if (rest.ptr) {
        if (rest.len > 0 && !strchr("/?", rest.ptr[0])) {
            faults_add(faults, pointer,
                       "behind the secret that holds its host, the URL must go on with \"/\" or \"?\", or end");
        }
        return;
    }
    while (at > 0 && at < url.len && !strchr("/?#", url.ptr[at])) {
        at++;
    }
    if (at == 0 || url.ptr + at > template) {
        faults_add(faults, pointer,
                   "scheme, user, host and port of a URL may not come from a template; write them, as in "
                   "\"https://api.example/${ .args.id }\", or begin with one secret: \"${ secret(\\\"api\\\") }/${ "
                   ".args.id }\"");
    }
}

static bool header_is(struct slice name, const char *wanted)
{
    return name.len == strlen(wanted) && strncasecmp(name.ptr, wanted, name.len) == 0;
}

/* A tool cannot set the headers that frame the message or manage the connection: http/transfer.c never sends them. */
static void check_header_name(struct slice name, struct slice pointer, struct faults *faults)
{
    static const char *const ours[] = {"content-length",
                                       "transfer-encoding",
                                       "connection",
                                       "keep-alive",
                                       "proxy-connection",
                                       "upgrade",
                                       "te",
                                       "trailer",
                                       "expect"};

    if (!http_text_is_token(name)) {
        faults_add(faults, pointer, "\"%.*s\" cannot be the name of a header", SLICE_ARG(name));
    }
    for (size_t i = 0; i < COUNT_OF(ours); i++) {
        if (header_is(name, ours[i])) {
            faults_add(faults, pointer,
                       "sagad itself says how the message is framed and what becomes of the connection; leave the "
                       "header \"%s\" out",
                       ours[i]);
        }
    }
}

void http_check_headers(struct slice value, struct slice pointer, struct faults *faults)
{
    struct json_walk walk = json_walk(value);
    struct slice name, header;

    settings_check_scalars(value, pointer, faults, check_header_name);
    while (json_next_member(&walk, &name, &header)) {
        struct slice text = setting_text(header, faults->arena);

        if (header_is(name, "host") && setting_is_template(header)) {
            faults_add(faults, json_pointer_join(faults->arena, pointer, name),
                       "the host of a call may not come from a template; write it");
        }
        for (size_t i = 0; i < text.len; i++) {
            if (((unsigned char)text.ptr[i] < ' ' && text.ptr[i] != '\t') || text.ptr[i] == 0x7f) {
                faults_add(faults, json_pointer_join(faults->arena, pointer, name),
                           "the value of a header may hold no control characters");
                break;
            }
        }
    }
}

/* Reads a Retry-After: a number of seconds, or an HTTP date. */
int64_t http_retry_after_ms(struct slice value, int64_t now_ms, struct arena *arena)
{
    struct tm tm = {0};
    const char *end;
    int64_t ms = 0;

    if (value.len == 0) {
        return 0;
    }
    if (slice_to_i64(value, &ms)) {
        ms = ms < 0 ? 0 : ms > RETRY_AFTER_MS_MAX / 1000 ? RETRY_AFTER_MS_MAX : ms * 1000;
    } else {
        end = strptime(arena_text(arena, value), "%a, %d %b %Y %H:%M:%S GMT", &tm);
        ms = end && !*end ? (int64_t)timegm(&tm) * 1000 - now_ms : 0;
    }
    return ms < 0 ? 0 : ms > RETRY_AFTER_MS_MAX ? RETRY_AFTER_MS_MAX : ms;
}

/* The outcome of a status code when the definition of the tool does not say otherwise. */
enum outcome_kind http_status_outcome(int status)
{
    if (status == 202) {
        return OUTCOME_RUNNING;
    }
    if (status >= 200 && status < 300) {
        return OUTCOME_COMPLETED;
    }
    if (status == 425 || status == 429) {
        return OUTCOME_RETRY;
    }
    if (status >= 400 && status < 500 && status != 408 && status != 409) {
        return OUTCOME_FAILED;
    }
    return OUTCOME_UNKNOWN;
}
