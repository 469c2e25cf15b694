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
    (void)state;
    token_file_new(tokens_path, tokens, COUNT_OF(tokens));
    host = api_host_start(&(struct api_options){0});
    guarded = api_host_start(&(struct api_options){.tokens_file = tokens_path});
    return 0;
}

static const struct raw_answer *ask(const char *method, const char *target, const char *head, const char *body)
{
    return raw_ask(host.port, method, target, head, body, &answer);
}

/* Returns a path of a new saga: "/v1/sagas/ID" and `rest`. */
static const char *path_of_new(const char *rest)
{
    char id[37];

    expect(ask("POST", "/v1/sagas", "", "{\"saga\":\"slow\"}"), 201);
    answer_take(&answer, "{\"id\":\"", 36, id);
    return text_of("/v1/sagas/%s%s", id, rest);
}

TEST(a_signal_is_created_once_under_its_key)
{
    const char *path = path_of_new("/signals/paid");

    expect(ask("POST", path, "Idempotency-Key: bank-1\r\n", "{\"amount\": 1.50}"), 201, "\"created\":true");
    expect(ask("POST", path, "Idempotency-Key: bank-1\r\n", "{\"amount\": 1.50}"), 200, "\"created\":false");
    expect(ask("POST", path, "Idempotency-Key: bank-1\r\n", "{\"amount\": 2}"), 422, "urn:sagad:problem:other-input");
}

TEST(each_signal_without_a_key_is_one_more)
{
    const char *path = path_of_new("/signals/paid");

    for (int i = 0; i < 2; i++) {
        expect(ask("POST", path, "", "1"), 201);
    }
}

TEST(no_body_is_the_payload_null_and_any_json_will_do)
{
    static const char *const payloads[] = {"null", "7", "\"text\"", "[1,2]", "{\"a\":{}}", "false"};
    const char *path = path_of_new("/signals/paid");

    expect(ask("POST", path, "Idempotency-Key: empty\r\n", ""), 201);
    expect(ask("POST", path, "Idempotency-Key: empty\r\n", " null "), 200); /* the same */
    expect(ask("POST", path, "Idempotency-Key: empty\r\n", "{}"), 422);     /* another payload under the same key */
    for (size_t i = 0; i < COUNT_OF(payloads); i++) {
        expect(ask("POST", path, "", payloads[i]), 201);
    }
    expect(ask("POST", path, "", "{\"a\":1,\"a\":2}"), 400);
}

TEST(a_signal_that_cannot_be_says_why)
{
    const char *path = path_of_new("/signals/payed");

    expect(ask("POST", path, "", "1"), 422, "one waits for paid");
    expect(ask("POST", path, "Idempotency-Key: a\r\nIdempotency-Key: b\r\n", "1"), 422, "stands there 2 times");
    expect(ask("POST", "/v1/sagas/" NOBODY "/signals/paid", "", "1"), 404);
    expect(ask("POST", "/v1/sagas/x/signals/paid", "", "1"), 404);
    expect(ask("GET", path, "", NULL), 405);
    expect(ask("POST", path_of_new("/signals/paid?now=1"), "", "1"), 400);
}

TEST(a_pause_and_a_resumption_need_a_note)
{
    char pause[160], resume[160];

    (void)snprintf(pause, sizeof(pause), "%s", path_of_new("/pause"));
    (void)snprintf(resume, sizeof(resume), "%.*s/resume", (int)(strlen(pause) - strlen("/pause")), pause);
    expect(ask("POST", resume, "", "{\"note\":\"x\"}"), 409);
    expect(ask("POST", pause, "", ""), 422);
    expect(ask("POST", pause, "", "{\"note\":\"the bank asked\"}"), 200, "\"status\":\"paused\"");
    expect(ask("POST", pause, "", "{\"note\":\"again\"}"), 200); /* the state is already as wanted */
    expect(ask("POST", pause, "", "{\"note\":\"  \"}"), 422);
    expect(ask("POST", pause, "", "{\"reason\":\"x\"}"), 422);
    expect(ask("POST", resume, "", "{}"), 422);
    expect(ask("POST", resume, "", "{\"note\":\"x\"}"), 200, "\"status\":\"running\"");
}

TEST(approvals_are_listed_and_shown)
{
    expect(ask("GET", "/v1/approvals?status=open", "", NULL), 200, "\"n\":1,");
    expect_none(&answer, "\"n\":2,");
    expect(ask("GET", "/v1/approvals", "", NULL), 200, "\"n\":1,", "\"n\":2,");
    expect(ask("GET", "/v1/approvals?status=closed", "", NULL), 400);
    expect(ask("GET", "/v1/approvals?limit=0", "", NULL), 400);
    expect(ask("GET", "/v1/approvals/2", "", NULL), 200, "\"status\":\"approved\"");
    expect(ask("GET", "/v1/approvals/99", "", NULL), 404);
    expect(ask("GET", "/v1/approvals/first", "", NULL), 404);
}

TEST(a_decision_that_is_wrong_names_every_place)
{
    expect(ask("POST", "/v1/approvals/1", "", "{\"decision\":\"maybe\",\"note\":\" \",\"hash\":\"abc\",\"colour\":1}"),
           422, "/decision", "/note", "/hash", "/colour");
    expect(ask("POST", "/v1/approvals/1", "", ""), 422, "\\\"decision\\\" is missing");
    expect(ask("POST", "/v1/approvals/1", "", "{\"decision\":\"approve\"}"), 422, "\\\"note\\\" is missing");
    expect(ask("POST", "/v1/approvals/99", "", "{\"decision\":\"approve\",\"note\":\"seen\"}"), 404);
}

TEST(an_answer_counts_for_what_was_seen_and_the_first_one_holds)
{
    expect(ask("POST", "/v1/approvals/1", "",
               "{\"decision\":\"approve\",\"note\":\"seen\",\"hash\":"
               "\"0000000000000000000000000000000000000000000000000000000000000000\"}"),
           409, "urn:sagad:problem:conflict");
    expect(ask("POST", "/v1/approvals/1", "", "{\"decision\":\"refuse\",\"hash\":\"" HASH "\",\"note\":\"too much\"}"),
           200, "\"status\":\"refused\"");
    expect(ask("POST", "/v1/approvals/1", "", "{\"decision\":\"approve\",\"note\":\"seen\"}"), 409,
           "urn:sagad:problem:already-decided");
}

/* The engine gets the role of the token, and the approval says which roles may decide. */
TEST(an_approval_says_who_may_decide)
{
    static const char body[] = "{\"decision\":\"approve\",\"note\":\"seen\"}";

    expect(raw_ask(guarded.port, "POST", "/v1/approvals/3", "Authorization: Bearer an-agent\r\n", body, &answer), 403,
           "for the role operator");
    expect(raw_ask(guarded.port, "POST", "/v1/approvals/3", "Authorization: Bearer an-operator\r\n", body, &answer),
           200);
    expect(raw_ask(guarded.port, "POST", "/v1/approvals/1", "Authorization: Bearer an-agent\r\n", body, &answer), 200);
}

TEST_PROGRAM(setup, api_host_teardown)
