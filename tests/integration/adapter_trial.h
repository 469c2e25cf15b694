/*
 * Calls of adapters, on a loop that lives as long as a test: TEST_PROGRAM_EACH(trial_open, trial_close). Each call is
 * settled exactly once, and never inside begin().
 */
#ifndef SAGAD_TESTS_ADAPTER_TRIAL_H
#define SAGAD_TESTS_ADAPTER_TRIAL_H

#include <string.h>

#include "adapters/adapter.h"
#include "base/json.h"
#include "io/http/client.h"
#include "io/loop/loop.h"
#include "tests/lib/stub_server.h"
#include "tests/lib/test.h"
#include "tests/lib/texts.h"

#define KEY "0190f5e4-7f2c-8a51-9b7d-3f1c2a4b5d6e"
#define TRIAL_CALLS_MAX 4

static struct {
    struct adapter_host host; /* its loop is NULL when the trial is closed */
    struct arena arena;
    struct call *calls[TRIAL_CALLS_MAX], *call; /* `call` is the newest one */
    int settled[TRIAL_CALLS_MAX], call_count, settled_count;
    struct timer cancel, after;
    struct stub_server *stub;
} trial;

static inline int trial_close(void **state __attribute__((unused)))
{
    if (trial.host.loop) {
        adapter_host_close(&trial.host);
        http_client_free(trial.host.http);
        loop_free(trial.host.loop);
        arena_fini(&trial.arena);
    }
    if (trial.stub) {
        stub_server_free(trial.stub);
    }
    memset(&trial, 0, sizeof(trial));
    return 0;
}

static inline int trial_open(void **state __attribute__((unused)))
{
    arena_init(&trial.arena, 4096);
    trial.host.loop = loop_new();
    trial.host.http = http_client_new(trial.host.loop, 8, 8);
    trial.host.response_bytes_max = 10000;
    return 0;
}

/* For the next row of a table. */
static inline void trial_again(void)
{
    (void)trial_close(NULL);
    (void)trial_open(NULL);
}

/* Begins the server of the trial, which follows these acts. */
static inline void trial_serve(const struct stub_act *acts, size_t count)
{
    assert_null(trial.stub);
    trial.stub = stub_server_new(acts, count);
}

static inline void trial_on_after(struct timer *timer)
{
    (void)timer;
    loop_stop(trial.host.loop);
}

/* The loop runs on for a moment, so that a second settling would be noticed. */
static inline void trial_on_settled(struct call *call)
{
    int i = 0;

    while (i < trial.call_count && trial.calls[i] != call) {
        i++;
    }
    assert_true(i < trial.call_count);
    assert_int_equal(++trial.settled[i], 1);
    if (++trial.settled_count == trial.call_count) {
        timer_start(trial.host.loop, &trial.after, 20, trial_on_after);
    }
}

static inline void trial_on_cancel(struct timer *timer)
{
    (void)timer;
    for (int i = 0; i < trial.call_count; i++) {
        if (!trial.settled[i] && trial.calls[i]->adapter->cancel) {
            trial.calls[i]->adapter->cancel(trial.calls[i]);
            trial.calls[i]->adapter->cancel(trial.calls[i]);
        }
    }
}

static inline struct call *trial_call(const char *adapter, const char *settings)
{
    const struct adapter *found = adapter_find(slice_of(adapter));
    struct call *call = arena_alloc(&trial.arena, found->call_size);

    assert_true(trial.call_count < TRIAL_CALLS_MAX);
    trial.calls[trial.call_count++] = trial.call = call;
    call->adapter = found;
    call->host = &trial.host;
    call->arena = &trial.arena;
    call->settings = arena_slice(&trial.arena, slice_of(settings));
    call->args = SLICE("{\"amount\":5}");
    call->key = SLICE(KEY);
    call->send_key = true;
    call->timeout_ms = 5000;
    call->attempt = 1;
    call->settled = trial_on_settled;
    return call;
}

/* Begins the calls that were made since the last run, and waits until they are settled. */
static inline void trial_run(int64_t cancel_after_ms)
{
    if (cancel_after_ms > 0) {
        timer_start(trial.host.loop, &trial.cancel, cancel_after_ms, trial_on_cancel);
    }
    for (int i = 0; i < trial.call_count; i++) {
        trial.calls[i]->adapter->begin(trial.calls[i]);
    }
    assert_int_equal(trial.settled_count, 0);
    loop_run(trial.host.loop);
    timer_stop(trial.host.loop, &trial.cancel);
    assert_int_equal(trial.settled_count, trial.call_count);
    trial.call_count = trial.settled_count = 0;
    memset(trial.settled, 0, sizeof(trial.settled));
}

#endif
