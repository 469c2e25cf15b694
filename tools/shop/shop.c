/*
 * See shop.h. One request: read the body, take a fault, decide, write the ledger line, make the effect true, wait for
 * the disk, answer (or not). The line is written before anybody else can see the effect, under the same lock.
 */
#include "shop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <microhttpd.h>

#include "base/check.h"
#include "base/json.h"

#define HUGE_BYTES (UINT64_C(1) << 30)
#define THREAD_STACK_BYTES (256 * 1024)

struct exchange { /* one request while its connection serves it */
    struct arena arena;
    struct buffer body;
    int64_t t_in_ms;
    bool too_large;
};

struct answer { /* the answer */
    unsigned status;
    struct slice body;
    struct fault_decision fault;
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- routes --- */

static const struct {
    const char *method, *prefix;
    bool has_target;
    enum route route;
    enum entry_kind kind;
} routes[] = {
    {"POST", "/reservations", false, ROUTE_RESERVATIONS, ENTRY_RESERVATION},
    {"DELETE", "/reservations", true, ROUTE_RELEASES, ENTRY_RESERVATION},
    {"GET", "/reservations", true, ROUTE_PROBES, ENTRY_RESERVATION},
    {"POST", "/charges", false, ROUTE_CHARGES, ENTRY_CHARGE},
    {"GET", "/charges", true, ROUTE_PROBES, ENTRY_CHARGE},
    {"POST", "/refunds", false, ROUTE_REFUNDS, ENTRY_REFUND},
    {"GET", "/refunds", true, ROUTE_PROBES, ENTRY_REFUND},
    {"POST", "/mails", false, ROUTE_MAILS, ENTRY_MAIL},
    {"GET", "/mails", true, ROUTE_PROBES, ENTRY_MAIL},
    {"DELETE", "/charges", true, ROUTE_REFUNDS, ENTRY_CHARGE},
    {"PUT", "/tags", true, ROUTE_TAGS, ENTRY_TAG},
    {"DELETE", "/tags", true, ROUTE_UNTAGS, ENTRY_TAG},
    {"GET", "/tags", true, ROUTE_PROBES, ENTRY_TAG},
    {"GET", "/shipments", true, ROUTE_SHIPMENTS, ENTRY_NONE},
    {"GET", "/prices", true, ROUTE_PRICES, ENTRY_NONE},
    {"GET", "/requests", true, ROUTE_REQUESTS, ENTRY_NONE},
};

/* Finds the thing that the path names: nothing, /ID or /by-key/KEY behind the prefix. Returns false when the path is
 * not of this route. */
static bool path_target(const char *path, const char *prefix, bool has_target, struct books_request *request)
{
    size_t len = strlen(prefix);

    if (strncmp(path, prefix, len) != 0) {
        return false;
    }
    path += len;
    if (!has_target) {
        return path[0] == '\0';
    }
    if (path[0] != '/') {
        return false;
    }
    request->target = slice_of(path + 1);
    if (slice_starts_with(request->target, "by-key/")) {
        request->target_is_key = true;
        request->target = slice_of(path + 1 + strlen("by-key/"));
    }
    return request->target.len > 0 && !memchr(request->target.ptr, '/', request->target.len);
}

/* Returns 0 when a route was found, otherwise the status of the refusal. */
static unsigned route_find(const char *method, const char *path, struct books_request *request)
{
    unsigned status = 404;

    for (size_t i = 0; i < COUNT_OF(routes); i++) {
        *request = (struct books_request){.route = routes[i].route, .kind = routes[i].kind};
        if (path_target(path, routes[i].prefix, routes[i].has_target, request)) {
            if (strcmp(method, routes[i].method) == 0) {
                return 0;
            }
            status = 405;
        }
    }
    return status;
}

/* --- the ledger's lines --- */

/*
 * Returns the body for books and ledger: on one line without white space around it, so that it has the same bytes after
 * a restart. Line ends of checked JSON are only between tokens, because strings escape them.
 */
static struct slice body_on_one_line(struct buffer *body)
{
    for (size_t i = 0; i < body->len; i++) {
        if (body->ptr[i] == '\n' || body->ptr[i] == '\r') {
            body->ptr[i] = ' ';
        }
    }
    return json_trim(buffer_slice(body));
}

static struct slice ledger_line(const struct shop *shop, const struct exchange *exchange, const char *method,
                                const char *path, const struct books_request *request,
                                const struct books_answer *answer, enum fault_mode fault, struct buffer *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    json_write_i64(&w, "n", (int64_t)shop->ledger.lines + 1);
    json_write_i64(&w, "t_in", exchange->t_in_ms);
    json_write_slice(&w, "key", request->key);
    json_write_slice(&w, "request", answer->request);
    json_write_text(&w, "method", method);
    json_write_text(&w, "path", path);
    json_write_i64(&w, "effect", answer->effect ? 1 : 0);
    json_write_text(&w, "kind", entry_kind_name(answer->kind));
    json_write_slice(&w, "id", answer->id[0] ? slice_of(answer->id) : SLICE_NONE);
    json_write_i64(&w, "status", answer->status);
    json_write_slice(&w, "target", request->target);
    json_write_slice(&w, "fault", fault == FAULT_NONE ? SLICE_NONE : slice_of(fault_mode_name(fault)));
    json_write_raw(&w, "body", request->body.len > 0 ? request->body : SLICE_NONE);
    json_object_end(&w);
    return buffer_slice(out);
}

static bool on_ledger_line(void *context, struct slice line)
{
    struct shop *shop = context;
    struct arena arena;
    enum entry_kind kind = ENTRY_NONE;
    int64_t effect = 0;
    bool good =
        json_check(line, &json_limits_default, NULL) == ERR_OK && json_i64(json_member(line, "effect"), &effect);

    arena_init(&arena, 4096);
    if (good && effect == 1) {
        good = entry_kind_parse(json_string(json_member(line, "kind"), &arena), &kind) && kind != ENTRY_NONE;
        if (good) {
            (void)json_i64(json_member(line, "t_in"), &shop->books.now_ms); /* we wrote it */
            books_apply(&shop->books, kind, json_string(json_member(line, "id"), &arena),
                        json_string(json_member(line, "key"), &arena), json_string(json_member(line, "target"), &arena),
                        json_member(line, "body"));
        }
    }
    arena_fini(&arena);
    return good;
}

/* Sends a TCP reset now. connect(AF_UNSPEC) does so on Linux before a FIN can be sent; SO_LINGER is for the close()
 * that follows. */

static int connection_fd(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    return info ? info->connect_fd : -1;
}

/* a caller that left already needs no reset */
static enum MHD_Result connection_reset(struct MHD_Connection *connection)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    int fd = connection_fd(connection);

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger,
                     sizeof(linger)); /* Waits until `ms` have passed (-1: for ever), the caller has gone or the shop
                                         stops. Returns false when the caller must not be answered. */
    (void)connect(fd, &nobody, sizeof(nobody));
    return MHD_NO;
}

/* Waits whether or not the caller stays, but not longer than the shop runs. */
static bool connection_linger(struct shop *shop, struct MHD_Connection *connection, int64_t ms)
{
    struct pollfd pollfd = {.fd = connection_fd(connection), .events = POLLRDHUP};
    int64_t until_ms = now_ms() + ms;

    while (!atomic_load(&shop->stopping)) {
        int64_t left = ms < 0 ? 200 : until_ms - now_ms();

        if (left <= 0) {
            return true;
        }
        if (poll(&pollfd, 1, (int)(left < 200 ? left : 200)) > 0) {
            return false;
        }
    }
    return false;
}

/* an early wake-up looks at the clock again */
static void shop_wait(const struct shop *shop, int64_t ms)
{
    int64_t until_ms = now_ms() + ms;

    while (!atomic_load(&shop->stopping) && now_ms() < until_ms) {
        int64_t left = until_ms - now_ms();

        (void)poll(NULL, 0,
                   (int)(left < 50 ? left : 50)); /* the head of the answer promises them, and half of them are sent */
    }
}

#define TRUNCATED_BYTES 64 /* promised by the head of the answer; half of them come */

static ssize_t on_truncated(void *context, uint64_t position, char *out, size_t max)
{
    (void)context;
    if (position >= TRUNCATED_BYTES / 2 || max < TRUNCATED_BYTES / 2) {
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    memset(out, ' ', TRUNCATED_BYTES / 2);
    memcpy(out, "{\"id\":", 6);
    return TRUNCATED_BYTES / 2;
}

static ssize_t on_huge(void *context, uint64_t position, char *out, size_t max)
{
    (void)context;
    (void)position;
    memset(out, ' ', max);
    return (ssize_t)max;
}

/* fails only without memory */

static enum MHD_Result reply_with(struct MHD_Connection *connection, unsigned status, struct MHD_Response *response)
{
    enum MHD_Result result;

    if (!response) {
        return MHD_NO;
    }
    (void)MHD_add_response_header(response, "Content-Type",
                                  "application/json"); /* never answered, however the wait ends */
    if (status == 503 || status == 429) {
        (void)MHD_add_response_header(response, "Retry-After", "1");
    }
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned status, struct slice body)
{
    return reply_with(connection, status,
                      MHD_create_response_from_buffer(body.len, (void *)(uintptr_t)body.ptr, MHD_RESPMEM_MUST_COPY));
}

static enum MHD_Result reply_problem(struct MHD_Connection *connection, unsigned status, const char *error)
{
    char body[512];
    int len = snprintf(body, sizeof(body), "{\"error\":\"%s\"}", error);

    return reply(connection, status, (struct slice){body, (size_t)len});
}

static enum MHD_Result reply_answer(struct shop *shop, struct MHD_Connection *connection, const struct answer *answer)
{
    switch (answer->fault.mode) {
    case FAULT_NONE:
    case FAULT_LATE:
    case FAULT_REDELIVERED:
        return reply(connection, answer->status, answer->body);
    case FAULT_SLOW:
        if (!connection_linger(shop, connection, answer->fault.ms)) {
            return connection_reset(connection);
        }
        return reply(connection, answer->status, answer->body);
    case FAULT_TIMEOUT_AFTER:
    case FAULT_HANG:
        (void)connection_linger(shop, connection, -1); /* never to be answered, however it ends */
        return connection_reset(connection);
    case FAULT_RESET_AFTER:
    case FAULT_RESET_BEFORE:
        return connection_reset(connection);
    case FAULT_500_BEFORE:
    case FAULT_500_AFTER:
        return reply_problem(connection, 500, "something broke");
    case FAULT_503:
        return reply_problem(connection, 503, "come back later");
    case FAULT_422:
        return reply_problem(connection, 422, "refused");
    case FAULT_429:
        return reply_problem(connection, 429, "too many requests");
    case FAULT_GARBAGE:
        return reply(connection, 201, SLICE("{\"id\": \"\xff\xfe<html>, 17,,}"));
    case FAULT_TRUNCATED:
        return reply_with(
            connection, 201,
            MHD_create_response_from_callback(TRUNCATED_BYTES, TRUNCATED_BYTES, on_truncated, NULL, NULL));
    case FAULT_HUGE:
        return reply_with(connection, 201,
                          MHD_create_response_from_callback(HUGE_BYTES, 64 * 1024, on_huge, NULL, NULL));
    case FAULT_MODE_COUNT:
        break;
    }
    UNREACHABLE();
}

/* Serves the request under the lock: decides it, writes it down and makes it true. */

/* A queue that delivers twice relies on the key, so a shop without keys has no such queue. */
static uint64_t shop_serve(struct shop *shop, struct exchange *exchange, const char *method, const char *path,
                           struct books_request *request, enum fault_mode fault, struct books_answer *decided)
{
    struct buffer line;
    uint64_t position;

    buffer_init(&line, 4 * SHOP_BODY_BYTES_MAX);
    request->number = shop->ledger.lines + 1;
    shop->books.now_ms = now_ms();
    if (fault_mode_has_effect(fault)) {
        books_decide(&shop->books, request, &exchange->arena, decided);
    }
    position = ledger_append(&shop->ledger, ledger_line(shop, exchange, method, path, request, decided, fault, &line));
    if (decided->effect) {
        books_apply(&shop->books, decided->kind, slice_of(decided->id), request->key, request->target, request->body);
    }
    shop->requests++;
    buffer_fini(&line);
    return position;
}

static enum MHD_Result handle_business(struct shop *shop, struct MHD_Connection *connection, struct exchange *exchange,
                                       const char *method, const char *path, struct books_request *request)
{
    struct books_answer decided = {.kind = ENTRY_NONE};
    struct answer answer;
    uint64_t position;

    request->key = slice_of(MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Idempotency-Key"));
    request->body = body_on_one_line(&exchange->body);
    pthread_mutex_lock(&shop->lock);
    answer.fault = fault_plan_take(&shop->faults, request->route, request->key.ptr ? request->key : request->target,
                                   request->body);
    if (answer.fault.mode == FAULT_LATE) {
        pthread_mutex_unlock(&shop->lock);
        shop_wait(shop, answer.fault.ms);
        pthread_mutex_lock(&shop->lock);
    }
    position = shop_serve(shop, exchange, method, path, request, answer.fault.mode, &decided);
    /* also without an effect, because the answer may tell of one that is still being written */
    if (answer.fault.mode == FAULT_REDELIVERED && !shop->books.ignore_keys &&
        (request->key.ptr || strcmp(method, "POST") != 0)) {
        position = shop_serve(shop, exchange, method, path, request, answer.fault.mode, &decided);
    }
    pthread_mutex_unlock(&shop->lock);
    ledger_wait(&shop->ledger, position); /* Does `value` name one of the two? Returns true also when it is absent, and
                                             then leaves `second` as it is. */
    answer.status = decided.status;
    answer.body = decided.body;
    return reply_answer(shop, connection, &answer);
}

static enum MHD_Result handle_faults(struct shop *shop, struct MHD_Connection *connection, struct exchange *exchange,
                                     const char *method)
{
    struct slice body = buffer_slice(&exchange->body);
    struct buffer out;
    struct err err = {.code = ERR_OK};
    enum err_code code = ERR_OK;
    enum MHD_Result result;

    if (strcmp(method, "PUT") != 0 && strcmp(method, "DELETE") != 0 && strcmp(method, "GET") != 0) {
        return reply_problem(connection, 405, "GET, PUT or DELETE");
    }
    buffer_init(&out, 256 * 1024);
    pthread_mutex_lock(&shop->lock);
    if (strcmp(method, "PUT") == 0) {
        code = fault_plan_add(&shop->faults, body, &err);
    } else if (strcmp(method, "DELETE") == 0) {
        fault_plan_clear(&shop->faults);
    }
    fault_plan_write(&shop->faults, &out);
    pthread_mutex_unlock(&shop->lock);
    result = code == ERR_OK ? reply(connection, 200, buffer_slice(&out)) : reply_problem(connection, 422, err.message);
    buffer_fini(&out);
    return result;
}

/* Sends the ledger as it is on disk, as JSON lines. The file only grows and lines are written whole, so its length now
 * is the end of a line. */
static bool choice_parse(struct slice value, const char *first_name, const char *second_name, bool *second)
{
    if (!value.ptr || json_string_is(value, first_name)) {
        *second = value.ptr ? false : *second;
        return true;
    }
    *second = true;
    return json_string_is(value, second_name);
}

static enum err_code settings_read(struct shop *shop, struct slice body, struct err *err)
{
    struct slice chaos = json_member(body, "chaos");
    struct slice forget = json_member(body, "forget_ms");
    bool ignore_keys = shop->books.ignore_keys, no_status = shop->books.no_status;
    bool ignore_voids = shop->books.ignore_voids;
    int64_t forget_ms = shop->books.forget_ms;

    if (!choice_parse(json_member(body, "keys"), "honour", "ignore", &ignore_keys)) {
        return err_set(err, ERR_INVALID, "keys must be honour or ignore");
    }
    if (!choice_parse(json_member(body, "status"), "by-key", "none", &no_status)) {
        return err_set(err, ERR_INVALID, "status must be by-key or none");
    }
    if (!choice_parse(json_member(body, "voids"), "honour", "ignore", &ignore_voids)) {
        return err_set(err, ERR_INVALID, "voids must be honour or ignore");
    }
    if (forget.ptr && (!json_i64(forget, &forget_ms) || forget_ms < 0)) {
        return err_set(err, ERR_INVALID, "forget_ms must be a whole number; 0 forgets nothing");
    }
    if (chaos.ptr && fault_plan_set_chaos(&shop->faults, chaos, err) != ERR_OK) {
        return ERR_INVALID;
    }
    shop->books.ignore_keys = ignore_keys;
    shop->books.no_status = no_status;
    shop->books.ignore_voids = ignore_voids;
    shop->books.forget_ms = forget_ms;
    return ERR_OK;
}

static void settings_write(const struct shop *shop, struct buffer *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    json_write_text(&w, "keys", shop->books.ignore_keys ? "ignore" : "honour");
    json_write_i64(&w, "forget_ms", shop->books.forget_ms);
    json_write_text(&w, "voids", shop->books.ignore_voids ? "ignore" : "honour");
    json_write_text(&w, "status", shop->books.no_status ? "none" : "by-key");
    json_object_begin(&w, "chaos");
    json_write_i64(&w, "percent", shop->faults.chaos_percent);
    json_write_i64(&w, "seed", (int64_t)shop->faults.seed);
    json_write_i64(&w, "ms", shop->faults.ms_max);
    json_object_begin(&w, "modes");
    for (int mode = FAULT_NONE + 1; mode < FAULT_MODE_COUNT; mode++) {
        json_write_i64(&w, fault_mode_name((enum fault_mode)mode), shop->faults.weights[mode]);
    }
    json_object_end(&w);
    json_object_end(&w);
    json_object_end(&w);
}

static enum MHD_Result handle_settings(struct shop *shop, struct MHD_Connection *connection, struct exchange *exchange,
                                       const char *method)
{
    struct buffer out;
    struct err err = {.code = ERR_OK};
    enum err_code code = ERR_OK;
    enum MHD_Result result;

    if (strcmp(method, "PUT") != 0 && strcmp(method, "GET") != 0) {
        return reply_problem(connection, 405, "GET or PUT");
    }
    buffer_init(&out, 16 * 1024);
    pthread_mutex_lock(&shop->lock);
    if (strcmp(method, "PUT") == 0) {
        code = settings_read(shop, buffer_slice(&exchange->body), &err);
    }
    settings_write(shop, &out);
    pthread_mutex_unlock(&shop->lock);
    result = code == ERR_OK ? reply(connection, 200, buffer_slice(&out)) : reply_problem(connection, 422, err.message);
    buffer_fini(&out);
    return result;
}

static enum MHD_Result handle_state(struct shop *shop, struct MHD_Connection *connection)
{
    struct buffer out;
    enum MHD_Result result;

    buffer_init(&out, 64 * 1024);
    pthread_mutex_lock(&shop->lock);
    books_write_summary(&shop->books, &out);
    pthread_mutex_unlock(&shop->lock);
    result = reply(connection, 200, buffer_slice(&out));
    buffer_fini(&out);
    return result;
}

/* The ledger as it is on disk, JSON lines. The file only grows and lines are written whole, so its length now is an
 * end. */
static enum MHD_Result handle_ledger(struct shop *shop, struct MHD_Connection *connection)
{
    struct stat st;
    int fd;

    pthread_mutex_lock(&shop->lock);
    fd = dup(shop->ledger.fd);
    if (fd >= 0 && fstat(fd, &st) != 0) {
        close(fd);
        fd = -1;
    }
    pthread_mutex_unlock(&shop->lock);
    if (fd < 0) {
        return reply_problem(connection, 500, "the ledger cannot be read");
    }
    if (st.st_size == 0) {
        close(fd);
        return reply(connection, 200, SLICE(""));
    }
    return reply_with(connection, 200, MHD_create_response_from_fd_at_offset64((uint64_t)st.st_size, fd, 0));
}

static enum MHD_Result handle(struct shop *shop, struct MHD_Connection *connection, struct exchange *exchange,
                              const char *method, const char *path)
{
    struct books_request request;
    struct err err;
    unsigned status;

    if (exchange->too_large) {
        return reply_problem(connection, 413, "the body is larger than this shop takes");
    }
    if (exchange->body.len > 0 && json_check(buffer_slice(&exchange->body), &json_limits_default, &err) != ERR_OK) {
        return reply_problem(connection, 400, "the body is no JSON");
    }
    if (strcmp(path, "/livez") == 0) {
        return reply(connection, 200, SLICE("{\"status\":\"alive\"}"));
    }
    if (strcmp(path, "/faults") == 0) {
        return handle_faults(shop, connection, exchange, method);
    }
    if (strcmp(path, "/settings") == 0) {
        return handle_settings(shop, connection, exchange, method);
    }
    if (strcmp(path, "/state") == 0 && strcmp(method, "GET") == 0) {
        return handle_state(shop, connection);
    }
    if (strcmp(path, "/ledger") == 0 && strcmp(method, "GET") == 0) {
        return handle_ledger(shop, connection);
    }
    status = route_find(method, path, &request);
    if (status != 0) {
        return reply_problem(connection, status, status == 405 ? "not with this method" : "there is no such path");
    }
    return handle_business(shop, connection, exchange, method, path, &request);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *upload, size_t *upload_len,
                                  void **request_context)
{
    struct exchange *exchange = *request_context;

    (void)version;
    if (!exchange) {
        exchange = memory_alloc(sizeof(*exchange));
        arena_init(&exchange->arena, 4096);
        buffer_init(&exchange->body, SHOP_BODY_BYTES_MAX);
        exchange->t_in_ms = now_ms();
        *request_context = exchange;
        return MHD_YES;
    }
    if (*upload_len > 0) {
        buffer_put(&exchange->body, upload, *upload_len);
        exchange->too_large = exchange->body.overflow;
        *upload_len = 0;
        return MHD_YES;
    }
    return handle(context, connection, exchange, method, path);
}

static void on_request_over(void *context, struct MHD_Connection *connection, void **request_context,
                            enum MHD_RequestTerminationCode why)
{
    struct exchange *exchange = *request_context;

    (void)context;
    (void)connection;
    (void)why;
    if (exchange) {
        buffer_fini(&exchange->body);
        arena_fini(&exchange->arena);
        free(exchange);
        *request_context = NULL;
    }
}

/* --- start and stop --- */

static enum err_code listen_on(const char *text, int *fd_out, unsigned *port, struct err *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    const char *colon = strrchr(text, ':');
    char host[64];
    int64_t number;
    int one = 1, fd;

    if (!colon || (size_t)(colon - text) >= sizeof(host) || !slice_to_i64(slice_of(colon + 1), &number) || number < 0 ||
        number > 65535) {
        return err_set(err, ERR_CONFIG, "--listen %s is not ADDRESS:PORT", text);
    }
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = '\0';
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) {
        return err_set(err, ERR_CONFIG, "--listen %s does not begin with an IPv4 address", text);
    }
    address.sin_port = htons((uint16_t)number);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, 1024) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) != 0) {
        int why = errno;

        if (fd >= 0) {
            close(fd);
        }
        err_set(err, ERR_IO, "cannot listen on %s: %s", text, strerror(why));
        if (why == EADDRINUSE) {
            err_hint(err, "another program has this port; give --listen another one");
        }
        return ERR_IO;
    }
    *fd_out = fd;
    *port = ntohs(address.sin_port);
    return ERR_OK;
}

enum err_code shop_start(struct shop *shop, const struct shop_options *options, unsigned *port, struct err *err)
{
    enum err_code code;
    int fd = -1;

    *shop = (struct shop){.requests = 0};
    shop->ledger.fd = -1;
    pthread_mutex_init(&shop->lock, NULL);
    books_init(&shop->books, options->ignore_keys);
    shop->books.no_status = options->no_status;
    shop->books.ignore_voids = options->ignore_voids;
    shop->books.forget_ms = options->forget_ms;
    fault_plan_init(&shop->faults, options->chaos_percent, options->seed);
    code = ledger_open(&shop->ledger, options->ledger_path, !options->no_sync, on_ledger_line, shop, err);
    if (code == ERR_OK) {
        code = listen_on(options->listen, &fd, port, err);
    }
    if (code == ERR_OK) {
        shop->daemon =
            MHD_start_daemon(MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0, NULL,
                             NULL, on_request, shop, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED,
                             on_request_over, NULL, MHD_OPTION_THREAD_STACK_SIZE, (size_t)THREAD_STACK_BYTES,
                             MHD_OPTION_CONNECTION_LIMIT, 4000u, MHD_OPTION_CONNECTION_TIMEOUT, 120u, MHD_OPTION_END);
        if (!shop->daemon) {
            close(fd);
            code = err_set(err, ERR_IO, "the HTTP server cannot be started");
        }
    }
    if (code != ERR_OK) {
        shop_stop(shop);
    }
    return code;
}

void shop_stop(struct shop *shop)
{
    atomic_store(&shop->stopping, true);
    if (shop->daemon) {
        MHD_stop_daemon(shop->daemon);
        shop->daemon = NULL;
    }
    ledger_close(&shop->ledger);
    fault_plan_fini(&shop->faults);
    books_fini(&shop->books);
}
