/*
 * The network between a connection of an engine (db.c) and the simulated PostgreSQL.
 *
 * A wire is one connection. It carries packets in each direction in their order, each with a delay. It may outlive
 * either end: packets that a killed process had sent still arrive, or do not. A server that was not told finds out
 * late. While the node is cut from PostgreSQL, packets wait (TCP sends them again) until either side gives up.
 */
#ifndef SAGAD_TESTS_SIM_WIRE_H
#define SAGAD_TESTS_SIM_WIRE_H

#include "tests/sim/db_values.h"
#include "tests/sim/network.h"

struct pg_session;

/* A transaction on its way to the server, under execution, and on its way back. */
struct shipment {
    struct list_link link;      /* the link in the server's list of shipments that are not answered */
    struct list_link sent_link; /* the link in the client's list in the order of sending */
    struct db_transaction
        *transaction; /* the client's transaction; valid as long as it is in the client's list `sent` */
    struct arena arena;
    struct db_query *queries;
    size_t count;
    struct db_rows **rows; /* the rows of each query; NULL: the server gave none */
    enum db_outcome outcome;
    bool warned;
    char sqlstate[6];
    size_t failed_query;
};

enum packet_kind {
    PACKET_CONNECT,
    PACKET_TRANSACTION,
    PACKET_CLOSE, /* a packet to the server */
    PACKET_CONNECTED,
    PACKET_REFUSED,
    PACKET_ANSWER,
    PACKET_ROWS /* rows of a transaction whose end nobody hears */,
    PACKET_NOTIFY,
    PACKET_GONE
};

struct packet {
    struct list_link link;
    struct message message; /* the link in the inbox of the client */
    struct wire *wire;
    enum packet_kind kind;
    bool is_part; /* the rest of the transaction and its Sync never come */
    int64_t due_us;
    struct shipment *shipment;
    struct slice channel, payload;
};

struct pipe {
    struct list packets;
    struct event event; /* the first packet arrives */
    int64_t last_due_us;
    int64_t stuck_since_us; /* the time since which no packet flows; -1: packets flow */
    struct wire *wire;
};

struct wire {
    struct list_link link; /* all of them */
    struct node *node;
    uint32_t life;
    struct db *db;              /* NULL: the client has gone */
    const char *const *setup;   /* the client's memory: valid as long as the client is there */
    struct pg_session *session; /* NULL: there is no session yet, or no more */
    int backend_pid;
    char application_name[64];
    struct pipe to_server, to_client;
    struct list at_server;
    struct event late; /* the server notices by itself that the client has gone */
};

/* Opens the wire and connects. */
struct wire *wire_open(struct db *db, const char *application_name, const char *const *setup);
struct shipment *wire_send(struct wire *wire, struct db_transaction *transaction);
void wire_close(struct wire *wire); /* the client closes the wire */

void db_gets(struct db *db, struct packet *packet); /* in db.c: called in a turn of the node's loop while `db` exists */
void shipment_free(struct shipment *shipment);

#endif
