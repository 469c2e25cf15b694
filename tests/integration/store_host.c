/* See store_host.h. */
#include "tests/integration/store_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "io/postgres/db.h"
#include "store/seal/payload_keys.h"
#include "tests/lib/test.h"

enum { PATIENCE_MS = 60 * 1000, SKIPPED = 77 };

/* --- the loop --- */

struct waiting {
    struct loop_hook hook;
    struct timer patience;
    struct loop *loop;
    bool (*condition)(void *context);
    void *context;
    bool late;
};

static void on_turn(struct loop_hook *hook)
{
    struct waiting *waiting = container_of(hook, struct waiting, hook);

    if (waiting->condition(waiting->context)) {
        loop_stop(waiting->loop);
    }
}

static void on_patience(struct timer *timer)
{
    struct waiting *waiting = container_of(timer, struct waiting, patience);

    waiting->late = true;
    loop_stop(waiting->loop);
}

static void wait_on(struct host *host, bool (*condition)(void *context), void *context, int64_t patience_ms,
                    bool may_be_late)
{
    struct waiting waiting = {.loop = host->loop, .condition = condition, .context = context};

    loop_hook_add(host->loop, &waiting.hook, on_turn);
    timer_start(host->loop, &waiting.patience, patience_ms, on_patience);
    while (!waiting.late && !condition(context)) {
        loop_run(host->loop);
    }
    timer_stop(host->loop, &waiting.patience);
    loop_hook_remove(host->loop, &waiting.hook);
    if (waiting.late && !may_be_late) {
        /* No jump leads out of here, because the store still holds memory in frames of this test. */
        (void)fprintf(stderr, "waited for nothing; the store's last word: %s (%s)\n", host->err.message,
                      host->err.detail);
        cluster_free(&host->cluster);
        exit(1);
    }
}

void host_run_until(struct host *host, bool (*condition)(void *context), void *context)
{
    wait_on(host, condition, context, PATIENCE_MS, false);
}

static bool never(void *context)
{
    (void)context;
    return false;
}

void host_run_ms(struct host *host, int64_t ms)
{
    wait_on(host, never, NULL, ms, true);
}

/* --- the cluster and its stores --- */

void host_start(struct host *host, const char *const *settings)
{
    struct err err = {.code = ERR_OK};

    memset(host, 0, sizeof(*host));
    if (!cluster_possible()) {
        exit(SKIPPED);
    }
    cluster_start(&host->cluster, settings);
    if (migrate(cluster_dsn(&host->cluster), NULL, &err) != ERR_OK) {
        fail_msg("migrate: %s (%s)", err.message, err.detail);
    }
    host->loop = loop_new();
}

void host_stop(struct host *host)
{
    loop_free(host->loop);
    cluster_free(&host->cluster);
}

static void on_ready(struct store *store, void *context)
{
    (void)store;
    ((struct host *)context)->ready_count++;
}

static void on_away(struct store *store, const struct err *err, void *context)
{
    struct host *host = context;

    (void)store;
    host->away_count++;
    host->err = *err;
}

static void on_refused(struct store *store, const struct err *err, void *context)
{
    struct host *host = context;

    (void)store;
    host->refused_count++;
    host->err = *err;
}

struct store *host_store_begin(struct host *host, const struct store_options *options)
{
    struct store_options mine = options ? *options : (struct store_options){0};

    mine.dsn = mine.dsn ? mine.dsn : cluster_dsn(&host->cluster);
    mine.on_ready = on_ready;
    mine.on_away = on_away;
    mine.on_refused = on_refused;
    mine.context = host;
    host->ready_count = host->away_count = host->refused_count = 0;
    return store_open(host->loop, &mine);
}

static bool is_ready(void *context)
{
    return store_is_ready(context);
}

struct store *host_store(struct host *host, const struct store_options *options)
{
    struct store *store = host_store_begin(host, options);

    host_run_until(host, is_ready, store);
    return store;
}

struct payload_keys *host_payload_keys(const char *text)
{
    char path[] = "/tmp/sagad-test-keys-XXXXXX";
    struct err err = {.code = ERR_OK};
    struct payload_keys *keys;
    int file = mkstemp(path);

    assert_true(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    assert_int_equal(close(file), 0);
    keys = payload_keys_new(path, &err);
    assert_int_equal(unlink(path), 0);
    if (!keys) {
        fail_msg("%s: %s", err.message, err.detail);
    }
    return keys;
}

static void on_closed(void *context)
{
    *(bool *)context = true;
}

static bool is_true(void *context)
{
    return *(bool *)context;
}

void host_store_close(struct host *host, struct store *store)
{
    bool closed = false;

    store_close(store, on_closed, &closed);
    host_run_until(host, is_true, &closed);
}

static bool is_whole(void *context)
{
    return store_is_whole(context);
}

struct store *host_begin(struct host *host, const char *const *settings, struct arena *arena)
{
    struct store *store;

    host_start(host, settings);
    arena_init(arena, 64 * 1024);
    store = host_store(host, NULL);
    host_run_until(host, is_whole, store);
    return store;
}

void host_end(struct host *host, struct store *store, struct arena *arena)
{
    host_store_close(host, store);
    arena_fini(arena);
    host_stop(host);
}

/* --- SQL --- */

struct answer {
    char *out;
    size_t out_bytes, len;
    long number;
};

static void on_row(void *context, int columns, const char *const *values)
{
    struct answer *answer = context;

    for (int i = 0; i < columns && answer->out; i++) {
        int len = snprintf(answer->out + answer->len, answer->out_bytes - answer->len, "%s%s",
                           values[i] ? values[i] : "null", i + 1 < columns ? "|" : "\n");

        assert_true(len >= 0 && answer->len + (size_t)len < answer->out_bytes);
        answer->len += (size_t)len;
    }
    answer->number = columns > 0 && values[0] ? strtol(values[0], NULL, 10) : 0;
}

static void run_sql(struct host *host, struct answer *answer, const char *format, va_list arguments)
{
    struct db_session *session = NULL;
    struct err err = {.code = ERR_OK};
    char sql[16000];
    enum err_code code;

    assert_true((size_t)vsnprintf(sql, sizeof(sql), format, arguments) < sizeof(sql));
    code = db_session_open(cluster_dsn(&host->cluster), "test", &session, &err);
    if (code == ERR_OK) {
        code = db_session_run(session, sql, answer ? on_row : NULL, answer, &err);
    }
    db_session_close(session);
    if (code != ERR_OK) {
        fail_msg("%s: %s (%s)", sql, err.message, err.detail);
    }
}

void host_sql(struct host *host, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    run_sql(host, NULL, format, arguments);
    va_end(arguments);
}

long host_number(struct host *host, const char *format, ...)
{
    struct answer answer = {.number = -1};
    va_list arguments;

    va_start(arguments, format);
    run_sql(host, &answer, format, arguments);
    va_end(arguments);
    return answer.number;
}

void host_until_number(struct host *host, long number, const char *sql)
{
    for (int64_t began_ms = loop_boot_ms_now(); host_number(host, "%s", sql) != number; host_run_ms(host, 20)) {
        if (loop_boot_ms_now() - began_ms > PATIENCE_MS) {
            (void)fprintf(stderr, "not %ld within a minute: %s\n", number, sql);
            cluster_free(&host->cluster);
            exit(1);
        }
    }
}

char *host_text(struct host *host, const char *format, ...)
{
    static char text[16384];
    struct answer answer = {.out = text, .out_bytes = sizeof(text)};
    va_list arguments;

    text[0] = '\0';
    va_start(arguments, format);
    run_sql(host, &answer, format, arguments);
    va_end(arguments);
    return text;
}

/* --- turns --- */

static int64_t wall_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct saga_id host_saga(uint32_t shard)
{
    return saga_id_new(wall_ms(), shard);
}

struct digest turn_business_digest(const char *business_id)
{
    const struct slice fields[] = {SLICE("default"), SLICE("order"), slice_of(business_id)};

    return digest_fields("test", fields, COUNT_OF(fields));
}

static void on_turn_done(struct append *append)
{
    struct turn *turn = container_of(append, struct turn, append);

    turn->done++;
    if (turn->done_count) {
        (*turn->done_count)++;
    }
    if (turn->after) {
        turn->after(turn);
    }
}

void turn_next(struct turn *turn, struct saga_id id, int64_t epoch, uint64_t seq, const char *type)
{
    int *done_count = turn->done_count;
    void (*after)(struct turn *) = turn->after;
    void *context = turn->context;
    int len = snprintf(turn->payload, sizeof(turn->payload), "[{\"type\": \"%s\"}]", type);

    memset(&turn->append, 0, sizeof(turn->append));
    turn->done = 0;
    turn->done_count = done_count;
    turn->after = after;
    turn->context = context;
    turn->append.saga = id;
    turn->append.namespace = SLICE("default");
    turn->append.shard = saga_id_shard(id);
    turn->append.epoch = epoch;
    turn->append.at_ms = wall_ms();
    turn->append.first_seq = seq;
    turn->append.record_count = 1;
    turn->append.payload = (struct slice){turn->payload, (size_t)len};
    turn->append.status = SAGA_RUNNING;
    turn->append.done = on_turn_done;
}

void turn_start(struct turn *turn, struct saga_id id, int64_t epoch, const char *business_id)
{
    turn_next(turn, id, epoch, 1, "saga.started");
    turn->start = (struct append_start){
        .namespace = SLICE("default"),
        .saga_name = SLICE("order"),
        .version = 1,
        .tags = SLICE("{\"shop\": \"north\"}"),
        .input_digest = digest_sha256(SLICE("input")),
    };
    if (business_id) {
        turn->start.business_id = slice_of(business_id);
        turn->start.business_digest = turn_business_digest(business_id);
    }
    turn->append.start = &turn->start;
    turn->append.started_ms = turn->append.at_ms;
}

void turn_submit(struct store *store, struct turn *turn)
{
    store_append(store, &turn->append);
    assert_int_equal(turn->done, 0); /* never inside the call */
}

bool turn_is_done(void *turn)
{
    return ((struct turn *)turn)->done > 0;
}

enum err_code host_append(struct host *host, struct store *store, struct turn *turn)
{
    turn_submit(store, turn);
    host_run_until(host, turn_is_done, turn);
    assert_int_equal(turn->done, 1);
    return turn->append.code;
}

struct saga_id host_start_at(struct host *host, struct store *store, struct saga_id id, const char *namespace)
{
    struct turn turn = {0};

    turn_start(&turn, id, 0, NULL);
    turn.start.namespace = turn.append.namespace = slice_of(namespace);
    assert_int_equal(host_append(host, store, &turn), ERR_OK);
    return id;
}

const char *id_text(struct saga_id id)
{
    static char text[4][UUID_TEXT_BYTES];
    static int next;

    next = (next + 1) % 4;
    uuid_text(&id.uuid, text[next]);
    return text[next];
}

/* --- reads --- */

static void on_read(struct store_read *read)
{
    *(bool *)read->context = true;
}

bool host_is_set(void *context)
{
    return *(bool *)context;
}

void host_ask_begin(struct store_read *read, struct arena *arena)
{
    static bool done; /* one read at a time */

    done = false;
    read->arena = arena;
    read->done = on_read;
    read->context = &done;
}

enum err_code host_ask_end(struct host *host, struct store_read *read)
{
    assert_false(*(bool *)read->context); /* never inside the call */
    host_run_until(host, host_is_set, read->context);
    return read->code;
}
