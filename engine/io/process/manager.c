/* See manager.h. The protocol is that of sd_notify(3). */
#include "io/process/manager.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

#define TICK_MS 1000
/* The length of one request for more time; the next one comes with the next tick. */
#define EXTEND_US (INT64_C(10) * 1000 * 1000)

enum { TELL_READY = 1, TELL_STOPPING = 2, TELL_RELOADING = 4 };

/* An address of the file system or, with @ in front, an abstract one. */
static bool address_of(const char *text, struct sockaddr_un *address, socklen_t *len)
{
    size_t bytes = strlen(text);

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if ((text[0] != '/' && text[0] != '@') || bytes < 2 || bytes >= sizeof(address->sun_path)) {
        return false;
    }
    memcpy(address->sun_path, text, bytes);
    if (text[0] == '@') {
        address->sun_path[0] = '\0';
    }
    *len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes);
    return true;
}

static int64_t number_of(const char *text)
{
    int64_t number = 0;

    return text && slice_to_i64(slice_of(text), &number) && number > 0 ? number : 0;
}

/* What we heard of the watchdog may be meant for another process. */
static int64_t watchdog_of_environment(void)
{
    const char *pid = getenv("WATCHDOG_PID");

    return pid && number_of(pid) != (int64_t)getpid() ? 0 : number_of(getenv("WATCHDOG_USEC")) / 1000;
}

static bool tell(struct manager *manager, const char *text)
{
    size_t len = strlen(text);

    return send(manager->fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len;
}

static int64_t monotonic_us(void)
{
    struct timespec now;

    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void tell_all(struct manager *manager)
{
    char status[MANAGER_STATUS_BYTES] = "";
    struct buffer text;

    buffer_init(&text, 1024);
    if (manager->unsent & TELL_RELOADING) { /* systemd wants to hear that it began and that it is over */
        buffer_printf(&text, "RELOADING=1\nMONOTONIC_USEC=%lld\n", (long long)monotonic_us());
        if (tell(manager, buffer_c(&text))) {
            manager->unsent &= ~(unsigned)TELL_RELOADING;
        }
        buffer_reset(&text);
    }
    if (manager->unsent & TELL_STOPPING) {
        buffer_put_text(&text, "STOPPING=1\n");
    } else if (manager->unsent & TELL_READY) {
        buffer_put_text(&text, "READY=1\n");
    }
    if (manager->watchdog_ms > 0) {
        buffer_put_text(&text, "WATCHDOG=1\n");
    }
    if (manager->is_stopping && loop_boot_ms(manager->loop) < manager->extend_until_ms) {
        buffer_printf(&text, "EXTEND_TIMEOUT_USEC=%lld\n", (long long)EXTEND_US);
    }
    if (manager->describe) {
        manager->describe(manager->context, status);
    }
    if (strcmp(status, manager->status) != 0) {
        buffer_printf(&text, "STATUS=%s\n", status);
    }
    CHECK(!text.overflow);
    if (text.len > 0 && tell(manager, buffer_c(&text))) {
        manager->unsent = 0;
        memcpy(manager->status, status, sizeof(status));
    }
    buffer_fini(&text);
}

static void on_tick(struct timer *timer)
{
    struct manager *manager = container_of(timer, struct manager, timer);
    int64_t tick_ms =
        manager->watchdog_ms > 0 && manager->watchdog_ms / 3 < TICK_MS ? manager->watchdog_ms / 3 : TICK_MS;

    tell_all(manager);
    timer_start(manager->loop, &manager->timer, tick_ms > 0 ? tick_ms : 1, on_tick);
}

enum err_code manager_open(struct manager *manager, struct loop *loop,
                           void (*describe)(void *context, char out[MANAGER_STATUS_BYTES]), void *context,
                           struct err *err)
{
    const char *text = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address;
    socklen_t len;
    int fd;

    *manager = (struct manager){.fd = -1};
    if (!text || !text[0]) {
        return ERR_OK;
    }
    if (!address_of(text, &address, &len)) {
        return err_set(err, ERR_CONFIG, "NOTIFY_SOCKET is no address of a Unix socket: \"%s\"", text);
    }
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, len) != 0) {
        int why = errno;

        if (fd >= 0) {
            (void)close(fd); /* nothing was sent on it */
        }
        (void)err_set(err, ERR_CONFIG, "the service manager cannot be told that sagad runs");
        err_detail(err, "NOTIFY_SOCKET=%s: %s", text, strerror(why));
        return ERR_CONFIG;
    }
    *manager = (struct manager){
        .loop = loop, .fd = fd, .watchdog_ms = watchdog_of_environment(), .describe = describe, .context = context};
    (void)unsetenv("NOTIFY_SOCKET"); /* cannot fail: the names are good */
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
    timer_start(loop, &manager->timer, 0, on_tick);
    return ERR_OK;
}

void manager_close(struct manager *manager)
{
    if (!manager->loop) {
        return;
    }
    timer_stop(manager->loop, &manager->timer);
    (void)close(manager->fd); /* a datagram that was sent has been sent */
    *manager = (struct manager){.fd = -1};
}

static void tell_soon(struct manager *manager, unsigned what)
{
    if (!manager->loop || manager->is_stopping) {
        return;
    }
    manager->unsent |= what;
    timer_start(manager->loop, &manager->timer, 0, on_tick);
}

void manager_ready(struct manager *manager)
{
    manager->is_ready = true;
    tell_soon(manager, TELL_READY);
}

void manager_reloaded(struct manager *manager)
{
    if (manager->is_ready) {
        tell_soon(manager, TELL_RELOADING | TELL_READY);
    }
}

void manager_stopping(struct manager *manager, int64_t patience_ms)
{
    tell_soon(manager, TELL_STOPPING);
    manager->is_stopping = true;
    manager->extend_until_ms = manager->loop ? loop_boot_ms_now() + patience_ms : 0;
}
