/* Bulk jobs: one verb on many sagas. */
#include "api/request.h"

#include "base/utf8.h"

#define NOTE_CHARACTERS_MAX 1000

static bool read_id(struct api_request *request)
{
    struct saga_id *id = &request->asked.in.bulk.id;

    if (!uuid_parse(request->params[0], &id->uuid) || uuid_is_nil(&id->uuid)) {
        request_problem(request, ERR_NOT_FOUND, "there is no bulk job with the id \"%.*s\"",
                        SLICE_ARG(request->params[0]));
        return false;
    }
    return true;
}

static void on_frozen(struct engine_request *asked)
{
    struct api_request *request = container_of(asked, struct api_request, asked);

    request->status = 201;
    request_on_answer(asked);
}

/* The engine reads the body, by the row of the verb that it names. */
void handle_freeze_bulk(struct api_request *request)
{
    request->asked.in.bulk.body = request->body;
    request->asked.in.bulk.role = request->role;
    request_ask(request, engine_freeze_bulk, on_frozen);
}

void handle_list_bulk(struct api_request *request)
{
    if (request_read_limit(request)) {
        request->asked.in.bulk.limit = request->limit;
        request->asked.in.bulk.cursor = request_query(request, "cursor");
        request_ask(request, engine_get_bulk, request_on_items);
    }
}

void handle_get_bulk(struct api_request *request)
{
    if (read_id(request)) {
        request_ask(request, engine_get_bulk, request_on_answer);
    }
}

static bool is_outcome(struct slice text)
{
    return slice_is(text, "open") || slice_is(text, "done") || slice_is(text, "changed") || slice_is(text, "refused");
}

void handle_list_bulk_items(struct api_request *request)
{
    struct slice outcome = request_query(request, "outcome");

    if (!read_id(request) || !request_read_limit(request) ||
        !request_read_count(request, "after", 0, &request->asked.in.bulk.after)) {
        return;
    }
    if (outcome.ptr && !is_outcome(outcome)) {
        request_problem(request, ERR_MALFORMED, "an outcome is one of open, done, changed, refused");
        return;
    }
    request->asked.in.bulk.outcome = outcome;
    request->asked.in.bulk.limit = request->limit;
    request_ask(request, engine_get_bulk_items, request_on_items);
}

void handle_run_bulk(struct api_request *request)
{
    if (read_id(request) && request_read_body(request, NULL, 0, NULL)) {
        request->asked.in.bulk.role = request->role;
        request_ask(request, engine_run_bulk, request_on_answer);
    }
}

static void check_note(struct api_request *request, struct faults *faults)
{
    struct slice *json = request->state, note = json_string(*json, request->arena);

    request->asked.in.bulk.note = note;
    if (note.ptr && !text_is_plain(slice_trim(note), 4 * NOTE_CHARACTERS_MAX)) {
        faults_add(faults, SLICE("/note"), "say why, for those who read it later, in at most %d characters",
                   NOTE_CHARACTERS_MAX);
    }
}

void handle_stop_bulk(struct api_request *request)
{
    struct slice *note = arena_alloc(request->arena, sizeof(*note));
    const struct member members[] = {{"note", JSON_STRING, true, false, note}};

    request->state = note;
    if (read_id(request) && request_read_body(request, members, COUNT_OF(members), check_note)) {
        request_ask(request, engine_stop_bulk, request_on_answer);
    }
}
