/* See hook.h. */
#include "tests/sim/hook.h"

#include <stdlib.h>
#include <string.h>

#include "io/http/client.h"
#include "run/notify/targets.h"
#include "tests/sim/network.h"
#include "tests/sim/pg.h"

#define SETTINGS                                                                                                       \
    "{\"notify\":[{\"name\":\"hook\",\"namespace\":\"sim\",\"url\":\"http://hook.example/\",\"secrets\":[\"hook\"]}]}"
#define SECRET "\"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\""
#define STREAM_OF_HOOK UINT64_C(0x686f6f6b)

enum fate { FATE_TAKEN, FATE_REFUSED, FATE_AWAY, FATE_SILENT, FATE_COUNT };

struct post { /* a request on its way; it lies in the network */
    struct event arrival;
    struct message answer, cancelling;
    struct http_request *request; /* lies in the memory of the node; NULL: the node does not wait any more */
    struct node *node;
    uint32_t life;
    int64_t timeout_ms;
    struct slice id, body;
    enum fate fate;
};

/* Settings and secrets are files of the engine. The linker redirects the reading of them. */
enum err_code __wrap_notify_targets_load(struct notify_targets *targets, const char *path, struct err *err);
enum err_code __real_notify_targets_load(struct notify_targets *targets, const char *path, struct err *err);
struct slice __wrap_secrets_json(const struct secrets *secrets, struct slice namespace, struct slice name,
                                 struct arena *arena);
struct slice __real_secrets_json(const struct secrets *secrets, struct slice namespace, struct slice name,
                                 struct arena *arena);

static hook_judge *judge; /* NULL: the settings name no receiver */

void hook_begin(hook_judge *told)
{
    judge = told;
}

bool hook_is_wanted(void)
{
    return judge != NULL;
}

bool hook_is_known(void)
{
    return pg_has_receiver(world->pg);
}

enum err_code __wrap_notify_targets_load(struct notify_targets *targets, const char *path, struct err *err)
{
    return hook_is_wanted() ? notify_targets_parse(targets, SLICE(SETTINGS), err)
                            : __real_notify_targets_load(targets, path, err);
}

struct slice __wrap_secrets_json(const struct secrets *secrets, struct slice namespace, struct slice name,
                                 struct arena *arena)
{
    return hook_is_wanted() && slice_is(name, "hook") ? arena_slice(arena, SLICE(SECRET))
                                                      : __real_secrets_json(secrets, namespace, name, arena);
}

/* --- a request --- */

static void answer_of(const struct post *post, struct http_request *request)
{
    request->sent = true;
    request->complete = post->fate == FATE_TAKEN || post->fate == FATE_REFUSED;
    request->status = post->fate == FATE_TAKEN ? 204 : post->fate == FATE_REFUSED ? 503 : 0;
    request->timed_out = post->fate == FATE_SILENT;
    request->error = post->fate == FATE_AWAY ? "refused" : "timeout";
}

static void on_answer(struct message *message)
{
    struct post *post = container_of(message, struct post, answer);
    struct http_request *request = post->request;

    if (request) {
        post->request = NULL;
        answer_of(post, request);
        request->done(request);
    }
}

static void on_cancelled(struct message *message)
{
    struct post *post = container_of(message, struct post, cancelling);
    struct http_request *request = post->request;

    if (request) {
        post->request = NULL;
        request->sent = true;
        request->error = "cancelled";
        request->done(request);
    }
}

static enum fate draw_fate(struct chance *chance)
{
    uint32_t luck = world->is_healed ? 0 : chance_below(chance, 100);

    return luck < 70 ? FATE_TAKEN : luck < 80 ? FATE_REFUSED : luck < 90 ? FATE_AWAY : FATE_SILENT;
}

/* The receiver has the request now, if it ever will. What it answers silently it has taken all the same. */
static void on_arrival(struct event *event)
{
    struct post *post = container_of(event, struct post, arrival);
    struct chance chance = chance_of(world->seed, STREAM_OF_HOOK, world->event_count);
    int64_t delay_us = chance_between(&chance, 200, world->is_healed ? 20000 : 2000000);

    post->fate = draw_fate(&chance);
    if (post->fate != FATE_AWAY) {
        judge(post->id, post->body, post->fate != FATE_REFUSED);
    }
    if (post->fate == FATE_SILENT) {
        delay_us = post->timeout_ms * 1000;
    }
    if (post->node->up && post->node->life == post->life) {
        message_send(&post->answer, post->node, delay_us, on_answer, NULL);
    }
}

static struct slice header_of(const struct http_request *request, const char *name)
{
    for (size_t i = 0; i < request->header_count; i++) {
        if (slice_is(request->headers[i].name, name)) {
            return request->headers[i].value;
        }
    }
    return SLICE_NONE;
}

static struct slice copy(struct slice text)
{
    char *bytes = memory_alloc(text.len + 1);

    memcpy(bytes, text.ptr, text.len);
    return (struct slice){bytes, text.len};
}

void hook_send(struct http_request *request)
{
    struct memory_owner *before = network_enter();
    struct post *post = memory_alloc(sizeof(*post));

    post->request = request;
    post->node = node_current();
    post->life = post->node->life;
    post->timeout_ms = request->timeout_ms;
    post->id = copy(header_of(request, "webhook-id"));
    post->body = copy(request->body);
    request->internal = post;
    network_leave(before);
    if (!request->may_leave(request)) {
        message_send(&post->cancelling, post->node, 0, on_cancelled, NULL);
        return;
    }
    world_at(&post->arrival, world_between(STREAM_NETWORK, 100, 30000), on_arrival);
}

void hook_cancel(struct http_request *request)
{
    struct post *post = request->internal;

    message_send(&post->cancelling, post->node, 0, on_cancelled, NULL);
}
