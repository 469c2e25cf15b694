/* `sagad accept-history`: a person decides that the database may go on without the missing history. */
#include "store/lease/accept_history.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "io/postgres/db.h"

enum {
    SQL_BYTES = 6144,
    KNOWING_SCHEMA =
        17 /* the schema that made the table history_call; engines for an earlier one do not read the table */
};

/* What a person is told of each loss `h`, in seven columns. */
#define LOSS_COLUMNS                                                                                                   \
    "h.found_at, h.engine, h.missing,"                                                                                 \
    " (select coalesce(string_agg(s.shard::text, ' ' order by s.shard), 'none') from sagad.history_shard s where "     \
    "s.loss = h.id),"                                                                                                  \
    " (select coalesce(sum(s.turns - s.turns_left), 0) from sagad.history_shard s where s.loss = h.id),"               \
    " (select count(*) || ' sagas, of which ' || count(*) filter (where g.seq_left = 0) || ' are gone'"                \
    "  from sagad.history_saga g where g.loss = h.id),"                                                                \
    " (select count(*) || ' calls, of which ' || count(*) filter (where c.effect = 'once') || ' of the class once'"    \
    "  from sagad.history_call c where c.loss = h.id)"                                                                 \
    " || case when h.unlisted > 0 then '; too many to be listed: ' || h.unlisted else '' end"                          \
    " || coalesce('; calls of sagas that had left memory are known since ' || h.calls_since, '')"

static const char waiting_sql[] =
    "select " LOSS_COLUMNS " from sagad.history_loss h where h.accepted_at is null order by h.found_at";

/* Frees only shards whose loss is accepted, because another loss may be found meanwhile. New numbers are above all that
 * were ever used. */
static const char accept_sql[] =
    "set standard_conforming_strings = on;"
    " update sagad.history_loss h set accepted_at = clock_timestamp(), accepted_by = %s || ', ' || current_user, note "
    "= %s"
    " where h.accepted_at is null returning " LOSS_COLUMNS ";"
    " update sagad.shard s set epoch = greatest(s.epoch, k.epoch) + 1, turns = greatest(s.turns, k.turns), owner = "
    "null, owner_identity = null,"
    " expires_at = null from (select h.shard, max(h.epoch) as epoch, max(h.turns) as turns from sagad.history_shard h"
    " join sagad.history_loss l on l.id = h.loss where l.accepted_at is not null group by h.shard) as k"
    " where s.shard = k.shard and s.owner_identity in (select 'loss/' || l.id from sagad.history_loss l where "
    "l.accepted_at is not null);"
    " notify sagad_leases";

static const char older_sql[] =
    "select count(*) from sagad.engine e where e.expires_at > clock_timestamp() and e.schema < %d";

struct losses {
    void (*progress)(const char *line);
    const char *verb;
    int count;
    bool has_older;
};

static void on_loss(void *context, int columns, const char *const *values)
{
    struct losses *losses = context;
    char line[1024];

    if (columns == 7) {
        losses->count++;
        (void)snprintf(
            line, sizeof(line),
            "%s: missing since %s, found by the engine %s: %s; shards: %s; turns, at most: %s; known by name: %s; %s",
            losses->verb, values[0], values[1], values[2], values[3], values[4], values[5],
            values[6]); /* a cut text is good enough */
        losses->progress(line);
    }
}

static void on_older(void *context, int columns, const char *const *values)
{
    ((struct losses *)context)->has_older = columns == 1 && values[0] && strcmp(values[0], "0") != 0;
}

/* Writes a text as a literal with doubled quotes; standard_conforming_strings is on. Returns false when it does not
 * fit. */
static bool quote(const char *text, char *out, size_t bytes)
{
    size_t at = 0;

    out[at++] = '\'';
    for (; *text; text++) {
        if (at + 4 > bytes) {
            return false;
        }
        if (*text == '\'') {
            out[at++] = '\'';
        }
        out[at++] = *text;
    }
    out[at++] = '\'';
    out[at] = '\0';
    return true;
}

/* Refuses while older engines run. Forgotten calls count as unknown only in engines that look them up. */
static enum err_code refuse_beside_older(struct db_session *session, struct losses *losses, struct err *err)
{
    char sql[sizeof(older_sql) + 12];
    enum err_code code;

    (void)snprintf(sql, sizeof(sql), older_sql, KNOWING_SCHEMA); /* it fits */
    code = db_session_run(session, sql, on_older, losses, err);
    if (code == ERR_OK && losses->has_older) {
        err_set(err, ERR_BUSY,
                "an engine of an earlier release runs on this database, and would make forgotten calls again");
        err_hint(err, "stop it, wait until its lease is over, and run this again");
        return ERR_BUSY;
    }
    return code;
}

static enum err_code accept_all(struct db_session *session, struct losses *losses, const char *who, const char *note,
                                struct err *err)
{
    char sql[SQL_BYTES];
    enum err_code code = refuse_beside_older(session, losses, err);

    if (code != ERR_OK) {
        return code;
    }
    losses->verb = "accepted";
    (void)snprintf(sql, sizeof(sql), accept_sql, who, note); /* the text fits, because both parts are bounded */
    code = db_session_run(session, sql, on_loss, losses, err);
    if (code == ERR_OK && losses->count == 0) {
        (void)err_set(err, ERR_CONFLICT, "no engine has found another history in this database");
        err_hint(err, "nothing waits to be accepted; look at /readyz for why an engine is not ready");
        return ERR_CONFLICT;
    }
    return code;
}

enum err_code accept_history(const char *dsn, const char *who, const char *note, void (*progress)(const char *line),
                             struct err *err)
{
    char quoted_note[2 * HISTORY_NOTE_BYTES_MAX + 8], quoted_who[160];
    struct losses losses = {.progress = progress, .verb = "waits"};
    struct db_session *session = NULL;
    bool is_good = note && note[0] && strlen(note) <= HISTORY_NOTE_BYTES_MAX &&
                   quote(note, quoted_note, sizeof(quoted_note)) && quote(who, quoted_who, sizeof(quoted_who));
    enum err_code code = db_session_open(dsn, "sagad accept-history", &session, err);

    if (code != ERR_OK) {
        return code;
    }
    code = is_good ? accept_all(session, &losses, quoted_who, quoted_note, err)
                   : db_session_run(session, waiting_sql, on_loss, &losses, err);
    db_session_close(session);
    if (code == ERR_OK && !is_good) {
        (void)err_set(err, ERR_CONFIG, "accepting another history needs a note of at most %d bytes",
                      HISTORY_NOTE_BYTES_MAX);
        err_hint(err, "sagad accept-history --note \"why the database may go on without what is missing\"");
        return ERR_CONFIG;
    }
    return code;
}
