/*
 * Many starts in one request. All elements are handed to the engine before the loop turns, so that their first turns
 * share commits as far as the store's batches allow. The answer leaves when the last of them is committed or refused.
 *
 *   element -> refused by itself -------------------------------------> its result
 *          `-> engine_start_saga() -> refused -----------------------> its result
 *                                `-> durable, and here --------------> its result
 *                                `-> durable -> to be read -> read --> its result
 *
 * A saga that was started here is answered as its start left it. Repeats, and sagas that began at another engine, are
 * read back a few at a time, until the results are as large as an answer may be. Later results have only the id, so
 * that repeats of large sagas cannot fill the memory.
 */
#include "api/start_batch.h"

#include "api/sagas.h"

#define STARTS_MAX 1000
#define BATCHES_MAX 32 /* batches under way; each holds its text, its elements and their answers */
#define READS_MAX 8
#define ANSWER_BYTES_MAX ((size_t)16 << 20)
#define DEPTH 1 /* the depth of the array around the elements */

struct start_result {
    int status; /* 0: none yet */
    struct slice body, location;
    int64_t retry_after_s;
};

struct start_batch {
    struct api_request *request; /* the request of the client */
    struct api_request *elements;
    struct start_result *results;
    size_t count, ended;
    size_t *started; /* indexes of the elements whose start is durable, in that order */
    size_t started_count, read_count, reading;
    size_t answer_bytes;
    bool is_good;   /* the whole text passed json_check() */
    bool begun;     /* every element was handed over, so the batch may end */
    bool advancing; /* an end inside is seen by the loop that is running */
};

static size_t index_of(const struct api_request *element)
{
    return (size_t)(element - element->batch->elements);
}

/* --- the answer --- */

static void write_result(struct json_writer *w, const struct start_result *result)
{
    json_object_begin(w, NULL);
    json_write_i64(w, "status", result->status);
    if (result->location.ptr) {
        json_write_slice(w, "location", result->location);
    }
    if (result->retry_after_s > 0) {
        json_write_i64(w, "retry_after", result->retry_after_s);
    }
    json_write_raw(w, "body", result->body);
    json_object_end(w);
}

static void start_batch_answer(struct start_batch *batch)
{
    struct api_request *request = batch->request;
    struct buffer out;
    struct json_writer w;

    buffer_init(&out, SIZE_MAX);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_array_begin(&w, "items");
    for (size_t i = 0; i < batch->count; i++) {
        write_result(&w, &batch->results[i]);
    }
    json_array_end(&w);
    json_object_end(&w);
    struct slice text = arena_slice(request->arena, buffer_slice(&out));

    buffer_fini(&out);
    request->api->batches--;
    request_answer_json(request, 200, text);
}

/* --- reading back --- */

static void answer_id(struct api_request *element)
{
    struct slice location = element->location;
    size_t prefix = sizeof("/v1/sagas/") - 1;

    request_answer_json(
        element, element->status,
        arena_printf(element->arena, "{\"id\":\"%.*s\"}", (int)(location.len - prefix), location.ptr + prefix));
}

/* Advances the batch, which may be gone afterwards. */
static void start_batch_advance(struct start_batch *batch)
{
    if (batch->advancing) {
        return;
    }
    batch->advancing = true;
    while (batch->reading < READS_MAX && batch->read_count < batch->started_count) {
        struct api_request *element = &batch->elements[batch->started[batch->read_count++]];

        batch->reading++;
        if (batch->answer_bytes >= ANSWER_BYTES_MAX) {
            answer_id(element);
        } else if (element->asked.answer.ptr) {
            request_answer_json(element, element->status, element->asked.answer);
        } else {
            saga_read_started(element);
        }
    }
    batch->advancing = false;
    if (batch->begun && batch->ended == batch->count) {
        start_batch_answer(batch);
    }
}

void start_batch_started(struct api_request *element)
{
    struct start_batch *batch = element->batch;

    batch->started[batch->started_count++] = index_of(element);
    start_batch_advance(batch);
}

void start_batch_take(struct api_request *element, int status, struct slice body, int64_t retry_after_s)
{
    struct start_batch *batch = element->batch;
    struct start_result *result = &batch->results[index_of(element)];

    CHECK(result->status == 0 && status > 0);
    *result = (struct start_result){status, body, element->location, retry_after_s};
    batch->answer_bytes += body.len;
    batch->ended++;
    if (element->location.ptr) { /* it was read back */
        batch->reading--;
    }
    start_batch_advance(batch);
}

/* --- the elements --- */

struct slice start_batch_key(const struct api_request *element, struct slice key, struct faults *faults)
{
    struct slice own = arena_printf(element->arena, "%.*s#%zu", SLICE_ARG(key), index_of(element));

    if (own.len > BUSINESS_ID_BYTES_MAX) {
        faults_add(faults, SLICE(""),
                   "the header Idempotency-Key and the place in the batch are a business id of more than %d bytes",
                   BUSINESS_ID_BYTES_MAX);
    }
    return own;
}

static void start_element(struct start_batch *batch, size_t i, struct slice text)
{
    struct api_request *request = batch->request, *element = &batch->elements[i];
    struct err err = {0};

    element->api = request->api;
    element->exchange = request->exchange;
    element->arena = request->arena;
    element->route = request->route;
    element->role = request->role;
    element->batch = batch;
    element->body = json_trim(text);
    element->asked.arena = request->asked.arena;
    element->asked.namespace = request->asked.namespace;
    element->asked.actor = request->asked.actor;
    if ((!batch->is_good || text.len > json_limits_default.bytes_max) &&
        json_check(text, &json_limits_default, &err) != ERR_OK) {
        request_problem_of(element, &err, NULL);
    } else {
        handle_start_saga(element);
    }
}

/* Is the body an array of starts, and no longer than allowed? Single elements may be wrong. */
static bool read_starts(struct api_request *request, bool *is_good, size_t *count)
{
    const struct json_limits *limits = &json_limits_default;
    const struct json_limits whole = {.bytes_max = SIZE_MAX, /* the server has its own bound */
                                      .depth_max = limits->depth_max + DEPTH,
                                      .number_bytes_max = limits->number_bytes_max,
                                      .exponent_max = limits->exponent_max};
    struct err err = {0};

    *is_good = json_check(request->body, &whole, &err) == ERR_OK;
    if (!*is_good && json_check_syntax(request->body, &err) != ERR_OK) {
        err_hint(&err, "nothing of it was started");
        request_problem_of(request, &err, NULL);
        return false;
    }
    if (json_type(request->body) != JSON_ARRAY) {
        request_problem(request, ERR_INVALID, "found %s, expected an array of starts",
                        json_type_name(json_type(request->body)));
        return false;
    }
    *count = json_count(request->body);
    if (*count > STARTS_MAX) {
        request_problem(request, ERR_TOO_LARGE,
                        "%zu starts in one batch, at most %d are taken; nothing of it was started", *count, STARTS_MAX);
        return false;
    }
    return true;
}

void handle_start_batch(struct api_request *request)
{
    struct arena *arena = request->arena;
    struct json_walk walk = json_walk(request->body);
    struct slice text;
    size_t count = 0;
    bool is_good = false;

    if (!read_starts(request, &is_good, &count)) {
        return;
    }
    if (request->api->batches == BATCHES_MAX) {
        request_problem(request, ERR_BUSY, "%d batches are under way, as many as may; nothing of this one was started",
                        BATCHES_MAX);
        return;
    }
    struct start_batch *batch = arena_alloc(arena, sizeof(*batch));

    *batch = (struct start_batch){.request = request,
                                  .elements = arena_array(arena, count, sizeof(*batch->elements)),
                                  .results = arena_array(arena, count, sizeof(*batch->results)),
                                  .started = arena_array(arena, count, sizeof(*batch->started)),
                                  .count = count,
                                  .is_good = is_good};
    request->api->batches++;
    for (size_t i = 0; i < count && json_next_element(&walk, &text); i++) {
        start_element(batch, i, text);
    }
    batch->begun = true;
    start_batch_advance(batch);
}
