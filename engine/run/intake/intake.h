/*
 * The intake: whether new work (a start, an open saga, a call that would begin an operation) is taken in, or told to
 * come again. What was accepted is never asked: settled calls, compensations, timers, signals, decisions, aborts,
 * resolutions.
 *
 * Two things stand against new work. A queue is *full*: of something there is as much as may be, and new work waits
 * until an eighth of it is gone. Or work *waits too long*: a delay is over its target for some time. Then work is taken
 * in at a pace of its own, which is what ends in a second, less while the delays are over their targets and more while
 * they are well below; so the engine stays busy with what it has, and the queues do not grow. A few a second always
 * come in.
 *
 * This is arithmetic on measures and an instant: no clock, no randomness. measures.c measures an engine.
 */
#ifndef SAGAD_RUN_INTAKE_INTAKE_H
#define SAGAD_RUN_INTAKE_INTAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum intake_queue {
    INTAKE_SAGAS,      /* in memory */
    INTAKE_MEMORY,     /* bytes of the process */
    INTAKE_APPENDS,    /* turns on their way into the log */
    INTAKE_CALLS,      /* calls that wait for a place */
    INTAKE_DELIVERIES, /* inputs from other engines at work here */
    INTAKE_ERRANDS,    /* inputs on their way to other engines */
    INTAKE_QUEUE_COUNT
};

enum intake_delay {
    INTAKE_COMMIT_DELAY, /* the delay of the turns that begin something new */
    INTAKE_CALL_DELAY,   /* the delay of the call that waits longest for a place */
    INTAKE_DELAY_COUNT
};

struct intake_measures {
    struct {
        size_t now, max; /* max 0: not bounded */
    } queues[INTAKE_QUEUE_COUNT];
    struct {
        int64_t ms, target_ms; /* target 0: not looked at */
    } delays[INTAKE_DELAY_COUNT];
};

#define INTAKE_LOOK_MS 100     /* measures are taken so often at most */
#define INTAKE_PATIENCE_MS 200 /* a delay is over its target for so long before the pace begins */
#define INTAKE_PACE_MIN 20     /* a second, under whatever delay */

struct intake {
    bool full[INTAKE_QUEUE_COUNT];
    bool paced;  /* a delay was over its target */
    int percent; /* the worst delay, of its target, when last looked at */
    enum intake_delay worst;
    size_t excess;                                    /* the excess of the fullest queue, over what it has to sink to */
    double pace;                                      /* while paced: taken in a second */
    double room;                                      /* the room of those queues, now */
    double ended, refused, taken;                     /* a second, smoothed */
    uint32_t ended_since, refused_since, taken_since; /* counts since the last look */
    int64_t looked_ms, over_since_ms, busy_ms, refused_ms, filled_ms;
    uint32_t refusals; /* counts; spreads those that come again */
};

enum intake_verdict { INTAKE_TAKEN, INTAKE_FULL, INTAKE_PACED };

void intake_init(struct intake *intake, int64_t now_ms);
/* Something that was taken in has ended, or rests and has left memory: what the pace is measured by. */
void intake_ended(struct intake *intake);
bool intake_is_due(const struct intake *intake, int64_t now_ms); /* the time has come to look at new measures */
void intake_look(struct intake *intake, const struct intake_measures *measures, int64_t now_ms);
/* Take one more? Else after how long it may come again; different for each, so that they do not come together. */
enum intake_verdict intake_take(struct intake *intake, int64_t now_ms, int64_t *retry_after_ms);
/* The same for whoever could be refused before more is known of it. True: refused; it is not asked again. */
bool intake_refuses(struct intake *intake, int64_t now_ms, int64_t *retry_after_ms);
/* A queue that is full; INTAKE_QUEUE_COUNT: none is. */
enum intake_queue intake_full(const struct intake *intake);

#endif
