/* Signals: what a saga waits for from outside. The body is the payload, any JSON value; none at all is null. */
#include "api/request.h"

static void on_signalled(struct engine_request *engine)
{
    struct api_request *request = container_of(engine, struct api_request, engine);

    request->status = engine->created ? 201 : 200;
    request_on_answer(engine);
}

static bool read_key(struct api_request *request)
{
    struct faults faults;
    struct err err = {0};

    faults_init(&faults, request->arena);
    request->engine.in.signal.key = request_idempotency_key(request, &faults);
    if (faults.count == 0) {
        return true;
    }
    (void)err_set(&err, ERR_INVALID, "the header Idempotency-Key cannot be used");
    request_problem_of(request, &err, &faults);
    return false;
}

void handle_signal_saga(struct api_request *request)
{
    struct engine_request *engine = &request->engine;

    if (request_read_saga_id(request, &engine->in.signal.id) && read_key(request)) {
        engine->in.signal.name = request->params[1];
        engine->in.signal.payload = json_trim(request->exchange->body).len ? request->body : SLICE_NONE;
        request_ask(request, engine_signal_saga, on_signalled);
    }
}
