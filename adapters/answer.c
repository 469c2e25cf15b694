/* What every adapter does with bytes from outside: JSON stays as it is, text becomes a string, the rest is nothing. */
#include "adapters/answer.h"

#include "adapters/adapter.h"
#include "base/json.h"

/* Length of the UTF-8 sequence at the start, 0 when there is none (RFC 3629: no surrogates, nothing overlong). */
static size_t utf8_len(const unsigned char *at, size_t left)
{
    unsigned char first = at[0];
    size_t len = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;

    if (len == 0 || len > left) {
        return 0;
    }
    for (size_t i = 1; i < len; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if ((first == 0xe0 && at[1] < 0xa0) || (first == 0xed && at[1] > 0x9f) || (first == 0xf0 && at[1] < 0x90) ||
        (first == 0xf4 && at[1] > 0x8f)) {
        return 0;
    }
    return len;
}

bool answer_is_text(struct slice text)
{
    for (size_t i = 0; i < text.len;) {
        size_t len = text.ptr[i] ? utf8_len((const unsigned char *)text.ptr + i, text.len - i) : 0;

        if (len == 0) {
            return false;
        }
        i += len;
    }
    return true;
}

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
    if (!answer_is_text(bytes)) {
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
