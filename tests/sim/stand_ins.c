/*
 * Replaces the kernel, processes, worker threads and other services: the lower layers of the engine, made from the
 * simulated world. Functions that the simulation never calls exist only for the linker, and report a call.
 */
#include "tests/sim/stand_ins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/json.h"
#include "base/log.h"
#include "io/http/client.h"
#include "io/loop/worker.h"
#include "io/postgres/db.h"
#include "io/postgres/pool.h"
#include "io/process/jq.h"
#include "store/lease/lease_identity.h"
#include "tests/sim/hook.h"
#include "tests/sim/network.h"
#include "tests/sim/tool.h"

#define LOG_LINE_BYTES_MAX 16384
#define PROGRAM_US_MAX 30000

/* Functions of engine/base. The linker redirects calls to these (-Wl,--wrap), because the same object files hold other
 * functions that we use. */
bool __wrap_random_bytes(void *out, size_t len);
struct uuid __wrap_uuid_v7(int64_t now_ms);
struct saga_id __wrap_saga_id_new(int64_t now_ms, uint32_t shard);
void __wrap_log_write(enum log_level level, const char *event, const struct log_field *fields);

static struct { /* one for each process: the last id that it made, see uuid_v7() */
    int64_t last_ms;
    uint32_t counter;
} ids[NODES_MAX + 1];

void stand_ins_begin(struct node *node)
{
    memset(&ids[node->index], 0, sizeof(ids[node->index]));
}

/* --- chance and ids --- */

bool __wrap_random_bytes(void *out, size_t len)
{
    char *at = out;

    while (len > 0) {
        uint64_t some = chance_next(&world->streams[STREAM_ENGINE]);
        size_t part = len < sizeof(some) ? len : sizeof(some);

        memcpy(at, &some, part);
        at += part;
        len -= part;
    }
    return true;
}

struct uuid __wrap_uuid_v7(int64_t now_ms)
{
    size_t process = node_current() ? node_current()->index : NODES_MAX;
    struct uuid uuid;

    CHECK(__wrap_random_bytes(uuid.bytes, sizeof(uuid.bytes)));
    if (now_ms > ids[process].last_ms) {
        ids[process].last_ms = now_ms;
        ids[process].counter = 0;
    } else if (++ids[process].counter > 0xfff) {
        ids[process].last_ms++;
        ids[process].counter = 0;
    }
    for (int i = 0; i < 6; i++) {
        uuid.bytes[i] = (uint8_t)((uint64_t)ids[process].last_ms >> (40 - 8 * i));
    }
    uuid.bytes[6] = (uint8_t)(0x70 | ids[process].counter >> 8);
    uuid.bytes[7] = (uint8_t)ids[process].counter;
    uuid.bytes[8] = (uint8_t)((uuid.bytes[8] & 0x3f) | 0x80);
    return uuid;
}

struct saga_id __wrap_saga_id_new(int64_t now_ms, uint32_t shard)
{
    struct saga_id id = {__wrap_uuid_v7(now_ms)};

    CHECK(shard <= UINT16_MAX);
    id.uuid.bytes[14] = (uint8_t)(shard >> 8);
    id.uuid.bytes[15] = (uint8_t)shard;
    return id;
}

/* --- the log --- */

void __wrap_log_write(enum log_level level, const char *event, const struct log_field *fields)
{
    struct node *node = node_current();
    struct memory_owner *before;
    struct buffer out;

    world_trace("node %u says %s", node ? node->index : NODES_MAX, event);
    if (strcmp(event, "due_was_there") == 0) { /* the engine mended this, but it is still a fault */
        world_violate("DUE", "a turn said that its saga has no row in due, and it has one");
    }
    if (!world->is_traced) {
        return;
    }
    before = memory_switch(NULL);
    buffer_init(&out, LOG_LINE_BYTES_MAX);
    log_render(&out, WORLD_START_MS + world->now_us / 1000, level, event, fields);
    (void)printf("    %.*s", SLICE_ARG(buffer_slice(&out)));
    buffer_fini(&out);
    (void)memory_switch(before);
}

/* --- who holds a lease: "sim 0 0 NODE LIFE INSTANCE" --- */

enum { FIELD_HOST, FIELD_BOOT, FIELD_NAMESPACE, FIELD_NODE, FIELD_LIFE, FIELD_INSTANCE, FIELD_COUNT };

void lease_identity_own(const char *instance, char out[LEASE_IDENTITY_BYTES])
{
    const struct node *node = node_current();

    CHECK(node);
    (void)snprintf(out, LEASE_IDENTITY_BYTES, "sim 0 0 %u %u %s", node->index, node->life, instance);
}

static size_t split(struct slice identity, struct slice fields[FIELD_COUNT])
{
    return slice_split(identity, ' ', fields, FIELD_COUNT);
}

/* Is the other process certainly dead? Each node is a machine of its own, so this is certain only for earlier lives on
 * the same node. */
bool lease_identity_is_dead(struct slice identity, const char *own)
{
    struct slice theirs[FIELD_COUNT], ours[FIELD_COUNT];
    int64_t their_life, our_life;

    return split(identity, theirs) == FIELD_COUNT && split(slice_of(own), ours) == FIELD_COUNT &&
           slice_equal(theirs[FIELD_NODE], ours[FIELD_NODE]) && slice_to_i64(theirs[FIELD_LIFE], &their_life) &&
           slice_to_i64(ours[FIELD_LIFE], &our_life) && their_life < our_life;
}

struct slice lease_identity_instance(struct slice identity)
{
    struct slice fields[FIELD_COUNT];

    return identity.ptr && split(identity, fields) == FIELD_COUNT ? fields[FIELD_INSTANCE] : SLICE_NONE;
}

/* --- adapters --- */

const struct adapter *adapter_find(struct slice name)
{
    return slice_is(name, adapter_world.name) ? &adapter_world : NULL;
}

void adapter_host_close(struct adapter_host *host)
{
    (void)host; /* it keeps nothing between calls */
}

void call_settle(struct call *call)
{
    void (*settled)(struct call * call) = call->settled;

    CHECK(settled); /* NULL when this call was settled before */
    CHECK(call->outcome.kind != OUTCOME_ABSENT);
    CHECK(!call->outcome.unsent || call->outcome.kind == OUTCOME_RETRY || call->outcome.kind == OUTCOME_FAILED);
    CHECK(call->outcome.kind == OUTCOME_COMPLETED || call->outcome.error.len > 0);
    call->settled = NULL;
    settled(call);
}

/* --- a broken condition, of the engine's or of ours, is a find like any other --- */

_Noreturn void check_failed(const char *file, int line, const char *what)
{
    if (!world || world->failed) {
        (void)fprintf(stderr, "%s:%d: broken: %s\n", file, line, what);
        abort();
    }
    world_violate("CHECK", "%s:%d: %s", file, line, what);
}

/* --- programs --- */

/*
 * Replaces jq's helper processes. Programs have one form, PATH | FILTER, and take some time. FILTER is `.`, `error`
 * (the program fails when it runs) or anything else (the program does not compile). draw.c makes them from plain paths.
 */
struct helper_run { /* a job on its way to the helper and back */
    struct message message;
    struct jq_job *job;
};

static bool is_filter(struct slice program, const char *filter)
{
    const char *bar = memrchr(program.ptr, '|', program.len);

    return bar && slice_is(slice_trim((struct slice){bar + 1, (size_t)(program.ptr + program.len - bar) - 1}), filter);
}

/* Follows a path .a.b.c; null when the member is missing. */
static struct slice value_at(struct slice program, struct slice value, struct arena *arena)
{
    size_t at = 1, from;

    while (at < program.len && program.ptr[at] != ' ' && value.ptr) {
        for (from = at; at < program.len && program.ptr[at] != '.' && program.ptr[at] != ' '; at++) {
        }
        if (at > from) {
            value = json_member(value, arena_text(arena, (struct slice){program.ptr + from, at - from}));
        }
        at += at < program.len && program.ptr[at] == '.';
    }
    return value.ptr ? arena_slice(arena, json_trim(value)) : SLICE("null");
}

static enum err_code run_one(const struct jq_job *job, size_t i, struct err *err)
{
    struct slice program = slice_trim(job->programs[i]);

    if (!is_filter(program, ".") && !is_filter(program, "error")) {
        return err_set(err, ERR_INVALID, "the program does not compile");
    }
    if (job->check_only) {
        return ERR_OK;
    }
    if (is_filter(program, "error")) {
        return err_set(err, ERR_INVALID, "the program has failed");
    }
    job->outputs[i] = value_at(program, job->input_json, job->arena);
    return ERR_OK;
}

static void helper_run_free(struct helper_run *run)
{
    struct memory_owner *before = network_enter();

    free(run);
    network_leave(before);
}

static void on_evaluated(struct message *message)
{
    struct helper_run *run = container_of(message, struct helper_run, message);
    struct jq_job *job = run->job;

    helper_run_free(run);
    job->code = ERR_OK;
    for (size_t i = 0; i < job->count && job->code == ERR_OK; i++) {
        job->failed_index = i;
        job->code = run_one(job, i, &job->err);
    }
    job->done(job);
}

static void on_lost(struct message *message)
{
    helper_run_free(container_of(message, struct helper_run, message));
}

void jq_submit(struct loop *loop, struct jq_job *job)
{
    struct memory_owner *before = network_enter();
    struct helper_run *run = memory_alloc(sizeof(*run));

    (void)loop;
    network_leave(before);
    run->job = job;
    message_send(&run->message, node_current(), world_between(STREAM_ENGINE, 100, PROGRAM_US_MAX), on_evaluated,
                 on_lost);
}

/* A job of a thread runs when it would have ended: it touches only what is its own. */
struct thread_run {
    struct message message;
    struct worker_job *job;
};

static void thread_run_free(struct thread_run *run)
{
    struct memory_owner *before = network_enter();

    free(run);
    network_leave(before);
}

static void on_worked(struct message *message)
{
    struct thread_run *run = container_of(message, struct thread_run, message);
    struct worker_job *job = run->job;

    thread_run_free(run);
    job->work(job);
    job->done(job);
}

static void on_thread_lost(struct message *message)
{
    thread_run_free(container_of(message, struct thread_run, message));
}

void worker_submit(struct loop *loop, struct worker_job *job)
{
    struct memory_owner *before = network_enter();
    struct thread_run *run = memory_alloc(sizeof(*run));

    (void)loop;
    network_leave(before);
    run->job = job;
    message_send(&run->message, node_current(), world_between(STREAM_ENGINE, 100, PROGRAM_US_MAX), on_worked,
                 on_thread_lost);
}

/* --- what nobody uses here --- */

struct http_client *http_client_new(struct loop *loop, uint32_t connections_max, uint32_t connections_per_host_max)
{
    (void)loop;
    (void)connections_max;
    (void)connections_per_host_max;
    return NULL;
}

void http_client_free(struct http_client *http)
{
    CHECK(!http);
}

bool http_url_is_good(struct slice url)
{
    return url.len > 0;
}

/* Only the receiver of notifications is reached by HTTP. */
void http_send(struct http_client *http, struct http_request *request)
{
    (void)http;
    hook_send(request);
}

void http_cancel(struct http_request *request)
{
    hook_cancel(request);
}

void http_client_set_egress(struct http_client *http, const struct egress *egress)
{
    (void)http;
    (void)egress;
}

struct db_pool *db_pool_new(struct loop *loop, const struct db_pool_options *options)
{
    (void)loop;
    (void)options;
    return NULL;
}

void db_pool_free(struct db_pool *pool)
{
    CHECK(!pool);
}

enum err_code jq_check(const struct slice *programs, size_t count, size_t *failed_index, struct err *err)
{
    (void)programs;
    (void)count;
    *failed_index = 0;
    return err_set(err, ERR_UNSUPPORTED, "there are no programs in the simulation");
}

enum err_code db_session_open(const char *dsn, const char *application_name, struct db_session **out, struct err *err)
{
    (void)dsn;
    (void)application_name;
    *out = NULL;
    return err_set(err, ERR_STORE, "there are no blocking sessions in the simulation");
}

void db_session_close(struct db_session *session)
{
    CHECK(!session);
}

int db_session_server_version(const struct db_session *session)
{
    CHECK(session);
    return 0;
}

enum err_code db_session_run(struct db_session *session, const char *sql,
                             void (*on_row)(void *context, int columns, const char *const *values), void *context,
                             struct err *err)
{
    (void)sql;
    (void)on_row;
    (void)context;
    CHECK(session);
    return err_set(err, ERR_STORE, "there are no blocking sessions in the simulation");
}
