/* Requests of clients to engines that may be away, or may die with the request. See drive.h. */
#include "tests/sim/drive.h"

#include <stdlib.h>

struct ticket { /* in the memory of the node, and freed with it */
    struct engine_request request;
    struct arena arena;
    struct inquiry *inquiry;
    uint64_t serial;
};

bool err_may_pass(enum err_code code)
{
    return code == ERR_STORE || code == ERR_FENCED || code == ERR_LOST_COMMIT || code == ERR_STOPPING ||
           code == ERR_BUSY || code == ERR_HELD || code == ERR_UNREACHABLE || code == ERR_TIMEOUT;
}

static struct node *find_node(uint32_t first)
{
    for (uint32_t i = 0; i < scenario_now->node_count; i++) {
        struct node *node = &nodes[(first + i) % scenario_now->node_count];

        if (node_is_running(node)) {
            return node;
        }
    }
    return NULL;
}

static void ticket_free(struct ticket *ticket)
{
    arena_fini(&ticket->arena);
    free(ticket);
}

/* Runs inside the node. */
static void on_done(struct engine_request *request)
{
    struct ticket *ticket = request->context;
    struct inquiry *inquiry = ticket->inquiry;
    struct node *before = node_enter(NULL);

    before->unanswered--;
    if (inquiry->is_under_way && inquiry->serial == ticket->serial) {
        bool lost =
            !world->is_healed && (scenario_now->swarm >> SWARM_LOST_ANSWERS & 1) && world_percent(STREAM_CLIENT, 10);

        inquiry->is_under_way = false;
        world_cancel(&inquiry->timer);
        if (lost) {
            see(SEEN_ANSWER_LOST);
        }
        if (request->code == ERR_BUSY) {
            see(SEEN_BUSY);
        }
        inquiry->answered(inquiry, lost ? NULL : request);
    }
    node_leave(before);
    ticket_free(ticket);
}

static void on_patience_over(struct event *event)
{
    struct inquiry *inquiry = container_of(event, struct inquiry, timer);
    struct node *node = &nodes[inquiry->node];

    inquiry->is_under_way = false;
    if (node_is_running(node) &&
        node->life == inquiry->life) { /* the client hangs up; the request is freed when it is done */
        struct node *before = node_enter(node);

        engine_cancel(node->engine, inquiry->request);
        node_leave(before);
    }
    inquiry->answered(inquiry, NULL);
}

static void on_send(struct event *event)
{
    struct inquiry *inquiry = container_of(event, struct inquiry, timer);
    struct node *node = find_node(inquiry->node);

    if (!node) {
        see(SEEN_REFUSED_ENGINE);
        world_at(&inquiry->timer, world_between(STREAM_CLIENT, 20000, 200000), on_send);
        return;
    }
    struct node *before = node_enter(node);
    struct ticket *ticket = memory_alloc(sizeof(*ticket));

    arena_init(&ticket->arena, 2048);
    inquiry->serial++;
    ticket->inquiry = inquiry;
    ticket->serial = inquiry->serial;
    ticket->request =
        (struct engine_request){.arena = &ticket->arena, .namespace = NAMESPACE, .done = on_done, .context = ticket};
    inquiry->node = node->index;
    inquiry->life = node->life;
    inquiry->request = &ticket->request;
    inquiry->is_under_way = true;
    node->unanswered++;
    inquiry->send(inquiry, node->engine, &ticket->request);
    node_leave(before);
    world_at(&inquiry->timer, inquiry->patience_us, on_patience_over);
}

void inquiry_go(struct inquiry *inquiry, int64_t delay_us)
{
    CHECK(!inquiry->is_under_way);
    world_at(&inquiry->timer, delay_us + world_between(STREAM_CLIENT, 50, 500), on_send);
}
