/* Writes the result of a request as text that another engine reads: everything that its API needs to answer as if the
 * request had run there. */
#include "run/exchange/exchange.h"
#include "run/saga/live.h"

static const struct json_limits limits = {
    .bytes_max = 64u << 20, .depth_max = 96, .number_bytes_max = 1024, .exponent_max = 400};

bool exchange_is_json(struct slice text)
{
    struct err err = {0};

    return json_check(text, &limits, &err) == ERR_OK;
}

struct slice exchange_text(struct slice object, const char *name, struct arena *arena)
{
    struct slice text = json_string(json_member(object, name), arena);

    return text.ptr ? arena_slice(arena, text) : SLICE_NONE;
}

struct slice exchange_raw(struct slice object, const char *name)
{
    struct slice value = json_member(object, name);

    return json_type(value) == JSON_NULL ? SLICE_NONE : value;
}

/* --- write --- */

static void write_faults(struct json_writer *w, const struct faults *faults)
{
    if (faults->count == 0) {
        return;
    }
    json_array_begin(w, "errors");
    for (size_t i = 0; i < faults->count; i++) {
        json_object_begin(w, NULL);
        json_write_slice(w, "pointer", faults->items[i].pointer);
        json_write_slice(w, "detail", faults->items[i].detail);
        json_write_bool(w, "not_supported", faults->items[i].not_supported);
        json_object_end(w);
    }
    json_array_end(w);
}

static void write_call(struct json_writer *w, const struct call_result *call)
{
    json_object_begin(w, "call");
    json_write_bool(w, "going_on", call->going_on);
    json_write_bool(w, "replayed", call->replayed);
    json_write_i64(w, "first_ms", call->first_ms);
    json_write_i64(w, "retry_after_ms", call->retry_after_ms);
    json_write_slice(w, "key", call->key);
    json_write_raw(w, "operation", call->operation);
    json_write_raw(w, "pointers", call->pointers);
    json_write_raw(w, "pattern", call->pattern);
    json_object_end(w);
}

void exchange_answer_write(const struct engine_request *request, struct buffer *out)
{
    char saga[UUID_TEXT_BYTES];
    struct json_writer w;

    uuid_text(&request->saga.uuid, saga);
    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    json_write_text(&w, "code", err_name(request->code));
    if (request->code != ERR_OK) {
        json_write_text(&w, "message", request->err.message);
        json_write_text(&w, "detail", request->err.detail);
        json_write_text(&w, "hint", request->err.hint);
        write_faults(&w, &request->faults);
    } else {
        json_write_raw(&w, "answer", request->answer);
    }
    json_write_text(&w, "saga", saga);
    json_write_bool(&w, "created", request->created);
    write_call(&w, &request->call);
    json_object_end(&w);
}

/* --- read --- */

static bool read_code(struct slice name, enum err_code *out)
{
    for (enum err_code code = 0; code < ERR_COUNT; code++) {
        if (slice_is(name, err_name(code))) {
            *out = code;
            return true;
        }
    }
    return false;
}

static void read_faults(struct slice errors, struct engine_request *request)
{
    struct json_walk walk = json_walk(errors);
    struct slice item;

    faults_init(&request->faults, request->arena);
    while (json_type(errors) == JSON_ARRAY && json_next_element(&walk, &item)) {
        struct slice pointer = exchange_text(item, "pointer", request->arena),
                     detail = exchange_text(item, "detail", request->arena);

        faults_add(&request->faults, pointer.ptr ? pointer : SLICE(""), "%.*s",
                   SLICE_ARG(detail.ptr ? detail : SLICE("")));
        (void)json_bool(json_member(item, "not_supported"),
                        &request->faults.items[request->faults.count - 1].not_supported);
    }
}

static void read_call(struct slice call, struct engine_request *request)
{
    struct arena *arena = request->arena;

    request->call = (struct call_result){.key = exchange_text(call, "key", arena),
                                         .operation = arena_slice(arena, exchange_raw(call, "operation")),
                                         .pointers = arena_slice(arena, exchange_raw(call, "pointers")),
                                         .pattern = arena_slice(arena, exchange_raw(call, "pattern"))};
    (void)json_bool(json_member(call, "going_on"), &request->call.going_on);
    (void)json_bool(json_member(call, "replayed"), &request->call.replayed);
    (void)json_i64(json_member(call, "first_ms"), &request->call.first_ms);
    (void)json_i64(json_member(call, "retry_after_ms"), &request->call.retry_after_ms);
}

enum err_code exchange_answer_read(struct slice body, struct work *work, struct err *err)
{
    struct engine_request *request = work->request;
    struct arena *arena = &work->arena;
    enum err_code code = ERR_OK;

    if (!exchange_is_json(body) || !read_code(json_string(json_member(body, "code"), arena), &code)) {
        (void)err_set(err, ERR_CORRUPT, "the answer of the engine that owns the shard makes no sense");
        err_hint(err, "repeat the request: it is carried out once; are all engines of the same version?");
        return ERR_CORRUPT;
    }
    if (code != ERR_OK) {
        (void)err_set(err, code, "%.*s", SLICE_ARG(exchange_text(body, "message", arena)));
        err_detail(err, "%.*s", SLICE_ARG(exchange_text(body, "detail", arena)));
        err_hint(err, "%.*s", SLICE_ARG(exchange_text(body, "hint", arena)));
    } else if (exchange_raw(body, "answer").ptr) {
        buffer_reset(&work->out);
        buffer_put_slice(&work->out, exchange_raw(body, "answer"));
    }
    if (request) {
        (void)uuid_parse(json_string(json_member(body, "saga"), arena), &request->saga.uuid);
        (void)json_bool(json_member(body, "created"), &request->created);
        read_call(json_member(body, "call"), request);
        if (code != ERR_OK && exchange_raw(body, "errors").ptr) {
            read_faults(exchange_raw(body, "errors"), request);
        }
    }
    return code;
}
