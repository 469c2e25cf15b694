/*
 * Those who are outside of the engines: clients, people, and what goes wrong. Private to run.c, inquiry.c, client.c,
 * curious.c, person.c and mishap.c.
 */
#ifndef SAGAD_TESTS_SIM_DRIVE_H
#define SAGAD_TESTS_SIM_DRIVE_H

#include "tests/sim/check.h"
#include "tests/sim/scenario.h"

#define NAMESPACE SLICE("sim")

/*
 * One request to whichever engine can be reached. The answer may get lost, on the way or with the engine; whoever asked
 * repeats it, then, as a client over HTTP does.
 */
struct inquiry {
    struct event timer; /* when it is sent, then when its patience is over */
    uint32_t node;      /* whom it asks first; then the one it was sent to */
    uint32_t life;
    uint64_t serial; /* of the request under way: an answer to an earlier one is nobody's */
    bool is_under_way;
    struct engine_request *request; /* in the memory of the node */
    int64_t patience_us;
    /* Fills it in and hands it to the engine. Inside of the node; texts into request->arena. */
    void (*send)(struct inquiry *inquiry, struct engine *engine, struct engine_request *request);
    /* `request` NULL: no answer came. Outside of the node; texts are gone afterwards. May call inquiry_go(). */
    void (*answered)(struct inquiry *inquiry, const struct engine_request *request);
};

void inquiry_go(struct inquiry *inquiry,
                int64_t delay_us);     /* sends it then, to `node`, or to another one if that is away */
bool err_may_pass(enum err_code code); /* the engine or the database is in trouble: ask again */

/* --- run.c --- */

#define NOT_TOLD UINT32_MAX /* instead of the act: nobody was told of the saga yet */

/* The definitions are there: times of acts and faults count from here. */
int64_t drive_begun_us(void);
void drive_follow(struct saga_id saga, bool is_open, uint32_t act); /* client.c: somebody was told of this saga */

/* --- client.c --- */

void clients_init(void);
void clients_begin(void);
void clients_heal(void);                        /* from now on they see to it that every saga gets what it waits for */
bool clients_are_done(void);                    /* every act is over, and every saga they know was seen to have ended */
void clients_describe(char *out, size_t bytes); /* of what is not done */

/* --- curious.c: acts that are ACT_ASK --- */

void curious_begin(void);
/* `known`: a saga that it may ask about; nil: none */
void curious_send(const struct act *act, struct saga_id known, struct engine *engine, struct engine_request *request);
int64_t curious_patience_us(const struct act *act, int64_t usual_us);
void curious_answered(const struct act *act, const struct engine_request *request); /* NULL: no answer came */

/* --- person.c --- */

void people_begin(void);
bool people_are_done(void); /* the last time they looked there was nothing to decide */

/* --- holder.c --- */

void holders_begin(void);
bool holders_are_done(void); /* no hold is asked for or in force any more */

/* --- mishap.c --- */

void mishaps_begin(void);
void mishaps_heal(void);
uint64_t mishaps_commits(void); /* since mishaps_begin() */

#endif
