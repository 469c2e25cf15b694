/*
 * The guard of outgoing calls, checked with every adapter that connects to a host. A denied address is never connected
 * to, and the call ends as "egress-denied", unsent. The adapter connects to the address that was checked.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "adapters/adapter.h"
#include "base/check.h"
#include "io/http/client.h"
#include "io/http/egress.h"
#include "io/loop/loop.h"
#include "io/postgres/pool.h"
#include "tests/lib/test.h"

/* --- who listens: it counts connections and closes them --- */

static struct listener {
    pthread_t thread;
    int fd, port;
    atomic_int connections;
} listener;

static void *listen_on(void *context)
{
    int connection;

    (void)context;
    while ((connection = accept(listener.fd, NULL, NULL)) >= 0) {
        listener.connections++;
        (void)close(connection);
    }
    return NULL;
}

static int listener_start(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);

    (void)state;
    listener.fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener.fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK(listen(listener.fd, 16) == 0);
    CHECK(getsockname(listener.fd, (struct sockaddr *)&address, &len) == 0);
    listener.port = ntohs(address.sin_port);
    return pthread_create(&listener.thread, NULL, listen_on, NULL);
}

static int listener_stop(void **state)
{
    (void)state;
    (void)shutdown(listener.fd, SHUT_RDWR);
    (void)pthread_join(listener.thread, NULL);
    return close(listener.fd);
}

/* --- one call --- */

struct trial {
    struct adapter_host host;
    struct arena arena;
    struct call *call;
    int settled;
};

static void on_settled(struct call *call)
{
    struct trial *t = call->owner;

    t->settled++;
    loop_stop(t->host.loop);
}

/* Makes settings. The text has ' for ", and PORT for the port of the listener. */
static struct slice settings_of(struct trial *t, const char *settings)
{
    struct buffer text;
    struct slice out;

    buffer_init(&text, 4096);
    for (const char *at = settings; *at; at++) {
        if (strncmp(at, "PORT", 4) == 0) {
            buffer_printf(&text, "%d", listener.port);
            at += 3;
        } else {
            buffer_put_char(&text, *at == '\'' ? '"' : *at);
        }
    }
    out = arena_slice(&t->arena, buffer_slice(&text));
    buffer_fini(&text);
    return out;
}

static void trial_run(struct trial *t, const char *name, const char *settings, const char *allow, const char *deny)
{
    const struct adapter *adapter = adapter_find(slice_of(name));
    struct egress egress;
    struct err err;

    *t = (struct trial){.host = {.loop = loop_new(), .response_bytes_max = 10000}};
    arena_init(&t->arena, 4096);
    assert_int_equal(egress_read(&egress, allow, deny, &err), ERR_OK);
    t->host.http = http_client_new(t->host.loop, 8, 8);
    http_client_set_egress(t->host.http, &egress);
    t->host.databases = db_pool_new(
        t->host.loop,
        &(struct db_pool_options){.links_max = 2, .idle_ms = 1000, .application_name = "sagad sql", .egress = &egress});
    t->call = arena_alloc(&t->arena, adapter->call_size);
    t->call->adapter = adapter;
    t->call->host = &t->host;
    t->call->arena = &t->arena;
    t->call->owner = t;
    t->call->settings = settings_of(t, settings);
    t->call->args = SLICE("{}");
    t->call->key = SLICE("0190f5e4-7f2c-8a51-9b7d-000000000001");
    t->call->send_key = true;
    t->call->timeout_ms = 60000;
    t->call->attempt = 1;
    t->call->settled = on_settled;
    listener.connections = 0;
    adapter->begin(t->call);
    loop_run(t->host.loop);
    assert_int_equal(t->settled, 1);
}

static void trial_end(struct trial *t)
{
    adapter_host_close(&t->host);
    http_client_free(t->host.http);
    db_pool_free(t->host.databases);
    loop_free(t->host.loop);
    arena_fini(&t->arena);
}

#define HTTP(host) "{'url':'http://" host ":PORT/'}"
#define MCP(host) "{'server':{'url':'http://" host ":PORT/'},'tool':'charge'}"
#define SQL(hosts) "{'database':'" hosts " user=a','statement':'select 1'}"
#define METADATA "169.254.169.254"

static const struct {
    const char *adapter, *settings, *allow, *deny;
    bool denied;
} cases[] = {
    {"http", HTTP("127.0.0.1"), NULL, NULL, false},
    {"http", HTTP(METADATA), NULL, NULL, true},
    {"http", HTTP("2852039166"), NULL, NULL, true}, /* the same address */
    {"http", HTTP("127.0.0.1"), NULL, "loopback", true},
    {"http", HTTP("localhost"), NULL, "loopback", true},
    {"http", HTTP("localhost"), "127.0.0.1", "loopback", false}, /* one of its addresses is allowed */
    {"http", HTTP("10.1.2.3"), NULL, "private", true},
    {"mcp", MCP("127.0.0.1"), NULL, NULL, false},
    {"mcp", MCP(METADATA), NULL, NULL, true},
    {"mcp", MCP("127.0.0.1"), NULL, "loopback", true},
    {"mcp", MCP("localhost"), NULL, "loopback", true},
    {"mcp", MCP("localhost"), "127.0.0.1", "loopback", false},
    {"sql", SQL("host=127.0.0.1 port=PORT"), NULL, NULL, false},
    {"sql", SQL("host=localhost port=PORT"), NULL, NULL, false},
    {"sql", SQL("host=" METADATA " port=PORT"), NULL, NULL, true},
    {"sql", SQL("host=2852039166 port=PORT"), NULL, NULL, true},
    {"sql", SQL("hostaddr=" METADATA " port=PORT"), NULL, NULL, true},
    {"sql", SQL("host=localhost hostaddr=" METADATA " port=PORT"), NULL, NULL, true}, /* the address decides */
    {"sql", SQL("host=" METADATA " hostaddr=127.0.0.1 port=PORT"), NULL, NULL, false},
    {"sql", SQL("host=127.0.0.1 port=PORT"), NULL, "loopback", true},
    {"sql", SQL("host=localhost port=PORT"), NULL, "loopback", true},
    {"sql", SQL("host=localhost port=PORT"), "127.0.0.1", "loopback", false},
    {"sql", SQL("host=10.1.2.3 port=PORT"), NULL, "private", true},
    {"sql", SQL("host=/nowhere port=PORT"), NULL, "loopback", true}, /* a local socket counts as loopback */
    {"sql", SQL("host=@nowhere port=PORT"), NULL, "loopback", true},
    {"sql", SQL("host=/nowhere," METADATA " port=PORT"), NULL, "loopback", true},
    {"sql", SQL("host=/nowhere,localhost port=PORT"), "127.0.0.1", "loopback,private", false},
    {"sql", SQL("host=" METADATA ",127.0.0.1 port=1,PORT"), NULL, NULL, false},
    {"sql", SQL("host=no-such-host.invalid,127.0.0.1 port=1,PORT"), NULL, NULL, false},
    {"sql", "{'database':'postgresql://a@127.0.0.1:PORT/b','statement':'select 1'}", NULL, "loopback", true},
    {"sql", "{'database':'postgresql://a@127.0.0.1:PORT/b?hostaddr=" METADATA "','statement':'select 1'}", NULL, NULL,
     true},
    {"sql", "{'database':'postgresql://a:b%27c%5C@127.0.0.1:PORT/b','statement':'select 1'}", NULL, NULL, false},
};

TEST(a_denied_call_does_not_connect_and_was_not_sent)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct trial t;
        const struct outcome *outcome;

        trial_run(&t, cases[i].adapter, cases[i].settings, cases[i].allow, cases[i].deny);
        outcome = &t.call->outcome;
        if (outcome_is_egress_denied(outcome) != cases[i].denied || (listener.connections == 0) != cases[i].denied) {
            fail_msg("%s %s, allow %s, deny %s: %s%s, error %.*s (%.*s), %d connections", cases[i].adapter,
                     cases[i].settings, cases[i].allow, cases[i].deny, outcome->unsent ? "unsent " : "",
                     outcome_name(outcome->kind), SLICE_ARG(outcome->error), SLICE_ARG(outcome->detail),
                     listener.connections);
        }
        trial_end(&t);
    }
}

TEST(an_allowed_address_where_nobody_listens_is_not_said_to_be_denied)
{
    static const struct {
        const char *adapter, *settings, *error;
    } some[] = {
        {"http", "{'url':'http://localhost:1/'}", "refused"},
        {"mcp", "{'server':{'url':'http://localhost:1/'},'tool':'charge'}", "refused"},
        {"sql", SQL("host=localhost port=1"), "no-connection"},
    };

    for (size_t i = 0; i < COUNT_OF(some); i++) {
        struct trial t;

        trial_run(&t, some[i].adapter, some[i].settings, "127.0.0.1", "loopback");
        assert_true(slice_is(t.call->outcome.error, some[i].error));
        assert_true(t.call->outcome.unsent);
        trial_end(&t);
    }
}

TEST(a_host_without_an_address_is_not_said_to_be_denied)
{
    static const char *const settings[] = {SQL("host=no-such-host.invalid port=PORT"),
                                           SQL("host=no-such-host.invalid," METADATA " port=PORT"),
                                           SQL("hostaddr=not-an-address port=PORT")};

    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        struct trial t;

        trial_run(&t, "sql", settings[i], NULL, NULL);
        assert_true(slice_is(t.call->outcome.error, "no-connection"));
        assert_int_equal(t.call->outcome.kind, OUTCOME_RETRY);
        assert_true(t.call->outcome.unsent);
        trial_end(&t);
    }
}

TEST(lists_that_do_not_go_together_are_refused)
{
    static const char *const settings[] = {SQL("host=a,b hostaddr=127.0.0.1 port=PORT"),
                                           SQL("host=127.0.0.1,127.0.0.1,127.0.0.1 port=PORT,PORT")};

    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        struct trial t;

        trial_run(&t, "sql", settings[i], NULL, NULL);
        assert_true(slice_is(t.call->outcome.error, "no-connection"));
        assert_int_equal(t.call->outcome.kind, OUTCOME_FAILED);
        assert_int_equal(listener.connections, 0);
        trial_end(&t);
    }
}

TEST_PROGRAM(listener_start, listener_stop)
