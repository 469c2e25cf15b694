/* A pair is counted by the sessions that use it, so that a reload does not take it away from an open connection. */
#include "io/http/tls.h"

#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "io/http/client_trust.h"

#define FILE_KIB_MAX 1024

struct http_tls_pair {
    gnutls_certificate_credentials_t credentials;
    size_t users; /* sessions, and one for the http_tls whose newest it is */
};

struct http_tls {
    const char *cert_file, *key_file, *client_ca_file;
    struct http_tls_pair *newest;
    struct client_trust *trust; /* NULL: no client is asked for a certificate */
};

static enum err_code wrong(struct err *err, const char *cert_file, const char *key_file, int error)
{
    err_set(err, ERR_CONFIG, "the certificate of --tls-cert and the key of --tls-key cannot be used");
    err_detail(err, "%s, %s: %s", cert_file, key_file, gnutls_strerror(error));
    err_hint(err, "give PEM files: the server's certificate, then those of its authorities; and its key, without a "
                  "passphrase");
    return ERR_CONFIG;
}

/* GnuTLS 3.7 does not compare them for all kinds of keys. */
static int compare_keys(gnutls_certificate_credentials_t credentials)
{
    unsigned char of_cert[64], of_key[64];
    size_t cert_bytes = sizeof(of_cert), key_bytes = sizeof(of_key);
    gnutls_x509_crt_t *certs = NULL;
    gnutls_x509_privkey_t key = NULL;
    unsigned count = 0;
    int error = gnutls_certificate_get_x509_crt(credentials, 0, &certs, &count);

    if (error >= 0) {
        error = gnutls_x509_crt_get_key_id(certs[0], GNUTLS_KEYID_USE_SHA256, of_cert, &cert_bytes);
    }
    if (error >= 0) {
        error = gnutls_certificate_get_x509_key(credentials, 0, &key);
    }
    if (error >= 0) {
        error = gnutls_x509_privkey_get_key_id(key, GNUTLS_KEYID_USE_SHA256, of_key, &key_bytes);
    }
    if (error >= 0 && (cert_bytes != key_bytes || memcmp(of_cert, of_key, key_bytes) != 0)) {
        error = GNUTLS_E_CERTIFICATE_KEY_MISMATCH;
    }
    for (unsigned i = 0; i < count; i++) {
        gnutls_x509_crt_deinit(certs[i]);
    }
    gnutls_free(certs);
    if (key) {
        gnutls_x509_privkey_deinit(key);
    }
    return error;
}

static gnutls_datum_t datum_of(struct slice text)
{
    return (gnutls_datum_t){(unsigned char *)(uintptr_t)text.ptr, (unsigned)text.len};
}

static enum err_code pair_read(const struct http_tls *tls, struct http_tls_pair **out, struct err *err)
{
    gnutls_certificate_credentials_t credentials = NULL;
    struct slice cert = SLICE_NONE, key = SLICE_NONE;
    struct arena arena;

    arena_init(&arena, 16384);
    enum err_code code = file_read(tls->cert_file, "tls-cert", FILE_KIB_MAX, FILE_OF_ITS_OWNER, &arena, &cert, err);

    if (code == ERR_OK) {
        code = file_read(tls->key_file, "tls-key", FILE_KIB_MAX, FILE_OF_ITS_OWNER, &arena, &key, err);
    }
    if (code == ERR_OK) {
        const gnutls_datum_t certs = datum_of(cert), secret = datum_of(key);

        CHECK(gnutls_certificate_allocate_credentials(&credentials) == GNUTLS_E_SUCCESS);
        int error = gnutls_certificate_set_x509_key_mem2(credentials, &certs, &secret, GNUTLS_X509_FMT_PEM, NULL, 0);

        error = error < 0 ? error : compare_keys(credentials);
        code = error < 0 ? wrong(err, tls->cert_file, tls->key_file, error) : ERR_OK;
    }
    if (key.ptr) {
        explicit_bzero((char *)(uintptr_t)key.ptr, key.len);
    }
    arena_fini(&arena);
    if (code != ERR_OK) {
        if (credentials) {
            gnutls_certificate_free_credentials(credentials);
        }
        return code;
    }
    *out = memory_alloc(sizeof(**out));
    **out = (struct http_tls_pair){.credentials = credentials, .users = 1};
    return ERR_OK;
}

static enum err_code trust_read(const struct http_tls *tls, struct client_trust **out, struct err *err)
{
    struct slice pem = SLICE_NONE;
    struct arena arena;

    *out = NULL;
    if (!tls->client_ca_file) {
        return ERR_OK;
    }
    arena_init(&arena, 16384);
    enum err_code code =
        file_read(tls->client_ca_file, "tls-client-ca", FILE_KIB_MAX, FILE_OF_ITS_OWNER, &arena, &pem, err);

    code = code == ERR_OK ? client_trust_read(pem, tls->client_ca_file, out, err) : code;
    arena_fini(&arena);
    return code;
}

struct http_tls *http_tls_new(const char *cert_file, const char *key_file, const char *client_ca_file, struct err *err)
{
    struct http_tls *tls = memory_alloc(sizeof(*tls));

    *tls = (struct http_tls){.cert_file = cert_file, .key_file = key_file, .client_ca_file = client_ca_file};
    if (http_tls_reload(tls, err) != ERR_OK) {
        free(tls);
        return NULL;
    }
    return tls;
}

void http_tls_free(struct http_tls *tls)
{
    if (tls) {
        http_tls_leave(tls->newest);
        client_trust_free(tls->trust);
        free(tls);
    }
}

enum err_code http_tls_reload(struct http_tls *tls, struct err *err)
{
    struct client_trust *trust = NULL;
    struct http_tls_pair *pair = NULL;
    enum err_code code = trust_read(tls, &trust, err);

    code = code == ERR_OK ? pair_read(tls, &pair, err) : code;
    if (code != ERR_OK) {
        client_trust_free(trust);
        return code;
    }
    if (tls->newest) {
        http_tls_leave(tls->newest);
    }
    client_trust_free(tls->trust);
    tls->newest = pair;
    tls->trust = trust;
    return ERR_OK;
}

struct http_tls_pair *http_tls_enter(struct http_tls *tls, gnutls_session_t session)
{
    struct http_tls_pair *pair = tls->newest;

    /* It replaces the pair that the library gave: that is the one with which the server has started. */
    CHECK(gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, pair->credentials) == GNUTLS_E_SUCCESS);
    if (tls->trust) {
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
    }
    pair->users++;
    return pair;
}

const struct client_trust *http_tls_trust(const struct http_tls *tls)
{
    return tls->trust;
}

void http_tls_leave(struct http_tls_pair *pair)
{
    if (--pair->users == 0) {
        gnutls_certificate_free_credentials(pair->credentials);
        free(pair);
    }
}
