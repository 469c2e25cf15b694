/*
 * How libFuzzer makes new logs from old ones: half of the time by bytes as usual, otherwise by lines. record_check()
 * exists for logs whose records have changed places, come twice or are missing, and bytes alone hardly ever make one.
 */
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"

#define LINES_MAX 128

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned int seed);

static size_t put(uint8_t *out, size_t len, size_t max, struct slice line)
{
    if (line.len + 1 > max - len) {
        return len; /* a line that does not fit is left out */
    }
    memcpy(out + len, line.ptr, line.len);
    out[len + line.len] = '\n';
    return len + line.len + 1;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned int seed)
{
    struct slice rest, lines[LINES_MAX];
    size_t count = 0, len = 0, one, other;
    uint8_t *copy, *changed;

    if (seed % 2 == 0 || size == 0) {
        return LLVMFuzzerMutate(data, size, size_max);
    }
    copy = memory_alloc(size);
    changed = memory_alloc(size_max + 1);
    memcpy(copy, data, size);
    rest = (struct slice){(const char *)copy, size};
    while (rest.len > 0 && count < LINES_MAX) {
        lines[count++] = fuzz_line(&rest);
    }
    one = seed / 16 % count;
    other = seed / 16 / LINES_MAX % count;
    switch (seed / 2 % 8) {
    case 0: /* missing */
        lines[one].len = 0;
        break;
    case 1: /* swaps two lines */
    case 2: {
        struct slice line = lines[one];

        lines[one] = lines[other];
        lines[other] = line;
        break;
    }
    case 3: /* twice */
    case 4:
        lines[other] = lines[one];
        break;
    case 5: /* cuts the log off */
        count = one + 1;
        break;
    default: /* changes bytes of one line */
        memcpy(changed, lines[one].ptr, lines[one].len);
        lines[one] = (struct slice){
            (const char *)changed,
            LLVMFuzzerMutate(changed, lines[one].len, lines[one].len + 32 < size_max ? lines[one].len + 32 : size_max)};
        break;
    }
    for (size_t i = 0; i < count; i++) {
        if (lines[i].len > 0 || i == 0) {
            len = put(data, len, size_max, lines[i]);
        }
    }
    free(changed);
    free(copy);
    return len;
}
