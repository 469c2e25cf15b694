/* A browser sends its certificate with whatever a page makes it send, as it does with a cookie: session.c says why a
 * request by a browser needs more. */
#include "api/certificate_use.h"

#include <stdio.h>

#include "api/request.h"

static bool refuse(struct api_request *request, const char *message, const char *hint)
{
    struct err err = {0};

    (void)err_set(&err, ERR_UNAUTHENTICATED, "%s", message);
    err_hint(&err, "%s", hint);
    request_problem_of(request, &err, NULL);
    return false;
}

bool certificate_find(struct api_request *request, const struct token **out)
{
    struct client_certificate certificate;
    char message[160];

    *out = NULL;
    http_exchange_certificate(request->exchange, request->arena, &certificate);
    if (certificate.fault) {
        (void)snprintf(message, sizeof(message), "this client certificate %s", certificate.fault);
        return refuse(request, message, "show another one, or none");
    }
    for (size_t i = 0; i < certificate.name_count; i++) {
        struct digest digest = token_certificate_digest(certificate.names[i]);
        const struct token *token = api_find_token(request->api, &digest);

        if (token && *out && token != *out) {
            return refuse(request, "the names of this client certificate stand in two rows of the tokens file",
                          "have one certificate for each row");
        }
        *out = token ? token : *out;
    }
    request->certificate_expires_ms = certificate.expires_ms;
    return true;
}

static const char *browser_fault(const struct api_request *request)
{
    static const char *const headers[] = {"origin", "sec-fetch-site", "cookie", "referer"};

    for (size_t i = 0; i < COUNT_OF(headers); i++) {
        if (http_exchange_header(request->exchange, headers[i]).ptr) {
            return session_guard_fault(request->exchange);
        }
    }
    return NULL;
}

bool certificate_take(struct api_request *request, const struct token *token)
{
    int64_t own_ms = request->certificate_expires_ms;

    if (browser_fault(request)) {
        request_problem(request, ERR_FORBIDDEN,
                        "a client certificate is refused to pages of other origins: a browser "
                        "sends the header Sagad-Console: 1 with it");
        return false;
    }
    request->has_certificate = true;
    request_take_token(request, token);
    request->token_expires_ms = token->expires_ms && token->expires_ms < own_ms ? token->expires_ms : own_ms;
    return true;
}

bool certificate_is_over(const struct api_request *request)
{
    struct client_certificate certificate;

    if (!request->has_certificate) {
        return false;
    }
    http_exchange_certificate(request->exchange, NULL, &certificate);
    return certificate.fault != NULL;
}
