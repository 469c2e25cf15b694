/*
 * Input schemas. The input is a schema on the first line and a value behind it. Faults name places of the schema or of
 * the value. A schema judges a value the same within allOf, and the opposite way within not.
 */
#include "core/language/schema.h"
#include "tests/fuzz/fuzz.h"

#define TOO_MUCH                                                                                                       \
    "nested" /* a check is bounded in depth and in work, and beyond that it refuses whatever the schema says */

static bool accepts(const struct schema *schema, struct slice value, struct arena *arena, bool *bounded)
{
    struct faults faults;

    faults_init(&faults, arena);
    schema_check(schema, value, SLICE(""), arena, &faults);
    fuzz_check_faults(&faults, value);
    for (size_t i = 0; i < faults.count; i++) {
        struct slice detail = faults.items[i].detail;

        *bounded = *bounded || memmem(detail.ptr, detail.len, "too ", 4) ||
                   memmem(detail.ptr, detail.len, TOO_MUCH, strlen(TOO_MUCH)) ||
                   memmem(detail.ptr, detail.len, "deep", 4);
    }
    return faults.count == 0;
}

static const struct schema *compile(struct slice text, struct arena *arena)
{
    struct faults faults;
    const struct schema *schema;

    faults_init(&faults, arena);
    schema = schema_compile(text, SLICE(""), arena, &faults);
    fuzz_check_faults(&faults, text);
    MUST((schema == NULL) == (faults.count > 0));
    return schema;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice value = fuzz_input(data, size), text = fuzz_line(&value);
    struct arena *arena = fuzz_arena();
    const struct schema *schema, *all, *not ;
    bool bounded = false, ok;

    if (!fuzz_is_json(text)) {
        return 0;
    }
    schema = compile(text, arena);
    if (!schema || !fuzz_is_json(value)) {
        return 0;
    }
    ok = accepts(schema, value, arena, &bounded);
    if (memmem(text.ptr, text.len, "$", 1)) {
        return 0; /* references are from the root of the schema */
    }
    all = compile(arena_printf(arena, "{\"allOf\":[%.*s,true]}", SLICE_ARG(text)), arena);
    not = compile(arena_printf(arena, "{\"not\":%.*s}", SLICE_ARG(text)), arena);
    if (all && not ) { /* otherwise the schema already has the largest depth */
        bool in_all = accepts(all, value, arena, &bounded), in_not = accepts(not, value, arena, &bounded);

        MUST(bounded || (in_all == ok && in_not == !ok));
    }
    return 0;
}
