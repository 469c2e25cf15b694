/* See wire.h. */
#include "tests/sim/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/pg.h"

#define DELAY_US_MIN 50
#define DELAY_US_MAX 500
#define AGAIN_US_MAX 200000 /* the time between two tries of TCP */
#define GIVE_UP_US 4000000  /* tcp_user_timeout, and the time that the keepalives add up to */
#define UNNOTICED_US_MAX 8000000
#define SHIPMENT_BLOCK_BYTES 2048

static struct list wires;

/* --- wires --- */

void shipment_free(struct shipment *shipment)
{
    arena_fini(&shipment->arena);
    free(shipment);
}

static void packet_free(struct packet *packet)
{
    free((void *)packet->channel.ptr);
    free((void *)packet->payload.ptr);
    free(packet);
}

static void on_packet(struct event *event);

static struct packet *packet_new(struct wire *wire, enum packet_kind kind)
{
    struct memory_owner *before = network_enter();
    struct packet *packet = memory_alloc(sizeof(*packet));

    packet->wire = wire;
    packet->kind = kind;
    network_leave(before);
    return packet;
}

static struct packet *pipe_put(struct pipe *pipe, enum packet_kind kind, int64_t delay_us)
{
    struct packet *packet = packet_new(pipe->wire, kind);

    packet->due_us = world->now_us + delay_us;
    if (packet->due_us < pipe->last_due_us) {
        packet->due_us = pipe->last_due_us; /* in order */
    }
    pipe->last_due_us = packet->due_us;
    list_push(&pipe->packets, &packet->link);
    if (pipe->event.heap_index == 0) {
        world_at(&pipe->event, packet->due_us - world->now_us, on_packet);
    }
    return packet;
}

static int64_t delay(void)
{
    return world_between(STREAM_NETWORK, DELAY_US_MIN, DELAY_US_MAX);
}

/* Drops all packets under way except the first `keep`. */
static void pipe_drop(struct pipe *pipe, size_t keep)
{
    struct list kept;
    struct packet *packet;

    list_init(&kept);
    while ((packet = LIST_ITEM(list_pop(&pipe->packets), struct packet, link)) != NULL) {
        if (keep > 0) {
            keep--;
            list_push(&kept, &packet->link);
        } else {
            packet_free(packet); /* a shipment belongs to the client or ends with the run */
        }
    }
    while ((packet = LIST_ITEM(list_pop(&kept), struct packet, link)) != NULL) {
        list_push(&pipe->packets, &packet->link);
    }
    if (list_empty(&pipe->packets)) {
        world_cancel(&pipe->event);
    }
}

static void pipe_drop_some(struct pipe *pipe)
{
    pipe_drop(pipe, world_below(STREAM_NETWORK, (uint32_t)pipe->packets.count + 1));
}

/* Cuts off the end of the last transaction that arrives. */
static void pipe_cut_last(struct pipe *pipe)
{
    struct packet *last = pipe->packets.count > 0 ? container_of(pipe->packets.head.prev, struct packet, link) : NULL;

    if (last && last->kind == PACKET_TRANSACTION && world_percent(STREAM_NETWORK, 50)) {
        last->shipment->count = world_below(STREAM_NETWORK, (uint32_t)last->shipment->count + 1);
        last->is_part = true;
    }
}

void connections_forget(void)
{
    list_init(&wires); /* the wires are in the memory of the network */
}

/* --- the server's side --- */

static void session_disconnect(struct wire *wire, bool later)
{
    struct pg_session *session = wire->session;

    if (session) {
        wire->session = NULL;
        pg_disconnect(session, later);
    }
}

static void on_found_out(struct event *event)
{
    session_disconnect(container_of(event, struct wire, late), false);
}

static struct shipment *shipment_at_server(struct wire *wire)
{
    return LIST_ITEM(list_first(&wire->at_server), struct shipment, link);
}

static void on_session_rows(struct pg_session *session, size_t query, const struct db_rows *rows)
{
    struct wire *wire = pg_context(session);
    struct shipment *shipment = shipment_at_server(wire);

    CHECK(shipment && query < shipment->count);
    if (wire->session) {
        struct memory_owner *before = network_enter();

        shipment->rows[query] = db_rows_copy(rows, &shipment->arena);
        network_leave(before);
    }
}

static void on_session_over(struct pg_session *session, enum db_outcome outcome, bool warned, const char *sqlstate,
                            size_t failed_query)
{
    struct wire *wire = pg_context(session);
    struct shipment *shipment = shipment_at_server(wire);

    CHECK(shipment && outcome != DB_UNKNOWN);
    shipment->outcome = outcome;
    shipment->warned = warned;
    (void)snprintf(shipment->sqlstate, sizeof(shipment->sqlstate), "%s", sqlstate ? sqlstate : "");
    shipment->failed_query = failed_query;
    (void)list_pop(&wire->at_server);
    if (wire->session) {
        pipe_put(&wire->to_client, PACKET_ANSWER, delay())->shipment = shipment;
    } /* otherwise nobody hears it */
}

static void on_session_notify(struct pg_session *session, struct slice channel, struct slice payload)
{
    struct wire *wire = pg_context(session);

    if (wire->session) {
        struct memory_owner *before = network_enter();
        struct packet *packet = pipe_put(&wire->to_client, PACKET_NOTIFY, delay());

        packet->channel = (struct slice){memory_alloc(channel.len + 1), channel.len};
        packet->payload = (struct slice){memory_alloc(payload.len + 1), payload.len};
        memcpy((char *)packet->channel.ptr, channel.ptr, channel.len);
        if (payload.len > 0) {
            memcpy((char *)packet->payload.ptr, payload.ptr, payload.len);
        }
        network_leave(before);
    }
}

static void on_session_gone(struct pg_session *session)
{
    struct wire *wire = pg_context(session);
    struct shipment *shipment = shipment_at_server(wire);

    if (!wire->session) {
        return;
    }
    wire->session = NULL;
    world_cancel(&wire->late);
    if (world_percent(STREAM_NETWORK, 30)) {
        pipe_drop_some(&wire->to_client); /* a reset discards what had come and was not read */
    } else if (shipment && world_percent(STREAM_NETWORK, 50)) {
        pipe_put(&wire->to_client, PACKET_ROWS, delay())->shipment =
            shipment; /* rows of a transaction whose end nobody hears */
    }
    (void)pipe_put(&wire->to_client, PACKET_GONE, delay());
}

static const struct pg_client client = {on_session_rows, on_session_over, on_session_notify, on_session_gone};

static void server_gets(struct wire *wire, struct packet *packet)
{
    switch (packet->kind) {
    case PACKET_CONNECT:
        wire->session = wire->db ? pg_connect(world->pg, wire->application_name, wire->setup, &client, wire) : NULL;
        if (wire->session) {
            wire->backend_pid = pg_backend_pid(wire->session);
            (void)pipe_put(&wire->to_client, PACKET_CONNECTED, delay());
        } else {
            (void)pipe_put(&wire->to_client, PACKET_REFUSED, delay());
        }
        break;
    case PACKET_TRANSACTION:
        if (wire->session && packet->is_part) {
            if (packet->shipment->count > 0) {
                list_push(&wire->at_server, &packet->shipment->link);
                pg_submit_part(wire->session, packet->shipment->queries, packet->shipment->count);
            }
        } else if (wire->session) {
            list_push(&wire->at_server, &packet->shipment->link);
            pg_submit(wire->session, packet->shipment->queries, packet->shipment->count);
        }
        break;
    case PACKET_CLOSE:
        world_cancel(&wire->late);
        session_disconnect(wire, true);
        break;
    case PACKET_CONNECTED:
    case PACKET_REFUSED:
    case PACKET_ANSWER:
    case PACKET_ROWS:
    case PACKET_NOTIFY:
    case PACKET_GONE:
        CHECK(false);
    }
    packet_free(packet);
}

/* --- packets arrive --- */

/* Runs in a turn of the node's loop. */
static void on_client_gets(struct message *message)
{
    struct packet *packet = container_of(message, struct packet, message);

    if (packet->wire->db) {
        db_gets(packet->wire->db, packet);
    }
    packet_free(packet);
}

static void on_client_died(struct message *message)
{
    packet_free(container_of(message, struct packet, message));
}

/* Breaks the wire. Neither side hears of the other any more, and each finds out by itself. */
static void wire_breaks(struct wire *wire)
{
    struct packet *first;

    pipe_drop(&wire->to_server, 1);
    pipe_cut_last(&wire->to_server);
    first = LIST_ITEM(list_first(&wire->to_server.packets), struct packet, link);
    if (first && first->is_part) { /* the first segments got through before */
        list_remove(&wire->to_server.packets, &first->link);
        server_gets(wire, first);
    }
    pipe_drop(&wire->to_server, 0);
    pipe_drop(&wire->to_client, 0);
    if (wire->session && wire->late.heap_index == 0) {
        world_at(&wire->late, world_between(STREAM_NETWORK, 0, UNNOTICED_US_MAX), on_found_out);
    }
    if (wire->db) {
        message_deliver(&packet_new(wire, PACKET_GONE)->message, wire->node, wire->life, on_client_gets,
                        on_client_died);
    }
}

/* Does the pipe flow? Returns false when the wire is cut and the packet waits. */
static bool pipe_flows(struct pipe *pipe)
{
    struct wire *wire = pipe->wire;

    if (!wire->node->cut || wire->node->life != wire->life) {
        pipe->stuck_since_us = -1;
        return true;
    }
    if (pipe->stuck_since_us < 0) {
        pipe->stuck_since_us = world->now_us;
    }
    if (world->now_us - pipe->stuck_since_us > GIVE_UP_US) {
        wire_breaks(wire);
    } else {
        world_at(&pipe->event, world_between(STREAM_NETWORK, DELAY_US_MAX, AGAIN_US_MAX), on_packet);
    }
    return false;
}

static void on_packet(struct event *event)
{
    struct pipe *pipe = container_of(event, struct pipe, event);
    struct packet *packet;

    if (!pipe_flows(pipe)) {
        return;
    }
    packet = container_of(list_pop(&pipe->packets), struct packet, link);
    if (!list_empty(&pipe->packets)) {
        struct packet *next = container_of(list_first(&pipe->packets), struct packet, link);

        world_at(&pipe->event, next->due_us - world->now_us, on_packet);
    }
    if (pipe == &pipe->wire->to_server) {
        server_gets(pipe->wire, packet);
    } else {
        message_deliver(&packet->message, pipe->wire->node, pipe->wire->life, on_client_gets, on_client_died);
    }
}

/* Does what the kernel does for a killed process: usually it sends what was written, and closes. Sometimes the machine
 * was switched off, and the other side hears nothing. */
void connections_orphan(struct node *node)
{
    uint32_t luck = world_below(STREAM_NETWORK, 100);

    if (!wires.head.next) {
        return;
    }
    for (struct list_link *link = list_first(&wires); link; link = list_after(&wires, link)) {
        struct wire *wire = container_of(link, struct wire, link);

        if (wire->node != node || !wire->db) {
            continue;
        }
        wire->db = NULL;
        if (luck < 30) {
            pipe_drop_some(&wire->to_server); /* half of a pipeline */
            pipe_cut_last(&wire->to_server);
        }
        if (luck < 80) {
            (void)pipe_put(&wire->to_server, PACKET_CLOSE, delay());
        } else if (wire->session) {
            world_at(&wire->late, world_between(STREAM_NETWORK, GIVE_UP_US / 2, UNNOTICED_US_MAX), on_found_out);
        } else {
            pipe_drop(&wire->to_server, 0); /* the connection was being made */
        }
    }
}

/* --- for the client --- */

struct wire *wire_open(struct db *db, const char *application_name, const char *const *setup)
{
    struct memory_owner *before = network_enter();
    struct wire *wire = memory_alloc(sizeof(*wire));

    if (!wires.head.next) {
        list_init(&wires);
    }
    wire->node = node_current();
    wire->life = wire->node->life;
    wire->db = db;
    wire->setup = setup;
    wire->to_server.wire = wire->to_client.wire = wire;
    wire->to_server.stuck_since_us = wire->to_client.stuck_since_us = -1;
    list_init(&wire->to_server.packets);
    list_init(&wire->to_client.packets);
    list_init(&wire->at_server);
    (void)snprintf(wire->application_name, sizeof(wire->application_name), "%s",
                   application_name ? application_name : "sagad");
    list_push(&wires, &wire->link);
    network_leave(before);
    (void)pipe_put(&wire->to_server, PACKET_CONNECT, 3 * delay());
    return wire;
}

struct shipment *wire_send(struct wire *wire, struct db_transaction *transaction)
{
    struct memory_owner *before = network_enter();
    struct shipment *shipment = memory_alloc(sizeof(*shipment));

    arena_init(&shipment->arena, SHIPMENT_BLOCK_BYTES);
    shipment->transaction = transaction;
    shipment->count = transaction->count;
    shipment->queries = arena_array(&shipment->arena, transaction->count, sizeof(*shipment->queries));
    shipment->rows = arena_array(&shipment->arena, transaction->count, sizeof(struct db_rows *));
    for (size_t i = 0; i < transaction->count; i++) {
        shipment->queries[i].statement = transaction->queries[i].statement;
        shipment->queries[i].args = db_args_copy(transaction->queries[i].args, &shipment->arena);
    }
    network_leave(before);
    pipe_put(&wire->to_server, PACKET_TRANSACTION, delay())->shipment = shipment;
    return shipment;
}

void wire_close(struct wire *wire)
{
    wire->db = NULL;
    (void)pipe_put(&wire->to_server, PACKET_CLOSE, delay());
}

struct node *connection_node(const struct pg_session *session)
{
    const struct wire *wire = pg_context(session);

    return wire && wire->node->up && wire->node->life == wire->life ? wire->node : NULL;
}
