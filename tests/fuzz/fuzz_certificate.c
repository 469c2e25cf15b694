/*
 * The names of a client certificate (DER) as they are matched with the rows of the tokens file. Each is of a kind that
 * a row may have, and nothing in it can make it look like the name of somebody else.
 */
#include <gnutls/x509.h>

#include "io/http/client_trust.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static gnutls_x509_crt_t certificate;
    const gnutls_datum_t der = {(unsigned char *)(uintptr_t)data, (unsigned)size};
    struct client_certificate found = {.is_shown = true};

    MUST(gnutls_x509_crt_init(&certificate) == GNUTLS_E_SUCCESS);
    if (gnutls_x509_crt_import(certificate, &der, GNUTLS_X509_FMT_DER) == GNUTLS_E_SUCCESS) {
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
