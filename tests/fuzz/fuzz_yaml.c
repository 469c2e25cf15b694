/*
 * YAML as sagactl reads and writes it. Text that is read is JSON, except for what only json_check() judges. It means
 * the same when it is written as YAML and read again. JSON text means the same as YAML, when YAML can read it.
 */
#include "base/canon.h"
#include "tests/fuzz/fuzz.h"
#include "tools/sagactl/yaml_text.h"

static void check_marks(const struct yaml_text *text)
{
    for (size_t i = 0; i < text->mark_count; i++) {
        MUST(i == 0 || text->marks[i].offset > text->marks[i - 1].offset);
        MUST(text->marks[i].offset < text->json.len);
        MUST(text->marks[i].position.line > 0 && text->marks[i].position.column > 0);
        MUST(yaml_position(text, text->marks[i].offset).line == text->marks[i].position.line);
    }
}

static void check_written(struct slice json, struct arena *arena)
{
    struct yaml_text again;
    struct yaml_fault fault;
    struct buffer out;

    buffer_init(&out, 64 << 20);
    MUST(yaml_write(json, &out));
    MUST(yaml_read(buffer_slice(&out), arena, &again, &fault));
    MUST(fuzz_is_json(again.json));
    MUST(slice_equal(canon(again.json, NULL, 0, arena), canon(json, NULL, 0, arena)));
    buffer_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = fuzz_arena();
    struct slice input = fuzz_input(data, size);
    struct yaml_text text;
    struct yaml_fault fault = {0};
    bool is_yaml = yaml_read(input, arena, &text, &fault), is_json = fuzz_is_json(input);

    if (!is_yaml) {
        MUST(fault.position.line > 0 && fault.detail[0] != '\0');
    } else {
        MUST(text.mark_count > 0 && json_check_syntax(text.json, NULL) == ERR_OK);
        check_marks(&text);
        if (fuzz_is_json(text.json)) {
            check_written(text.json, arena);
        }
    }
    if (is_json) {
        check_written(json_trim(input), arena);
    }
    if (is_json && is_yaml) {
        MUST(slice_equal(canon(text.json, NULL, 0, arena), canon(json_trim(input), NULL, 0, arena)));
    }
    return 0;
}
