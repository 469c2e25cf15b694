/*
 * Locks on business keys: which keys, in which order; no step begins before all are held. They are taken one after the
 * other in the order of their keys, so that two sagas that want the same ones cannot wait for each other. The store
 * says who holds a key, and the saga gives its locks back by ending.
 */
#include <string.h>

#include "base/json.h"
#include "core/saga/machine.h"

bool locks_are_held(const struct saga *saga)
{
    return saga->definition->lock_count == 0 || (saga->locks_wanted && saga->lock_taken == saga->lock_count);
}

bool locks_need_evaluation(const struct saga *saga)
{
    for (uint32_t i = 0; i < saga->definition->lock_count && !saga->locks_wanted; i++) {
        if (saga->definition->locks[i].key.program_count > 0) {
            return true;
        }
    }
    return false;
}

static const char *when_taken(bool fails)
{
    return fails ? "fail" : "wait";
}

/* --- which --- */

static void locks_refuse(struct machine *m, uint32_t index, const char *why)
{
    forward_stop(m, STEP_NONE,
                 (struct why){SLICE("lock-key"), arena_printf(m->turn, "the key of lock %u %s", index, why)},
                 SLICE_NONE, SLICE_NONE);
}

/* Inserts a lock in order. A key that is named twice is one lock, and if one of the two must not wait, the lock does
 * not wait. */
static uint32_t insert_lock(struct lock *locks, uint32_t count, struct lock lock)
{
    uint32_t at = 0;

    while (at < count && slice_compare(locks[at].key, lock.key) < 0) {
        at++;
    }
    if (at < count && slice_equal(locks[at].key, lock.key)) {
        locks[at].fails = locks[at].fails || lock.fails;
        return count;
    }
    memmove(&locks[at + 1], &locks[at], (count - at) * sizeof(*locks));
    locks[at] = lock;
    return count + 1;
}

static struct slice locks_json(const struct lock *locks, uint32_t count, struct arena *turn)
{
    struct buffer out;
    struct json_writer w;
    struct slice text;

    buffer_init(&out, (size_t)1 << 20);
    json_writer_init(&w, &out);
    json_array_begin(&w, NULL);
    for (uint32_t i = 0; i < count; i++) {
        json_object_begin(&w, NULL);
        json_write_slice(&w, "key", locks[i].key);
        json_write_text(&w, "when_taken", when_taken(locks[i].fails));
        json_object_end(&w);
    }
    json_array_end(&w);
    CHECK(!out.overflow); /* the number of locks and their keys are bounded */
    text = arena_slice(turn, buffer_slice(&out));
    buffer_fini(&out);
    return text;
}

/* Wants the locks. `values` are their keys as JSON, in the order of the definition. */
static void locks_want(struct machine *m, const struct slice *values)
{
    uint32_t count = m->saga->definition->lock_count, wanted = 0;
    struct lock *locks = arena_array(m->turn, (size_t)count + 1, sizeof(*locks));
    struct record record = {.type = RECORD_LOCK_WANTED, .step = STEP_NONE};

    for (uint32_t i = 0; i < count; i++) {
        struct slice key = json_string(values[i], m->turn);

        if (!key.ptr) {
            locks_refuse(m, i, "is no text");
            return;
        }
        if (key.len == 0 || key.len > LOCK_KEY_BYTES_MAX) {
            locks_refuse(m, i, key.len ? "is longer than 512 bytes" : "is empty");
            return;
        }
        if (memchr(key.ptr, 0, key.len)) { /* a program may make such a text, and the database cannot store it */
            locks_refuse(m, i, "has a character U+0000");
            return;
        }
        wanted = insert_lock(locks, wanted, (struct lock){.key = key, .fails = m->saga->definition->locks[i].fails});
    }
    record.args = locks_json(locks, wanted, m->turn);
    machine_emit(m, &record);
}

bool lock_advance(struct machine *m)
{
    const struct definition *definition = m->saga->definition;
    struct expression_context context;
    struct slice values[LOCKS_MAX];
    struct err err = {0};

    if (definition->lock_count == 0 || m->saga->locks_wanted || locks_need_evaluation(m->saga)) {
        return false;
    }
    CHECK(definition->lock_count <= LOCKS_MAX);
    context = saga_expression_context(m->saga, STEP_NONE, m->turn);
    for (uint32_t i = 0; i < definition->lock_count; i++) {
        if (template_render(&definition->locks[i].key, &context, NULL, m->turn, &values[i], &err) != ERR_OK) {
            locks_refuse(m, i, err.message);
            return true;
        }
    }
    locks_want(m, values);
    return true;
}

void lock_evaluated(struct machine *m)
{
    const struct saga_input *input = m->input;
    struct slice values[LOCKS_MAX], value;
    struct json_walk walk;
    uint32_t count = 0;

    if (m->saga->phase != PHASE_FORWARD || !locks_need_evaluation(m->saga)) {
        return;
    }
    if (input->evaluated.failed) {
        forward_stop(m, STEP_NONE, (struct why){SLICE("lock-key"), input->evaluated.error}, SLICE_NONE, SLICE_NONE);
        return;
    }
    CHECK(json_type(input->evaluated.value) == JSON_ARRAY); /* the engine made it, with a value for each lock */
    walk = json_walk(input->evaluated.value);
    while (count < LOCKS_MAX && json_next_element(&walk, &value)) {
        values[count++] = value;
    }
    CHECK(count == m->saga->definition->lock_count);
    locks_want(m, values);
}

/* --- taking them --- */

/* Takes an answer about a lock. It may come twice, or to a saga that was asked to wait meanwhile: the key is ours all
 * the same. */
void lock_answered(struct machine *m)
{
    const struct saga *saga = m->saga;
    struct record record = {.type = RECORD_LOCK_TAKEN, .step = STEP_NONE, .lock = m->input->locked.key};

    if (saga->phase != PHASE_FORWARD || saga->lock_taken >= saga->lock_count ||
        !slice_equal(saga->locks[saga->lock_taken].key, m->input->locked.key)) {
        return;
    }
    if (!m->input->locked.refused) {
        machine_emit(m, &record);
    } else if (saga->locks[saga->lock_taken].fails && !pause_holds(saga)) {
        forward_stop(m, STEP_NONE,
                     (struct why){SLICE("locked"), arena_printf(m->turn, "another saga holds the lock %.*s",
                                                                SLICE_ARG(m->input->locked.key))},
                     SLICE_NONE, SLICE_NONE);
    }
}

/* --- checking and folding --- */

/* Reads the wanted locks into `locks` and returns their number; 0 when they make no sense. The keys are in the arena or
 * in the record. */
static uint32_t read_locks(struct slice json, struct arena *arena, struct lock locks[LOCKS_MAX])
{
    struct json_walk walk = json_walk(json);
    struct slice item;
    uint32_t count = 0;

    if (json_type(json) != JSON_ARRAY) {
        return 0;
    }
    while (json_next_element(&walk, &item)) {
        struct slice key = json_string(json_member(item, "key"), arena), when = json_member(item, "when_taken");
        bool fails = json_string_is(when, when_taken(true));

        if (count == LOCKS_MAX || key.len == 0 || key.len > LOCK_KEY_BYTES_MAX ||
            (!fails && !json_string_is(when, when_taken(false))) ||
            (count > 0 && slice_compare(locks[count - 1].key, key) >= 0)) {
            return 0;
        }
        locks[count++] = (struct lock){.key = key, .fails = fails};
    }
    return count;
}

static bool check_wanted(const struct saga *saga, const struct record *record, struct err *err)
{
    struct lock locks[LOCKS_MAX];
    struct arena scratch;
    uint32_t count;

    if (saga->definition->lock_count == 0 || saga->locks_wanted || saga->started_count > 0) {
        return check_refuse(record, err, "the saga has no locks, or wants them already, or has begun");
    }
    arena_init(&scratch, 4096);
    count = read_locks(record->args, &scratch, locks);
    arena_fini(&scratch);
    return (count > 0 && count <= saga->definition->lock_count) ||
           check_refuse(record, err, "these are no locks, each with a key, in order");
}

bool check_lock(const struct saga *saga, const struct record *record, struct err *err)
{
    if (record->type == RECORD_LOCK_WANTED) {
        return check_wanted(saga, record, err);
    }
    return (saga->lock_taken < saga->lock_count && slice_equal(saga->locks[saga->lock_taken].key, record->lock)) ||
           check_refuse(record, err, "this lock is not the next one");
}

void apply_lock(struct saga *saga, const struct record *record)
{
    struct lock *locks;

    if (record->type == RECORD_LOCK_WANTED) {
        locks = arena_array(saga_memory(saga), LOCKS_MAX, sizeof(*locks));
        saga->locks_wanted = true;
        saga->lock_count = read_locks(record->args, saga_memory(saga), locks);
        for (uint32_t i = 0; i < saga->lock_count; i++) {
            locks[i].key = apply_keep(saga, locks[i].key);
        }
    } else { /* a copy of the state shares the array */
        locks = arena_dup(saga_memory(saga), saga->locks, saga->lock_count * sizeof(*locks));
        locks[saga->lock_taken++].taken = true;
    }
    saga->locks = locks;
}
