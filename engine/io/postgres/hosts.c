/*
 * Chooses one of several servers. All servers in the connection string are asked at once. Of those that let us in
 * (libpq has looked at target_session_attrs), the one with the newest timeline is taken. The order in the string
 * decides between equals.
 *
 * libpq itself takes the first one. After a failover that did not stop the old primary, this may be the old primary: it
 * takes writes that nobody keeps, or waits for ever for a standby that has become its successor.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/postgres/connect.h"

enum {
    HOSTS_MAX = 16,
    KEYWORDS_MAX = 24,
    CONNECT_MS_DEFAULT = 5000, /* libpq's connect_timeout does not apply to servers that are asked at once */
    OTHERS_MS = 1000,          /* time for the other servers once the first has answered */
    TIMELINE_MS = 1000
};

struct host {
    char name[DB_NAME_BYTES], address[DB_NAME_BYTES], port[DB_NAME_BYTES];
    PGconn *conn; /* NULL when the host was not tried or is out */
    PostgresPollingStatusType wants;
    bool is_open;
    long timeline;
};

/* --- the list --- */

static const char *option_of(const PQconninfoOption *options, const char *keyword, const char *variable)
{
    for (; options && options->keyword; options++) {
        if (strcmp(options->keyword, keyword) == 0 && options->val && options->val[0]) {
            return options->val;
        }
    }
    return getenv(variable);
}

bool db_list_field(const char *list, size_t index, char out[DB_NAME_BYTES])
{
    const char *at = list ? list : "";
    size_t len;

    if (!strchr(at, ',')) {
        index = 0;
    }
    for (; index > 0; index--) {
        at = strchr(at, ',');
        if (!at) {
            return false;
        }
        at++;
    }
    len = strcspn(at, ",");
    if (len >= DB_NAME_BYTES) {
        return false;
    }
    memcpy(out, at, len);
    out[len] = '\0';
    return true;
}

size_t db_list_count(const char *list)
{
    size_t count = list && list[0] ? 1 : 0;

    for (const char *at = list; at && (at = strchr(at, ',')) != NULL; at++) {
        count++;
    }
    return count;
}

/* Returns the number of hosts. Below two, or for a list that we do not understand, libpq chooses. */
static size_t hosts_of(const char *dsn, struct host *hosts)
{
    PQconninfoOption *options = strchr(dsn, '=') || strstr(dsn, "://") ? PQconninfoParse(dsn, NULL) : NULL;
    const char *names = option_of(options, "host", "PGHOST"), *addresses = option_of(options, "hostaddr", "PGHOSTADDR");
    const char *ports = option_of(options, "port", "PGPORT");
    size_t count = db_list_count(addresses) > db_list_count(names) ? db_list_count(addresses) : db_list_count(names);
    bool good = count > 1 && count <= HOSTS_MAX && (db_list_count(names) == 0 || db_list_count(names) == count) &&
                (db_list_count(addresses) == 0 || db_list_count(addresses) == count) &&
                (db_list_count(ports) <= 1 || db_list_count(ports) == count);

    for (size_t i = 0; i < count && good; i++) {
        good = db_list_field(names, i, hosts[i].name) && db_list_field(addresses, i, hosts[i].address) &&
               db_list_field(ports, i, hosts[i].port) && (hosts[i].name[0] || hosts[i].address[0]);
    }
    PQconninfoFree(options); /* accepts NULL */
    return good ? count : 0;
}

/* --- asking --- */

static int64_t now_ms(void)
{
    return loop_boot_ms_now();
}

/* Waits until the socket is ready. Returns false when the time is over. */
static bool wait_for(PGconn *conn, bool writing, int64_t until_ms)
{
    struct pollfd fd = {.fd = PQsocket(conn), .events = (short)(writing ? POLLIN | POLLOUT : POLLIN)};
    int64_t left_ms = until_ms - now_ms();

    if (fd.fd >= 0 && left_ms > 0) {
        (void)poll(&fd, 1, (int)left_ms); /* after an interrupt the caller checks again */
    }
    return fd.fd >= 0 && now_ms() < until_ms;
}

PGresult *db_exec_within(PGconn *conn, const char *sql, int64_t ms)
{
    int64_t until_ms = now_ms() + ms;
    PGresult *last = NULL, *result;

    if (PQsendQuery(conn, sql) != 1) {
        return PQmakeEmptyPGresult(conn, PGRES_FATAL_ERROR);
    }
    for (;;) {
        while (PQisBusy(conn)) {
            if (!wait_for(conn, PQflush(conn) == 1, until_ms)) {
                PQclear(last); /* accepts NULL */
                return NULL;
            }
            if (PQconsumeInput(conn) != 1) {
                break; /* PQgetResult() reports the failure */
            }
        }
        result = PQgetResult(conn);
        if (!result) {
            return last ? last : PQmakeEmptyPGresult(conn, PGRES_FATAL_ERROR);
        }
        PQclear(last);
        last = result;
    }
}

static void host_close(struct host *host)
{
    PQfinish(host->conn);
    host->conn = NULL;
}

static void host_begin(struct host *host, const char *const *keywords, const char *const *values)
{
    const char *with[KEYWORDS_MAX + 4], *as[KEYWORDS_MAX + 4];
    size_t count = 0;

    for (; keywords[count]; count++) {
        CHECK(count < KEYWORDS_MAX);
        with[count] = keywords[count];
        as[count] = values[count];
    }
    with[count] = "host"; /* parameters behind "dbname" have precedence */
    as[count++] = host->name;
    with[count] = "hostaddr";
    as[count++] = host->address;
    with[count] = "port";
    as[count++] = host->port;
    with[count] = NULL;
    as[count] = NULL;
    host->conn = PQconnectStartParams(with, as, 1);
    CHECK(host->conn);
    host->wants = PQstatus(host->conn) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
}

static void host_refused(struct host *host, const char *why, char *refusals, size_t bytes)
{
    size_t len = strlen(refusals);

    (void)snprintf(refusals + len, bytes - len, "%s%s:%s: %s", len > 0 ? "\n" : "",
                   host->name[0] ? host->name : host->address, host->port, why); /* cuts what does not fit */
    host_close(host);
}

/* Advances each host that has something to do. Returns how many are neither open nor closed yet. */
static size_t hosts_step(struct host *hosts, size_t count, int64_t until_ms, char *refusals, size_t bytes)
{
    struct pollfd fds[HOSTS_MAX];
    size_t left = 0;
    int64_t wait_ms = until_ms - now_ms();

    for (size_t i = 0; i < count; i++) {
        bool asks = hosts[i].conn && !hosts[i].is_open;

        fds[i] = (struct pollfd){.fd = asks ? PQsocket(hosts[i].conn) : -1,
                                 .events = hosts[i].wants == PGRES_POLLING_WRITING ? POLLOUT : POLLIN};
        wait_ms = asks && hosts[i].wants == PGRES_POLLING_FAILED ? 0 : wait_ms;
    }
    (void)poll(fds, (nfds_t)count, wait_ms > 0 ? (int)wait_ms : 0); /* after an interrupt the caller checks the time */
    for (size_t i = 0; i < count; i++) {
        if (!hosts[i].conn || hosts[i].is_open) {
            continue;
        }
        if (fds[i].revents != 0 && hosts[i].wants != PGRES_POLLING_FAILED) {
            hosts[i].wants = PQconnectPoll(hosts[i].conn);
        }
        hosts[i].is_open = hosts[i].wants == PGRES_POLLING_OK;
        if (hosts[i].wants == PGRES_POLLING_FAILED) {
            host_refused(&hosts[i], PQerrorMessage(hosts[i].conn), refusals, bytes);
        } else {
            left += !hosts[i].is_open;
        }
    }
    return left;
}

static bool timeline_read(struct host *host)
{
    PGresult *result =
        db_exec_within(host->conn,
                       "select case when pg_is_in_recovery() then 0"
                       " else ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int4 end",
                       TIMELINE_MS);
    bool good = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1;

    host->timeline = good ? strtol(PQgetvalue(result, 0, 0), NULL, 10) : 0;
    PQclear(result);
    return good;
}

static PGconn *hosts_choose(struct host *hosts, size_t count, char *refusals, size_t bytes)
{
    struct host *best = NULL;
    PGconn *chosen = NULL;

    for (size_t i = 0; i < count; i++) {
        if (hosts[i].conn && !hosts[i].is_open) {
            host_refused(&hosts[i], "timeout expired", refusals, bytes);
        } else if (hosts[i].conn && !timeline_read(&hosts[i])) {
            host_refused(&hosts[i], "timeout expired: it lets us in and answers no question", refusals, bytes);
        } else if (hosts[i].conn && (!best || hosts[i].timeline > best->timeline)) {
            best = &hosts[i];
        }
    }
    if (best) {
        chosen = best->conn;
        best->conn = NULL;
    }
    for (size_t i = 0; i < count; i++) {
        host_close(&hosts[i]); /* PQfinish() accepts NULL */
    }
    return chosen;
}

static int64_t connect_ms(const char *const *keywords, const char *const *values)
{
    int64_t ms = CONNECT_MS_DEFAULT;

    for (size_t i = 0; keywords[i]; i++) {
        if (strcmp(keywords[i], "connect_timeout") == 0 && values[i] && strtol(values[i], NULL, 10) > 0) {
            ms = strtol(values[i], NULL, 10) * 1000;
        }
    }
    return ms;
}

PGconn *db_hosts_connect(const char *const *keywords, const char *const *values, const char *dsn, char *refusals,
                         size_t refusals_bytes)
{
    struct host hosts[HOSTS_MAX] = {0};
    size_t count = dsn ? hosts_of(dsn, hosts) : 0, left = count;
    int64_t until_ms = now_ms() + connect_ms(keywords, values);

    refusals[0] = '\0';
    if (count == 0) {
        return PQconnectdbParams(keywords, values, 1);
    }
    for (size_t i = 0; i < count; i++) {
        host_begin(&hosts[i], keywords, values);
    }
    while (left > 0 && now_ms() < until_ms) {
        left = hosts_step(hosts, count, until_ms, refusals, refusals_bytes);
        for (size_t i = 0; i < count; i++) {
            int64_t others_ms = now_ms() + OTHERS_MS;

            if (hosts[i].is_open && hosts[i].timeline == 0 && others_ms < until_ms) {
                hosts[i].timeline = -1; /* not known yet; from now on the other servers have less time */
                until_ms = others_ms;
            }
        }
    }
    return hosts_choose(hosts, count, refusals, refusals_bytes);
}
