/*
 * Connecting blocks on the resolution of names, and libpq's own non-blocking way does not honour its timeouts. We
 * therefore call PQconnectdb on a worker thread, and run the set-up statements right behind it.
 *
 * A dead peer is noticed in a few seconds only with all of keepalives and tcp_user_timeout: bytes under way switch
 * the keepalives off, and then the user timeout decides.
 */
#include "io/postgres/connect.h"

#include <stdlib.h>
#include <string.h>

#include "io/http/egress.h"
#include "io/loop/worker.h"
#include "io/postgres/environment.h"

enum { SETUP_MAX = 64, SETUP_MS_DEFAULT = 10000, REFUSALS_BYTES = 2048, PARAMETERS_MAX = 16 };

#define NO_FILE "/nonexistent/sagad" /* libpq ignores files that do not exist */

/* --- sentences --- */

void db_one_line(const char *text, char *out, size_t out_bytes)
{
    size_t len = 0;

    for (; *text && len + 1 < out_bytes; text++) {
        bool is_space = *text == '\n' || *text == '\r' || *text == '\t' || *text == ' ';

        if (!is_space) {
            out[len++] = *text;
        } else if (len > 0 && out[len - 1] != ' ') {
            out[len++] = ' ';
        }
    }
    while (len > 0 && out[len - 1] == ' ') {
        len--;
    }
    out[len] = '\0';
}

/*
 * libpq gives the reason of a refused connection only as text. When the text has several lines (several hosts), the
 * first entry that matches decides, so reasons that need a person stand before reasons that pass by themselves. The
 * last entry takes servers of other languages and quotes their words in the detail.
 */
static const struct {
    const char *const needles[8];
    const char *message, *hint;
} refusals[] = {
    {{"password authentication failed", "no password supplied", "authentication failed", "no pg_hba.conf entry",
      "pg_hba.conf rejects", "is not permitted to log in"},
     "PostgreSQL does not let us in",
     "check user and password of the connection string, and pg_hba.conf of the server"},
    {{"permission denied for database"},
     "the user may not connect to this database",
     "grant it: GRANT CONNECT ON DATABASE ... TO ..."},
    {{"too many clients", "too many connections", "remaining connection slots"},
     "PostgreSQL has no free connection",
     "raise max_connections, or end connections that nobody uses"},
    {{"role \""}, "PostgreSQL does not know this user", "create it, or name another user in the connection string"},
    {{"database \""},
     "there is no such database on this server",
     "create it, or name another database in the connection string"},
    {{"server does not support SSL", "SSL error", "certificate", "SSL connection has been closed"},
     "no TLS session with PostgreSQL came about",
     "check sslmode and sslrootcert of the connection string"},
    {{"is starting up", "is shutting down", "recovery mode", "not yet accepting connections",
      "not accepting connections"},
     "PostgreSQL is starting or stopping",
     "it is tried again; look at the server's log when this stays"},
    {{"session is read-only", "hot standby", "session is not read-only"},
     "this server is a standby, it takes no writes",
     "name the primary, or all servers: host=a,b target_session_attrs=read-write"},
    {{"could not translate host name"},
     "the host name of PostgreSQL is not known",
     "check host in the connection string"},
    {{"Connection refused", "No such file or directory", "timeout expired", "timed out", "No route to host",
      "is unreachable"},
     "no PostgreSQL answers at this address",
     "is it running? check host and port of the connection string"},
    {{""}, "the connection to PostgreSQL did not come about", "look at the server's log"},
};

static void explain_refusal(const char *text, struct err *err)
{
    char line[sizeof(err->detail)];

    db_one_line(text, line, sizeof(line));
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        for (size_t k = 0; refusals[i].needles[k]; k++) {
            if (strstr(text, refusals[i].needles[k])) {
                err_set(err, ERR_STORE, "%s", refusals[i].message);
                err_detail(err, "%s", line);
                err_hint(err, "%s", refusals[i].hint);
                return;
            }
        }
    }
}

bool db_result_is_fatal(const PGresult *result)
{
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);

    return !severity || strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0;
}

bool db_notice_is_lost_commit(const PGresult *notice)
{
    const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *function = PQresultErrorField(notice, PG_DIAG_SOURCE_FUNCTION);
    const char *detail = PQresultErrorField(notice, PG_DIAG_MESSAGE_DETAIL);

    /* Tells the warning by its place in the server's source, which no language setting translates; for servers that
     * hide the place, by its text. */
    return severity && strcmp(severity, "WARNING") == 0 &&
           ((function && strcmp(function, "SyncRepWaitForLSN") == 0) ||
            (detail && strstr(detail, "might not have been replicated")));
}

enum err_code db_result_err(const PGresult *result, const char *what, char sqlstate[6], struct err *err)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
    char line[sizeof(err->detail)];

    sqlstate[0] = '\0';
    if (state && strlen(state) == 5) {
        memcpy(sqlstate, state, 6);
    }
    if (strcmp(sqlstate, "SG001") == 0) {
        err_set(err, ERR_FENCED, "another engine owns the shard");
        err_detail(err, "%s", message ? message : "");
        return ERR_FENCED;
    }
    err_set(err, ERR_STORE, "the database refused %s: SQLSTATE %s", what, sqlstate[0] ? sqlstate : "missing");
    db_one_line(message ? message : PQresultErrorMessage(result), line, sizeof(line));
    /* For a broken check or not-null constraint, the server's detail is the whole row, and rows hold payloads. */
    if (detail && strcmp(sqlstate, "23502") != 0 && strcmp(sqlstate, "23514") != 0) {
        err_detail(err, "%s; %s", line, detail);
    } else {
        err_detail(err, "%s", line);
    }
    if (strncmp(sqlstate, "42", 2) == 0) {
        err_hint(err, "the schema is not the one this sagad knows, or the user lacks a right: run `sagad migrate`");
    }
    return ERR_STORE;
}

/* --- connecting --- */

static void ignore_notice(void *context, const PGresult *notice)
{
    (void)context;
    (void)notice;
}

enum err_code db_dsn_check(const char *dsn, struct err *err)
{
    PQconninfoOption *options;
    char *words = NULL;
    bool is_uri = strncmp(dsn, "postgres://", 11) == 0 || strncmp(dsn, "postgresql://", 13) == 0;

    if (!is_uri && !strchr(dsn, '=')) {
        return ERR_OK; /* "" or a bare name of a database */
    }
    options = PQconninfoParse(dsn, &words);
    if (options) {
        PQconninfoFree(options);
        return ERR_OK;
    }
    if (!words || strstr(words, "out of memory")) {
        PQfreemem(words); /* accepts NULL */
        err_set(err, ERR_STORE, "there is no memory to connect to the database");
        err_hint(err, "give the process more memory (LimitAS=, ulimit -v, MemoryMax=)");
        return ERR_STORE;
    }
    PQfreemem(words);
    /* libpq's words are left out: they quote the connection string, which may hold a password. */
    err_set(err, ERR_CONFIG, "the connection string cannot be read");
    err_hint(
        err,
        "write \"host=... port=... dbname=... user=...\" or \"postgresql://user@host/dbname\"; in the latter special "
        "characters are percent-encoded");
    return ERR_CONFIG;
}

static bool setup_statement(PGconn *conn, const char *sql, int64_t ms, struct err *err)
{
    PGresult *result = db_exec_within(conn, sql, ms);
    ExecStatusType status = PQresultStatus(result); /* NULL gives PGRES_FATAL_ERROR */
    bool good = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY;
    char sqlstate[6];

    if (!result) {
        err_set(err, ERR_STORE, "the database lets us in and does not answer");
        err_detail(err, "no answer to the first statements of a connection within %lld ms", (long long)ms);
        err_hint(err, "a pooler may have too few connections for us, or the server hangs");
    } else if (!good) {
        (void)db_result_err(result, "to set the connection up", sqlstate, err);
    }
    PQclear(result);
    return good;
}

/*
 * Ends a backend whose connection was given up. It may wait for ever for a standby that does not come, and each attempt
 * would add another. Its application name says that it is ours.
 */
static bool end_left_backend(PGconn *conn, const struct db_target *target, int64_t ms, struct err *err)
{
    char sql[256], *name = PQescapeLiteral(conn, target->application_name, strlen(target->application_name));
    bool good = name != NULL;

    if (good) {
        (void)snprintf(sql, sizeof(sql),
                       "select pg_terminate_backend(pid) from pg_catalog.pg_stat_activity where pid = %d and "
                       "application_name = %s",
                       target->left_pid, name); /* the names of our applications are short */
        good = setup_statement(conn, sql, ms, err);
        PQfreemem(name);
    }
    return good;
}

static bool setup_run(PGconn *conn, const struct db_target *target, struct err *err)
{
    int64_t ms = target->answer_ms > 0 ? target->answer_ms : SETUP_MS_DEFAULT;

    if (target->left_pid > 0 && target->left_pid != PQbackendPID(conn) && !end_left_backend(conn, target, ms, err)) {
        return false;
    }
    for (size_t i = 0; target->setup && target->setup[i]; i++) {
        if (!setup_statement(conn, target->setup[i], ms, err)) {
            return false;
        }
    }
    return true;
}

static const char *environment_or(const char *name, const char *otherwise)
{
    const char *value = getenv(name);

    return value ? value : otherwise;
}

struct parameters {
    const char *keywords[PARAMETERS_MAX + 1], *values[PARAMETERS_MAX + 1]; /* one more place for the NULL at the end */
    size_t count;
};

static void add(struct parameters *parameters, const char *keyword, const char *value)
{
    CHECK(parameters->count < PARAMETERS_MAX);
    parameters->keywords[parameters->count] = keyword;
    parameters->values[parameters->count++] = value;
}

/* Parameters before "dbname" are defaults that the connection string may change; parameters behind it are fixed. */
static void take_parameters(const struct db_target *target, const char *dsn, struct parameters *out)
{
    *out = (struct parameters){0};
    add(out, "target_session_attrs", environment_or("PGTARGETSESSIONATTRS", "read-write"));
    add(out, "keepalives", "1");
    add(out, "keepalives_idle", "1");
    add(out, "keepalives_interval", "1");
    add(out, "keepalives_count", "2");
    add(out, "tcp_user_timeout", "4000");
    add(out, "connect_timeout", environment_or("PGCONNECT_TIMEOUT", "5"));
    if (target->is_foreign) { /* the connection must not use a certificate or a ticket of the user that sagad runs as */
        add(out, "sslcert", NO_FILE);
        add(out, "sslkey", NO_FILE);
        add(out, "gssencmode", "disable");
    }
    add(out, "dbname", dsn);
    add(out, "client_encoding", "UTF8");
    add(out, "application_name", target->application_name);
    if (target->is_foreign) {
        add(out, "passfile", NO_FILE);
    }
}

/* Connects to the server of `dsn`. With `chooses`, libpq tries the hosts one after the other. */
static PGconn *connect_to(const struct db_target *target, const char *dsn, bool chooses, struct err *err)
{
    char refusals_of_hosts[REFUSALS_BYTES];
    struct parameters parameters;
    PGconn *conn;

    take_parameters(target, dsn, &parameters);
    conn = db_hosts_connect(parameters.keywords, parameters.values, chooses ? NULL : dsn, refusals_of_hosts,
                            sizeof(refusals_of_hosts));
    if (!conn || PQstatus(conn) != CONNECTION_OK) {
        explain_refusal(conn ? PQerrorMessage(conn) : refusals_of_hosts, err);
        PQfinish(conn); /* accepts NULL */
        return NULL;
    }
    (void)PQsetNoticeReceiver(conn, ignore_notice, NULL);
    if (!setup_run(conn, target, err)) {
        PQfinish(conn);
        return NULL;
    }
    return conn;
}

static PGconn *connect_pinned(const struct db_target *target, struct err *err)
{
    struct arena arena;
    size_t host_count;
    const char *dsn;
    PGconn *conn;

    if (!db_dsn_is_whole(target->dsn)) {
        err_set(err, ERR_CONFIG, "the connection string of the tool does not name its server and its user");
        err_hint(err,
                 "write host=... user=... and the password into it; what sagad itself connects with is not for tools");
        return NULL;
    }
    arena_init(&arena, 1024);
    dsn = db_pin(target->dsn, target->egress, &host_count, &arena, err);
    /* All addresses of one host belong to one server. */
    conn = dsn ? connect_to(target, dsn, host_count == 1, err) : NULL;
    if (dsn) {
        explicit_bzero((char *)dsn, strlen(dsn)); /* the string may hold a password */
    }
    arena_fini(&arena);
    return conn;
}

PGconn *db_connect(const struct db_target *target, struct err *err)
{
    if (db_dsn_check(target->dsn, err) != ERR_OK) {
        return NULL;
    }
    return target->is_foreign ? connect_pinned(target, err) : connect_to(target, target->dsn, false, err);
}

/* --- the same on a worker thread --- */

struct db_attempt {
    struct worker_job job;
    struct arena arena; /* holds the target, because the caller may be gone before the thread ends */
    struct db_target target;
    PGconn *conn;
    struct err err;
    void (*done)(void *context, PGconn *conn, const struct err *err); /* NULL for an abandoned attempt */
    void *context;
};

static void on_attempt_work(struct worker_job *job)
{
    struct db_attempt *attempt = container_of(job, struct db_attempt, job);

    attempt->conn = db_connect(&attempt->target, &attempt->err);
}

static void on_attempt_done(struct worker_job *job)
{
    struct db_attempt *attempt = container_of(job, struct db_attempt, job);

    if (attempt->done) {
        attempt->done(attempt->context, attempt->conn, &attempt->err);
    } else {
        PQfinish(attempt->conn); /* accepts NULL */
    }
    arena_fini(&attempt->arena);
    free(attempt);
}

struct db_attempt *db_attempt_start(struct loop *loop, const struct db_target *target,
                                    void (*done)(void *context, PGconn *conn, const struct err *err), void *context)
{
    struct db_attempt *attempt = memory_alloc(sizeof(*attempt));
    const char **setup;

    arena_init(&attempt->arena, 1024);
    setup = arena_array(&attempt->arena, SETUP_MAX + 1, sizeof(*setup));
    for (size_t i = 0; target->setup && target->setup[i]; i++) {
        CHECK(i < SETUP_MAX);
        setup[i] = arena_text(&attempt->arena, slice_of(target->setup[i]));
    }
    attempt->target.dsn = arena_text(&attempt->arena, slice_of(target->dsn));
    attempt->target.application_name = arena_text(&attempt->arena, slice_of(target->application_name));
    attempt->target.setup = setup;
    attempt->target.answer_ms = target->answer_ms;
    attempt->target.is_foreign = target->is_foreign;
    attempt->target.egress =
        target->egress ? arena_dup(&attempt->arena, target->egress, sizeof(*target->egress)) : NULL;
    attempt->target.left_pid = target->left_pid;
    attempt->done = done;
    attempt->context = context;
    attempt->job.work = on_attempt_work;
    attempt->job.done = on_attempt_done;
    worker_submit(loop, &attempt->job);
    return attempt;
}

void db_attempt_abandon(struct db_attempt *attempt)
{
    if (attempt) {
        attempt->done = NULL;
    }
}
