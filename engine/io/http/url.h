/*
 * Parsed URLs, kept from one request to the next. Few URLs are called again and again, and to parse one costs libcurl a
 * fifth of a request.
 */
#ifndef SAGAD_IO_HTTP_URL_H
#define SAGAD_IO_HTTP_URL_H

#include <curl/curl.h>

#include "base/text.h"

#define HTTP_URLS_KEPT 64

struct http_url;

struct http_urls {
    struct http_url *slots[HTTP_URLS_KEPT];
};

void http_urls_fini(struct http_urls *urls); /* accepts a zeroed struct */

/* NULL: libcurl parses the URL itself, because it is not to be kept, or because it is wrong and libcurl says best
 * why. */
struct http_url *http_url_take(struct http_urls *urls, struct slice text);
CURLU *http_url_read(struct http_url *url);
void http_url_release(struct http_url *url); /* call it when libcurl no longer uses it; accepts NULL */

#endif
