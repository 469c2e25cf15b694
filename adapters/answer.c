/* Every adapter reads the bytes of an answer alike: JSON stays as it is, text becomes a string, anything else is null.
 * */
#include "adapters/answer.h"

#include "adapters/adapter.h"
#include "base/json.h"
#include "base/utf8.h"

enum answer_kind answer_json(struct slice bytes, size_t bytes_max, struct arena *arena, struct slice *json)
{
    struct json_limits limits = json_limits_default;
    struct buffer text;

    *json = SLICE("null");
    if (slice_trim(bytes).len == 0) {
        return ANSWER_EMPTY;
    }
    limits.bytes_max = bytes_max;
    if (json_check(bytes, &limits, NULL) == ERR_OK) {
        *json = json_trim(bytes);
        return ANSWER_JSON;
    }
    if (!text_is_utf8(bytes)) {
        return ANSWER_BINARY;
    }
    buffer_init(&text, bytes.len * 6 + 2); /* the longest escape of one byte is \u00XX */
    json_put_string(&text, bytes);
    CHECK(!text.overflow);
    *json = arena_slice(arena, buffer_slice(&text));
    buffer_fini(&text);
    return ANSWER_TEXT;
}

static void answer_error(struct call *call, enum outcome_kind kind, const char *error, const char *detail)
{
    call->outcome = (struct outcome){
        .kind = kind,
        .error = arena_slice(call->arena, slice_of(error)),
        .detail = arena_slice(call->arena, slice_of(detail)),
    };
    call->response = SLICE_NONE;
}

void answer_unsent(struct call *call, bool retry, const char *error, const char *detail)
{
    answer_error(call, retry ? OUTCOME_RETRY : OUTCOME_FAILED, error, detail);
    call->outcome.unsent = true;
}

void answer_unknown(struct call *call, const char *error, const char *detail)
{
    answer_error(call, OUTCOME_UNKNOWN, error, detail);
}
