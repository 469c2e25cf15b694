/*
 * Client certificates of the HTTP server: which authorities are trusted, and what a certificate says of its owner.
 *
 * The file has the certificates of the authorities in PEM. Beside them it may have their lists of revoked certificates
 * (X509 CRL). A certificate is looked at with each request, by the authorities and lists that were read last: what was
 * revoked since then is refused on connections that are open, too.
 */
#ifndef SAGAD_IO_HTTP_CLIENT_TRUST_H
#define SAGAD_IO_HTTP_CLIENT_TRUST_H

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "io/http/server.h"

struct client_trust;

/* ERR_CONFIG with a sentence: the file cannot be used. */
MUST_USE enum err_code client_trust_read(struct slice pem, const char *file, struct client_trust **out,
                                         struct err *err);
void client_trust_free(struct client_trust *trust); /* accepts NULL */
/* `arena` may be NULL: then it is only said whether the certificate is good. */
void client_trust_look(const struct client_trust *trust, gnutls_session_t session, struct arena *arena,
                       struct client_certificate *out);
/* Reads the names alone: DNS:NAME, URI:URI and email:ADDRESS */
void client_trust_names(gnutls_x509_crt_t certificate, struct arena *arena, struct client_certificate *out);

#endif
