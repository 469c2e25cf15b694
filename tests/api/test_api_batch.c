/* Many starts in one request: each is answered as a single start would be. Tested over a fake engine and real
 * sockets. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "tests/api/api_host.h"
#include "tests/api/raw_client.h"
#include "tests/api/token_file.h"
#include "tests/lib/test.h"

#define BATCH "/v1/sagas/batch"

static struct api_host host;
static struct raw_answer answer;
static struct arena arena;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, 65536);
    host = api_host_start(&(struct api_options){.heartbeat_ms = 300});
    return 0;
}

static int teardown(void **state)
{
    arena_fini(&arena);
    return api_host_teardown(state);
}

static const struct raw_answer *ask(const char *target, const char *body)
{
    return raw_ask(host.port, "POST", target, "", body, &answer);
}

/* Returns the results of the last batch, and checks that there are `count`. */
static struct slice results(size_t count)
{
    struct err err = {0};

    expect(&answer, 200);
    assert_int_equal(json_check(slice_of(answer.body), &json_limits_default, &err), ERR_OK);
    struct slice items = arena_slice(&arena, json_member(slice_of(answer.body), "items"));

    assert_int_equal(json_count(items), count);
    return items;
}

static int64_t number(struct slice result, const char *member)
{
    int64_t value = -1;

    (void)json_i64(json_member(result, member), &value);
    return value;
}

static struct slice text(struct slice result, const char *pointer)
{
    return json_string(json_at(result, slice_of(pointer)), &arena);
}

/* --- the same answers --- */

/* Each fault is reported as for a single start, to the byte. */
static const char *const wrong[] = {
    "[]",
    "7",
    "null",
    "{}",
    "{\"saga\":7}",
    "{\"saga\":\"nothing\"}",
    "{\"saga\":\"quick\",\"inptu\":{}}",
    "{\"saga\":\"quick\",\"tags\":{\"a\":1}}",
    "{\"saga\":\"quick\",\"version\":0}",
    "{\"saga\":\"quick\",\"id\":\"\"}",
    "{\"saga\":\"quick\",\"saga\":\"slow\"}",
    "{\"saga\":\"quick\",\"input\":\"\\ud800\"}",
    "{\"saga\":\"quick\",\"input\":\"\xff\"}",
    "{\"saga\":\"quick\",\"input\":1e999}",
    "{\"saga\":\"quick\",\"deadline\":\"1h\"}",
    "{\"open\":false}",
    "{\"open\":true,\"deadline\":\"never\"}",
    "{\"open\":true,\"saga\":\"quick\"}",
    "{\"saga\":\"quick\",\"input\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
    "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}",
};

TEST(a_fault_of_one_start_is_told_as_to_a_single_start_and_harms_no_other)
{
    struct buffer body;
    struct json_walk walk;
    struct slice result;

    buffer_init(&body, 1 << 20);
    buffer_put_text(&body, " [ {\"saga\":\"quick\"}");
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        buffer_printf(&body, ", %s , {\"saga\":\"quick\",\"input\":%zu}", wrong[i], i);
    }
    buffer_put_text(&body, " ] \n");
    ask(BATCH, buffer_c(&body));
    buffer_fini(&body);
    walk = json_walk(results(2 * COUNT_OF(wrong) + 1));
    assert_true(json_next_element(&walk, &result));
    assert_int_equal(number(result, "status"), 201);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_true(json_next_element(&walk, &result));
        ask("/v1/sagas", wrong[i]);
        assert_true(answer.status >= 400);
        assert_int_equal(number(result, "status"), answer.status);
        assert_true(slice_is(json_member(result, "body"), answer.body));
        assert_true(json_next_element(&walk, &result));
        assert_int_equal(number(result, "status"), 201);
        assert_int_equal(number(json_member(result, "body"), "input"), i);
    }
}

/* A batch of a thousand starts would have a thousand long lists. */
TEST(a_batch_lists_the_first_five_faults_of_a_start)
{
    static const char many[] = "{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1}";

    ask("/v1/sagas", many);
    assert_true(json_count(json_member(slice_of(answer.body), "errors")) > 5);
    ask(BATCH, "[{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1}]");
    assert_int_equal(json_count(json_at(results(1), SLICE("/0/body/errors"))), 5);
}

TEST(each_start_gets_a_saga_with_its_location_in_the_order_of_the_batch)
{
    struct json_walk walk;
    struct slice result;
    struct buffer body;
    size_t count = 0;

    buffer_init(&body, 1 << 20);
    for (size_t i = 0; i < 300; i++) {
        buffer_printf(&body, "%c{\"saga\":\"%s\",\"id\":\"order-%zu\",\"input\":%zu}", i ? ',' : '[',
                      i % 2 ? "slow" : "quick", i, i);
    }
    buffer_put_text(&body, "]");
    ask(BATCH, buffer_c(&body));
    buffer_fini(&body);
    walk = json_walk(results(300));
    while (json_next_element(&walk, &result)) {
        struct slice saga = json_member(result, "body"), id = text(result, "/body/id");

        assert_int_equal(number(result, "status"), 201);
        assert_int_equal(number(saga, "input"), count);
        assert_true(slice_equal(text(result, "/location"), arena_printf(&arena, "/v1/sagas/%.*s", SLICE_ARG(id))));
        assert_true(slice_equal(text(result, "/body/business_id"), arena_printf(&arena, "order-%zu", count)));
        count++;
    }
}

TEST(the_same_id_is_the_same_saga_within_a_batch_and_across_batches)
{
    static const char body[] =
        "[{\"saga\":\"slow\",\"id\":\"b-1\",\"input\":{}},{\"saga\":\"slow\",\"id\":\"b-1\",\"input\":{}},"
        "{\"saga\":\"slow\",\"id\":\"b-1\",\"input\":{\"a\":1}}]";
    static const int64_t first[] = {201, 200, 422}, again[] = {200, 200, 422};
    struct slice id = SLICE_NONE;

    for (size_t round = 0; round < 2; round++) {
        ask(BATCH, body);
        struct slice items = results(3);

        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(number(json_element(items, i), "status"), round ? again[i] : first[i]);
        }
        assert_true(slice_equal(text(items, "/0/body/id"), text(items, "/1/body/id")));
        assert_true(!id.ptr || slice_equal(id, text(items, "/0/body/id")));
        id = text(items, "/0/body/id");
        assert_true(slice_is(text(items, "/2/body/type"), "urn:sagad:problem:other-input"));
    }
    expect(ask("/v1/sagas", "{\"saga\":\"slow\",\"id\":\"b-1\",\"input\":{}}"), 200, arena_text(&arena, id));
}

TEST(open_sagas_are_opened_in_batches_too)
{
    ask(BATCH, "[{\"open\":true,\"id\":\"o-1\"},{\"open\":true,\"id\":\"o-1\"},{\"saga\":\"quick\"}]");
    struct slice items = results(3);

    assert_int_equal(number(json_element(items, 0), "status"), 201);
    assert_int_equal(number(json_element(items, 1), "status"), 200);
    assert_int_equal(number(json_element(items, 2), "status"), 201);
    assert_true(slice_is(text(items, "/0/body/saga"), "~open"));
}

TEST(an_idempotency_key_stands_for_each_place_of_the_batch)
{
    static const char body[] = "[{\"saga\":\"quick\"},{\"saga\":\"quick\",\"id\":\"own\"},{\"saga\":\"quick\"}]";

    for (int round = 0; round < 2; round++) {
        raw_ask(host.port, "POST", BATCH, "Idempotency-Key: batch-7\r\n", body, &answer);
        struct slice items = results(3);

        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(number(json_element(items, i), "status"), round ? 200 : 201);
        }
        assert_true(slice_is(text(items, "/0/body/business_id"), "batch-7#0"));
        assert_true(slice_is(text(items, "/1/body/business_id"), "own"));
        assert_true(slice_is(text(items, "/2/body/business_id"), "batch-7#2"));
    }
    raw_ask(host.port, "POST", BATCH, text_of("Idempotency-Key: %0255d\r\n", 1), body, &answer);
    struct slice items = results(3);

    for (size_t i = 0; i < 3; i++) { /* with its place the key is too long, even for a saga with its own id */
        assert_int_equal(number(json_element(items, i), "status"), 422);
    }
}

/* --- the request as a whole --- */

static const struct {
    const char *name, *body;
    int status;
    const char *says;
} wholes[] = {
    {"no JSON", "[{\"saga\":\"quick\"},{\"saga\":]", 400, "nothing of it was started"},
    {"an end that is missing", "[{\"saga\":\"quick\"}", 400, "ends within an array"},
    {"a quote that is missing", "[{\"saga\":\"quick},{\"saga\":\"quick\"}]", 400, "malformed"},
    {"something behind it", "[{\"saga\":\"quick\"}],[]", 400, "follows the end"},
    {"an object", "{\"saga\":\"quick\"}", 422, "expected an array"},
    {"no body", "", 422, "expected an array"},
    {"text", "\"quick\"", 422, "expected an array"},
};

TEST(a_batch_that_is_no_array_is_refused_as_a_whole)
{
    for (size_t i = 0; i < COUNT_OF(wholes); i++) {
        ask(BATCH, wholes[i].body);
        if (answer.status != wholes[i].status || !raw_body_has(&answer, wholes[i].says)) {
            fail_msg("%s: got %d %s", wholes[i].name, answer.status, answer.body);
        }
        expect_head(&answer, "application/problem+json");
    }
    expect(ask(BATCH "?wait=5s", "[]"), 400);
}

TEST(a_batch_takes_so_many_starts_and_so_many_bytes)
{
    struct buffer body;

    ask(BATCH, "[]");
    (void)results(0);
    buffer_init(&body, 4 << 20);
    for (size_t i = 0; i < 1001; i++) {
        buffer_printf(&body, "%c{\"saga\":\"many\",\"id\":\"many-%zu\"}", i ? ',' : '[', i);
    }
    buffer_put_text(&body, "]");
    expect(ask(BATCH, buffer_c(&body)), 413, "1001 starts in one batch, at most 1000 are taken");
    buffer_reset(&body);
    buffer_printf(&body, "[{\"saga\":\"quick\",\"input\":\"%01100000d\"}]", 1);
    expect(ask(BATCH, buffer_c(&body)), 413);
    buffer_fini(&body);
}

TEST(under_an_overload_each_start_is_told_when_to_come_again)
{
    api_host_tell(&host, SIGHUP);
    ask(BATCH, "[{\"saga\":\"quick\"},{\"saga\":7},{\"saga\":\"quick\"}]");
    struct slice items = results(3);

    for (size_t i = 0; i < 3; i += 2) {
        struct slice result = json_element(items, i);

        assert_int_equal(number(result, "status"), 503);
        assert_int_equal(number(result, "retry_after"), 7); /* 6.5 s, rounded up to whole seconds */
        assert_true(slice_is(text(result, "/body/type"), "urn:sagad:problem:busy"));
    }
    assert_int_equal(number(json_element(items, 1), "status"), 422);
    api_host_tell(&host, SIGHUP);
    ask(BATCH, "[{\"saga\":\"quick\"}]");
    assert_int_equal(number(json_element(results(1), 0), "status"), 201);
}

TEST(each_start_of_a_batch_is_503_without_a_database)
{
    api_host_tell(&host, SIGUSR2);
    ask(BATCH, "[{\"saga\":\"quick\"},{\"saga\":\"quick\"}]");
    struct slice items = results(2);

    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(number(json_element(items, i), "status"), 503);
        assert_true(number(json_element(items, i), "retry_after") > 0);
    }
    api_host_tell(&host, SIGUSR2);
}

/* --- clients --- */

TEST(a_client_that_leaves_harms_nothing)
{
    static const char head[] = "POST " BATCH " HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s";
    struct buffer body, request;

    buffer_init(&body, 1 << 20);
    buffer_init(&request, 1 << 20);
    for (size_t i = 0; i < 1000; i++) {
        buffer_printf(&body, "%c{\"saga\":\"quick\",\"id\":\"left-%zu\"}", i ? ',' : '[', i);
    }
    buffer_put_text(&body, "]");
    buffer_printf(&request, head, body.len, buffer_c(&body));
    for (size_t round = 0; round < 20; round++) {
        int fd = raw_connect(host.port);

        raw_send(fd, request.ptr, round % 2 ? request.len : request.len / 2);
        (void)close(fd);
    }
    for (int tries = 0; tries < 50; tries++) { /* until a start that came whole is there */
        raw_ask(host.port, "GET", "/v1/sagas?business_id=left-999", "", NULL, &answer);
        if (raw_body_has(&answer, "left-999")) {
            break;
        }
        (void)usleep(100000);
    }
    expect_body(&answer, "left-999");
    ask(BATCH, "[{\"saga\":\"quick\",\"id\":\"left-0\"}]");
    assert_int_equal(number(json_element(results(1), 0), "status"), 200);
    buffer_fini(&request);
    buffer_fini(&body);
}

TEST(a_batch_is_of_the_namespace_of_its_token)
{
    static const struct test_token tokens[] = {{"an-agent", "default", "agent", NULL},
                                               {"other-agent", "other", "agent", NULL},
                                               {"a-reader", "default", "reader", NULL}};
    static const char body[] = "[{\"saga\":\"slow\",\"id\":\"n-1\"},{\"saga\":\"slow\",\"id\":\"n-2\"}]";
    static const struct {
        const char *token;
        int status;
        int64_t element;
    } asked[] = {{"an-agent", 200, 201},
                 {"an-agent", 200, 200},
                 {"other-agent", 200, 201},
                 {"a-reader", 403, 0},
                 {"nobody", 401, 0}};
    static char path[] = "/tmp/sagad-test-batch-XXXXXX";

    token_file_new(path, tokens, COUNT_OF(tokens));
    struct api_host guarded = api_host_start(&(struct api_options){.tokens_file = path});

    for (size_t i = 0; i < COUNT_OF(asked); i++) {
        expect(raw_ask(guarded.port, "POST", BATCH, text_of("Authorization: Bearer %s\r\n", asked[i].token), body,
                       &answer),
               asked[i].status);
        if (asked[i].element) {
            assert_int_equal(number(json_element(results(2), 1), "status"), asked[i].element);
        }
    }
    assert_int_equal(api_host_stop(&guarded), 0);
}

TEST_PROGRAM(setup, teardown)
