/* The grammar of https://www.w3.org/TR/trace-context: version-traceid-parentid-flags, and a list of key=value. */
#include "base/trace_context.h"

#define PARENT_BYTES 55 /* the bytes of version 00; a later version may be longer */
#define PARENT_BYTES_MAX 256
#define STATE_BYTES_MAX 512
#define STATE_MEMBERS_MAX 32
#define STATE_KEY_BYTES_MAX 256

static bool is_lower_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* `len` lower-case hexadecimal digits, and unless they may be, not all of them 0. */
static bool is_hex(const char *at, size_t len, bool may_be_zero)
{
    bool is_zero = true;

    for (size_t i = 0; i < len; i++) {
        if (!is_lower_hex(at[i])) {
            return false;
        }
        is_zero = is_zero && at[i] == '0';
    }
    return may_be_zero || !is_zero;
}

static bool parent_is_good(struct slice parent)
{
    const char *at = parent.ptr;

    if (parent.len < PARENT_BYTES || parent.len > PARENT_BYTES_MAX || !is_hex(at, 2, true) ||
        (at[0] == 'f' && at[1] == 'f') || at[2] != '-' || !is_hex(at + 3, 32, false) || at[35] != '-' ||
        !is_hex(at + 36, 16, false) || at[52] != '-' || !is_hex(at + 53, 2, true)) {
        return false;
    }
    for (size_t i = PARENT_BYTES; i < parent.len; i++) {
        if (parent.ptr[i] <= 0x20 || parent.ptr[i] >= 0x7f) {
            return false;
        }
    }
    return parent.len == PARENT_BYTES || (!(at[0] == '0' && at[1] == '0') && at[PARENT_BYTES] == '-');
}

static bool is_key(struct slice key)
{
    for (size_t i = 0; i < key.len; i++) {
        char c = key.ptr[i];
        bool first = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

        if (!first && (i == 0 || (c != '_' && c != '-' && c != '*' && c != '/' && c != '@'))) {
            return false;
        }
    }
    return key.len > 0 && key.len <= STATE_KEY_BYTES_MAX;
}

static bool is_value(struct slice value)
{
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] < 0x20 || value.ptr[i] > 0x7e || value.ptr[i] == '=') {
            return false; /* a comma ends a member */
        }
    }
    return value.len > 0 && value.len <= STATE_KEY_BYTES_MAX && value.ptr[value.len - 1] != ' ';
}

static bool member_is_good(struct slice member)
{
    size_t at = 0;

    while (at < member.len && member.ptr[at] != '=') {
        at++;
    }
    return at < member.len && is_key((struct slice){member.ptr, at}) &&
           is_value((struct slice){member.ptr + at + 1, member.len - at - 1});
}

static bool state_is_good(struct slice state)
{
    struct slice members[STATE_MEMBERS_MAX + 1];
    size_t count = state.len <= STATE_BYTES_MAX ? slice_split(state, ',', members, STATE_MEMBERS_MAX + 1) : 0;
    bool has_one = false;

    if (count == 0 || count > STATE_MEMBERS_MAX) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        struct slice member = slice_trim(members[i]);

        if (member.len > 0 && !member_is_good(member)) { /* an empty member is allowed, and says nothing */
            return false;
        }
        has_one = has_one || member.len > 0;
    }
    return has_one;
}

struct trace_context trace_context_read(struct slice parent, struct slice state)
{
    struct trace_context none = {SLICE_NONE, SLICE_NONE};

    if (!parent.ptr || !parent_is_good(parent)) {
        return none;
    }
    return (struct trace_context){parent, state.ptr && state_is_good(state) ? state : SLICE_NONE};
}
