/*
 * Definition documents. Every fault names a place of the document. An accepted document compiles again from its stored
 * form, tool by tool and saga by saga, with the same identity. The same holds for its canonical form.
 */
#include "adapters/adapter.h"
#include "base/canon.h"
#include "tests/fuzz/definition_source.h"

static void compile_again(const struct document_item *item, struct slice body, const struct tool_source *source,
                          struct arena *arena)
{
    struct digest identity = canon_digest(body, arena);
    struct faults faults;

    MUST(digest_equal(&identity, &item->identity));
    faults_init(&faults, arena);
    if (item->kind == DEFINITION_TOOL) {
        const struct tool *tool = tool_compile(body, 1, item->pointer, arena, &faults);

        MUST(tool && faults.count == 0 && slice_equal(tool->name, item->name));
    } else {
        const struct definition *saga = definition_compile(body, 1, source, item->pointer, arena, &faults);

        MUST(saga && faults.count == 0 && slice_equal(saga->name, item->name));
        MUST(saga->step_count == item->saga->step_count && saga->tool_count == item->saga->tool_count);
    }
}

/* Checks the parts that the layers above read: the settings of adapters. Their faults also name places of the
 * document. */
static void check_settings(const struct document *document, struct slice text, struct arena *arena)
{
    struct faults faults;

    faults_init(&faults, arena);
    for (size_t i = 0; i < document->check_count; i++) {
        const struct document_check *check = &document->checks[i];
        const struct adapter *adapter = check->program.ptr ? NULL : adapter_find(check->adapter);

        if (adapter) {
            adapter->check(check->settings, check->pointer, check->key_place, &faults);
        }
    }
    fuzz_check_faults(&faults, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = fuzz_input(data, size);
    struct arena *arena = fuzz_arena();
    struct definition_source self;
    const struct tool_source *source;
    struct document document = {0};
    struct faults faults;

    faults_init(&faults, arena);
    document_check(text, NULL, arena, &faults, &document);
    if (!fuzz_is_json(text)) {
        MUST(faults.count == 1);
        return 0;
    }
    fuzz_check_faults(&faults, text);
    check_settings(&document, text, arena);
    if (faults.count > 0) {
        return 0;
    }
    source = definition_source_init(&self, text, arena);
    for (size_t i = 0; i < document.item_count; i++) {
        compile_again(&document.items[i], document.items[i].body, source, arena);
        compile_again(&document.items[i], canon(document.items[i].body, NULL, 0, arena), source, arena);
    }
    return 0;
}
