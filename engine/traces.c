/* See traces.h. The variables are those of the OpenTelemetry specification; what is for traces alone comes first. */
#include "traces.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define COLLECTOR_TIMEOUT_DEFAULT_MS 10000
#define COLLECTOR_TIMEOUT_MAX_MS 600000

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value && value[0] ? value : NULL; /* an empty one counts as not set */
}

static const char *first_of(const char *a, const char *b, const char *c)
{
    return a ? a : b ? b : c;
}

static bool is_off(void)
{
    const char *disabled = variable("OTEL_SDK_DISABLED"), *exporter = variable("OTEL_TRACES_EXPORTER");

    return (disabled && strcmp(disabled, "true") == 0) || (exporter && strcmp(exporter, "none") == 0);
}

static int64_t timeout_of(const struct settings *settings)
{
    const char *text =
        first_of(variable("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"), variable("OTEL_EXPORTER_OTLP_TIMEOUT"), NULL);
    int64_t ms = settings_number(settings, "otlp-timeout");

    if (ms > 0) {
        return ms;
    }
    if (!text) {
        return COLLECTOR_TIMEOUT_DEFAULT_MS;
    }
    if (!slice_to_i64(slice_of(text), &ms) || ms < 1 || ms > COLLECTOR_TIMEOUT_MAX_MS) {
        log_warn("otel_variable_ignored", LOG_TEXT("name", "OTEL_EXPORTER_OTLP_TIMEOUT"),
                 LOG_TEXT("note", "it is a number of milliseconds, at most 600000"));
        return COLLECTOR_TIMEOUT_DEFAULT_MS;
    }
    return ms;
}

/* A variable that is wrong is told and ignored, as OpenTelemetry wants it; a setting that is wrong is refused later. */
static void read_sampler(struct trace_settings *traces, const struct settings *settings)
{
    struct trace_sampler sampler;
    struct err err = {0};

    traces->sampler = settings_text(settings, "otlp-sampler");
    traces->sampler_arg = settings_text(settings, "otlp-sampler-arg");
    if (traces->sampler || traces->sampler_arg) {
        return;
    }
    traces->sampler = variable("OTEL_TRACES_SAMPLER");
    if (traces->sampler && strstr(traces->sampler, "traceidratio")) {
        traces->sampler_arg = variable("OTEL_TRACES_SAMPLER_ARG");
    }
    if (trace_sampler_read(&sampler, traces->sampler, NULL, &err) != ERR_OK) {
        log_warn("otel_variable_ignored", LOG_TEXT("name", "OTEL_TRACES_SAMPLER"),
                 LOG_TEXT("note", "sagad does not know this sampler and records every trace"));
        traces->sampler = NULL;
    } else if (trace_sampler_read(&sampler, traces->sampler, traces->sampler_arg, &err) != ERR_OK) {
        log_warn("otel_variable_ignored", LOG_TEXT("name", "OTEL_TRACES_SAMPLER_ARG"),
                 LOG_TEXT("note", "it is no number from 0 to 1, and 1 is taken"));
        traces->sampler_arg = NULL;
    }
}

struct trace_settings traces_read(const struct settings *settings)
{
    const char *whole = settings_text(settings, "otlp-traces-endpoint"),
               *base = settings_text(settings, "otlp-endpoint");
    const char *protocol =
        first_of(variable("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), variable("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/json");
    struct trace_settings traces = {
        .headers = first_of(settings_text(settings, "otlp-headers"), variable("OTEL_EXPORTER_OTLP_TRACES_HEADERS"),
                            variable("OTEL_EXPORTER_OTLP_HEADERS")),
        .service = first_of(settings_text(settings, "otlp-service-name"), variable("OTEL_SERVICE_NAME"), NULL),
        .resource = first_of(settings_text(settings, "otlp-resource"), variable("OTEL_RESOURCE_ATTRIBUTES"), NULL),
        .queue_max = (size_t)settings_number(settings, "otlp-queue")};

    if (whole || base) {
        traces.traces_endpoint = whole;
        traces.endpoint = base;
    } else if (!is_off()) {
        traces.traces_endpoint = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        traces.endpoint = variable("OTEL_EXPORTER_OTLP_ENDPOINT");
    }
    if (!traces.endpoint && !traces.traces_endpoint) {
        /* Variables for other programs of this machine must not keep an engine from starting that sends no traces. */
        return (struct trace_settings){.queue_max = traces.queue_max};
    }
    traces.timeout_ms = timeout_of(settings);
    read_sampler(&traces, settings);
    if (strcmp(protocol, "grpc") == 0) {
        log_warn("otel_protocol", LOG_TEXT("asked", protocol), LOG_TEXT("spoken", "http/json"),
                 LOG_TEXT("note", "the endpoint must be that of OTLP over HTTP, most often port 4318"));
    }
    return traces;
}
