/* Signals, approvals and pauses over HTTP: bodies, status, headers and rights. Tested over a fake engine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/api/api_host.h"
#include "tests/api/raw_client.h"
#include "tests/api/token_file.h"
#include "tests/lib/test.h"

#define HASH "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
#define NOBODY "019b3c52-0000-7000-8000-00000000ffff"

static const struct test_token tokens[] = {{"an-agent", "default", "agent", NULL},
                                           {"an-operator", "default", "operator", NULL}};

static struct api_host host, guarded;
static char tokens_path[] = "/tmp/sagad-test-waits-XXXXXX";
static struct raw_answer answer;

static int setup(void **state)
{
    int fd = mkstemp(tokens_path);

    (void)state;
    if (fd < 0) {
        return -1;
    }
    (void)close(fd);
    token_file_write(tokens_path, tokens, COUNT_OF(tokens));
    host = api_host_start(&(struct api_options){0});
    guarded = api_host_start(&(struct api_options){.tokens_file = tokens_path});
    return host.port && guarded.port ? 0 : -1;
}

static int teardown(void **state)
{
    int a = api_host_stop(&host), b = api_host_stop(&guarded);

    (void)state;
    (void)unlink(tokens_path);
    return a || b;
}

static void ask(const char *method, const char *target, const char *head, const char *body)
{
    raw_ask(host.port, method, target, head, body, &answer);
}

static bool body_has(const char *text)
{
    return strstr(answer.body, text) != NULL;
}

/* Returns a path of a new saga: "/v1/sagas/ID" and `rest`. */
static const char *path_of_new(const char *rest)
{
    static char path[160];
    const char *at;

    ask("POST", "/v1/sagas", "", "{\"saga\":\"slow\"}");
    assert_int_equal(answer.status, 201);
    at = strstr(answer.body, "{\"id\":\"");
    assert_non_null(at);
    (void)snprintf(path, sizeof(path), "/v1/sagas/%.36s%s", at + 7, rest);
    return path;
}

TEST(a_signal_is_created_once_under_its_key)
{
    const char *path = path_of_new("/signals/paid");

    ask("POST", path, "Idempotency-Key: bank-1\r\n", "{\"amount\": 1.50}");
    assert_int_equal(answer.status, 201);
    assert_true(body_has("\"created\":true"));
    ask("POST", path, "Idempotency-Key: bank-1\r\n", "{\"amount\": 1.50}");
    assert_int_equal(answer.status, 200);
    assert_true(body_has("\"created\":false"));
    ask("POST", path, "Idempotency-Key: bank-1\r\n", "{\"amount\": 2}");
    assert_int_equal(answer.status, 422);
    assert_true(body_has("urn:sagad:problem:other-input"));
}

TEST(each_signal_without_a_key_is_one_more)
{
    const char *path = path_of_new("/signals/paid");

    for (int i = 0; i < 2; i++) {
        ask("POST", path, "", "1");
        assert_int_equal(answer.status, 201);
    }
}

TEST(no_body_is_the_payload_null_and_any_json_will_do)
{
    static const char *const payloads[] = {"null", "7", "\"text\"", "[1,2]", "{\"a\":{}}", "false"};
    const char *path = path_of_new("/signals/paid");

    ask("POST", path, "Idempotency-Key: empty\r\n", "");
    assert_int_equal(answer.status, 201);
    ask("POST", path, "Idempotency-Key: empty\r\n", " null ");
    assert_int_equal(answer.status, 200); /* the same */
    ask("POST", path, "Idempotency-Key: empty\r\n", "{}");
    assert_int_equal(answer.status, 422); /* another payload under the same key */
    for (size_t i = 0; i < COUNT_OF(payloads); i++) {
        ask("POST", path, "", payloads[i]);
        assert_int_equal(answer.status, 201);
    }
    ask("POST", path, "", "{\"a\":1,\"a\":2}");
    assert_int_equal(answer.status, 400);
}

TEST(a_signal_that_cannot_be_says_why)
{
    const char *path = path_of_new("/signals/payed");

    ask("POST", path, "", "1");
    assert_int_equal(answer.status, 422);
    assert_true(body_has("one waits for paid"));
    ask("POST", path, "Idempotency-Key: a\r\nIdempotency-Key: b\r\n", "1");
    assert_int_equal(answer.status, 422);
    assert_true(body_has("stands there 2 times"));
    ask("POST", "/v1/sagas/" NOBODY "/signals/paid", "", "1");
    assert_int_equal(answer.status, 404);
    ask("POST", "/v1/sagas/x/signals/paid", "", "1");
    assert_int_equal(answer.status, 404);
    ask("GET", path, "", NULL);
    assert_int_equal(answer.status, 405);
    ask("POST", path_of_new("/signals/paid?now=1"), "", "1");
    assert_int_equal(answer.status, 400);
}

TEST(a_pause_and_a_resumption_need_a_note)
{
    char pause[160], resume[160];

    (void)snprintf(pause, sizeof(pause), "%s", path_of_new("/pause"));
    (void)snprintf(resume, sizeof(resume), "%.*s/resume", (int)(strlen(pause) - strlen("/pause")), pause);
    ask("POST", resume, "", "{\"note\":\"x\"}");
    assert_int_equal(answer.status, 409);
    ask("POST", pause, "", "");
    assert_int_equal(answer.status, 422);
    ask("POST", pause, "", "{\"note\":\"the bank asked\"}");
    assert_int_equal(answer.status, 200);
    assert_true(body_has("\"status\":\"paused\""));
    ask("POST", pause, "", "{\"note\":\"again\"}");
    assert_int_equal(answer.status, 200); /* the state is already as wanted */
    ask("POST", pause, "", "{\"note\":\"  \"}");
    assert_int_equal(answer.status, 422);
    ask("POST", pause, "", "{\"reason\":\"x\"}");
    assert_int_equal(answer.status, 422);
    ask("POST", resume, "", "{}");
    assert_int_equal(answer.status, 422);
    ask("POST", resume, "", "{\"note\":\"x\"}");
    assert_int_equal(answer.status, 200);
    assert_true(body_has("\"status\":\"running\""));
}

TEST(approvals_are_listed_and_shown)
{
    ask("GET", "/v1/approvals?status=open", "", NULL);
    assert_int_equal(answer.status, 200);
    assert_true(body_has("\"n\":1,") && !body_has("\"n\":2,"));
    ask("GET", "/v1/approvals", "", NULL);
    assert_true(body_has("\"n\":1,") && body_has("\"n\":2,"));
    ask("GET", "/v1/approvals?status=closed", "", NULL);
    assert_int_equal(answer.status, 400);
    ask("GET", "/v1/approvals?limit=0", "", NULL);
    assert_int_equal(answer.status, 400);
    ask("GET", "/v1/approvals/2", "", NULL);
    assert_true(body_has("\"status\":\"approved\""));
    ask("GET", "/v1/approvals/99", "", NULL);
    assert_int_equal(answer.status, 404);
    ask("GET", "/v1/approvals/first", "", NULL);
    assert_int_equal(answer.status, 404);
}

TEST(a_decision_that_is_wrong_names_every_place)
{
    ask("POST", "/v1/approvals/1", "", "{\"decision\":\"maybe\",\"note\":\" \",\"hash\":\"abc\",\"colour\":1}");
    assert_int_equal(answer.status, 422);
    assert_true(body_has("/decision") && body_has("/note") && body_has("/hash") && body_has("/colour"));
    ask("POST", "/v1/approvals/1", "", "");
    assert_int_equal(answer.status, 422);
    assert_true(body_has("\\\"decision\\\" is missing"));
    ask("POST", "/v1/approvals/1", "", "{\"decision\":\"approve\"}");
    assert_int_equal(answer.status, 422);
    assert_true(body_has("\\\"note\\\" is missing"));
    ask("POST", "/v1/approvals/99", "", "{\"decision\":\"approve\",\"note\":\"seen\"}");
    assert_int_equal(answer.status, 404);
}

TEST(an_answer_counts_for_what_was_seen_and_the_first_one_holds)
{
    ask("POST", "/v1/approvals/1", "",
        "{\"decision\":\"approve\",\"note\":\"seen\",\"hash\":"
        "\"0000000000000000000000000000000000000000000000000000000000000000\"}");
    assert_int_equal(answer.status, 409);
    assert_true(body_has("urn:sagad:problem:conflict"));
    ask("POST", "/v1/approvals/1", "", "{\"decision\":\"refuse\",\"hash\":\"" HASH "\",\"note\":\"too much\"}");
    assert_int_equal(answer.status, 200);
    assert_true(body_has("\"status\":\"refused\""));
    ask("POST", "/v1/approvals/1", "", "{\"decision\":\"approve\",\"note\":\"seen\"}");
    assert_int_equal(answer.status, 409);
    assert_true(body_has("urn:sagad:problem:already-decided"));
}

/* The engine gets the role of the token, and the approval says which roles may decide. */
TEST(an_approval_says_who_may_decide)
{
    static const char body[] = "{\"decision\":\"approve\",\"note\":\"seen\"}";

    raw_ask(guarded.port, "POST", "/v1/approvals/3", "Authorization: Bearer an-agent\r\n", body, &answer);
    assert_int_equal(answer.status, 403);
    assert_true(body_has("for the role operator"));
    raw_ask(guarded.port, "POST", "/v1/approvals/3", "Authorization: Bearer an-operator\r\n", body, &answer);
    assert_int_equal(answer.status, 200);
    raw_ask(guarded.port, "POST", "/v1/approvals/1", "Authorization: Bearer an-agent\r\n", body, &answer);
    assert_int_equal(answer.status, 200);
}

TEST_PROGRAM(setup, teardown)
