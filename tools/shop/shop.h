/*
 * The example shop as an HTTP service: routes, faults, answers. Each connection has a thread (libmicrohttpd), and one
 * lock guards books, faults and the order of ledger lines. The wait for the disk and the answer are outside of the
 * lock.
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
    const char *listen; /* ADDRESS:PORT with IPv4; port 0 takes any free port */
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

/* Starts the shop. Gives ERR_CONFIG or ERR_IO with a sentence: the address is wrong, the port is taken, or the ledger
 * cannot be used. `port` is the port that was taken. */
MUST_USE enum err_code shop_start(struct shop *shop, const struct shop_options *options, unsigned *port,
                                  struct err *err);
void shop_stop(struct shop *shop);

#endif
