/* GnuTLS decides whether a certificate is good; this file gives it what it needs, and words to what it says. */
#include "io/http/client_trust.h"

#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>

#define CHAIN_MAX 8
#define NAMES_MAX 16 /* how many names of one certificate are looked at */
#define NAME_BYTES_MAX 256

struct client_trust {
    gnutls_x509_trust_list_t list;
};

static enum err_code wrong(const char *file, const char *what, struct err *err)
{
    (void)err_set(err, ERR_CONFIG, "the authorities of --tls-client-ca cannot be used");
    err_detail(err, "%s: %s", file, what);
    err_hint(err, "give a PEM file: the certificates of the authorities that sign for clients, and behind them their "
                  "lists of revoked certificates, signed and not out of date");
    return ERR_CONFIG;
}

enum err_code client_trust_read(struct slice pem, const char *file, struct client_trust **out, struct err *err)
{
    const gnutls_datum_t data = {(unsigned char *)(uintptr_t)pem.ptr, (unsigned)pem.len};
    bool has_lists = memmem(pem.ptr, pem.len, "-----BEGIN X509 CRL", 19) != NULL;
    struct client_trust *trust = memory_alloc(sizeof(*trust));

    CHECK(gnutls_x509_trust_list_init(&trust->list, 0) == GNUTLS_E_SUCCESS);
    int count = gnutls_x509_trust_list_add_trust_mem(trust->list, &data, NULL, GNUTLS_X509_FMT_PEM, 0, 0);
    int lists = 1;

    if (count > 0 && has_lists) {
        lists = gnutls_x509_trust_list_add_trust_mem(trust->list, NULL, &data, GNUTLS_X509_FMT_PEM,
                                                     GNUTLS_TL_VERIFY_CRL | GNUTLS_TL_FAIL_ON_INVALID_CRL, 0);
    }
    if (count > 0 && lists > 0) {
        *out = trust;
        return ERR_OK;
    }
    client_trust_free(trust);
    return wrong(file,
                 count < 0    ? gnutls_strerror(count)
                 : count == 0 ? "it has no certificate"
                 : lists < 0  ? gnutls_strerror(lists)
                              : "a list of revoked certificates is not signed by an authority of the file",
                 err);
}

void client_trust_free(struct client_trust *trust)
{
    if (trust) {
        gnutls_x509_trust_list_deinit(trust->list, 1);
        free(trust);
    }
}

/* --- one certificate --- */

static const char *fault_of(unsigned status)
{
    static const struct {
        unsigned bit;
        const char *fault;
    } faults[] = {
        {GNUTLS_CERT_REVOKED, "was revoked"},
        {GNUTLS_CERT_EXPIRED, "has expired"},
        {GNUTLS_CERT_NOT_ACTIVATED, "is not valid yet"},
        {GNUTLS_CERT_SIGNER_NOT_FOUND, "comes from no authority that is trusted here"},
        {GNUTLS_CERT_PURPOSE_MISMATCH, "is none for clients"},
        {GNUTLS_CERT_REVOCATION_DATA_SUPERSEDED, "cannot be trusted: the list of revoked ones is out of date"},
        {GNUTLS_CERT_INSECURE_ALGORITHM, "is signed by an algorithm that is not secure"},
    };

    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        if (status & faults[i].bit) {
            return faults[i].fault;
        }
    }
    return status ? "is not good" : NULL;
}

void client_trust_names(gnutls_x509_crt_t certificate, struct arena *arena, struct client_certificate *out)
{
    int type = 0;

    out->names = arena_array(arena, NAMES_MAX, sizeof(*out->names));
    for (unsigned i = 0; out->name_count < NAMES_MAX; i++) {
        char name[NAME_BYTES_MAX];
        size_t bytes = sizeof(name);

        type = gnutls_x509_crt_get_subject_alt_name(certificate, i, name, &bytes, NULL);
        const char *prefix = type == GNUTLS_SAN_DNSNAME      ? "DNS:"
                             : type == GNUTLS_SAN_URI        ? "URI:"
                             : type == GNUTLS_SAN_RFC822NAME ? "email:"
                                                             : NULL;

        if (type == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE) {
            return;
        }
        if (prefix && !memchr(name, '\0', bytes)) { /* what ends early might look like the name of somebody else */
            out->names[out->name_count++] = arena_printf(arena, "%s%.*s", prefix, (int)bytes, name);
        } else if (type < 0 && type != GNUTLS_E_SHORT_MEMORY_BUFFER) {
            return;
        }
    }
}

void client_trust_look(const struct client_trust *trust, gnutls_session_t session, struct arena *arena,
                       struct client_certificate *out)
{
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                     .data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT};
    gnutls_x509_crt_t chain[CHAIN_MAX];
    unsigned shown = 0, count = 0, status = GNUTLS_CERT_INVALID;
    const gnutls_datum_t *peers = gnutls_certificate_get_peers(session, &shown);
    int error = GNUTLS_E_SUCCESS;

    *out = (struct client_certificate){.is_shown = peers != NULL && shown > 0};
    if (!out->is_shown) {
        return;
    }
    for (; count < shown && count < CHAIN_MAX && error == GNUTLS_E_SUCCESS; count++) {
        CHECK(gnutls_x509_crt_init(&chain[count]) == GNUTLS_E_SUCCESS);
        error = gnutls_x509_crt_import(chain[count], &peers[count], GNUTLS_X509_FMT_DER);
    }
    if (error == GNUTLS_E_SUCCESS && shown <= CHAIN_MAX) {
        error = gnutls_x509_trust_list_verify_crt2(trust->list, chain, count, &purpose, 1, 0, &status, NULL);
    }
    out->fault = error != GNUTLS_E_SUCCESS ? "cannot be read" : fault_of(status);
    if (!out->fault) {
        out->expires_ms = (int64_t)gnutls_x509_crt_get_expiration_time(chain[0]) * 1000;
        if (arena) {
            client_trust_names(chain[0], arena, out);
        }
    }
    for (unsigned i = 0; i < count; i++) {
        gnutls_x509_crt_deinit(chain[i]);
    }
}
