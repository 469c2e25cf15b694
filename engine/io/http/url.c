/* Each hash has one place. A URL is freed when another one has taken its place and no request uses it any more. */
#include "io/http/url.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "io/http/client.h"

#define URL_BYTES_KEPT_MAX 1024

struct http_url {
    size_t users; /* requests that use it, plus one for its place */
    CURLU *read;
    size_t len;
    char text[];
};

static struct http_url **place_of(struct http_urls *urls, struct slice text)
{
    uint32_t hash = UINT32_C(2166136261);

    for (size_t i = 0; i < text.len; i++) {
        hash = (hash ^ (unsigned char)text.ptr[i]) * UINT32_C(16777619);
    }
    return &urls->slots[(hash ^ hash >> 16) % HTTP_URLS_KEPT];
}

/* Uses the flags that libcurl itself uses for CURLOPT_URL and CURLOPT_PATH_AS_IS. */
static struct http_url *url_new(struct slice text)
{
    struct http_url *url = memory_alloc(sizeof(*url) + text.len + 1);

    memcpy(url->text, text.ptr, text.len);
    url->len = text.len;
    url->users = 1;
    url->read = curl_url();
    CHECK(url->read);
    if (curl_url_set(url->read, CURLUPART_URL, url->text,
                     CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME | CURLU_PATH_AS_IS) != CURLUE_OK) {
        http_url_release(url);
        return NULL;
    }
    return url;
}

bool http_url_is_good(struct slice text)
{
    struct http_url *url = url_new(text);

    http_url_release(url);
    return url != NULL;
}

/* Long URLs would cost memory, URLs with a query seldom come twice, and URLs with a name and a password must not be
 * kept. libcurl reads all these itself. */
static bool is_worth_keeping(struct slice text)
{
    return text.len <= URL_BYTES_KEPT_MAX && !memchr(text.ptr, '?', text.len) && !memchr(text.ptr, '@', text.len);
}

struct http_url *http_url_take(struct http_urls *urls, struct slice text)
{
    if (!is_worth_keeping(text)) {
        return NULL;
    }
    struct http_url **place = place_of(urls, text), *url = *place;

    if (!url || url->len != text.len || memcmp(url->text, text.ptr, text.len) != 0) {
        url = url_new(text);
        if (!url) {
            return NULL;
        }
        http_url_release(*place);
        *place = url;
    }
    url->users++;
    return url;
}

CURLU *http_url_read(struct http_url *url)
{
    return url->read;
}

void http_url_release(struct http_url *url)
{
    if (url && --url->users == 0) {
        curl_url_cleanup(url->read);
        free(url);
    }
}

void http_urls_fini(struct http_urls *urls)
{
    for (size_t i = 0; i < HTTP_URLS_KEPT; i++) {
        http_url_release(urls->slots[i]);
        urls->slots[i] = NULL;
    }
}
