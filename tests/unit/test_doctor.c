/* sagactl doctor finds each fault, says where it is and what to do, and finds nothing where nothing is. */
#include <string.h>

#include "tests/lib/test.h"
#include "tools/sagactl/doctor/diagnosis.h"

#define NOW INT64_C(1767225605000) /* 2026-01-01T00:00:05Z */

static struct ctl ctl;

static struct diagnosis *new_diagnosis(void)
{
    struct diagnosis *d = arena_alloc(&ctl.arena, sizeof(*d));

    d->ctl = &ctl;
    d->where = SLICE("http://there");
    return d;
}

/* Returns the first finding that is not fine, or one that is. */
static const struct finding *worst(const struct diagnosis *d)
{
    for (int state = 0; state < FINDING_STATE_COUNT; state++) {
        for (size_t i = 0; i < d->count; i++) {
            if ((int)d->items[i].state == state) {
                return &d->items[i];
            }
        }
    }
    return NULL;
}

static void finds(const struct diagnosis *d, const char *name, enum finding_state state, const char *check,
                  const char *what)
{
    const struct finding *found = worst(d);

    assert_non_null(found);
    if (found->state != state || strcmp(found->check, check) != 0 ||
        !strstr(arena_text(&ctl.arena, found->what), what)) {
        fail_msg("%s: %s, %s: %.*s", name, finding_state_names[found->state], found->check, SLICE_ARG(found->what));
    }
    if (state != FINDING_FINE && (found->where.len == 0 || found->act.len == 0)) {
        fail_msg("%s: it does not say where, or what to do", name);
    }
}

/* What a healthy service answers. Each case below changes one text of it. */
static const char healthy[] =
    "{\"items\":[{\"name\":\"a\",\"version\":\"0.2.0\",\"schema\":31,\"state\":\"alive\",\"epoch_max\":3,"
    "\"lease_left_ms\":9000,\"lags\":{\"append_ms\":1,\"due_ms\":0,\"inbox_rows\":2}}],\"unowned\":[],"
    "\"database\":{\"version\":\"15.14\",\"now\":\"2026-01-01T00:00:05.000Z\",\"engine_ahead_ms\":1,\"schema\":31,"
    "\"timeline\":1,\"losses_open\":0,\"connections\":9,\"connections_max\":97,\"standbys\":0,\"standby_lag_ms\":null,"
    "\"settings\":{\"fsync\":\"on\",\"full_page_writes\":\"on\",\"synchronous_commit\":\"on\","
    "\"synchronous_standby_names\":\"\"}}}";

static struct slice changed(const char *from, const char *to)
{
    const char *at = strstr(healthy, from);

    assert_non_null(at);
    return arena_printf(&ctl.arena, "%.*s%s%s", (int)(at - healthy), healthy, to, at + strlen(from));
}

static const struct {
    const char *name, *from, *to;
    enum finding_state state;
    const char *check, *what;
} cases[] = {
    {"fsync", "\"fsync\":\"on\"", "\"fsync\":\"off\"", FINDING_TROUBLE, "settings", "fsync is off"},
    {"pages", "writes\":\"on\"", "writes\":\"off\"", FINDING_TROUBLE, "settings", "full_page_writes is off"},
    {"commits", "commit\":\"on\"", "commit\":\"off\"", FINDING_TROUBLE, "settings", "synchronous_commit is off"},
    {"commits of a standby",
     "standbys\":0,\"standby_lag_ms\":null,\"settings\":{\"fsync\":\"on\",\"full_page_writes\":\"on\","
     "\"synchronous_commit\":\"on\",\"synchronous_standby_names\":\"\"",
     "standbys\":1,\"standby_lag_ms\":null,\"settings\":{\"fsync\":\"on\",\"full_page_writes\":\"on\","
     "\"synchronous_commit\":\"local\",\"synchronous_standby_names\":\"*\"",
     FINDING_TROUBLE, "settings", "is local: a failover"},
    {"local commits without a standby", "commit\":\"on\"", "commit\":\"local\"", FINDING_FINE, "lag", ""},
    {"a clock ahead", "00:00:05.000Z", "00:01:05.000Z", FINDING_TROUBLE, "clock", "59.9 s ahead of this machine's"},
    {"a clock behind", "00:00:05.000Z", "00:00:00.000Z", FINDING_WARNING, "clock", "4.9 s behind this machine's"},
    {"a clock within the way", "00:00:05.000Z", "00:00:05.090Z", FINDING_FINE, "lag", ""},
    {"a clock that stepped", "ahead_ms\":1", "ahead_ms\":-3000", FINDING_WARNING, "clock", "3.0 s behind it"},
    {"an older schema", "\"schema\":31,\"timeline", "\"schema\":30,\"timeline", FINDING_TROUBLE, "schema", "needs 31"},
    {"a schema ahead", "\"schema\":31,\"timeline", "\"schema\":32,\"timeline", FINDING_WARNING, "schema",
     "one step ahead"},
    {"a schema too new", "\"schema\":31,\"timeline", "\"schema\":33,\"timeline", FINDING_TROUBLE, "schema",
     "knows 31 and 32"},
    {"two releases", "{\"items\":[",
     "{\"items\":[{\"name\":\"b\",\"version\":\"0.1.0\",\"schema\":31,\"state\":\"alive\"},", FINDING_WARNING, "schema",
     "0.1.0 and 0.2.0"},
    {"a server that was restored from another", "epoch_max\":3", "epoch_max\":8589934595", FINDING_FINE, "lag", ""},
    {"a loss", "losses_open\":0", "losses_open\":1", FINDING_TROUBLE, "history", "nobody has accepted"},
    {"recovery", "timeline\":1", "timeline\":0", FINDING_TROUBLE, "history", "in recovery"},
    {"an engine that is gone", "{\"items\":[",
     "{\"items\":[{\"name\":\"b\",\"state\":\"expired\",\"lease_left_ms\":-90000},", FINDING_WARNING, "engines",
     "for 1m 30s"},
    {"no engine", "\"alive\"", "\"leaving\"", FINDING_TROUBLE, "engines", "no engine lives"},
    {"shards", "unowned\":[]", "unowned\":[3,4]", FINDING_TROUBLE, "engines", "nobody holds 2"},
    {"slow commits", "append_ms\":1", "append_ms\":1500", FINDING_WARNING, "lag", "1.5 s to become durable"},
    {"halted commits", "append_ms\":1", "append_ms\":15000", FINDING_TROUBLE, "lag", "15.0 s to become durable"},
    {"overdue", "due_ms\":0", "due_ms\":70000", FINDING_WARNING, "lag", "overdue by 1m 10s"},
    {"inputs", "rows\":2", "rows\":20000", FINDING_WARNING, "lag", "20000 inputs"},
    {"few connections", "connections\":9", "connections\":90", FINDING_WARNING, "connections", "7 of 97"},
    {"no connections", "connections\":9", "connections\":99", FINDING_TROUBLE, "connections", "0 of 97"},
    {"an asynchronous standby", "\"standbys\":0", "\"standbys\":1", FINDING_WARNING, "replication", "asynchronous: no"},
    {"commits that wait", "names\":\"\"", "names\":\"a\"", FINDING_WARNING, "replication", "wait for one of a"},
    {"a standby", "standby_lag_ms\":null", "standby_lag_ms\":60000", FINDING_WARNING, "standbys", "behind by 1m"},
    {"the release before", "\"database\"", "\"other\"", FINDING_UNKNOWN, "database", "says nothing"},
};

TEST(each_fault_is_found_and_nothing_else)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct diagnosis *d = new_diagnosis();

        diagnose_engines(d, changed(cases[i].from, cases[i].to), NOW - 100, NOW + 100);
        finds(d, cases[i].name, cases[i].state, cases[i].check, cases[i].what);
        assert_int_equal(diagnosis_count(d, FINDING_TROUBLE) + diagnosis_count(d, FINDING_WARNING) +
                             diagnosis_count(d, FINDING_UNKNOWN),
                         cases[i].state != FINDING_FINE);
    }
}

TEST(a_virtual_clock_is_no_trouble_and_hides_none)
{
    const struct {
        const char *now;
        enum finding_state state;
        const char *what;
    } clocks[] = {
        {"00:01:05.000Z", FINDING_FINE, "moved ahead by 1m 0s"},
        {"00:02:05.000Z", FINDING_TROUBLE, "59.9 s ahead of this machine's"},
        {"00:00:05.000Z", FINDING_TROUBLE, "59.9 s behind this machine's"},
    };

    for (size_t i = 0; i < COUNT_OF(clocks); i++) {
        struct diagnosis *d = new_diagnosis();
        const struct finding *clock = NULL;

        d->has_virtual_clock = true;
        d->virtual_ahead_ms = 60000;
        diagnose_engines(d, changed("00:00:05.000Z", clocks[i].now), NOW - 100, NOW + 100);
        for (size_t k = 0; k < d->count && !clock; k++) {
            clock = strcmp(d->items[k].check, "clock") == 0 ? &d->items[k] : NULL;
        }
        assert_non_null(clock);
        assert_int_equal(clock->state, clocks[i].state);
        assert_non_null(strstr(arena_text(&ctl.arena, clock->what), clocks[i].what));
    }
}

TEST(the_mode_of_replication_is_named)
{
    static const struct {
        const char *database, *what;
    } modes[] = {
        {"{\"standbys\":0,\"settings\":{\"synchronous_standby_names\":\"\"}}", "none: a crash"},
        {"{\"standbys\":2,\"settings\":{\"synchronous_standby_names\":\"\"}}", "asynchronous: no commit waits"},
        {"{\"standbys\":1,\"settings\":{\"synchronous_standby_names\":\"FIRST 1 (a, b)\"}}",
         "synchronous, FIRST 1 (a, b): what"},
        {"{\"standbys\":1,\"settings\":{\"synchronous_standby_names\":\"anybody\"}}", "synchronous, anybody: what"},
        {"{\"standbys\":2,\"settings\":{\"synchronous_standby_names\":\"any 1 (a, b)\"}}",
         "quorum, any 1 (a, b): what"},
        {"{\"standbys\":2,\"settings\":{\"synchronous_standby_names\":\"ANY 2 (a, b, c)\"}}",
         "quorum, ANY 2 (a, b, c): what"},
        {"{\"standbys\":0,\"settings\":{\"synchronous_standby_names\":\"ANY 2 (a, b, c)\"}}", "no standby streams"},
        {"{\"standbys\":1,\"settings\":{\"synchronous_standby_names\":\"ANY 2 (a, b, c)\"}}",
         "too few standbys stream, 1 of the 2 that each commit waits for: ANY 2 (a, b, c)"},
        {"{\"standbys\":1,\"settings\":{\"synchronous_standby_names\":\" first 2(a, b)\"}}", "too few"},
        {"{\"standbys\":1,\"settings\":{\"synchronous_standby_names\":\"2 (a, b)\"}}", "too few"},
        {"{\"standbys\":1,\"settings\":{\"synchronous_standby_names\":\"a, 2\"}}", "synchronous, a, 2: what"},
        {"{\"standbys\":1,\"settings\":{\"synchronous_standby_names\":\"\\\"2\\\", b\"}}",
         "synchronous, \"2\", b: what"},
    };

    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        struct diagnosis *d = new_diagnosis();

        judge_replication(d, slice_of(modes[i].database));
        assert_int_equal(d->count, 1);
        finds(d, modes[i].what, d->items[0].state, "replication", modes[i].what);
    }
}

TEST(a_sagad_that_is_not_ready_says_which_part_waits)
{
    static const struct {
        const char *name, *answer;
        enum finding_state state;
        const char *check, *what;
    } answers[] = {
        {"ready", "{\"status\":\"ready\",\"warnings\":[]}", FINDING_FINE, "server", "ready"},
        {"a warning", "{\"status\":\"ready\",\"warnings\":[\"it may lack work; set names\"]}", FINDING_WARNING,
         "replication", "it may lack work"},
        {"no database", "{\"status\":\"not_ready\",\"database\":false,\"reason\":\"refused\",\"hint\":\"begin\"}",
         FINDING_TROUBLE, "database", "refused"},
        {"no reason", "{\"status\":\"not_ready\",\"database\":true,\"schema\":true}", FINDING_TROUBLE, "leases",
         "no leases yet"},
        {"draining", "{\"status\":\"not_ready\",\"draining\":true}", FINDING_TROUBLE, "server", "is stopping"},
    };

    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        struct diagnosis *d = new_diagnosis();

        diagnose_readiness(d, SLICE("http://there"), slice_of(answers[i].answer));
        finds(d, answers[i].name, answers[i].state, answers[i].check, answers[i].what);
    }
}

static int set_up(void **state)
{
    (void)state;
    arena_init(&ctl.arena, 64 * 1024);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_fini(&ctl.arena);
    return 0;
}

TEST_PROGRAM(set_up, tear_down)
