/*
 * The input schema of an offered tool: the schema that the tool was registered with, and beside its `properties` those
 * that the model fills for sagad.
 */
#include "api/mcp/mcp.h"

static void write_added(struct json_writer *w, const struct offer *offer)
{
    static const struct {
        const char *name, *text;
    } added[] = {
        {"saga",
         "The handle that saga_open gave, for a call that stands or falls with others. Leave it out otherwise."},
        {"step", "What this call is for, in one word, such as charge. The same word for the same purpose."},
        {"scope", "What this call is about: the id of the order or the customer, as it is known to the business."},
    };
    const bool takes[] = {offer->takes_saga, offer->takes_step, offer->takes_scope};

    for (size_t i = 0; i < COUNT_OF(added); i++) {
        if (takes[i]) {
            json_object_begin(w, added[i].name);
            json_write_text(w, "type", "string");
            json_write_text(w, "description", added[i].text);
            json_object_end(w);
        }
    }
}

static void copy_members(struct json_writer *w, struct slice object, const char *without, const char *and_without,
                         struct arena *arena)
{
    struct json_walk walk = json_walk(object);
    struct slice name_raw, value;

    while (json_next_member(&walk, &name_raw, &value)) {
        struct slice quoted = {name_raw.ptr - 1, name_raw.len + 2}, name = json_string(quoted, arena);

        if (!slice_is(name, without) && !slice_is(name, and_without)) {
            json_write_raw(w, arena_text(arena, name), value);
        }
    }
}

void mcp_write_input_schema(struct json_writer *w, const char *name, const struct offer *offer, struct arena *arena)
{
    struct slice input = json_member(offer->body, "input");

    json_object_begin(w, name);
    json_write_text(w, "type", "object"); /* arguments always are one */
    if (json_type(input) == JSON_OBJECT) {
        copy_members(w, input, "type", "properties", arena);
    }
    json_object_begin(w, "properties");
    if (json_type(input) == JSON_OBJECT) {
        copy_members(w, json_member(input, "properties"), "", "", arena);
    }
    write_added(w, offer);
    json_object_end(w);
    json_object_end(w);
}

/* Clients hold every result against this schema, also one that is a refusal: its content is a problem. */
void mcp_write_output_schema(struct json_writer *w, const char *name, struct slice output)
{
    json_object_begin(w, name);
    json_write_text(w, "type", "object");
    json_array_begin(w, "anyOf");
    json_write_raw(w, NULL, output);
    json_write_raw(
        w, NULL,
        SLICE("{\"description\":\"A refusal.\",\"properties\":{\"type\":{\"type\":\"string\",\"pattern\":"
              "\"^urn:sagad:problem:\"},\"title\":{\"type\":\"string\"},\"status\":{\"type\":\"integer\"},"
              "\"detail\":{\"type\":\"string\"},\"retryable\":{\"type\":\"boolean\"}},\"required\":[\"type\","
              "\"title\",\"status\",\"detail\",\"retryable\"]}"));
    json_array_end(w);
    json_object_end(w);
}
