/* The findings about PostgreSQL and about the engines on it. See diagnosis.h. */
#include "tools/sagactl/doctor/diagnosis.h"

#include <inttypes.h>

#include "tools/sagactl/output.h"

enum {
    CLOCK_WARNING_MS = 2000,  /* waits and deadlines are off by that much */
    CLOCK_TROUBLE_MS = 30000, /* key windows and tokens are, too */
    APPEND_WARNING_MS = 1000,
    APPEND_TROUBLE_MS = 10000,
    DUE_WARNING_MS = 60000,
    INBOX_WARNING_ROWS = 10000,
    STANDBY_WARNING_MS = 10000,
    CONNECTIONS_LEFT = 10 /* one more engine takes 7 */
};

const char *const finding_state_names[FINDING_STATE_COUNT] = {[FINDING_TROUBLE] = "trouble",
                                                              [FINDING_WARNING] = "warning",
                                                              [FINDING_UNKNOWN] = "unknown",
                                                              [FINDING_FINE] = "fine"};

void diagnosis_add(struct diagnosis *d, const char *check, enum finding_state state, struct slice what,
                   struct slice where, struct slice act)
{
    if (d->count < FINDINGS_MAX) {
        d->items[d->count++] =
            (struct finding){.check = check, .state = state, .what = what, .where = where, .act = act};
    }
}

size_t diagnosis_count(const struct diagnosis *d, enum finding_state state)
{
    size_t count = 0;

    for (size_t i = 0; i < d->count; i++) {
        count += d->items[i].state == state;
    }
    return count;
}

static int64_t number_of(struct slice object, const char *name)
{
    int64_t value = 0;

    return json_i64(json_member(object, name), &value) ? value : 0;
}

static bool is_alive(struct diagnosis *d, struct slice engine)
{
    return slice_is(show_member(d->ctl, engine, "state"), "alive");
}

#define SAY(...) arena_printf(&d->ctl->arena, __VA_ARGS__)

/* --- settings --- */

static void judge_settings(struct diagnosis *d, struct slice database)
{
    static const char *const names[] = {"fsync", "full_page_writes", "synchronous_commit"};
    struct slice settings = json_member(database, "settings");
    struct slice commit = show_member(d->ctl, settings, "synchronous_commit");
    size_t before = d->count;

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (slice_is(show_member(d->ctl, settings, names[i]), "off")) {
            diagnosis_add(d, "settings", FINDING_TROUBLE,
                          SAY("%s is off: a crash of the server loses commits that it confirmed", names[i]), d->where,
                          SAY("set %s = on in postgresql.conf, for the role and for the database", names[i]));
        }
    }
    if (show_member(d->ctl, settings, "synchronous_standby_names").len > 0 &&
        (slice_is(commit, "local") || slice_is(commit, "remote_write"))) {
        diagnosis_add(
            d, "settings", FINDING_TROUBLE,
            SAY("synchronous_commit is %.*s: a failover loses commits that were confirmed", SLICE_ARG(commit)),
            d->where, SLICE("set synchronous_commit = on, also for the role and the database"));
    }
    if (d->count == before) {
        diagnosis_add(d, "settings", FINDING_FINE,
                      SAY("fsync and full_page_writes are on, synchronous_commit is %.*s", SLICE_ARG(commit)), d->where,
                      SLICE(""));
    }
}

/* --- clocks --- */

/* PostgreSQL read its clock between the question and the answer, so a difference within that time says nothing. */
static int64_t surely_off_ms(int64_t there_ms, int64_t asked_ms, int64_t answered_ms)
{
    return there_ms > answered_ms ? there_ms - answered_ms : there_ms < asked_ms ? there_ms - asked_ms : 0;
}

static void judge_clock(struct diagnosis *d, struct slice database, int64_t asked_ms, int64_t answered_ms)
{
    int64_t there_ms = 0, ahead_ms = number_of(database, "engine_ahead_ms");
    size_t before = d->count;

    if (!member_instant(database, "now", &there_ms)) {
        return;
    }
    int64_t off_ms = surely_off_ms(there_ms - d->virtual_ahead_ms, asked_ms, answered_ms),
            size_ms = off_ms < 0 ? -off_ms : off_ms;

    if (size_ms > CLOCK_WARNING_MS) {
        diagnosis_add(d, "clock", size_ms > CLOCK_TROUBLE_MS ? FINDING_TROUBLE : FINDING_WARNING,
                      SAY("PostgreSQL's clock is %.*s %s this machine's", SLICE_ARG(show_duration(d->ctl, size_ms)),
                          off_ms > 0 ? "ahead of" : "behind"),
                      d->where,
                      SLICE("compare both with a time server (`chronyc tracking`) and mend the wrong one: waits, "
                            "deadlines and key windows go by PostgreSQL's clock"));
    }
    if (ahead_ms > CLOCK_WARNING_MS || ahead_ms < -CLOCK_WARNING_MS) {
        diagnosis_add(d, "clock", FINDING_WARNING,
                      SAY("PostgreSQL's clock has stepped: sagad goes by a time that is %.*s %s it",
                          SLICE_ARG(show_duration(d->ctl, ahead_ms < 0 ? -ahead_ms : ahead_ms)),
                          ahead_ms > 0 ? "ahead of" : "behind"),
                      d->where,
                      SLICE("wait: sagad draws near, a fiftieth faster or slower; let no clock of a database step"));
    }
    if (d->count == before) {
        diagnosis_add(d, "clock", FINDING_FINE,
                      d->has_virtual_clock ? SAY("a virtual clock, which `sagactl time` has moved ahead by %.*s",
                                                 SLICE_ARG(show_duration(d->ctl, d->virtual_ahead_ms)))
                                           : SLICE("PostgreSQL's clock and this machine's agree"),
                      d->where, SLICE(""));
    }
}

/* --- schema and releases --- */

static void judge_schema_of(struct diagnosis *d, struct slice engine, int64_t schema)
{
    int64_t own = number_of(engine, "schema");
    struct slice name = show_member(d->ctl, engine, "name");

    if (schema < own) {
        diagnosis_add(d, "schema", FINDING_TROUBLE,
                      SAY("the schema has version %" PRId64 ", and the engine needs %" PRId64, schema, own), name,
                      SLICE("run `sagad migrate` with the same --database"));
    } else if (schema > own + 1) {
        diagnosis_add(d, "schema", FINDING_TROUBLE,
                      SAY("the schema has version %" PRId64 ", and the engine knows %" PRId64 " and %" PRId64, schema,
                          own, own + 1),
                      name, SLICE("replace the engine by one of a release as new as the schema"));
    } else if (schema > own) {
        diagnosis_add(d, "schema", FINDING_WARNING,
                      SAY("the schema is one step ahead of the engine, which has version %.*s",
                          SLICE_ARG(show_member(d->ctl, engine, "version"))),
                      name, SLICE("replace the engine by one of the new release"));
    }
}

static void judge_schema(struct diagnosis *d, struct slice answer, struct slice database)
{
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct slice engine, version = SLICE_NONE;
    int64_t schema = number_of(database, "schema");
    size_t before = d->count;

    while (json_next_element(&walk, &engine)) {
        if (!is_alive(d, engine)) {
            continue;
        }
        struct slice own = show_member(d->ctl, engine, "version");

        judge_schema_of(d, engine, schema);
        if (version.ptr && !slice_equal(version, own)) {
            diagnosis_add(d, "schema", FINDING_WARNING,
                          SAY("engines of different releases run: %.*s and %.*s", SLICE_ARG(version), SLICE_ARG(own)),
                          show_member(d->ctl, engine, "name"),
                          SLICE("end the upgrade: replace the older engines, and register new definitions afterwards"));
        }
        version = version.ptr ? version : own;
    }
    if (d->count == before) {
        diagnosis_add(d, "schema", FINDING_FINE, SAY("version %" PRId64 ", which every engine knows", schema), d->where,
                      SLICE(""));
    }
}

/* --- history --- */

/* The upper half of an epoch is the timeline on which it was given out, of which the first counts as 0. */
static int64_t timeline_of_leases(struct slice answer)
{
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct slice engine;
    int64_t timeline = 1;

    while (json_next_element(&walk, &engine)) {
        int64_t own = (number_of(engine, "epoch_max") >> 32) + 1;

        timeline = own > timeline ? own : timeline;
    }
    return timeline;
}

static void judge_history(struct diagnosis *d, struct slice answer, struct slice database)
{
    int64_t losses = number_of(database, "losses_open"), timeline = number_of(database, "timeline");
    int64_t leases = timeline_of_leases(answer);

    if (losses > 0) {
        diagnosis_add(d, "history", FINDING_TROUBLE,
                      SLICE("the database lacks what it had confirmed, and nobody has accepted that"), d->where,
                      SLICE("ask the services about the keys in sagad.history_call, then run `sagad accept-history`"));
    } else if (timeline == 0) {
        diagnosis_add(d, "history", FINDING_TROUBLE, SLICE("the server is in recovery, and takes no writes"), d->where,
                      SLICE("promote it, or name the primary in --database"));
    } else {
        diagnosis_add(
            d, "history", FINDING_FINE,
            leases > timeline
                ? SAY("timeline %" PRId64 "; it was restored from a server on timeline %" PRId64, timeline, leases)
                : SAY("timeline %" PRId64 "; nothing is known to be lost", timeline),
            d->where, SLICE(""));
    }
}

/* --- engines, their shards and lags --- */

static void judge_lag(struct diagnosis *d, struct slice engine)
{
    struct slice lags = json_member(engine, "lags"), name = show_member(d->ctl, engine, "name");
    int64_t append_ms = number_of(lags, "append_ms"), due_ms = number_of(lags, "due_ms");
    int64_t rows = number_of(lags, "inbox_rows");

    if (append_ms > APPEND_WARNING_MS) {
        diagnosis_add(d, "lag", append_ms > APPEND_TROUBLE_MS ? FINDING_TROUBLE : FINDING_WARNING,
                      SAY("work waits for %.*s to become durable", SLICE_ARG(show_duration(d->ctl, append_ms))), name,
                      SLICE("look at the disk of PostgreSQL, and at what waits there: pg_stat_activity"));
    }
    if (due_ms > DUE_WARNING_MS) {
        diagnosis_add(d, "lag", FINDING_WARNING,
                      SAY("sagas at rest are overdue by %.*s", SLICE_ARG(show_duration(d->ctl, due_ms))), name,
                      SLICE("look at the load of the engine and of PostgreSQL; another engine takes its share"));
    }
    if (rows > INBOX_WARNING_ROWS) {
        diagnosis_add(d, "lag", FINDING_WARNING, SAY("%" PRId64 " inputs of other engines wait", rows), name,
                      SLICE("look at the load of the engine and of PostgreSQL; another engine takes its share"));
    }
}

static void judge_shards(struct diagnosis *d, struct slice answer, size_t alive)
{
    size_t unowned = json_count(json_member(answer, "unowned"));

    if (alive == 0) {
        diagnosis_add(d, "engines", FINDING_TROUBLE, SLICE("no engine lives: nothing goes on"), d->where,
                      SLICE("start sagad"));
    } else if (unowned > 0) {
        diagnosis_add(d, "engines", FINDING_TROUBLE,
                      SAY("nobody holds %zu of the shards: what is in them stands still", unowned), d->where,
                      SLICE("ask again in a minute, because shards move within a lease; if it stays, look at `sagactl "
                            "engines` and the logs of the engines"));
    } else {
        diagnosis_add(d, "engines", FINDING_FINE,
                      SAY("%zu %s, and every shard has an owner", alive, alive == 1 ? "lives" : "live"), d->where,
                      SLICE(""));
    }
}

static void judge_engines(struct diagnosis *d, struct slice answer)
{
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct slice engine;
    size_t alive = 0, late = 0;

    while (json_next_element(&walk, &engine)) {
        size_t before = d->count;

        if (slice_is(show_member(d->ctl, engine, "state"), "expired")) {
            diagnosis_add(
                d, "engines", FINDING_WARNING,
                SAY("an engine is gone, or cannot reach PostgreSQL, for %.*s",
                    SLICE_ARG(show_duration(d->ctl, -number_of(engine, "lease_left_ms")))),
                show_member(d->ctl, engine, "name"),
                SLICE("look at its log on its machine; the others took its shards, and forget it in an hour"));
        } else if (is_alive(d, engine)) {
            judge_lag(d, engine);
            late += d->count - before;
            alive++;
        }
    }
    if (late == 0) {
        diagnosis_add(d, "lag", FINDING_FINE, SLICE("no engine is behind with its work"), d->where, SLICE(""));
    }
    judge_shards(d, answer, alive);
}

/* --- connections and standbys --- */

static void judge_connections(struct diagnosis *d, struct slice database)
{
    int64_t used = number_of(database, "connections"), max = number_of(database, "connections_max");
    int64_t left = max > used ? max - used : 0;

    if (left < CONNECTIONS_LEFT) {
        diagnosis_add(d, "connections", left == 0 ? FINDING_TROUBLE : FINDING_WARNING,
                      SAY("%" PRId64 " of %" PRId64 " connections are left", left, max), d->where,
                      SLICE("raise max_connections, or lower --writers and --readers: an engine takes their sum and "
                            "one more"));
    } else {
        diagnosis_add(d, "connections", FINDING_FINE, SAY("%" PRId64 " of %" PRId64 " are taken", used, max), d->where,
                      SLICE(""));
    }
}

static void judge_standbys(struct diagnosis *d, struct slice database)
{
    int64_t lag_ms = number_of(database, "standby_lag_ms");

    if (lag_ms > STANDBY_WARNING_MS) {
        diagnosis_add(d, "standbys", FINDING_WARNING,
                      SAY("a standby is behind by %.*s", SLICE_ARG(show_duration(d->ctl, lag_ms))), d->where,
                      SLICE("look at its disk and its network, and at pg_stat_replication"));
    }
}

void diagnose_engines(struct diagnosis *d, struct slice answer, int64_t asked_ms, int64_t answered_ms)
{
    struct slice database = json_member(answer, "database");

    judge_engines(d, answer);
    if (json_type(database) != JSON_OBJECT) {
        diagnosis_add(d, "database", FINDING_UNKNOWN, SLICE("this sagad says nothing about its database"), d->where,
                      SLICE("ask one of this release"));
        return;
    }
    d->where = SAY("PostgreSQL %.*s of %.*s", SLICE_ARG(show_member(d->ctl, database, "version")), SLICE_ARG(d->where));
    judge_settings(d, database);
    judge_clock(d, database, asked_ms, answered_ms);
    judge_schema(d, answer, database);
    judge_history(d, answer, database);
    judge_connections(d, database);
    judge_standbys(d, database);
    judge_replication(d, database);
}
