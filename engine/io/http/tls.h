/*
 * TLS of the HTTP server, by GnuTLS: the certificate and its key, which can be read again while connections are open.
 *
 * Each connection keeps the certificate that it began with; a new one holds for connections that come afterwards. TLS
 * 1.2 and later are spoken. Where there are authorities for clients, each client is asked for its certificate. Without
 * one, or with one that is not good, it still gets its connection: who asks is decided request by request
 * (client_trust.h).
 */
#ifndef SAGAD_IO_HTTP_TLS_H
#define SAGAD_IO_HTTP_TLS_H

#include <gnutls/gnutls.h>

#include "base/errors.h"

#define HTTP_TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct client_trust;
struct http_tls;
struct http_tls_pair; /* a certificate and its key, in memory */

/* The files hold PEM: the certificate with those that lead to its authority behind it, and its key. NULL, with a
 * sentence, when one of them cannot be read, others than its owner may write it, or they do not belong together. */
struct http_tls *http_tls_new(const char *cert_file, const char *key_file, const char *client_ca_file,
                              struct err *err); /* the third may be NULL: no client is asked */
void http_tls_free(struct http_tls *tls);       /* after the last http_tls_leave(); accepts NULL */
/* ERR_CONFIG: the files are wrong, and the pair as it was still holds. */
MUST_USE enum err_code http_tls_reload(struct http_tls *tls, struct err *err);

/* Gives a session the newest pair before its handshake. Each call is followed by one of http_tls_leave(), once the
 * session shakes hands no more. */
struct http_tls_pair *http_tls_enter(struct http_tls *tls, gnutls_session_t session);
void http_tls_leave(struct http_tls_pair *pair);
const struct client_trust *http_tls_trust(const struct http_tls *tls); /* NULL: no client is asked */

#endif
