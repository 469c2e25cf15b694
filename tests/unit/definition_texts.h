/* Helpers of the tests of definitions: definitions as text with ' for ", and tools that are registered already. */
#ifndef SAGAD_TESTS_DEFINITION_TEXTS_H
#define SAGAD_TESTS_DEFINITION_TEXTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/canon.h"
#include "base/json.h"
#include "core/definition/definition.h"
#include "core/definition/graph.h"
#include "tests/lib/test.h"

#define MAY_BE_UNUSED __attribute__((unused))

MAY_BE_UNUSED static struct slice
json_of(const char *text, struct arena *arena) /* reads JSON with ' for ", so that documents are readable in C */
{
    char *copy = arena_text(arena, slice_of(text));

    for (char *c = copy; *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    return slice_of(copy);
}

MAY_BE_UNUSED static void no_faults(const struct faults *faults)
{
    if (faults->count > 0) {
        fail_msg("%.*s: %.*s", SLICE_ARG(faults->items[0].pointer), SLICE_ARG(faults->items[0].detail));
    }
}

MAY_BE_UNUSED static bool find_registered(void *context, struct slice name, uint32_t version, struct slice *body,
                                          uint32_t *version_found)
{
    static const struct {
        const char *name, *body;
    } tools[] = {
        {"pay", "{'name':'pay','builtin':{'do':'echo'},'effect':'keyed','key':{'window':'1h'},'retry':{'max_attempts':"
                "7,'initial':'1s'},"
                "'timeout':'3s','compensate':{'tool':'refund','retry':{'max_attempts':50}}}"},
        {"refund", "{'name':'refund','builtin':{'do':'echo'},'effect':'idempotent','retry':{'initial':'4s'}}"},
        {"book", "{'name':'book','builtin':{'do':'echo'},'effect':'idempotent','compensate':{'tool':'refund'}}"},
        {"mail", "{'name':'mail','builtin':{'do':'echo'},'effect':'once','terminal':true}"},
    };
    struct arena *arena = context;

    assert_int_equal(version, 0);
    for (size_t i = 0; i < COUNT_OF(tools); i++) {
        if (slice_is(name, tools[i].name)) {
            *body = json_of(tools[i].body, arena);
            *version_found = (uint32_t)i + 10;
            return true;
        }
    }
    return false;
}

MAY_BE_UNUSED static struct tool *compiled(const char *text, struct arena *arena)
{
    struct faults faults;

    faults_init(&faults, arena);
    struct tool *tool = tool_compile(json_of(text, arena), 1, SLICE(""), arena, &faults);

    no_faults(&faults);
    return tool;
}

#endif
