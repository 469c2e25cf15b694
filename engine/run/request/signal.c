/* A signal from outside: durable before it is acknowledged, and one signal however often it is sent under its key. */
#include "run/request/calling.h"

#include "base/json.h"

/* As it stands after this signal: by the id its sender gave, else the newest. NULL: it left memory meanwhile. */
static const struct kept_signal *find_signal(const struct saga *saga, const struct saga_input *input)
{
    const struct kept_signal *found = NULL;

    for (const struct kept_signal *s = saga ? saga->signals : NULL; s; s = s->next) {
        if (!input->signal.id.ptr || slice_equal(s->id, input->signal.id)) {
            found = s;
        }
    }
    return found;
}

static void write_answer(struct work *work, const struct kept_signal *kept, bool created)
{
    char id[UUID_TEXT_BYTES];
    struct json_writer w;

    uuid_text(&work->saga.uuid, id);
    json_writer_init(&w, &work->out);
    json_object_begin(&w, NULL);
    json_write_text(&w, "saga", id);
    json_write_slice(&w, "name", work->mail.input.signal.name);
    if (kept) {
        json_write_bool(&w, "taken", kept->taken);
    } else {
        json_write_null(&w, "taken");
    }
    json_write_bool(&w, "created", created);
    json_object_end(&w);
}

/* It has ended, maybe by this very signal: a repeat is still told so. */
static void on_ended_read(struct store_read *read)
{
    struct work *work = read->context;
    struct records records = {0};
    struct err err = {0};

    if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
        return;
    }
    const struct saga *saga = fold_turns(work->engine, work->saga, work->namespace, work->read.turns,
                                         work->read.turn_count, &work->reading, &err);

    if (!saga) {
        work_done(work, ERR_CORRUPT, &err);
        return;
    }
    work->mail.input.now_ms = loop_wall_ms(work->engine->loop);
    enum err_code code = saga_decide(saga, &work->mail.input, &work->reading, &records, &err);

    if (code != ERR_OK) {
        work_done(work, code, &err);
        return;
    }
    CHECK(records.count == 0); /* an ended saga takes nothing new */
    write_answer(work, find_signal(saga, &work->mail.input), false);
    work_done(work, ERR_OK, NULL);
}

static void look_at_ended(struct work *work)
{
    arena_reset(&work->reading);
    work->read = (struct read_saga){.read = {.arena = &work->reading, .done = on_ended_read, .context = work},
                                    .id = work->saga,
                                    .namespace = work->namespace};
    store_read_saga(work->engine->store, &work->read);
}

static void on_received(struct mail *mail, enum err_code code, const struct err *err)
{
    struct work *work = container_of(mail, struct work, mail);

    if (code == ERR_OK) {
        const struct live *live = mail->live;
        bool created = turn_append(live) != NULL; /* a repeat leads to no record */

        if (work->request) {
            work->request->created = created;
        }
        write_answer(work, find_signal(live->dropped ? NULL : &live->saga, &mail->input), created);
        work_done(work, ERR_OK, NULL);
    } else if (code == ERR_ENDED && mail->input.signal.id.ptr) {
        look_at_ended(work);
    } else if (!route_again(work, code, inbox_signal)) {
        work_done(work, code, err);
    }
}

static void signal_begin(struct work *work)
{
    const struct engine_request *request = work->request;
    struct slice payload = request->in.signal.payload.ptr ? request->in.signal.payload : SLICE("null");
    struct err err = {0};

    if (payload.len > work->engine->options.payload_bytes_max) {
        (void)err_set(&err, ERR_TOO_LARGE, "the payload is larger than allowed");
        err_detail(&err, "%zu bytes, at most %zu are taken", payload.len, work->engine->options.payload_bytes_max);
        err_hint(&err, "keep large bodies elsewhere and pass a reference");
        work_done(work, ERR_TOO_LARGE, &err);
        return;
    }
    route_prepare(work, request->in.signal.id, 0);
    work->mail.input = (struct saga_input){.type = SAGA_INPUT_SIGNAL,
                                           .signal = {.name = arena_slice(&work->arena, request->in.signal.name),
                                                      .payload = arena_slice(&work->arena, payload),
                                                      .id = arena_slice(&work->arena, request->in.signal.key),
                                                      .actor = work->actor}};
    work->mail.done = on_received;
    route_send(work, inbox_signal);
}

void engine_signal_saga(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);

    if (!work_refused(work)) {
        signal_begin(work);
    }
}

void signal_deliver(struct engine *engine, struct engine_request *request, const struct uuid *inbox_id)
{
    struct work *work = work_of_delivery(engine, request, inbox_id);

    if (work) {
        signal_begin(work);
    }
}
