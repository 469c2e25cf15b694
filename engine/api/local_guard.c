/*
 * Refuses web pages. A page in a browser on this machine can reach loopback, but it cannot forge three headers. Host
 * tells when the page uses a name of its own that now resolves to 127.0.0.1. Origin and Sec-Fetch-Site tell when it
 * sends a plain cross-site request. A proxy on this machine hides all of its clients behind loopback, and says so in
 * headers of its own.
 */
#include "api/local_guard.h"

#include <arpa/inet.h>
#include <strings.h>

static struct slice host_name(struct slice host) /* the name without the port */
{
    for (size_t i = host.len; i > 0; i--) {
        char c = host.ptr[i - 1];

        if (c == ':') {
            return (struct slice){host.ptr, i - 1};
        }
        if (c < '0' || c > '9') {
            break;
        }
    }
    return host;
}

static bool same_text(struct slice a, struct slice b)
{
    return a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0;
}

/* Accepts only a literal, because "127.attacker.example" is a name that its owner can resolve to any address. */
static bool is_local(struct slice name)
{
    char text[INET_ADDRSTRLEN + 1];
    struct in_addr address;

    if (same_text(name, SLICE("localhost")) || slice_is(name, "[::1]")) {
        return true;
    }
    slice_to_text(text, sizeof(text), name);
    return name.len < sizeof(text) && inet_pton(AF_INET, text, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

const char *local_guard_fault(const struct http_exchange *exchange)
{
    struct slice host = http_exchange_header(exchange, "host"), origin = http_exchange_header(exchange, "origin"),
                 site = http_exchange_header(exchange, "sec-fetch-site");

    if (!is_local(host_name(host))) {
        return "without tokens this service answers to localhost, 127.0.0.1 and [::1] only, and Host names something "
               "else";
    }
    if (http_exchange_header_count(exchange, "origin") > 1 ||
        (origin.ptr &&
         !(slice_starts_with(origin, "http://") && same_text((struct slice){origin.ptr + 7, origin.len - 7}, host)))) {
        return "without tokens this service refuses requests that come from web pages of other origins";
    }
    if (http_exchange_header_count(exchange, "sec-fetch-site") > 1 ||
        (site.ptr && !slice_is(site, "same-origin") && !slice_is(site, "none"))) {
        return "without tokens this service refuses requests that web pages of other sites make";
    }
    if (http_exchange_header(exchange, "x-forwarded-for").ptr || http_exchange_header(exchange, "forwarded").ptr) {
        return "this request comes through a proxy, and without tokens every client of the proxy would be an admin; "
               "start sagad with --tokens";
    }
    return NULL;
}
