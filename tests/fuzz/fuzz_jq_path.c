/*
 * The text of plain paths. What we read as a path is also a path for libjq, with the same value. The input is the path,
 * a line end, and the JSON text that it leads through. The target is slow, because libjq compiles its whole library
 * with each program.
 */
#include "core/language/expression.h"
#include "tests/fuzz/jq_here.h"

#define INDEX_MAX 1000000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char last[512]; /* the program that was compiled last, because mutations of the JSON alone need no other */
    static jq_state *jq;
    struct slice json = fuzz_input(data, size), path = fuzz_line(&json), text, ours;
    struct arena *arena = fuzz_arena();
    struct expression_context context = {.input = json};
    const struct expression *e;
    struct template template;
    struct faults faults;
    struct buffer quoted;
    struct err err = {0};
    jv theirs;

    buffer_init(&quoted, 8192);
    json_put_string(&quoted, arena_printf(arena, "${ %.*s }", SLICE_ARG(path)));
    text = arena_slice(arena, buffer_slice(&quoted));
    buffer_fini(&quoted);
    if (path.len >= sizeof(last) || memchr(path.ptr, 0, path.len) || !fuzz_is_json(text) || !fuzz_is_json(json)) {
        return 0;
    }
    faults_init(&faults, arena);
    template_compile(text, SLICE(""), ROOT_INPUT, arena, &faults, &template);
    if (faults.count > 0 || template.count != 1 || template.expressions[0].kind != EXPRESSION_PLAIN) {
        return 0;
    }
    e = &template.expressions[0];
    for (size_t i = 0; i < e->part_count; i++) {
        if (!e->parts[i].member.ptr && (e->parts[i].index > INDEX_MAX || e->parts[i].index < -INDEX_MAX)) {
            return 0;
        }
    }
    MUST(e->source.len < sizeof(last));
    if (!jq || !slice_is(e->source, last)) {
        if (jq) {
            jq_teardown(&jq);
        }
        memcpy(last, e->source.ptr, e->source.len);
        last[e->source.len] = '\0';
        jq = jq_here_compile(last);
        MUST(jq);
    }
    text = expression_context_json(&context, arena);
    theirs = jq_here_run(jq, jv_parse_sized(text.ptr, (int)text.len));
    if (expression_follow(e, &context, arena, &ours, &err)) {
        MUST(jv_is_valid(theirs));
        jq_here_must_be(theirs, ours);
    } else {
        MUST(!jv_is_valid(theirs));
        jv_free(theirs);
    }
    return 0;
}
