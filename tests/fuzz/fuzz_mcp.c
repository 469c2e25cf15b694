/*
 * Messages of a server of the Model Context Protocol, and event streams around them. The first byte says in which
 * pieces the stream arrives. The pieces must not matter, and the text holds what a message was read as.
 */
#include "adapters/mcp_message.h"
#include "tests/fuzz/fuzz.h"

#define STREAM_BYTES_MAX 2048
#define EVENTS_MAX 64

struct heard {
    struct event {
        size_t len;
        uint64_t sum;
    } events[EVENTS_MAX];
    size_t count;
    bool too_large;
};

static void message(struct slice text)
{
    struct mcp_message m;

    if (!mcp_message_read(text, STREAM_BYTES_MAX, &m)) {
        return;
    }
    MUST(fuzz_is_json(text));
    switch (m.kind) {
    case MCP_ANSWER:
        MUST((m.result.ptr != NULL) != (m.error.ptr != NULL));
        MUST(json_type(m.result.ptr ? m.result : m.error) == JSON_OBJECT);
        break;
    case MCP_REQUEST:
    case MCP_NOTIFICATION:
        MUST(json_type(m.method) == JSON_STRING && (m.kind == MCP_REQUEST) == (m.id.ptr != NULL));
        break;
    }
    (void)mcp_message_answers(&m, 1);
    (void)mcp_handshake_version(&m);
    (void)mcp_handshake_is_gone(&m);
}

static void listen(struct mcp_sse *sse, struct slice bytes, struct heard *heard)
{
    struct slice data;

    while (mcp_sse_next(sse, &bytes, &data)) {
        uint64_t sum = 14695981039346656037u;

        MUST(data.len > 0 && data.len <= STREAM_BYTES_MAX);
        for (size_t i = 0; i < data.len; i++) {
            sum = (sum ^ (unsigned char)data.ptr[i]) * 1099511628211u;
        }
        if (heard->count < EVENTS_MAX) {
            heard->events[heard->count].len = data.len;
            heard->events[heard->count].sum = sum;
        }
        heard->count++;
        message(data);
    }
    MUST(bytes.len == 0 || sse->too_large);
    heard->too_large = sse->too_large;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = fuzz_input(data, size);
    size_t piece = 1 + fuzz_byte(&text) % 61;
    struct heard whole = {0}, pieces = {0};
    struct mcp_sse sse;

    message(text);
    mcp_sse_init(&sse, STREAM_BYTES_MAX);
    listen(&sse, text, &whole);
    mcp_sse_fini(&sse);
    mcp_sse_init(&sse, STREAM_BYTES_MAX);
    for (size_t at = 0; at < text.len && !sse.too_large; at += piece) {
        listen(&sse, (struct slice){text.ptr + at, text.len - at < piece ? text.len - at : piece}, &pieces);
    }
    mcp_sse_fini(&sse);
    MUST(whole.count == pieces.count && whole.too_large == pieces.too_large);
    MUST(memcmp(whole.events, pieces.events, sizeof(whole.events)) == 0);
    return 0;
}
