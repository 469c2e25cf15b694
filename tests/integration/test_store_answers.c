/* Answers to inputs that another engine consumed. They reach only the engine that waits, they are gone once read, and
 * nothing is asked while nobody waits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store_state.h"
#include "tests/integration/store_host.h"
#include "tests/lib/test.h"

enum { MANY = 500 };

static struct host host;
static struct store *owner, *taker; /* two engines on one database */

struct asked {
    struct answer_wait wait;
    int count;
    char body[80];
};

struct said {
    struct answer_put put;
    int done;
    char body[80];
};

static void on_answer(struct answer_wait *wait, struct slice body)
{
    struct asked *asked = container_of(wait, struct asked, wait);

    asked->count++;
    assert_true(body.len < sizeof(asked->body));
    memcpy(asked->body, body.ptr, body.len);
}

static bool is_answered(void *context)
{
    return ((struct asked *)context)->count > 0;
}

static void on_said(struct answer_put *put)
{
    container_of(put, struct said, put)->done++;
}

static bool is_said(void *context)
{
    return ((struct said *)context)->done > 0;
}

static void ask(struct asked *asked, uint32_t shard)
{
    asked->wait = (struct answer_wait){.shard = shard, .input = uuid_v7(1), .on_answer = on_answer};
    store_answer_wait(taker, &asked->wait);
}

static void say(struct said *said, uint32_t shard, const struct uuid *input, const char *body, bool drop_input)
{
    (void)snprintf(said->body, sizeof(said->body), "%s", body);
    said->put = (struct answer_put){
        .shard = shard, .input = *input, .body = slice_of(said->body), .drop_input = drop_input, .done = on_said};
    store_answer_put(owner, &said->put);
    assert_int_equal(said->done, 0); /* never inside the call */
}

static long answers_left(void)
{
    return host_number(&host, "select count(*) from sagad.answer");
}

TEST(an_answer_reaches_the_engine_that_waits_and_is_gone)
{
    struct asked asked = {0}, other = {0};
    struct said said = {0};

    ask(&asked, 3);
    ask(&other, 3);
    say(&said, 3, &asked.wait.input, "{\"code\":\"ok\"}", false);
    host_run_until(&host, is_answered, &asked);
    assert_string_equal(asked.body, "{\"code\":\"ok\"}");
    host_run_until(&host, is_said, &said);
    assert_int_equal(said.put.code, ERR_OK);
    assert_int_equal(asked.count, 1);
    assert_int_equal(other.count, 0);
    assert_int_equal(answers_left(), 0);
    store_answer_stop(taker, &other.wait);
    store_answer_stop(taker, &asked.wait); /* a second time does no harm */
}

TEST(a_refusal_takes_the_input_away_with_its_answer)
{
    struct asked asked = {0};
    struct said said = {0};
    char text[UUID_TEXT_BYTES];

    ask(&asked, 4);
    uuid_text(&asked.wait.input, text);
    host_sql(
        &host,
        "insert into sagad.inbox (shard, id, saga, kind, payload) values (4, '%s', gen_random_uuid(), 'call', '{}'),"
        " (4, gen_random_uuid(), gen_random_uuid(), 'call', '{}')",
        text);
    say(&said, 4, &asked.wait.input, "{\"code\":\"invalid\"}", true);
    host_run_until(&host, is_answered, &asked);
    host_run_until(&host, is_said, &said); /* the answer may be read before its writer hears of the commit */
    assert_int_equal(host_number(&host, "select count(*) from sagad.inbox"), 1);
    assert_int_equal(host_number(&host, "select count(*) from sagad.inbox where id = '%s'", text), 0);
    host_sql(&host, "delete from sagad.inbox");
}

TEST(an_answer_that_was_there_before_somebody_waited_is_found)
{
    struct asked asked = {0};
    struct said said = {0};
    struct uuid input = uuid_v7(1);

    say(&said, 5, &input, "{}", false);
    host_run_until(&host, is_said, &said);
    asked.wait = (struct answer_wait){.shard = 5, .input = input, .on_answer = on_answer};
    store_answer_wait(taker, &asked.wait);
    host_run_until(&host, is_answered, &asked);
    assert_int_equal(answers_left(), 0);
}

TEST(the_first_answer_to_an_input_stands)
{
    struct asked asked = {0};
    struct said first = {0}, second = {0};
    struct uuid input = uuid_v7(1);

    say(&first, 6, &input, "{\"n\":1}", false);
    host_run_until(&host, is_said, &first);
    say(&second, 6, &input, "{\"n\":2}", false);
    host_run_until(&host, is_said, &second);
    assert_int_equal(second.put.code, ERR_OK);
    asked.wait = (struct answer_wait){.shard = 6, .input = input, .on_answer = on_answer};
    store_answer_wait(taker, &asked.wait);
    host_run_until(&host, is_answered, &asked);
    assert_string_equal(asked.body, "{\"n\":1}");
}

struct crowd {
    struct asked *asked;
    struct said *said;
};

static bool all_answered(void *context)
{
    const struct crowd *crowd = context;

    for (int i = 0; i < MANY; i++) {
        if (crowd->asked[i].count == 0) {
            return false;
        }
    }
    return true;
}

TEST(many_share_their_statements_and_each_gets_its_own)
{
    struct crowd crowd = {.asked = calloc(MANY, sizeof(*crowd.asked)), .said = calloc(MANY, sizeof(*crowd.said))};
    char body[40];

    for (int i = 0; i < MANY; i++) {
        ask(&crowd.asked[i], (uint32_t)i % SHARD_COUNT);
    }
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(body, sizeof(body), "{\"n\":%d}", i);
        say(&crowd.said[i], (uint32_t)i % SHARD_COUNT, &crowd.asked[i].wait.input, body, false);
    }
    host_run_until(&host, all_answered, &crowd);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(body, sizeof(body), "{\"n\":%d}", i);
        assert_string_equal(crowd.asked[i].body, body);
        assert_int_equal(crowd.asked[i].count, 1);
        host_run_until(&host, is_said, &crowd.said[i]);
    }
    assert_int_equal(answers_left(), 0);
    free(crowd.asked);
    free(crowd.said);
}

TEST(answers_outlive_lost_connections)
{
    struct asked asked = {0};
    struct said said = {0};

    ask(&asked, 7);
    host_sql(&host, "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'sagad/%%'");
    say(&said, 7, &asked.wait.input, "{\"late\":true}", false);
    host_run_until(&host, is_answered, &asked);
    assert_string_equal(asked.body, "{\"late\":true}");
    host_run_until(&host, is_said, &said);
    assert_int_equal(said.put.code, ERR_OK);
}

TEST(the_store_asks_for_no_answers_while_nobody_waits)
{
    struct asked asked = {0};

    ask(&asked, 8);
    assert_true(timer_running(&taker->answers.poll));
    store_answer_stop(taker, &asked.wait);
    host_run_ms(&host, 1500);
    assert_false(timer_running(&taker->answers.poll));
    assert_false(taker->answers.taking);
}

static bool is_swept(void *context)
{
    (void)context;
    return answers_left() == 1;
}

TEST(answers_that_nobody_fetched_are_swept_once_by_the_engine_that_wrote_answers)
{
    struct said said = {0};
    struct uuid input = uuid_v7(1);

    host_sql(&host, "insert into sagad.answer (shard, input, at, body) select 9, gen_random_uuid(), now() - interval "
                    "'11 minutes', '{}' from generate_series(1, 5)");
    say(&said, 9, &input, "{}", false);
    host_run_until(&host, is_said, &said);
    assert_true(timer_running(&owner->answers.sweep));
    timer_start(host.loop, &owner->answers.sweep, 0, owner->answers.sweep.fire); /* as if eleven minutes had passed */
    for (int i = 0; i < 50 && !is_swept(NULL); i++) {
        host_run_ms(&host, 100);
    }
    assert_true(is_swept(NULL));
    assert_false(timer_running(&owner->answers.sweep));
    host_sql(&host, "delete from sagad.answer");
}

/* --- */

static int setup(void **state)
{
    (void)state;
    host_start(&host, NULL);
    owner = host_store(&host, NULL);
    taker = host_store(&host, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    host_store_close(&host, taker);
    host_store_close(&host, owner);
    host_stop(&host);
    return 0;
}

TEST_PROGRAM(setup, teardown)
