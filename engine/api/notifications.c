/* Notifications that their receivers have not confirmed: a list of them, and dead letters that are sent again. */
#include "api/request.h"
#include "base/utf8.h"

#define NAME_BYTES_MAX 64
#define EVENTS_MAX 500
#define EVENT_BYTES_MAX 256
#define NOTE_BYTES_MAX 4000

void handle_list_notifications(struct api_request *request)
{
    struct slice state = request_query(request, "state"), receiver = request_query(request, "receiver");

    if (!request_read_limit(request)) {
        return;
    }
    if (state.ptr && !slice_is(state, "pending") && !slice_is(state, "dead")) {
        request_problem(request, ERR_MALFORMED, "the query parameter `state` is pending or dead");
    } else if (receiver.ptr && !text_is_plain(receiver, NAME_BYTES_MAX)) {
        request_problem(request, ERR_MALFORMED, "the query parameter `receiver` is the name of a receiver");
    } else {
        request->asked.in.notifications.state = state;
        request->asked.in.notifications.receiver = receiver;
        request->asked.in.notifications.limit = request->limit;
        request->asked.in.notifications.cursor = request_query(request, "cursor");
        request_ask(request, engine_get_notifications, request_on_items);
    }
}

struct replay_body {
    struct slice receiver, events, note; /* JSON */
};

static void check_replay(struct api_request *request, struct faults *faults)
{
    const struct replay_body *body = request->state;
    struct slice receiver = json_string(body->receiver, request->arena), element,
                 note = json_string(body->note, request->arena);
    size_t count = body->events.ptr ? json_count(body->events) : 0, i = 0;
    struct json_walk walk = json_walk(body->events);
    struct slice *events = arena_array(request->arena, count + 1, sizeof(*events));

    if (receiver.ptr && !text_is_plain(receiver, NAME_BYTES_MAX)) {
        faults_add(faults, SLICE("/receiver"), "this is no name of a receiver");
    }
    if (note.ptr && !text_is_plain(slice_trim(note), NOTE_BYTES_MAX)) {
        faults_add(faults, SLICE("/note"), "say why, for those who read it later, in at most %d bytes", NOTE_BYTES_MAX);
    }
    if (body->events.ptr && (count == 0 || count > EVENTS_MAX)) {
        faults_add(faults, SLICE("/events"), "give one to %d ids of events, or leave it out for all", EVENTS_MAX);
        return;
    }
    while (body->events.ptr && json_next_element(&walk, &element)) {
        struct slice id = json_string(element, request->arena);

        if (!text_is_plain(id, EVENT_BYTES_MAX)) {
            faults_add(faults, SLICE("/events"), "this is no id of an event: %.*s", SLICE_ARG(element));
        }
        events[i++] = id;
    }
    request->asked.in.notifications.receiver = receiver;
    request->asked.in.notifications.events = events;
    request->asked.in.notifications.event_count = count;
    request->asked.in.notifications.note = note;
}

void handle_replay_notifications(struct api_request *request)
{
    struct replay_body *body = arena_alloc(request->arena, sizeof(*body));
    const struct member members[] = {{"receiver", JSON_STRING, false, false, &body->receiver},
                                     {"events", JSON_ARRAY, false, false, &body->events},
                                     {"note", JSON_STRING, true, false, &body->note}};

    request->state = body;
    if (request_read_body(request, members, COUNT_OF(members), check_replay)) {
        request_ask(request, engine_replay_notifications, request_on_answer);
    }
}
