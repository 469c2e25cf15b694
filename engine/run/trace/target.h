/*
 * Where traces go, from the settings (--otlp-endpoint and its like, or the variables OTEL_*): the URL, the headers of
 * each request, what the spans say about their origin, and which traces are recorded.
 */
#ifndef SAGAD_RUN_TRACE_TARGET_H
#define SAGAD_RUN_TRACE_TARGET_H

#include "core/show/trace.h"
#include "io/http/client.h"

#define TRACE_HEADERS_MAX 16
#define TRACE_RESOURCE_MAX 64

struct trace_settings { /* texts as they were given; NULL: not given */
    const char *endpoint, *traces_endpoint;
    const char *headers, *resource; /* NAME=VALUE with commas between, values percent-encoded */
    const char *service;
    const char *sampler, *sampler_arg; /* as in OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG */
    int64_t timeout_ms;
    size_t queue_max; /* ended sagas that wait to be sent */
};

struct trace_target {
    struct arena arena;
    struct slice url; /* SLICE_NONE: traces are not sent */
    struct http_header headers[TRACE_HEADERS_MAX];
    size_t header_count;
    struct slice resource; /* JSON array of attributes */
    struct trace_sampler sampler;
};

/* Reads the name of a sampler and its argument. NULL for either: parentbased_always_on, and 1. */
MUST_USE enum err_code trace_sampler_read(struct trace_sampler *sampler, const char *name, const char *arg,
                                          struct err *err);
/* `instance` and `version` are those of this engine. trace_target_fini() accepts a target that was not read. */
MUST_USE enum err_code trace_target_read(struct trace_target *target, const struct trace_settings *settings,
                                         const char *instance, const char *version, struct err *err);
/* Finds the same faults and keeps nothing. */
MUST_USE enum err_code trace_target_check(const struct trace_settings *settings, struct err *err);
void trace_target_fini(struct trace_target *target);

#endif
