/*
 * Counters, gauges and histograms of one process. A table in this file declares each of them once; to count is an
 * addition. Names follow Prometheus: sagad_ prefix, base units, _total for counters. metric_render() writes the text
 * exposition format 0.0.4.
 *
 * Each thread may have a row of its own, so that threads that count much do not wait for each other. Every function may
 * be called on every thread. What is read speaks for the process: counters and histograms are the sums of the rows, and
 * a gauge says below what its rows make.
 */
#ifndef SAGAD_BASE_METRIC_H
#define SAGAD_BASE_METRIC_H

#include <stdint.h>

#include "base/text.h"

/*  id                        name                                   help */
#define METRIC_COUNTER_MAP(X)                                                                                          \
    X(METRIC_SAGAS_STARTED, "sagad_sagas_started_total", "Sagas whose start became durable")                           \
    X(METRIC_SAGAS_COMPLETED, "sagad_sagas_completed_total", "Sagas that ended completed")                             \
    X(METRIC_SAGAS_COMPENSATED, "sagad_sagas_compensated_total", "Sagas that ended compensated")                       \
    X(METRIC_SAGAS_ABANDONED, "sagad_sagas_abandoned_total", "Sagas that ended abandoned")                             \
    X(METRIC_TURNS, "sagad_turns_total", "Turns committed")                                                            \
    X(METRIC_RECORDS, "sagad_records_total", "Records committed")                                                      \
    X(METRIC_BATCHES, "sagad_batches_total", "Group commits")                                                          \
    X(METRIC_BATCHES_LOST, "sagad_batches_lost_total", "COMMITs whose answer was lost")                                \
    X(METRIC_CALLS, "sagad_calls_total", "Calls handed to adapters")                                                   \
    X(METRIC_CALLS_UNKNOWN, "sagad_calls_unknown_total", "Calls whose outcome is unknown")                             \
    X(METRIC_CALLS_FAILED, "sagad_calls_failed_total", "Calls that certainly had no effect")                           \
    X(METRIC_RESULTS_LOST, "sagad_results_lost_total", "Calls that completed and whose `result` failed")               \
    X(METRIC_RETRIES, "sagad_retries_total", "Attempts after the first")                                               \
    X(METRIC_PROBES, "sagad_probes_total", "Probes sent")                                                              \
    X(METRIC_ESCALATIONS, "sagad_escalations_opened_total", "Escalations opened")                                      \
    X(METRIC_LEASES_LOST, "sagad_leases_lost_total", "Shards lost to another engine or to time")                       \
    X(METRIC_SHARDS_GIVEN, "sagad_shards_given_total", "Shards given to other engines")                                \
    X(METRIC_HISTORY_LOST, "sagad_history_lost_total",                                                                 \
      "Times that work was missing in the database which had been acknowledged")                                       \
    X(METRIC_DB_UNANSWERED, "sagad_database_unanswered_total",                                                         \
      "Times that PostgreSQL gave no answer within a lease, and all connections were given up")                        \
    X(METRIC_DB_CONNECTS, "sagad_database_connects_total", "Connections opened to PostgreSQL")                         \
    X(METRIC_DB_ERRORS, "sagad_database_errors_total", "Statements or connections that failed")                        \
    X(METRIC_HTTP_REQUESTS, "sagad_http_requests_total", "Requests answered")                                          \
    X(METRIC_HTTP_ERRORS, "sagad_http_errors_total", "Requests answered with 4xx or 5xx")                              \
    X(METRIC_DUPLICATE_STARTS, "sagad_duplicate_starts_total", "Starts answered with the saga that was there")         \
    X(METRIC_FOLLOWERS_REFUSED, "sagad_followers_refused_total", "Sagas of a `then` that could not be started")        \
    X(METRIC_PARKED, "sagad_sagas_parked_total", "Sagas at rest that left memory")                                     \
    X(METRIC_UNPARKED, "sagad_sagas_unparked_total", "Parked sagas that moved on")                                     \
    X(METRIC_FORGOTTEN, "sagad_sagas_forgotten_total", "Ended sagas removed after their retention")                    \
    X(METRIC_INTAKE_FULL, "sagad_refused_full_total", "New work refused because a queue or memory was full")           \
    X(METRIC_INTAKE_PACED, "sagad_refused_slow_total", "New work refused because what there is waits too long")        \
    X(METRIC_OVER_QUOTA, "sagad_refused_over_quota_total", "New work refused because its namespace asks for too much") \
    X(METRIC_SCHEDULE_STARTS, "sagad_schedule_starts_total", "Sagas started by schedules")                             \
    X(METRIC_BULK_ITEMS, "sagad_bulk_items_total", "Items of bulk jobs that have an outcome")                          \
    X(METRIC_ACTS_REFUSED, "sagad_acts_refused_total", "Changes that a token was refused, or lacked the right to")     \
    X(METRIC_NOTIFICATIONS_DELIVERED, "sagad_notifications_delivered_total", "Notifications that were confirmed")      \
    X(METRIC_NOTIFICATION_FAILURES, "sagad_notification_failures_total",                                               \
      "Attempts to deliver a notification that failed")                                                                \
    X(METRIC_NOTIFICATIONS_DEAD, "sagad_notifications_dead_total", "Notifications that became dead letters")           \
    X(METRIC_TRACES_SENT, "sagad_traces_sent_total", "Traces of ended sagas that the collector took")                  \
    X(METRIC_TRACES_DROPPED, "sagad_traces_dropped_total", "Traces of ended sagas that were not sent")                 \
    X(METRIC_SCHEDULE_REFUSALS, "sagad_schedule_refusals_total", "Starts of schedules that were refused")              \
    X(METRIC_PAYLOADS_SEALED, "sagad_payloads_sealed_total", "Payloads sealed under the active of --payload-keys")     \
    X(METRIC_PAYLOADS_UNOPENED, "sagad_payloads_unopened_total", "Sealed payloads that did not open")                  \
    X(METRIC_SAGAS_UNREADABLE, "sagad_sagas_unreadable_total", "Times that the log of a saga made no sense")           \
    X(METRIC_RESTS_KEPT_USED, "sagad_rests_kept_used_total",                                                           \
      "Runs that a call brought back from memory, without a read")                                                     \
    X(METRIC_RESTS_DAMAGED, "sagad_rests_damaged_total",                                                               \
      "States of runs at rest that were damaged: their logs were read")                                                \
    X(METRIC_HTTP_SURPLUS, "sagad_http_surplus_total", "Connections beyond --connections-max, told to come again")

/* What the rows of a gauge make: their sum, or the highest, or the lowest one of the rows in which it was ever set. */
#define METRIC_GAUGE_MAP(X)                                                                                            \
    X(GAUGE_SAGAS_LOADED, SUM, "sagad_sagas_loaded", "Unfinished sagas in memory")                                     \
    X(GAUGE_CALLS_IN_FLIGHT, SUM, "sagad_calls_in_flight", "Calls under way")                                          \
    X(GAUGE_SHARDS_OWNED, SUM, "sagad_shards_owned", "Shards this process owns")                                       \
    X(GAUGE_ESCALATIONS_OPEN, SUM, "sagad_escalations_open", "Escalations that wait for a person")                     \
    X(GAUGE_APPENDS_WAITING, SUM, "sagad_appends_waiting", "Turns waiting for a batch")                                \
    X(GAUGE_HTTP_CONNECTIONS, SUM, "sagad_http_connections", "Open client connections")                                \
    X(GAUGE_CALLS_WAITING, SUM, "sagad_calls_waiting", "Calls that wait for a place among --calls-max")                \
    X(GAUGE_INTAKE_PERCENT, MOST, "sagad_intake_delay_percent", "Worst wait of new work, in percent of its target")    \
    X(GAUGE_INTAKE_SHUT, MOST, "sagad_intake_shut", "1 while new work is refused, all or some of it")                  \
    X(GAUGE_TOKENS_AGE, MOST, "sagad_tokens_age_seconds", "Since the tokens file was last found to be right")          \
    X(GAUGE_ISSUER_AGE, MOST, "sagad_issuer_age_seconds",                                                              \
      "Since the keys of the issuer were last read; 0 without one")                                                    \
    X(GAUGE_TRACES_WAITING, SUM, "sagad_traces_waiting", "Ended sagas whose trace is to be sent")                      \
    X(GAUGE_HOLDS, MOST, "sagad_holds", "Holds in force, by which nothing begins")                                     \
    X(GAUGE_SAGAS_HELD, SUM, "sagad_sagas_held",                                                                       \
      "Sagas in memory with a call that waits for a hold, or is let go next")                                          \
    X(GAUGE_DATABASE_SYNCHRONOUS, LEAST, "sagad_database_synchronous",                                                 \
      "1 while synchronous_standby_names is set, so that commits wait for a standby")                                  \
    X(GAUGE_RESIDENT, MOST, "sagad_resident_bytes", "Memory of this process")

#define METRIC_HISTOGRAM_MAP(X)                                                                                        \
    X(HISTOGRAM_COMMIT, "sagad_commit_seconds", "Time of a group commit")                                              \
    X(HISTOGRAM_SAGA, "sagad_saga_seconds", "Start to end of a saga")                                                  \
    X(HISTOGRAM_CALL, "sagad_call_seconds", "Time of a call")                                                          \
    X(HISTOGRAM_REQUEST, "sagad_http_request_seconds", "Time of an HTTP request")

#define X(id, name, help) id,
enum metric_counter { METRIC_COUNTER_MAP(X) METRIC_COUNTER_COUNT };
enum metric_histogram { METRIC_HISTOGRAM_MAP(X) METRIC_HISTOGRAM_COUNT };
#undef X
#define X(id, of_rows, name, help) id,
enum metric_gauge { METRIC_GAUGE_MAP(X) METRIC_GAUGE_COUNT };
#undef X

#define METRIC_ROWS_MAX 4

/* From now on this thread counts in the row with this number. Threads that never say so count in row 0. */
void metric_use_row(uint32_t row);

void metric_add(enum metric_counter counter, uint64_t n);
uint64_t metric_value(enum metric_counter counter);
void gauge_set(enum metric_gauge gauge, int64_t value);
void gauge_add(enum metric_gauge gauge, int64_t n);
int64_t gauge_value(enum metric_gauge gauge);
void histogram_observe_us(enum metric_histogram histogram, int64_t us);
void metric_render(struct buffer *out);

/* For figures that have labels: the two lines in front of them, and a label's text. */
void metric_put_head(struct buffer *out, const char *name, const char *help, const char *type);
void metric_put_label(struct buffer *out, struct slice text);

#endif
