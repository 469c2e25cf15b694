/* The schema is made once, however often and by however many engines it is asked for. A schema that does not fit is
 * refused with a sentence. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/test.h"
#include <pthread.h>

#include "io/postgres/db.h"
#include "store/migrate.h"
#include "tests/integration/store_host.h"

static struct host host;

static bool is_told(void *context)
{
    (void)context;
    return host.refused_count > 0 || host.ready_count > 0;
}

/* Opens a store, and closes it when it has said whether it may run. */
static bool refused_with(const struct store_options *options, const char *message)
{
    struct store *store = host_store_begin(&host, options);
    bool refused;

    host_run_until(&host, is_told, NULL);
    refused = host.refused_count > 0;
    assert_int_equal(store_is_ready(store), !refused);
    host_store_close(&host, store);
    if (refused && !strstr(host.err.message, message)) {
        fail_msg("expected \"%s\", got \"%s\"", message, host.err.message);
    }
    if (refused) {
        assert_true(host.err.hint[0] != '\0'); /* the hint says what to do */
    }
    return refused;
}

TEST(a_second_run_finds_nothing_to_do)
{
    struct err err = {.code = ERR_OK};

    assert_int_equal(migrate(cluster_dsn(&host.cluster), NULL, &err), ERR_OK);
    assert_int_equal(host_number(&host, "select count(*) from sagad.schema_version"), migrate_newest());
    assert_int_equal(host_number(&host, "select count(*) from sagad.shard"), SHARD_COUNT);
}

struct runner {
    pthread_t thread;
    enum err_code code;
    struct err err;
};

static void *run(void *context)
{
    struct runner *runner = context;

    runner->code = migrate(cluster_dsn(&host.cluster), NULL, &runner->err);
    return NULL;
}

static void assert_many_make_it_once(size_t count)
{
    struct runner runners[8];

    memset(runners, 0, sizeof(runners));
    host_sql(&host, "drop schema sagad cascade");
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(pthread_create(&runners[i].thread, NULL, run, &runners[i]), 0);
    }
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(pthread_join(runners[i].thread, NULL), 0);
    }
    for (size_t i = 0; i < count; i++) {
        if (runners[i].code != ERR_OK) {
            fail_msg("%s (%s)", runners[i].err.message, runners[i].err.detail);
        }
    }
    assert_int_equal(host_number(&host, "select count(*) from sagad.schema_version"), migrate_newest());
}

TEST(eight_at_once_make_it_once)
{
    assert_many_make_it_once(8);
}

/* They wait five seconds for the lock, and then make the schema side by side. */
TEST(three_at_once_make_it_once_while_somebody_holds_the_lock_of_migrations)
{
    struct db_session *somebody = NULL;
    struct err err = {.code = ERR_OK};

    assert_int_equal(db_session_open(cluster_dsn(&host.cluster), "somebody", &somebody, &err), ERR_OK);
    assert_int_equal(db_session_run(somebody, "select pg_advisory_lock(1397178691)", NULL, NULL, &err), ERR_OK);
    assert_many_make_it_once(3);
    db_session_close(somebody);
}

TEST(a_newer_schema_is_refused_by_both)
{
    struct err err = {.code = ERR_OK};

    host_sql(&host, "insert into sagad.schema_version (version, name) values (99, 'later')");
    assert_int_equal(migrate(cluster_dsn(&host.cluster), NULL, &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, "newer"));
    assert_true(refused_with(NULL, "newer than this program"));
    host_sql(&host, "delete from sagad.schema_version where version = 99");
}

/* Makes the schema of a program that knows all migrations but the newest. */
static void make_older_schema(void)
{
    struct db_session *session = NULL;
    struct err err = {.code = ERR_OK};

    host_sql(&host, "drop schema sagad cascade");
    assert_int_equal(db_session_open(cluster_dsn(&host.cluster), "test", &session, &err), ERR_OK);
    for (const struct migration *m = migrations; m->version < migrate_newest(); m++) {
        if (db_session_run(session, m->sql, NULL, NULL, &err) != ERR_OK) {
            fail_msg("migration %d: %s (%s)", m->version, err.message, err.detail);
        }
    }
    db_session_close(session);
    host_sql(&host,
             "insert into sagad.schema_version (version, name) select n, 'earlier' from generate_series(1, %d) n",
             migrate_newest() - 1);
}

TEST(an_older_schema_asks_for_migrate)
{
    make_older_schema();
    assert_true(refused_with(NULL, "older than this program"));
    assert_non_null(strstr(host.err.hint, "sagad migrate"));
}

TEST(a_migration_does_not_change_the_schema_under_running_engines)
{
    struct err err = {.code = ERR_OK};

    /* The test above did not apply the newest migration. */
    host_sql(&host, "update sagad.shard set owner = 'one', expires_at = now() + interval '1 hour' where shard = 3");
    assert_int_equal(migrate(cluster_dsn(&host.cluster), NULL, &err), ERR_BUSY);
    assert_non_null(strstr(err.message, "engines are running"));
    host_sql(&host, "update sagad.shard set owner = null, expires_at = null");
    assert_int_equal(migrate(cluster_dsn(&host.cluster), NULL, &err), ERR_OK);
    assert_int_equal(host_number(&host, "select max(version) from sagad.schema_version"), migrate_newest());
}

TEST(a_migration_that_fails_leaves_nothing)
{
    struct err err = {.code = ERR_OK};

    host_sql(&host,
             "drop schema sagad cascade; create schema sagad; create table sagad.tool (x int)"); /* in the way of the
                                                                                                    third migration */
    assert_int_not_equal(migrate(cluster_dsn(&host.cluster), NULL, &err), ERR_OK);
    assert_non_null(strstr(err.message, "migration 3"));
    assert_int_equal(host_number(&host, "select count(*) from pg_class where relname = 'schema_version'"), 0);
    host_sql(&host, "drop table sagad.tool");
    /* Into a schema that somebody made for us. */
    assert_int_equal(migrate(cluster_dsn(&host.cluster), NULL, &err), ERR_OK);
}

TEST(a_database_without_the_schema_asks_for_migrate)
{
    char dsn[200];

    host_sql(&host, "create database empty");
    (void)snprintf(dsn, sizeof(dsn), "%s dbname=empty", cluster_dsn(&host.cluster));
    assert_true(refused_with(&(struct store_options){.dsn = dsn}, "no sagad schema"));
    assert_non_null(strstr(host.err.hint, "sagad migrate"));
}

TEST(missing_rights_are_named)
{
    char dsn[200];

    host_sql(&host, "create role weak login; grant usage on schema sagad to weak; grant select on all tables in schema "
                    "sagad to weak;"
                    " create role weaker login");
    (void)snprintf(dsn, sizeof(dsn), "%s user=weak", cluster_dsn(&host.cluster));
    assert_true(refused_with(&(struct store_options){.dsn = dsn}, "lacks rights"));
    if (!strstr(host.err.detail, "delete, insert on ") || !strstr(host.err.detail, ", log, ")) {
        fail_msg("%s", host.err.detail);
    }
    (void)snprintf(dsn, sizeof(dsn), "%s user=weaker", cluster_dsn(&host.cluster));
    assert_true(refused_with(&(struct store_options){.dsn = dsn}, "may not use the schema"));
}

TEST(a_database_that_forgets_is_refused_unless_told_so)
{
    assert_false(refused_with(NULL, ""));
    host_sql(&host, "alter system set full_page_writes = off");
    host_sql(&host, "select pg_reload_conf()");
    host_run_ms(&host, 300);
    assert_true(refused_with(NULL, "full_page_writes = off"));
    assert_non_null(strstr(host.err.hint, "--risk-losing-acknowledged-work"));
    assert_false(refused_with(&(struct store_options){.risk_losing_acknowledged_work = true}, ""));
    host_sql(&host, "alter system reset full_page_writes");
    host_sql(&host, "select pg_reload_conf()");
    host_sql(&host, "alter role current_user set synchronous_commit = off");
    assert_true(refused_with(NULL, "synchronous_commit = off"));
    host_sql(&host, "alter role current_user reset synchronous_commit");
}

TEST(every_table_and_column_says_what_it_is)
{
    assert_string_equal(
        host_text(
            &host,
            "select c.relname, a.attname from pg_class c join pg_namespace n on n.oid = c.relnamespace and n.nspname = "
            "'sagad'"
            " join pg_attribute a on a.attrelid = c.oid and a.attnum >= 0 and not a.attisdropped"
            " where c.relkind in ('r', 'p') and (obj_description(c.oid) is null"
            " or (col_description(c.oid, a.attnum) is null and not c.relispartition))"),
        "");
    assert_int_equal(host_number(&host, "select count(*) from pg_trigger t join pg_class c on c.oid = t.tgrelid"
                                        " join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'sagad'"),
                     0);
}

static int setup(void **state)
{
    (void)state;
    host_start(&host, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    host_stop(&host);
    return 0;
}

TEST_PROGRAM(setup, teardown)
