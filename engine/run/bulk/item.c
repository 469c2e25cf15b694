/* An item of a bulk job in its three forms: as JSON in the table, for people, and as the change that an engine is asked
 * for. */
#include "base/json.h"
#include "run/bulk/bulk.h"

#define ITEM_BYTES_MAX (64u << 20)

static void write_id(struct json_writer *w, const char *name, const struct uuid *id)
{
    char text[UUID_TEXT_BYTES];

    if (uuid_is_nil(id)) {
        json_write_null(w, name);
    } else {
        uuid_text(id, text);
        json_write_text(w, name, text);
    }
}

struct slice bulk_item_write(struct bulk_item *item, int64_t now_ms, struct arena *arena)
{
    struct buffer text;
    struct json_writer w;

    buffer_init(&text, ITEM_BYTES_MAX);
    json_writer_init(&w, &text);
    json_object_begin(&w, NULL);
    write_id(&w, "saga", &item->saga.uuid);
    json_write_slice(&w, "saga_name", item->saga_name);
    json_write_slice(&w, "business_id", item->business_id);
    json_write_slice(&w, "step", item->step);
    if (item->escalation) {
        json_write_i64(&w, "escalation", (int64_t)item->escalation);
    } else {
        json_write_null(&w, "escalation");
    }
    write_id(&w, "operation", &item->key.uuid);
    json_write_i64(&w, "attempts", item->attempts);
    json_write_text(&w, "verb", verbs[item->verb].name);
    json_object_begin(&w, "change");
    verb_write(&verbs[item->verb], &item->input, now_ms, arena, &w);
    json_object_end(&w);
    json_object_end(&w);
    struct slice body = text.overflow ? SLICE_NONE : arena_slice(arena, buffer_slice(&text));

    buffer_fini(&text);
    return body;
}

bool bulk_item_read(struct slice body, struct arena *arena, struct bulk_item *out)
{
    const struct verb *verb;
    struct slice operation = json_string(json_member(body, "operation"), arena);
    int64_t escalation = 0, attempts = 0;

    *out = (struct bulk_item){.saga_name = json_string(json_member(body, "saga_name"), arena),
                              .business_id = json_string(json_member(body, "business_id"), arena),
                              .step = json_string(json_member(body, "step"), arena)};
    (void)json_i64(json_member(body, "escalation"), &escalation); /* null leaves it 0 */
    out->escalation = (uint64_t)escalation;
    verb = verb_read(json_string(json_member(body, "verb"), arena), json_member(body, "change"), arena, &out->input);
    if (!verb || !uuid_parse(json_string(json_member(body, "saga"), arena), &out->saga.uuid) ||
        !json_i64(json_member(body, "attempts"), &attempts) || attempts < 0 || attempts > UINT32_MAX ||
        (operation.ptr && !uuid_parse(operation, &out->key.uuid))) {
        return false;
    }
    out->attempts = (uint32_t)attempts;
    out->verb = (enum verb_id)(verb - verbs);
    return true;
}

void bulk_item_show(struct slice body, struct json_writer *w)
{
    static const char *const shown[] = {"saga", "saga_name", "business_id", "step", "escalation", "operation"};

    for (size_t i = 0; i < COUNT_OF(shown); i++) {
        json_write_raw(w, shown[i], json_member(body, shown[i]));
    }
}

void bulk_item_change(const struct bulk_item *item, struct slice note, struct slice id, struct change *out)
{
    const struct verb *verb = &verbs[item->verb];

    *out = (struct change){.verb = item->verb, .saga = item->saga, .input = item->input};
    out->input.bulk = (struct bulk_act){.id = id, .key = item->key, .attempts = item->attempts};
    for (size_t i = 0; i < verb->member_count; i++) {
        struct slice *to = (struct slice *)((char *)&out->input + verb->members[i].at);

        if (verb->members[i].kind == MEMBER_NOTE) {
            *to = note;
        } else if (verb->members[i].from == FROM_KEY) {
            *to = id;
        }
    }
}

void bulk_item_set_round(struct bulk_item *item, uint64_t round)
{
    if (item->verb == VERB_RESOLVE || item->verb == VERB_RESOLVE_OPERATION) {
        item->input.verdict.round = round;
    }
}

struct slice bulk_item_id(struct saga_id job, uint64_t number, struct arena *arena)
{
    char text[UUID_TEXT_BYTES];

    uuid_text(&job.uuid, text);
    return arena_printf(arena, "%s/%llu", text, (unsigned long long)number);
}
