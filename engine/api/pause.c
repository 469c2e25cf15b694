/* An operator stops the clocks of a saga, and lets it go on. */
#include "api/request.h"

static void check_pause(struct api_request *request, struct faults *faults)
{
    struct slice *note = request->state;

    request->engine.in.pause.note = read_note(*note, SLICE("/note"), request->arena, faults);
}

void handle_pause_saga(struct api_request *request)
{
    struct slice *note = arena_alloc(request->arena, sizeof(*note));
    const struct member members[] = {{"note", JSON_STRING, true, false, note}};
    struct saga_id id;

    request->state = note;
    if (request_read_saga_id(request, &id) && request_read_body(request, members, COUNT_OF(members), check_pause)) {
        request->engine.in.pause.id = id;
        request_ask(request, engine_pause_saga, request_on_answer);
    }
}

static void check_resume(struct api_request *request, struct faults *faults)
{
    struct slice *note = request->state;

    request->engine.in.resume.note = read_note(*note, SLICE("/note"), request->arena, faults);
}

void handle_resume_saga(struct api_request *request)
{
    struct slice *note = arena_alloc(request->arena, sizeof(*note));
    const struct member members[] = {{"note", JSON_STRING, true, false, note}};
    struct saga_id id;

    request->state = note;
    if (request_read_saga_id(request, &id) && request_read_body(request, members, COUNT_OF(members), check_resume)) {
        request->engine.in.resume.id = id;
        request_ask(request, engine_resume_saga, request_on_answer);
    }
}
