/* See tried.h. */
#include "tools/sagactl/hammer/tried.h"

#include <stdio.h>

#include "base/json.h"
#include "tools/sagactl/input_text.h"

static bool is_report(struct slice json)
{
    return json_type(json) == JSON_OBJECT && json_type(json_member(json, "tool")) == JSON_STRING &&
           json_type(json_member(json, "ok")) == JSON_BOOL && json_type(json_member(json, "declared")) == JSON_OBJECT &&
           json_type(json_member(json, "excess")) == JSON_ARRAY;
}

int reports_load(struct ctl *ctl, const struct option_values *files, struct reports *out)
{
    out->count = 0;
    for (size_t i = 0; i < files->count; i++) {
        struct input_text text;
        struct err err = {0};

        if (!input_read_whole(ctl, files->items[i], &text)) {
            return EXIT_FAILED;
        }
        if (json_check(text.json, &json_limits_default, &err) != ERR_OK || !is_report(text.json)) {
            (void)fprintf(stderr, "sagactl: %s is no report of `sagactl hammer -o json`\n", files->items[i]);
            return EXIT_FAILED;
        }
        out->items[out->count++] = (struct report){files->items[i], text.json};
    }
    return EXIT_OK;
}

struct look { /* at one class that a tool claims */
    const struct document_item *item;
    enum effect effect;
    struct slice pointer; /* the pointer of what it claims */
    struct faults *warnings;
    size_t tried, outdated; /* reports about this text, and about another one of the same name */
};

static bool has_identity(struct slice json, const struct digest *identity)
{
    char hex[65];

    digest_hex(identity, hex);
    return json_string_is(json_member(json, "definition"), hex);
}

static void look_at_report(struct look *look, const struct report *report)
{
    struct arena *arena = look->warnings->arena;
    struct slice declared = json_member(json_member(report->json, "declared"), "effect"), sentence;
    struct json_walk excess = json_walk(json_member(report->json, "excess"));

    if (!slice_equal(json_string(json_member(report->json, "tool"), arena), look->item->name)) {
        return;
    }
    if (!has_identity(report->json, &look->item->identity)) {
        look->outdated++;
        return;
    }
    if (!json_string_is(declared, effect_name(look->effect))) {
        return;
    }
    look->tried++;
    while (json_next_element(&excess, &sentence)) {
        struct slice text = json_string(sentence, arena);

        faults_add(look->warnings, look->pointer, "%s: %.*s", report->path, SLICE_ARG(text));
    }
}

static void look_at_claim(const struct document_item *item, enum effect effect, const struct reports *reports,
                          struct faults *warnings)
{
    struct look look = {.item = item, .effect = effect, .warnings = warnings};

    if (effect == EFFECT_ONCE || slice_is(item->tool->adapter, "builtin")) {
        return;
    }
    look.pointer = json_pointer_join(warnings->arena, item->pointer, SLICE("effect"));
    for (size_t i = 0; i < reports->count; i++) {
        look_at_report(&look, &reports->items[i]);
    }
    if (look.tried == 0 && look.outdated > 0) {
        faults_add(warnings, look.pointer, "\"%s\" was tried for another text of this tool: run `sagactl hammer` again",
                   effect_name(effect));
    } else if (look.tried == 0) {
        faults_add(warnings, look.pointer,
                   "nobody has tried whether \"%s\" is true: give the report of `sagactl hammer -o json` with "
                   "--hammered",
                   effect_name(effect));
    }
}

void tried_warn(const struct document *document, const struct reports *reports, struct faults *warnings)
{
    for (size_t i = 0; i < document->item_count; i++) {
        const struct document_item *item = &document->items[i];

        if (item->kind != DEFINITION_TOOL) {
            continue;
        }
        if (item->tool->conditional && item->tool->effect_then != item->tool->effect_else) {
            look_at_claim(item, item->tool->effect_then, reports, warnings);
            look_at_claim(item, item->tool->effect_else, reports, warnings);
        } else {
            look_at_claim(item, item->tool->effect, reports, warnings);
        }
    }
}
