/* Locks on business keys: one holder at a time, in the order in which sagas ask, released with the end of their saga
 * and in no other way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "store/store_state.h"
#include "tests/integration/store_host.h"
#include "tests/lib/test.h"

static struct host host;
static struct store *store, *other; /* two engines, of which the second only takes */
static struct arena arena;

struct taking {
    struct lock_take take;
    bool done;
};

static void on_taken(struct store_read *read)
{
    container_of(container_of(read, struct lock_take, read), struct taking, take)->done = true;
}

static bool is_taken(void *context)
{
    return ((struct taking *)context)->done;
}

static void take_begin(struct taking *taking, struct store *from, struct saga_id saga, const char *key)
{
    *taking = (struct taking){.take = {.read = {.arena = &arena, .done = on_taken},
                                       .namespace = SLICE("default"),
                                       .key = slice_of(key),
                                       .saga = saga,
                                       .shard = saga_id_shard(saga)}};
    store_lock_take(from, &taking->take);
    assert_false(taking->done);
}

static bool takes(struct saga_id saga, const char *key)
{
    struct taking taking;

    take_begin(&taking, store, saga, key);
    host_run_until(&host, is_taken, &taking);
    assert_int_equal(taking.take.read.code, ERR_OK);
    return taking.take.held;
}

static bool takes_or_fails(struct saga_id saga, const char *key)
{
    struct taking taking = {.take = {.read = {.arena = &arena, .done = on_taken},
                                     .namespace = SLICE("default"),
                                     .key = slice_of(key),
                                     .saga = saga,
                                     .shard = saga_id_shard(saga),
                                     .fails = true}};

    store_lock_take(store, &taking.take);
    host_run_until(&host, is_taken, &taking);
    assert_int_equal(taking.take.read.code, ERR_OK);
    return taking.take.held;
}

static struct saga_id start(uint32_t shard)
{
    struct turn turn = {0};
    struct saga_id id = host_saga(shard);

    turn_start(&turn, id, 0, NULL);
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    return id;
}

static void ending(struct turn *turn, struct saga_id id)
{
    turn_next(turn, id, 0, 2, "saga.completed");
    turn->append.status_changed = turn->append.ended = turn->append.releases_locks = true;
    turn->append.status = SAGA_COMPLETED;
}

static void end(struct saga_id id)
{
    struct turn turn = {0};

    ending(&turn, id);
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);
}

static long told(struct saga_id id)
{
    return host_number(
        &host,
        "select count(*) from sagad.inbox where shard = sagad.shard_of('%s') and saga = '%s' and kind = 'locked'",
        id_text(id), id_text(id));
}

static long in_line(const char *key)
{
    return host_number(&host, "select count(*) from sagad.lock where key = '%s'", key);
}

/* --- */

TEST(the_first_saga_holds_the_lock_and_the_next_is_told)
{
    struct saga_id a = start(1), b = start(2), c = start(3);

    assert_true(takes(a, "first"));
    assert_false(takes(b, "first"));
    assert_false(takes(c, "first"));
    assert_true(takes(a, "first")); /* asking again changes nothing */
    assert_false(takes(b, "first"));
    assert_int_equal(in_line("first"), 3);
    end(a);
    assert_int_equal(told(b), 1);
    assert_int_equal(told(c), 0);
    assert_string_equal(
        host_text(&host,
                  "select shard, payload::text = '', convert_from(payload, 'UTF8')::json ->> 'namespace',"
                  " convert_from(payload, 'UTF8')::json ->> 'key', substr(id::text, 15, 1), sagad.id_floor(now() - "
                  "interval '1 minute') < id,"
                  " sagad.id_floor(now() + interval '1 minute') > id from sagad.inbox where saga = '%s'",
                  id_text(b)),
        "2|f|default|first|7|t|t\n");
    assert_true(takes(b, "first"));
    assert_false(takes(c, "first"));
    end(b);
    assert_int_equal(told(c), 1);
    end(c);
    assert_int_equal(in_line("first"), 0);
}

TEST(a_saga_that_leaves_the_line_tells_nobody)
{
    struct saga_id a = start(1), b = start(2), c = start(3);

    assert_true(takes(a, "line"));
    assert_false(takes(b, "line"));
    assert_false(takes(c, "line"));
    end(b);
    assert_int_equal(told(b) + told(c), 0);
    assert_int_equal(in_line("line"), 2);
    end(a);
    assert_int_equal(told(b), 0);
    assert_int_equal(told(c), 1);
    end(c);
}

TEST(a_saga_that_does_not_wait_stands_in_no_line)
{
    struct saga_id a = start(1), b = start(2);

    assert_true(takes_or_fails(a, "now"));
    assert_false(takes_or_fails(b, "now"));
    assert_int_equal(in_line("now"), 1);
    end(a);
    assert_int_equal(told(b), 0);
    assert_true(takes_or_fails(b, "now"));
    end(b);
}

TEST(the_same_key_in_another_namespace_is_another_lock)
{
    struct saga_id a = start(1), b = start(2);
    struct taking taking = {.take = {.read = {.arena = &arena, .done = on_taken},
                                     .namespace = SLICE("elsewhere"),
                                     .key = SLICE("tenant"),
                                     .saga = b,
                                     .shard = 2}};

    assert_true(takes(a, "tenant"));
    store_lock_take(store, &taking.take);
    host_run_until(&host, is_taken, &taking);
    assert_true(taking.take.held);
    end(a);
    end(b);
    assert_int_equal(in_line("tenant"), 0);
}

TEST(the_line_goes_on_behind_two_sagas_that_end_together)
{
    struct saga_id a = start(1), b = start(2), c = start(3);
    struct turn first = {0}, second = {0};

    assert_true(takes(a, "both"));
    assert_false(takes(b, "both"));
    assert_false(takes(c, "both"));
    ending(&first, a);
    ending(&second, b);
    turn_submit(store, &first);
    turn_submit(store, &second);
    host_run_until(&host, turn_is_done, &first);
    host_run_until(&host, turn_is_done, &second);
    assert_int_equal(told(b), 0);
    assert_int_equal(told(c), 1);
    end(c);
}

TEST(an_end_that_is_not_committed_releases_nothing)
{
    struct saga_id a = start(1), b = start(9);
    struct turn turn = {0};

    assert_true(takes(a, "kept"));
    assert_false(takes(b, "kept"));
    ending(&turn, a);
    turn.append.first_seq = 1; /* this place in the log is taken */
    assert_int_equal(host_append(&host, store, &turn), ERR_FENCED);
    assert_int_equal(in_line("kept"), 2);
    assert_int_equal(told(b), 0);
    ending(&turn, a);
    turn.append.epoch = 7;
    assert_int_equal(host_append(&host, store, &turn), ERR_FENCED);
    host_sql(&host, "begin; select sagad.lock_release(array[1::int2], array['%s'::uuid]); rollback", id_text(a));
    assert_true(takes(a, "kept"));
    assert_int_equal(told(b), 0);
    end(a);
    assert_int_equal(told(b), 1);
    end(b);
}

TEST(a_saga_that_has_ended_or_never_was_takes_nothing)
{
    struct saga_id ended = start(1), never = host_saga(2);
    struct taking taking;

    end(ended);
    take_begin(&taking, store, ended, "dead");
    host_run_until(&host, is_taken, &taking);
    assert_int_equal(taking.take.read.code, ERR_NOT_FOUND);
    assert_false(taking.take.held);
    take_begin(&taking, store, never, "dead");
    host_run_until(&host, is_taken, &taking);
    assert_int_equal(taking.take.read.code, ERR_NOT_FOUND);
    assert_int_equal(in_line("dead"), 0);
}

TEST(exactly_one_of_many_sagas_that_come_at_once_holds_the_lock)
{
    enum { ROUNDS = 40, TAKERS = 12 };
    struct saga_id ids[TAKERS];
    struct taking takings[TAKERS];

    for (int i = 0; i < TAKERS; i++) {
        ids[i] = start((uint32_t)i);
    }
    for (int round = 0; round < ROUNDS; round++) {
        char key[32];
        int holders = 0;

        (void)snprintf(key, sizeof(key), "crowd-%d", round);
        for (int i = 0; i < TAKERS; i++) {
            take_begin(&takings[i], i % 2 ? store : other, ids[i], key); /* two engines with two connections each */
        }
        for (int i = 0; i < TAKERS; i++) {
            host_run_until(&host, is_taken, &takings[i]);
            assert_int_equal(takings[i].take.read.code, ERR_OK);
            holders += takings[i].take.held;
        }
        assert_int_equal(holders, 1);
    }
    assert_int_equal(host_number(&host, "select count(*) from sagad.lock where key like 'crowd-%%'"), ROUNDS * TAKERS);
    assert_int_equal(host_number(&host,
                                 "select count(*) from (select 1 from sagad.lock where key like 'crowd-%%' group by key"
                                 " having count(distinct ticket) <> %d or max(ticket) <> %d) as odd",
                                 TAKERS, TAKERS),
                     0);
    for (int i = 0; i < TAKERS; i++) {
        end(ids[i]);
    }
    assert_int_equal(host_number(&host, "select count(*) from sagad.lock"), 0);
}

TEST(a_request_of_a_saga_that_ends_is_left_in_no_line)
{
    enum { ROUNDS = 60 };

    for (int round = 0; round < ROUNDS; round++) {
        struct saga_id id = start((uint32_t)round % 32);
        struct turn turn = {0};
        struct taking taking;

        ending(&turn, id);
        if (round % 3 == 0) {
            turn_submit(store, &turn);
        }
        take_begin(&taking, other, id, "late");
        if (round % 3 == 1) {
            host_run_ms(&host, 1);
        }
        if (round % 3 != 0) {
            turn_submit(store, &turn);
        }
        host_run_until(&host, turn_is_done, &turn);
        host_run_until(&host, is_taken, &taking);
        assert_int_equal(turn.append.code, ERR_OK);
        assert_int_equal(in_line("late"), 0);
    }
}

/* --- a crowd with several keys each, that go through the inbox as an engine would --- */

enum { SAGAS = 120, KEYS = 6 };

static const char *const names[KEYS] = {"k0", "k1", "k2", "k3", "k4", "k5"};

struct worker {
    struct saga_id id;
    struct taking taking;
    struct turn turn;
    int wanted[3], wanted_count, at;
};

static struct worker workers[SAGAS];
static int holder[KEYS];
static int ended;

static void worker_asks(struct worker *worker);

static void worker_ended(struct turn *turn)
{
    assert_int_equal(turn->append.code, ERR_OK);
    ended++;
}

static void worker_holds(struct worker *worker)
{
    int key = worker->wanted[worker->at];

    assert_int_equal(holder[key], -1); /* the holder before has released the lock */
    holder[key] = (int)(worker - workers);
    worker->at++;
    if (worker->at < worker->wanted_count) {
        worker_asks(worker);
        return;
    }
    for (int i = 0; i < worker->wanted_count; i++) {
        assert_int_equal(holder[worker->wanted[i]], worker - workers);
        holder[worker->wanted[i]] =
            -1; /* before the append leaves, because others may see its commit before we hear of it */
    }
    worker->turn.after = worker_ended;
    ending(&worker->turn, worker->id);
    turn_submit(store, &worker->turn);
}

static void worker_answered(struct store_read *read)
{
    struct worker *worker = container_of(container_of(container_of(read, struct lock_take, read), struct taking, take),
                                         struct worker, taking);

    assert_int_equal(read->code, ERR_OK);
    worker->taking.done = true;
    if (worker->taking.take.held) {
        worker_holds(worker);
    }
}

static void worker_asks(struct worker *worker)
{
    worker->taking = (struct taking){.take = {.read = {.arena = &arena, .done = worker_answered},
                                              .namespace = SLICE("default"),
                                              .key = slice_of(names[worker->wanted[worker->at]]),
                                              .saga = worker->id,
                                              .shard = saga_id_shard(worker->id)}};
    store_lock_take((worker - workers) % 2 ? store : other, &worker->taking.take);
}

static void on_told(const struct inbox_row *rows, size_t count, void *context)
{
    (void)context;
    for (size_t i = 0; i < count; i++) {
        for (int w = 0; w < SAGAS; w++) {
            if (uuid_equal(&workers[w].id.uuid, &rows[i].saga.uuid)) {
                assert_true(slice_is(rows[i].kind, "locked"));
                if (workers[w].taking.done && workers[w].at < workers[w].wanted_count) {
                    worker_asks(
                        &workers[w]); /* as a restarted engine would: it asks, and is told that it holds the lock */
                }
            }
        }
        store_inbox_drop(store, rows[i].shard, &rows[i].id);
    }
}

static bool all_ended(void *context)
{
    (void)context;
    return ended == SAGAS;
}

TEST(a_crowd_with_several_keys_each_comes_through_one_after_the_other)
{
    host_sql(&host, "delete from sagad.inbox");
    for (int k = 0; k < KEYS; k++) {
        holder[k] = -1;
    }
    for (int w = 0; w < SAGAS; w++) {
        workers[w].id = start((uint32_t)w % SHARD_COUNT);
        for (int k = 0; k < KEYS && workers[w].wanted_count < 3; k++) {
            if ((w * 7 + k * 5 + w / 6) % 3 == 0 || (k == KEYS - 1 && workers[w].wanted_count == 0)) {
                workers[w].wanted[workers[w].wanted_count++] = k; /* in order */
            }
        }
    }
    store_inbox_watch(store, UINT64_MAX, on_told, NULL);
    for (int w = 0; w < SAGAS; w++) {
        worker_asks(&workers[w]);
    }
    host_run_until(&host, all_ended, NULL);
    assert_int_equal(host_number(&host, "select count(*) from sagad.lock"), 0);
    store_inbox_watch(store, 0, on_told, NULL);
}

static int setup(void **state)
{
    (void)state;
    store = host_begin(&host, NULL, &arena);
    other = host_store(&host, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    host_store_close(&host, other);
    host_end(&host, store, &arena);
    return 0;
}

TEST_PROGRAM(setup, teardown)
