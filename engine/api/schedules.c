/* Schedules: sagas that the clock starts. */
#include "api/request.h"

#include "base/utf8.h"

#define INSTANTS_DEFAULT 10
#define INSTANTS_MAX 1000
#define NOTE_BYTES_MAX 4000

static void on_put(struct engine_request *asked)
{
    struct api_request *request = container_of(asked, struct api_request, asked);

    request->status = asked->created ? 201 : 200;
    request_on_answer(asked);
}

/* The engine reads the body, with the reader of what is stored: it names every fault. */
void handle_put_schedule(struct api_request *request)
{
    request->asked.in.schedule.body = request->body;
    request_ask(request, engine_put_schedule, on_put);
}

void handle_list_schedules(struct api_request *request)
{
    if (request_read_limit(request)) {
        request->asked.in.schedule.limit = request->limit;
        request->asked.in.schedule.cursor = request_query(request, "cursor");
        request_ask(request, engine_get_schedules, request_on_items);
    }
}

void handle_get_schedule(struct api_request *request)
{
    request->asked.in.schedule.name = request->params[0];
    request_ask(request, engine_get_schedules, request_on_answer);
}

void handle_get_schedule_next(struct api_request *request)
{
    uint64_t count = INSTANTS_DEFAULT;

    if (!request_read_count(request, "count", 1, &count)) {
        return;
    }
    request->asked.in.schedule.name = request->params[0];
    request->asked.in.schedule.limit = count < INSTANTS_MAX ? (size_t)count : INSTANTS_MAX;
    request_ask(request, engine_get_schedule_next, request_on_answer);
}

static void check_note(struct api_request *request, struct faults *faults)
{
    struct slice *json = request->state, note = json_string(*json, request->arena);

    request->asked.in.schedule.note = note;
    if (note.ptr && !text_is_plain(slice_trim(note), NOTE_BYTES_MAX)) {
        faults_add(faults, SLICE("/note"), "say why, for those who read it later, in at most %d bytes", NOTE_BYTES_MAX);
    }
}

static void change(struct api_request *request, enum schedule_act act)
{
    struct slice *note = arena_alloc(request->arena, sizeof(*note));
    const struct member members[] = {{"note", JSON_STRING, true, false, note}};

    request->state = note;
    if (request_read_body(request, members, COUNT_OF(members), check_note)) {
        request->asked.in.schedule.name = request->params[0];
        request->asked.in.schedule.act = act;
        request_ask(request, engine_change_schedule, request_on_answer);
    }
}

void handle_hold_schedule(struct api_request *request)
{
    change(request, SCHEDULE_HOLD);
}

void handle_release_schedule(struct api_request *request)
{
    change(request, SCHEDULE_RELEASE);
}

static void on_deleted(struct engine_request *asked)
{
    struct api_request *request = container_of(asked, struct api_request, asked);

    if (asked->code != ERR_OK) {
        request_on_answer(asked);
        return;
    }
    (void)request_of(asked);
    request_answer_json(
        request, 200,
        arena_printf(request->arena, "{\"name\":\"%.*s\",\"deleted\":true}", SLICE_ARG(request->params[0])));
}

void handle_delete_schedule(struct api_request *request)
{
    request->asked.in.schedule.name = request->params[0];
    request->asked.in.schedule.act = SCHEDULE_DELETE;
    request_ask(request, engine_change_schedule, on_deleted);
}
