/*
 * The example shop as an HTTP service: routes, faults, answers. One thread a connection (libmicrohttpd), one lock
 * around books, faults and the order of ledger lines; the wait for the disk and the answer are outside of it.
 */
#ifndef SHOP_SHOP_H
#define SHOP_SHOP_H

#include <pthread.h>
#include <stdatomic.h>

#include "books.h"
#include "faults.h"
#include "ledger.h"

#define SHOP_BODY_BYTES_MAX (64 * 1024)

struct MHD_Daemon;

struct shop_options {
    const char *listen; /* ADDRESS:PORT, IPv4; port 0 takes any free one */
    const char *ledger_path;
    bool ignore_keys, ignore_voids, no_status, no_sync;
    int64_t forget_ms; /* see struct books */
    unsigned chaos_percent;
    uint64_t seed;
};

struct shop {
    struct books books;
    struct fault_plan faults;
    struct ledger ledger;
    pthread_mutex_t lock;
    struct MHD_Daemon *daemon;
    atomic_bool stopping;
    uint64_t requests;
};

/* ERR_CONFIG or ERR_IO with a sentence: a wrong address, a taken port, a ledger that cannot be used. `port` is the one
 * taken. */
MUST_USE enum err_code shop_start(struct shop *shop, const struct shop_options *options, unsigned *port,
                                  struct err *err);
void shop_stop(struct shop *shop);

#endif
