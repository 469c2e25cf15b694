/*
 * The real half of differential.h: a private PostgreSQL, five connections and one observer. It compares the transcripts
 * with those of differential_fake for the same seeds.
 *
 * differential_real FAKE FIRST_SEED COUNT
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store/store.h"
#include "tests/lib/cluster.h"
#include "tests/lib/test_seed.h"
#include "tests/sim/differential.h"

enum { SKIPPED = 77, SQL_BYTES = 4096, VACUUM_EVERY = 200, DIFFERENCES_TOLD = 5, FAKES_MAX = 120, TRIES = 3 };

struct session {
    struct db *db;
    struct db_transaction transaction;
    bool pending, ready;
};

#define DEADLOCK "deadlock\n"

struct totals {
    size_t scripts, different, races, deadlocks, again;
};

static struct cluster cluster;
static struct loop *loop;
static struct db_session *observer;
static struct session sessions[ACTORS];
static char marker[32];
static bool marker_came;

static void die(const char *what, const struct err *err)
{
    (void)fprintf(stderr, "%s: %s: %s\n", what, err ? err->message : "", err ? err->detail : "");
    cluster_free(&cluster);
    exit(1);
}

static void sql(const char *text, void (*on_row)(void *, int, const char *const *), void *context)
{
    struct err err = {.code = ERR_OK};

    if (db_session_run(observer, text, on_row, context, &err) != ERR_OK) {
        die(text, &err);
    }
}

/* --- the loop, one turn at a time --- */

static void on_turn_over(struct timer *timer)
{
    (void)timer;
    loop_stop(loop);
}

static void turn(int64_t ms)
{
    struct timer timer = {0};

    timer_start(loop, &timer, ms, on_turn_over);
    loop_run(loop);
    timer_stop(loop, &timer);
}

/* --- connections --- */

static void on_state(struct db *db, enum db_state state, const struct err *err, void *context)
{
    struct session *session = context;

    (void)db;
    if (state != DB_READY) {
        die("a connection was lost", err);
    }
    session->ready = true;
}

static void on_notify(struct db *db, struct slice channel, struct slice payload, void *context)
{
    (void)db;
    (void)context;
    if (slice_is(channel, "marker")) {
        marker_came = marker_came || slice_is(payload, marker);
    } else {
        actor_notified(channel, payload);
    }
}

/* Sets a session up as store_setup in store/store.c does, but without the limit on sessions that wait long. */
#define SETUP                                                                                                          \
    "set default_transaction_isolation = 'read committed'", "set search_path = pg_catalog, pg_temp",                   \
        "set plan_cache_mode = force_generic_plan", "set enable_seqscan = off", "set enable_hashjoin = off",           \
        "set enable_mergejoin = off", "set enable_bitmapscan = off", "set jit = off"

static void open_sessions(void)
{
    static const char *const setup[] = {SETUP, NULL};
    static const char *const listening[] = {SETUP,
                                            "listen sagad_inbox",
                                            "listen sagad_answers",
                                            "listen sagad_definitions",
                                            "listen sagad_leases",
                                            "listen sagad_schedules",
                                            "listen sagad_holds",
                                            "listen sagad_bulk",
                                            "listen marker",
                                            NULL};

    for (size_t i = 0; i < ACTORS; i++) {
        const struct db_options options = {.dsn = cluster_dsn(&cluster),
                                           .application_name = "differential",
                                           .setup = i == 0 ? listening : setup,
                                           .on_state = on_state,
                                           .on_notify = on_notify,
                                           .context = &sessions[i]};

        sessions[i].db = db_open(loop, &options);
        while (!sessions[i].ready) {
            turn(1);
        }
    }
}

/* --- the side --- */

/* Writes the rows when the transaction is over, in the order in which they come. A server keeps them back until then
 * anyway. */
static void on_rows(struct db_query *query, const struct db_rows *rows)
{
    struct session *session = query->context;

    actor_rows((size_t)(session - sessions), (size_t)(query - session->transaction.queries), rows);
}

static void on_done(struct db_transaction *transaction)
{
    struct session *session = transaction->context;

    session->pending = false;
    if (transaction->outcome == DB_UNKNOWN || (transaction->outcome == DB_REFUSED && !transaction->sqlstate[0])) {
        die("a transaction ended", &transaction->err);
    }
    actor_over((size_t)(session - sessions), transaction->outcome, transaction->sqlstate, transaction->failed_query);
}

void side_submit(size_t actor, struct transaction *transaction)
{
    struct session *session = &sessions[actor];

    for (size_t i = 0; i < transaction->count; i++) {
        transaction->queries[i].on_rows = on_rows;
        transaction->queries[i].context = session;
    }
    memset(&session->transaction, 0, sizeof(session->transaction));
    session->transaction.queries = transaction->queries;
    session->transaction.count = transaction->count;
    session->transaction.done = on_done;
    session->transaction.context = session;
    session->pending = true;
    db_submit(session->db, &session->transaction);
}

struct waits {
    uint32_t by[ACTORS]; /* a set of bits of actors */
};

static void on_waits(void *context, int columns, const char *const *values)
{
    struct waits *waits = context;
    size_t actor = (size_t)strtoul(values[0], NULL, 10);
    char *at = (char *)(uintptr_t)values[1];

    (void)columns;
    while (at && *at) {
        long pid = strtol(at, &at, 10);

        for (size_t i = 0; i < ACTORS; i++) {
            waits->by[actor] |= (uint32_t)(db_backend_pid(sessions[i].db) == pid) << i;
        }
    }
}

static struct waits look(void)
{
    struct waits waits = {{0}};
    char text[SQL_BYTES];
    int len =
        snprintf(text, sizeof(text), "select u.i - 1, array_to_string(pg_blocking_pids(u.pid), ' ') from unnest('{");

    for (size_t i = 0; i < ACTORS; i++) {
        len +=
            snprintf(text + len, sizeof(text) - (size_t)len, "%s%d", i > 0 ? "," : "", db_backend_pid(sessions[i].db));
    }
    (void)snprintf(text + len, sizeof(text) - (size_t)len, "}'::int4[]) with ordinality as u (pid, i)");
    sql(text, on_waits, &waits);
    return waits;
}

static bool is_circle(const struct waits *waits)
{
    uint32_t reach[ACTORS];

    memcpy(reach, waits->by, sizeof(reach));
    for (size_t round = 0; round < ACTORS; round++) {
        for (size_t i = 0; i < ACTORS; i++) {
            for (size_t k = 0; k < ACTORS; k++) {
                reach[i] |= reach[i] >> k & 1 ? reach[k] : 0;
            }
        }
    }
    for (size_t i = 0; i < ACTORS; i++) {
        if (reach[i] >> i & 1) {
            return true;
        }
    }
    return false;
}

static bool is_still(const struct waits *waits)
{
    for (size_t i = 0; i < ACTORS; i++) {
        if (sessions[i].pending && !waits->by[i]) {
            return false;
        }
    }
    return !is_circle(waits);
}

static bool anybody_pending(void)
{
    for (size_t i = 0; i < ACTORS; i++) {
        if (sessions[i].pending) {
            return true;
        }
    }
    return false;
}

/* Waits until nothing moves: two looks must be equal, because a look takes time. It asks pg_blocking_pids() of all
 * actors one after the other. */
void side_settle(enum actor_state states[ACTORS])
{
    struct waits before = {{0}}, now = {{0}};
    bool still = false, was_still;

    do {
        was_still = still;
        before = now;
        turn(0);
        memset(&now, 0, sizeof(now));
        still = !anybody_pending();
        if (still) {
            break;
        }
        now = look();
        still = is_still(&now);
    } while (!still || !was_still || memcmp(&before, &now, sizeof(now)) != 0);
    for (size_t i = 0; i < ACTORS; i++) {
        states[i] = !sessions[i].pending ? ACTOR_IDLE : now.by[i] & 1 ? ACTOR_AT_GATE : ACTOR_WAITS;
    }
}

void side_begin(void)
{
    static const char *const tables[] = {
        "saga",        "log",          "operation_key", "key_bundle",   "inbox",
        "awake",       "due",          "answer",        "escalation",   "approval",
        "number_gone", "lock",         "engine",        "definition",   "tool",
        "guard",       "guard_place",  "guard_breaker", "guard_budget", "guard_reservation",
        "schedule",    "series",       "hold",          "bulk",         "bulk_item",
        "event_gone",  "case_event",   "case_remark",   "debt_settled", "event",
        "notify",      "notification", "agent_grant"};
    static unsigned scripts = 0;
    char text[SQL_BYTES];
    int len = 0;

    if (scripts++ % VACUUM_EVERY == 0) {
        sql("vacuum", NULL, NULL);
    }
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        len += snprintf(text + len, sizeof(text) - (size_t)len, "delete from sagad.%s;", tables[i]);
    }
    (void)snprintf(text + len, sizeof(text) - (size_t)len,
                   "update sagad.shard set epoch = 0, owner = null, owner_identity = null, expires_at = null, low = "
                   "null, turns = 0"
                   " where epoch <> 0 or low is not null or expires_at is not null;"
                   "update sagad.hold_version set version = 0 where version <> 0");
    sql(text, NULL, NULL);
}

static void wait_for_marker(void)
{
    static unsigned markers;
    char text[SQL_BYTES];

    (void)snprintf(marker, sizeof(marker), "%u", ++markers);
    (void)snprintf(text, sizeof(text), "notify marker, '%s'", marker);
    marker_came = false;
    sql(text, NULL, NULL);
    while (!marker_came) {
        turn(1);
    }
}

void side_end(void)
{
    enum actor_state states[ACTORS];

    side_settle(states);
    wait_for_marker();
    for (size_t i = 1; i < ACTORS; i++) {
        static const struct db_statement unlock_all = {"unlock_all_of_actor", "select pg_advisory_unlock_all()"};
        struct transaction transaction = {.queries = {{.statement = &unlock_all}}, .count = 1};

        CHECK(!sessions[i].pending);
        memset(&sessions[i].transaction, 0, sizeof(sessions[i].transaction));
        sessions[i].transaction = (struct db_transaction){
            .queries = transaction.queries, .count = 1, .done = on_done, .context = &sessions[i]};
        sessions[i].pending = true;
        db_submit(sessions[i].db, &sessions[i].transaction);
        while (sessions[i].pending) {
            turn(1);
        }
    }
}

int64_t side_clock_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- the comparison --- */

static FILE *start_fake(const char *program, uint64_t first, const char *count, pid_t *pid)
{
    char seed[24];
    int ends[2];

    (void)snprintf(seed, sizeof(seed), "%" PRIu64, first);
    if (pipe(ends) != 0 || (*pid = fork()) < 0) {
        die("starting the fake", NULL);
    }
    if (*pid == 0) {
        (void)dup2(ends[1], 1);
        (void)close(ends[0]);
        (void)close(ends[1]);
        (void)execl(program, program, seed, count, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    return fdopen(ends[0], "r");
}

static void tell_difference(uint64_t seed, const char *fake, const char *real)
{
    size_t at = 0, line = 1, begin = 0;

    for (; fake[at] && fake[at] == real[at]; at++) {
        if (fake[at] == '\n') {
            line++;
            begin = at + 1;
        }
    }
    (void)fprintf(stderr,
                  "=== seed %llu differs in line %zu\n--- up to there\n%.*s--- fake\n%.600s\n--- real\n%.600s\n",
                  (unsigned long long)seed, line, (int)begin, fake, fake + begin, real + begin);
}

static size_t read_numbers(FILE *from, unsigned long long *first)
{
    char line[64];
    size_t second = 0;

    if (!fgets(line, sizeof(line), from) || sscanf(line, "%llu %zu", first, &second) < 1) {
        die("the fake has ended", NULL);
    }
    return second;
}

static char *read_text(FILE *from)
{
    unsigned long long len;
    char *text;

    (void)read_numbers(from, &len);
    text = memory_alloc((size_t)len + 1);
    if (fread(text, 1, (size_t)len, from) != len) {
        die("the fake has ended", NULL);
    }
    return text;
}

static bool ends_with_deadlock(const char *text)
{
    size_t len = strlen(text);

    return len >= strlen(DEADLOCK) && strcmp(text + len - strlen(DEADLOCK), DEADLOCK) == 0;
}

static bool is_like(const char *fake, const char *real)
{
    return strcmp(fake, real) == 0 || (ends_with_deadlock(fake) && ends_with_deadlock(real) &&
                                       strncmp(fake, real, strlen(fake) - strlen(DEADLOCK)) == 0);
}

/*
 * Plays a script and compares its transcript with those that the fake wrote to `from`. A different transcript is played
 * again. PostgreSQL may have decided a race in a rare way that the fake did not try, and then the next transcript is
 * equal. A mistake stays different.
 */
static void compare(uint64_t seed, FILE *from, struct buffer *transcript, struct totals *totals)
{
    unsigned long long of_seed;
    size_t count = read_numbers(from, &of_seed);
    char *fakes[FAKES_MAX];
    bool is_same = false;

    if (of_seed != seed || count > FAKES_MAX) {
        die("the fake has played another script", NULL);
    }
    for (size_t i = 0; i < count; i++) {
        fakes[i] = read_text(from);
    }
    for (int try = 0; try < TRIES && !is_same; try++) {
        totals->again += try > 0;
        buffer_reset(transcript);
        script_run(seed, transcript);
        for (size_t i = 0; i < count; i++) {
            is_same = is_same || is_like(fakes[i], buffer_c(transcript));
        }
    }
    totals->scripts++;
    totals->races += count > 1;
    totals->deadlocks += ends_with_deadlock(buffer_c(transcript));
    if (!is_same && totals->different++ < DIFFERENCES_TOLD) {
        tell_difference(seed, fakes[0], buffer_c(transcript));
    }
    for (size_t i = 0; i < count; i++) {
        free(fakes[i]);
    }
}

int main(int argc, char **argv)
{
    static const char *const settings[] = {"fsync=off",
                                           "synchronous_commit=off",
                                           "full_page_writes=off",
                                           "deadlock_timeout=20",
                                           "autovacuum=off",
                                           "max_connections=20",
                                           NULL};
    uint64_t first, count;
    struct totals totals = {0};
    struct err err = {.code = ERR_OK};
    struct buffer transcript;
    pid_t fake_pid;
    FILE *fake;

    if (argc < 4) {
        (void)fprintf(stderr, "usage: differential_real FAKE FIRST_SEED COUNT\n");
        return 2;
    }
    if (!cluster_possible()) {
        return SKIPPED;
    }
    if (!test_seed_read(argv[2], &first)) {
        (void)fprintf(stderr, "differential_real: FIRST_SEED is a number or `new`, not %s\n", argv[2]);
        return 2;
    }
    count = strtoull(argv[3], NULL, 10);
    (void)printf("seeds %" PRIu64 " to %" PRIu64 "\n", first, first + count - 1);
    fake = start_fake(argv[1], first, argv[3], &fake_pid);
    cluster_start(&cluster, settings);
    if (migrate(cluster_dsn(&cluster), NULL, &err) != ERR_OK ||
        db_session_open(cluster_dsn(&cluster), "observer", &observer, &err) != ERR_OK) {
        die("starting", &err);
    }
    loop = loop_new();
    open_sessions();
    buffer_init(&transcript, 64 * 1024 * 1024);
    for (uint64_t seed = first; seed < first + count; seed++) {
        compare(seed, fake, &transcript, &totals);
    }
    (void)printf("%zu scripts, %zu different, %zu with races, %zu ended by a deadlock, %zu played again\n",
                 totals.scripts, totals.different, totals.races, totals.deadlocks, totals.again);
    (void)fclose(fake);
    (void)waitpid(fake_pid, NULL, 0);
    buffer_fini(&transcript);
    db_session_close(observer);
    for (size_t i = 0; i < ACTORS; i++) {
        db_close(sessions[i].db, NULL, NULL);
    }
    turn(50);
    loop_free(loop);
    cluster_free(&cluster);
    return totals.different > 0;
}
