/* Our side of the helpers: the nursery that starts them, the pool of a few helpers, and a request to one of them. */
#include "io/process/jq_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"

#define HELPERS_MAX 4
#define NEW_ONES_MAX 2 /* helpers beyond HELPERS_MAX, for checks and for second tries */
#define AGAIN_FACTOR                                                                                                   \
    4                  /* a second try gets this many times the limit, because a helper may have been slow by chance   \
                        */
#define WALL_FACTOR 20 /* a busy machine gives a helper little of its time */
#define WALL_MS_MORE 10000
#define CHILD_FD 3

struct helper {
    int fd; /* -1 when there is none */
    pid_t pid;
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t freed;
    int nursery_fd; /* -1 when there is none */
    pid_t nursery_pid;
    struct helper idle[HELPERS_MAX]; /* most recently used last, because its cache is the warmest */
    size_t idle_count, count;
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER, .freed = PTHREAD_COND_INITIALIZER, .nursery_fd = -1};

/* --- messages ------------------------------------------------------------------------------------------------ */

bool jq_wire_write(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;

    while (len > 0) {
        ssize_t done = send(fd, at, len, MSG_NOSIGNAL);

        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return false;
        }
        at += done;
        len -= (size_t)done;
    }
    return true;
}

bool jq_wire_read(int fd, void *bytes, size_t len)
{
    char *at = bytes;

    while (len > 0) {
        ssize_t done = recv(fd, at, len, 0);

        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return false;
        }
        at += done;
        len -= (size_t)done;
    }
    return true;
}

/* Sends one byte and one descriptor. */
static bool descriptor_send(int over, int fd)
{
    char byte = 'h';
    struct iovec iov = {&byte, 1};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof(control.space)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof(int));
    return sendmsg(over, &message, MSG_NOSIGNAL) == 1;
}

static int descriptor_receive(int over)
{
    char byte;
    struct iovec iov = {&byte, 1};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof(control.space)};
    struct cmsghdr *header;
    ssize_t got;
    int fd = -1;

    do {
        got = recvmsg(over, &message, 0);
    } while (got < 0 && errno == EINTR);
    header = got == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int))) {
        memcpy(&fd, CMSG_DATA(header), sizeof(int));
    }
    return fd;
}

/* --- the nursery --------------------------------------------------------------------------------------------- */

/*
 * Strips the nursery of everything of ours: it keeps no descriptor but its socket, no environment and no terminal. It
 * ignores signals that are sent to the whole group or service. It ends when this process ends, because its socket
 * closes.
 */
static void nursery_settle_in(int fd)
{
    static const int ignored[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2, SIGCHLD};
    static const int plain[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGPROF};
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)setsid(); /* fails only for a process that already leads a group */
    for (size_t i = 0; i < COUNT_OF(ignored); i++) {
        (void)signal(ignored[i], SIG_IGN); /* cannot fail for a signal that exists */
    }
    for (size_t i = 0; i < COUNT_OF(plain); i++) {
        (void)signal(plain[i], SIG_DFL); /* the same */
    }
    for (int i = 0; i < 3 && null_fd >= 0; i++) {
        (void)dup2(null_fd, i); /* our users need not see the assertions of libjq */
    }
    if (fd != CHILD_FD) {
        CHECK(dup2(fd, CHILD_FD) == CHILD_FD);
    }
    (void)close_range(CHILD_FD + 1, ~0U, 0); /* no code in the nursery knows the descriptors that stay open */
    for (char **variable = environ; variable && *variable; variable++) {
        explicit_bzero(*variable,
                       strlen(*variable)); /* the environment may hold secrets; this copy belongs to the child */
    }
    (void)clearenv();
    (void)prctl(PR_SET_DUMPABLE, 0); /* this call and the next are further defences */
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)prctl(PR_SET_NAME, "sagad-jq");
}

static _Noreturn void nursery_serve(void)
{
    for (;;) {
        int fd = descriptor_receive(CHILD_FD);
        int32_t pid;

        if (fd < 0) {
            _exit(0);
        }
        pid = fork();
        if (pid == 0) {
            CHECK(dup2(fd, CHILD_FD) == CHILD_FD);
            (void)close_range(CHILD_FD + 1, ~0U, 0); /* closes /dev/null and the descriptors received */
            jq_child_serve(CHILD_FD);
        }
        (void)close(fd); /* the child has its own copy */
        if (!jq_wire_write(CHILD_FD, &pid, sizeof(pid))) {
            _exit(0);
        }
    }
}

/* Starts the nursery; the caller holds the mutex. */
static bool nursery_start(void)
{
    int pair[2];
    pid_t pid;

    if (pool.nursery_fd >= 0) {
        return true;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return false;
    }
    pid = fork();
    if (pid == 0) {
        nursery_settle_in(pair[1]);
        nursery_serve();
    }
    (void)close(pair[1]);
    if (pid < 0) {
        (void)close(pair[0]);
        return false;
    }
    pool.nursery_fd = pair[0];
    pool.nursery_pid = pid;
    return true;
}

static void nursery_end(void)
{
    (void)close(pool.nursery_fd);
    (void)kill(pool.nursery_pid, SIGKILL);
    (void)waitpid(pool.nursery_pid, NULL, 0); /* reaps the nursery, which would stay as a zombie */
    pool.nursery_fd = -1;
}

/* Starts a helper; the caller holds the mutex. */
static bool helper_start(struct helper *helper)
{
    int pair[2];
    int32_t pid = -1;
    bool ok;

    if (!nursery_start() || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return false;
    }
    ok = descriptor_send(pool.nursery_fd, pair[1]) && jq_wire_read(pool.nursery_fd, &pid, sizeof(pid)) && pid > 0;
    (void)close(pair[1]);
    if (!ok) {
        (void)close(pair[0]);
        nursery_end(); /* the nursery was ended; the next try starts a new one */
        return false;
    }
    *helper = (struct helper){pair[0], pid};
    return true;
}

void jq_helper_prepare(void)
{
    CHECK(pthread_mutex_lock(&pool.mutex) == 0);
    (void)nursery_start(); /* the first request tries again and reports a failure */
    CHECK(pthread_mutex_unlock(&pool.mutex) == 0);
}

static bool pool_has(bool brand_new)
{
    return brand_new ? pool.count < HELPERS_MAX + NEW_ONES_MAX : pool.idle_count > 0 || pool.count < HELPERS_MAX;
}

static bool pool_take(struct helper *helper, bool brand_new)
{
    bool ok = true;

    CHECK(pthread_mutex_lock(&pool.mutex) == 0);
    while (!pool_has(brand_new)) {
        CHECK(pthread_cond_wait(&pool.freed, &pool.mutex) == 0);
    }
    if (!brand_new && pool.idle_count > 0) {
        *helper = pool.idle[--pool.idle_count];
    } else {
        ok = helper_start(helper) || helper_start(helper);
        pool.count += ok;
    }
    CHECK(pthread_mutex_unlock(&pool.mutex) == 0);
    return ok;
}

static void pool_give(struct helper helper, bool keep)
{
    CHECK(pthread_mutex_lock(&pool.mutex) == 0);
    if (keep && pool.count <= HELPERS_MAX) {
        pool.idle[pool.idle_count++] = helper;
    } else {
        (void)close(helper.fd); /* a helper that still lives ends now */
        pool.count--;
    }
    CHECK(pthread_cond_broadcast(&pool.freed) == 0); /* the threads wait for different things, so all of them wake */
    CHECK(pthread_mutex_unlock(&pool.mutex) == 0);
}

/* --- one request --------------------------------------------------------------------------------------------- */

static bool request_send(const struct jq_request *request, int fd, bool again)
{
    struct jq_wire_request wire;
    struct buffer message;
    bool ok;

    memset(&wire, 0, sizeof(wire));
    wire.count = (uint32_t)request->count;
    wire.input_bytes = (uint32_t)request->input_json.len;
    wire.time_ms = request->limits->time_ms * (again ? AGAIN_FACTOR : 1);
    wire.output_bytes_max = request->limits->output_bytes_max;
    wire.check_only = request->check_only;
    wire.careful = again;
    buffer_init(&message, SIZE_MAX / 2); /* the parts are bounded already */
    buffer_put(&message, &wire, sizeof(wire));
    for (size_t i = 0; i < request->count; i++) {
        uint32_t len = (uint32_t)request->programs[i].len;

        buffer_put(&message, &len, sizeof(len));
    }
    buffer_put_slice(&message, request->input_json);
    for (size_t i = 0; i < request->count; i++) {
        buffer_put_slice(&message, request->programs[i]);
    }
    ok = jq_wire_write(fd, message.ptr, message.len);
    buffer_fini(&message);
    return ok;
}

static enum err_code output_read(struct jq_request *request, size_t i, int fd)
{
    struct json_limits limits = json_limits_default;
    struct err why;
    uint32_t len;
    char *text;

    request->index = i;
    limits.bytes_max = request->limits->output_bytes_max;
    if (!jq_wire_read(fd, &len, sizeof(len)) || len > limits.bytes_max) {
        return err_set(&request->err, ERR_INTERNAL, "the jq helper gave an answer that makes no sense");
    }
    text = arena_alloc(request->arena, (size_t)len + 1);
    if (!jq_wire_read(fd, text, len)) {
        return err_set(&request->err, ERR_INTERNAL, "the jq helper gave half an answer");
    }
    request->outputs[i] = (struct slice){text, len};
    if (json_check(request->outputs[i], &limits, &why) !=
        ERR_OK) { /* fails for a NUL in a text and for a text that is nested too deep */
        (void)err_set(&request->err, ERR_INVALID, "the value of the expression cannot be kept");
        err_detail(&request->err, "%s", why.detail[0] ? why.detail : why.message);
        return ERR_INVALID;
    }
    return ERR_OK;
}

/* Reads all outputs, so that the next request begins at a message, and keeps the first error. */
static enum err_code outputs_read(struct jq_request *request, int fd, bool *alive)
{
    enum err_code first = ERR_OK;
    struct err err;
    size_t index = 0;

    for (size_t i = 0; i < request->count && !request->check_only; i++) {
        enum err_code code = output_read(request, i, fd);

        if (code != ERR_OK && first == ERR_OK) {
            first = code;
            err = request->err;
            index = i;
        }
        if (code == ERR_INTERNAL) {
            *alive = false;
            break;
        }
    }
    if (first != ERR_OK) {
        request->err = err;
        request->index = index;
    }
    return first;
}

/* `again` is set when the end or the time limit of the helper caused the error. */
static enum err_code answer_read(struct jq_request *request, int fd, bool *alive, bool *again)
{
    struct jq_wire_answer answer;

    *alive = false;
    *again = true;
    if (!jq_wire_read(fd, &answer, sizeof(answer))) {
        (void)err_set(&request->err, ERR_INVALID, "the expression does something that jq cannot do");
        err_detail(&request->err, "two helper processes that evaluated it have crashed");
        return ERR_INVALID;
    }
    request->index = answer.index < request->count ? answer.index : 0;
    switch ((enum jq_wire_end)answer.end) {
    case JQ_WIRE_GOOD:
        *alive = !answer.last;
        *again = false;
        return outputs_read(request, fd, alive);
    case JQ_WIRE_ERROR:
        *again = !jq_wire_read(fd, &request->err, sizeof(request->err)) || request->err.code == ERR_TIMEOUT;
        *alive = !*again && !answer.last;
        return request->err.code;
    case JQ_WIRE_TIME:
        return err_set(&request->err, ERR_TIMEOUT, "the expression ran longer than %lld ms",
                       (long long)request->limits->time_ms);
    case JQ_WIRE_MEMORY:
        return err_set(&request->err, ERR_TOO_LARGE, "the expression needs more memory than allowed");
    }
    return err_set(&request->err, ERR_INTERNAL, "the jq helper gave an answer that makes no sense");
}

/* Waits for the answer. The helper bounds its own processor time; this bound is for a helper that gets no processor or
 * was stopped. */
static bool answer_await(const struct jq_request *request, int fd, bool again)
{
    int64_t each_ms = WALL_FACTOR * request->limits->time_ms * (again ? AGAIN_FACTOR : 1) + 1000;
    int64_t ms = (int64_t)request->count * each_ms + WALL_MS_MORE;
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    int got;

    do {
        got = poll(&waiting, 1, ms < 600000 ? (int)ms : 600000);
    } while (got < 0 && errno == EINTR);
    return got > 0;
}

/* Returns true when the error may come from the helper and not from the expression. */
static bool request_try(struct jq_request *request, bool brand_new, bool again)
{
    struct helper helper;
    bool alive = false, once_more = false;

    memset(&request->err, 0, sizeof(request->err));
    request->index = 0;
    /* An idle helper may have been ended in the meantime. Nothing was evaluated, so another helper takes the
     * request. */
    for (int tries = 0;; tries++) {
        if (!pool_take(&helper, brand_new)) {
            request->code = err_set(&request->err, ERR_IO, "no helper process for expressions can be started");
            return false;
        }
        if (request_send(request, helper.fd, again) || tries == HELPERS_MAX) {
            break;
        }
        pool_give(helper, false);
    }
    if (answer_await(request, helper.fd, again)) {
        request->code = answer_read(request, helper.fd, &alive, &once_more);
    } else {
        request->code = err_set(&request->err, ERR_TIMEOUT, "the helper process for expressions does not answer");
    }
    if (!alive) {
        (void)kill(helper.pid, SIGKILL); /* most helpers have ended already, and then nothing happens */
    }
    pool_give(helper, alive && !request->check_only);
    return once_more;
}

void jq_request_run(struct jq_request *request)
{
    if (request_try(request, request->check_only, false)) {
        (void)request_try(request, true, true); /* the second try decides */
    }
}
