/*
 * The record codec. The input is one record as text. A record that can be read is written and read again, and then
 * written to the same bytes. So nothing is lost, however often the log is copied.
 */
#include "core/definition/definition.h"
#include "core/record/record.h"
#include "tests/fuzz/definition_source.h"

#define ECHO "\"builtin\":{\"do\":\"echo\"}"

static const char document[] =
    "{\"tools\":[{\"name\":\"book\"," ECHO
    ",\"effect\":\"keyed\",\"key\":{\"window\":\"24h\"},\"compensate\":{\"tool\":\"cancel\"}},"
    "{\"name\":\"cancel\"," ECHO ",\"effect\":\"idempotent\"}],"
    "\"sagas\":[{\"name\":\"trip\",\"steps\":[{\"id\":\"a\",\"call\":\"book\"},{\"id\":\"b\",\"call\":\"book\"},"
    "{\"id\":\"s\",\"signal\":{\"name\":\"paid\"}},{\"id\":\"p\",\"approve\":{\"roles\":[\"operator\"]}}]}]}";

static const struct definition *trip(void)
{
    static struct arena arena;
    static const struct definition *definition;
    struct definition_source self;
    struct faults faults;

    if (!definition) {
        arena_init(&arena, 16384);
        faults_init(&faults, &arena);
        definition =
            definition_compile(json_element(json_member(slice_of(document), "sagas"), 0), 1,
                               definition_source_init(&self, slice_of(document), &arena), SLICE(""), &arena, &faults);
        MUST(definition && faults.count == 0);
    }
    return definition;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct buffer first, second;
    struct slice text = fuzz_input(data, size);
    struct arena *arena = fuzz_arena();
    const struct definition *definition = trip();
    struct record record, again;
    struct err err = {0};

    if (record_read(text, definition, arena, &record, &err) != ERR_OK) {
        MUST(err.code == ERR_CORRUPT && err.message[0]);
        return 0;
    }
    if (record.step != STEP_NONE && record.step >= definition->step_count) {
        return 0; /* step.called makes a step that does not exist yet */
    }
    if (first.bytes_max == 0) {
        buffer_init(&first, (size_t)1 << 24);
        buffer_init(&second, (size_t)1 << 24);
    }
    buffer_reset(&first);
    buffer_reset(&second);
    record_write(&record, definition, &first);
    MUST(record_read(buffer_slice(&first), definition, arena, &again, &err) == ERR_OK);
    record_write(&again, definition, &second);
    MUST(slice_equal(buffer_slice(&first), buffer_slice(&second)));
    MUST(again.type == record.type && again.step == record.step && again.attempt == record.attempt &&
         again.due_ms == record.due_ms);
    return 0;
}
