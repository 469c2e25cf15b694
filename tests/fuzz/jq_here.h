/*
 * libjq in this process: the fuzz target compares it with the direct way through plain paths. The product runs libjq in
 * a helper process only (io/process/jq_helper.h). This file gives libjq nothing but paths.
 */
#ifndef SAGAD_TESTS_JQ_HERE_H
#define SAGAD_TESTS_JQ_HERE_H

#include <jq.h>

#include "tests/fuzz/fuzz.h"

/* libjq 1.6 loses some memory of its own with some programs. The fuzz target does not look for that. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libjq";
}

static inline void jq_here_hush(void *context, jv message)
{
    (void)context;
    jv_free(message);
}

/* NULL: the program does not compile. */
static inline jq_state *jq_here_compile(const char *program)
{
    jq_state *jq = jq_init();

    MUST(jq);
    jq_set_error_cb(jq, jq_here_hush, NULL);
    if (!jq_compile(jq, program)) {
        jq_teardown(&jq);
    }
    return jq;
}

/* Gives the one value that comes out, or an invalid one. */
static inline jv jq_here_run(jq_state *jq, jv input)
{
    jv value;

    jq_start(jq, input, 0);
    value = jq_next(jq);
    if (jv_is_valid(value)) {
        jv more = jq_next(jq);

        MUST(!jv_is_valid(more) && !jv_invalid_has_msg(jv_copy(more))); /* a path gives one value */
        jv_free(more);
    }
    jq_start(jq, jv_null(), 0); /* frees what jq still holds */
    return value;
}

static inline void jq_here_must_be(jv theirs, struct slice ours)
{
    jv value = jv_parse_sized(ours.ptr, (int)ours.len);

    MUST(jv_is_valid(value) && jv_equal(value, theirs));
}

#endif
