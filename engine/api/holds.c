/* What people keep from beginning: holds, and breakers that a person opens or closes. */
#include "api/request.h"

#include "base/utf8.h"

#define NOTE_BYTES_MAX 4000

static void on_put(struct engine_request *asked)
{
    struct api_request *request = container_of(asked, struct api_request, asked);

    request->status = 201;
    request_on_answer(asked);
}

/* The engine reads the body, with the reader of what is stored: it names every fault. */
void handle_put_hold(struct api_request *request)
{
    request->asked.in.hold.body = request->body;
    request_ask(request, engine_put_hold, on_put);
}

void handle_list_holds(struct api_request *request)
{
    struct slice all = request_query(request, "all");

    if (all.ptr && !slice_is(all, "true") && !slice_is(all, "false")) {
        request_problem(request, ERR_MALFORMED, "the query parameter `all` is true or false");
    } else if (request_read_limit(request)) {
        request->asked.in.hold.with_ended = all.ptr && slice_is(all, "true");
        request->asked.in.hold.limit = request->limit;
        request->asked.in.hold.cursor = request_query(request, "cursor");
        request_ask(request, engine_get_holds, request_on_items);
    }
}

void handle_get_hold(struct api_request *request)
{
    if (request_read_number(request, "hold", &request->asked.in.hold.number)) {
        request_ask(request, engine_get_holds, request_on_answer);
    }
}

static void check_note_text(struct slice note, struct faults *faults)
{
    if (note.ptr && !text_is_plain(slice_trim(note), NOTE_BYTES_MAX)) {
        faults_add(faults, SLICE("/note"), "say why, for those who read it later, in at most %d bytes", NOTE_BYTES_MAX);
    }
}

static void check_note(struct api_request *request, struct faults *faults)
{
    struct slice *json = request->state, note = json_string(*json, request->arena);

    request->asked.in.hold.note = note;
    check_note_text(note, faults);
}

void handle_release_hold(struct api_request *request)
{
    struct slice *note = arena_alloc(request->arena, sizeof(*note));
    const struct member members[] = {{"note", JSON_STRING, true, false, note}};

    request->state = note;
    if (request_read_number(request, "hold", &request->asked.in.hold.number) &&
        request_read_body(request, members, COUNT_OF(members), check_note)) {
        request_ask(request, engine_release_hold, request_on_answer);
    }
}

struct breaker_body {
    struct slice state, note; /* JSON */
};

static void check_breaker(struct api_request *request, struct faults *faults)
{
    const struct breaker_body *body = request->state;
    struct slice state = json_string(body->state, request->arena), note = json_string(body->note, request->arena);

    request->asked.in.breaker.tool = request->params[0];
    request->asked.in.breaker.is_open = slice_is(state, "open");
    request->asked.in.breaker.note = note;
    if (state.ptr && !slice_is(state, "open") && !slice_is(state, "closed")) {
        faults_add(faults, SLICE("/state"), "a breaker is `open` or `closed`");
    }
    check_note_text(note, faults);
}

void handle_set_breaker(struct api_request *request)
{
    struct breaker_body *body = arena_alloc(request->arena, sizeof(*body));
    const struct member members[] = {{"state", JSON_STRING, true, false, &body->state},
                                     {"note", JSON_STRING, true, false, &body->note}};

    request->state = body;
    if (request_read_body(request, members, COUNT_OF(members), check_breaker)) {
        request_ask(request, engine_set_breaker, request_on_answer);
    }
}
