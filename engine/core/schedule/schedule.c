/* Decides about the instants of a schedule. See schedule.h. */
#include "core/schedule/schedule.h"

#include <stdio.h>
#include <string.h>

#include "base/instant.h"
#include "base/json.h"
#include "core/language/members.h"

#define KNOWN "name saga input cron every anchor zone overlap catch_up"
#define EVERY_MS_MIN 1000
#define ZONE_BYTES_MAX 64

static const char *const overlap_names[] = {"skip", "queue", "all"};
static const char *const catch_up_names[] = {"none", "last", "all"};

/* --- as JSON --- */

static int read_word(const struct members *members, const char *name, const char *const words[3])
{
    struct slice text;

    if (!members_text(members, name, &text)) {
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        if (slice_is(text, words[i])) {
            return i;
        }
    }
    faults_add(members->faults, members_pointer(members, name), "`%s` is \"%s\", \"%s\" or \"%s\"", name, words[0],
               words[1], words[2]);
    return 0;
}

/* Is the name of a zone harmless? Only PostgreSQL knows whether the zone exists. */
static bool zone_is_sound(struct slice zone)
{
    if (zone.len == 0 || zone.len > ZONE_BYTES_MAX) {
        return false;
    }
    for (size_t i = 0; i < zone.len; i++) {
        char c = zone.ptr[i];

        if (!((c | 0x20) >= 'a' && (c | 0x20) <= 'z') && !(c >= '0' && c <= '9') && (!c || !strchr("_/+-", c))) {
            return false;
        }
    }
    return true;
}

static bool schedule_name_is_sound(struct slice name)
{
    return name_is_sound(name, "_.-", SCHEDULE_NAME_BYTES_MAX);
}

static void read_names(const struct members *members, struct schedule *out)
{
    if (!members_text(members, "name", &out->name) || !schedule_name_is_sound(out->name)) {
        faults_add(
            members->faults, members_pointer(members, "name"),
            "a schedule has a name: a small letter, then small letters, digits, `_`, `.` and `-`, at most %d bytes",
            SCHEDULE_NAME_BYTES_MAX);
    }
    if (!members_text(members, "saga", &out->saga) || out->saga.len == 0 || out->saga.len > SCHEDULE_NAME_BYTES_MAX) {
        faults_add(members->faults, members_pointer(members, "saga"), "`saga` is the name of a saga definition");
    }
    struct slice input = members_at(members, "input");

    out->input = input.ptr ? input : SLICE("{}");
}

static void read_cron(const struct members *members, struct schedule *out)
{
    struct err err = {0};

    out->timetable.is_cron = true;
    if (cron_parse(out->cron, &out->timetable.cron, &err) != ERR_OK) {
        faults_add(members->faults, members_pointer(members, "cron"), "%s%s%s", err.message, err.detail[0] ? ": " : "",
                   err.detail);
    }
    (void)members_text(members, "zone", &out->zone); /* the default is UTC */
    if (!zone_is_sound(out->zone)) {
        faults_add(members->faults, members_pointer(members, "zone"),
                   "`zone` is the name of a time zone such as \"Europe/Berlin\"");
    }
    if (members_at(members, "anchor").ptr) {
        faults_add(members->faults, members_pointer(members, "anchor"), "only `every` has an anchor");
    }
}

static void read_every(const struct members *members, struct schedule *out)
{
    struct slice anchor;

    out->timetable.every_ms = EVERY_MS_MIN; /* a sound value in place of the wrong one */
    (void)members_duration(members, "every", EVERY_MS_MIN, DURATION_MS_MAX, &out->timetable.every_ms);
    out->every = json_string(members_at(members, "every"), members->arena);
    if (members_text(members, "anchor", &anchor) && !instant_parse(anchor, &out->timetable.anchor_ms)) {
        faults_add(members->faults, members_pointer(members, "anchor"),
                   "`anchor` is an instant such as \"2026-01-31T09:00:00Z\"");
    }
    if (members_at(members, "zone").ptr) {
        faults_add(members->faults, members_pointer(members, "zone"), "only `cron` has a time zone");
    }
}

bool schedule_read(struct slice body, struct arena *arena, struct faults *faults, struct schedule *out)
{
    struct members members;
    size_t before = faults->count + faults->dropped;

    *out = (struct schedule){.zone = SLICE("UTC")};
    if (!members_open(&members, body, SLICE(""), "a schedule", KNOWN, "", arena, faults)) {
        return false;
    }
    read_names(&members, out);
    bool has_cron = members_text(&members, "cron", &out->cron), has_every = members_at(&members, "every").ptr != NULL;

    if (members_at(&members, "cron").ptr && has_every) {
        faults_add(faults, members_pointer(&members, "every"), "a schedule has `cron` or `every`, not both");
    } else if (has_cron) {
        read_cron(&members, out);
    } else if (has_every) {
        read_every(&members, out);
    } else if (!members_at(&members, "cron").ptr) {
        faults_add(faults, SLICE(""), "a schedule has `cron`, such as \"30 2 * * *\", or `every`, such as \"15m\"");
    }
    out->overlap = (enum overlap)read_word(&members, "overlap", overlap_names);
    out->catch_up = (enum catch_up)read_word(&members, "catch_up", catch_up_names);
    return faults->count + faults->dropped == before;
}

void schedule_write(const struct schedule *schedule, struct buffer *out)
{
    char anchor[INSTANT_TEXT_BYTES];
    struct json_writer w;

    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    json_write_slice(&w, "name", schedule->name);
    json_write_slice(&w, "saga", schedule->saga);
    json_write_raw(&w, "input", schedule->input);
    if (schedule->timetable.is_cron) {
        json_write_slice(&w, "cron", schedule->cron);
        json_write_slice(&w, "zone", schedule->zone);
    } else {
        json_write_slice(&w, "every", schedule->every);
        instant_text(schedule->timetable.anchor_ms, anchor); /* 1970-01-01 is a valid anchor, too */
        json_write_text(&w, "anchor", anchor);
    }
    json_write_text(&w, "overlap", overlap_names[schedule->overlap]);
    json_write_text(&w, "catch_up", catch_up_names[schedule->catch_up]);
    json_object_end(&w);
}

/* --- the state as JSON --- */

static bool read_i64(struct slice text, const char *name, int64_t *out)
{
    struct slice value = json_member(text, name);

    return !value.ptr || json_i64(value, out);
}

bool schedule_state_read(struct slice text, int64_t last_ms, struct arena *arena, struct schedule_state *out)
{
    struct json_walk walk;
    struct slice item, saga = json_member(text, "saga"), error = json_member(text, "error");

    *out = (struct schedule_state){.last_ms = last_ms, .next_ms = INT64_MAX};
    if (json_type(text) != JSON_OBJECT || !read_i64(text, "started", &out->started) ||
        !read_i64(text, "skipped", &out->skipped) || !read_i64(text, "missed", &out->missed) ||
        !read_i64(text, "refused", &out->refused) || !read_i64(text, "saga_at", &out->saga_at_ms) ||
        !read_i64(text, "next", &out->next_ms) || !read_i64(error, "at", &out->error_at_ms) ||
        !read_i64(error, "instant", &out->error_instant_ms)) {
        return false;
    }
    if (saga.ptr && !uuid_parse(json_string(saga, arena), &out->saga.uuid)) {
        return false;
    }
    out->error = json_string(json_member(error, "message"), arena);
    out->error_detail = json_string(json_member(error, "detail"), arena);
    if (!json_member(text, "queue").ptr) {
        return true;
    }
    walk = json_walk(json_member(text, "queue"));
    while (json_next_element(&walk, &item)) {
        if (out->queue_count == SCHEDULE_QUEUE_MAX || !json_i64(item, &out->queue[out->queue_count])) {
            return false;
        }
        out->queue_count++;
    }
    return true;
}

void schedule_state_write(const struct schedule_state *state, struct buffer *out)
{
    char saga[UUID_TEXT_BYTES];
    struct json_writer w;

    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    json_array_begin(&w, "queue");
    for (size_t i = 0; i < state->queue_count; i++) {
        json_write_i64(&w, NULL, state->queue[i]);
    }
    json_array_end(&w);
    json_write_i64(&w, "started", state->started);
    json_write_i64(&w, "skipped", state->skipped);
    json_write_i64(&w, "missed", state->missed);
    json_write_i64(&w, "refused", state->refused);
    if (!uuid_is_nil(&state->saga.uuid)) {
        uuid_text(&state->saga.uuid, saga);
        json_write_text(&w, "saga", saga);
        json_write_i64(&w, "saga_at", state->saga_at_ms);
    }
    if (state->next_ms != INT64_MAX) {
        json_write_i64(&w, "next", state->next_ms);
    }
    if (state->error.ptr) {
        json_object_begin(&w, "error");
        json_write_slice(&w, "message", state->error);
        json_write_slice(&w, "detail", state->error_detail);
        json_write_i64(&w, "at", state->error_at_ms);
        json_write_i64(&w, "instant", state->error_instant_ms);
        json_object_end(&w);
    }
    json_object_end(&w);
}

/* --- deciding --- */

static void queue_put(struct schedule_state *state, int64_t instant_ms)
{
    if (state->queue_count == SCHEDULE_QUEUE_MAX) {
        state->missed++;
        schedule_drop_first(state);
    }
    state->queue[state->queue_count++] = instant_ms;
}

void schedule_drop_first(struct schedule_state *state)
{
    CHECK(state->queue_count > 0);
    state->queue_count--;
    memmove(&state->queue[0], &state->queue[1], state->queue_count * sizeof(state->queue[0]));
}

/* Returns the first instant to look at. Instants that lie further back are missed without a look. */
static int64_t look_from(const struct schedule *schedule, int64_t now_ms, struct schedule_state *state)
{
    const struct timetable *timetable = &schedule->timetable;
    int64_t back_ms = timetable->is_cron ? SCHEDULE_LOOK_BACK_MS : timetable->every_ms * SCHEDULE_QUEUE_MAX;

    if (state->last_ms >= now_ms - back_ms) {
        return state->last_ms;
    }
    if (!timetable->is_cron) {
        state->missed += (now_ms - back_ms - state->last_ms) / timetable->every_ms;
        return state->last_ms + (now_ms - back_ms - state->last_ms) / timetable->every_ms * timetable->every_ms;
    }
    return now_ms - back_ms;
}

static void decide_one(const struct schedule *schedule, int64_t instant_ms, bool late, bool last_late, bool runs,
                       struct schedule_state *state)
{
    if (late) {
        if (schedule->catch_up == CATCH_UP_ALL || (schedule->catch_up == CATCH_UP_LAST && last_late)) {
            queue_put(state, instant_ms);
        } else {
            state->missed++;
        }
    } else if (schedule->overlap == OVERLAP_SKIP && (runs || state->queue_count > 0)) {
        state->skipped++;
    } else {
        queue_put(state, instant_ms);
    }
}

static int64_t count_between(const struct schedule *schedule, const struct zone *zone, int64_t from_ms, int64_t to_ms)
{
    int64_t count = 0, at_ms = timetable_next(&schedule->timetable, zone, from_ms);

    for (; at_ms <= to_ms; at_ms = timetable_next(&schedule->timetable, zone, at_ms)) {
        count++;
    }
    return count;
}

void schedule_decide(const struct schedule *schedule, const struct zone *zone, int64_t now_ms, int64_t patience_ms,
                     bool runs, struct schedule_state *state)
{
    int64_t from_ms = look_from(schedule, now_ms, state), left_out = 0;
    int64_t instant_ms = timetable_next(&schedule->timetable, zone, from_ms);

    if (instant_ms <= now_ms) {
        left_out = count_between(schedule, zone, from_ms, now_ms) - SCHEDULE_QUEUE_MAX;
    }
    for (int64_t next_ms; instant_ms <= now_ms; instant_ms = next_ms, left_out--) {
        bool late = instant_ms < now_ms - patience_ms;

        next_ms = timetable_next(&schedule->timetable, zone, instant_ms);
        if (left_out > 0) {
            state->missed++;
        } else {
            decide_one(schedule, instant_ms, late, late && next_ms >= now_ms - patience_ms, runs, state);
        }
        state->last_ms = instant_ms;
    }
    state->next_ms = instant_ms;
}

bool schedule_may_start(const struct schedule *schedule, const struct schedule_state *state, bool runs)
{
    return state->queue_count > 0 && (schedule->overlap == OVERLAP_ALL || !runs);
}

void schedule_business_id(struct slice name, int64_t instant_ms, char out[SCHEDULE_ID_BYTES_MAX])
{
    char instant[INSTANT_TEXT_BYTES];

    instant_text(instant_ms, instant);
    (void)snprintf(out, SCHEDULE_ID_BYTES_MAX, "schedule:%.*s@%s", SLICE_ARG(name), instant);
}
