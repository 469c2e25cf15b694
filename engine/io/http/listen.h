/* Opens a listening TCP socket for ADDRESS:PORT, or says in one clear sentence why it cannot. */
#ifndef SAGAD_IO_HTTP_LISTEN_H
#define SAGAD_IO_HTTP_LISTEN_H

#include "base/errors.h"

struct http_listener {
    int fd;
    uint16_t port; /* the real port, also when 0 was asked for */
    bool is_loopback;
    char text[80]; /* "127.0.0.1:8077" */
};

MUST_USE enum err_code http_listen(const char *listen, struct http_listener *out, struct err *err);
/* Checks that this machine could listen there, and takes no port: `fd` of `out` is -1. The port may be taken. */
MUST_USE enum err_code http_listen_check(const char *listen, struct http_listener *out, struct err *err);

#endif
