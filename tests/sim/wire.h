/*
 * The network between a connection of an engine (db.c) and the simulated PostgreSQL.
 *
 * A wire is one connection: packets in each direction in order, each with a delay. It may outlive either end: what a
 * killed process had sent still arrives, or not; a server that was not told finds out late. While the node is cut from
 * PostgreSQL, packets wait (TCP sends them again) until either side gives up.
 */
#ifndef SAGAD_TESTS_SIM_WIRE_H
#define SAGAD_TESTS_SIM_WIRE_H

#include "tests/sim/db_values.h"
#include "tests/sim/network.h"

struct pg_session;

/* A transaction on its way: there, executed, and back. */
struct shipment {
    struct list_link link;              /* at the server: those that it has and has not answered */
    struct list_link sent_link;         /* at the client: in the order of sending */
    struct db_transaction *transaction; /* the client's; valid as long as it is in its list `sent` */
    struct arena arena;
    struct db_query *queries;
    size_t count;
    struct db_rows **rows; /* of each query; NULL: none were given */
    enum db_outcome outcome;
    bool warned;
    char sqlstate[6];
    size_t failed_query;
};

enum packet_kind {
    PACKET_CONNECT,
    PACKET_TRANSACTION,
    PACKET_CLOSE, /* to the server */
    PACKET_CONNECTED,
    PACKET_REFUSED,
    PACKET_ANSWER,
    PACKET_ROWS /* of a transaction whose end nobody hears */,
    PACKET_NOTIFY,
    PACKET_GONE
};

struct packet {
    struct list_link link;
    struct message message; /* in the inbox of the client */
    struct wire *wire;
    enum packet_kind kind;
    bool is_part; /* the rest of a transaction, and its Sync, never come */
    int64_t due_us;
    struct shipment *shipment;
    struct slice channel, payload;
};

struct pipe {
    struct list packets;
    struct event event; /* the first of them arrives */
    int64_t last_due_us;
    int64_t stuck_since_us; /* -1: it flows */
    struct wire *wire;
};

struct wire {
    struct list_link link; /* all of them */
    struct node *node;
    uint32_t life;
    struct db *db;              /* NULL: nobody is at this end any more */
    const char *const *setup;   /* the client's: as long as it is there */
    struct pg_session *session; /* NULL: not yet, or not any more */
    int backend_pid;
    char application_name[64];
    struct pipe to_server, to_client;
    struct list at_server;
    struct event late; /* the server finds out by itself */
};

struct wire *wire_open(struct db *db, const char *application_name, const char *const *setup); /* and connects */
struct shipment *wire_send(struct wire *wire, struct db_transaction *transaction);
void wire_close(struct wire *wire); /* by the client */

void db_gets(struct db *db, struct packet *packet); /* db.c: in a turn of the node's loop; `db` is there */
void shipment_free(struct shipment *shipment);

#endif
