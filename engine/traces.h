/* Where traces go: from the settings, and where they are silent from the variables OTEL_* of OpenTelemetry. */
#ifndef SAGAD_TRACES_H
#define SAGAD_TRACES_H

#include "base/settings.h"
#include "run/trace/target.h"

#define TRACES_SETTINGS                                                                                                \
    {"otlp-endpoint",                                                                                                  \
     SETTING_TEXT,                                                                                                     \
     NULL,                                                                                                             \
     NULL,                                                                                                             \
     0,                                                                                                                \
     0,                                                                                                                \
     "URL of a collector that takes OTLP over HTTP: traces of ended sagas go to URL/v1/traces",                        \
     false},                                                                                                           \
        {"otlp-traces-endpoint", SETTING_TEXT, NULL, NULL, 0, 0, "the whole URL, instead of --otlp-endpoint", false},  \
        {"otlp-headers",                                                                                               \
         SETTING_TEXT,                                                                                                 \
         NULL,                                                                                                         \
         NULL,                                                                                                         \
         0,                                                                                                            \
         0,                                                                                                            \
         "headers of each request to the collector: NAME=VALUE with commas between",                                   \
         true},                                                                                                        \
        {"otlp-timeout", SETTING_DURATION, NULL, NULL, 10, 600000, "of a request to the collector (default: 10s)",     \
         false},                                                                                                       \
        {"otlp-service-name", SETTING_TEXT, NULL, NULL, 0, 0, "service.name of the traces (default: sagad)", false},   \
        {"otlp-resource",                                                                                              \
         SETTING_TEXT,                                                                                                 \
         NULL,                                                                                                         \
         NULL,                                                                                                         \
         0,                                                                                                            \
         0,                                                                                                            \
         "attributes of the resource of the traces: NAME=VALUE with commas between",                                   \
         false},                                                                                                       \
        {"otlp-sampler",                                                                                               \
         SETTING_TEXT,                                                                                                 \
         NULL,                                                                                                         \
         NULL,                                                                                                         \
         0,                                                                                                            \
         0,                                                                                                            \
         "which traces are recorded: always_on, always_off, traceidratio, or one of them behind parentbased_: then "   \
         "the traceparent of a start decides where there is one (default: parentbased_always_on)",                     \
         false},                                                                                                       \
        {"otlp-sampler-arg", SETTING_TEXT, NULL, NULL, 0, 0, "of traceidratio, from 0 to 1 (default: 1)", false},      \
    {                                                                                                                  \
        "otlp-queue", SETTING_NUMBER, NULL, "2048", 1, 1000000,                                                        \
            "ended sagas whose traces wait to be sent; those beyond are dropped and counted", false                    \
    }

/* The texts belong to the settings and to the environment. */
struct trace_settings traces_read(const struct settings *settings);

#endif
