/*
 * The addresses that tools may call. Each resolved address is checked right before it is connected to, so a name that
 * changes its address is covered. Link-local addresses and those where clouds keep the credentials of a machine are
 * denied unless they are allowed by name, in each form that leads to them: mapped into IPv6, through NAT64, 6to4 or
 * Teredo.
 */
#ifndef SAGAD_IO_HTTP_EGRESS_H
#define SAGAD_IO_HTTP_EGRESS_H

#include "base/arena.h"
#include "base/errors.h"

struct sockaddr;

#define EGRESS_NETS_MAX 64

struct egress_net {
    unsigned char address[16]; /* IPv4 as ::ffff:0:0/96 */
    unsigned bits;
};

struct egress {             /* zeroed: denies link-local and metadata addresses */
    bool private, loopback; /* are denied */
    struct egress_net allowed[EGRESS_NETS_MAX], denied[EGRESS_NETS_MAX];
    size_t allowed_count, denied_count;
};

/*
 * Reads lists with commas. `deny` holds networks such as 10.0.0.0/8 and the words "private" and "loopback". `allow`
 * holds networks, and it wins over everything that is denied. NULL: an empty list.
 */
MUST_USE enum err_code egress_read(struct egress *egress, const char *allow, const char *deny, struct err *err);
/* What is neither IPv4 nor IPv6, a local socket, counts as 127.0.0.1. */
bool egress_denies(const struct egress *egress, const struct sockaddr *address);

#endif
