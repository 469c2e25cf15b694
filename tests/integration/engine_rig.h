/*
 * A whole engine on a PostgreSQL of its own, with tools to call and the requests of agents. Tests can set the wall
 * clock of its loop forward: link with --wrap=loop_wall_ms.
 */
#ifndef SAGAD_TESTS_ENGINE_RIG_H
#define SAGAD_TESTS_ENGINE_RIG_H

#include "run/engine.h"
#include "tests/integration/store_host.h"

extern struct host host;
extern struct engine *engine; /* the engine that owns all shards */
extern struct engine *other;  /* a second engine, which owns nothing as long as the first lives; NULL: none */
extern int64_t ahead_ms;      /* how far the wall clock is set forward */
extern int64_t park_after_ms; /* for engines that begin from now on; 0: the usual time */
extern int64_t park_ahead_ms; /* for engines that begin from now on; sagas that go on sooner are not parked */
extern bool is_drained;       /* on_drained() sets it */

int engine_rig_setup(void **state);
int engine_rig_teardown(void **state);
void engine_rig_begin(void);
void engine_rig_end(void);
void engine_rig_begin_other(void);
void engine_rig_end_other(void);
void engine_rig_define_text(const char *document); /* shows each fault */
void engine_rig_define(void);                      /* registers greet forget nap slow refuse lose rare either send */
void on_drained(void *context);
bool is_so(void *flag);
/* The main function of tests that register a document and park sagas after so long; 0: after the usual time. */
#define ENGINE_RIG_PROGRAM(document, park_after, park_ahead)                                                           \
    static int begin_rig(void **state)                                                                                 \
    {                                                                                                                  \
        park_after_ms = (park_after);                                                                                  \
        park_ahead_ms = (park_ahead);                                                                                  \
        int result = engine_rig_setup(state);                                                                          \
                                                                                                                       \
        engine_rig_define_text(document);                                                                              \
        return result;                                                                                                 \
    }                                                                                                                  \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        jq_prepare(); /* while this process is small */                                                                \
        return tests_run(begin_rig, engine_rig_teardown);                                                              \
    }

void rig_until_memory_is_empty(void); /* waits until no saga is in memory */
void rig_take_shards_away(void);      /* and waits until the engine has them again */

/* --- one request --- */

struct ask {
    struct engine_request request;
    struct arena arena;
    bool done;
};

void ask_begin(struct ask *ask);
/* Begins a request. The members of `in` follow: ask_engine(&ask, engine_change, .change = {.verb = VERB_ABORT}). */
#define ask_engine(ask, verb, ...) ask_engine_for(ask, verb, &(struct engine_request){.in = {__VA_ARGS__}})
/* Begins a request for a verb about a saga. The other members of `change` follow. */
#define ask_change(ask, what, about, ...)                                                                              \
    ask_engine(ask, engine_change, .change = {.verb = (what), .saga = (about), __VA_ARGS__})
void ask_engine_for(struct ask *ask, void (*verb)(struct engine *, struct engine_request *),
                    const struct engine_request *what);
void ask_wait(struct ask *ask);
void ask_end(struct ask *ask);
/* Each holds the answer against the code, and fails the test at the line where it stands. ask_expect() waits before,
 * ask_ends() also ends the request. */
#define assert_code(ask, code) assert_code_at(__FILE__, __LINE__, ask, code)
#define ask_expect(ask, code) (ask_wait(ask), assert_code(ask, code))
#define ask_ends(ask, code) (ask_expect(ask, code), ask_end(ask))
void assert_code_at(const char *file, int line, const struct ask *ask, enum err_code code);
void assert_member(struct slice object, const char *name, const char *json);

void prepare_call(struct ask *ask, const char *run, const char *step, const char *tool, const char *args,
                  int64_t wait_ms);
void begin_call(struct ask *ask, const char *run, const char *step, const char *tool, const char *args,
                int64_t wait_ms);
void call(struct ask *ask, const char *run, const char *step, const char *tool, const char *args); /* and wait */
void call_in(struct ask *ask, struct saga_id saga, const char *step, const char *tool, const char *args,
             int64_t wait_ms);                                  /* begins */
struct saga_id start_saga(const char *saga, const char *input); /* starts a saga without a business id, and waits */
struct saga_id open_saga(const char *id, int64_t deadline_ms);
struct saga_id open_with_budget(const char *budget);
void complete(struct ask *ask, struct saga_id id, int64_t wait_ms); /* begins */

#endif
