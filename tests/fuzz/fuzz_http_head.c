/*
 * The guard in front of the HTTP library. The input is a head as it comes over the wire: the request line and header
 * lines. Every other reader must understand an accepted head in the same way.
 */
#include <strings.h>

#include "io/http/guard.h"
#include "tests/fuzz/fuzz.h"

#define PAIRS_MAX (HTTP_HEADERS_MAX + 2)

static bool name_is(struct slice name, const char *lower_case)
{
    return name.len == strlen(lower_case) && strncasecmp(name.ptr, lower_case, name.len) == 0;
}

static struct slice take_word(struct slice *rest)
{
    const char *end = rest->len ? memchr(rest->ptr, ' ', rest->len) : NULL;
    struct slice word = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    size_t taken = word.len + (end ? 1 : 0);

    *rest = (struct slice){rest->ptr + taken, rest->len - taken};
    return word;
}

static size_t read_headers(struct slice rest, struct http_pair *pairs)
{
    size_t count = 0;

    while (rest.len > 0 && count < PAIRS_MAX) {
        struct slice line = fuzz_line(&rest);
        const char *colon = line.len ? memchr(line.ptr, ':', line.len) : NULL;
        size_t name_len = colon ? (size_t)(colon - line.ptr) : line.len;

        pairs[count].name = (struct slice){line.ptr, name_len};
        pairs[count].value =
            slice_trim((struct slice){line.ptr + name_len + (colon ? 1 : 0), line.len - name_len - (colon ? 1 : 0)});
        count++;
    }
    return count;
}

/* Checks for everything that a reader of RFC 9112 could trip over. */
static void check_accepted(struct slice version, const struct http_pair *pairs, size_t count, int64_t content_length)
{
    size_t hosts = 0, lengths = 0, encodings = 0;

    MUST(count <= HTTP_HEADERS_MAX);
    for (size_t i = 0; i < count; i++) {
        MUST(pairs[i].name.len > 0);
        for (size_t k = 0; k < pairs[i].name.len; k++) {
            MUST((unsigned char)pairs[i].name.ptr[k] > ' ' && (unsigned char)pairs[i].name.ptr[k] < 0x7f);
        }
        for (size_t k = 0; k < pairs[i].value.len; k++) {
            char c = pairs[i].value.ptr[k];

            MUST(c != '\r' && c != '\n' && c != '\0');
        }
        hosts += name_is(pairs[i].name, "host");
        encodings += name_is(pairs[i].name, "transfer-encoding");
        if (name_is(pairs[i].name, "content-length")) {
            lengths++;
            MUST(content_length >= 0);
        }
    }
    MUST(hosts == 1 && lengths + encodings <= 1);
    MUST(lengths == 1 || content_length == -1);
    MUST(encodings == 0 || slice_is(version, "HTTP/1.1"));
}

static void check_target(struct slice target)
{
    if (http_guard_target(target)) {
        return;
    }
    MUST(target.ptr[0] == '/');
    for (size_t i = 0; i < target.len; i++) {
        unsigned char c = (unsigned char)target.ptr[i];

        MUST(c > ' ' && c < 0x7f && c != '#');
        MUST(c != '%' || i + 2 < target.len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice rest = fuzz_input(data, size), line = fuzz_line(&rest);
    struct slice method = take_word(&line), target = take_word(&line), version = line;
    struct http_pair pairs[PAIRS_MAX] = {0};
    size_t count = read_headers(rest, pairs);
    int64_t content_length;

    if (!http_guard_headers(method, version, pairs, count, &content_length)) {
        check_accepted(version, pairs, count, content_length);
    }
    check_target(target);
    return 0;
}
