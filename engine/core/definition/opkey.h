/*
 * The idempotency key of an operation (test vectors in schema/key-vectors.json).
 *
 * SHA-256 over the tag "sk1" and then, each as a 4-byte big-endian length and its UTF-8 bytes: namespace, root run,
 * step, tool, direction, scope, generation. No arguments, attempts, clock or randomness: a retry, a replay, a re-plan
 * or another engine makes the same key. Sent and shown as a UUIDv8 of its first 128 bits.
 *
 * What undoes has the id of its step, which is unique in the saga: an agent may have called one step more than once.
 */
#ifndef SAGAD_CORE_DEFINITION_OPKEY_H
#define SAGAD_CORE_DEFINITION_OPKEY_H

#include "base/arena.h"
#include "base/digest.h"
#include "base/id.h"

enum direction { DIRECTION_DO, DIRECTION_UNDO, DIRECTION_COUNT };

const char *direction_name(enum direction direction); /* "do", "undo" */

struct op_identity {
    struct slice namespace, run, step, tool, scope;
    enum direction direction;
    uint32_t generation;
};

struct op_key op_key_make(const struct op_identity *identity);

struct pointers { /* JSON Pointers into the arguments; the segment `*` stands for every element of an array */
    const struct slice *items;
    size_t count;
};

extern const struct pointers volatiles_always; /* /request_id, /timestamp, /trace_id */

/* SHA-256 over the tool name and the canonical arguments without the volatile ones; `volatiles` NULL: those that always
 * are. */
struct digest op_fingerprint(struct slice tool, struct slice args, const struct pointers *volatiles,
                             struct arena *scratch);

#endif
