/* See input_text.h. */
#include "tools/sagactl/input_text.h"

#include <stdio.h>
#include <string.h>

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);

    return len > end_len && strcmp(text + len - end_len, end) == 0;
}

/* Does the text look like JSON? The question comes up when the name of the file does not say. */
static bool is_json(struct slice text)
{
    struct slice rest = slice_trim(text);

    return rest.len == 0 || rest.ptr[0] == '{' || rest.ptr[0] == '[' || rest.ptr[0] == '"' ||
           json_check_syntax(text, NULL) == ERR_OK;
}

void input_parse(struct ctl *ctl, const char *path, struct slice text, struct input_text *out)
{
    bool is_yaml = ends_with(path, ".yaml") || ends_with(path, ".yml");

    *out = (struct input_text){.path = path, .json = text};
    if (!is_yaml && (ends_with(path, ".json") || is_json(text))) {
        return;
    }
    if (!yaml_read(text, &ctl->arena, &out->yaml, &out->fault)) {
        out->json = SLICE("");
        return;
    }
    out->json = out->yaml.json;
    if (!is_yaml && out->json.ptr[0] != '{' && out->json.ptr[0] != '[') {
        out->json = SLICE("");
        out->fault.position = out->yaml.marks[0].position;
        (void)snprintf(out->fault.detail, sizeof(out->fault.detail), "neither JSON nor a mapping or sequence of YAML");
    }
}

bool input_read(struct ctl *ctl, const char *path, struct input_text *out)
{
    struct slice text;

    if (!read_file(ctl, path, &text)) {
        return false;
    }
    input_parse(ctl, path, text, out);
    return true;
}

bool input_read_whole(struct ctl *ctl, const char *path, struct input_text *out)
{
    if (!input_read(ctl, path, out)) {
        return false;
    }
    if (out->fault.position.line > 0) {
        input_print_fault(out, SLICE(""), slice_of(out->fault.detail));
        return false;
    }
    return true;
}

/* Returns the value at `pointer`, or the value around it when the member is missing. */
static struct slice standing_at(struct slice text, struct slice pointer)
{
    for (;;) {
        struct slice value = json_at(text, pointer);

        if (value.ptr || pointer.len == 0) {
            return value;
        }
        while (pointer.len > 0 && pointer.ptr[--pointer.len] != '/') {
        }
    }
}

struct text_position input_position(const struct input_text *text, struct slice pointer)
{
    struct text_position position = {1, 1};

    if (text->fault.position.line > 0) {
        return text->fault.position;
    }
    if (json_check(text->json, &json_limits_default, NULL) != ERR_OK) {
        return (struct text_position){0, 0};
    }
    struct slice value = json_trim(standing_at(text->json, pointer));

    if (text->yaml.mark_count > 0 && value.ptr) {
        return yaml_position(&text->yaml, (size_t)(value.ptr - text->json.ptr));
    }
    for (const char *at = text->json.ptr; value.ptr && at < value.ptr; at++) {
        position.column += ((unsigned char)*at & 0xc0) != 0x80; /* counts characters, not bytes */
        if (*at == '\n') {
            position.line++;
            position.column = 1;
        }
    }
    return position;
}

/* Prints the text as one line, so that it can be searched by line. A text quoted from the document may have line
 * ends. */
static void print_line(struct slice text)
{
    bool blank = false;

    for (size_t i = 0; i < text.len; i++) {
        bool is_blank = text.ptr[i] == ' ' || text.ptr[i] == '\n' || text.ptr[i] == '\r' || text.ptr[i] == '\t';

        if (!is_blank || !blank) {
            (void)fputc(is_blank ? ' ' : text.ptr[i], stderr);
        }
        blank = is_blank;
    }
    (void)fputc('\n', stderr);
}

void input_print_fault(const struct input_text *text, struct slice pointer, struct slice detail)
{
    struct text_position position = input_position(text, pointer);

    (void)fprintf(stderr, "%s:", text->path);
    if (position.line > 0) {
        (void)fprintf(stderr, "%u:%u:", position.line, position.column);
    }
    (void)fprintf(stderr, " %.*s: ", pointer.len ? (int)pointer.len : 10, pointer.len ? pointer.ptr : "(document)");
    print_line(detail);
}
