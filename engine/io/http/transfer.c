/*
 * One transfer: the options that a request sets in libcurl, and the callbacks that libcurl makes meanwhile.
 *
 * The reason behind the options: a POST that a server has read must never leave a second time. libcurl resends by
 * itself when a kept-alive connection dies without an answer, unless it cannot rewind the body. Therefore bodies come
 * from a read function without a seek function, and requests without a body that must not be repeated get a connection
 * of their own.
 *
 * A body from a read function leaves apart from its head, with two system calls and two packets. A short body is given
 * as a whole, so that it leaves with its head. To keep it from leaving again, we refuse each new connection and each
 * sending once libcurl was allowed to send.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "io/http/job.h"

#define HEADER_COUNT_MAX 256
#define BODY_WITH_HEAD_BYTES_MAX (16 * 1024)
#define HEADER_BYTES_MAX ((size_t)128 * 1024)

struct http_job *http_job_of(void *pointer)
{
    struct http_job *job = pointer;

    CHECK(job && job->magic == HTTP_JOB_MAGIC);
    return job;
}

/* --- the callbacks that libcurl makes while a request is under way ------------------------------------------- */

/* libcurl asks to send again what it has sent before. We refuse, whatever the outcome of the first sending. */
static bool job_leaves_again(struct http_job *job)
{
    job->again = job->once && job->left;
    return job->again;
}

/*
 * Every new connection comes through here with its resolved address, so a name that changes its address is covered.
 * Reused connections have passed before and the rules never change.
 */
static curl_socket_t on_open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct http_job *job = http_job_of(context);

    (void)purpose; /* there is only one kind for HTTP */
    if (job_leaves_again(job)) {
        return CURL_SOCKET_BAD;
    }
    if (egress_denies(http_client_egress(job->client), &address->addr)) {
        job->denied = true;
        return CURL_SOCKET_BAD; /* libcurl goes on with the next address */
    }
    job->allowed = true;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static size_t on_read(char *out, size_t size, size_t count, void *context)
{
    struct http_job *job = http_job_of(context);
    size_t left = job->request->body.len - job->body_sent;
    size_t bytes = size * count < left ? size * count : left;

    if (bytes) {
        memcpy(out, job->request->body.ptr + job->body_sent, bytes);
        job->body_sent += bytes;
    }
    return bytes;
}

/*
 * A stream may last as long as its request and come as fast as its sender can. Therefore its bytes are bounded per turn
 * of the loop, as are those of all streams together, and in total. Bytes beyond a turn's share wait in libcurl and in
 * the socket.
 */
static size_t on_stream(struct http_job *job, struct slice bytes)
{
    if (!http_client_grants(job, bytes.len)) {
        return CURL_WRITEFUNC_PAUSE; /* the same bytes come again */
    }
    job->stream_bytes += bytes.len;
    if (job->stream_bytes / HTTP_STREAM_FACTOR > job->request->response_bytes_max) {
        job->too_large = true;
        http_cancel(job->request); /* libcurl forgets an error about bytes that it kept while the stream was paused */
        return 0;
    }
    if (bytes.len) {
        job->request->on_data(job->request, bytes);
    }
    return job->cancelled ? 0 : bytes.len;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
    struct http_job *job = http_job_of(context);
    size_t len = size * count;

    if (job->cancelled) {
        return 0;
    }
    if (job->request->streaming) {
        return on_stream(job, (struct slice){bytes, len});
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
        return true; /* not a header: ignored */
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
    header->value =
        arena_slice(request->arena, slice_trim((struct slice){colon + 1, (size_t)(line.ptr + line.len - colon - 1)}));
    return true;
}

/* Headers count only once the empty line behind them was seen: libcurl reports success for a
 * connection cut before it. */
static size_t on_header(char *bytes, size_t size, size_t count, void *context)
{
    struct http_job *job = http_job_of(context);
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

/* --- setting up ---------------------------------------------------------------------------------------------- */

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
const char *http_request_fault(const struct http_request *request)
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

/*
 * Only libcurl may set the headers that frame a message: a second length, or another coding, would turn the rest of the
 * body into a second request. And after an "Expect" that is refused with 417, libcurl itself would send the head again.
 */
static bool is_ours(struct slice name)
{
    static const char *const ours[] = {"content-length",
                                       "transfer-encoding",
                                       "connection",
                                       "keep-alive",
                                       "proxy-connection",
                                       "upgrade",
                                       "te",
                                       "trailer",
                                       "expect"};

    for (size_t i = 0; i < COUNT_OF(ours); i++) {
        if (name.len == strlen(ours[i]) && strncasecmp(name.ptr, ours[i], name.len) == 0) {
            return true;
        }
    }
    return false;
}

static void headers_build(struct http_job *job)
{
    const struct http_request *request = job->request;
    bool has_type = false;

    for (size_t i = 0; i < request->header_count; i++) {
        struct slice name = request->headers[i].name;

        if (is_ours(name)) {
            continue;
        }
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

    job->once = with_body || request->fresh_connection;
    if (with_body) {
        EASY_SET(job->easy, CURLOPT_POST, 1L);
        EASY_SET(job->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
        if (request->body.len > 0 && request->body.len <= BODY_WITH_HEAD_BYTES_MAX) {
            EASY_SET(job->easy, CURLOPT_POSTFIELDS, request->body.ptr);
        } else {
            EASY_SET(job->easy, CURLOPT_READFUNCTION, on_read);
            EASY_SET(job->easy, CURLOPT_READDATA, job);
        }
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

/*
 * libcurl calls this right before the first byte leaves. Until then a request may have waited as long as its timeout,
 * and this process may have been stopped meanwhile. Afterwards nothing tells whether a byte left: CURLINFO_REQUEST_SIZE
 * counts only what the first send() took, and when that one "would block" (a full buffer; with TLS a record that went
 * in part), the rest is sent and never counted.
 */
static int on_leaving(void *context, char *remote_ip, char *local_ip, int remote_port, int local_port)
{
    struct http_job *job = http_job_of(context);

    (void)remote_ip;
    (void)local_ip;
    (void)remote_port;
    (void)local_port;
    if (job_leaves_again(job)) {
        return CURL_PREREQFUNC_ABORT;
    }
    job->withheld = job->request->may_leave && !job->request->may_leave(job->request);
    job->left = !job->withheld;
    return job->withheld ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

CURLcode http_transfer_set_up(struct http_job *job, struct http_urls *urls)
{
    const struct http_request *request = job->request;
    CURL *easy = job->easy;
    char *method = arena_text(request->arena, request->method);
    CURLcode code;

    headers_build(job);
    EASY_SET(easy, CURLOPT_PRIVATE, job);
    EASY_SET(easy, CURLOPT_ERRORBUFFER, job->error);
    EASY_SET(easy, CURLOPT_NOSIGNAL, 1L);
    EASY_SET(easy, CURLOPT_PROXY, "");   /* keeps libcurl from honouring http_proxy of the environment */
    EASY_SET(easy, CURLOPT_NOPROXY, ""); /* saves libcurl a useless look into the environment */
    EASY_SET(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    EASY_SET(easy, CURLOPT_FOLLOWLOCATION, 0L);
    EASY_SET(easy, CURLOPT_HTTP_VERSION,
             (long)CURL_HTTP_VERSION_1_1); /* our rules about sending hold for this version */
    EASY_SET(easy, CURLOPT_HTTP09_ALLOWED, 0L);
    EASY_SET(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    EASY_SET(easy, CURLOPT_PATH_AS_IS, 1L);
    EASY_SET(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    EASY_SET(easy, CURLOPT_HTTPHEADER, job->headers);
    EASY_SET(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    EASY_SET(easy, CURLOPT_OPENSOCKETDATA, job);
    EASY_SET(easy, CURLOPT_CLOSESOCKETFUNCTION, http_client_on_close_socket);
    EASY_SET(easy, CURLOPT_CLOSESOCKETDATA, job->client);
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
    easy_set_method(job, method);
    EASY_SET(easy, CURLOPT_PREREQFUNCTION, on_leaving);
    EASY_SET(easy, CURLOPT_PREREQDATA, job);
    /* These values come from outside, and libcurl may refuse them. */
    job->url = http_url_take(urls, request->url);
    if (job->url) {
        EASY_SET(easy, CURLOPT_CURLU, http_url_read(job->url));
    }
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
