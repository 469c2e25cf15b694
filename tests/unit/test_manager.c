/* What the service manager hears, over a real socket. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "io/process/manager.h"
#include "tests/lib/test.h"

static struct loop *loop;
static int fd;
static char directory[64], path[96];
static char heard[8192]; /* the datagrams, each in brackets */
static const char *description;

static void on_describe(void *context, char out[MANAGER_STATUS_BYTES])
{
    (void)context;
    (void)snprintf(out, MANAGER_STATUS_BYTES, "%s", description);
}

static void listen_at(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(name);

    memcpy(address.sun_path, name, len);
    if (name[0] == '@') {
        address.sun_path[0] = '\0';
    }
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    assert_int_equal(
        bind(fd, (const struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)), 0);
    setenv("NOTIFY_SOCKET", name, 1);
}

static int setup(void **state)
{
    (void)state;
    loop = loop_new();
    heard[0] = '\0';
    description = "starting";
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    (void)snprintf(directory, sizeof(directory), "/tmp/sagad-manager-XXXXXX");
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof(path), "%s/notify", directory);
    listen_at(path);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    close(fd);
    unlink(path);
    rmdir(directory);
    loop_free(loop);
    return 0;
}

static void hear(void)
{
    char text[1024];
    ssize_t len;

    while ((len = recv(fd, text, sizeof(text) - 1, 0)) >= 0) {
        size_t at = strlen(heard);

        text[len] = '\0';
        assert_true(at + (size_t)len + 3 < sizeof(heard));
        (void)snprintf(heard + at, sizeof(heard) - at, "[%s]", text);
    }
    assert_int_equal(errno, EAGAIN);
}

static size_t times(const char *what)
{
    size_t count = 0;

    for (const char *at = heard; (at = strstr(at, what)); at += strlen(what)) {
        count++;
    }
    return count;
}

struct wait {
    struct timer timer;
    const char *what;
    size_t count;
    int left;
};

static void on_look(struct timer *timer)
{
    struct wait *wait = container_of(timer, struct wait, timer);

    hear();
    if (times(wait->what) >= wait->count || --wait->left == 0) {
        loop_stop(loop);
        return;
    }
    timer_start(loop, &wait->timer, 5, on_look);
}

static void on_stop(struct timer *timer)
{
    (void)timer;
    loop_stop(loop);
}

/* Runs the loop until the manager has heard it so often. */
static void until(const char *what, size_t count)
{
    struct wait wait = {.what = what, .count = count, .left = 6000};

    timer_start(loop, &wait.timer, 0, on_look);
    loop_run(loop);
    if (times(what) < count) {
        fail_msg("the manager never heard %s %zu times: %s", what, count, heard);
    }
}

static void open_manager(struct manager *manager)
{
    struct err err = {0};

    if (manager_open(manager, loop, on_describe, NULL, &err) != ERR_OK) {
        fail_msg("%s: %s", err.message, err.detail);
    }
}

TEST(it_hears_ready_once_and_each_status_once)
{
    struct manager manager;

    open_manager(&manager);
    assert_null(getenv("NOTIFY_SOCKET"));
    until("STATUS=starting\n", 1);
    assert_int_equal(times("READY=1"), 0);
    description = "ready: 64 shards";
    manager_ready(&manager);
    until("READY=1\nSTATUS=ready: 64 shards\n", 1);
    description = "ready: 63 shards";
    until("STATUS=ready: 63 shards\n", 1);
    assert_int_equal(times("READY=1"), 1);
    assert_int_equal(times("STATUS="), 3);
    assert_int_equal(times("WATCHDOG=1"), 0);
    manager_close(&manager);
}

TEST(an_abstract_address_does_as_well)
{
    struct manager manager;
    char name[64];

    close(fd);
    (void)snprintf(name, sizeof(name), "@sagad-manager-%d", (int)getpid());
    listen_at(name);
    open_manager(&manager);
    manager_ready(&manager);
    until("READY=1", 1);
    manager_close(&manager);
}

TEST(the_watchdog_is_fed_while_the_loop_runs_and_starves_when_it_hangs)
{
    struct manager manager;
    char pid[16];
    size_t before;

    (void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("WATCHDOG_PID", pid, 1);
    setenv("WATCHDOG_USEC", "60000", 1);
    open_manager(&manager);
    assert_null(getenv("WATCHDOG_USEC"));
    assert_null(getenv("WATCHDOG_PID"));
    until("WATCHDOG=1", 4);
    hear();
    before = times("WATCHDOG=1");
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL); /* the loop hangs */
    hear();
    assert_int_equal(times("WATCHDOG=1"), before);
    until("WATCHDOG=1", before + 2);
    manager_close(&manager);
}

TEST(a_watchdog_of_another_process_is_not_fed)
{
    struct manager manager;

    setenv("WATCHDOG_PID", "1", 1);
    setenv("WATCHDOG_USEC", "20000", 1);
    open_manager(&manager);
    until("STATUS=starting", 1);
    description = "later";
    until("STATUS=later", 1);
    assert_int_equal(times("WATCHDOG=1"), 0);
    manager_close(&manager);
}

TEST(it_hears_of_the_end_and_is_asked_for_more_time_until_the_patience_is_over)
{
    struct manager manager;
    size_t asked;

    setenv("WATCHDOG_USEC", "15000", 1); /* a tick of 5 ms */
    open_manager(&manager);
    manager_ready(&manager);
    until("READY=1", 1);
    assert_int_equal(times("EXTEND_TIMEOUT_USEC="), 0);
    manager_stopping(&manager, 3000);
    until("STOPPING=1\nWATCHDOG=1\nEXTEND_TIMEOUT_USEC=", 1);
    until("EXTEND_TIMEOUT_USEC=", 3);
    nanosleep(&(struct timespec){.tv_sec = 3}, NULL); /* the patience is over */
    hear();
    asked = times("EXTEND_TIMEOUT_USEC=");
    until("WATCHDOG=1", times("WATCHDOG=1") + 3);
    assert_int_equal(times("EXTEND_TIMEOUT_USEC="), asked);
    assert_int_equal(times("STOPPING=1"), 1);
    manager_ready(&manager); /* too late: it stops */
    manager_reloaded(&manager);
    until("WATCHDOG=1", times("WATCHDOG=1") + 3);
    assert_int_equal(times("READY=1"), 1);
    manager_close(&manager);
}

TEST(a_reload_begins_and_ends)
{
    struct manager manager;

    open_manager(&manager);
    manager_reloaded(&manager); /* it is not ready yet: nothing is told */
    until("STATUS=starting", 1);
    assert_int_equal(times("RELOADING=1"), 0);
    manager_ready(&manager);
    until("READY=1", 1);
    manager_reloaded(&manager);
    until("READY=1", 2);
    assert_int_equal(times("[RELOADING=1\nMONOTONIC_USEC="), 1);
    manager_close(&manager);
}

TEST(what_the_manager_did_not_take_is_told_again)
{
    struct manager manager;

    setenv("WATCHDOG_USEC", "15000", 1);
    open_manager(&manager);
    for (int i = 0; i < 100000 && send(manager.fd, "X=1", 3, MSG_DONTWAIT) == 3; i++) {
    }
    assert_int_equal(errno, EAGAIN); /* its queue is full */
    manager_ready(&manager);
    for (int i = 0; i < 3; i++) { /* nobody reads meanwhile */
        struct timer timer = {0};

        timer_start(loop, &timer, 20, on_stop);
        loop_run(loop);
    }
    until("READY=1", 1);
    manager_close(&manager);
}

TEST(without_a_manager_nothing_is_told_and_a_wrong_address_is_an_error)
{
    struct manager manager = {.fd = -1};
    struct err err = {0};

    unsetenv("NOTIFY_SOCKET");
    open_manager(&manager);
    manager_ready(&manager);
    manager_reloaded(&manager);
    manager_stopping(&manager, 1000);
    manager_close(&manager);

    setenv("NOTIFY_SOCKET", "vsock:2:1234", 1);
    assert_int_equal(manager_open(&manager, loop, NULL, NULL, &err), ERR_CONFIG);
    setenv("NOTIFY_SOCKET", "/nowhere/notify", 1);
    assert_int_equal(manager_open(&manager, loop, NULL, NULL, &err), ERR_CONFIG);
    assert_non_null(strstr(err.detail, "/nowhere/notify"));
    manager_close(&manager);
    hear();
    assert_string_equal(heard, "");
}

TEST_PROGRAM_EACH(setup, teardown)
