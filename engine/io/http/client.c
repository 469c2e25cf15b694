/*
 * libcurl's multi interface on the loop: sockets, timeouts, and the results of requests.
 *
 * After any failure we must know whether a byte may have left, and libcurl's error codes do not say it: 28 and 1 occur
 * on both sides. The moment before the first byte does (CURLOPT_PREREQFUNCTION, see on_leaving() in http/transfer.c).
 */
#include "io/http/client.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/outcome.h"
#include "io/http/job.h"

#define EASY_FREE_MAX 256
#define IDLE_BYTES_MAX (16u << 20)              /* more than any socket buffers */
#define STREAM_TURN_BYTES ((size_t)32 * 1024)   /* read from one stream in a turn of the loop */
#define STREAMS_TURN_BYTES ((size_t)128 * 1024) /* read from all streams in a turn */
#define STREAM_PAUSE_MS 1                       /* least time until the next turn of streams */

struct http_client {
    struct loop *loop;
    CURLM *multi;
    struct timer timer;      /* the timeout that libcurl asked for */
    struct deferred at_once; /* runs for a timeout of 0, where a timer would cost 1 ms a request */
    struct list jobs;
    CURL *easy_free[EASY_FREE_MAX];
    size_t easy_free_count;
    struct http_urls urls;
    struct http_socket **kept; /* sockets of connections that no request uses, by descriptor */
    size_t kept_count;
    struct egress egress;
    struct timer resume; /* runs while streams are paused */
    struct list paused;  /* links http_job.paused; the job paused longest is first */
    uint64_t turn;       /* the turn of streams; grows with each resume */
    size_t turn_bytes;   /* read from all streams in this turn */
};

/*
 * One watched socket. It is freed when uv has closed the poll handle.
 *
 * libcurl stops watching a socket after each request and starts again with the next request of its connection. To
 * follow it would cost two system calls a request, so we watch the socket of a kept connection until it has data or
 * closes.
 */
struct http_socket {
    uv_poll_t poll;
    struct http_client *client;
    curl_socket_t fd;
    int events;  /* events that uv watches for */
    bool in_use; /* true: libcurl wants its events; false: it is in client->kept */
};

/* --- the end of a request ----------------------------------------------------------------------------------- */

static void job_explain(struct http_job *job, const char *error, const char *detail)
{
    struct http_request *request = job->request;

    request->error = error;
    snprintf(request->detail, sizeof(request->detail), "%.*s", (int)sizeof(request->detail) - 1, detail);
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

/* Returns the sentence for people. libcurl's words are for programmers, and its text for one request quotes hosts and
 * files, which may be secrets. */
static const char *error_detail(const char *error, CURLcode code)
{
    static const struct {
        const char *error, *detail;
    } details[] = {
        {"cut", "The connection was closed in the middle of the answer."},
        {"dns", "The name of the receiver has no address."},
        {"refused", "The receiver takes no connections."},
        {"reset", "The connection was closed without an answer."},
        {"timeout", "No answer came in time."},
    };

    for (size_t i = 0; i < COUNT_OF(details); i++) {
        if (strcmp(details[i].error, error) == 0) {
            return details[i].detail;
        }
    }
    return curl_easy_strerror(code);
}

/* The kept connection died without an answer, and libcurl was about to send the request once more. */
static bool job_died(const struct http_job *job, CURLcode code)
{
    return job->request->sent && job->once &&
           (job->again || code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST);
}

/* Sets the result of the request from what libcurl knows. */
static void job_judge(struct http_job *job, CURLcode code)
{
    struct http_request *request = job->request;

    request->sent = job->left;
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
    } else if (job->withheld && !request->sent) {
        job_explain(job, "withheld", OUTCOME_WITHHELD_DETAIL("there was a connection for it"));
    } else if (job_died(job, code)) {
        job_explain(job, "reset", error_detail("reset", code));
    } else if (job->denied && !job->allowed && code == CURLE_COULDNT_CONNECT && !request->sent) {
        job_explain(job, OUTCOME_EGRESS_DENIED, OUTCOME_EGRESS_DENIED_DETAIL);
    } else if (code == CURLE_OK) {
        job_explain(job, "cut", "The connection was closed in the middle of the headers.");
    } else {
        const char *error = error_name(code, request->sent, job->headers_complete);

        job_explain(job, error, error_detail(error, code));
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
    if (list_linked(&job->paused)) {
        list_remove(&client->paused, &job->paused);
    }
    list_remove(&client->jobs, &job->link);
    http_url_release(job->url);
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
        job = http_job_of(context);
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

static void socket_watch(struct http_socket *watched, int events);

/*
 * Data on an idle connection answers no request, but libcurl would take it for the answer of the next one: it sees a
 * dead connection only by its end of stream. Therefore we shut the connection down and throw the data away. A
 * connection that the server reset or closed needs nothing more.
 */
static void idle_connection_end(curl_socket_t fd)
{
    char some[4096];
    size_t left = IDLE_BYTES_MAX;
    ssize_t got = 1;

    (void)shutdown(fd, SHUT_RDWR); /* no more data can come then */
    while (got > 0 && left > 0) {
        got = recv(fd, some, sizeof(some), MSG_DONTWAIT);
        left -= got > 0 && (size_t)got < left ? (size_t)got : got > 0 ? left : 0;
    }
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct http_socket *watched = poll->data;
    int flags = 0;

    if (status < 0) {
        watched->events = 0; /* uv has stopped by itself */
        flags = CURL_CSELECT_ERR;
    }
    if (!watched->in_use) {
        idle_connection_end(watched->fd);
        socket_watch(watched, 0); /* libcurl finds out when it wants to use the connection again */
        return;
    }
    flags |= events & UV_READABLE ? CURL_CSELECT_IN : 0;
    flags |= events & UV_WRITABLE ? CURL_CSELECT_OUT : 0;
    client_act(watched->client, watched->fd, flags);
}

static void socket_watch(struct http_socket *watched, int events)
{
    if (events == watched->events) {
        return;
    }
    watched->events = events;
    if (events) {
        CHECK(uv_poll_start(&watched->poll, events, on_poll) == 0);
    } else {
        (void)uv_poll_stop(&watched->poll); /* never fails */
    }
}

static void on_poll_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void socket_free(struct http_socket *watched)
{
    socket_watch(watched, 0);
    uv_close((uv_handle_t *)&watched->poll, on_poll_closed);
}

static struct http_socket *socket_new(struct http_client *client, curl_socket_t fd)
{
    struct http_socket *watched = memory_alloc(sizeof(*watched));

    watched->client = client;
    watched->fd = fd;
    watched->poll.data = watched;
    if (uv_poll_init(loop_uv(client->loop), &watched->poll, fd) != 0) {
        free(watched);
        return NULL;
    }
    return watched;
}

static struct http_socket *socket_take(struct http_client *client, curl_socket_t fd)
{
    struct http_socket *watched = (size_t)fd < client->kept_count ? client->kept[fd] : NULL;

    if (watched) {
        client->kept[fd] = NULL;
    }
    return watched;
}

static void socket_keep(struct http_client *client, struct http_socket *watched)
{
    size_t count = client->kept_count ? client->kept_count : 64, fd = (size_t)watched->fd;

    while (count <= fd) {
        count *= 2;
    }
    if (count > client->kept_count) {
        client->kept = memory_grow(client->kept, count * sizeof(*client->kept));
        for (size_t i = client->kept_count; i < count; i++) {
            client->kept[i] = NULL;
        }
        client->kept_count = count;
    }
    CHECK(!client->kept[fd]); /* libcurl would have reused it */
    client->kept[fd] = watched;
}

int http_client_on_close_socket(void *context, curl_socket_t fd)
{
    struct http_socket *watched = socket_take(context, fd);

    if (watched) {
        socket_free(watched); /* before the number can be another socket's */
    }
    return close(fd);
}

/*
 * libcurl tells us when it closes a connection that has brought an answer, but not when it gives up one that is still
 * being made. The connection of a paused stream is not idle: its data is still to be read.
 */
static bool socket_is_to_be_kept(CURL *easy, const struct http_socket *watched)
{
    char *context = NULL;

    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &context); /* NULL: a handle of libcurl's own */
    return context && http_job_of(context)->headers_complete && !list_linked(&http_job_of(context)->paused) &&
           watched->events == UV_READABLE;
}

static void socket_let_go(CURL *easy, struct http_socket *watched)
{
    struct http_client *client = watched->client;

    CHECK(curl_multi_assign(client->multi, watched->fd, NULL) == CURLM_OK);
    watched->in_use = false;
    if (socket_is_to_be_kept(easy, watched)) {
        socket_keep(client, watched);
    } else {
        socket_free(watched);
    }
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *socket_context)
{
    struct http_client *client = context;
    struct http_socket *watched = socket_context;

    if (what == CURL_POLL_REMOVE) {
        if (watched) {
            socket_let_go(easy, watched);
        }
        return 0;
    }
    if (!watched) {
        watched = socket_take(client, fd);
        watched = watched ? watched : socket_new(client, fd);
        if (!watched) {
            return -1;
        }
        watched->in_use = true;
        CHECK(curl_multi_assign(client->multi, fd, watched) == CURLM_OK);
    }
    socket_watch(watched, (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0));
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

/* --- streams: so much a turn --------------------------------------------------------------------------------- */

/* Resumes streams in the order in which they were paused. Each reads its share and is paused again behind the
 * others. */
static void on_resume(struct timer *timer)
{
    struct http_client *client = container_of(timer, struct http_client, resume);
    size_t count = client->paused.count;

    client->turn++;
    client->turn_bytes = 0;
    while (count-- > 0 && client->turn_bytes < STREAMS_TURN_BYTES) {
        struct list_link *link = list_pop(&client->paused);

        /* An error here also ends the job, which then reports it: it was cancelled, or is too large. */
        (void)curl_easy_pause(container_of(link, struct http_job, paused)->easy, CURLPAUSE_CONT);
    }
    if (!list_empty(&client->paused)) {
        timer_start(client->loop, &client->resume, STREAM_PAUSE_MS, on_resume);
    }
}

bool http_client_grants(struct http_job *job, size_t bytes)
{
    struct http_client *client = job->client;

    if (job->turn != client->turn) {
        job->turn = client->turn;
        job->turn_bytes = 0;
    }
    if (job->turn_bytes >= STREAM_TURN_BYTES || client->turn_bytes >= STREAMS_TURN_BYTES) {
        list_push(&client->paused, &job->paused);
        if (!timer_running(&client->resume)) {
            timer_start(client->loop, &client->resume, STREAM_PAUSE_MS, on_resume);
        }
        return false;
    }
    if (client->turn_bytes == 0 && !timer_running(&client->resume)) {
        timer_start(client->loop, &client->resume, STREAM_PAUSE_MS, on_resume); /* a new turn begins then */
    }
    job->turn_bytes += bytes;
    client->turn_bytes += bytes;
    return true;
}

/* --- the client ---------------------------------------------------------------------------------------------- */

static void curl_start(void)
{
    (void)unsetenv(
        "SSLKEYLOGFILE"); /* libcurl would write the keys of all sessions there; cannot fail for a plain name */
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
    list_init(&client->paused);
    CHECK(curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_socket) == CURLM_OK);
    CHECK(curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client) == CURLM_OK);
    CHECK(curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_timeout_wish) == CURLM_OK);
    CHECK(curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client) == CURLM_OK);
    CHECK(curl_multi_setopt(client->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)connections_max) == CURLM_OK);
    CHECK(curl_multi_setopt(client->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)connections_per_host_max) == CURLM_OK);
    CHECK(curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)(connections_max ? connections_max : 256)) ==
          CURLM_OK);
    return client;
}

void http_client_set_egress(struct http_client *client, const struct egress *egress)
{
    client->egress = *egress;
}

const struct egress *http_client_egress(const struct http_client *client)
{
    return &client->egress;
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
    CHECK(curl_multi_cleanup(client->multi) == CURLM_OK); /* closes kept connections, and tells of their sockets */
    timer_stop(client->loop, &client->timer);
    timer_stop(client->loop, &client->resume);
    loop_defer_cancel(client->loop, &client->at_once);
    http_urls_fini(&client->urls);
    free(client->kept);
    free(client);
}

/* --- sending and cancelling ----------------------------------------------------------------------------------- */

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
    const char *fault = http_request_fault(request);

    CHECK(request->done && request->arena && (!request->streaming || request->on_data));
    request_reset(request);
    job->magic = HTTP_JOB_MAGIC;
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
    job->easy = client->easy_free_count ? client->easy_free[--client->easy_free_count] : curl_easy_init();
    CHECK(job->easy);
    if (http_transfer_set_up(job, &client->urls) != CURLE_OK) {
        easy_put(client, job->easy);
        job->easy = NULL;
        job_explain(job, "protocol", "The URL, or the name of a certificate file, cannot be used.");
        loop_defer(client->loop, &job->finish, on_finish);
        return;
    }
    CHECK(curl_multi_add_handle(client->multi, job->easy) == CURLM_OK);
}

/* The end is deferred, because on_data() may call this, and libcurl cannot be entered from there. */
void http_cancel(struct http_request *request)
{
    struct http_job *job;

    if (!request->internal) {
        return;
    }
    job = http_job_of(request->internal);
    job->cancelled = true;
    loop_defer(job->client->loop, &job->finish, on_finish);
}
