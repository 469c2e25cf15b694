/* One blocking connection with results as text, for work before or beside the loop: migrations and checks at the
 * start. */
#include <stdlib.h>

#include "io/postgres/connect.h"
#include "io/postgres/db.h"

struct db_session {
    PGconn *conn;
    bool commit_lost; /* the server warned that a commit of the running statements may be lost */
};

static void on_notice(void *context, const PGresult *notice)
{
    struct db_session *session = context;

    session->commit_lost |= db_notice_is_lost_commit(notice);
}

enum err_code db_session_open(const char *dsn, const char *application_name, struct db_session **out, struct err *err)
{
    const struct db_target target = {.dsn = dsn, .application_name = application_name};
    struct err reason = {.code = ERR_OK};
    PGconn *conn = db_connect(&target, &reason);
    struct db_session *session;

    if (!conn) {
        if (err) {
            *err = reason;
        }
        return reason.code;
    }
    session = memory_alloc(sizeof(*session));
    session->conn = conn;
    (void)PQsetNoticeReceiver(conn, on_notice, session);
    *out = session;
    return ERR_OK;
}

void db_session_close(struct db_session *session)
{
    if (session) {
        PQfinish(session->conn);
        free(session);
    }
}

int db_session_server_version(const struct db_session *session)
{
    return PQserverVersion(session->conn);
}

static void give_rows(const PGresult *result, void (*on_row)(void *context, int columns, const char *const *values),
                      void *context)
{
    int columns = PQnfields(result);
    const char **values = memory_alloc((size_t)(columns + 1) * sizeof(*values));

    for (int row = 0; row < PQntuples(result); row++) {
        for (int column = 0; column < columns; column++) {
            values[column] = PQgetisnull(result, row, column) ? NULL : PQgetvalue(result, row, column);
        }
        on_row(context, columns, values);
    }
    free(values);
}

static enum err_code session_broken(const struct db_session *session, struct err *err)
{
    char line[sizeof(err->detail)];

    db_one_line(PQerrorMessage(session->conn), line, sizeof(line));
    err_set(err, ERR_STORE, "the connection to the database was lost");
    err_detail(err, "%s", line);
    return ERR_STORE;
}

enum err_code db_session_run(struct db_session *session, const char *sql,
                             void (*on_row)(void *context, int columns, const char *const *values), void *context,
                             struct err *err)
{
    enum err_code code = ERR_OK;
    PGresult *result;
    char sqlstate[6];

    session->commit_lost = false;
    if (!PQsendQuery(session->conn, sql)) {
        return session_broken(session, err);
    }
    while ((result = PQgetResult(session->conn)) !=
           NULL) { /* there is one result for each statement, and none after an error */
        ExecStatusType status = PQresultStatus(result);

        if (status == PGRES_TUPLES_OK && on_row) {
            give_rows(result, on_row, context);
        } else if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH) {
            PQclear(result); /* PQgetResult() would return it again for ever */
            return err_set(err, ERR_INTERNAL, "COPY is not for this connection");
        } else if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK && status != PGRES_EMPTY_QUERY &&
                   code == ERR_OK) {
            code = PQstatus(session->conn) == CONNECTION_OK ? db_result_err(result, "a statement", sqlstate, err)
                                                            : session_broken(session, err);
        }
        PQclear(result);
    }
    if (code == ERR_OK && session->commit_lost) {
        err_set(err, ERR_LOST_COMMIT, "the database did not confirm that the COMMIT reached its standby");
        code = ERR_LOST_COMMIT;
    }
    return code;
}
