/*
 * See look.h. The store says whether sagad could work on the database; then the list of engines has the facts. As many
 * connections as sagad takes are looked at: a pooler shows itself when it gives two of them the same backend.
 */
#include "tools/sagactl/doctor/look.h"

#include "run/query/engines.h"
#include "tools/sagactl/saga_end.h"

#define WAIT_MS 20000
#define LOOK_AGAIN_MS 20
#define JSON_BYTES_MAX (4 << 20)

struct look {
    struct diagnosis *d;
    struct loop *loop;
    struct store *store;
    struct timer patience, again;
    struct list_engines list;
    struct slice engines; /* the answer, in the form of /v1/engines */
    int64_t answered_ms;
    int64_t asked_ms;
    bool is_asked, is_closing;
};

static void on_closed(void *context)
{
    loop_stop(((struct look *)context)->loop);
}

static void look_end(struct look *look)
{
    if (!look->is_closing) {
        look->is_closing = true;
        timer_stop(look->loop, &look->patience);
        timer_stop(look->loop, &look->again);
        store_close(look->store, on_closed, look);
    }
}

/* The texts of an error live as long as its callback. */
static struct slice kept(const struct look *look, const char *text)
{
    return arena_printf(&look->d->ctl->arena, "%s", text);
}

static void add_trouble(struct look *look, const struct err *err, const char *act)
{
    struct slice what = err->detail[0] ? arena_printf(&look->d->ctl->arena, "%s: %s", err->message, err->detail)
                                       : kept(look, err->message);

    if (!look->is_closing) {
        diagnosis_add(look->d, "database", FINDING_TROUBLE, what, look->d->where,
                      kept(look, err->hint[0] ? err->hint : act));
        if (store_warning(look->store)) {
            diagnose_warning(look->d, slice_of(store_warning(look->store)));
        }
    }
    look_end(look);
}

static void look_conclude(struct look *look)
{
    diagnosis_add(look->d, "database", FINDING_FINE, SLICE("sagad can work on it"), look->d->where, SLICE(""));
    diagnose_engines(look->d, look->engines, look->asked_ms, look->answered_ms);
    look_end(look);
}

static void on_again(struct timer *timer)
{
    struct look *look = container_of(timer, struct look, again);

    if (store_prove_all(look->store)) {
        look_conclude(look);
    } else if (!look->is_closing) {
        timer_start(look->loop, &look->again, LOOK_AGAIN_MS, on_again);
    }
}

static void on_listed(struct store_read *read)
{
    struct look *look = container_of(container_of(read, struct list_engines, read), struct look, list);
    struct buffer out;
    struct json_writer w;

    if (read->code != ERR_OK) {
        add_trouble(look, &read->err, "look at the log of PostgreSQL");
        return;
    }
    look->answered_ms = now_ms();
    look->list.database.clock_ahead_ms = 0; /* no engine was asked for its time */
    buffer_init(&out, JSON_BYTES_MAX);
    json_writer_init(&w, &out);
    engines_write(&w, &look->list);
    look->engines = arena_slice(&look->d->ctl->arena, buffer_slice(&out));
    buffer_fini(&out);
    if (!look->is_closing) {
        timer_start(look->loop, &look->again, 0, on_again);
    }
}

static void on_ready(struct store *store, void *context)
{
    struct look *look = context;

    if (!look->is_asked && !look->is_closing) {
        look->is_asked = true;
        look->asked_ms = now_ms();
        look->list.read = (struct store_read){.arena = &look->d->ctl->arena, .done = on_listed, .context = look};
        store_list_engines(store, &look->list);
    }
}

static void on_away(struct store *store, const struct err *err, void *context)
{
    (void)store; /* the look has it */
    add_trouble(context, err, "look whether PostgreSQL runs there and takes connections of this role");
}

static void on_refused(struct store *store, const struct err *err, void *context)
{
    (void)store; /* the look has it */
    add_trouble(context, err, "look at the log of PostgreSQL");
}

static void on_patience(struct timer *timer)
{
    struct look *look = container_of(timer, struct look, patience);

    if (look->engines.ptr) {
        diagnosis_add(look->d, "connections", FINDING_TROUBLE, SLICE("sagad would not get all of its connections"),
                      look->d->where, SLICE("raise max_connections, or the limit of the role or of the pooler"));
        look_conclude(look);
        return;
    }
    diagnosis_add(look->d, "database", FINDING_TROUBLE, SLICE("PostgreSQL does not answer"), look->d->where,
                  SLICE("look at the load and the log of PostgreSQL, and at the network"));
    look_end(look);
}

void look_at_database(struct diagnosis *d, const char *dsn)
{
    struct look *look = arena_alloc(&d->ctl->arena, sizeof(*look));
    /* Settings that lose work are a finding among others, and keep nothing else from being looked at. */
    const struct store_options options = {.dsn = dsn,
                                          .risk_losing_acknowledged_work = true,
                                          .on_ready = on_ready,
                                          .on_away = on_away,
                                          .on_refused = on_refused,
                                          .context = look};

    look->d = d;
    look->loop = loop_new();
    timer_start(look->loop, &look->patience, WAIT_MS, on_patience);
    look->store = store_open(look->loop, &options);
    loop_run(look->loop);
    loop_free(look->loop);
}
