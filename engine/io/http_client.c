/*
 * libcurl's multi interface on the loop.
 *
 * Why each option stands where it does: a POST of which a server has read everything must never leave a second time,
 * and after any failure we must know whether a byte may have left. libcurl resends by itself when a kept-alive
 * connection dies without an answer, unless it cannot rewind the body; therefore bodies come from a read function
 * without a seek function, and requests without a body that must not be repeated get a connection of their own.
 */
#include "io/http_client.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#define EASY_FREE_MAX 64
#define HEADER_COUNT_MAX 256
#define HEADER_BYTES_MAX ((size_t)128 * 1024)
#define JOB_MAGIC UINT32_C(0x4a6f6231)

struct http_client {
    struct loop *loop;
    CURLM *multi;
    struct timer timer;         /* what libcurl waits for */
    struct deferred at_once;    /* the same when it waits for nothing: a timer of 1 ms would cost 1 ms a request */
    struct list jobs;
    CURL *easy_free[EASY_FREE_MAX];
    size_t easy_free_count;
};

/* One watched socket. Its memory is the poll handle's until uv is done with it. */
struct http_socket {
    uv_poll_t poll;
    struct http_client *client;
    curl_socket_t fd;
};

/* One request under way. */
struct http_job {
    uint32_t magic;
    struct list_link link;
    struct http_client *client;
    struct http_request *request;
    CURL *easy;                 /* NULL when it was refused before libcurl saw it */
    struct curl_slist *headers;
    struct deferred finish;     /* of what ends outside libcurl: refused or cancelled */
    struct buffer body;
    size_t body_sent;
    size_t header_bytes, header_capacity;
    bool headers_complete, too_large, denied, cancelled;
    char error[CURL_ERROR_SIZE];
};

static struct http_job *job_of(void *pointer)
{
    struct http_job *job = pointer;

    CHECK(job && job->magic == JOB_MAGIC);
    return job;
}

/* --- the callbacks that libcurl makes while a request is under way ------------------------------------------- */

static bool address_is_link_local(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;

        return (ntohl(in->sin_addr.s_addr) >> 16) == 0xa9fe;
    }
    if (address->sa_family == AF_INET6) {
        const struct in6_addr *in6 = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;

        if (IN6_IS_ADDR_V4MAPPED(in6) || IN6_IS_ADDR_V4COMPAT(in6)) {
            return in6->s6_addr[12] == 169 && in6->s6_addr[13] == 254;
        }
        return IN6_IS_ADDR_LINKLOCAL(in6);
    }
    return false;
}

/*
 * Every new connection comes through here with its resolved address, so a name that changes its address is covered.
 * Reused connections have passed before and the rule never changes. Link-local addresses are where clouds keep the
 * credentials of the machine; no tool lives there.
 */
static curl_socket_t on_open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct http_job *job = job_of(context);

    (void)purpose; /* there is only one kind for HTTP */
    if (address_is_link_local(&address->addr)) {
        job->denied = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static size_t on_read(char *out, size_t size, size_t count, void *context)
{
    struct http_job *job = job_of(context);
    size_t left = job->request->body.len - job->body_sent;
    size_t bytes = size * count < left ? size * count : left;

    if (bytes) {
        memcpy(out, job->request->body.ptr + job->body_sent, bytes);
        job->body_sent += bytes;
    }
    return bytes;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
    struct http_job *job = job_of(context);
    size_t len = size * count;

    if (job->cancelled) {
        return 0;
    }
    if (job->request->streaming) {
        if (len) {
            job->request->on_data(job->request, (struct slice){bytes, len});
        }
        return job->cancelled ? 0 : len;
    }
    buffer_put(&job->body, bytes, len);
    if (job->body.overflow) {
        job->too_large = true;
        return 0;
    }
    return len;
}

static bool header_keep(struct http_job *job, struct slice line)
{
    struct http_request *request = job->request;
    const char *colon = memchr(line.ptr, ':', line.len);
    struct http_header *header;
    char *name;

    if (!colon) {
        return true; /* not a header; nobody will miss it */
    }
    if (request->response_header_count == HEADER_COUNT_MAX) {
        return false;
    }
    if (request->response_header_count == job->header_capacity) {
        size_t capacity = job->header_capacity ? job->header_capacity * 2 : 16;
        struct http_header *grown = arena_array(request->arena, capacity, sizeof(*grown));

        if (job->header_capacity) {
            memcpy(grown, request->response_headers, job->header_capacity * sizeof(*grown));
        }
        request->response_headers = grown;
        job->header_capacity = capacity;
    }
    header = &request->response_headers[request->response_header_count++];
    name = arena_text(request->arena, (struct slice){line.ptr, (size_t)(colon - line.ptr)});
    for (char *c = name; *c; c++) {
        if (*c >= 'A' && *c <= 'Z') {
            *c = (char)(*c - 'A' + 'a');
        }
    }
    header->name = slice_of(name);
    header->value = arena_slice(request->arena, slice_trim((struct slice){colon + 1, (size_t)(line.ptr + line.len - colon - 1)}));
    return true;
}

/* Headers count only once the empty line behind them was seen: libcurl reports success for a connection cut before it. */
static size_t on_header(char *bytes, size_t size, size_t count, void *context)
{
    struct http_job *job = job_of(context);
    size_t len = size * count;
    struct slice line = slice_trim((struct slice){bytes, len});

    if (job->cancelled) {
        return 0;
    }
    job->header_bytes += len;
    if (job->header_bytes > HEADER_BYTES_MAX) {
        job->too_large = true;
        return 0;
    }
    if (!job->headers_complete && slice_starts_with(line, "HTTP/")) {
        job->request->response_header_count = 0; /* an interim answer (1xx) came before */
    } else if (line.len == 0) {
        long status = 0;

        (void)curl_easy_getinfo(job->easy, CURLINFO_RESPONSE_CODE, &status); /* cannot fail for a known member */
        if (status >= 200) {
            job->request->status = (int)status;
            job->headers_complete = true;
        }
    } else if (!job->headers_complete && !header_keep(job, line)) {
        job->too_large = true;
        return 0;
    }
    return len;
}

/* --- the end of a request ----------------------------------------------------------------------------------- */

static void job_explain(struct http_job *job, const char *error, const char *detail)
{
    struct http_request *request = job->request;

    request->error = error;
    snprintf(request->detail, sizeof(request->detail), "%s", detail);
}

static const char *error_name(CURLcode code, bool sent, bool headers_complete)
{
    if (headers_complete && code != CURLE_OPERATION_TIMEDOUT) {
        return "cut";
    }
    switch ((int)code) {
    case CURLE_OK:
    case CURLE_PARTIAL_FILE:
        return "cut";
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return "dns";
    case CURLE_COULDNT_CONNECT:
        return "refused";
    case CURLE_OPERATION_TIMEDOUT:
        return "timeout";
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_CLIENTCERT:
        return "tls";
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_FAIL_REWIND:
        return sent ? "reset" : "refused";
    default:
        return "protocol";
    }
}

/* What the request came to, from what libcurl knows. REQUEST_SIZE alone says whether a byte may have left. */
static void job_judge(struct http_job *job, CURLcode code)
{
    struct http_request *request = job->request;
    long request_bytes = 0;

    (void)curl_easy_getinfo(job->easy, CURLINFO_REQUEST_SIZE, &request_bytes); /* cannot fail for a known member */
    request->sent = request_bytes > 0;
    request->complete = code == CURLE_OK && job->headers_complete && !job->too_large;
    request->timed_out = code == CURLE_OPERATION_TIMEDOUT;
    if (request->complete) {
        request->response_body = arena_slice(request->arena, buffer_slice(&job->body));
        if (!request->response_body.ptr) {
            request->response_body = SLICE("");
        }
        return;
    }
    if (job->too_large) {
        job_explain(job, "too-large", "The answer is larger than allowed.");
    } else if (job->cancelled) {
        job_explain(job, "cancelled", "The request was cancelled before the answer was complete.");
    } else if (job->denied && !request->sent) {
        job_explain(job, "refused", "The name resolves to a link-local address, where no tool may live.");
    } else if (code == CURLE_OK) {
        job_explain(job, "cut", "The connection was closed in the middle of the headers.");
    } else {
        job_explain(job, error_name(code, request->sent, job->headers_complete),
                    job->error[0] ? job->error : curl_easy_strerror(code));
    }
}

static void easy_put(struct http_client *client, CURL *easy)
{
    if (client->easy_free_count == EASY_FREE_MAX) {
        curl_easy_cleanup(easy);
        return;
    }
    curl_easy_reset(easy);
    client->easy_free[client->easy_free_count++] = easy;
}

/* Frees the job, then tells its owner, who may send the next request at once. */
static void job_end(struct http_job *job)
{
    struct http_client *client = job->client;
    struct http_request *request = job->request;

    if (job->easy) {
        CHECK(curl_multi_remove_handle(client->multi, job->easy) == CURLM_OK);
        easy_put(client, job->easy);
    }
    loop_defer_cancel(client->loop, &job->finish);
    list_remove(&client->jobs, &job->link);
    curl_slist_free_all(job->headers);
    buffer_fini(&job->body);
    job->magic = 0;
    free(job);
    request->internal = NULL;
    request->done(request);
}

static void client_collect(struct http_client *client)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(client->multi, &left))) {
        char *context = NULL;
        CURLcode code = message->data.result;
        struct http_job *job;

        if (message->msg != CURLMSG_DONE) {
            continue;
        }
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &context); /* set by us */
        job = job_of(context);
        job_judge(job, code); /* before the handle leaves: `message` is gone then */
        job_end(job);
    }
}

static void on_finish(struct deferred *deferred)
{
    struct http_job *job = container_of(deferred, struct http_job, finish);

    if (job->easy) {
        job_judge(job, CURLE_ABORTED_BY_CALLBACK);
    }
    job_end(job);
}

/* --- libcurl's wishes: sockets to watch, time to pass -------------------------------------------------------- */

static void client_act(struct http_client *client, curl_socket_t fd, int events)
{
    int running;

    CHECK(curl_multi_socket_action(client->multi, fd, events, &running) == CURLM_OK);
    client_collect(client);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct http_socket *watched = poll->data;
    int flags = 0;

    if (status < 0) {
        flags = CURL_CSELECT_ERR;
    }
    flags |= events & UV_READABLE ? CURL_CSELECT_IN : 0;
    flags |= events & UV_WRITABLE ? CURL_CSELECT_OUT : 0;
    client_act(watched->client, watched->fd, flags);
}

static void on_poll_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *socket_context)
{
    struct http_client *client = context;
    struct http_socket *watched = socket_context;
    int events;

    (void)easy; /* sockets belong to connections, not to requests */
    if (what == CURL_POLL_REMOVE) {
        if (watched) {
            uv_poll_stop(&watched->poll);
            uv_close((uv_handle_t *)&watched->poll, on_poll_closed);
            CHECK(curl_multi_assign(client->multi, fd, NULL) == CURLM_OK);
        }
        return 0;
    }
    if (!watched) {
        watched = memory_alloc(sizeof(*watched));
        watched->client = client;
        watched->fd = fd;
        watched->poll.data = watched;
        if (uv_poll_init(loop_uv(client->loop), &watched->poll, fd) != 0) {
            free(watched);
            return -1;
        }
        CHECK(curl_multi_assign(client->multi, fd, watched) == CURLM_OK);
    }
    events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
    CHECK(uv_poll_start(&watched->poll, events, on_poll) == 0);
    return 0;
}

static void on_timer(struct timer *timer)
{
    client_act(container_of(timer, struct http_client, timer), CURL_SOCKET_TIMEOUT, 0);
}

static void on_at_once(struct deferred *deferred)
{
    client_act(container_of(deferred, struct http_client, at_once), CURL_SOCKET_TIMEOUT, 0);
}

/* libcurl must not be entered from here, not even for a wait of 0: that would be inside its own call. */
static int on_timeout_wish(CURLM *multi, long timeout_ms, void *context)
{
    struct http_client *client = context;

    (void)multi;
    timer_stop(client->loop, &client->timer);
    loop_defer_cancel(client->loop, &client->at_once);
    if (timeout_ms == 0) {
        loop_defer(client->loop, &client->at_once, on_at_once);
    } else if (timeout_ms > 0) {
        timer_start(client->loop, &client->timer, timeout_ms, on_timer);
    }
    return 0;
}

/* --- the client ---------------------------------------------------------------------------------------------- */

static void curl_start(void)
{
    CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
}

struct http_client *http_client_new(struct loop *loop, uint32_t connections_max, uint32_t connections_per_host_max)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct http_client *client = memory_alloc(sizeof(*client));

    CHECK(pthread_once(&once, curl_start) == 0);
    client->loop = loop;
    client->multi = curl_multi_init();
    CHECK(client->multi);
    list_init(&client->jobs);
    CHECK(curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_socket) == CURLM_OK);
    CHECK(curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client) == CURLM_OK);
    CHECK(curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_timeout_wish) == CURLM_OK);
    CHECK(curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client) == CURLM_OK);
    CHECK(curl_multi_setopt(client->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)connections_max) == CURLM_OK);
    CHECK(curl_multi_setopt(client->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)connections_per_host_max) == CURLM_OK);
    CHECK(curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)(connections_max ? connections_max : 256)) == CURLM_OK);
    return client;
}

void http_client_free(struct http_client *client)
{
    if (!client) {
        return;
    }
    CHECK(list_empty(&client->jobs));
    while (client->easy_free_count > 0) {
        curl_easy_cleanup(client->easy_free[--client->easy_free_count]);
    }
    CHECK(curl_multi_cleanup(client->multi) == CURLM_OK); /* closes kept connections, through on_socket() */
    timer_stop(client->loop, &client->timer);
    loop_defer_cancel(client->loop, &client->at_once);
    free(client);
}

/* --- sending ------------------------------------------------------------------------------------------------- */

static bool text_is_token(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        if (c <= ' ' || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c)) {
            return false;
        }
    }
    return text.len > 0;
}

static bool text_is_header_value(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        if ((c < ' ' && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    return true;
}

static bool text_is_url(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        if (c <= ' ' || c == 0x7f) {
            return false;
        }
    }
    return text.len > 0;
}

/* A value with a line end would be a second header, or a second request: such a request never leaves. */
static const char *request_fault(const struct http_request *request)
{
    if (!text_is_token(request->method)) {
        return "The method is no HTTP method.";
    }
    if (!text_is_url(request->url)) {
        return "The URL is empty or holds a space or a control character.";
    }
    for (size_t i = 0; i < request->header_count; i++) {
        if (!text_is_token(request->headers[i].name)) {
            return "The name of a header is empty or holds a character that is not allowed.";
        }
        if (!text_is_header_value(request->headers[i].value)) {
            return "The value of a header holds a control character.";
        }
    }
    return NULL;
}

static void header_line_add(struct http_job *job, struct slice name, struct slice value)
{
    struct buffer line;
    struct curl_slist *grown;

    buffer_init(&line, name.len + value.len + 4);
    buffer_put_slice(&line, name);
    if (value.len) {
        buffer_put_text(&line, ": ");
        buffer_put_slice(&line, value);
    } else {
        buffer_put_char(&line, ';'); /* libcurl's way to write a header without a value */
    }
    grown = curl_slist_append(job->headers, buffer_c(&line));
    CHECK(grown);
    job->headers = grown;
    buffer_fini(&line);
}

static void headers_build(struct http_job *job)
{
    const struct http_request *request = job->request;
    bool has_type = false;

    for (size_t i = 0; i < request->header_count; i++) {
        struct slice name = request->headers[i].name;

        has_type = has_type || (name.len == 12 && strncasecmp(name.ptr, "content-type", 12) == 0);
        header_line_add(job, name, request->headers[i].value);
    }
    /* Without a value these keep libcurl from adding its own: waiting for "100 Continue" would cost a second. */
    job->headers = curl_slist_append(job->headers, "Expect:");
    CHECK(job->headers);
    if (!has_type) {
        job->headers = curl_slist_append(job->headers, "Content-Type:");
        CHECK(job->headers);
    }
}

#define EASY_SET(easy, option, value) CHECK(curl_easy_setopt((easy), (option), (value)) == CURLE_OK)

static bool method_has_body(struct slice method)
{
    return slice_is(method, "POST") || slice_is(method, "PUT") || slice_is(method, "PATCH");
}

static void easy_set_method(struct http_job *job, char *method)
{
    const struct http_request *request = job->request;
    bool with_body = request->body.ptr || method_has_body(request->method);

    if (with_body) {
        EASY_SET(job->easy, CURLOPT_POST, 1L);
        EASY_SET(job->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
        EASY_SET(job->easy, CURLOPT_READFUNCTION, on_read);
        EASY_SET(job->easy, CURLOPT_READDATA, job);
    } else if (slice_is(request->method, "HEAD")) {
        EASY_SET(job->easy, CURLOPT_NOBODY, 1L);
    } else {
        EASY_SET(job->easy, CURLOPT_HTTPGET, 1L);
    }
    EASY_SET(job->easy, CURLOPT_CUSTOMREQUEST, method);
    /* An empty body needs no rewinding, so libcurl would send it again. */
    if (request->fresh_connection || (with_body && request->body.len == 0)) {
        EASY_SET(job->easy, CURLOPT_FRESH_CONNECT, 1L);
    }
}

static CURLcode easy_set_all(struct http_job *job)
{
    const struct http_request *request = job->request;
    CURL *easy = job->easy;
    char *method = arena_text(request->arena, request->method);
    CURLcode code;

    EASY_SET(easy, CURLOPT_PRIVATE, job);
    EASY_SET(easy, CURLOPT_ERRORBUFFER, job->error);
    EASY_SET(easy, CURLOPT_NOSIGNAL, 1L);
    EASY_SET(easy, CURLOPT_PROXY, ""); /* else the environment's http_proxy would be honoured */
    EASY_SET(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    EASY_SET(easy, CURLOPT_FOLLOWLOCATION, 0L);
    EASY_SET(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1); /* what was measured about REQUEST_SIZE holds for this one */
    EASY_SET(easy, CURLOPT_HTTP09_ALLOWED, 0L);
    EASY_SET(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    EASY_SET(easy, CURLOPT_PATH_AS_IS, 1L);
    EASY_SET(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    EASY_SET(easy, CURLOPT_HTTPHEADER, job->headers);
    EASY_SET(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    EASY_SET(easy, CURLOPT_OPENSOCKETDATA, job);
    EASY_SET(easy, CURLOPT_WRITEFUNCTION, on_body);
    EASY_SET(easy, CURLOPT_WRITEDATA, job);
    EASY_SET(easy, CURLOPT_HEADERFUNCTION, on_header);
    EASY_SET(easy, CURLOPT_HEADERDATA, job);
    if (request->timeout_ms > 0) {
        EASY_SET(easy, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
    }
    if (request->connect_timeout_ms > 0) {
        EASY_SET(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)request->connect_timeout_ms);
    }
    if (request->unix_socket) {
        EASY_SET(easy, CURLOPT_UNIX_SOCKET_PATH, request->unix_socket);
    }
    easy_set_method(job, method);
    /* These come from outside; libcurl may refuse them. */
    code = curl_easy_setopt(easy, CURLOPT_URL, arena_text(request->arena, request->url));
    if (code == CURLE_OK && request->ca_file) {
        code = curl_easy_setopt(easy, CURLOPT_CAINFO, request->ca_file);
    }
    if (code == CURLE_OK && request->client_cert) {
        code = curl_easy_setopt(easy, CURLOPT_SSLCERT, request->client_cert);
    }
    if (code == CURLE_OK && request->client_key) {
        code = curl_easy_setopt(easy, CURLOPT_SSLKEY, request->client_key);
    }
    return code;
}

static void request_reset(struct http_request *request)
{
    request->sent = request->complete = request->timed_out = false;
    request->status = 0;
    request->response_headers = NULL;
    request->response_header_count = 0;
    request->response_body = SLICE_NONE;
    request->error = NULL;
    request->detail[0] = '\0';
}

void http_send(struct http_client *client, struct http_request *request)
{
    struct http_job *job = memory_alloc(sizeof(*job));
    const char *fault = request_fault(request);

    CHECK(request->done && request->arena && (!request->streaming || request->on_data));
    request_reset(request);
    job->magic = JOB_MAGIC;
    job->client = client;
    job->request = request;
    request->internal = job;
    buffer_init(&job->body, request->response_bytes_max);
    list_push(&client->jobs, &job->link);
    if (fault) {
        job_explain(job, "protocol", fault);
        loop_defer(client->loop, &job->finish, on_finish);
        return;
    }
    headers_build(job);
    job->easy = client->easy_free_count ? client->easy_free[--client->easy_free_count] : curl_easy_init();
    CHECK(job->easy);
    if (easy_set_all(job) != CURLE_OK) {
        easy_put(client, job->easy);
        job->easy = NULL;
        job_explain(job, "protocol", "The URL, or the name of a certificate file, cannot be used.");
        loop_defer(client->loop, &job->finish, on_finish);
        return;
    }
    CHECK(curl_multi_add_handle(client->multi, job->easy) == CURLM_OK);
}

/* Deferred, because it may be called from on_data(), and there libcurl cannot be entered. */
void http_cancel(struct http_request *request)
{
    struct http_job *job;

    if (!request->internal) {
        return;
    }
    job = job_of(request->internal);
    job->cancelled = true;
    loop_defer(job->client->loop, &job->finish, on_finish);
}
