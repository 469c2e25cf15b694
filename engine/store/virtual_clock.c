/*
 * See virtual_clock.h. The two statements are here and not in sql.h, because only these databases
 * have what they ask. The clock is moved in one transaction with the leases, so that none of them is over because of
 * it: leases are about the process, which has not been away.
 */
#include "store/virtual_clock.h"

#include "io/postgres/db.h"
#include "store/store_state.h"

static const char make_sql[] =
    "begin;"
    " set local client_min_messages = warning;"
    " create schema if not exists sagad_clock;"
    " create table if not exists sagad_clock.ahead (one bool primary key default true check (one), ms int8 not null);"
    " insert into sagad_clock.ahead (ms) values (0) on conflict do nothing;"
    " create or replace function sagad_clock.clock_timestamp() returns timestamptz language sql volatile as"
    " 'select pg_catalog.clock_timestamp() + a.ms * interval ''1 millisecond'' from sagad_clock.ahead a';"
    " create or replace function sagad_clock.now() returns timestamptz language sql stable as"
    " 'select pg_catalog.now() + a.ms * interval ''1 millisecond'' from sagad_clock.ahead a';"
    " create or replace function sagad_clock.move(to_ms int8, most_ms int8) returns bool"
    " language plpgsql as $$"
    " declare step int8;"
    " begin"
    "  if to_ms > most_ms then return false; end if;"
    "  select greatest(to_ms - a.ms, 0) into step from sagad_clock.ahead a for update;"
    "  update sagad_clock.ahead a set ms = a.ms + step;"
    "  update sagad.engine e set expires_at = e.expires_at + step * interval '1 millisecond';"
    "  update sagad.shard s set expires_at = s.expires_at + step * interval '1 millisecond'"
    "   where s.expires_at is not null;"
    "  return true;"
    " end $$;"
    " commit";

static const struct db_statement sql_clock_move = {
    "clock_move",
    "select sagad.act_told(m.moved::int4, case when m.moved then $3::text end, null)"
    " from (select sagad_clock.move($1::int8, $2::int8) as moved) as m",
    .has_row = true,
};

/* What stays where it is when its time has come counts only while that is ahead: a breaker is open until a call tries,
 * an ended saga may be pinned by a debt, a notification waits for a receiver that rests. */
static const struct db_statement sql_clock_read = {
    "clock_read",
    "select (extract(epoch from n.now) * 1000)::int8, n.ms, coalesce((extract(epoch from least("
    "(select min(d.at) from sagad.due d where d.what = 'parked' and d.holds is null and isfinite(d.at)),"
    " (select min(d.at) from sagad.due d where d.what = 'forget' and d.at > n.now and isfinite(d.at)),"
    " (select min(s.look_at) from sagad.schedule s where s.hold is null),"
    " (select min(h.until_at) from sagad.hold h where h.released_at is null and not h.ended_told),"
    " (select min(b.open_until) from sagad.guard_breaker b where b.state = 'open' and b.open_until > n.now),"
    " (select min(g.paused_until) from sagad.guard g where g.paused_until > n.now),"
    " (select min(t.look_at) from sagad.notification t where t.state = 'pending' and t.look_at > n.now)"
    ")) * 1000)::int8, 0)"
    " from (select sagad_clock.clock_timestamp() as now, a.ms from sagad_clock.ahead a) as n",
    .has_row = true,
};

static const char present_sql[] = "select (to_regclass('sagad.schema_version') is not null)::int,"
                                  " (to_regnamespace('sagad_clock') is not null)::int";

struct found {
    bool has_schema, has_clock;
};

static void on_present(void *context, int columns, const char *const *values)
{
    struct found *found = context;

    found->has_schema = columns == 2 && values[0] && values[0][0] == '1';
    found->has_clock = columns == 2 && values[1] && values[1][0] == '1';
}

enum err_code virtual_clock_make(const char *dsn, struct err *err)
{
    struct db_session *session = NULL;
    struct found found = {false, false};
    enum err_code code = db_session_open(dsn, "sagad clock", &session, err);

    if (code == ERR_OK) {
        code = db_session_run(session, present_sql, on_present, &found, err);
    }
    if (code == ERR_OK && found.has_schema && !found.has_clock) {
        code = err_set(err, ERR_CONFIG, "this cluster was made without a virtual clock, and cannot get one any more");
        err_hint(err, "give `sagad dev --clock virtual` a folder of its own: --dir DIR");
    } else if (code == ERR_OK) {
        code = db_session_run(session, make_sql, NULL, NULL, err);
    }
    db_session_close(session);
    return code;
}

static void on_moved(struct db_query *query, const struct db_rows *rows)
{
    ((struct job *)query->context)->found = db_int(rows, 0, 0) != 0;
}

static void on_clock(struct db_query *query, const struct db_rows *rows)
{
    struct clock_move *move = ((struct job *)query->context)->request;

    move->now_ms = db_int(rows, 0, 0);
    move->ahead_ms = db_int(rows, 0, 1);
    move->next_ms = db_int(rows, 0, 2);
}

void store_clock_move(struct store *store, struct clock_move *move)
{
    struct job *job = read_job(store, &move->read, move);

    if (move->to_ms > 0) {
        struct db_args *args = job_query(job, &sql_clock_move, on_moved);

        job->writes = job->wants_one = true;
        db_arg_int8(args, move->to_ms);
        db_arg_int8(args, VIRTUAL_CLOCK_AHEAD_MS_MAX);
        db_arg_text(args, move->act);
    }
    (void)job_query(job, &sql_clock_read, on_clock); /* this statement takes no parameters */
    job_submit(job);
}
