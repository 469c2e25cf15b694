/*
 * The same call with other arguments. The input is two JSON texts on two lines, and the tool's material and volatile
 * places. The texts differ exactly when their fingerprints do, in either order, and each named pointer is a place in
 * which they differ.
 */
#include "base/canon.h"
#include "core/definition/drift.h"
#include "tests/fuzz/fuzz.h"

static const struct tool *tool(void)
{
    static const char body[] = "{\"name\":\"t\",\"builtin\":{\"do\":\"echo\"},\"effect\":\"idempotent\",\"material\":["
                               "\"/amount\",\"/to/name\"],"
                               "\"volatile\":[\"/note\",\"/items/*/at\"]}";
    static struct arena arena;
    static const struct tool *compiled;
    struct faults faults;

    if (!compiled) {
        arena_init(&arena, 4096);
        faults_init(&faults, &arena);
        compiled = tool_compile(slice_of(body), 1, SLICE(""), &arena, &faults);
        MUST(compiled && faults.count == 0);
    }
    return compiled;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice second = fuzz_input(data, size), first = fuzz_line(&second), pointer;
    struct arena *arena = fuzz_arena();
    struct digest a, b;
    struct drift drift, back;
    struct json_walk walk;

    if (!fuzz_is_json(first) || !fuzz_is_json(second)) {
        return 0;
    }
    drift = drift_find(tool(), first, second, arena);
    back = drift_find(tool(), second, first, arena);
    a = op_fingerprint(SLICE("t"), first, &tool()->volatiles, arena);
    b = op_fingerprint(SLICE("t"), second, &tool()->volatiles, arena);
    MUST(drift.differs == !digest_equal(&a, &b));
    MUST(drift.differs == back.differs && drift.material == back.material && (!drift.material || drift.differs));
    if (!drift.differs) {
        return 0;
    }
    MUST(fuzz_is_json(drift.pointers) && json_type(drift.pointers) == JSON_ARRAY);
    MUST(json_count(drift.pointers) > 0 && json_count(drift.pointers) <= DRIFT_POINTERS_MAX);
    walk = json_walk(drift.pointers);
    while (json_next_element(&walk, &pointer)) {
        struct slice place = json_string(pointer, arena), x, y;

        MUST(place.ptr && (place.len == 0 || place.ptr[0] == '/'));
        x = json_at(first, place);
        y = json_at(second, place);
        MUST(x.ptr || y.ptr);
        MUST(!x.ptr || !y.ptr || !slice_equal(canon(x, NULL, 0, arena), canon(y, NULL, 0, arena)));
    }
    return 0;
}
