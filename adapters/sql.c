/*
 * A tool that is one SQL statement, in a transaction of its own.
 *
 * The stages are: connect, BEGIN, [insert the key into the barrier], [insert the key of the undone operation], the
 * statement, [store its answer in the barrier], COMMIT. Each stage is answered before the next is sent. A transaction
 * whose connection is gone cannot commit, so nothing has an effect until COMMIT leaves. Only the answer to COMMIT
 * itself can be lost.
 *
 * The barrier (schema/barrier.sql) settles that case: the key is in the table if and only if the effect took place. We
 * look by inserting the key again and rolling back. While the first transaction still runs, the unique index makes us
 * wait for its end. An undo leaves the same insert in the table, so that an operation which arrives later has no
 * effect.
 */
#include <stdio.h>
#include <string.h>

#include "adapters/adapters.h"
#include "adapters/answer.h"
#include "adapters/sql_check.h"
#include "adapters/sql_rows.h"
#include "adapters/sql_text.h"
#include "io/postgres/pool.h"

enum { LOSSES_MAX = 3, PATIENCE_MS = 1000 };

enum sql_stage { STAGE_CONNECT, STAGE_BEGIN, STAGE_KEY, STAGE_UNDO, STAGE_STATEMENT, STAGE_RECORD, STAGE_COMMIT };

enum barrier_verdict { VERDICT_DONE, VERDICT_NOTHING, VERDICT_VOID };

static const char *const verdict_names[] = {
    [VERDICT_DONE] = "done", [VERDICT_NOTHING] = "nothing", [VERDICT_VOID] = "void"};

struct sql_call {
    struct call call;
    struct deferred refuse;
    struct timer timer;
    struct db_wish wish;
    struct db_link *link;
    struct db_ask ask;
    enum sql_stage stage;
    int64_t due_boot_ms;
    bool barrier, looking, cancelled;
    int losses; /* connections of this call that were dead when they came out of the pool */
    const char *key, *undoes;
    struct sql_text text;
    const char **params;
    int param_count;
    char begin[640];
    struct sql_rows rows;
    struct slice answer; /* the answer of the statement, from this call or the first one */

    bool repeated; /* the barrier had the key before */
    bool undo_due; /* the barrier says that the operation took effect and nobody has undone it */
    enum barrier_verdict verdict;
};

/* --- the end ------------------------------------------------------------------------------------------------- */

static void sql_settle(struct sql_call *s)
{
    struct db_link *link = s->link;

    s->link = NULL;
    timer_stop(s->call.host->loop, &s->timer);
    sql_rows_fini(&s->rows);
    if (link) {
        db_link_give(link);
    }
    call_settle(&s->call);
}

static void drop(struct sql_call *s)
{
    if (s->link) {
        db_link_drop(s->link);
        s->link = NULL;
    }
}

/* Nothing took effect: this attempt sent no COMMIT, or the server refused it. */
static void settle_without_effect(struct sql_call *s, bool retry, const char *error, const char *detail)
{
    answer_unsent(&s->call, retry, error, detail);
    s->call.outcome.unsent = false;
    sql_settle(s);
}

static void settle_unsent(struct sql_call *s, bool retry, const char *error, const char *detail)
{
    answer_unsent(&s->call, retry, error, detail);
    sql_settle(s);
}

static void settle_unknown(struct sql_call *s, const char *error, const char *detail)
{
    answer_unknown(&s->call, error, detail);
    sql_settle(s);
}

static void settle_answer(struct sql_call *s)
{
    s->call.response = s->answer;
    s->call.outcome = (struct outcome){.kind = OUTCOME_COMPLETED, .result = s->answer};
    sql_settle(s);
}

/* Is this an SQLSTATE after which the same statement may succeed? Each of them has rolled its transaction back. */
static bool state_passes(const char *state)
{
    static const char *const whole_classes[] = {"08", "53", "58"}; /* connection, resources, the server's system */
    static const char *const states[] = {
        "40000", "40001", "40P01",                            /* rollback, serialization, deadlock */
        "57014",                                              /* cancelled, by our timeout too */
        "57P01", "57P02", "57P03", "57P05", "25P03", "25P04", /* ended, starting, timeouts of the server */
        "55P03", "55006",                                     /* lock not available, object in use */
    };

    for (size_t i = 0; i < COUNT_OF(whole_classes); i++) {
        if (strncmp(state, whole_classes[i], 2) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        if (strcmp(state, states[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* The server's message about a refused value (class 22) quotes the value, and other messages may quote a parameter.
 * Either may be a secret. */
static const char *words_of(const struct sql_call *s)
{
    if (strncmp(s->ask.sqlstate, "22", 2) == 0) {
        return "The database refused a value.";
    }
    for (int i = 0; i < s->param_count; i++) {
        if (s->params[i] && strlen(s->params[i]) > 2 && strstr(s->ask.message, s->params[i])) {
            return "The database refused the statement; its words quote a parameter, and are left out.";
        }
    }
    return s->ask.message;
}

static void settle_refused(struct sql_call *s)
{
    const struct db_ask *ask = &s->ask;
    bool retry = state_passes(ask->sqlstate);
    char error[32];

    /* The other server of a pair was promoted while we kept the connection to the former primary. */
    bool standby = strcmp(ask->sqlstate, "25006") == 0 && s->call.send_key;

    if (standby) {
        drop(s);
    }
    if (s->stage == STAGE_KEY && (strcmp(ask->sqlstate, "42P01") == 0 || strcmp(ask->sqlstate, "3F000") == 0)) {
        settle_without_effect(s, false, "no-barrier",
                              "This database has no barrier; install schema/barrier.sql in it.");
        return;
    }
    (void)snprintf(error, sizeof(error), "sql-%s", ask->sqlstate);
    settle_without_effect(s, retry || standby, error, words_of(s));
}

static void stage_next(struct sql_call *s, enum sql_stage stage);

/* The answer to COMMIT was lost: nobody knows whether COMMIT arrived. */
static void commit_lost(struct sql_call *s, const char *detail)
{
    if (!s->call.send_key) {
        settle_without_effect(s, true, "lost", "The connection to the database was lost.");
    } else if (s->barrier && !s->looking) {
        s->looking = true;
        stage_next(s, STAGE_CONNECT);
    } else {
        settle_unknown(s, "commit-lost", detail);
    }
}

/* The call's time is over, or nobody wants its answer any more. */
static void give_up(struct sql_call *s, const char *error, const char *detail)
{
    bool unsent = s->stage == STAGE_CONNECT, committing = s->stage == STAGE_COMMIT;

    if (unsent) {
        db_pool_forget(s->call.host->databases, &s->wish);
    }
    drop(s);
    if (s->looking || (committing && s->call.send_key)) {
        settle_unknown(s, error, detail);
    } else if (unsent) {
        settle_unsent(s, true, error, detail);
    } else {
        settle_without_effect(s, true, error, detail);
    }
}

static void on_timeout(struct timer *timer)
{
    struct sql_call *s = container_of(timer, struct sql_call, timer);

    if (s->cancelled) {
        give_up(s, "cancelled",
                s->stage == STAGE_COMMIT ? "It was cancelled while the COMMIT was under way."
                                         : "It was cancelled and rolled back.");
        return;
    }
    give_up(s, "timeout",
            s->stage == STAGE_CONNECT  ? "There was no connection to the database within the timeout of the tool."
            : s->stage == STAGE_COMMIT ? "The COMMIT was not confirmed within the timeout of the tool."
                                       : "The statement took longer than the timeout of the tool; it was rolled back.");
}

/* --- the stages ---------------------------------------------------------------------------------------------- */

#define BARRIER "sagad_barrier.operation"

static const char key_sql[] =
    "INSERT INTO " BARRIER " AS o (key) VALUES ($1::uuid) ON CONFLICT (key) DO UPDATE SET asked = o.asked + 1 "
    "RETURNING asked, verdict, response::text";

/* Marks the operation that this call undoes. When the barrier does not know its key, the key is void from now on. When
 * the operation took effect and is not undone, this call undoes it. */
static const char undo_sql[] =
    "INSERT INTO " BARRIER " AS o (key, verdict, undone_by) VALUES ($1::uuid, 'void', $2::uuid) "
    "ON CONFLICT (key) DO UPDATE SET undone_by = coalesce(o.undone_by, excluded.undone_by) "
    "RETURNING verdict = 'done' AND undone_by = $2::uuid";

static const char record_sql[] = "UPDATE " BARRIER " SET verdict = $2, response = $3::json WHERE key = $1::uuid";

static void on_key_row(struct db_ask *ask, const struct db_row *row)
{
    struct sql_call *s = container_of(ask, struct sql_call, ask);
    struct slice verdict = db_row_value(row, 1), response = db_row_value(row, 2);

    s->repeated = !slice_is(db_row_value(row, 0), "1");
    s->answer = arena_slice(s->call.arena, response);
    for (size_t i = 0; i < COUNT_OF(verdict_names); i++) {
        if (slice_is(verdict, verdict_names[i])) {
            s->verdict = (enum barrier_verdict)i;
        }
    }
}

static void on_undo_row(struct db_ask *ask, const struct db_row *row)
{
    container_of(ask, struct sql_call, ask)->undo_due = slice_is(db_row_value(row, 0), "t");
}

static void on_row(struct db_ask *ask, const struct db_row *row)
{
    ask->stop = !sql_rows_add(&container_of(ask, struct sql_call, ask)->rows, row);
}

static bool answer_is_readable(const struct sql_call *s)
{
    struct json_limits limits = json_limits_default;

    limits.bytes_max = SIZE_MAX;
    return s->answer.ptr && json_check(s->answer, &limits, NULL) == ERR_OK;
}

static void after_key(struct sql_call *s)
{
    if (s->looking && !s->repeated) {
        drop(s); /* the insert of our look must not stay */
        settle_without_effect(s, true, "commit-failed",
                              "The connection was lost at the COMMIT; the barrier says that it did not happen.");
    } else if (!s->repeated) {
        stage_next(s, s->undoes ? STAGE_UNDO : STAGE_STATEMENT);
    } else if (s->verdict == VERDICT_VOID) {
        settle_without_effect(s, false, "voided", "It was undone before it came; it must not take effect any more.");
    } else if (!answer_is_readable(s)) {
        settle_unknown(s, "unreadable", "The barrier knows this key, but not what its statement gave.");
    } else {
        stage_next(s, STAGE_COMMIT); /* this COMMIT has a write, so it waits for the standby; the first COMMIT may not
                                        have waited */
    }
}

/* Did the statement change no row? UPDATE, INSERT, DELETE and MERGE say so by their count; other statements do not. */
static bool changed_nothing(const struct sql_call *s)
{
    static const char *const writes[] = {"UPDATE", "INSERT", "DELETE", "MERGE"};

    for (size_t i = 0; i < COUNT_OF(writes); i++) {
        if (slice_is(s->text.command, writes[i])) {
            return s->ask.affected == 0;
        }
    }
    return false;
}

static void after_statement(struct sql_call *s)
{
    if (!db_link_in_transaction(s->link)) {
        settle_unknown(s, "transaction-ended", "The statement ended the transaction that it ran in.");
        return;
    }
    s->answer = sql_rows_end(&s->rows, s->ask.affected, s->call.arena);
    if (!s->answer.ptr) {
        settle_without_effect(s, false, s->rows.error, s->rows.detail);
        return;
    }
    s->verdict = changed_nothing(s) ? VERDICT_NOTHING : VERDICT_DONE;
    stage_next(s, s->barrier ? STAGE_RECORD : STAGE_COMMIT);
}

static void after_commit(struct sql_call *s)
{
    if (s->ask.unconfirmed && s->call.send_key) {
        if (s->looking) {
            settle_unknown(s, "unconfirmed",
                           "It was committed, but the database did not confirm that it reached its standby.");
        } else {
            drop(s);
            commit_lost(s, "It was committed, but the database did not confirm that it reached its standby.");
        }
    } else if (strcmp(s->ask.tag, "COMMIT") != 0) {
        settle_without_effect(s, true, "rolled-back", "The database rolled the transaction back at its COMMIT.");
    } else {
        settle_answer(s);
    }
}

static void on_answer(struct db_ask *ask)
{
    struct sql_call *s = container_of(ask, struct sql_call, ask);

    switch (ask->answer) {
    case DB_ANSWER_DONE:
        break;
    case DB_ANSWER_REFUSED:
        if (s->looking) {
            settle_unknown(s, "commit-lost",
                           "The connection was lost at the COMMIT, and the barrier could not be asked.");
        } else {
            settle_refused(s);
        }
        return;
    case DB_ANSWER_LOST:
        drop(s);
        if (s->stage == STAGE_COMMIT) {
            commit_lost(s, "The connection was lost at the COMMIT.");
        } else if (s->stage == STAGE_BEGIN && s->losses < LOSSES_MAX) {
            s->losses++; /* the connection died in the pool */
            stage_next(s, STAGE_CONNECT);
        } else if (s->looking) {
            settle_unknown(s, "commit-lost",
                           "The connection was lost at the COMMIT, and again while the barrier was asked.");
        } else if (s->rows.error) {
            settle_without_effect(s, false, s->rows.error, s->rows.detail);
        } else if (ask->sqlstate[0]) {
            settle_refused(s);
        } else {
            settle_without_effect(s, true, "lost", "The connection was lost before the COMMIT: it was rolled back.");
        }
        return;
    }
    switch (s->stage) {
    case STAGE_CONNECT:
        break; /* this stage sends no statement */
    case STAGE_BEGIN:
        stage_next(s, s->barrier ? STAGE_KEY : STAGE_STATEMENT);
        return;
    case STAGE_KEY:
        after_key(s);
        return;
    case STAGE_UNDO:
        if (s->undo_due) {
            stage_next(s, STAGE_STATEMENT);
        } else {
            s->answer = SLICE("{\"rows\":[],\"count\":0,\"absent\":true}");
            s->verdict = VERDICT_NOTHING;
            stage_next(s, STAGE_RECORD);
        }
        return;
    case STAGE_STATEMENT:
        after_statement(s);
        return;
    case STAGE_RECORD:
        stage_next(s, STAGE_COMMIT);
        return;
    case STAGE_COMMIT:
        after_commit(s);
        return;
    }
    UNREACHABLE();
}

static void on_connected(struct db_wish *wish)
{
    struct sql_call *s = container_of(wish, struct sql_call, wish);
    char detail[sizeof(wish->err.message) + sizeof(wish->err.hint) + 8];

    if (wish->lent) {
        s->link = wish->lent;
        if (!s->looking && !call_may_leave(&s->call)) {
            settle_unsent(s, true, "withheld", OUTCOME_WITHHELD_DETAIL("there was a connection for it"));
            return;
        }
        stage_next(s, STAGE_BEGIN);
        return;
    }
    (void)snprintf(detail, sizeof(detail), "%s; %s.", wish->err.message,
                   wish->err.hint); /* the words of libpq are left out, because they may quote secrets */
    if (s->looking) {
        settle_unknown(s, "commit-lost",
                       "The connection was lost at the COMMIT, and no other one came about to ask the barrier.");
    } else if (wish->err.code == ERR_FORBIDDEN) {
        settle_unsent(s, true, OUTCOME_EGRESS_DENIED, OUTCOME_EGRESS_DENIED_DETAIL);
    } else {
        settle_unsent(s, wish->err.code != ERR_CONFIG, "no-connection", detail);
    }
}

static void ask(struct sql_call *s, const char *sql, const char *const *params, int count,
                void (*rows)(struct db_ask *, const struct db_row *))
{
    s->ask = (struct db_ask){
        .sql = sql, .plain = !params, .params = params, .param_count = count, .on_row = rows, .done = on_answer};
    db_link_ask(s->link, &s->ask);
}

/*
 * The settings are LOCAL, so that a pooler which changes sessions does no harm. They fix the text formats, and they
 * make the server end a statement that we gave up.
 */
static const char *begin_text(struct sql_call *s)
{
    int64_t left_ms = s->due_boot_ms - loop_boot_ms(s->call.host->loop);

    left_ms = left_ms > 1 ? left_ms : 1;
    (void)snprintf(
        s->begin, sizeof(s->begin),
        "BEGIN%s; SET LOCAL statement_timeout = %lld; SET LOCAL idle_in_transaction_session_timeout = %lld; "
        "SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'; SET LOCAL IntervalStyle = 'iso_8601'; "
        "SET LOCAL extra_float_digits = 1; SET LOCAL bytea_output = 'hex'; SET LOCAL standard_conforming_strings = on; "
        "SET LOCAL client_min_messages = 'warning'",
        s->call.send_key ? "" : " READ ONLY", (long long)left_ms, (long long)left_ms + 5000);
    return s->begin;
}

/* Keeps parameters of the barrier's statements as long as the call. */
static const char *const *keep_params(struct sql_call *s, const char *first, const char *second, const char *third)
{
    const char **params = arena_array(s->call.arena, 3, sizeof(*params));

    params[0] = first;
    params[1] = second;
    params[2] = third;
    return params;
}

static void stage_next(struct sql_call *s, enum sql_stage stage)
{
    s->stage = stage;
    switch (stage) {
    case STAGE_CONNECT:
        db_pool_wish(s->call.host->databases, &s->wish);
        return;
    case STAGE_BEGIN:
        ask(s, begin_text(s), NULL, 0, NULL);
        return;
    case STAGE_KEY:
        ask(s, key_sql, keep_params(s, s->key, NULL, NULL), 1, on_key_row);
        return;
    case STAGE_UNDO:
        ask(s, undo_sql, keep_params(s, s->undoes, s->key, NULL), 2, on_undo_row);
        return;
    case STAGE_STATEMENT:
        sql_rows_init(&s->rows, s->call.host->response_bytes_max);
        ask(s, s->text.text.ptr, s->params, s->param_count, on_row);
        return;
    case STAGE_RECORD:
        ask(s, record_sql, keep_params(s, s->key, verdict_names[s->verdict], arena_text(s->call.arena, s->answer)), 3,
            NULL);
        return;
    case STAGE_COMMIT:
        ask(s, "COMMIT", NULL, 0, NULL);
        return;
    }
    UNREACHABLE();
}

/* --- the start ----------------------------------------------------------------------------------------------- */

static void on_refuse(struct deferred *deferred)
{
    sql_settle(container_of(deferred, struct sql_call, refuse));
}

/* Returns the text of a parameter. Arrays and objects are one parameter, as JSON. */
static const char *param_text(struct slice value, struct arena *arena)
{
    switch (json_type(value)) {
    case JSON_STRING:
        return arena_text(arena, json_string(value, arena));
    case JSON_NUMBER:
    case JSON_BOOL:
    case JSON_ARRAY:
    case JSON_OBJECT:
        return arena_text(arena, json_trim(value));
    case JSON_NONE:
    case JSON_NULL:
        return NULL;
    }
    UNREACHABLE();
}

/* Returns NULL, or a sentence that says what is wrong with the rendered settings. */
static const char *statement_take(struct sql_call *s)
{
    struct call *call = &s->call;
    struct slice params = json_member(call->settings, "params"), statement = json_member(call->settings, "statement"),
                 element;
    struct json_walk walk = json_walk(params);
    size_t count = json_count(params);
    const char *fault;

    if (params.ptr && json_type(params) != JSON_ARRAY) {
        return "The rendered \"params\" is no array.";
    }
    if (count >= SQL_PARAMS_MAX || json_type(statement) != JSON_STRING) {
        return "The rendered \"statement\" is no text, or has too many parameters.";
    }
    fault = sql_text_read(json_string(statement, call->arena), (int)count, call->arena, &s->text);
    if (fault) {
        return fault;
    }
    s->params = arena_array(call->arena, count + 1, sizeof(*s->params));
    while (count > 0 && json_next_element(&walk, &element)) {
        s->params[s->param_count++] = param_text(element, call->arena);
    }
    if (s->text.highest > s->param_count) {
        return "The statement has more parameters than \"params\" has elements.";
    }
    if (s->text.has_key) {
        s->params[s->param_count++] = s->key;
    }
    return NULL;
}

static void sql_begin(struct call *call)
{
    struct sql_call *s = container_of(call, struct sql_call, call);
    struct slice database = json_member(call->settings, "database");
    const char *fault;

    s->key = arena_text(call->arena, call->key);
    s->undoes = call->undoes.ptr ? arena_text(call->arena, call->undoes) : NULL;
    s->barrier = call->send_key && sql_has_barrier(call->settings);
    fault = json_type(database) == JSON_STRING ? statement_take(s) : "The rendered \"database\" is no text.";
    if (fault) {
        answer_unsent(call, false, "bad-settings", fault);
        loop_defer(call->host->loop, &s->refuse, on_refuse);
        return;
    }
    s->undoes = s->barrier ? s->undoes : NULL;
    s->due_boot_ms = loop_boot_ms(call->host->loop) + call->timeout_ms;
    timer_start(call->host->loop, &s->timer, call->timeout_ms, on_timeout);
    s->wish.dsn = arena_text(call->arena, json_string(database, call->arena));
    s->wish.done = on_connected;
    stage_next(s, STAGE_CONNECT);
}

static void sql_cancel(struct call *call)
{
    struct sql_call *s = container_of(call, struct sql_call, call);

    if (timer_running(&s->timer) && !s->cancelled) {
        int64_t left_ms = s->due_boot_ms - loop_boot_ms(call->host->loop);

        s->cancelled = true;
        /* The timer gives up, because nothing may be settled inside cancel(). A COMMIT may still be answered within
         * that moment. */
        timer_start(call->host->loop, &s->timer,
                    s->stage != STAGE_COMMIT || left_ms <= 0 ? 0
                    : left_ms < PATIENCE_MS                  ? left_ms
                                                             : PATIENCE_MS,
                    on_timeout);
    }
}

const struct adapter adapter_sql = {
    .name = "sql",
    .call_size = sizeof(struct sql_call),
    .check = sql_check,
    .begin = sql_begin,
    .cancel = sql_cancel,
    .shares_keys = sql_shares_keys,
};
