/*
 * Engines in the simulated world, directed by a test instead of a scenario: the real run code, virtual time, a
 * PostgreSQL that a test can have answer with anything, tools that say what the test wants. A test is over in
 * milliseconds and comes out the same each time.
 *
 * Link with rig_wraps (meson.build). Tests run between rig_begin() and rig_end().
 */
#ifndef SAGAD_TESTS_SIM_RIG_H
#define SAGAD_TESTS_SIM_RIG_H

#include "run/engine_state.h"
#include "tests/sim/node.h"
#include "tests/sim/pg.h"
#include "tests/sim/stage_store.h"

extern struct node_options
    rig_options; /* of nodes that start; rig_begin() sets it to what is usual, and a test may change it then */

void rig_begin(void);          /* a new world, nobody in it */
void rig_start(uint32_t node); /* an engine, and waits until it is ready; a standby owns nothing then */
/* Who is up leaves, and has to have freed everything. Who cannot leave any more is killed before. */
void rig_end(void);

void rig_for(int64_t ms);                                             /* the world goes on for so long */
bool rig_is_so(bool (*is)(void *context), void *context, int64_t ms); /* until it is so; false: not in this time */
void rig_until(bool (*is)(void *context), void *context);             /* fails after a minute of the world */
/* `run`, inside of the node. */
void rig_inside(uint32_t node, void (*run)(struct engine *engine, void *context), void *context);

/* --- requests --- */

struct ask {
    struct engine_request request;
    struct arena arena;
    uint32_t node, life;
    bool done;
};
typedef void request_verb(struct engine *engine, struct engine_request *request);

void ask_begin(struct ask *ask, uint32_t node); /* fill in ask->request.in then */
void ask_send(struct ask *ask, request_verb *verb);
void ask_wait(struct ask *ask);
enum err_code ask(struct ask *ask, request_verb *verb); /* both */
void ask_cancel(struct ask *ask);                       /* the client hangs up */
void ask_end(struct ask *ask);
void assert_code(const struct ask *ask, enum err_code code);

void rig_define(const char *document);                                       /* has to be accepted; ' stands for " */
struct saga_id rig_saga(uint32_t node, const char *saga, const char *input); /* starts it */
struct saga_id rig_open(uint32_t node, const char *business_id);
/* As the engine shows it; lasts until the next one is asked for. */
struct slice rig_show(uint32_t node, struct saga_id id);
void rig_until_status(uint32_t node, struct saga_id id, const char *status);

/* --- tools: settings {"tool": NAME, "do": "act"}, undo and probe too --- */

struct rig_tool {
    const char *name;
    enum outcome_kind kind;
    bool unsent;
    const char *error, *detail; /* where it is not completed; the latter may be NULL */
    const char *response;       /* JSON; NULL: there is none */
    int64_t delay_ms, retry_after_ms;
    uint32_t calls, under_way;
    void (*on_call)(struct call *call); /* may be NULL; before it is answered */
};
struct rig_tool *rig_tool(const char *name); /* to be set; says {} and completed at once when nothing is */

#endif
