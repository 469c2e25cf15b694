/* Looks up headers and parameters of a request by name. This does not need the HTTP library, so the fuzzer's requests
 * are looked up in the same way. */
#include "io/http/guard.h"

struct slice http_exchange_header(const struct http_exchange *exchange, const char *name)
{
    for (size_t i = 0; i < exchange->header_count; i++) {
        if (http_name_is(exchange->headers[i].name, name)) {
            return exchange->headers[i].value;
        }
    }
    return SLICE_NONE;
}

size_t http_exchange_header_count(const struct http_exchange *exchange, const char *name)
{
    size_t count = 0;

    for (size_t i = 0; i < exchange->header_count; i++) {
        count += http_name_is(exchange->headers[i].name, name);
    }
    return count;
}

struct slice http_exchange_query(const struct http_exchange *exchange, const char *name)
{
    for (size_t i = 0; i < exchange->query_count; i++) {
        if (slice_is(exchange->query[i].name, name)) {
            return exchange->query[i].value;
        }
    }
    return SLICE_NONE;
}
