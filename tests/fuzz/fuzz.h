/*
 * What the fuzz targets share. A target is one file fuzz_NAME.c with LLVMFuzzerTestOneInput(), which takes any bytes,
 * hands them to one parser, and holds what comes out against a property. libFuzzer calls it with inputs that it makes;
 * replay.c with those of tests/fuzz/corpus/NAME.tar and tests/fuzz/found/NAME.
 */
#ifndef SAGAD_TESTS_FUZZ_H
#define SAGAD_TESTS_FUZZ_H

#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/errors.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property that does not hold. It ends the process, so that both the fuzzer and a test see it. */
#define MUST(condition) CHECK(condition)

/* Borrowed: what is read beyond its end is seen by AddressSanitizer. */
static inline struct slice fuzz_input(const uint8_t *data, size_t size)
{
    return (struct slice){size ? (const char *)data : "", size};
}

/* Takes the first line off, without its end. */
static inline struct slice fuzz_line(struct slice *rest)
{
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    struct slice line = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    size_t taken = line.len + (end ? 1 : 0);

    *rest = (struct slice){rest->ptr + taken, rest->len - taken};
    return line;
}

/* Takes the first byte off; 0 where there is none. */
static inline uint8_t fuzz_byte(struct slice *rest)
{
    uint8_t byte = 0;

    if (rest->len) {
        byte = (uint8_t)*rest->ptr;
        *rest = (struct slice){rest->ptr + 1, rest->len - 1};
    }
    return byte;
}

/* The memory of one execution: emptied here, and kept from one to the next because a new one costs more than most
 * parsers. */
static inline struct arena *fuzz_arena(void)
{
    static struct arena arena;

    if (arena.block_bytes == 0) {
        arena_init(&arena, (size_t)64 * 1024);
    }
    arena_reset(&arena);
    return &arena;
}

static inline bool fuzz_is_json(struct slice text)
{
    return json_check(text, &json_limits_default, NULL) == ERR_OK;
}

/* A fault names a place of this document: what is there, or (of what is missing) the container it belongs into. */
static inline void fuzz_check_faults(const struct faults *faults, struct slice document)
{
    for (size_t i = 0; i < faults->count; i++) {
        struct slice pointer = faults->items[i].pointer;

        MUST(pointer.ptr && (pointer.len == 0 || pointer.ptr[0] == '/'));
        MUST(faults->items[i].detail.len > 0);
        while (pointer.len > 0 && !json_at(document, pointer).ptr) {
            size_t len = pointer.len;

            while (pointer.len > 0 && pointer.ptr[pointer.len - 1] != '/') {
                pointer.len--;
            }
            pointer.len -= pointer.len > 0;
            MUST(len == faults->items[i].pointer.len); /* one level up, not two */
        }
    }
}

#endif
