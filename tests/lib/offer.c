/*
 * offer: puts a load of starts on sagad and writes down how each of them ended. It is a program of its own, because a
 * measurement of overload must offer more than the service can take without taking the processor away from it.
 *
 * Open loop (--rate): request n is due n/rate after the beginning, whatever the service does. It uses any free
 * connection out of a fixed number of kept ones. When none is free, the request is counted and not sent. Closed loop:
 * each connection always has one request under way. The program ends with one line of JSON; --ids writes the ids of the
 * acknowledged sagas to a file.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_BYTES_MAX 16384
#define REQUEST_BYTES_MAX 4096
#define PATIENCE_US 10000000
#define EVENTS_MAX 512
#define BUCKETS 4000 /* buckets of a millisecond; the last one holds all longer times */
#define SECONDS_MAX 3600

struct connection {
    int fd; /* -1: the connection is closed */
    bool connecting, busy;
    int64_t due_us, sent_us;
    char out[REQUEST_BYTES_MAX], in[ANSWER_BYTES_MAX];
    size_t out_len, out_at, in_len;
};

struct latencies {
    uint32_t buckets[BUCKETS];
    uint64_t count;
    double max_ms;
};

static struct {
    int port, connections;
    double rate, seconds;
    const char *path, *body, *prefix;
    FILE *ids;
} options = {.port = 8077, .connections = 64, .seconds = 10, .path = "/v1/sagas", .body = "{}", .prefix = ""};

static struct {
    uint64_t due, sent, unsent, taken, refused, odd, lost, without_retry_after, retry_after_sum;
    int odd_status;
    char odd_text[160];
    uint32_t retry_after_most;
    struct latencies taken_us, refused_us, refused_sent_us;
    uint32_t taken_at[SECONDS_MAX], refused_at[SECONDS_MAX];
} seen;

static struct connection *all;
static int *idle, idle_count, epoll_fd;
static int64_t begun_us;
static uint64_t numbered;

static int64_t now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void note(struct latencies *latencies, int64_t us)
{
    int64_t ms = us < 0 ? 0 : us / 1000;

    latencies->buckets[ms < BUCKETS ? ms : BUCKETS - 1]++;
    latencies->count++;
    if ((double)us / 1000 > latencies->max_ms) {
        latencies->max_ms = (double)us / 1000;
    }
}

/* Returns the upper bound of the bucket that holds the percentile. */
static double percentile(const struct latencies *latencies, double part)
{
    uint64_t wanted = (uint64_t)(part * (double)latencies->count), below = 0;

    for (int i = 0; i < BUCKETS; i++) {
        below += latencies->buckets[i];
        if (below > wanted) {
            return i + 1 < BUCKETS ? i + 1 : latencies->max_ms;
        }
    }
    return 0;
}

/* --- connections --- */

static void watch(struct connection *c, int operation, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = c};

    if (epoll_ctl(epoll_fd, operation, c->fd, &event) != 0) {
        perror("offer: epoll_ctl");
        exit(1);
    }
}

static bool connection_open(struct connection *c)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)options.port)};
    int yes = 1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) {
        return false;
    }
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)); /* without it the connection is only slower */
    if (connect(c->fd, (struct sockaddr *)&address, sizeof(address)) != 0 && errno != EINPROGRESS) {
        (void)close(c->fd);
        c->fd = -1;
        return false;
    }
    c->connecting = true;
    watch(c, EPOLL_CTL_ADD, EPOLLIN | EPOLLOUT);
    return true;
}

static void connection_close(struct connection *c)
{
    (void)close(c->fd);
    c->fd = -1;
    c->connecting = false;
}

static void over(struct connection *c)
{
    c->busy = false;
    idle[idle_count++] = (int)(c - all);
}

static void connection_lost(struct connection *c)
{
    if (c->fd >= 0) {
        connection_close(c);
    }
    if (c->busy) {
        seen.lost++;
        over(c);
    }
}

/* Writes to the connection. Returns false when the connection is gone. */
static bool connection_write(struct connection *c)
{
    while (!c->connecting && c->out_at < c->out_len) {
        ssize_t put = send(c->fd, c->out + c->out_at, c->out_len - c->out_at, MSG_NOSIGNAL);

        if (put < 0 && errno == EAGAIN) {
            watch(c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
            return true;
        }
        if (put < 0) {
            connection_lost(c);
            return false;
        }
        c->out_at += (size_t)put;
    }
    return true;
}

/* --- requests --- */

static void request_begin(struct connection *c, int64_t due_us, int64_t at_us)
{
    char body[REQUEST_BYTES_MAX / 2];
    const char *mark = strchr(options.body, '%');
    int len = mark ? snprintf(body, sizeof(body), "%.*s%s%llu%s", (int)(mark - options.body), options.body,
                              options.prefix, (unsigned long long)numbered, mark + 1)
                   : snprintf(body, sizeof(body), "%s", options.body);

    numbered++;
    c->out_len = (size_t)snprintf(c->out, sizeof(c->out),
                                  "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                                  "Content-Length: %d\r\n\r\n%s",
                                  options.path, options.port, len, body);
    c->out_at = c->in_len = 0;
    c->busy = true;
    c->due_us = due_us;
    c->sent_us = at_us;
    seen.sent++;
    if (c->fd < 0 && !connection_open(c)) {
        connection_lost(c);
        return;
    }
    (void)connection_write(c);
}

static const char *find(const char *text, const char *name)
{
    const char *at = strcasestr(text, name);

    return at ? at + strlen(name) : NULL;
}

static void keep_id(const char *body)
{
    const char *id = find(body, "\"id\":\"");

    if (options.ids && id) {
        (void)fprintf(options.ids, "%.36s\n", id);
    }
}

static void answered(struct connection *c, int status, const char *head, const char *body)
{
    int64_t now = now_us(), second = (now - begun_us) / 1000000;
    const char *retry_after = find(head, "\r\nretry-after:");

    if (second >= SECONDS_MAX) {
        second = SECONDS_MAX - 1;
    }
    if (status == 201 || status == 200) {
        seen.taken++;
        seen.taken_at[second]++;
        note(&seen.taken_us, now - c->due_us);
        keep_id(body);
    } else if (status == 503) {
        long after_s = retry_after ? strtol(retry_after, NULL, 10) : 0;

        seen.refused++;
        seen.refused_at[second]++;
        seen.without_retry_after += after_s <= 0;
        seen.retry_after_sum += (uint64_t)(after_s > 0 ? after_s : 0);
        seen.retry_after_most = after_s > (long)seen.retry_after_most ? (uint32_t)after_s : seen.retry_after_most;
        note(&seen.refused_us, now - c->due_us);
        note(&seen.refused_sent_us, now - c->sent_us);
    } else {
        seen.odd++;
        seen.odd_status = status;
        (void)snprintf(seen.odd_text, sizeof(seen.odd_text), "%.150s", body);
    }
    over(c);
    if (find(head, "\r\nconnection: close")) {
        connection_close(c);
    }
}

static void read_answer(struct connection *c)
{
    for (;;) {
        ssize_t got = recv(c->fd, c->in + c->in_len, sizeof(c->in) - 1 - c->in_len, 0);

        if (got < 0 && errno == EAGAIN) {
            return;
        }
        if (got <= 0) {
            connection_lost(c);
            return;
        }
        c->in_len += (size_t)got;
        c->in[c->in_len] = '\0';
        char *end = strstr(c->in, "\r\n\r\n");
        const char *length = find(c->in, "\r\ncontent-length:");

        if (end && length && length < end) {
            size_t whole = (size_t)(end - c->in) + 4 + strtoul(length, NULL, 10);

            if (c->in_len >= whole) {
                *end = '\0';
                if (c->busy) {
                    answered(c, atoi(c->in + 9), c->in, end + 4);
                }
                return;
            }
        }
        if (c->in_len == sizeof(c->in) - 1) {
            connection_lost(c);
            return;
        }
    }
}

static void on_event(struct connection *c, uint32_t events)
{
    if (c->fd < 0) {
        return;
    }
    if (c->connecting && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))) {
        int error = 0;
        socklen_t len = sizeof(error);

        (void)getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len); /* on failure the next write fails */
        if (error != 0) {
            connection_lost(c);
            return;
        }
        c->connecting = false;
    }
    if ((events & EPOLLOUT) && !c->connecting) {
        watch(c, EPOLL_CTL_MOD, EPOLLIN);
        if (!connection_write(c)) {
            return;
        }
    }
    if (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) {
        read_answer(c);
    }
}

/* --- the round --- */

static void begin_due(int64_t now, bool ended)
{
    if (ended) {
        return;
    }
    if (options.rate <= 0) {
        while (idle_count > 0) {
            request_begin(&all[idle[--idle_count]], now, now);
            seen.due++;
        }
        return;
    }
    for (;;) {
        int64_t due_us = begun_us + (int64_t)((double)seen.due * 1e6 / options.rate);

        if (due_us > now) {
            return;
        }
        seen.due++;
        if (idle_count == 0) {
            seen.unsent++;
        } else {
            request_begin(&all[idle[--idle_count]], due_us, now);
        }
    }
}

static void give_up_late(int64_t now)
{
    static int64_t looked_us;

    if (now - looked_us < 500000) {
        return;
    }
    looked_us = now;
    for (int i = 0; i < options.connections; i++) {
        if (all[i].busy && now - all[i].sent_us > PATIENCE_US) {
            connection_lost(&all[i]);
        }
    }
}

static void run(void)
{
    struct epoll_event events[EVENTS_MAX];
    int64_t end_us;

    begun_us = now_us();
    end_us = begun_us + (int64_t)(options.seconds * 1e6);
    for (;;) {
        int64_t now = now_us();

        begin_due(now, now >= end_us);
        if (now >= end_us && idle_count == options.connections) {
            return;
        }
        int count = epoll_wait(epoll_fd, events, EVENTS_MAX, 1);

        for (int i = 0; i < count; i++) {
            on_event(events[i].data.ptr, events[i].events);
        }
        give_up_late(now);
    }
}

static void report(void)
{
    struct rusage usage;
    int last = (int)options.seconds < SECONDS_MAX ? (int)options.seconds : SECONDS_MAX;

    (void)getrusage(RUSAGE_SELF, &usage);
    printf("{\"seconds\":%.1f,\"due\":%llu,\"sent\":%llu,\"unsent\":%llu,\"taken\":%llu,\"refused\":%llu,\"odd\":%llu,"
           "\"lost\":%llu,\"without_retry_after\":%llu,\"retry_after_mean\":%.1f,\"retry_after_most\":%u,",
           options.seconds, (unsigned long long)seen.due, (unsigned long long)seen.sent,
           (unsigned long long)seen.unsent, (unsigned long long)seen.taken, (unsigned long long)seen.refused,
           (unsigned long long)seen.odd, (unsigned long long)seen.lost, (unsigned long long)seen.without_retry_after,
           seen.refused ? (double)seen.retry_after_sum / (double)seen.refused : 0, seen.retry_after_most);
    printf(
        "\"taken_ms\":{\"p50\":%.0f,\"p99\":%.0f,\"max\":%.0f},\"refused_ms\":{\"p50\":%.0f,\"p99\":%.0f,\"max\":%.0f},"
        "\"refused_sent_ms\":{\"p50\":%.0f,\"p99\":%.0f,\"max\":%.0f},\"cpu_s\":%.2f,",
        percentile(&seen.taken_us, 0.5), percentile(&seen.taken_us, 0.99), seen.taken_us.max_ms,
        percentile(&seen.refused_us, 0.5), percentile(&seen.refused_us, 0.99), seen.refused_us.max_ms,
        percentile(&seen.refused_sent_us, 0.5), percentile(&seen.refused_sent_us, 0.99), seen.refused_sent_us.max_ms,
        (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
            (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    printf("\"taken_at\":[");
    for (int i = 0; i < last; i++) {
        printf("%s%u", i ? "," : "", seen.taken_at[i]);
    }
    printf("],\"refused_at\":[");
    for (int i = 0; i < last; i++) {
        printf("%s%u", i ? "," : "", seen.refused_at[i]);
    }
    printf("]}\n");
    if (seen.odd > 0) {
        (void)fprintf(stderr, "offer: an odd answer: %d %s\n", seen.odd_status, seen.odd_text);
    }
}

static double number(const char *text)
{
    char *end;
    double value = strtod(text, &end);

    if (*end || value < 0) {
        (void)fprintf(stderr, "offer: \"%s\" is no number from 0 on\n", text);
        exit(2);
    }
    return value;
}

static void read_options(int argc, char **argv)
{
    static const struct option long_options[] = {
        {"port", required_argument, NULL, 'p'},
        {"rate", required_argument, NULL, 'r'},
        {"seconds", required_argument, NULL, 's'},
        {"connections", required_argument, NULL, 'c'},
        {"body", required_argument, NULL, 'b'},
        {"path", required_argument, NULL, 't'},
        {"ids", required_argument, NULL, 'i'},
        {"prefix", required_argument, NULL, 'x'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        switch (option) {
        case 'p':
            options.port = (int)number(optarg);
            break;
        case 'r':
            options.rate = number(optarg);
            break;
        case 's':
            options.seconds = number(optarg);
            break;
        case 'c':
            options.connections = (int)number(optarg);
            break;
        case 'b':
            options.body = optarg; /* "%" in it becomes --prefix and a number */
            break;
        case 't':
            options.path = optarg;
            break;
        case 'x':
            options.prefix = optarg;
            break;
        case 'i':
            options.ids = fopen(optarg, "a");
            if (!options.ids) {
                perror("offer: --ids");
                exit(1);
            }
            break;
        default:
            (void)fprintf(stderr, "usage: offer --port P [--rate R] [--seconds S] [--connections N] [--path PATH]\n"
                                  "             [--body JSON] [--prefix TEXT] [--ids FILE]\n");
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    struct rlimit files;

    read_options(argc, argv);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files); /* on failure fewer connections can be opened, and these are counted */
    }
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    all = calloc((size_t)options.connections, sizeof(*all));
    idle = calloc((size_t)options.connections, sizeof(*idle));
    if (epoll_fd < 0 || !all || !idle || options.connections < 1) {
        (void)fprintf(stderr, "offer: it cannot begin\n");
        return 1;
    }
    for (int i = options.connections - 1; i >= 0; i--) {
        all[i].fd = -1;
        idle[idle_count++] = i;
    }
    run();
    report();
    if (options.ids && fclose(options.ids) != 0) {
        perror("offer: --ids");
        return 1;
    }
    free(all);
    free(idle);
    return 0;
}
