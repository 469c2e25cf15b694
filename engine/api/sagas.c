/* Sagas: start, read, list. POST /v1/sagas is the hot path, so it makes one check and one walk over the body, and
 * copies no payload. */
#include "api/sagas.h"

#include "api/start_batch.h"
#include "base/utf8.h"

#define TAGS_MAX 32

struct start_state {
    struct slice saga, input, id, tags, version;
};

/* --- answers --- */

static void on_saga(struct engine_request *asked)
{
    struct api_request *request = container_of(asked, struct api_request, asked);

    if (asked->code == ERR_TIMEOUT &&
        request->wait_ms > 0) { /* the wait was broken off, so the answer is the saga as it is */
        (void)request_of(asked);
        request->wait_ms = 0;
        asked->in.get.wait_ms = 0;
        request_ask(request, engine_get_saga, on_saga);
        return;
    }
    request_on_answer(asked);
}

static void ask_saga(struct api_request *request, struct saga_id id)
{
    if (request->api->stopping) {
        request->wait_ms = 0;
    }
    request->asked.in.get.id = id;
    request->asked.in.get.wait_ms = request->wait_ms;
    request_ask(request, engine_get_saga, on_saga);
}

void handle_get_saga(struct api_request *request)
{
    struct saga_id id;

    if (request_read_saga_id(request, &id) && request_read_wait(request, 0)) {
        ask_saga(request, id);
    }
}

/* --- start --- */

/* The start is durable, whatever happens to the read. Without a business id, a client that is told otherwise would
 * start the saga twice. */
static void on_started_saga(struct engine_request *asked)
{
    struct api_request *request = container_of(asked, struct api_request, asked);

    if (asked->code != ERR_OK && asked->code != ERR_TIMEOUT) {
        char id[UUID_TEXT_BYTES];

        (void)request_of(asked);
        uuid_text(&asked->in.get.id.uuid, id);
        request_answer_json(request, request->status, arena_printf(request->arena, "{\"id\":\"%s\"}", id));
        return;
    }
    if (asked->code == ERR_TIMEOUT && request->wait_ms > 0) {
        (void)request_of(asked);
        request->wait_ms = 0;
        asked->in.get.wait_ms = 0;
        request_ask(request, engine_get_saga, on_started_saga);
        return;
    }
    request_on_answer(asked);
}

void saga_read_started(struct api_request *request)
{
    struct engine_request *asked = &request->asked;
    struct saga_id id = asked->saga;

    if (request->api->stopping) {
        request->wait_ms = 0;
    }
    asked->in.get.id = id;
    asked->in.get.wait_ms = request->wait_ms;
    request_ask(request, engine_get_saga, on_started_saga);
}

void saga_on_started(struct engine_request *asked)
{
    struct api_request *request = container_of(asked, struct api_request, asked);
    char id[UUID_TEXT_BYTES];

    if (asked->code != ERR_OK) {
        request_on_answer(asked);
        return;
    }
    (void)request_of(asked);
    uuid_text(&asked->saga.uuid, id);
    request->location = arena_printf(request->arena, "/v1/sagas/%s", id);
    request->status = asked->created ? 201 : 200;
    if (request->batch) {
        start_batch_started(request);
        return;
    }
    http_answer_header(request->exchange, "Location", request->location);
    if (asked->answer.ptr) {
        request_answer_json(request, request->status, asked->answer);
    } else {
        saga_read_started(request);
    }
}

struct slice saga_read_id(struct api_request *request, struct slice id, struct slice *key, struct faults *faults)
{
    struct slice text = json_string(id, request->arena);

    *key = request_idempotency_key(request, faults);
    if (key->ptr && request->batch) {
        *key = start_batch_key(request, *key, faults);
    }
    if (!id.ptr) {
        if (!text_is_shown(*key)) { /* the key becomes the business id */
            faults_add(faults, SLICE(""),
                       "the header Idempotency-Key holds a control character, or one that turns the direction of text");
        }
        return *key;
    }
    if (text.ptr && (!text_is_plain(text, BUSINESS_ID_BYTES_MAX) || !text_is_shown(text))) {
        faults_add(faults, SLICE("/id"),
                   "a business id has 1 to %d bytes, no control characters and none that turn the direction of text",
                   BUSINESS_ID_BYTES_MAX);
    }
    return text;
}

void saga_check_tags(struct slice tags, struct arena *arena, struct faults *faults)
{
    struct json_walk walk = json_walk(tags);
    struct slice name_raw, value;

    if (json_count(tags) > TAGS_MAX) {
        faults_add(faults, SLICE("/tags"), "more than %d tags", TAGS_MAX);
        return;
    }
    while (json_next_member(&walk, &name_raw, &value)) {
        if (json_type(value) != JSON_STRING) {
            faults_add(faults, json_pointer_join(arena, SLICE("/tags"), name_raw), "found %s, expected a string",
                       json_type_name(json_type(value)));
        }
    }
}

static const char *const of_open[] = {"deadline", "on_timeout", "budget", "loop"};

static void check_start(struct api_request *request, struct faults *faults)
{
    struct start_state *state = request->state;
    int64_t version = 0;

    request->asked.in.start.saga = json_string(state->saga, request->arena);
    request->asked.in.start.input = state->input;
    request->asked.in.start.tags = state->tags;
    request->asked.in.start.business_id = saga_read_id(request, state->id, &request->asked.in.start.key, faults);
    if (state->version.ptr && (!json_i64(state->version, &version) || version < 1 || version > INT32_MAX)) {
        faults_add(faults, SLICE("/version"), "a version is a whole number from 1 on");
    }
    request->asked.in.start.version = (uint32_t)version;
    request->asked.in.start.trace = request_trace(request, SLICE_NONE);
    saga_check_tags(state->tags, request->arena, faults);
    for (size_t i = 0; i < COUNT_OF(of_open); i++) {
        if (json_member(request->body, of_open[i]).ptr) {
            faults_add(faults, arena_printf(request->arena, "/%s", of_open[i]),
                       "only an open saga takes \"%s\" here; that of \"saga\" stands in its definition", of_open[i]);
        }
    }
}

void handle_start_saga(struct api_request *request)
{
    struct start_state *state = arena_alloc(request->arena, sizeof(*state));
    const struct member members[] = {
        {"saga", JSON_STRING, true, false, &state->saga},
        {"input", JSON_NONE, false, false, &state->input},
        {"id", JSON_STRING, false, false, &state->id},
        {"tags", JSON_OBJECT, false, false, &state->tags},
        {"version", JSON_NUMBER, false, false, &state->version},
        {.name = of_open[0]}, /* check_start() reports each of these with a better sentence */
        {.name = of_open[1]},
        {.name = of_open[2]},
        {.name = of_open[3]},
    };

    if (json_member(request->body, "open").ptr) {
        handle_open_saga(request);
        return;
    }
    request->state = state;
    if (request_read_wait(request, 0) && request_read_body(request, members, COUNT_OF(members), check_start)) {
        request->asked.wants_saga = request->wait_ms == 0;
        request_ask(request, engine_start_saga, saga_on_started);
    }
}

/* --- list --- */

#define STATUSES "running waiting paused compensating escalated completed compensated abandoned"
#define WAITS "retry probe hold person approval signal time lock breaker"

static bool is_known(struct api_request *request, const char *name, const char *what, struct slice words,
                     const char *known)
{
    if (words.ptr && !query_words_are_known(words, known)) {
        request_problem(request, ERR_MALFORMED,
                        "the query parameter \"%s\" is not %s; it takes one or more, with commas between, of: %s", name,
                        what, known);
        return false;
    }
    return true;
}

void handle_list_sagas(struct api_request *request)
{
    struct engine_sagas *in = &request->asked.in.sagas;
    const struct query_text texts[] = {{"status", &in->status},
                                       {"saga", &in->saga},
                                       {"version", &in->version},
                                       {"business_id", &in->business_id},
                                       {"business_id_prefix", &in->business_prefix},
                                       {"step", &in->step},
                                       {"error", &in->error},
                                       {"waits_for", &in->waits_for}};
    struct slice group_by = request_query(request, "group_by");

    if (!request_read_limit(request) || !request_read_texts(request, texts, COUNT_OF(texts)) ||
        !is_known(request, "status", "a status of sagas", in->status, STATUSES) ||
        !is_known(request, "waits_for", "what sagas wait for", in->waits_for, WAITS) ||
        !request_read_tags(request, &in->tags, &in->tag_count) ||
        !request_read_instant(request, "since", &in->since_ms) ||
        !request_read_instant(request, "until", &in->until_ms)) {
        return;
    }
    in->by_status = slice_is(group_by, "status");
    if (group_by.ptr && !in->by_status) {
        request_problem(request, ERR_MALFORMED, "the query parameter \"group_by\" is status");
        return;
    }
    in->id = request_query(request, "id");
    in->limit = request->limit;
    in->cursor = request_query(request, "cursor");
    request_ask(request, engine_list_sagas, request_on_items);
}
