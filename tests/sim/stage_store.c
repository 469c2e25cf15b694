/* See stage_store.h. */
#include "tests/sim/stage_store.h"

#include <stdlib.h>
#include <string.h>

#include "store/figures.h"
#include "store/guard.h"
#include "store/holds.h"
#include "tests/sim/stage.h"

#define ANSWERS_MAX 4096
#define KEPT_MAX 8192

struct answer { /* an awaited answer; its request is in the memory of the engine and dies with it */
    void *request;
    const struct node *node;
    uint32_t life;
    enum store_call call;
    union {
        void (*read)(struct store_read *read);
        void (*append)(struct append *append);
        void (*park)(struct park *park);
        void (*forget)(struct forget *forget);
        void (*load)(struct shard_load *load);
        void (*inbox_put)(struct inbox_put *put);
        void (*answer_put)(struct answer_put *put);
    } done;
};

static struct answer answers[ANSWERS_MAX];
static struct {
    enum err_code code;
    uint32_t times, asked;
    void (*look)(void *request, enum err_code *code);
} orders[STORE_CALL_COUNT];

struct kept { /* a request that waits at the door of the store */
    enum store_call call;
    struct node *node;
    uint32_t life;
    struct store *store;
    void *request;
    enum err_code *code;
    struct err *err; /* NULL when the request has none */
    void (*perform)(struct store *store, void *request);
    void (*end)(void *request);
};

static struct kept kept[KEPT_MAX]; /* the oldest first */
static size_t kept_count;
static bool holds[STORE_CALL_COUNT];

struct refused { /* in the memory of the node */
    struct deferred deferred;
    void *request;
    void (*end)(void *request);
};

void stage_refuse(enum store_call call, enum err_code code, uint32_t times)
{
    orders[call].code = code;
    orders[call].times = times;
}

void stage_on_answer(enum store_call call, void (*look)(void *request, enum err_code *code))
{
    orders[call].look = look;
}

uint32_t stage_asked(enum store_call call)
{
    return orders[call].asked;
}

static struct answer *answer_keep(enum store_call call, void *request)
{
    const struct node *node = node_current();

    for (size_t i = 0; i < ANSWERS_MAX; i++) {
        if (!answers[i].request || !answers[i].node->up || answers[i].life != answers[i].node->life) {
            answers[i] = (struct answer){.request = request, .node = node, .life = node->life, .call = call};
            return &answers[i];
        }
    }
    CHECK(false); /* more requests are under way than can be kept */
    return NULL;
}

static struct answer answer_take(void *request, enum err_code *code)
{
    const struct node *node = node_current();

    for (size_t i = 0; i < ANSWERS_MAX; i++) {
        if (answers[i].request == request && answers[i].node == node && answers[i].life == node->life) {
            struct answer answer = answers[i];
            void (*look)(void *, enum err_code *) = orders[answer.call].look;

            answers[i].request = NULL;
            if (look) {
                orders[answer.call].look = NULL;
                look(request, code);
            }
            return answer;
        }
    }
    CHECK(false); /* the test asked for no such answer */
    return answers[0];
}

static void on_refused(struct deferred *deferred)
{
    struct refused *refused = container_of(deferred, struct refused, deferred);
    void *request = refused->request;
    void (*end)(void *) = refused->end;

    free(refused);
    end(request);
}

static void set_code(const struct kept *asked, enum err_code code)
{
    *asked->code = code;
    if (asked->err && code != ERR_OK) {
        (void)err_set(asked->err, code, "the test wants it so");
    }
}

static bool is_refused(const struct kept *asked)
{
    orders[asked->call].asked++;
    if (orders[asked->call].times == 0) {
        return false;
    }
    struct refused *refused = memory_alloc(sizeof(*refused));

    orders[asked->call].times--;
    set_code(asked, orders[asked->call].code);
    refused->request = asked->request;
    refused->end = asked->end;
    loop_defer(node_current()->loop, &refused->deferred, on_refused);
    return true;
}

/* --- what is held --- */

void stage_hold(enum store_call call)
{
    holds[call] = true;
}

static bool is_kept(const struct kept *wanted)
{
    if (!holds[wanted->call]) {
        return false;
    }
    CHECK(kept_count < KEPT_MAX);
    kept[kept_count] = *wanted;
    kept[kept_count].node = node_current();
    kept[kept_count++].life = node_current()->life;
    return true;
}

/* Returns the oldest request whose engine still lives; NULL when there is none. */
static struct kept *oldest_kept(enum store_call call)
{
    for (size_t i = 0; i < kept_count; i++) {
        if (kept[i].call == call && kept[i].node->up && kept[i].node->life == kept[i].life) {
            return &kept[i];
        }
    }
    return NULL;
}

size_t stage_held(enum store_call call)
{
    size_t count = 0;

    for (size_t i = 0; i < kept_count; i++) {
        count += kept[i].call == call && kept[i].node->up && kept[i].node->life == kept[i].life;
    }
    return count;
}

void *stage_oldest(enum store_call call)
{
    const struct kept *found = oldest_kept(call);

    assert_non_null(found);
    return found->request;
}

/* --- the store closes when nothing is kept that it was asked for --- */

static struct closing {
    struct store *store;
    void (*on_closed)(void *context);
    void *context;
    uint32_t life;
} closings[NODES_MAX]; /* one for each node; the store is NULL when none waits */

void __real_store_close(struct store *store, void (*on_closed)(void *context), void *context);
void __wrap_store_close(struct store *store, void (*on_closed)(void *context), void *context);

static bool has_kept(const struct node *node)
{
    for (size_t i = 0; i < kept_count; i++) {
        if (kept[i].node == node && kept[i].life == node->life) {
            return true;
        }
    }
    return false;
}

void __wrap_store_close(struct store *store, void (*on_closed)(void *context), void *context)
{
    const struct node *node = node_current();

    if (has_kept(node)) {
        closings[node->index] = (struct closing){store, on_closed, context, node->life};
    } else {
        __real_store_close(store, on_closed, context);
    }
}

/* Runs inside a node, after one of its requests has been let go. */
static void close_waiting(void)
{
    const struct node *node = node_current();
    struct closing closing = closings[node->index];

    if (closing.store && !has_kept(node)) {
        closings[node->index].store = NULL;
        if (closing.life == node->life) {
            __real_store_close(closing.store, closing.on_closed, closing.context);
        }
    }
}

struct letting_go {
    struct kept kept;
    bool fails;
    enum err_code code;
};

static void let_go(struct engine *engine, void *context)
{
    const struct letting_go *l = context;

    (void)engine;
    if (l->fails) {
        set_code(&l->kept, l->code);
        l->kept.end(l->kept.request);
    } else {
        l->kept.perform(l->kept.store, l->kept.request);
    }
    close_waiting();
}

static void take_oldest(enum store_call call, bool fails, enum err_code code)
{
    struct kept *found = oldest_kept(call);

    assert_non_null(found);
    struct letting_go l = {*found, fails, code};

    memmove(found, found + 1, (size_t)(&kept[--kept_count] - found) * sizeof(*found));
    stage_inside(l.kept.node->index, let_go, &l);
}

void stage_let(enum store_call call)
{
    take_oldest(call, false, ERR_OK);
    stage_settle();
}

void stage_fail(enum store_call call, enum err_code code)
{
    take_oldest(call, true, code);
    stage_settle();
}

void stage_release(enum store_call call)
{
    bool any = stage_held(call) > 0;

    holds[call] = false;
    while (oldest_kept(call)) {
        take_oldest(call, false, ERR_OK);
    }
    if (any) {
        stage_settle();
    }
}

void stage_store_release(void)
{
    for (enum store_call call = 0; call < STORE_CALL_COUNT; call++) {
        stage_release(call);
    }
}

/* --- the doors of the store --- */

static void gate(const struct kept *asked)
{
    if (!is_refused(asked) && !is_kept(asked)) {
        asked->perform(asked->store, asked->request);
    }
}

#define ANSWERED(of, type)                                                                                             \
    static void of##_answered(struct type *request)                                                                    \
    {                                                                                                                  \
        struct answer answer = answer_take(request, &request->code);                                                   \
                                                                                                                       \
        request->done = answer.done.of;                                                                                \
        request->done(request);                                                                                        \
    }                                                                                                                  \
    static void of##_refused(void *request)                                                                            \
    {                                                                                                                  \
        if (((struct type *)request)->done) {                                                                          \
            ((struct type *)request)->done(request);                                                                   \
        }                                                                                                              \
    }
ANSWERED(read, store_read)
ANSWERED(append, append)
ANSWERED(park, park)
ANSWERED(forget, forget)
ANSWERED(load, shard_load)
ANSWERED(inbox_put, inbox_put)
ANSWERED(answer_put, answer_put)

#define ASKS(of, type, called, kind, error)                                                                            \
    void __real_##called(struct store *store, struct type *request);                                                   \
    void __wrap_##called(struct store *store, struct type *request);                                                   \
    static void called##_perform(struct store *store, void *asked)                                                     \
    {                                                                                                                  \
        struct type *request = asked;                                                                                  \
                                                                                                                       \
        if (request->done) { /* otherwise the engine hears nothing */                                                  \
            answer_keep(kind, request)->done.of = request->done;                                                       \
            request->done = of##_answered;                                                                             \
        }                                                                                                              \
        __real_##called(store, request);                                                                               \
    }                                                                                                                  \
    void __wrap_##called(struct store *store, struct type *request)                                                    \
    {                                                                                                                  \
        gate(&(struct kept){.call = kind,                                                                              \
                            .store = store,                                                                            \
                            .request = request,                                                                        \
                            .code = &request->code,                                                                    \
                            .err = error,                                                                              \
                            .perform = called##_perform,                                                               \
                            .end = of##_refused});                                                                     \
    }
ASKS(append, append, store_append, STORE_APPEND, &request->err)
ASKS(park, park, store_park, STORE_PARK, NULL)
ASKS(forget, forget, store_forget, STORE_FORGET, NULL)
ASKS(load, shard_load, store_load_shard, STORE_LOAD_SHARD, &request->err)
ASKS(inbox_put, inbox_put, store_inbox_put, STORE_INBOX_PUT, &request->err)
ASKS(answer_put, answer_put, store_answer_put, STORE_ANSWER_PUT, NULL)

#define READS(type, called, kind)                                                                                      \
    void __real_##called(struct store *store, struct type *request);                                                   \
    void __wrap_##called(struct store *store, struct type *request);                                                   \
    static void called##_perform(struct store *store, void *asked)                                                     \
    {                                                                                                                  \
        struct type *request = container_of((struct store_read *)asked, struct type, read);                            \
                                                                                                                       \
        answer_keep(kind, &request->read)->done.read = request->read.done;                                             \
        request->read.done = read_answered;                                                                            \
        __real_##called(store, request);                                                                               \
    }                                                                                                                  \
    void __wrap_##called(struct store *store, struct type *request)                                                    \
    {                                                                                                                  \
        gate(&(struct kept){.call = kind,                                                                              \
                            .store = store,                                                                            \
                            .request = &request->read,                                                                 \
                            .code = &request->read.code,                                                               \
                            .err = &request->read.err,                                                                 \
                            .perform = called##_perform,                                                               \
                            .end = read_refused});                                                                     \
    }
READS(due_take, store_due_take, STORE_DUE_TAKE)
READS(lock_take, store_lock_take, STORE_LOCK_TAKE)
READS(read_saga, store_read_saga, STORE_READ_SAGA)
READS(find_saga, store_find_saga, STORE_FIND_SAGA)
READS(read_logs, store_read_logs, STORE_READ_LOGS)
READS(read_run, store_read_run, STORE_READ_RUN)
READS(find_operation, store_find_operation, STORE_FIND_OPERATION)
READS(find_input, store_find_input, STORE_FIND_INPUT)
READS(list_sagas, store_list_sagas, STORE_LIST_SAGAS)
READS(list_questions, store_list_questions, STORE_LIST_QUESTIONS)
READS(list_engines, store_list_engines, STORE_LIST_ENGINES)
READS(count_versions, store_count_versions, STORE_COUNT_VERSIONS)
READS(count_looked, store_count_looked, STORE_COUNT_LOOKED)
READS(count_sagas, store_count_sagas, STORE_COUNT_SAGAS)
READS(load_definitions, store_load_definitions, STORE_LOAD_DEFINITIONS)
READS(put_definitions, store_put_definitions, STORE_PUT_DEFINITIONS)
READS(guard_list, store_guard_list, STORE_GUARD_LIST)
READS(guard_ask, store_guard_ask, STORE_GUARD_ASK)
READS(guard_tell, store_guard_tell, STORE_GUARD_TELL)
READS(guard_count, store_guard_count, STORE_GUARD_COUNT)
READS(series_add, store_series_add, STORE_SERIES_ADD)
READS(hold_tell_ended, store_hold_tell_ended, STORE_HOLD_TELL_ENDED)

/* --- the inbox --- */

static void on_delivered(struct inbox_put *put)
{
    CHECK(put->code == ERR_OK);
    free(put);
}

static void put_row(struct engine *engine, void *context)
{
    struct inbox_put *put = memory_alloc(sizeof(*put));

    *put = (struct inbox_put){.row = *(const struct inbox_row *)context, .done = on_delivered};
    __real_store_inbox_put(engine->store, put);
}

int64_t stage_sender_ahead_ms;

struct uuid stage_deliver(uint32_t node, const char *kind, uint32_t shard, struct saga_id saga, const char *payload)
{
    struct inbox_row row = {.id = uuid_v7(WORLD_START_MS + world->now_us / 1000 + stage_sender_ahead_ms),
                            .shard = shard,
                            .saga = saga,
                            .kind = slice_of(kind),
                            .payload = stage_json(payload)};

    stage_inside(node, put_row, &row);
    stage_settle();
    return row.id;
}

static void on_written(struct append *append)
{
    CHECK(append->code == ERR_OK);
    free(append);
}

static void write_turn(struct engine *engine, void *context)
{
    struct append *append = memory_alloc(sizeof(*append));

    *append = *(const struct append *)context;
    append->done = on_written;
    append->link = (struct list_link){0};
    if (append->epoch == 0) {
        append->epoch = engine->shards[append->shard].epoch;
    }
    __real_store_append(engine->store, append);
}

void stage_write(uint32_t node, const struct append *turn)
{
    stage_inside(node, write_turn, (void *)turn);
    stage_settle();
}

void stage_store_reset(void)
{
    memset(answers, 0, sizeof(answers));
    memset(orders, 0, sizeof(orders));
    memset(holds, 0, sizeof(holds));
    memset(closings, 0, sizeof(closings));
    kept_count = 0;
    stage_sender_ahead_ms = 0;
}
