/* One request under way: shared by http/client.c, which drives it, and http/transfer.c, which tells
 * libcurl what to do. */
#ifndef SAGAD_IO_HTTP_JOB_H
#define SAGAD_IO_HTTP_JOB_H

#include <curl/curl.h>

#include "io/http/client.h"
#include "io/http/egress.h"
#include "io/http/url.h"

#define HTTP_JOB_MAGIC UINT32_C(0x4a6f6231)

struct http_job {
    uint32_t magic;
    struct list_link link;
    struct http_client *client;
    struct http_request *request;
    CURL *easy; /* NULL when it was refused before libcurl saw it */
    struct curl_slist *headers;
    struct http_url *url;
    struct deferred finish;  /* ends a job outside libcurl: it was refused or cancelled */
    struct list_link paused; /* in the list of streams that wait for the next turn */
    uint64_t turn;           /* the last turn in which it got bytes of a stream, and how many */
    size_t turn_bytes;
    uint64_t stream_bytes; /* in all */
    struct buffer body;
    size_t body_sent;
    size_t header_bytes, header_capacity;
    bool headers_complete, too_large, cancelled, withheld;
    bool denied, allowed; /* an address of its host was denied; one was allowed, and a connection to it was tried */
    bool once;            /* libcurl could send it again, and must not */
    bool left;            /* libcurl was allowed to send: from then on a byte may have left */
    bool again;           /* it had left, and libcurl wanted to send it again */
    char error[CURL_ERROR_SIZE];
};

struct http_job *http_job_of(void *pointer); /* checks the magic word of what libcurl hands back */

const struct egress *http_client_egress(const struct http_client *client);
/* May the job read `bytes` of its stream in this turn? False: the job is paused and goes on in the next turn. */
bool http_client_grants(struct http_job *job, size_t bytes);

/* Returns a sentence that says why this request can never be sent, or NULL. */
const char *http_request_fault(const struct http_request *request);

/* For CURLOPT_CLOSESOCKETFUNCTION: a socket may be watched for longer than its request, as its connection lives on. */
int http_client_on_close_socket(void *client, curl_socket_t fd);

/* Set up job->easy. An error: libcurl does not take the URL, or the name of a certificate file. */
CURLcode http_transfer_set_up(struct http_job *job, struct http_urls *urls);

#endif
