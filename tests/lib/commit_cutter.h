/*
 * A proxy between libpq and a server on a Unix socket. It knows one thing: a COMMIT. It strikes once each time a test
 * orders that. It runs on a thread of its own, so that the loop under test may block.
 */
#ifndef SAGAD_TESTS_COMMIT_CUTTER_H
#define SAGAD_TESTS_COMMIT_CUTTER_H

#include <stdbool.h>

enum cut {
    CUT_NOTHING,
    CUT_BEFORE_COMMIT, /* the server never sees the COMMIT */
    CUT_AFTER_COMMIT,  /* the server commits, and the client does not hear of it */
    CUT_HOLD_COMMIT    /* the proxy cuts the client off, and the server gets the COMMIT half a second later */
};

struct commit_cutter {
    char directory[64]; /* host= of a connection string; the port is 5432 */
    char server[128];   /* path of the server's socket */
    int listener;
    int cut; /* what the proxy does with the next COMMIT; CUT_NOTHING again afterwards */
    int strikes;
    bool any_sync; /* the end of each pipelined transaction counts as a COMMIT; set it after the start */
    unsigned long thread;
};

void commit_cutter_start(struct commit_cutter *cutter, const char *server_socket);
void commit_cutter_set(struct commit_cutter *cutter, enum cut cut);
int commit_cutter_strikes(struct commit_cutter *cutter);
void commit_cutter_stop(struct commit_cutter *cutter);

#endif
