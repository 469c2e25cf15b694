/*
 * sagad-shop: the example shop for the README, the examples and the tests. It offers inventory, payments and mail over
 * one HTTP service with its own ledger, and switches that make it fail in every way a service can.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shop.h"

static const char help_text[] =
    "usage: sagad-shop [--listen ADDRESS:PORT] [--ledger FILE] [options]\n"
    "\n"
    "  --listen ADDRESS:PORT  where to serve (127.0.0.1:9001); port 0 takes a free one and prints it\n"
    "  --ledger FILE          the append-only ledger (shop-ledger.jsonl); the state is rebuilt from it\n"
    "  --ignore-keys          do not honour Idempotency-Key: every request is a new effect\n"
    "  --forget-keys MS       forget an Idempotency-Key that long after it came\n"
    "  --ignore-voids         serve a key that was called off all the same\n"
    "  --no-status            do not tell what became of a key\n"
    "  --no-sync              do not wait for the disk before answering\n"
    "  --chaos PERCENT        so many of a hundred requests go wrong\n"
    "  --seed N               which ones (1)\n"
    "\n"
    "  POST /reservations {sku, qty}      DELETE /reservations/ID       GET /reservations/by-key/KEY\n"
    "  POST /charges {amount, customer}   POST /refunds {charge_id}     GET /charges/by-key/KEY\n"
    "  POST /mails {to, subject}          GET /mails/by-key/KEY\n"
    "  DELETE /reservations/by-key/KEY    releases it, or calls the key off before it comes\n"
    "  PUT /tags/NAME {tag}               DELETE /tags/NAME             GET /tags/NAME\n"
    "  DELETE /charges/ID                 gives the money back once, with or without a key\n"
    "  GET /prices/SKU, GET /shipments/ID a read that is always the same, and one that never is\n"
    "  GET /requests/NAME                 what was done and undone for bodies with \"request\": NAME\n"
    "  GET /ledger, GET /state            what happened, and what stands\n"
    "  PUT /faults {route, mode, times, match, ms}, GET /faults, DELETE /faults\n"
    "  PUT /settings {keys: honour|ignore, forget_ms, voids: honour|ignore, status: by-key|none, chaos: {percent, "
    "seed, ms, modes}}, GET /settings\n"
    "  sku \"none\" is out of stock, customer \"declined\" is declined, mail to bounce@... bounces\n";

enum {
    OPTION_LISTEN = 256,
    OPTION_LEDGER,
    OPTION_IGNORE_KEYS,
    OPTION_FORGET_KEYS,
    OPTION_IGNORE_VOIDS,
    OPTION_NO_STATUS,
    OPTION_NO_SYNC,
    OPTION_CHAOS,
    OPTION_SEED,
    OPTION_HELP
};

static const struct option long_options[] = {
    {"listen", required_argument, NULL, OPTION_LISTEN},
    {"ledger", required_argument, NULL, OPTION_LEDGER},
    {"ignore-keys", no_argument, NULL, OPTION_IGNORE_KEYS},
    {"forget-keys", required_argument, NULL, OPTION_FORGET_KEYS},
    {"ignore-voids", no_argument, NULL, OPTION_IGNORE_VOIDS},
    {"no-status", no_argument, NULL, OPTION_NO_STATUS},
    {"no-sync", no_argument, NULL, OPTION_NO_SYNC},
    {"chaos", required_argument, NULL, OPTION_CHAOS},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static void usage_error(const char *what)
{
    fprintf(stderr, "sagad-shop: %s; see sagad-shop --help\n", what);
    exit(2);
}

static void options_read(int argc, char **argv, struct shop_options *options)
{
    int64_t number;
    int option;

    while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        switch (option) {
        case OPTION_LISTEN:
            options->listen = optarg;
            break;
        case OPTION_LEDGER:
            options->ledger_path = optarg;
            break;
        case OPTION_IGNORE_KEYS:
            options->ignore_keys = true;
            break;
        case OPTION_FORGET_KEYS:
            if (!slice_to_i64(slice_of(optarg), &options->forget_ms) || options->forget_ms < 0) {
                usage_error("--forget-keys takes a number of milliseconds");
            }
            break;
        case OPTION_IGNORE_VOIDS:
            options->ignore_voids = true;
            break;
        case OPTION_NO_STATUS:
            options->no_status = true;
            break;
        case OPTION_NO_SYNC:
            options->no_sync = true;
            break;
        case OPTION_CHAOS:
            if (!slice_to_i64(slice_of(optarg), &number) || number < 0 || number > 100) {
                usage_error("--chaos takes a number from 0 to 100");
            }
            options->chaos_percent = (unsigned)number;
            break;
        case OPTION_SEED:
            if (!slice_to_i64(slice_of(optarg), &number) || number < 0) {
                usage_error("--seed takes a whole number");
            }
            options->seed = (uint64_t)number;
            break;
        case OPTION_HELP:
        case 'h':
            (void)fputs(help_text, stdout); /* on failure nobody can be told */
            exit(0);
        default:
            usage_error("that option is not known or lacks its value");
        }
    }
    if (optind < argc) {
        usage_error("there are options only, no arguments");
    }
}

int main(int argc, char **argv)
{
    struct shop_options options = {.listen = "127.0.0.1:9001", .ledger_path = "shop-ledger.jsonl", .seed = 1};
    struct shop shop;
    struct err err;
    sigset_t signals;
    unsigned port;
    int signal_number;

    options_read(argc, argv, &options);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(
        SIG_BLOCK, &signals,
        NULL); /* set before any thread starts, so that all inherit it and sigwait() below takes the signals */
    if (shop_start(&shop, &options, &port, &err) != ERR_OK) {
        err_print(&err, "sagad-shop");
        return err_exit_code(err.code);
    }
    printf("sagad-shop: listening on http://%.*s:%u, ledger %s, %llu lines\n",
           (int)(strrchr(options.listen, ':') - options.listen), options.listen, port, options.ledger_path,
           (unsigned long long)ledger_lines(&shop.ledger));
    fflush(stdout);
    sigwait(&signals, &signal_number);
    shop_stop(&shop);
    return 0;
}
