/*
 * Reads a request for a bulk job: an action, the sagas that it is about, and the members of the action's verb.
 *
 * An action is what a person does to a case (retry, resolve, ...), or another verb that wants a note. The filters are
 * those of the list of cases and of the list of sagas, under the same names. A verb about a saga accepts either kind; a
 * member that only cases have makes it a filter of cases. `settle` is the verdict on what stands since the end of its
 * saga, and its filters are those of the list of debts.
 */
#include "base/instant.h"
#include "base/json.h"
#include "base/utf8.h"
#include "run/bulk/bulk.h"

#define NOTE_CHARACTERS_MAX 1000
#define TEXT_BYTES_MAX 4096
#define TAGS_MAX 16

static bool is_note(const struct verb_member *member)
{
    return member->kind == MEMBER_NOTE;
}

/* May a person use the verb on many sagas at once? Each use needs a note. */
static bool is_for_bulk(const struct verb *verb)
{
    return verb->on != ON_APPROVAL && verb->note != NOTE_NONE;
}

static const struct slice settle = {"settle", sizeof("settle") - 1};

bool bulk_find_verb(struct slice action, enum verb_id *out)
{
    enum operator_action of_case;

    if (slice_equal(action, settle)) {
        *out = VERB_RESOLVE_OPERATION;
        return true;
    }
    if (operator_action_parse(action, &of_case)) {
        *out = VERB_RESOLVE;
        return true;
    }
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (is_for_bulk(&verbs[i]) && slice_is(action, verbs[i].name)) {
            *out = (enum verb_id)i;
            return true;
        }
    }
    return false;
}

static struct slice actions(struct arena *arena)
{
    struct slice names = SLICE("");

    for (unsigned i = 0; i < OPERATOR_ACTION_COUNT; i++) {
        names = arena_printf(arena, "%.*s%s, ", SLICE_ARG(names), operator_action_name((enum operator_action)i));
    }
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (is_for_bulk(&verbs[i]) && i != VERB_RESOLVE && i != VERB_RESOLVE_OPERATION) {
            names = arena_printf(arena, "%.*s%s, ", SLICE_ARG(names), verbs[i].name);
        }
    }
    return arena_printf(arena, "%.*s%.*s", SLICE_ARG(names), SLICE_ARG(settle));
}

/* --- members of the verb --- */

/* Returns a member of an element of `items`, which has precedence over the same member of the request. */
static struct slice member_of(const struct bulk_plan *plan, struct slice item, size_t i)
{
    const struct verb_member *member = &verbs[plan->verb].members[i];
    struct slice own = is_note(member) ? SLICE_NONE : json_member(item, member->name);

    return own.ptr ? own : plan->said[i];
}

/* Reads the members of the request once, because the body is long with thousands of items, and each item asks for all
 * members. */
static void read_said(struct bulk_plan *plan)
{
    const struct verb *verb = &verbs[plan->verb];

    for (size_t i = 0; i < verb->member_count; i++) {
        plan->said[i] = json_member(plan->body, is_note(&verb->members[i]) ? "note" : verb->members[i].name);
    }
}

static bool is_own_member(struct slice name, bool of_item)
{
    static const char *const of_body[] = {"action", "note", "filter", "items", "preview", NULL};
    static const char *const of_items[] = {"operation", "business_id", "id", "saga", NULL};

    for (const char *const *known = of_item ? of_items : of_body; *known; known++) {
        if (slice_is(name, *known)) {
            return true;
        }
    }
    return false;
}

static bool is_verb_member(const struct verb *verb, struct slice name)
{
    for (size_t i = 0; i < verb->member_count; i++) {
        const struct verb_member *member = &verb->members[i];

        if (member->from == FROM_BODY && member->kind != MEMBER_ACTION && !is_note(member) &&
            slice_is(name, member->name)) {
            return true;
        }
    }
    return false;
}

static void refuse_unknown(const struct verb *verb, struct slice object, bool of_item, struct arena *arena,
                           struct faults *faults)
{
    struct json_walk walk = json_walk(object);
    struct slice name, value;

    while (json_next_member(&walk, &name, &value)) {
        if (!is_own_member(name, of_item) && !is_verb_member(verb, name)) {
            faults_add(faults, json_pointer_join(arena, SLICE(""), name), "this member is not known here");
        }
    }
}

void bulk_plan_members(const struct bulk_plan *plan, struct slice item, struct arena *arena, struct saga_input *out,
                       struct faults *faults)
{
    const struct verb *verb = &verbs[plan->verb];
    struct slice values[VERB_MEMBERS_MAX] = {{0}};
    struct buffer text;
    struct json_writer w;
    size_t faults_before = faults->count;

    refuse_unknown(verb, item, true, arena, faults);
    buffer_init(&text, SIZE_MAX / 2); /* bodies of requests are bounded */
    json_writer_init(&w, &text);
    json_object_begin(&w, NULL);
    for (size_t i = 0; i < verb->member_count; i++) {
        const struct verb_member *member = &verb->members[i];
        struct slice value = member->from == FROM_BODY ? member_of(plan, item, i) : SLICE_NONE;
        enum json_type type = verb_member_type(member);

        if (!value.ptr) {
            if (member->from == FROM_BODY && verb_requires(verb, member)) {
                faults_add(faults, SLICE(""), "the member \"%s\" is missing", member->name);
            }
        } else if (type != JSON_NONE && json_type(value) != type) {
            faults_add(faults, arena_printf(arena, "/%s", member->name), "this is %s and should be %s",
                       json_type_name(json_type(value)), json_type_name(type));
        } else {
            values[i] = value;
            json_write_raw(&w, member->name, value);
        }
    }
    json_object_end(&w);
    *out = (struct saga_input){.type = verb->input};
    if (faults->count == faults_before) {
        verb_read_body(verb, values, arena_slice(arena, buffer_slice(&text)), true, arena, out, faults);
    }
    buffer_fini(&text);
}

/* --- filters --- */

struct filter_reader {
    struct bulk_plan *plan;
    struct arena *arena;
    struct faults *faults;
    struct engine_tag tags[TAGS_MAX];
    size_t tag_count, count;
    struct slice tool, saga, step, reason, error, status, version, business_id, business_prefix;
    const char *of_cases; /* a member that only cases have */
    const char *of_sagas;
};

static void fault(struct filter_reader *r, struct slice name, const char *detail)
{
    faults_add(r->faults, json_pointer_join(r->arena, SLICE("/filter"), name), "%s", detail);
}

static bool read_text(struct filter_reader *r, struct slice name, struct slice value, struct slice *out)
{
    *out = json_string(value, r->arena);
    if (!out->ptr || (out->len > 0 && !text_is_plain(*out, TEXT_BYTES_MAX))) {
        fault(r, name, "this is a text of at most 4096 bytes, with commas between several values");
        return false;
    }
    return true;
}

/* An empty text would later count as no filter, and an unset variable of a script would select everything. */
static void read_name(struct filter_reader *r, struct slice name, struct slice value, struct slice *out)
{
    if (read_text(r, name, value, out) && out->len == 0) {
        fault(r, name, "this is empty; leave it out, or say which is meant");
    }
}

static void read_instant(struct filter_reader *r, struct slice name, struct slice value, int64_t *out)
{
    struct slice text = json_string(value, r->arena);

    /* A 0 would later count as no filter. */
    if (!text.ptr || !instant_parse(text, out) || *out <= 0) {
        fault(r, name, "this is an instant after 1970, such as \"2026-01-31T08:00:00Z\"");
    }
}

static void read_tag(struct filter_reader *r, struct slice name, struct slice value)
{
    struct slice text;

    if (r->tag_count == TAGS_MAX || name.len == 4) {
        fault(r, name, "a tag is \"tag.NAME\", and at most 16 are taken");
    } else if (read_text(r, name, value, &text)) {
        r->tags[r->tag_count++] = (struct engine_tag){{name.ptr + 4, name.len - 4}, text};
    }
}

static void read_cost(struct filter_reader *r, struct slice name, struct slice value)
{
    struct engine_questions *cases = &r->plan->cases;

    cases->has_cost = json_type(value) == JSON_NUMBER && json_i64(value, &cases->cost_above) && cases->cost_above >= 0;
    if (!cases->has_cost) {
        fault(r, name, "this is a whole number, in millionths");
    }
}

static void read_filter_member(struct filter_reader *r, struct slice raw, struct slice value)
{
    const struct {
        const char *name;
        struct slice *out;
        const char **only;
    } texts[] = {
        {"tool", &r->tool, r->plan->settles ? NULL : &r->of_cases},
        {"saga", &r->saga, NULL},
        {"step", &r->step, &r->of_cases},
        {"reason", &r->reason, &r->of_cases},
        {"error", &r->error, &r->of_cases},
        {"status", &r->status, &r->of_sagas},
        {"version", &r->version, &r->of_sagas},
        {"business_id", &r->business_id, &r->of_sagas},
        {"business_id_prefix", &r->business_prefix, &r->of_sagas},
    };

    r->count++;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        if (slice_is(raw, texts[i].name)) {
            read_name(r, raw, value, texts[i].out);
            if (texts[i].only) {
                *texts[i].only = texts[i].name;
            }
            return;
        }
    }
    if (slice_is(raw, "since")) {
        read_instant(r, raw, value, &r->plan->cases.since_ms);
    } else if (slice_is(raw, "until")) {
        read_instant(r, raw, value, &r->plan->cases.until_ms);
    } else if (slice_is(raw, "cost_above")) {
        r->of_cases = "cost_above";
        read_cost(r, raw, value);
    } else if (slice_starts_with(raw, "tag.")) {
        read_tag(r, raw, value);
    } else {
        fault(r, raw, "this is no filter of the list of cases or of sagas");
    }
}

static void take_cases(struct filter_reader *r)
{
    struct engine_questions *cases = &r->plan->cases;

    r->plan->of = BULK_OF_CASES;
    cases->open_only = true;
    cases->tool = r->tool;
    cases->saga = r->saga;
    cases->step = r->step;
    cases->reason = r->reason;
    cases->error = r->error;
    cases->tags = arena_dup(r->arena, r->tags, sizeof(r->tags));
    cases->tag_count = r->tag_count;
}

static bool are_statuses(struct slice text)
{
    struct slice parts[SAGA_STATUS_COUNT + 1];
    size_t count = slice_split(text, ',', parts, COUNT_OF(parts));
    enum saga_status status;

    for (size_t i = 0; i < count; i++) {
        if (!saga_status_parse(parts[i], &status)) {
            return false;
        }
    }
    return count <= SAGA_STATUS_COUNT;
}

static void take_sagas(struct filter_reader *r)
{
    struct engine_sagas *sagas = &r->plan->sagas;

    r->plan->of = BULK_OF_SAGAS;
    sagas->saga = r->saga;
    sagas->status = r->status;
    sagas->version = r->version;
    sagas->business_id = r->business_id;
    sagas->business_prefix = r->business_prefix;
    sagas->since_ms = r->plan->cases.since_ms;
    sagas->until_ms = r->plan->cases.until_ms;
    sagas->tags = arena_dup(r->arena, r->tags, sizeof(r->tags));
    sagas->tag_count = r->tag_count;
    if (r->status.ptr && !are_statuses(r->status)) {
        fault(r, SLICE("status"),
              "a saga is running, waiting, paused, compensating, escalated, completed, "
              "compensated or abandoned");
    }
}

/* Debts are what the abandoned sagas among these have left. */
static void take_debts(struct filter_reader *r)
{
    if (r->of_cases || r->status.ptr) {
        fault(r, slice_of(r->of_cases ? r->of_cases : "status"),
              "debts are filtered by tool, saga, business_id, since, until and tags");
        return;
    }
    take_sagas(r);
    r->plan->of = BULK_OF_DEBTS;
    r->plan->sagas.status = slice_of(saga_status_name(SAGA_ABANDONED));
    r->plan->debt_tools = r->tool;
}

static void read_filter(struct bulk_plan *plan, struct arena *arena, struct faults *faults)
{
    struct filter_reader *r = arena_alloc(arena, sizeof(*r));
    struct json_walk walk = json_walk(plan->filter);
    struct slice name, value;

    r->plan = plan;
    r->arena = arena;
    r->faults = faults;
    while (json_next_member(&walk, &name, &value)) {
        read_filter_member(r, name, value);
    }
    if (r->count == 0) {
        faults_add(faults, SLICE("/filter"), "an empty filter would be about everything: name at least one member");
    } else if (plan->settles) {
        take_debts(r);
    } else if (verbs[plan->verb].on == ON_SAGA && !r->of_cases) {
        take_sagas(r);
    } else if (r->of_sagas) {
        faults_add(faults, SLICE("/filter"), "\"%s\" is a filter of sagas, and this is about cases", r->of_sagas);
    } else {
        take_cases(r);
    }
}

/* --- the whole --- */

static void read_note(struct bulk_plan *plan, struct slice value, struct arena *arena, struct faults *faults)
{
    size_t characters = 0;

    plan->note = json_string(value, arena);
    for (size_t i = 0; i < plan->note.len; i++) {
        characters += ((unsigned char)plan->note.ptr[i] & 0xc0) != 0x80;
    }
    if (slice_trim(plan->note).len == 0) {
        faults_add(faults, SLICE("/note"), "say why, for those who read the logs later");
    } else if (characters > NOTE_CHARACTERS_MAX) {
        faults_add(faults, SLICE("/note"), "longer than %d characters", NOTE_CHARACTERS_MAX);
    }
}

void bulk_plan_read(struct slice body, struct arena *arena, struct bulk_plan *plan, struct faults *faults)
{
    struct slice action = json_string(json_member(body, "action"), arena), preview = json_member(body, "preview");
    struct saga_input input;
    bool previews = true;

    *plan =
        (struct bulk_plan){.body = body, .filter = json_member(body, "filter"), .items = json_member(body, "items")};
    read_note(plan, json_member(body, "note"), arena, faults);
    if (preview.ptr && !(json_bool(preview, &previews) && previews)) {
        faults_add(faults, SLICE("/preview"), "a job is always shown first: leave it out, and run the job afterwards");
    }
    if (!bulk_find_verb(action, &plan->verb)) {
        struct slice names = actions(arena);

        faults_add(faults, SLICE("/action"), "an action is one of %.*s", SLICE_ARG(names));
        return;
    }
    plan->settles = slice_equal(action, settle);
    if (plan->settles && (json_string_is(json_member(body, "as"), "happened") || json_member(body, "then").ptr)) {
        faults_add(faults, SLICE("/as"), "a debt is settled as \"undone\" or \"not_happened\"");
    }
    read_said(plan);
    refuse_unknown(&verbs[plan->verb], body, false, arena, faults);
    if (!plan->filter.ptr == !plan->items.ptr) {
        faults_add(faults, SLICE(""), "say whom it is about: \"filter\" or \"items\"");
    } else if (plan->items.ptr) {
        plan->of = BULK_OF_ITEMS;
        if (json_type(plan->items) != JSON_ARRAY || json_count(plan->items) == 0) {
            faults_add(faults, SLICE("/items"), "this is an array of at least one item");
        }
    } else if (json_type(plan->filter) != JSON_OBJECT) {
        faults_add(faults, SLICE("/filter"), "this is an object");
    } else {
        read_filter(plan, arena, faults);
        bulk_plan_members(plan, SLICE_NONE, arena, &input, faults);
    }
}
