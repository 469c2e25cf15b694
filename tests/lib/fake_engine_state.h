/* What the files of the fake engine share: fake_engine.c has the sagas, fake_calls.c the operations. */
#ifndef SAGAD_TESTS_FAKE_ENGINE_STATE_H
#define SAGAD_TESTS_FAKE_ENGINE_STATE_H

#include "base/list.h"
#include "base/map.h"
#include "core/definition/exposure.h"
#include "tests/lib/fake_engine.h"

struct fake_saga {
    struct list_link link;
    struct arena arena;
    struct saga_id id;
    struct slice namespace, name, business_id, input, tags;
    const char *status;
    int64_t created_ms, ended_ms;
    struct slice signal_key, signal_payload;
    uint64_t seq;
    bool aborted;
};

struct fake_wait { /* a request that waits for its answer */
    struct list_link link;
    struct engine *engine;
    struct engine_request *request;
    struct fake_saga *saga;
    struct timer timer;
};

#define FAKE_GRANTS_MAX 64 /* of one more, the first is forgotten */

struct engine {
    struct loop *loop;
    struct list sagas, waits, watches, operations, call_waits;
    struct map by_id;
    struct offers offers; /* the offers of the last request */
    size_t cancelled, pending;
    struct engine_grant grants[FAKE_GRANTS_MAX];
    size_t grant_count; /* made so far */
    struct arena grant_arena;
    bool away, busy, resolved;
    const char *decided; /* how approval 1 was decided; NULL: it is open */
};

void fake_finish(struct engine *engine, struct engine_request *request, enum err_code code);
void fake_finish_text(struct engine *engine, struct engine_request *request, struct slice text);
enum err_code fake_not_found(struct engine_request *request);
struct slice fake_instant(struct arena *arena, int64_t ms);       /* JSON */
struct slice fake_quoted(struct arena *arena, struct slice text); /* quoted as JSON; null for SLICE_NONE */
struct fake_saga *fake_saga_find(const struct engine *engine, struct slice namespace, struct saga_id id);
/* Gives the JSON of the steps, without the brackets. */
struct slice fake_steps(const struct fake_saga *saga, struct arena *arena);
struct slice fake_more(const struct fake_saga *saga); /* further members, each with its comma */
struct slice fake_saga_json(const struct fake_saga *saga, struct arena *arena);

/* verbs of fake_waits.c and fake_calls.c; fake_engine.c has the rest */
void fake_pause(struct engine *engine, struct engine_request *request);
void fake_rerun(struct engine *engine, struct engine_request *request);
void fake_mend(struct engine *engine, struct engine_request *request);
void fake_resume(struct engine *engine, struct engine_request *request);
void fake_signal(struct engine *engine, struct engine_request *request);
void fake_decide(struct engine *engine, struct engine_request *request);
void fake_bypass(struct engine *engine, struct engine_request *request);
void fake_cost(struct engine *engine, struct engine_request *request);

void fake_calls_init(struct engine *engine);
void fake_calls_fini(struct engine *engine);
bool fake_calls_unsettled(const struct engine *engine, const struct fake_saga *saga);
void fake_calls_settle(struct engine *engine); /* completes the slow calls */
struct fake_call_wait;
bool fake_call_wait_is(const struct engine *engine, const struct engine_request *request);
void fake_call_wait_end(struct fake_call_wait *wait, enum err_code code); /* ERR_OK: the operation is settled */

#endif
