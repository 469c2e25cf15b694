/*
 * `sagad mcp-tools` drafts definitions from a server's list of tools. The input is an array of them. Whatever the
 * server says, each tool of the draft compiles, and no two have the same name.
 */
#include "core/definition/definition.h"
#include "mcp_draft.h"
#include "tests/fuzz/fuzz.h"

#define TOOLS_MAX 6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct mcp_draft draft;
    struct slice text = fuzz_input(data, size), offered;
    struct arena *arena = fuzz_arena();
    struct json_walk walk;
    struct faults faults;

    if (!fuzz_is_json(text) || json_type(text) != JSON_ARRAY) {
        return 0;
    }
    draft.arena = arena;
    draft.server = SLICE("{\"url\":\"https://a.example/mcp\"}");
    draft.prefix = SLICE("a.");
    draft.count = draft.offered = 0;
    walk = json_walk(text);
    while (draft.offered < TOOLS_MAX && json_next_element(&walk, &offered)) {
        mcp_draft_add(&draft, offered);
    }
    MUST(draft.count <= draft.offered);
    for (size_t i = 0; i < draft.count; i++) {
        const struct tool *tool;

        faults_init(&faults, arena);
        tool = fuzz_is_json(draft.tools[i]) ? tool_compile(draft.tools[i], 1, SLICE(""), arena, &faults) : NULL;
        MUST(tool && faults.count == 0 && slice_equal(tool->name, draft.names[i]));
        for (size_t k = 0; k < i; k++) {
            MUST(!slice_equal(draft.names[i], draft.names[k]));
        }
    }
    return 0;
}
