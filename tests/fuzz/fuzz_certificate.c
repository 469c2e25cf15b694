/*
 * The names of a client certificate (DER) as they are matched with the rows of the tokens file. Each is of a kind that
 * a row may have, and nothing in it can make it look like the name of somebody else.
 *
 * GnuTLS is not instrumented, so the fuzzer gets no certificate past it but by luck. Therefore what does not begin as
 * a certificate is the extension with the alternative names of one that is otherwise empty.
 */
#include <gnutls/x509-ext.h>
#include <gnutls/x509.h>

#include "io/http/client_trust.h"
#include "tests/fuzz/fuzz.h"

static bool read(gnutls_x509_crt_t certificate, const uint8_t *data, size_t size)
{
    const gnutls_datum_t der = {(unsigned char *)(uintptr_t)data, (unsigned)size};

    if (size > 1 && data[0] == 0x30 && data[1] == 0x82) { /* a SEQUENCE with a length of two bytes */
        return gnutls_x509_crt_import(certificate, &der, GNUTLS_X509_FMT_DER) == GNUTLS_E_SUCCESS;
    }
    /* libtasn1 takes a length of 0 for a text that ends with a NUL. */
    return size > 0 &&
           gnutls_x509_crt_set_extension_by_oid(certificate, GNUTLS_X509EXT_OID_SAN, data, size, 0) == GNUTLS_E_SUCCESS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static gnutls_x509_crt_t certificate;
    struct client_certificate found = {.is_shown = true};

    MUST(gnutls_x509_crt_init(&certificate) == GNUTLS_E_SUCCESS);
    if (read(certificate, data, size)) {
        client_trust_names(certificate, fuzz_arena(), &found);
    }
    for (size_t i = 0; i < found.name_count; i++) {
        struct slice name = found.names[i];

        MUST(slice_starts_with(name, "DNS:") || slice_starts_with(name, "URI:") || slice_starts_with(name, "email:"));
        MUST(!memchr(name.ptr, '\0', name.len));
    }
    gnutls_x509_crt_deinit(certificate);
    return 0;
}
