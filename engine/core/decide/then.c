/*
 * The followers of a completed saga: the sagas of its `then`, which start in the commit in which it ends. They are
 * sagas of their own, so nothing of them changes how this one ended.
 */
#include <string.h>

#include "base/json.h"
#include "core/saga/machine.h"

#define BYTES_MAX ((size_t)16 << 20) /* the bound on all inputs together, which are in one record */

bool finish_needs_evaluation(const struct saga *saga)
{
    bool needs = saga->definition->output.program_count > 0;

    for (uint32_t i = 0; i < saga->definition->follower_count; i++) {
        needs = needs || saga->definition->followers[i].input.program_count > 0 ||
                saga->definition->followers[i].id.program_count > 0;
    }
    return needs;
}

/* Renders the members of a follower: its input and, as text, its id, if it has one. Returns false with a reason when
 * they cannot be made. */
static bool follower_render(struct machine *m, const struct follower_definition *follower,
                            const struct expression_context *context, struct slice *input, struct slice *id,
                            struct slice *why)
{
    struct err err = {0};

    *input = SLICE("{}");
    *id = SLICE("null");
    if ((template_is_set(&follower->input) &&
         template_render(&follower->input, context, NULL, m->turn, input, &err) != ERR_OK) ||
        (template_is_set(&follower->id) &&
         template_render(&follower->id, context, NULL, m->turn, id, &err) != ERR_OK)) {
        *why = arena_slice(m->turn, slice_of(err.message));
        return false;
    }
    return true;
}

/* Returns the id of the follower from the JSON that its template gave; SLICE_NONE when that is no id. */
static struct slice business_id(struct machine *m, uint32_t index, struct slice id)
{
    char uuid[UUID_TEXT_BYTES];

    if (json_type(id) == JSON_NULL || json_type(id) == JSON_NONE) {
        uuid_text(&m->saga->id.uuid, uuid);
        return arena_printf(m->turn, "then:%s:%u", uuid, index);
    }
    id = json_string(id, m->turn);
    return id.len > 0 && id.len <= BUSINESS_ID_BYTES_MAX && !memchr(id.ptr, 0, id.len) ? id : SLICE_NONE;
}

/* Leaves out a follower that cannot be made. The reason of the first one is kept. */
struct followers {
    struct buffer text;
    struct json_writer w;
    struct slice why;
    uint32_t count;
};

static void refuse_follower(struct machine *m, struct followers *out, uint32_t index, struct slice why)
{
    if (!out->why.ptr) {
        out->why = arena_printf(m->turn, "%.*s does not follow: %.*s",
                                SLICE_ARG(m->saga->definition->followers[index].saga), SLICE_ARG(why));
    }
}

static void put_follower(struct machine *m, struct followers *out, uint32_t index, struct slice input, struct slice id)
{
    struct slice oversize = machine_oversize(m, "its input has", input);

    if (oversize.ptr) {
        refuse_follower(m, out, index, oversize);
        return;
    }
    id = business_id(m, index, id);
    if (!id.ptr) {
        refuse_follower(m, out, index, SLICE("its id is no text of 1 to 256 bytes"));
        return;
    }
    if (out->text.len + input.len > BYTES_MAX) {
        refuse_follower(m, out, index, SLICE("the inputs of what follows are more than 16 MiB"));
        return;
    }
    json_object_begin(&out->w, NULL);
    json_write_slice(&out->w, "saga", m->saga->definition->followers[index].saga);
    json_write_raw(&out->w, "input", input);
    json_write_slice(&out->w, "business_id", id);
    json_object_end(&out->w);
    out->count++;
}

/* Puts followers that were evaluated outside, in the order of the definition; null for one that could not be. */
static void put_evaluated(struct machine *m, struct followers *out)
{
    const struct saga_input *input = m->input;
    struct json_walk walk = json_walk(input->evaluated.followers);
    struct slice item;

    for (uint32_t i = 0; i < m->saga->definition->follower_count; i++) {
        if (!input->evaluated.followers.ptr || !json_next_element(&walk, &item) || json_type(item) != JSON_OBJECT) {
            refuse_follower(m, out, i,
                            input->evaluated.error.len ? input->evaluated.error : SLICE("it was not evaluated"));
        } else {
            struct slice value = json_member(item, "input");

            put_follower(m, out, i, value.ptr ? value : SLICE("{}"), json_member(item, "business_id"));
        }
    }
}

static void put_rendered(struct machine *m, struct followers *out)
{
    struct expression_context context = saga_expression_context(m->saga, STEP_NONE, m->turn);

    for (uint32_t i = 0; i < m->saga->definition->follower_count; i++) {
        struct slice input, id, why;

        if (follower_render(m, &m->saga->definition->followers[i], &context, &input, &id, &why)) {
            put_follower(m, out, i, input, id);
        } else {
            refuse_follower(m, out, i, why);
        }
    }
}

void followers_put(struct machine *m, struct record *record)
{
    struct followers out = {.why = SLICE_NONE};

    if (m->saga->definition->follower_count == 0) {
        return;
    }
    buffer_init(&out.text, 2 * BYTES_MAX);
    json_writer_init(&out.w, &out.text);
    json_array_begin(&out.w, NULL);
    if (finish_needs_evaluation(m->saga)) {
        put_evaluated(m, &out);
    } else {
        put_rendered(m, &out);
    }
    json_array_end(&out.w);
    CHECK(!out.text.overflow); /* the inputs were bounded, and names and ids are short */
    record->followers = out.count > 0 ? arena_slice(m->turn, buffer_slice(&out.text)) : SLICE_NONE;
    buffer_fini(&out.text);
    if (out.why.ptr && !record->error.ptr) {
        record->error = SLICE("then");
        record->detail = out.why;
    }
}

bool check_followers(const struct saga *saga, const struct record *record, struct err *err)
{
    struct json_walk walk = json_walk(record->followers);
    struct slice item;
    uint32_t count = 0;

    while (json_type(record->followers) == JSON_ARRAY && json_next_element(&walk, &item)) {
        if (json_type(json_member(item, "saga")) != JSON_STRING || !json_member(item, "input").ptr ||
            json_type(json_member(item, "business_id")) != JSON_STRING) {
            return check_refuse(record, err, "what follows has no saga, input or id");
        }
        count++;
    }
    return (count > 0 && count <= saga->definition->follower_count) ||
           check_refuse(record, err, "other sagas follow than its definition says");
}
