/*
 * What a client learns of the protected resource /mcp (RFC 9728). With an issuer of OpenID Connect, that is its
 * authorization server. Else its tokens come from whoever runs sagad, and none is named: a client that finds none asks
 * its user for a token.
 */
#include "api/request.h"

#include <string.h>

#include "base/json.h"

#define METADATA "/.well-known/oauth-protected-resource"
#define HOST_BYTES_MAX 255
#define SCOPE "agent" /* the least role */

/* A name or an address, with a port: nothing that ends a quoted text or a URL. */
static bool host_is_good(struct slice host)
{
    for (size_t i = 0; i < host.len; i++) {
        char c = host.ptr[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && !strchr(".:-[]", c)) {
            return false;
        }
    }
    return host.len > 0 && host.len <= HOST_BYTES_MAX;
}

/* A proxy may have a name of its own for us, and says by which one the client came. It tells a lie to nobody but the
 * client that sent it. */
static struct slice request_base_url(const struct api_request *request)
{
    const struct http_exchange *http = request->exchange;
    struct slice forwarded = http_exchange_header(http, "x-forwarded-host"), host = http_exchange_header(http, "host");
    bool is_tls =
        http_server_has_tls(request->api->server) || slice_is(http_exchange_header(http, "x-forwarded-proto"), "https");

    if (http_exchange_header_count(http, "x-forwarded-host") == 1 && host_is_good(forwarded)) {
        host = forwarded;
    } else if (!host_is_good(host)) {
        host = slice_of(http_server_address(request->api->server));
    }
    return arena_printf(request->arena, "%s://%.*s", is_tls ? "https" : "http", SLICE_ARG(host));
}

static bool is_of_mcp(const struct api_request *request)
{
    return request->route && request->route->handle == handle_mcp;
}

struct slice protected_resource_challenge(const struct api_request *request, enum err_code code)
{
    struct slice base;

    if (code != ERR_UNAUTHENTICATED || !is_of_mcp(request)) {
        return SLICE_NONE;
    }
    base = request_base_url(request);
    return arena_printf(request->arena, "Bearer realm=\"sagad\", %sscope=\"" SCOPE "\", resource_metadata=\"%.*s%s\"",
                        http_exchange_header(request->exchange, "authorization").ptr ? "error=\"invalid_token\", " : "",
                        SLICE_ARG(base), METADATA "/mcp");
}

void protected_resource_refuse_scope(struct api_request *request)
{
    struct slice base;

    if (!is_of_mcp(request)) {
        return;
    }
    base = request_base_url(request);
    http_answer_header(request->exchange, "WWW-Authenticate",
                       arena_printf(request->arena,
                                    "Bearer realm=\"sagad\", error=\"insufficient_scope\", scope=\"" SCOPE
                                    "\", resource_metadata=\"%.*s" METADATA "/mcp\"",
                                    SLICE_ARG(base)));
}

void handle_protected_resource(struct api_request *request)
{
    struct slice base = request_base_url(request);
    struct json_writer w;
    struct buffer out;

    buffer_init(&out, 4096);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_write_slice(&w, "resource", arena_printf(request->arena, "%.*s/mcp", SLICE_ARG(base)));
    if (request->api->issuer) {
        json_array_begin(&w, "authorization_servers");
        json_write_text(&w, NULL, request->api->oidc.issuer.url);
        json_array_end(&w);
    }
    json_array_begin(&w, "bearer_methods_supported");
    json_write_text(&w, NULL, "header");
    json_array_end(&w);
    json_array_begin(&w, "scopes_supported");
    json_write_text(&w, NULL, SCOPE);
    json_array_end(&w);
    json_write_text(&w, "resource_name", "sagad");
    json_object_end(&w);
    CHECK(!out.overflow);
    request_answer_json(request, 200, arena_slice(request->arena, buffer_slice(&out)));
    buffer_fini(&out);
}
