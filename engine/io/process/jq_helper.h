/*
 * libjq in processes of its own.
 *
 * libjq 1.6 asserts, overflows its stack, or takes all memory of the machine in one operation when a program wants it
 * to, and none of that can be prevented from outside its source. So it runs in helper processes with an empty
 * environment, no files, and limits on processor time and memory; what happens to one is an error of the expression.
 *
 * The process forks once, early, a nursery that stays small and has one thread; the nursery forks the helpers.
 * Requests are pure, so a helper that ended costs its compiled programs and nothing else. One that libjq has broken may
 * end with the next request, which is not to blame: so a request whose helper ended is tried once more in a new one,
 * with four times the processor time. What ends a new helper, too, is an error of the expression. What is only
 * compiled, because somebody wants to register it, gets a helper of its own, which evaluates nothing afterwards.
 */
#ifndef SAGAD_IO_PROCESS_JQ_HELPER_H
#define SAGAD_IO_PROCESS_JQ_HELPER_H

#include "base/arena.h"
#include "base/errors.h"
#include "io/process/jq.h"

struct jq_request {
    const struct slice *programs;   /* in */
    size_t count;                   /* in */
    struct slice input_json;        /* in */
    bool check_only;                /* in */
    const struct jq_limits *limits; /* in */
    struct arena *arena;            /* in */
    struct slice *outputs;          /* out */
    size_t index;                   /* out: the program that failed */
    enum err_code code;             /* out */
    struct err err;                 /* out */
};

/* Waits for a free helper, then for the end of the request: about as long as its limits allow, whatever the programs
 * do. */
void jq_request_run(struct jq_request *request);

/* Fork the nursery now, while the process is small and has no other threads. Else the first request does it. */
void jq_helper_prepare(void);

/* --- between the two processes; the same program on both sides, so structs are their own format --- */

struct jq_wire_request { /* the head; lengths of the programs, the input and the programs follow */
    uint32_t count, input_bytes;
    int64_t time_ms;
    uint64_t output_bytes_max;
    bool check_only;
    bool careful; /* do not try what may be tried again otherwise (io/process/jq_value.h): it has ended a helper,
                     perhaps */
};

enum jq_wire_end { JQ_WIRE_GOOD, JQ_WIRE_ERROR, JQ_WIRE_TIME, JQ_WIRE_MEMORY };

struct jq_wire_answer { /* the head; the error, or the lengths of the outputs and the outputs follow */
    uint32_t end;       /* enum jq_wire_end */
    uint32_t index;     /* the index of the program that failed */
    bool last;          /* this helper ends now */
};

/* Whole messages over a blocking socket; false when the other side is gone. */
bool jq_wire_write(int fd, const void *bytes, size_t len);
bool jq_wire_read(int fd, void *bytes, size_t len);

/* The life of a helper: serve requests from `fd` until its other end is closed. */
_Noreturn void jq_child_serve(int fd);

#endif
