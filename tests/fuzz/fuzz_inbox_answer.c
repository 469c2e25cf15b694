/*
 * The answer that the owner of a shard sends another engine through the database. The other engine may have another
 * version. Nonsense is refused with a sentence. An answer that was read, written and read again stays the same.
 */
#include "run/exchange/exchange.h"
#include "tests/fuzz/fuzz.h"

static enum err_code read(struct slice body, struct engine_request *request, struct work *work, struct err *err)
{
    *request = (struct engine_request){.arena = &work->arena};
    work->request = request;
    buffer_reset(&work->out);
    *err = (struct err){0};
    request->code = exchange_answer_read(body, work, err);
    request->err = *err;
    request->answer =
        request->code == ERR_OK && work->out.len > 0 ? arena_slice(&work->arena, buffer_slice(&work->out)) : SLICE_NONE;
    return request->code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct buffer text, again;
    static struct work work;
    struct slice body = fuzz_input(data, size);
    struct engine_request first, second;
    struct err err;

    if (text.bytes_max == 0) {
        buffer_init(&text, (size_t)1 << 24);
        buffer_init(&again, (size_t)1 << 24);
        buffer_init(&work.out, (size_t)1 << 24);
        arena_init(&work.arena, 16384);
    }
    arena_reset(&work.arena);
    if (read(body, &first, &work, &err) == ERR_CORRUPT) {
        MUST(err.message[0] || fuzz_is_json(body));
        return 0;
    }
    buffer_reset(&text);
    exchange_answer_write(&first, &text);
    MUST(read(buffer_slice(&text), &second, &work, &err) == first.code);
    buffer_reset(&again);
    exchange_answer_write(&second, &again);
    MUST(slice_equal(buffer_slice(&text), buffer_slice(&again)));
    return 0;
}
