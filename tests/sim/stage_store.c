/* See stage_store.h. */
#include "tests/sim/stage_store.h"

#include <stdlib.h>
#include <string.h>

#include "run/engine_state.h"
#include "store/guard.h"
#include "tests/sim/memory.h"
#include "tests/sim/node.h"

#define ANSWERS_MAX 4096

struct answer { /* that is awaited; what it is the answer of lies in the engine, and dies with it */
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

struct refused { /* in the node's memory */
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
    CHECK(false); /* more are under way than are kept */
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
    CHECK(false); /* nobody asked for it */
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

static bool is_refused(enum store_call call, enum err_code *code, void *request, void (*end)(void *request))
{
    orders[call].asked++;
    if (orders[call].times == 0) {
        return false;
    }
    struct refused *refused = memory_alloc(sizeof(*refused));

    orders[call].times--;
    *code = orders[call].code;
    refused->request = request;
    refused->end = end;
    loop_defer(node_current()->loop, &refused->deferred, on_refused);
    return true;
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
        ((struct type *)request)->done(request);                                                                       \
    }
ANSWERED(read, store_read)
ANSWERED(append, append)
ANSWERED(park, park)
ANSWERED(forget, forget)
ANSWERED(load, shard_load)
ANSWERED(inbox_put, inbox_put)
ANSWERED(answer_put, answer_put)

#define ASKS(of, type, called, call)                                                                                   \
    void __real_##called(struct store *store, struct type *request);                                                   \
    void __wrap_##called(struct store *store, struct type *request);                                                   \
    void __wrap_##called(struct store *store, struct type *request)                                                    \
    {                                                                                                                  \
        if (!is_refused(call, &request->code, request, of##_refused)) {                                                \
            if (request->done) { /* else nobody hears of it */                                                         \
                answer_keep(call, request)->done.of = request->done;                                                   \
                request->done = of##_answered;                                                                         \
            }                                                                                                          \
            __real_##called(store, request);                                                                           \
        }                                                                                                              \
    }
ASKS(append, append, store_append, STORE_APPEND)
ASKS(park, park, store_park, STORE_PARK)
ASKS(forget, forget, store_forget, STORE_FORGET)
ASKS(load, shard_load, store_load_shard, STORE_LOAD_SHARD)
ASKS(inbox_put, inbox_put, store_inbox_put, STORE_INBOX_PUT)
ASKS(answer_put, answer_put, store_answer_put, STORE_ANSWER_PUT)

#define READS(type, called, call)                                                                                      \
    void __real_##called(struct store *store, struct type *request);                                                   \
    void __wrap_##called(struct store *store, struct type *request);                                                   \
    void __wrap_##called(struct store *store, struct type *request)                                                    \
    {                                                                                                                  \
        if (!is_refused(call, &request->read.code, &request->read, read_refused)) {                                    \
            answer_keep(call, &request->read)->done.read = request->read.done;                                         \
            request->read.done = read_answered;                                                                        \
            __real_##called(store, request);                                                                           \
        }                                                                                                              \
    }
READS(due_take, store_due_take, STORE_DUE_TAKE)
READS(lock_take, store_lock_take, STORE_LOCK_TAKE)
READS(read_saga, store_read_saga, STORE_READ_SAGA)
READS(find_saga, store_find_saga, STORE_FIND_SAGA)
READS(find_operation, store_find_operation, STORE_FIND_OPERATION)
READS(find_input, store_find_input, STORE_FIND_INPUT)
READS(list_sagas, store_list_sagas, STORE_LIST_SAGAS)
READS(list_questions, store_list_questions, STORE_LIST_QUESTIONS)
READS(list_engines, store_list_engines, STORE_LIST_ENGINES)
READS(count_versions, store_count_versions, STORE_COUNT_VERSIONS)
READS(count_sagas, store_count_sagas, STORE_COUNT_SAGAS)
READS(load_definitions, store_load_definitions, STORE_LOAD_DEFINITIONS)
READS(put_definitions, store_put_definitions, STORE_PUT_DEFINITIONS)
READS(guard_list, store_guard_list, STORE_GUARD_LIST)

void stage_store_reset(void)
{
    memset(answers, 0, sizeof(answers));
    memset(orders, 0, sizeof(orders));
}
