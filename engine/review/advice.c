/*
 * Looks at each tool of a document, also at tools written inside a saga. A tool may call an adapter in three places: in
 * the tool itself, in its probe and in its precheck.
 */
#include "review/review.h"

#include <string.h>

#include "base/json.h"

struct caller { /* one call of an adapter */
    const struct tool *tool;
    struct slice adapter, pointer; /* pointer: the place of the settings */
    const struct template *settings;
    const char *what; /* "the probe" */
    bool reads, question;
};

struct advice_look {
    void (*caller)(const struct caller *caller, struct faults *faults);
    void (*tool)(const struct tool *tool, struct slice pointer, struct faults *faults); /* may be NULL */
    struct faults *faults;
};

static struct slice below(const struct advice_look *look, struct slice pointer, const char *name)
{
    return json_pointer_join(look->faults->arena, pointer, slice_of(name));
}

static void look_at_caller(const struct advice_look *look, struct caller caller, struct slice pointer)
{
    caller.pointer = json_pointer_join(look->faults->arena, pointer, caller.adapter);
    look->caller(&caller, look->faults);
}

static void look_at_tool(const struct advice_look *look, const struct tool *tool, struct slice pointer)
{
    bool reads = tool->effect == EFFECT_READ;

    if (look->tool) {
        look->tool(tool, pointer, look->faults);
    }
    look_at_caller(look,
                   (struct caller){tool, tool->adapter, SLICE_NONE, &tool->settings, reads ? "this `read`" : "the tool",
                                   reads, false},
                   pointer);
    if (tool->has_probe) {
        look_at_caller(
            look,
            (struct caller){tool, tool->probe.adapter, SLICE_NONE, &tool->probe.settings, "the probe", true, true},
            below(look, pointer, "probe"));
    }
    if (tool->has_precheck) {
        look_at_caller(look,
                       (struct caller){tool, tool->precheck.adapter, SLICE_NONE, &tool->precheck.settings,
                                       "the precheck", true, true},
                       below(look, pointer, "precheck"));
    }
}

static void look_at(const struct advice_look *look, const struct document *document)
{
    for (size_t i = 0; i < document->item_count; i++) {
        const struct document_item *item = &document->items[i];

        if (item->kind == DEFINITION_TOOL) {
            look_at_tool(look, item->tool, item->pointer);
            continue;
        }
        struct json_walk walk = json_walk(json_member(item->body, "steps"));
        struct slice steps = below(look, item->pointer, "steps"), step;

        for (uint32_t k = 0; json_next_element(&walk, &step); k++) {
            if (json_type(json_member(step, "call")) == JSON_OBJECT) {
                struct slice place =
                    json_pointer_join(look->faults->arena, steps, arena_printf(look->faults->arena, "%u", (unsigned)k));

                look_at_tool(look, item->saga->steps[k].tool, below(look, place, "call"));
            }
        }
    }
}

/* --- warnings --- */

static bool mentions_args(struct slice text)
{
    return text.ptr && memmem(text.ptr, text.len, ".args", 5) != NULL;
}

static bool uses_args(const struct template *template)
{
    for (size_t i = 0; i < template->count; i++) {
        if (mentions_args(template->expressions[i].source) || slice_is(template->expressions[i].source, ".")) {
            return true;
        }
    }
    return false;
}

static bool method_is(struct slice method, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (json_string_is(method, names[i])) {
            return true;
        }
    }
    return false;
}

/* Does the call send its arguments when nothing is said about them? A method that is a template counts as sending
 * them. */
static bool sends_args(const struct caller *caller)
{
    static const char *const without[] = {"GET", "HEAD", "DELETE", "OPTIONS"};
    struct slice settings = caller->settings->json;

    if (slice_is(caller->adapter, "http")) {
        struct slice method = json_member(settings, "method");

        return !caller->question && !json_member(settings, "body").ptr &&
               !(method.ptr ? method_is(method, without, COUNT_OF(without)) : caller->reads);
    }
    return slice_is(caller->adapter, "exec") || slice_is(caller->adapter, "builtin") ||
           (slice_is(caller->adapter, "mcp") && !json_member(settings, "arguments").ptr);
}

static void warn_of_method(const struct caller *caller, struct faults *faults)
{
    static const char *const harmless[] = {"GET", "HEAD"};
    struct slice method = json_member(caller->settings->json, "method");

    if (!caller->reads || !slice_is(caller->adapter, "http") || !method.ptr ||
        method_is(method, harmless, COUNT_OF(harmless))) {
        return;
    }
    faults_add(faults, json_pointer_join(faults->arena, caller->pointer, SLICE("method")),
               "%s is sent with %.*s, again and again until it is answered, and its receiver must change nothing then; "
               "leave `method` "
               "out for a GET",
               caller->what, SLICE_ARG(method));
}

static void warn_of_argv(const struct caller *caller, struct faults *faults)
{
    bool is_mcp = slice_is(caller->adapter, "mcp");
    struct slice settings = is_mcp ? json_member(caller->settings->json, "server") : caller->settings->json;
    struct slice argv = json_member(settings, "argv"), element;
    struct slice pointer =
        is_mcp ? json_pointer_join(faults->arena, caller->pointer, SLICE("server")) : caller->pointer;
    struct json_walk walk = json_walk(argv);

    if (!(is_mcp || slice_is(caller->adapter, "exec")) || json_type(argv) != JSON_ARRAY) {
        return;
    }
    pointer = json_pointer_join(faults->arena, pointer, SLICE("argv"));
    for (unsigned i = 0; json_next_element(&walk, &element); i++) {
        struct slice text = json_string(element, faults->arena);

        if (slice_is(text, "--")) {
            return;
        }
        if (i > 0 && slice_starts_with(text, "${") && mentions_args(text)) {
            faults_add(faults, json_pointer_join(faults->arena, pointer, arena_printf(faults->arena, "%u", i)),
                       "an argument that begins with what the caller gives can be an option of the program, such as "
                       "\"--help\"; put "
                       "\"--\" before it, where the program takes that for the end of its options");
        }
    }
}

static void warn_caller(const struct caller *caller, struct faults *faults)
{
    warn_of_method(caller, faults);
    warn_of_argv(caller, faults);
    if (!caller->question && caller->tool->input && !sends_args(caller) && !uses_args(caller->settings)) {
        faults_add(faults, caller->pointer,
                   "the tool has an `input`, and nothing of its arguments is sent: no template here uses `.args`%s",
                   slice_is(caller->adapter, "http") ? ", and this method sends no body by itself" : "");
    }
}

static void warn_tool(const struct tool *tool, struct slice pointer, struct faults *faults)
{
    bool raw = false;

    if (json_bool(json_member(tool->body, "url_raw"), &raw) && raw) {
        faults_add(faults, json_pointer_join(faults->arena, pointer, SLICE("url_raw")),
                   "what templates put into a URL is sent as it is: a value with \"/\", \"?\" or \"#\" in it makes "
                   "another URL; leave "
                   "`url_raw` out, or end single values in `| @uri`");
    }
}

void advice_warn(const struct document *document, struct faults *warnings)
{
    for (size_t i = 0; i < document->warnings->count; i++) {
        faults_add(warnings, document->warnings->items[i].pointer, "%.*s",
                   SLICE_ARG(document->warnings->items[i].detail));
    }
    look_at(&(struct advice_look){warn_caller, warn_tool, warnings}, document);
}

/* --- what differs --- */

static void differ_from_first(const struct caller *caller, struct faults *faults)
{
    struct slice settings = caller->settings->json;

    if (slice_is(caller->adapter, "http") && caller->reads && !json_member(settings, "method").ptr) {
        faults_add(faults, caller->pointer, "%s has no `method`: it sends GET; under reading 1 it sent POST",
                   caller->what);
    }
    if (slice_is(caller->adapter, "http") && sends_args(caller)) {
        faults_add(faults, caller->pointer,
                   "%s has no `body`: it sends its arguments as JSON; under reading 1 it sent none", caller->what);
    }
    if (template_encodes_url(caller->settings)) {
        faults_add(faults, caller->pointer,
                   "values in the URL are percent-encoded; under reading 1 they were put in as they are");
    }
}

void advice_differences(const struct document *document, enum reading since, struct faults *notes)
{
    if (since < READING_SECOND) {
        look_at(&(struct advice_look){differ_from_first, NULL, notes}, document);
    }
}
