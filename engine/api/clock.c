/* The virtual clock of `sagad dev --clock virtual`: what time it is there, and moving it ahead. */
#include "api/request.h"
#include "base/instant.h"

struct clock_body {
    struct slice by, to; /* JSON */
};

void handle_get_clock(struct api_request *request)
{
    request_ask(request, engine_get_clock, request_on_answer);
}

static void check_clock(struct api_request *request, struct faults *faults)
{
    const struct clock_body *body = request->state;
    struct slice by = json_string(body->by, request->arena), to = json_string(body->to, request->arena);

    if ((by.ptr != NULL) == (to.ptr != NULL)) {
        faults_add(faults, SLICE(""), "say how far with one of `by` and `to`");
    } else if (by.ptr && (!duration_parse(by, &request->asked.in.clock.by_ms) || request->asked.in.clock.by_ms == 0)) {
        faults_add(faults, SLICE("/by"), "a duration such as 3d, at most 366d");
    } else if (to.ptr && slice_is(to, "next")) {
        request->asked.in.clock.to_next = true;
    } else if (to.ptr &&
               (!instant_parse(to, &request->asked.in.clock.until_ms) || request->asked.in.clock.until_ms <= 0)) {
        faults_add(faults, SLICE("/to"), "an instant such as 2026-12-24T18:00:00Z, or `next`");
    }
}

void handle_move_clock(struct api_request *request)
{
    struct clock_body *body = arena_alloc(request->arena, sizeof(*body));
    const struct member members[] = {{"by", JSON_STRING, false, false, &body->by},
                                     {"to", JSON_STRING, false, false, &body->to}};

    request->state = body;
    if (request_read_body(request, members, COUNT_OF(members), check_clock)) {
        request_ask(request, engine_move_clock, request_on_answer);
    }
}
