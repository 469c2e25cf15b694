/* A signal from outside is durable before it is acknowledged. It is one signal, however often it is sent under its
 * key. */
#include "run/request/calling.h"

#include "base/json.h"
#include "run/saga/live.h"
#include "run/saga/turn.h"

/* Finds this signal: by the id that its sender gave, otherwise the newest. Returns NULL when the saga left memory
 * meanwhile. */
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

/* The saga has ended, maybe by this very signal. A repeat is still told so. */
static void on_ended_read(struct store_read *read)
{
    struct work *work = read->context;
    struct records records = {0};
    struct err err = {0};

    if (work_read_failed(work, read)) {
        return;
    }
    const struct saga *saga = work_fold(work);

    if (!saga) {
        return;
    }
    work->mail.input.now_ms = loop_wall_ms(work->engine->loop);
    enum err_code code = saga_decide(saga, &work->mail.input, &work->reading, &records, &err);

    if (code != ERR_OK) {
        work_done(work, code, &err);
        return;
    }
    CHECK(records.count == 0); /* an ended saga accepts nothing new */
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

bool signal_ended(struct work *work)
{
    if (!work->mail.input.signal.id.ptr) {
        return false;
    }
    look_at_ended(work);
    return true;
}

void signal_answer(struct work *work)
{
    const struct live *live = work->mail.live;
    bool created = turn_append(live) != NULL; /* a repeat leads to no record */

    if (work->request) {
        work->request->created = created;
    }
    write_answer(work, find_signal(live->dropped ? NULL : &live->saga, &work->mail.input), created);
    work_done(work, ERR_OK, NULL);
}
