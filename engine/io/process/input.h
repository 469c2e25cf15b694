/* The lines that come on our own standard input, from the program that started us. */
#ifndef SAGAD_IO_PROCESS_INPUT_H
#define SAGAD_IO_PROCESS_INPUT_H

#include "base/text.h"
#include "io/loop/loop.h"

struct input {
    /* in; borrowed until the end */
    size_t line_bytes_max;                                   /* a longer line is dropped whole, and on_long is told */
    void (*on_line)(struct input *input, struct slice line); /* without its end; borrowed until this returns */
    void (*on_long)(struct input *input);
    void (*on_end)(struct input *input); /* exactly once, and nothing follows */

    void *internal;
};

/* NULL, or a sentence on why it cannot be read; then no callback follows. */
const char *input_open(struct loop *loop, struct input *input);

#endif
