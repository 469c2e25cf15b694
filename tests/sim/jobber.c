/*
 * People who do one verb on many sagas. Each freezes the set of a bulk job, most run it, and some stop it. They learn
 * the truth before they say that something happened, as the people on call do. The judge asks here when the answer to a
 * stop came.
 */
#include "tests/sim/drive.h"

#include <string.h>

#include "base/json.h"
#include "base/role.h"

#define JOBS 3
#define STREAM_OF_JOBS UINT64_C(0x6a6f6273)
#define EVER "{\"since\":\"2001-01-01T00:00:00Z\"}" /* the open cases of all times */

enum job_kind { /* which sagas a job is about, and what it does to them */
                JOB_PAUSES,
                JOB_PAUSES_BY_NAME,
                JOB_RESUMES,
                JOB_RETRIES,
                JOB_SAYS_IT_HAPPENED,
                JOB_PROBES,
                JOB_ABORTS,
                JOB_COMPENSATES,
                JOB_ABANDONS,
                JOB_KIND_COUNT
};

struct job {
    struct inquiry inquiry;
    enum job_state { JOB_FREEZES, JOB_RUNS, JOB_WATCHES, JOB_STOPS, JOB_OVER } state;
    enum job_kind kind;
    bool runs, stops, is_without_items;
    struct saga_id id;
    int64_t stopped_us; /* when the answer to the stop came; 0: nobody stopped the job */
    struct event timer;
};

static struct job jobs[JOBS];

/* --- whom it is about --- */

static void put_item(struct buffer *out, uint32_t *count, struct slice item)
{
    buffer_put_text(out, (*count)++ > 0 ? "," : "[");
    buffer_put_slice(out, item);
}

/* Puts the sagas that the acts of the scenario start, by their business ids. Some of them never exist. */
static void put_names(struct buffer *out, uint32_t *count, struct arena *arena)
{
    for (uint32_t i = 0; i < scenario_now->act_count; i++) {
        const struct act *act = &scenario_now->acts[i];

        if (act->kind == ACT_START) {
            put_item(out, count, arena_printf(arena, "{\"business_id\":\"b%u\"}", (unsigned)act->id));
        }
    }
}

/* Puts the operations that people are asked about and that did, or did not, truly happen. */
static void put_operations(struct buffer *out, uint32_t *count, bool happened, struct arena *arena)
{
    struct saga_id saga;
    struct slice step;
    struct op_key key;
    uint64_t number;
    bool of_undo, is_undone;
    char text[UUID_TEXT_BYTES];

    for (size_t i = 0; check_escalation_at(i, &number, &saga, &step, &key, &of_undo); i++) {
        if (uuid_is_nil(&key.uuid) || (tool_has_happened(key, &is_undone) || (of_undo && !happened)) != happened) {
            continue;
        }
        uuid_text(&key.uuid, text);
        if (happened && !of_undo) {
            put_item(out, count,
                     arena_printf(arena, "{\"operation\":\"%s\",\"as\":\"happened\",\"result\":{\"id\":\"%s\"}}", text,
                                  text));
        } else {
            put_item(out, count,
                     arena_printf(arena,
                                  happened ? "{\"operation\":\"%s\",\"as\":\"happened\"}" : "{\"operation\":\"%s\"}",
                                  text));
        }
    }
}

static struct slice items_of(struct job *job, struct arena *arena)
{
    struct buffer out;
    struct slice items;
    uint32_t count = 0;

    buffer_init(&out, 65536);
    if (job->kind == JOB_PAUSES_BY_NAME) {
        put_names(&out, &count, arena);
    } else {
        put_operations(&out, &count, job->kind == JOB_SAYS_IT_HAPPENED, arena);
    }
    buffer_put_text(&out, count > 0 ? "]" : "[]");
    job->is_without_items = count == 0;
    items = arena_slice(arena, buffer_slice(&out));
    buffer_fini(&out);
    return items;
}

static struct slice body_of(struct job *job, struct arena *arena)
{
    static const struct {
        const char *action, *filter; /* filter NULL: items */
    } kinds[JOB_KIND_COUNT] = {
        [JOB_PAUSES] = {"pause", "{\"status\":\"running,waiting,escalated,compensating\"}"},
        [JOB_PAUSES_BY_NAME] = {"pause", NULL},
        [JOB_RESUMES] = {"resume", "{\"status\":\"paused\"}"},
        [JOB_RETRIES] = {"retry", NULL},
        [JOB_SAYS_IT_HAPPENED] = {"resolve", NULL},
        [JOB_PROBES] = {"probe", EVER},
        [JOB_ABORTS] = {"abort", "{\"saga\":\"s0\"}"},
        [JOB_COMPENSATES] = {"compensate", EVER},
        [JOB_ABANDONS] = {"abandon", EVER},
    };
    const char *filter = kinds[job->kind].filter;
    struct slice about = filter ? slice_of(filter) : items_of(job, arena);

    return arena_printf(arena, "{\"action\":\"%s\",\"note\":\"by the list\",\"%s\":%.*s}", kinds[job->kind].action,
                        filter ? "filter" : "items", SLICE_ARG(about));
}

/* --- what is asked, and what is answered --- */

static void job_send(struct inquiry *inquiry, struct engine *engine, struct engine_request *request)
{
    struct job *job = container_of(inquiry, struct job, inquiry);

    request->actor = SLICE("jo");
    request->in.bulk.role = ROLE_ADMIN;
    request->in.bulk.id = job->id;
    switch (job->state) {
    case JOB_FREEZES:
        request->in.bulk.body = body_of(job, request->arena);
        engine_freeze_bulk(engine, request);
        return;
    case JOB_RUNS:
        engine_run_bulk(engine, request);
        return;
    case JOB_WATCHES:
        engine_get_bulk(engine, request);
        return;
    case JOB_STOPS:
        request->in.bulk.note = SLICE("seen enough");
        engine_stop_bulk(engine, request);
        return;
    case JOB_OVER:
        break;
    }
    UNREACHABLE();
}

static void job_asks(struct job *job, enum job_state what, int64_t delay_us)
{
    job->state = what;
    job->inquiry.node = world_below(STREAM_PERSON, NODES_MAX);
    inquiry_go(&job->inquiry, delay_us);
}

static void on_frozen(struct job *job, const struct engine_request *request)
{
    int64_t count = 0;

    CHECK(uuid_parse(json_string(json_member(request->answer, "bulk"), &world->arena), &job->id.uuid));
    CHECK(json_i64(json_member(request->answer, "count"), &count));
    world_trace("jo has frozen %lld items to %d", (long long)count, (int)job->kind);
    if (job->runs) {
        job_asks(job, JOB_RUNS, world_between(STREAM_PERSON, 1000, 500000));
    } else {
        job->state = JOB_OVER;
    }
}

static void on_watched(struct job *job, const struct engine_request *request)
{
    struct slice state = json_member(request->answer, "state");

    if (json_string_is(state, "running")) {
        job_asks(job, JOB_WATCHES, world_between(STREAM_PERSON, 200000, 1000000));
    } else {
        see(SEEN_BULK_DONE);
        job->state = JOB_OVER;
    }
}

static void job_answered_well(struct job *job, const struct engine_request *request)
{
    switch (job->state) {
    case JOB_FREEZES:
        on_frozen(job, request);
        return;
    case JOB_RUNS:
        job_asks(job, job->stops ? JOB_STOPS : JOB_WATCHES, world_between(STREAM_PERSON, 1000, 1000000));
        return;
    case JOB_WATCHES:
        on_watched(job, request);
        return;
    case JOB_STOPS:
        job->stopped_us = world->now_us;
        see(SEEN_BULK_STOPPED);
        job->state = JOB_OVER;
        return;
    case JOB_OVER:
        break;
    }
    UNREACHABLE();
}

static void job_answered(struct inquiry *inquiry, const struct engine_request *request)
{
    struct job *job = container_of(inquiry, struct job, inquiry);

    world_trace("jo, job of kind %d, state %d: %s %s", (int)job->kind, (int)job->state,
                request ? err_name(request->code) : "no answer",
                request && request->code != ERR_OK ? request->err.message : "");
    if (request && request->code == ERR_OK) {
        job_answered_well(job, request);
    } else if (!request || err_may_pass(request->code)) {
        job_asks(job, job->state, world_between(STREAM_PERSON, 100000, 1000000));
    } else if (request->code == ERR_INVALID && !job->is_without_items) {
        world_violate("SIM", "a bulk job is refused: %s %s", request->err.message, request->err.detail);
    } else { /* no items, or the job went with the database that had it */
        job->state = JOB_OVER;
    }
}

/* --- in time --- */

static void on_time(struct event *event)
{
    job_asks(container_of(event, struct job, timer), JOB_FREEZES, 0);
}

static enum job_kind draw_kind(struct chance *chance)
{
    static const enum job_kind often[] = {JOB_PAUSES, JOB_PAUSES, JOB_RESUMES, JOB_PAUSES_BY_NAME, JOB_RETRIES};

    return chance_percent(chance, 70) ? often[chance_below(chance, COUNT_OF(often))]
                                      : (enum job_kind)chance_below(chance, JOB_KIND_COUNT);
}

void jobbers_begin(void)
{
    struct chance chance = chance_of(scenario_now->seed, STREAM_OF_JOBS, 1);
    uint32_t chaos_ms = (uint32_t)(scenario_now->chaos_us / 1000);

    for (uint32_t i = 0; i < JOBS; i++) {
        struct job *job = &jobs[i];

        *job = (struct job){.inquiry = {.patience_us = 15000000, .send = job_send, .answered = job_answered, .node = i},
                            .state = JOB_OVER};
        if (scenario_now->swarm >> SWARM_BULK & 1) {
            job->kind = draw_kind(&chance);
            job->runs = chance_percent(&chance, 90);
            job->stops = chance_percent(&chance, 20);
            job->state = JOB_FREEZES;
            world_at(&job->timer, 1000 * (int64_t)chance_below(&chance, chaos_ms + 1), on_time);
        }
    }
}

bool jobbers_are_done(void)
{
    bool done = true;

    for (uint32_t i = 0; i < JOBS; i++) {
        done = done && jobs[i].state == JOB_OVER;
    }
    return done;
}

int64_t jobber_stopped_us(struct saga_id job)
{
    for (uint32_t i = 0; i < JOBS; i++) {
        if (uuid_equal(&jobs[i].id.uuid, &job.uuid)) {
            return jobs[i].stopped_us;
        }
    }
    return 0;
}
