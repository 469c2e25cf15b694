/* Asks and tells the guards. guard.h explains them, and the functions in schema/migrations/0006_guard.sql decide. */
#include "store/guard.h"

#include "store/store_state.h"

enum { NEVER_AGAIN = 1000 }; /* more tries than a job may have */

/* Returns the shard of a row with this name: any shard, but always the same. */
static int shard_of(struct slice namespace, struct slice name)
{
    const struct slice fields[] = {namespace, name};

    return digest_fields("guard", fields, COUNT_OF(fields)).bytes[0] % SHARD_COUNT;
}

static void arg_uuid(struct db_args *args, const struct uuid *uuid)
{
    db_arg_uuid(args, uuid);
}

static void arg_tool(struct db_args *args, struct slice namespace, struct slice tool, struct slice endpoint)
{
    db_arg_int2(args, shard_of(namespace, tool));
    db_arg_text(args, namespace);
    db_arg_text(args, tool);
    db_arg_text(args, endpoint.ptr ? endpoint : SLICE(""));
}

static void arg_budget_keys(struct db_args *args, const struct guard_budget *budgets, size_t count)
{
    db_array_begin(args, DB_INT2, count);
    for (size_t i = 0; i < count; i++) {
        db_item_int(args, shard_of(SLICE(""), budgets[i].name));
    }
    db_array_end(args);
    db_array_begin(args, DB_TEXT, count);
    for (size_t i = 0; i < count; i++) {
        db_item_bytes(args, budgets[i].name);
    }
    db_array_end(args);
    db_array_begin(args, DB_TIMESTAMPTZ, count);
    for (size_t i = 0; i < count; i++) {
        db_item_timestamptz(args, budgets[i].period_start_ms);
    }
    db_array_end(args);
}

#define ARG_NUMBERS(args, budgets, count, member)                                                                      \
    do {                                                                                                               \
        db_array_begin(args, DB_INT8, count);                                                                          \
        for (size_t i_ = 0; i_ < (count); i_++) {                                                                      \
            db_item_int(args, (budgets)[i_].member);                                                                   \
        }                                                                                                              \
        db_array_end(args);                                                                                            \
    } while (0)

/* --- ask --- */

static enum guard_verdict verdict_parse(struct slice text)
{
    static const struct {
        const char *name;
        enum guard_verdict verdict;
    } names[] = {{"granted", GUARD_GRANTED},  {"rate", GUARD_RATE},     {"concurrency", GUARD_CONCURRENCY},
                 {"breaker", GUARD_BREAKER},  {"paused", GUARD_PAUSED}, {"budget", GUARD_BUDGET},
                 {"unpriced", GUARD_UNPRICED}};

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (slice_is(text, names[i].name)) {
            return names[i].verdict;
        }
    }
    return GUARD_PAUSED; /* an unknown answer is no permission */
}

static void on_asked(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct guard_ask *ask = job->request;

    job->found = db_row_count(rows) == 1;
    if (job->found) {
        ask->verdict = verdict_parse(db_bytes(rows, 0, 0));
        ask->retry_after_ms = db_int(rows, 0, 1);
        ask->is_breaker_probe = db_int(rows, 0, 2) != 0;
    }
}

void store_guard_ask(struct store *store, struct guard_ask *ask)
{
    struct job *job = read_job(store, &ask->read, ask);
    struct db_args *args = job_query(job, &sql_guard_ask, on_asked);

    CHECK(ask->budget_count <= GUARD_BUDGETS_MAX && ask->place_ms > 0);
    job->writes = job->wants_one = true;
    arg_tool(args, ask->namespace, ask->tool, ask->endpoint);
    db_arg_int8(args, ask->rate.limit);
    db_arg_int8(args, ask->rate.per_ms);
    db_arg_int8(args, ask->concurrency);
    db_arg_int8(args, ask->breaker.failures);
    db_arg_int8(args, ask->place_ms);
    arg_uuid(args, &ask->holder);
    db_arg_bool(args, ask->safe_to_repeat);
    arg_uuid(args, &ask->operation);
    arg_budget_keys(args, ask->budgets, ask->budget_count);
    ARG_NUMBERS(args, ask->budgets, ask->budget_count, calls_max);
    ARG_NUMBERS(args, ask->budgets, ask->budget_count, emissions_max);
    ARG_NUMBERS(args, ask->budgets, ask->budget_count, micros_max);
    ARG_NUMBERS(args, ask->budgets, ask->budget_count, calls);
    ARG_NUMBERS(args, ask->budgets, ask->budget_count, emissions);
    ARG_NUMBERS(args, ask->budgets, ask->budget_count, micros);
    job_submit(job);
}

/* --- tell --- */

static enum breaker_state state_parse(struct slice text)
{
    return slice_is(text, "open") ? BREAKER_OPEN : slice_is(text, "half_open") ? BREAKER_HALF_OPEN : BREAKER_CLOSED;
}

static void on_told(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct guard_tell *tell = job->request;

    if (db_row_count(rows) == 1) {
        tell->breaker_state = state_parse(db_bytes(rows, 0, 0));
        tell->breaker_changed = db_int(rows, 0, 1) != 0;
    }
}

static const char *charge_name(enum guard_charge charge)
{
    switch (charge) {
    case CHARGE_KEEP:
        return "keep";
    case CHARGE_GIVE_BACK:
        return "give_back";
    case CHARGE_SETTLE:
        return "settle";
    case CHARGE_UNPRICED:
        return "unpriced";
    }
    return "keep";
}

void store_guard_tell(struct store *store, struct guard_tell *tell)
{
    struct job *job = read_job(store, &tell->read, tell);
    struct db_args *args = job_query(job, &sql_guard_tell, on_told);

    job->writes = true;
    arg_tool(args, tell->namespace, tell->tool, tell->endpoint);
    db_arg_int8(args, tell->breaker.failures);
    db_arg_int8(args, tell->breaker.window_ms);
    db_arg_int8(args, tell->breaker.cooldown_ms);
    arg_uuid(args, &tell->holder);
    arg_uuid(args, &tell->operation);
    db_arg_text(args, tell->never_called || tell->no_verdict ? SLICE("none")
                      : tell->failed                         ? SLICE("failed")
                                                             : SLICE("well"));
    db_arg_bool(args, tell->never_called);
    db_arg_int8(args, tell->rate.limit > 0 ? tell->rate.per_ms * 1000 / tell->rate.limit : 0);
    db_arg_int8(args, tell->pause_ms);
    db_arg_text(args, slice_of(charge_name(tell->charge)));
    db_arg_int8(args, tell->cost_micros);
    job_submit(job);
}

/* --- price --- */

static void on_priced(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct guard_price *price = job->request;

    price->booked = db_row_count(rows) == 1 && db_int(rows, 0, 0) != 0;
}

void store_guard_price(struct store *store, struct guard_price *price)
{
    struct job *job = read_job(store, &price->read, price);
    struct db_args *args = job_query(job, &sql_guard_price, on_priced);

    job->writes = true;
    db_arg_int2(args, shard_of(price->namespace, price->tool));
    db_arg_text(args, price->namespace);
    db_arg_text(args, price->tool);
    arg_uuid(args, &price->operation);
    db_arg_int8(args, price->cost_micros);
    job_submit(job);
}

/* --- a person's word on the breaker --- */

void store_guard_breaker_set(struct store *store, struct guard_breaker_set *set)
{
    struct job *job = read_job(store, &set->read, set);
    struct db_args *args = job_query(job, &sql_guard_breaker_set, NULL);

    job->writes = true;
    db_arg_int2(args, shard_of(set->namespace, set->tool));
    db_arg_text(args, set->namespace);
    db_arg_text(args, set->tool);
    db_arg_bytea(args, set->open);
    db_arg_text(args, set->act);
    job_submit(job);
}

/* --- count --- */

void store_guard_count(struct store *store, struct guard_count *count)
{
    struct job *job = read_job(store, &count->read, count);
    struct db_args *args = job_query(job, &sql_guard_count, NULL);

    job->writes = true;
    job->tries = NEVER_AGAIN; /* an addition must not be repeated */
    arg_budget_keys(args, count->budgets, count->budget_count);
    ARG_NUMBERS(args, count->budgets, count->budget_count, calls);
    ARG_NUMBERS(args, count->budgets, count->budget_count, emissions);
    ARG_NUMBERS(args, count->budgets, count->budget_count, micros);
    job_submit(job);
}

/* --- list --- */

static void on_listed(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct guard_list *list = job->request;

    list->count = db_row_count(rows);
    list->rows = arena_array(job->arena, list->count + 1, sizeof(*list->rows));
    for (size_t i = 0; i < list->count; i++) {
        struct guard_row *row = &list->rows[i];

        row->namespace = arena_slice(job->arena, db_bytes(rows, i, 0));
        row->tool = arena_slice(job->arena, db_bytes(rows, i, 1));
        row->endpoint = arena_slice(job->arena, db_bytes(rows, i, 2));
        row->breaker_state = state_parse(db_bytes(rows, i, 3));
        row->open_until_ms = db_is_null(rows, i, 4) ? 0 : db_timestamptz(rows, i, 4);
        row->paused_until_ms = db_is_null(rows, i, 5) ? 0 : db_timestamptz(rows, i, 5);
        row->places_taken = (uint32_t)db_int(rows, i, 6);
        row->opened = (uint64_t)db_int(rows, i, 7);
        row->opened_by = db_is_null(rows, i, 8) ? SLICE_NONE : arena_slice(job->arena, db_bytes(rows, i, 8));
        row->open_since_ms = db_is_null(rows, i, 9) ? 0 : db_timestamptz(rows, i, 9);
    }
}

void store_guard_list(struct store *store, struct guard_list *list)
{
    struct job *job = read_job(store, &list->read, list);
    struct db_args *args = job_query(job, &sql_guard_list, on_listed);

    db_arg_text(args, list->namespace);
    job_submit(job);
}
