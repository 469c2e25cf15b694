/* The numbers that a test does not care about, as the settings of sagad have them. */
#ifndef SAGAD_TESTS_LIB_USUAL_OPTIONS_H
#define SAGAD_TESTS_LIB_USUAL_OPTIONS_H

#include "run/engine.h"

static const struct engine_options usual_options = {.dsn = "",
                                                    .engine_name = "test",
                                                    .version = "?",
                                                    .lease_ms = 10000,
                                                    .writers = 4,
                                                    .readers = 2,
                                                    .sagas_max = 100000,
                                                    .rests_bytes_max = 1 << 20,
                                                    .payload_bytes_max = 262144,
                                                    .response_bytes_max = 1 << 20,
                                                    .calls_max = 256,
                                                    .exec_max = 16,
                                                    .park_after_ms = 2000,
                                                    .park_ahead_ms = 10000,
                                                    .forget_share = 10,
                                                    .commit_delay_ms = 250,
                                                    .call_delay_ms = 2000,
                                                    .bulk_items_max = 20000,
                                                    .bulk_jobs_max = 20,
                                                    .bulk_rate = 50,
                                                    .bulk_keep_ms = INT64_C(30) * 24 * 3600 * 1000,
                                                    .acts_keep_ms = INT64_C(400) * 24 * 3600 * 1000};

#endif
