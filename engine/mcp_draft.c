/*
 * Turns the annotations of a server's tools into suggestions. Without annotations it suggests the strictest class, so
 * that a person who edits the draft can only loosen it, on purpose.
 */
#include "mcp_draft.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "review/review.h"

#define NAME_BYTES_MAX 128
#define FAULTS_MAX 8
#define INDENT 2

enum suggestion { SUGGEST_READ, SUGGEST_IDEMPOTENT, SUGGEST_ONCE };

static const char *const effects[] = {
    [SUGGEST_READ] = "read", [SUGGEST_IDEMPOTENT] = "idempotent", [SUGGEST_ONCE] = "once"};

/* --- what the annotations suggest ----------------------------------------------------------------------------- */

static bool hint_is(struct slice annotations, const char *name, bool wanted)
{
    bool value;

    return json_bool(json_member(annotations, name), &value) && value == wanted;
}

static enum suggestion suggest(struct slice annotations, const char **because)
{
    if (hint_is(annotations, "readOnlyHint", true)) {
        *because = hint_is(annotations, "destructiveHint", true)
                       ? "readOnlyHint is true; but so is destructiveHint, which contradicts it"
                       : "readOnlyHint is true";
        return SUGGEST_READ;
    }
    if (hint_is(annotations, "idempotentHint", true)) {
        *because = "idempotentHint is true";
        return SUGGEST_IDEMPOTENT;
    }
    if (hint_is(annotations, "destructiveHint", true)) {
        *because = "destructiveHint is true";
    } else if (hint_is(annotations, "idempotentHint", false)) {
        *because = "idempotentHint is false";
    } else {
        *because = "no annotation says that it only reads or may be repeated";
    }
    return SUGGEST_ONCE;
}

static const char *question(enum suggestion suggestion)
{
    switch (suggestion) {
    case SUGGEST_READ:
        return "does it only read?";
    case SUGGEST_IDEMPOTENT:
        return "is the same call twice harmless? does a tool undo it?";
    case SUGGEST_ONCE:
        return "does a tool undo it? does the server honour a key in _meta?";
    }
    UNREACHABLE();
}

/* --- names ---------------------------------------------------------------------------------------------------- */

static bool name_is_taken(const struct mcp_draft *draft, struct slice name)
{
    for (size_t i = 0; i < draft->count; i++) {
        if (slice_equal(draft->names[i], name)) {
            return true;
        }
    }
    return false;
}

/* Makes a name: getSum and get-sum become get_sum and get-sum, and a character that a name may not hold becomes "_". */
static struct slice name_fit(const struct mcp_draft *draft, struct slice theirs)
{
    struct buffer text;
    struct slice name, unique;

    buffer_init(&text, 2 * theirs.len + draft->prefix.len + 8);
    buffer_put_slice(&text, draft->prefix);
    for (size_t i = 0; i < theirs.len; i++) {
        char c = theirs.ptr[i], before = i > 0 ? theirs.ptr[i - 1] : 'A';
        bool is_small = (before >= 'a' && before <= 'z') || (before >= '0' && before <= '9');

        if (text.len == 0 && !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) {
            buffer_put_text(&text, "tool_");
        }
        if (c >= 'A' && c <= 'Z') {
            buffer_put_text(&text, is_small ? "_" : "");
            buffer_put_char(&text, (char)(c - 'A' + 'a'));
        } else {
            buffer_put_char(&text, (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ? c : '_');
        }
    }
    name = arena_slice(draft->arena, buffer_slice(&text));
    buffer_fini(&text);
    name.len = name.len < NAME_BYTES_MAX ? name.len : NAME_BYTES_MAX;
    unique = name;
    for (int number = 2; name_is_taken(draft, unique); number++) {
        int kept = (int)(name.len < NAME_BYTES_MAX - 8 ? name.len : NAME_BYTES_MAX - 8);

        unique = arena_printf(draft->arena, "%.*s_%d", kept, name.ptr, number);
    }
    return unique;
}

/* --- one tool ------------------------------------------------------------------------------------------------- */

/* Writes the schema without `$schema`. Servers name drafts there that differ from ours only in what the review below
 * refuses anyway. */
static void write_input(struct json_writer *w, struct slice schema, struct arena *arena)
{
    struct json_walk walk = json_walk(schema);
    struct slice name, value;

    json_object_begin(w, "input");
    while (json_next_member(&walk, &name, &value)) {
        if (!slice_is(name, "$schema")) {
            const char *quoted = arena_text(arena, arena_printf(arena, "\"%.*s\"", SLICE_ARG(name)));

            json_write_raw(w, arena_text(arena, json_string(slice_of(quoted), arena)), value);
        }
    }
    json_object_end(w);
}

static struct slice tool_write(const struct mcp_draft *draft, struct slice name, struct slice offered,
                               enum suggestion suggestion, bool with_input)
{
    struct slice title = json_member(offered, "title"), description = json_member(offered, "description");
    struct buffer text;
    struct json_writer w;
    struct slice tool;

    description = json_type(description) == JSON_STRING ? description : title;
    buffer_init(&text, SIZE_MAX / 2); /* the input is already bounded */
    json_writer_init(&w, &text);
    json_object_begin(&w, NULL);
    json_write_slice(&w, "name", name);
    if (json_type(description) == JSON_STRING) {
        json_write_raw(&w, "description", description);
    }
    json_write_text(&w, "effect", effects[suggestion]);
    if (suggestion != SUGGEST_READ) {
        json_write_bool(&w, "terminal", true);
    }
    json_object_begin(&w, "mcp");
    json_write_raw(&w, "server", draft->server);
    json_write_raw(&w, "tool", json_member(offered, "name"));
    json_object_end(&w);
    if (with_input) {
        write_input(&w, json_member(offered, "inputSchema"), draft->arena);
    }
    json_object_end(&w);
    tool = arena_slice(draft->arena, buffer_slice(&text));
    buffer_fini(&text);
    return tool;
}

/* Returns the first thing that `sagactl check` would say of a document with these tools, or SLICE_NONE. */
static struct slice first_fault(struct slice document, struct arena *arena)
{
    struct faults faults;
    struct document out;

    faults_init(&faults, arena);
    faults.count_max = FAULTS_MAX;
    review_document_core(document, NULL, arena, &faults, &out);
    return faults.count > 0 ? arena_printf(arena, "%.*s: %.*s", SLICE_ARG(faults.items[0].pointer),
                                           SLICE_ARG(faults.items[0].detail))
                            : SLICE_NONE;
}

static struct slice tool_fault(struct slice tool, struct arena *arena)
{
    return first_fault(arena_printf(arena, "{\"tools\":[%.*s]}", SLICE_ARG(tool)), arena);
}

/* Prints a line of text that may come from a server, without control characters for the terminal. */
static void say(struct slice line)
{
    (void)fputs("sagad: ", stderr);
    for (size_t i = 0; i < line.len; i++) {
        unsigned char c = (unsigned char)line.ptr[i];

        (void)fputc(c < 0x20 || c == 0x7f ? ' ' : c, stderr);
    }
    (void)fputc('\n', stderr);
}

void mcp_draft_add(struct mcp_draft *draft, struct slice offered)
{
    struct arena *arena = draft->arena;
    struct slice theirs = json_string(json_member(offered, "name"), arena), name, tool, fault, input_fault = SLICE_NONE;
    bool with_input = json_type(json_member(offered, "inputSchema")) == JSON_OBJECT;
    const char *because;
    enum suggestion suggestion = suggest(json_member(offered, "annotations"), &because);

    draft->offered++;
    if (theirs.len == 0 || memmem(theirs.ptr, theirs.len, "${", 2)) { /* this would be an expression of the server */
        say(SLICE("a tool is left out: its name is missing, empty or holds \"${\""));
        return;
    }
    name = name_fit(draft, theirs);
    tool = tool_write(draft, name, offered, suggestion, with_input);
    fault = tool_fault(tool, arena);
    if (fault.ptr && with_input) {
        input_fault = fault;
        tool = tool_write(draft, name, offered, suggestion, false);
        fault = tool_fault(tool, arena);
    }
    if (!fault.ptr && draft->count == MCP_DRAFT_TOOLS_MAX) {
        fault = SLICE("the document has as many tools as it may have");
    }
    if (!fault.ptr && json_string_is(json_member(json_member(offered, "execution"), "taskSupport"), "required")) {
        fault = SLICE("it runs as a task only, which sagad does not follow");
    }
    if (fault.ptr) {
        say(arena_printf(arena, "%.*s is left out: %.*s", SLICE_ARG(name), SLICE_ARG(fault)));
        return;
    }
    say(arena_printf(arena, "%.*s: \"%s\"%s is suggested, because %s; %s", SLICE_ARG(name), effects[suggestion],
                     suggestion == SUGGEST_READ ? "" : " and terminal", because, question(suggestion)));
    if (input_fault.ptr) {
        say(arena_printf(arena, "%.*s: its inputSchema is left out, so sagad will not check arguments: %.*s",
                         SLICE_ARG(name), SLICE_ARG(input_fault)));
    }
    draft->suggests_once = draft->suggests_once || suggestion == SUGGEST_ONCE;
    draft->names[draft->count] = name;
    draft->tools[draft->count++] = tool;
}

/* --- the document --------------------------------------------------------------------------------------------- */

static void put_line(struct buffer *out, int depth)
{
    buffer_printf(out, "\n%*s", INDENT * depth, "");
}

/* Writes sound JSON indented for a person who edits it. */
static void put_indented(struct buffer *out, struct slice json)
{
    bool in_string = false;
    int depth = 0;

    for (size_t i = 0; i < json.len; i++) {
        char c = json.ptr[i];

        if (in_string) {
            buffer_put_char(out, c);
            if (c == '\\') {
                buffer_put_char(out, json.ptr[++i]);
            }
            in_string = c != '"';
            continue;
        }
        if (strchr(" \t\r\n", c)) {
            continue;
        }
        if (c == '}' || c == ']') {
            bool is_empty = out->len > 0 && (out->ptr[out->len - 1] == '{' || out->ptr[out->len - 1] == '[');

            depth--;
            if (!is_empty) {
                put_line(out, depth);
            }
        }
        buffer_put_char(out, c);
        in_string = c == '"';
        if (c == ':') {
            buffer_put_char(out, ' ');
        } else if (c == ',') {
            put_line(out, depth);
        } else if (c == '{' || c == '[') {
            struct slice rest = slice_trim((struct slice){json.ptr + i + 1, json.len - i - 1});

            depth++;
            if (rest.len > 0 && rest.ptr[0] != '}' && rest.ptr[0] != ']') {
                put_line(out, depth);
            }
        }
    }
    buffer_put_char(out, '\n');
}

static void say_what_to_decide(const struct mcp_draft *draft)
{
    say(arena_printf(draft->arena,
                     "%zu of %zu tools are in the draft. Annotations are claims of the server: sagad does not look at "
                     "them when it calls. "
                     "Decide of each tool, then apply it:",
                     draft->count, draft->offered));
    say(SLICE("  - is the effect true? Too loose a class repeats what must not be repeated"));
    say(SLICE("  - does a tool undo it? Then \"compensate\" in place of \"terminal\"; as it stands, it can only be the "
              "last step of a saga"));
    say(SLICE(
        "  - is it meant more than once in a run? Then \"scope\": \"${ .args.NAME }\" says whom or what it is about; "
        "without it the second call is refused as the first one with other arguments"));
    if (draft->suggests_once) {
        say(SLICE("  - does its isError mean that nothing happened? Then \"outcome\": {\"no_effect\": "
                  "\"${ .response.isError == true }\"}; without it a person is asked about each refusal"));
        say(SLICE("  - does the server honour a key in _meta? Then \"keyed\" with \"key\": {\"meta\": NAME, "
                  "\"window\": ...}, so that an unknown outcome is "
                  "called again"));
    }
}

enum err_code mcp_draft_print(const struct mcp_draft *draft, struct err *err)
{
    struct buffer text, document;
    struct slice fault;
    bool failed;

    buffer_init(&text, SIZE_MAX / 2); /* the list was bounded when it came */
    buffer_init(&document, SIZE_MAX / 2);
    buffer_put_text(&text, "{\"tools\":[");
    for (size_t i = 0; i < draft->count; i++) {
        buffer_put_text(&text, i > 0 ? "," : "");
        buffer_put_slice(&text, draft->tools[i]);
    }
    buffer_put_text(&text, "]}");
    put_indented(&document, buffer_slice(&text));
    buffer_fini(&text);
    fault = first_fault(buffer_slice(&document), draft->arena);
    failed = !fault.ptr && (fwrite(document.ptr, 1, document.len, stdout) != document.len || fflush(stdout) != 0);
    buffer_fini(&document);
    if (fault.ptr) {
        (void)err_set(err, ERR_INVALID, "the tools of this server do not make a sound document");
        err_detail(err, "%.*s", SLICE_ARG(fault));
        return ERR_INVALID;
    }
    if (failed) {
        return err_set(err, ERR_IO, "the draft cannot be written");
    }
    say_what_to_decide(draft);
    return ERR_OK;
}
