/*
 * Templates, and our own way through plain paths. The input is a template on the first line and a JSON text behind it,
 * which every name in an expression stands for.
 *
 * Each plain path gives the value or error that libjq gives for the same parts. (fuzz_jq_path.c checks whether libjq
 * reads the same parts out of the text, because compiling takes milliseconds.) The rendered text is JSON.
 */
#include "base/canon.h"
#include "core/language/expression.h"
#include "tests/fuzz/jq_here.h"

#define ROOTS_ALL ((ROOT_SECRET << 1) - 1)
#define INDEX_MAX 1000000

static const struct json_limits rendered_limits = {(size_t)16 << 20, 96, 1024, 400};

static void on_use(void *context, const struct step_use *use)
{
    size_t *uses = context;

    MUST(use->step_id.ptr && use->pointer.ptr);
    ++*uses;
}

static void on_step(void *context, struct slice step_id, struct slice pointer)
{
    size_t *steps = context;

    MUST(step_id.ptr && pointer.ptr);
    ++*steps;
}

static bool parts_are_small(const struct expression *e)
{
    for (size_t i = 0; i < e->part_count; i++) {
        if (!e->parts[i].member.ptr && (e->parts[i].index > INDEX_MAX || e->parts[i].index < -INDEX_MAX)) {
            return false; /* libjq keeps numbers as floats and casts them to int */
        }
    }
    return true;
}

static void compare(const struct expression *e, const struct expression_context *context, struct arena *arena)
{
    static jq_state *jq; /* a program that follows a path part by part */
    struct slice json = expression_context_json(context, arena), ours;
    jv input = jv_object(), parts = jv_array(), theirs;
    struct err err = {0};
    bool ok = expression_follow(e, context, arena, &ours, &err);

    MUST(ok || (err.code == ERR_INVALID && err.message[0]));
    if (!jq) {
        jq = jq_here_compile(". as $in | reduce .p[] as $k (.v; .[$k])");
        MUST(jq);
    }
    for (size_t i = 0; i < e->part_count; i++) {
        parts = jv_array_append(parts, e->parts[i].member.ptr
                                           ? jv_string_sized(e->parts[i].member.ptr, (int)e->parts[i].member.len)
                                           : jv_number((double)e->parts[i].index));
    }
    input = jv_object_set(input, jv_string("p"), parts);
    input = jv_object_set(input, jv_string("v"), jv_parse_sized(json.ptr, (int)json.len));
    theirs = jq_here_run(jq, input);
    MUST(ok == jv_is_valid(theirs));
    if (ok) {
        jq_here_must_be(theirs, ours);
    } else {
        jv_free(theirs);
    }
}

static void render(const struct template *template, const struct expression_context *context, struct arena *arena)
{
    struct slice *values = arena_array(arena, template->count + 1, sizeof(*values)), out;
    struct err err = {0};
    enum err_code code;

    for (size_t i = 0; i < template->count; i++) {
        values[i] = i % 2 ? SLICE("{\"v\": [1, \"\\u00e9\\\"\"]}") : SLICE("\"text \\n\"");
    }
    code = template_render(template, context, values, arena, &out, &err);
    if (code != ERR_OK) {
        MUST(err.code == code && err.message[0] && template->count > 0);
        return;
    }
    MUST(json_check(out, &rendered_limits, NULL) == ERR_OK);
    if (template->count == 0 && !memchr(template->json.ptr, '$', template->json.len)) {
        MUST(slice_equal(canon(out, NULL, 0, arena), canon(template->json, NULL, 0, arena)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice json = fuzz_input(data, size), text = fuzz_line(&json);
    struct arena *arena = fuzz_arena();
    struct expression_step steps[2] = {{SLICE("a"), json, SLICE("completed")},
                                       {SLICE("b"), SLICE_NONE, SLICE("pending")}};
    struct expression_context context = {json,          json,         json, json,  json, SLICE("id"),
                                         SLICE("name"), SLICE("key"), 1,    steps, 2};
    struct template template, alone;
    struct faults faults;
    size_t uses = 0, named = 0;

    if (!fuzz_is_json(text) || !fuzz_is_json(json)) {
        return 0;
    }
    faults_init(&faults, arena);
    expression_compile(text, SLICE(""), ROOT_INPUT, arena, &faults, &alone);
    fuzz_check_faults(&faults, text);
    faults_init(&faults, arena);
    template_compile(text, SLICE(""), ROOTS_ALL, arena, &faults, &template);
    fuzz_check_faults(&faults, text);
    if (faults.count > 0) {
        return 0;
    }
    template_each_step(&template, on_step, &named);
    template_each_use(&template, on_use, &uses);
    for (size_t i = 0; i < template.count; i++) {
        if (template.expressions[i].kind == EXPRESSION_PLAIN && parts_are_small(&template.expressions[i])) {
            compare(&template.expressions[i], &context, arena);
        }
    }
    render(&template, &context, arena);
    return 0;
}
