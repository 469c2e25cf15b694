/*
 * The parties outside of the engines: clients, people, and faults. Only run.c, inquiry.c, client.c, curious.c,
 * person.c, holder.c, clerk.c, jobber.c and mishap.c use this file.
 */
#ifndef SAGAD_TESTS_SIM_DRIVE_H
#define SAGAD_TESTS_SIM_DRIVE_H

#include "tests/sim/check.h"
#include "tests/sim/scenario.h"

#define NAMESPACE SLICE("sim")

/*
 * One request to any engine that can be reached. The answer may get lost on the way or with the engine. Then the
 * inquirer repeats the request, as a client over HTTP does.
 */
struct inquiry {
    struct event timer; /* fires when the request is sent, then when patience is over */
    uint32_t node;      /* the preferred node, then the node that got the request */
    uint32_t life;
    uint64_t serial; /* number of the request under way: answers to earlier requests are ignored */
    bool is_under_way;
    struct engine_request *request; /* lives in the memory of the node */
    int64_t patience_us;
    /* Fills in the request and hands it to the engine. Runs inside of the node; texts go into request->arena. */
    void (*send)(struct inquiry *inquiry, struct engine *engine, struct engine_request *request);
    /* Handles the answer; `request` NULL: no answer came. Runs outside of the node. Texts are gone afterwards. The
     * function may call inquiry_go(). */
    void (*answered)(struct inquiry *inquiry, const struct engine_request *request);
};

/* Sends the request after the delay to `node`, or to another node if that is away. */
void inquiry_go(struct inquiry *inquiry, int64_t delay_us);
bool err_may_pass(enum err_code code); /* the engine or the database is in trouble: the client asks again */

/* --- run.c --- */

#define NOT_TOLD UINT32_MAX /* stands for the act where nobody was told of the saga yet */

/* When the definitions are there: times of acts and faults count from it. */
int64_t drive_begun_us(void);
void drive_follow(struct saga_id saga, bool is_open, uint32_t act); /* in client.c: somebody was told of this saga */

/* --- client.c --- */

void clients_init(void);
void clients_begin(void);
void clients_heal(void);     /* from now on clients give every saga what it waits for */
bool clients_are_done(void); /* every act is over, and clients saw the end of every saga that they know */
void clients_describe(char *out, size_t bytes); /* names what is not done */

/* --- curious.c: acts that are ACT_ASK --- */

void curious_begin(void);
/* `known`: a saga about which it may ask; nil: none */
void curious_send(const struct act *act, struct saga_id known, struct engine *engine, struct engine_request *request);
int64_t curious_patience_us(const struct act *act, int64_t usual_us);
void curious_answered(const struct act *act, const struct engine_request *request); /* `request` NULL: no answer came */

/* --- person.c --- */

void people_begin(void);
bool people_are_done(void); /* people found nothing to decide when they last looked */

/* --- holder.c --- */

void holders_begin(void);
bool holders_are_done(void); /* no hold is asked for or in force any more */

/* --- clerk.c --- */

void clerk_begin(void);
void clerk_heal(void);    /* the schedule is held */
bool clerk_is_done(void); /* no schedule starts anything any more */

/* --- jobber.c --- */

void jobbers_begin(void);
bool jobbers_are_done(void); /* every bulk job is over, and nobody makes another one */

/* --- mishap.c --- */

void mishaps_begin(void);
void mishaps_heal(void);
/* An item of a bulk job has acted, and its outcome is not written yet: the moment at which the death of an engine
 * counts.
 */
void mishaps_item_acted(void);
uint64_t mishaps_commits(void); /* commits since mishaps_begin() */

#endif
