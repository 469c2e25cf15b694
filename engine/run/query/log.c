/* The durable log of a saga for people: each record with its number and its time. */
#include "base/instant.h"
#include "base/json.h"
#include "core/saga/rest.h"
#include "run/request/work.h"

#define ENTRIES_DEFAULT 50

/* Writes an entry. The text of a record is an object that is never empty, and the two members go in front of its
 * own. */
static void write_entry(struct buffer *out, uint64_t seq, const char *at, struct slice record)
{
    buffer_printf(out, "%s{\"seq\":%llu,\"at\":\"%s\",", out->len > 1 ? "," : "", (unsigned long long)seq, at);
    buffer_put(out, record.ptr + 1, record.len - 1);
}

/* Writes which state at rest is stored after record `seq`. Who folds the log can make it, too, and compare. */
static void write_rest(struct buffer *out, uint64_t seq, struct slice rest)
{
    struct digest digest = digest_sha256(rest);
    char hex[65];

    digest_hex(&digest, hex);
    buffer_printf(out, "%s{\"seq\":%llu,\"form\":%u,\"sha256\":\"%s\"}", out->len > 1 ? "," : "",
                  (unsigned long long)seq, saga_rest_form(rest), hex);
}

static bool write_turn(struct work *work, const struct stored_turn *turn, struct buffer *rests)
{
    struct json_walk walk = json_walk(turn->payload);
    char at[INSTANT_TEXT_BYTES];
    struct slice record;
    uint64_t seq = turn->first_seq;

    instant_text(turn->at_ms, at);
    for (; work->found < work->next && json_next_element(&walk, &record); seq++) {
        record = json_trim(record);
        if (json_type(record) != JSON_OBJECT || json_count(record) == 0) {
            return false;
        }
        if (seq > work->after_seq) {
            write_entry(&work->out, seq, at, record);
            work->found++;
        }
    }
    if (turn->rest.ptr && seq - 1 > work->after_seq && !json_next_element(&walk, &record)) {
        write_rest(rests, seq - 1, turn->rest);
    }
    return true;
}

/* Masks the entries. What is sensitive is known by the whole saga, so the log was read from its beginning. */
static bool mask_entries(struct work *work)
{
    const struct saga *saga = work_fold(work);

    if (saga) {
        work_mask(work, saga, &work->out, 0);
    }
    return saga != NULL;
}

static void on_read(struct store_read *read)
{
    struct work *work = read->context;
    struct buffer rests;

    if (work_saga_read_failed(work, read)) {
        return;
    }
    buffer_init(&rests, work->out.bytes_max);
    buffer_put_char(&rests, '[');
    buffer_put_char(&work->out, '[');
    for (size_t i = 0; i < work->read.turn_count; i++) {
        const struct stored_turn *turn = &work->read.turns[i];

        if (!write_turn(work, turn, &rests)) {
            buffer_fini(&rests);
            work_fail(work, ERR_CORRUPT,
                      turn->fault ? turn->fault : "the log of this saga holds something that is no record", NULL);
            return;
        }
    }
    buffer_put_char(&work->out, ']');
    buffer_put_char(&rests, ']');
    /* A masked log folds to another state; the digest of the true one could give a short secret away. */
    if (work->request && !work->masks_log && rests.len > 2) {
        work->request->rests = arena_slice(work->request->arena, buffer_slice(&rests));
    }
    buffer_fini(&rests);
    if (!work->masks_log || mask_entries(work)) {
        work_done(work, ERR_OK, NULL);
    }
}

void engine_get_log(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    uint64_t after = request->in.log.after_seq;

    if (work_refused(work)) {
        return;
    }
    work->saga = request->in.log.id;
    work->next =
        request->in.log.limit ? request->in.log.limit : ENTRIES_DEFAULT; /* the most entries; `found` counts them */
    work->after_seq = after < INT64_MAX ? after : INT64_MAX;
    work->masks_log = work_hides(work, SLICE_NONE);
    /* Each turn that is read holds at least one wanted record, so as many turns as entries are enough. */
    work->read = (struct read_saga){.read = {.arena = &work->reading, .done = on_read, .context = work},
                                    .id = work->saga,
                                    .namespace = work->namespace,
                                    .after_seq = work->masks_log ? 0 : work->after_seq,
                                    .turns_max = work->masks_log ? 0 : work->next};
    store_read_saga(engine->store, &work->read);
}
