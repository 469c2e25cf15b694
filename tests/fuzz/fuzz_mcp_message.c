/*
 * What hosts of agents send to /mcp: header lines, an empty line, then a message. Whatever can be read of it is within
 * its bounds, and what a call is for is either said or refused with a sentence.
 */
#include "api/mcp/identity.h"
#include "api/mcp/rpc.h"
#include "base/utf8.h"
#include "core/saga/saga.h"
#include "tests/fuzz/fuzz.h"

#define HEADERS_MAX 16

static const struct host_keys keys = {.run = {HOST_RUN_KEYS_DEFAULT, sizeof(HOST_RUN_KEYS_DEFAULT) - 1},
                                      .turn = {HOST_TURN_KEYS_DEFAULT, sizeof(HOST_TURN_KEYS_DEFAULT) - 1},
                                      .emission = {HOST_EMISSION_KEYS_DEFAULT, sizeof(HOST_EMISSION_KEYS_DEFAULT) - 1}};

static void check_handle(const struct identity *identity, struct arena *arena)
{
    struct slice run = identity->run_is_told ? identity->run : SLICE_NONE;
    struct slice handle = saga_handle(identity->saga, run, arena);
    struct saga_id again;
    bool is_of_run = false;

    MUST(saga_handle_read(handle, run, &again, &is_of_run) && is_of_run);
    MUST(uuid_equal(&again.uuid, &identity->saga.uuid));
    MUST(saga_handle_read(handle, SLICE("another"), &again, &is_of_run));
    MUST(!is_of_run || slice_is(run, "another"));
}

static void check_identity(const struct rpc_message *message, const struct http_exchange *headers, unsigned takes,
                           struct arena *arena)
{
    struct slice arguments = json_member(message->params, "arguments");
    const struct identity_sources sources = {.meta = message->meta,
                                             .headers = headers,
                                             .arguments = json_type(arguments) == JSON_OBJECT ? arguments : SLICE_NONE,
                                             .takes_saga = (takes & 1) != 0,
                                             .takes_step = (takes & 2) != 0,
                                             .takes_scope = (takes & 4) != 0,
                                             .keys = &keys};
    struct identity identity;
    struct err err = {0};

    if (!identity_read(&sources, arena, &identity, &err)) {
        MUST(err.code == ERR_INVALID && err.message[0] && err.hint[0]);
        return;
    }
    MUST(!identity.run.ptr || text_is_plain(identity.run, 256));
    MUST(!identity.emission.ptr || text_is_plain(identity.emission, 256));
    MUST(!identity.turn.ptr || text_is_plain(identity.turn, 128));
    MUST(!identity.step.ptr || call_step_is_good(identity.step));
    MUST(!identity.scope.ptr || (identity.scope.len <= 256 && text_is_utf8(identity.scope)));
    MUST(!identity.run_is_told || identity.run.ptr);
    if (identity.has_saga) {
        MUST(sources.takes_saga);
        check_handle(&identity, arena);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct http_pair pairs[HEADERS_MAX];
    struct slice text = fuzz_input(data, size), line;
    struct http_exchange headers = {.headers = pairs, .arena = fuzz_arena()};
    unsigned takes = fuzz_byte(&text);
    struct rpc_message message;
    struct rpc_fault fault;

    while ((line = fuzz_line(&text)).len > 0 && headers.header_count < HEADERS_MAX) {
        const char *colon = memchr(line.ptr, ':', line.len);
        size_t len = colon ? (size_t)(colon - line.ptr) : line.len;

        pairs[headers.header_count++] =
            (struct http_pair){{line.ptr, len}, slice_trim((struct slice){line.ptr + len, line.len - len})};
        pairs[headers.header_count - 1].value.ptr += colon ? 1 : 0;
        pairs[headers.header_count - 1].value.len -= colon ? 1 : 0;
    }
    if (!rpc_message_read(text, headers.arena, &message, &fault)) {
        MUST(fault.message[0] &&
             (fault.code == RPC_PARSE_ERROR || fault.code == RPC_INVALID_REQUEST || fault.code == RPC_INVALID_PARAMS));
        return 0;
    }
    MUST(!message.id.ptr || (message.id.len <= RPC_ID_BYTES_MAX && fuzz_is_json(message.id)));
    MUST(message.is_answer || text_is_plain(message.method, 128));
    MUST(!message.params.ptr || json_type(message.params) == JSON_OBJECT);
    MUST(!message.meta.ptr || json_type(message.meta) == JSON_OBJECT);
    MUST((message.era == ERA_STATELESS) == (message.version.ptr != NULL));
    check_identity(&message, &headers, takes, headers.arena);
    return 0;
}
