/* Compares all addresses as sixteen bytes. An IPv4 address has its mapped form, so one comparison serves both
 * families. */
#include "io/http/egress.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define V4(a, b, c, d)                                                                                                 \
    {                                                                                                                  \
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d                                                           \
    }

static const struct egress_net always[] = {
    {V4(169, 254, 0, 0), 96 + 16},  /* link-local, and the metadata of most clouds */
    {V4(100, 100, 100, 200), 128},  /* Alibaba's */
    {V4(192, 0, 0, 192), 128},      /* the older metadata address of Oracle */
    {V4(168, 63, 129, 16), 128},    /* Azure's wire server */
    {{0xfe, 0x80}, 10},             /* link-local */
    {{0xfd, 0x00, 0x0e, 0xc2}, 32}, /* the metadata address of Amazon over IPv6, fd00:ec2::254 */
    {{0xfd, 0x20, 0x00, 0xce}, 32}, /* the metadata address of Google over IPv6, fd20:ce::254 */
};

static const struct egress_net private_nets[] = {
    {V4(10, 0, 0, 0), 96 + 8},
    {V4(172, 16, 0, 0), 96 + 12},
    {V4(192, 168, 0, 0), 96 + 16},
    {V4(100, 64, 0, 0), 96 + 10},
    {{0xfc}, 7},
    {{0xfe, 0xc0}, 10},
};

static const struct egress_net loopback_nets[] = {
    {V4(127, 0, 0, 0), 96 + 8},
    {V4(0, 0, 0, 0), 96 + 8}, /* this host */
    {{0}, 127},               /* :: and ::1 */
};

static bool net_holds(const struct egress_net *net, const unsigned char address[16])
{
    unsigned whole = net->bits / 8, rest = net->bits % 8;

    return memcmp(net->address, address, whole) == 0 &&
           (rest == 0 || ((net->address[whole] ^ address[whole]) & (0xff00u >> rest & 0xff)) == 0);
}

static bool any_holds(const struct egress_net *nets, size_t count, const unsigned char address[16])
{
    for (size_t i = 0; i < count; i++) {
        if (net_holds(&nets[i], address)) {
            return true;
        }
    }
    return false;
}

static void mapped(unsigned char out[16], unsigned char a, unsigned char b, unsigned char c, unsigned char d)
{
    const unsigned char address[16] = V4(a, b, c, d);

    memcpy(out, address, 16);
}

/* Replaces an IPv6 address by the IPv4 address that it leads to. Returns false when it holds none. */
static bool unwrap(unsigned char a[16])
{
    static const struct egress_net compatible = {{0}, 96}, nat64 = {{0x00, 0x64, 0xff, 0x9b}, 96},
                                   nat64_local = {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48},
                                   six_to_four = {{0x20, 0x02}, 16}, teredo = {{0x20, 0x01, 0x00, 0x00}, 32};

    if (net_holds(&compatible, a) && !(a[12] == 0 && a[13] == 0 && a[14] == 0)) {
        mapped(a, a[12], a[13], a[14], a[15]);
    } else if (net_holds(&nat64, a)) {
        mapped(a, a[12], a[13], a[14], a[15]);
    } else if (net_holds(&nat64_local, a)) {
        mapped(a, a[6], a[7], a[9], a[10]); /* RFC 6052 leaves out the byte in the middle */
    } else if (net_holds(&six_to_four, a)) {
        mapped(a, a[2], a[3], a[4], a[5]);
    } else if (net_holds(&teredo, a)) {
        mapped(a, a[12] ^ 0xff, a[13] ^ 0xff, a[14] ^ 0xff, a[15] ^ 0xff);
    } else {
        return false;
    }
    return true;
}

static bool is_denied(const struct egress *egress, const unsigned char address[16])
{
    return any_holds(always, COUNT_OF(always), address) || any_holds(egress->denied, egress->denied_count, address) ||
           (egress->private && any_holds(private_nets, COUNT_OF(private_nets), address)) ||
           (egress->loopback && any_holds(loopback_nets, COUNT_OF(loopback_nets), address));
}

bool egress_denies(const struct egress *egress, const struct sockaddr *address)
{
    unsigned char bytes[16];

    if (address->sa_family == AF_INET) {
        uint32_t v4 = ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr);

        mapped(bytes, (unsigned char)(v4 >> 24), (unsigned char)(v4 >> 16), (unsigned char)(v4 >> 8),
               (unsigned char)v4);
    } else if (address->sa_family == AF_INET6) {
        memcpy(bytes, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, 16);
    } else {
        mapped(bytes, 127, 0, 0, 1);
    }
    if (any_holds(egress->allowed, egress->allowed_count, bytes)) {
        return false;
    }
    if (is_denied(egress, bytes)) {
        return true;
    }
    return unwrap(bytes) && !any_holds(egress->allowed, egress->allowed_count, bytes) && is_denied(egress, bytes);
}

static bool net_read(struct slice text, struct egress_net *net)
{
    const char *slash = text.len ? memchr(text.ptr, '/', text.len) : NULL;
    size_t len = slash ? (size_t)(slash - text.ptr) : text.len;
    char address[64];
    unsigned char v4[4];
    int64_t bits = -1;

    if (len >= sizeof(address) || (slash && !slice_to_i64((struct slice){slash + 1, text.len - len - 1}, &bits)) ||
        (slash && bits < 0)) {
        return false;
    }
    memcpy(address, text.ptr, len);
    address[len] = '\0';
    if (inet_pton(AF_INET, address, v4) == 1) {
        mapped(net->address, v4[0], v4[1], v4[2], v4[3]);
        net->bits = (unsigned)(96 + (slash ? bits : 32));
    } else if (inet_pton(AF_INET6, address, net->address) == 1) {
        net->bits = (unsigned)(slash ? bits : 128);
    } else {
        return false;
    }
    return net->bits <= 128;
}

static enum err_code list_read(const char *name, const char *list, bool words, struct egress *egress,
                               struct egress_net *nets, size_t *count, struct err *err)
{
    struct slice rest = slice_of(list ? list : "");

    while (rest.len > 0) {
        const char *comma = memchr(rest.ptr, ',', rest.len);
        size_t len = comma ? (size_t)(comma - rest.ptr) : rest.len;
        struct slice text = slice_trim((struct slice){rest.ptr, len});

        rest = comma ? (struct slice){comma + 1, rest.len - len - 1} : SLICE_NONE;
        if (words && slice_is(text, "private")) {
            egress->private = true;
        } else if (words && slice_is(text, "loopback")) {
            egress->loopback = true;
        } else if (*count == EGRESS_NETS_MAX || !net_read(text, &nets[*count])) {
            (void)err_set(err, ERR_CONFIG, "the setting \"%s\" cannot be read at \"%.*s\"", name, SLICE_ARG(text));
            err_hint(err, "give at most %d networks such as 10.0.0.0/8 or fd00::/8%s, with commas between them",
                     EGRESS_NETS_MAX, words ? ", \"private\" or \"loopback\"" : "");
            return ERR_CONFIG;
        } else {
            (*count)++;
        }
    }
    return ERR_OK;
}

enum err_code egress_read(struct egress *egress, const char *allow, const char *deny, struct err *err)
{
    *egress = (struct egress){0};
    enum err_code code = list_read("egress-allow", allow, false, egress, egress->allowed, &egress->allowed_count, err);

    return code == ERR_OK ? list_read("egress-deny", deny, true, egress, egress->denied, &egress->denied_count, err)
                          : code;
}
