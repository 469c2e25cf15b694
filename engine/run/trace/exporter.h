/*
 * Sends the traces of sagas that have ended to a collector of OpenTelemetry (OTLP over HTTP, JSON). Each trace is made
 * from the durable log (core/show/trace.h). One conversation goes on at a time:
 *
 *     IDLE -> GATHERING what ends meanwhile -> READING logs, many at once -> SENDING their traces -> IDLE
 *                                                                                  ^   |
 *                                                                               RESTING (no answer, 429, 502, 503, 504)
 *
 * Sagas never wait for it. At most `queue_max` wait to be sent; what ends beyond is dropped and counted. What waits is
 * in memory only: an engine that dies takes it along.
 */
#ifndef SAGAD_RUN_TRACE_EXPORTER_H
#define SAGAD_RUN_TRACE_EXPORTER_H

#include "core/saga/saga.h"
#include "run/trace/target.h"

struct engine;
struct exporter;

/* NULL, with an error: the settings are wrong. Without an endpoint nothing is ever sent. */
struct exporter *exporter_new(struct engine *engine, const struct trace_settings *settings, struct err *err);
void exporter_free(struct exporter *exporter); /* accepts NULL */
bool exporter_is_on(const struct exporter *exporter);
/* Which traces are recorded. The exporter must be on. */
const struct trace_sampler *exporter_sampler(const struct exporter *exporter);
void exporter_ended(struct exporter *exporter, const struct saga *saga); /* the end is durable */
/* Draining: what waits is sent once more, for a moment; then engine_check_drained() is called. */
void exporter_drain(struct exporter *exporter);
/* What is left is dropped and counted, and what is under way is given up. */
void exporter_stop(struct exporter *exporter);
/* Does it read, or does a request use our sockets? engine_check_drained() is called when that has ended. */
bool exporter_works(const struct exporter *exporter);

#endif
