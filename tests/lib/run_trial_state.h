/* What the two halves of a trial share: run_trial.c (time, tools, clients) and run_trial_store.c (the database). */
#ifndef SAGAD_TESTS_LIB_RUN_TRIAL_STATE_H
#define SAGAD_TESTS_LIB_RUN_TRIAL_STATE_H

#include "io/loop/agenda.h"
#include "tests/lib/run_trial.h"

struct pending { /* a request on its way */
    struct list_link link;
    enum asked kind;
    void *request;
};

struct trial_inside {
    struct agenda agenda;
    struct arena arena; /* for the whole trial */
    struct list pending, kept;
    bool holds[ASKED_COUNT];
    bool drained, stops;
};
extern struct trial_inside inside;

void trial_ask(enum asked kind, void *request);
void trial_answer_as(enum asked kind, void *request, enum err_code code); /* calls its done */
struct slice trial_keep(struct slice text);                               /* in the trial's memory */

/* run_trial_store.c */
void trial_store_begin(uint64_t shards);
void trial_store_answer(enum asked kind, void *request, enum err_code code);
bool trial_store_closes(void); /* everything is answered: it may end. True: it has */

#endif
