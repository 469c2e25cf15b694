/* Writes YAML: the values of a JSON text become events of libyaml. */
#include <string.h>

#include <yaml.h>

#include "base/arena.h"
#include "base/json.h"
#include "tools/sagactl/yaml_scalar.h"
#include "tools/sagactl/yaml_text.h"

struct writer {
    yaml_emitter_t emitter;
    struct arena arena; /* holds strings that had escapes */
    struct buffer *out;
};

static int on_bytes(void *context, unsigned char *bytes, size_t len)
{
    struct writer *w = context;

    buffer_put(w->out, bytes, len);
    return !w->out->overflow;
}

/* Emits an event. libyaml fails to make one only without memory. Emitting takes the event in any case. */
static bool emit(struct writer *w, yaml_event_t *event, int made)
{
    return made && yaml_emitter_emit(&w->emitter, event);
}

static bool emit_scalar(struct writer *w, struct slice text, yaml_scalar_style_t style)
{
    yaml_event_t event;
    int made =
        yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text.ptr, (int)text.len, 1, 1, style);

    return emit(w, &event, made);
}

static bool emit_string(struct writer *w, struct slice json)
{
    struct slice text = json_string(json, &w->arena);
    bool has_lines = text.len > 0 && memchr(text.ptr, '\n', text.len);

    text = text.ptr ? text : SLICE("");
    return emit_scalar(w, text,
                       yaml_scalar_needs_quotes(text) ? YAML_DOUBLE_QUOTED_SCALAR_STYLE
                       : has_lines                    ? YAML_LITERAL_SCALAR_STYLE
                                                      : YAML_ANY_SCALAR_STYLE);
}

static bool emit_value(struct writer *w, struct slice value);

static bool emit_object(struct writer *w, struct slice object)
{
    yaml_event_t event;
    struct json_walk walk = json_walk(object);
    struct slice name, value;
    bool is_empty = json_count(object) == 0;

    if (!emit(w, &event,
              yaml_mapping_start_event_initialize(&event, NULL, NULL, 1,
                                                  is_empty ? YAML_FLOW_MAPPING_STYLE : YAML_BLOCK_MAPPING_STYLE))) {
        return false;
    }
    while (json_next_member(&walk, &name, &value)) {
        struct slice text = json_string((struct slice){name.ptr - 1, name.len + 2}, &w->arena);

        text = text.ptr ? text : SLICE("");
        if (!emit_scalar(w, text,
                         yaml_scalar_needs_quotes(text) ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_ANY_SCALAR_STYLE) ||
            !emit_value(w, value)) {
            return false;
        }
    }
    return emit(w, &event, yaml_mapping_end_event_initialize(&event));
}

static bool emit_array(struct writer *w, struct slice array)
{
    yaml_event_t event;
    struct json_walk walk = json_walk(array);
    struct slice value;
    bool is_empty = json_count(array) == 0;

    if (!emit(w, &event,
              yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
                                                   is_empty ? YAML_FLOW_SEQUENCE_STYLE : YAML_BLOCK_SEQUENCE_STYLE))) {
        return false;
    }
    while (json_next_element(&walk, &value)) {
        if (!emit_value(w, value)) {
            return false;
        }
    }
    return emit(w, &event, yaml_sequence_end_event_initialize(&event));
}

/* Emits a value. The text passed json_check(), which bounds the depth. */
static bool emit_value(struct writer *w, struct slice value)
{
    switch (json_type(value)) {
    case JSON_OBJECT:
        return emit_object(w, value);
    case JSON_ARRAY:
        return emit_array(w, value);
    case JSON_STRING:
        return emit_string(w, value);
    case JSON_NULL:
    case JSON_BOOL:
    case JSON_NUMBER:
        return emit_scalar(w, json_trim(value), YAML_PLAIN_SCALAR_STYLE);
    case JSON_NONE:
        return emit_scalar(w, SLICE("null"), YAML_PLAIN_SCALAR_STYLE);
    }
    UNREACHABLE();
}

bool yaml_write(struct slice json, struct buffer *out)
{
    struct writer w = {.out = out};
    yaml_event_t event;

    CHECK(yaml_emitter_initialize(&w.emitter)); /* fails only without memory */
    arena_init(&w.arena, 4096);
    yaml_emitter_set_output(&w.emitter, on_bytes, &w);
    yaml_emitter_set_unicode(&w.emitter, 1);
    yaml_emitter_set_width(&w.emitter, -1); /* folded lines cannot be searched by line */
    bool good = emit(&w, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING)) &&
                emit(&w, &event, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1)) &&
                emit_value(&w, json) && emit(&w, &event, yaml_document_end_event_initialize(&event, 1)) &&
                emit(&w, &event, yaml_stream_end_event_initialize(&event)) && yaml_emitter_flush(&w.emitter);

    yaml_emitter_delete(&w.emitter);
    arena_fini(&w.arena);
    return good;
}
