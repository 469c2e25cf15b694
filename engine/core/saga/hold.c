/* Finds the hold on a call or a start, and reads and writes holds as JSON. See hold.h. */
#include "core/saga/hold.h"

#include "base/instant.h"
#include "base/json.h"
#include "base/utf8.h"
#include "core/language/members.h"

#define KNOWN "tool saga namespace tag note until starts undo pace"
#define KNOWN_KEPT KNOWN " actor"
#define NAME_BYTES_MAX 256
#define NOTE_BYTES_MAX 4000

static const char *const kind_names[HOLD_KIND_COUNT] = {"tool", "saga", "namespace", "tag"};

/* --- what it is about --- */

static struct slice tag_of(struct slice tags, struct slice name, struct arena *arena)
{
    return tags.ptr ? json_string(json_member(tags, arena_text(arena, name)), arena) : SLICE_NONE;
}

static bool is_tagged(const struct hold *hold, struct slice tags, struct arena *arena)
{
    struct slice value = tag_of(tags, hold->name, arena);

    return value.ptr && slice_equal(value, hold->value);
}

const struct hold *hold_of_call(const struct hold_set *set, const struct saga *saga, struct slice tool,
                                enum direction direction, struct arena *arena)
{
    for (size_t i = 0; set && i < set->count; i++) {
        const struct hold *hold = &set->items[i];
        bool meets = false;

        if ((direction == DIRECTION_UNDO && !hold->undo) || !slice_equal(hold->namespace, saga->namespace)) {
            continue;
        }
        switch (hold->kind) {
        case HOLD_TOOL:
            meets = slice_equal(hold->name, tool);
            break;
        case HOLD_SAGA:
            meets = slice_equal(hold->name, saga->definition->name);
            break;
        case HOLD_NAMESPACE:
            meets = true;
            break;
        case HOLD_TAG:
            meets = is_tagged(hold, saga->tags, arena);
            break;
        case HOLD_KIND_COUNT:
            UNREACHABLE();
        }
        if (meets) {
            return hold;
        }
    }
    return NULL;
}

const struct hold *hold_of_start(const struct hold_set *set, struct slice namespace, struct slice saga,
                                 struct slice definition_tags, struct slice tags, struct arena *arena)
{
    for (size_t i = 0; set && i < set->count; i++) {
        const struct hold *hold = &set->items[i];

        if (!hold->refuses_starts || !slice_equal(hold->namespace, namespace)) {
            continue;
        }
        bool tagged = hold->kind == HOLD_TAG &&
                      is_tagged(hold, tag_of(tags, hold->name, arena).ptr ? tags : definition_tags, arena);

        if (tagged || hold->kind == HOLD_NAMESPACE || (hold->kind == HOLD_SAGA && slice_equal(hold->name, saga))) {
            return hold;
        }
    }
    return NULL;
}

/* --- as JSON --- */

static void read_tag(const struct members *members, struct slice tag, struct hold *out)
{
    struct json_walk walk = json_walk(tag);
    struct slice name_raw, value;

    if (json_type(tag) == JSON_OBJECT && json_count(tag) == 1 && json_next_member(&walk, &name_raw, &value) &&
        json_type(value) == JSON_STRING) {
        out->name = json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, members->arena);
        out->value = json_string(value, members->arena);
        return;
    }
    faults_add(members->faults, members_pointer(members, "tag"),
               "`tag` is an object with one member, such as {\"customer\": \"c-17\"}");
}

static void read_target(const struct members *members, struct hold *out)
{
    int found = 0;

    for (int kind = 0; kind < HOLD_KIND_COUNT; kind++) {
        struct slice value = members_at(members, kind_names[kind]);

        if (!value.ptr) {
            continue;
        }
        if (found++ > 0) {
            faults_add(members->faults, members_pointer(members, kind_names[kind]),
                       "a hold is about one thing: make two holds for two");
            continue;
        }
        out->kind = (enum hold_kind)kind;
        if (out->kind == HOLD_TAG) {
            read_tag(members, value, out);
        } else {
            (void)members_text(members, kind_names[kind], &out->name);
        }
    }
    if (found == 0) {
        faults_add(members->faults, SLICE(""), "say what is held: `tool`, `saga`, `namespace` or `tag`");
    } else if (out->name.len > NAME_BYTES_MAX || out->value.len > NAME_BYTES_MAX) {
        faults_add(members->faults, members_pointer(members, kind_names[out->kind]),
                   "what is held has a name of at most %d bytes", NAME_BYTES_MAX);
    }
}

static void read_rest(const struct members *members, struct hold *out)
{
    struct slice text = SLICE_NONE;

    (void)members_text(members, "note", &out->note);
    if (!text_is_plain(slice_trim(out->note), NOTE_BYTES_MAX)) {
        faults_add(members->faults, members_pointer(members, "note"),
                   "say why, for those who read it later, in at most %d bytes", NOTE_BYTES_MAX);
    }
    if (members_text(members, "until", &text) && !instant_parse(text, &out->until_ms)) {
        faults_add(members->faults, members_pointer(members, "until"),
                   "`until` is an instant such as \"2026-01-31T09:00:00Z\"");
    }
    if (members_text(members, "starts", &text)) {
        out->refuses_starts = slice_is(text, "refuse");
        if (!out->refuses_starts && !slice_is(text, "wait")) {
            faults_add(members->faults, members_pointer(members, "starts"), "`starts` is \"wait\" or \"refuse\"");
        } else if (out->refuses_starts && out->kind == HOLD_TOOL) {
            faults_add(members->faults, members_pointer(members, "starts"),
                       "a hold of a tool refuses no starts: sagas start, and wait when they come to it");
        }
    }
    (void)members_bool(members, "undo", &out->undo);
    (void)members_count(members, "pace", 1, HOLD_PACE_MAX, &out->pace);
    (void)members_text(members, "actor", &out->actor);
}

static bool read_known(struct slice body, const char *known, struct arena *arena, struct faults *faults,
                       struct hold *out)
{
    struct members members;
    size_t before = faults->count + faults->dropped;

    *out = (struct hold){.pace = HOLD_PACE_DEFAULT};
    if (!members_open(&members, body, SLICE(""), "a hold", known, "", arena, faults)) {
        return false;
    }
    read_target(&members, out);
    read_rest(&members, out);
    return faults->count + faults->dropped == before;
}

bool hold_read(struct slice body, struct arena *arena, struct faults *faults, struct hold *out)
{
    return read_known(body, KNOWN, arena, faults, out);
}

bool hold_read_kept(struct slice body, struct arena *arena, struct faults *faults, struct hold *out)
{
    return read_known(body, KNOWN_KEPT, arena, faults, out);
}

void hold_write(const struct hold *hold, struct arena *arena, struct json_writer *w)
{
    if (hold->kind == HOLD_TAG) {
        json_object_begin(w, "tag");
        json_write_slice(w, arena_text(arena, hold->name), hold->value);
        json_object_end(w);
    } else {
        json_write_slice(w, kind_names[hold->kind], hold->name);
    }
    json_write_slice(w, "note", hold->note);
    json_write_slice(w, "actor", hold->actor);
    json_write_text(w, "starts", hold->refuses_starts ? "refuse" : "wait");
    json_write_bool(w, "undo", hold->undo);
    json_write_i64(w, "pace", hold->pace);
    if (hold->until_ms) {
        json_write_instant(w, "until", hold->until_ms);
    }
}

const char *hold_kind_name(enum hold_kind kind)
{
    CHECK(kind < HOLD_KIND_COUNT);
    return kind_names[kind];
}
