/*
 * Small texts: instants, durations, ids, digests, numbers, names. The first byte chooses one, and the rest is the text.
 * A text that can be read is written and read again to the same value.
 */
#include <stdio.h>

#include "adapters/http_parts.h"
#include "base/canon.h"
#include "base/digest.h"
#include "base/id.h"
#include "base/instant.h"
#include "base/role.h"
#include "base/settings.h"
#include "core/definition/parts.h"
#include "core/language/decimal.h"
#include "core/saga/saga.h"
#include "tests/fuzz/fuzz.h"

#define ARGUMENTS_MAX 16

static void instant(struct slice text)
{
    char again[INSTANT_TEXT_BYTES];
    int64_t ms, ms_again;

    if (instant_parse(text, &ms)) {
        instant_text(ms, again);
        MUST(instant_parse(slice_of(again), &ms_again) && ms_again == ms);
    }
}

static void duration(struct slice text)
{
    char for_people[INSTANT_TEXT_BYTES];
    int64_t ms;

    if (duration_parse(text, &ms)) {
        MUST(ms >= 0 && ms <= DURATION_MS_MAX);
        duration_text(ms, for_people);
        MUST(for_people[0] && strlen(for_people) < sizeof(for_people));
    }
}

static void uuid(struct slice text)
{
    char again[UUID_TEXT_BYTES];
    struct uuid id, same;

    if (uuid_parse(text, &id)) {
        uuid_text(&id, again);
        MUST(uuid_parse(slice_of(again), &same) && uuid_equal(&id, &same) && uuid_compare(&id, &same) == 0);
        MUST(strlen(again) == text.len);
        MUST(uuid_v7_ms(&id) >= 0 && saga_id_shard((struct saga_id){id}) <= UINT16_MAX);
    }
}

static void digest(struct slice text)
{
    struct digest d, same;
    char hex[65];

    if (digest_from_hex(text, &d)) {
        digest_hex(&d, hex);
        MUST(digest_from_hex(slice_of(hex), &same) && digest_equal(&d, &same));
    }
}

static void number(struct slice text)
{
    char again[32];
    int64_t value, same;

    if (slice_to_i64(text, &value)) {
        (void)snprintf(again, sizeof(again), "%lld", (long long)value);
        MUST(slice_to_i64(slice_of(again), &same) && same == value);
    }
}

/* Checks that each known name is the name of the value that it was read as. */
static void names(struct slice text)
{
    enum effect effect;
    enum record_type type;
    enum operator_action action;
    enum saga_status status;

    if (effect_parse(text, &effect)) {
        MUST(slice_is(text, effect_name(effect)));
    }
    if (record_type_parse(text, &type)) {
        MUST(slice_is(text, record_type_name(type)));
    }
    if (operator_action_parse(text, &action)) {
        MUST(slice_is(text, operator_action_name(action)));
    }
    if (saga_status_parse(text, &status)) {
        MUST(slice_is(text, saga_status_name(status)));
    }
    if (call_step_is_good(text)) {
        MUST(text.len > 0 && text.len <= CALL_STEP_BYTES_MAX && text.ptr[0] != '~');
    }
    if (pointer_is_sound(text)) {
        MUST(text.len > 0 && text.ptr[0] == '/');
    }
}

/* Checks two numbers: exact comparison against 64 bits when they fit, and against the canonical form. */
static void decimals(struct slice text, struct arena *arena)
{
    struct slice second = text, first = fuzz_line(&second);
    struct decimal a, b;
    int64_t x, y;
    int order;

    if (!fuzz_is_json(first) || !fuzz_is_json(second) || json_type(first) != JSON_NUMBER ||
        json_type(second) != JSON_NUMBER) {
        return;
    }
    a = decimal_of(json_trim(first), arena);
    b = decimal_of(json_trim(second), arena);
    order = decimal_compare(&a, &b);
    MUST(order == -decimal_compare(&b, &a) && decimal_compare(&a, &a) == 0);
    MUST((order == 0) == slice_equal(canon(first, NULL, 0, arena), canon(second, NULL, 0, arena)));
    if (json_i64(first, &x) && json_i64(second, &y)) {
        MUST(decimal_is_integer(&a) && order == (x > y) - (x < y));
        if (y != 0 && b.digits.len <= DIVISOR_DIGITS) {
            MUST(decimal_is_multiple(&a, &b) == (y == -1 || x % y == 0));
        }
    }
}

static const struct setting table[] = {
    {"text", SETTING_TEXT, NULL, "x", 0, 0, "A text.", false},
    {"number", SETTING_NUMBER, NULL, "1", -5, 1000000, "A number.", false},
    {"wait", SETTING_DURATION, NULL, "1s", 0, 100000, "A duration.", false},
    {"bytes", SETTING_BYTES, NULL, "1KiB", 1, INT64_C(1) << 40, "Bytes.", false},
    {"secret", SETTING_TEXT, NULL, NULL, 0, 0, "A secret.", true},
    {"quick", SETTING_SWITCH, NULL, "false", 0, 0, "A switch.", false},
};

static void flags(struct slice text, struct arena *arena)
{
    static struct buffer printed;
    char *argv[ARGUMENTS_MAX + 1];
    int argc = 0, first = 0;
    struct settings settings;
    struct err err = {0};

    while (text.len > 0 && argc < ARGUMENTS_MAX) {
        argv[argc++] = arena_text(arena, fuzz_line(&text));
    }
    settings_init(&settings, table, COUNT_OF(table));
    if (settings_from_args(&settings, argc, argv, 0, &first, &err) == ERR_OK) {
        MUST(first >= 0 && first <= argc);
    } else {
        MUST(err.code == ERR_CONFIG && err.message[0]);
    }
    MUST(settings_number(&settings, "number") >= -5 && settings_number(&settings, "number") <= 1000000);
    MUST(settings_number(&settings, "bytes") >= 1);
    if (printed.bytes_max == 0) {
        buffer_init(&printed, (size_t)1 << 20);
    }
    buffer_reset(&printed);
    settings_print(&settings, &printed);
    MUST(fuzz_is_json(buffer_slice(&printed)));
    settings_fini(&settings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = fuzz_input(data, size);
    uint8_t which = fuzz_byte(&text);
    struct arena *arena = fuzz_arena();

    switch (which % 9) {
    case 0:
        instant(text);
        break;
    case 1:
        duration(text);
        break;
    case 2:
        uuid(text);
        break;
    case 3:
        digest(text);
        break;
    case 4:
        number(text);
        break;
    case 5:
        names(text);
        break;
    case 6:
        decimals(text, arena);
        break;
    case 7:
        flags(text, arena);
        break;
    case 8:
        MUST(http_retry_after_ms(text, INT64_C(1700000000000), arena) >= 0);
        break;
    }
    return 0;
}
