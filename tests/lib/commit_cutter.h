/*
 * A proxy between libpq and a server on a Unix socket that knows one thing: a COMMIT. It strikes once when it is told
 * how, on a thread of its own, so that the loop under test may block as it likes.
 */
#ifndef SAGAD_TESTS_COMMIT_CUTTER_H
#define SAGAD_TESTS_COMMIT_CUTTER_H

#include <stdbool.h>

enum cut {
    CUT_NOTHING,
    CUT_BEFORE_COMMIT, /* the server never sees it */
    CUT_AFTER_COMMIT,  /* the server commits, the client does not hear of it */
    CUT_HOLD_COMMIT    /* the client is cut off, and half a second later the server gets it after all */
};

struct commit_cutter {
    char directory[64]; /* host= of a connection string; port is 5432 */
    char server[128];   /* path of the server's socket */
    int listener;
    int cut; /* what to do with the next COMMIT; CUT_NOTHING again once it was done */
    int strikes;
    bool
        any_sync; /* the end of a pipelined transaction counts as a COMMIT, a reading one too; set it after the start */
    unsigned long thread;
};

void commit_cutter_start(struct commit_cutter *cutter, const char *server_socket);
void commit_cutter_set(struct commit_cutter *cutter, enum cut cut);
int commit_cutter_strikes(struct commit_cutter *cutter);
void commit_cutter_stop(struct commit_cutter *cutter);

#endif
