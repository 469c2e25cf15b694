/*
 * `sagad migrate` brings the schema up to date, in one transaction under a lock of its own table. All of the migration
 * happens or nothing. Of two at once, the second one waits and then finds nothing to do. Where there is no table yet,
 * an advisory lock keeps them apart: that is politeness, since anybody may hold it. Without it one of them fails,
 * because the other one makes the same schema, and then begins again.
 *
 * A program runs on the schema that it was made for and on the next one. So engines may run while a migration takes
 * that one step, and are replaced one after another behind it; appends wait meanwhile. A longer step, or a step that a
 * running engine does not know, is refused while engines run. The lease table is locked first, so that no engine can
 * get a lease meanwhile.
 */
#include "store/migrate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/postgres/db.h"
#include "store/store.h"
#include "store/store_state.h"

#define MIGRATE_LOCK "1397178691" /* any number that no other program uses */
#define ENGINE_TABLE_VERSION 8    /* the version that made the table of engines */

static const char begin_sql[] = "begin;"
                                " set local lock_timeout = '30s';"
                                " set local client_min_messages = warning;"
                                " set local search_path = pg_catalog, pg_temp;"
                                " select set_config('search_path', 'sagad_clock, pg_catalog, pg_temp', true)"
                                " where to_regnamespace('sagad_clock') is not null;" /* virtual_clock.h */
                                " do $$ begin for i in 1..50 loop"
                                " exit when pg_try_advisory_xact_lock(" MIGRATE_LOCK "); perform pg_sleep(0.1);"
                                " end loop; end $$;"
                                " do $$ begin if to_regclass('sagad.schema_version') is not null then"
                                " lock table sagad.schema_version in exclusive mode; end if; end $$;";

static const char present_sql[] =
    "select (to_regclass('sagad.schema_version') is not null)::int, pg_is_in_recovery()::int";

static const char version_sql[] = "select coalesce(max(version), 0) from sagad.schema_version";

/* In the order in which an engine renews its leases. A migration that changes the table of engines would else wait for
 * a renewal that waits for the migration. */
static const char hold_sql[] = "lock table sagad.engine, sagad.shard in access exclusive mode",
                  hold_before_engines_sql[] = "lock table sagad.shard in access exclusive mode";

/* An engine that holds a lease without a row in the table of engines is older than that table. */
static const char held_sql[] = "select count(*), min(owner) from sagad.shard where expires_at > clock_timestamp()";

static const char held_by_older_sql[] =
    "select count(*), min(t.who) from ("
    "select e.name || ' ' || e.version from sagad.engine e where e.expires_at > clock_timestamp() and e.schema < %d"
    " union all select s.owner from sagad.shard s where s.expires_at > clock_timestamp() and "
    "coalesce(s.owner_identity, '') not like 'loss/%%' and not exists"
    " (select 1 from sagad.engine e where e.identity = s.owner_identity)) as t (who)";

struct answer { /* the columns of the last row */
    long number, second_number;
    char text[80];
};

static void on_row(void *context, int columns, const char *const *values)
{
    struct answer *answer = context;

    answer->number = columns > 0 && values[0] ? strtol(values[0], NULL, 10) : 0;
    answer->second_number = columns > 1 && values[1] ? strtol(values[1], NULL, 10) : 0;
    (void)snprintf(answer->text, sizeof(answer->text), "%s",
                   columns > 1 && values[1] ? values[1] : ""); /* a long name is cut */
}

int migrate_newest(void)
{
    int version = 0;

    for (const struct migration *m = migrations; m->version > 0; m++) {
        version = m->version;
    }
    return version;
}

static enum err_code ask(struct db_session *session, const char *sql, struct answer *answer, struct err *err)
{
    memset(answer, 0, sizeof(*answer));
    return db_session_run(session, sql, on_row, answer, err);
}

/* Reads the version of the database, 0 for none. Refuses a database in which no migration may run. */
static enum err_code read_version(struct db_session *session, int *version, struct err *err)
{
    struct answer answer;
    enum err_code code = ask(session, present_sql, &answer, err);

    *version = 0;
    if (code != ERR_OK) {
        return code;
    }
    if (answer.second_number) {
        err_set(err, ERR_CONFIG, "this PostgreSQL is a standby and takes no migration");
        err_hint(err, "name the primary in --database, or all servers and target_session_attrs=read-write");
        return ERR_CONFIG;
    }
    if (!answer.number) {
        return ERR_OK;
    }
    code = ask(session, version_sql, &answer, err);
    *version = (int)answer.number;
    return code;
}

/* Refuses while engines run. `version` is the version of the database. */
static enum err_code refuse_if_engines_run(struct db_session *session, int version, struct err *err)
{
    struct answer answer;
    char sql[sizeof(held_by_older_sql) + 12];
    enum err_code code =
        db_session_run(session, version < ENGINE_TABLE_VERSION ? hold_before_engines_sql : hold_sql, NULL, NULL, err);

    if (code == ERR_OK && version < ENGINE_TABLE_VERSION) {
        code = ask(session, held_sql, &answer, err);
    } else if (code == ERR_OK) {
        (void)snprintf(sql, sizeof(sql), held_by_older_sql, migrate_newest() - 1); /* it fits */
        code = ask(session, sql, &answer, err);
    }
    if (code == ERR_OK && answer.number > 0) {
        err_set(err, ERR_BUSY, "engines are running on this database that do not run on the new schema");
        err_detail(
            err,
            "one of them is %s; each runs on the schema it was made for and on the next one, and the new one is %d",
            answer.text, migrate_newest());
        err_hint(err, "stop them, or replace them by the release before this one first, and run `sagad migrate` again");
        return ERR_BUSY;
    }
    return code;
}

static enum err_code apply(struct db_session *session, const struct migration *migration, struct err *err)
{
    struct answer answer;
    char sql[240];
    enum err_code code = db_session_run(session, migration->sql, NULL, NULL, err);

    if (code == ERR_OK) {
        (void)snprintf(sql, sizeof(sql), "insert into sagad.schema_version (version, name) values (%d, '%s')",
                       migration->version, migration->name); /* our names consist of letters and underscores */
        code = ask(session, sql, &answer, err);
    }
    return code == ERR_OK ? code : err_context(err, "migration %d (%s)", migration->version, migration->name);
}

/* `first` becomes the version that was there; it stays as it is when nobody could tell. */
static enum err_code migrate_within(struct db_session *session, void (*progress)(const char *line), int *first,
                                    struct err *err)
{
    char line[160];
    int version;
    enum err_code code = read_version(session, &version, err);

    if (code != ERR_OK) {
        return code;
    }
    *first = version;
    if (version > migrate_newest()) {
        err_set(err, ERR_CONFIG, "the schema of the database is newer than this program");
        err_detail(err, "schema version %d, and this program knows %d", version, migrate_newest());
        err_hint(err, "run the sagad that is as new as the schema");
        return ERR_CONFIG;
    }
    if (version > 0 && version < migrate_newest() && (code = refuse_if_engines_run(session, version, err)) != ERR_OK) {
        return code;
    }
    for (const struct migration *m = migrations; m->version > 0; m++) {
        if (m->version <= version) {
            continue;
        }
        code = apply(session, m, err);
        if (code != ERR_OK) {
            return code;
        }
        if (progress) {
            (void)snprintf(line, sizeof(line), "migration %d: %s", m->version, m->name);
            progress(line);
        }
    }
    code = db_session_run(session, "commit", NULL, NULL, err);
    if (code == ERR_OK && progress) {
        (void)snprintf(line, sizeof(line),
                       *first == migrate_newest() ? "the schema is up to date (version %d)"
                                                  : "the schema is at version %d now",
                       migrate_newest());
        progress(line);
    }
    return code;
}

static bool has_schema(struct db_session *session)
{
    struct answer answer;
    struct err ignored; /* what failed before is what the caller is told */

    return db_session_run(session, "rollback", NULL, NULL, &ignored) == ERR_OK &&
           ask(session, present_sql, &answer, &ignored) == ERR_OK && answer.number;
}

enum err_code migrate(const char *dsn, void (*progress)(const char *line), struct err *err)
{
    struct db_session *session = NULL;
    enum err_code code = db_session_open(dsn, "sagad migrate", &session, err);
    bool was_outrun = false;

    if (code != ERR_OK) {
        return code;
    }
    if (db_session_server_version(session) < STORE_SERVER_LEAST) {
        code = err_set(err, ERR_CONFIG, "PostgreSQL %d is too old", db_session_server_version(session) / 10000);
        err_hint(err, "use PostgreSQL 15 or newer");
        db_session_close(session);
        return code;
    }
    do {
        int first = -1;

        code = db_session_run(session, begin_sql, NULL, NULL, err);
        if (code == ERR_OK) {
            code = migrate_within(session, progress, &first, err);
        }
        /* Another one made the schema meanwhile. From here on its table keeps them apart. */
        was_outrun = code != ERR_OK && first == 0 && has_schema(session);
    } while (was_outrun);
    db_session_close(session); /* a transaction without a commit never happened */
    return code;
}
