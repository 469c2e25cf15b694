/*
 * A receiver of notifications, behind the engine's HTTP client. It refuses, is slow, is not there, or loses its answer;
 * what it has taken it keeps. The judge is told of each event that comes.
 */
#ifndef SAGAD_TESTS_SIM_HOOK_H
#define SAGAD_TESTS_SIM_HOOK_H

#include "io/http/client.h"

typedef void hook_judge(struct slice message_id, struct slice body, bool is_kept);
/* A run begins. `told` NULL: nobody is notified in it. */
void hook_begin(hook_judge *told);
bool hook_is_wanted(void); /* the settings of the engines of this run name it */
bool hook_is_known(void);  /* its place in the feed is committed: it gets every event from then on */

/* http_send() and http_cancel() of the engines. */
void hook_send(struct http_request *request);
void hook_cancel(struct http_request *request);

#endif
