/* Approvals as the store keeps them, and sagas that are forgotten with everything they have once their retention is
 * over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/cases.h"
#include "store/store_state.h"
#include "tests/integration/store_host.h"
#include "tests/lib/test.h"

static struct host host;
static struct store *store;
static struct arena arena;
static bool done;

#define ASK(call, request) HOST_ASK(&host, store, &arena, call, request)

static struct saga_id start(uint32_t shard)
{
    return host_start_at(&host, store, host_saga(shard), "default");
}

static void ending(struct turn *turn, struct saga_id id, uint64_t seq)
{
    turn_next(turn, id, 0, seq, "saga.completed");
    turn->append.status_changed = turn->append.ended = true;
    turn->append.status = SAGA_COMPLETED;
}

/* --- loads --- */

static void on_saga(struct shard_load *load, struct saga_id id, struct slice namespace, const struct stored_turn *turns,
                    size_t count)
{
    (void)load;
    (void)id;
    (void)namespace;
    (void)turns;
    (void)count;
}

static void on_loaded(struct shard_load *load)
{
    (void)load;
    done = true;
}

static struct shard_load load(uint32_t shard)
{
    struct shard_load load = {.shard = shard, .on_saga = on_saga, .done = on_loaded};

    done = false;
    store_load_shard(store, &load);
    host_run_until(&host, host_is_set, &done);
    assert_int_equal(load.code, ERR_OK);
    return load;
}

/* --- approvals --- */

static void open_approval(struct turn *turn, struct append_approval *approval, struct saga_id id, uint64_t seq,
                          uint64_t number, int64_t expires_ms)
{
    *approval = (struct append_approval){.number = number,
                                         .opened = true,
                                         .step = SLICE("ask"),
                                         .status = SLICE("open"),
                                         .body = SLICE("{\"shown\": 1}"),
                                         .expires_ms = expires_ms};
    turn_next(turn, id, 0, seq, "step.waiting");
    turn->append.approvals = approval;
    turn->append.approval_count = 1;
}

TEST(an_approval_is_opened_and_decided_with_its_turn)
{
    struct saga_id id = start(40), elsewhere = host_start_at(&host, store, host_saga(40), "other");
    struct append_approval approval;
    struct turn turn = {0};
    struct list_questions list = {.kind = QUESTION_APPROVAL, .namespace = SLICE("default"), .limit = 3},
                          open = {.kind = QUESTION_APPROVAL,
                                  .namespace = SLICE("default"),
                                  .limit = 10,
                                  .open_only = true},
                          one = {.kind = QUESTION_APPROVAL, .namespace = SLICE("default"), .number = 2 * 64 + 40},
                          foreign = {.kind = QUESTION_APPROVAL, .namespace = SLICE("other"), .number = 2 * 64 + 40};

    for (uint64_t n = 1; n <= 4; n++) {
        open_approval(&turn, &approval, id, 1 + n, 64 * n + 40, n == 3 ? INT64_C(1893456000000) : 0);
        assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    }
    open_approval(&turn, &approval, elsewhere, 2, 64 * 5 + 40, 0);
    turn.append.namespace = SLICE("other");
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    turn_next(&turn, id, 0, 6, "approval.decided");
    approval = (struct append_approval){
        .number = 64 * 2 + 40, .status = SLICE("refused"), .body = SLICE("{\"decision\": \"refuse\"}")};
    turn.append.approvals = &approval;
    turn.append.approval_count = 1;
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);

    assert_int_equal(ASK(store_list_questions, &list), ERR_OK);
    assert_int_equal(list.count, 3);
    assert_true(list.rows[0].number == 64 * 4 + 40 && list.rows[0].open &&
                slice_is(list.rows[0].body, "{\"shown\": 1}"));
    assert_true(uuid_equal(&list.rows[0].saga.uuid, &id.uuid));
    assert_true(list.rows[2].number == 64 * 2 + 40 && !list.rows[2].open);
    list.before = list.rows[2].number;
    list.before_ms = list.rows[2].opened_ms;
    assert_int_equal(ASK(store_list_questions, &list), ERR_OK);
    assert_true(list.count == 1 && list.rows[0].number == 64 + 40);
    assert_int_equal(ASK(store_list_questions, &open), ERR_OK);
    assert_int_equal(open.count, 3);
    assert_int_equal(ASK(store_list_questions, &one), ERR_OK);
    assert_true(one.count == 1 && slice_is(one.rows[0].body, "{\"decision\": \"refuse\"}"));
    assert_int_equal(ASK(store_list_questions, &foreign), ERR_NOT_FOUND);
    assert_string_equal(
        host_text(
            &host,
            "select number, step, status, ended_at is null, expires_at at time zone 'utc' from sagad.approval where "
            "shard = 40 order by 1"),
        "104|ask|open|t|null\n168|ask|refused|f|null\n232|ask|open|t|2030-01-01 "
        "00:00:00\n296|ask|open|t|null\n360|ask|open|t|null\n");
    assert_int_equal(load(40).approval_number_max, 360);
    assert_int_equal(load(41).approval_number_max, 0);
}

TEST(an_approval_that_is_not_there_cannot_end)
{
    struct saga_id id = start(42);
    struct append_approval approval = {.number = 64 + 42, .status = SLICE("expired")};
    struct turn turn = {0};

    turn_next(&turn, id, 0, 2, "step.failed");
    turn.append.approvals = &approval;
    turn.append.approval_count = 1;
    assert_int_equal(host_append(&host, store, &turn), ERR_CORRUPT);
}

/* --- forgetting --- */

/* Counts transactions that wrote, because only these get an id. */
#define WRITERS "select pg_snapshot_xmax(pg_current_snapshot())::text::int8"

static int forgets_done;

static void on_some_forgotten(struct forget *forget)
{
    (void)forget;
    forgets_done++;
}

static bool all_forgotten(void *context)
{
    return forgets_done >= *(int *)context;
}

static void on_forgotten(struct forget *forget)
{
    (void)forget;
    done = true;
}

static enum err_code forget(struct saga_id id, int64_t epoch)
{
    struct forget one = {.saga = id, .shard = saga_id_shard(id), .epoch = epoch, .done = on_forgotten};

    done = false;
    store_forget(store, &one);
    assert_false(done);
    host_run_until(&host, host_is_set, &done);
    return one.code;
}

/* Counts the rows of a saga in all tables, as "saga|log|key|escalation|approval|due". */
static const char *rows_of(struct saga_id id)
{
    const char *text = id_text(id);

    return host_text(
        &host,
        "select (select count(*) from sagad.saga where id = '%s'), (select count(*) from sagad.log where saga = '%s'),"
        " (select count(*) from " KNOWN_KEYS " k join sagad.saga s on s.id = k.saga where k.saga = '%s'), (select "
        "count(*) from sagad.escalation where saga = '%s'),"
        " (select count(*) from sagad.approval where saga = '%s'), (select count(*) from sagad.due where saga = '%s')",
        text, text, text, text, text, text);
}

/* Makes a saga with everything that a saga can have. */
static struct saga_id whole_saga(uint32_t shard, uint64_t n, const char *business_id)
{
    struct saga_id id = host_saga(shard);
    struct append_approval approval;
    struct turn turn = {0};

    turn_start(&turn, id, 0, business_id);
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    for (uint64_t i = 0; i < 2; i++) {
        char key[UUID_TEXT_BYTES];
        int len;

        assert_true(random_bytes(turn.keys[0].uuid.bytes, sizeof(turn.keys[0].uuid.bytes)));
        uuid_text(&turn.keys[0].uuid, key);
        turn_next(&turn, id, 0, 2 + i, "");
        len = snprintf(turn.payload, sizeof(turn.payload),
                       i ? "[{\"type\":\"step.intent\",\"step\":\"a\",\"key\":\"%s\",\"data\":{\"n\":1e999999,\"t\":"
                           "\"\\u0000\\\\ \xc3\xa4\"}}]"
                         : "[{\"type\": \"step.pending\", \"key\": \"%s\"}]",
                       key);
        turn.append.payload = (struct slice){turn.payload, (size_t)len};
        turn.append.new_keys = turn.keys;
        turn.append.new_key_count = 1;
        assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    }
    open_approval(&turn, &approval, id, 4, 64 * n + shard, 0);
    turn.escalation = (struct append_escalation){
        .number = 64 * n + shard, .is_new = true, .is_open = true, .reason = SLICE("unknown"), .body = SLICE("{}")};
    turn.append.escalations = &turn.escalation;
    turn.append.escalation_count = 1;
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    ending(&turn, id, 5);
    turn.append.forget_ms = 1000;
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    host_sql(&host, "update sagad.escalation set resolved_at = now() where saga = '%s'", id_text(id));
    host_sql(&host,
             "insert into sagad.case_remark (shard, number, saga) select e.shard, e.number, e.saga from"
             " sagad.escalation e where e.saga = '%s'",
             id_text(id));
    return id;
}

TEST(a_saga_is_forgotten_with_everything_it_has_and_nothing_else)
{
    struct saga_id stays = whole_saga(45, 1, "stays"), goes = whole_saga(45, 2, "goes"), again;
    struct shard_load loaded;

    /* Inserts the rows as engines of the schema before wrote them. */
    host_sql(&host, "insert into sagad.operation_key select b.shard, e.key, e.saga from sagad.key_bundle b cross join "
                    "lateral unnest(b.keys, b.sagas) as e (key, saga);"
                    " delete from sagad.key_bundle");
    /* The log has a key of the other saga, as a duplicate call of an agent names it. */
    host_sql(&host,
             "update sagad.log set payload = convert_to('[{\"type\":\"x\",\"key\":\"' || (select key from "
             "sagad.operation_key where saga = '%s' limit 1) || '\"}]', 'UTF8')"
             " where saga = '%s' and seq = 1",
             id_text(stays), id_text(goes));
    assert_string_equal(rows_of(goes), "1|5|2|1|1|1\n");
    assert_int_equal(forget(goes, 1), ERR_FENCED);
    assert_string_equal(rows_of(goes), "1|5|2|1|1|1\n");
    assert_int_equal(forget(goes, 0), ERR_OK);
    assert_string_equal(rows_of(goes), "0|0|0|0|0|0\n");
    assert_string_equal(rows_of(stays), "1|5|2|1|1|1\n");
    assert_int_equal(forget(goes, 0), ERR_OK); /* gone already */
    assert_string_equal(rows_of(stays), "1|5|2|1|1|1\n");
    loaded = load(45);
    assert_int_equal(loaded.approval_number_max, 64 * 2 + 45); /* a number is not used twice */
    assert_int_equal(loaded.escalation_number_max, 64 * 2 + 45);
    again = whole_saga(45, 3, "goes"); /* the business id is free again */
    assert_int_equal(forget(stays, 0), ERR_OK);
    assert_int_equal(forget(again, 0), ERR_OK);
    assert_int_equal(load(45).approval_number_max, 64 * 3 + 45);
    assert_int_equal(host_number(&host, "select count(*) from sagad.log where shard = 45"), 0);
}

TEST(what_is_open_keeps_its_saga_and_is_looked_at_again_in_an_hour)
{
    struct saga_id id = whole_saga(47, 1, NULL);
    static const struct {
        const char *opens, *closes;
    } pins[] = {
        {"update sagad.escalation set resolved_at = null where shard = 47",
         "update sagad.escalation set resolved_at = now() where shard = 47"},
        {"insert into sagad.bulk (shard, id, namespace, state, body, actor, created_at, expires_at, look_at) select"
         " 3, sagad.new_id(), s.namespace, 'running', '', 'x', now(), now(), now() from sagad.saga s"
         " where s.shard = 47",
         "update sagad.bulk set state = 'done'"},
        {"update sagad.bulk set state = 'frozen', expires_at = now() + interval '1 minute'",
         "update sagad.bulk set expires_at = now() - interval '1 minute'"}};

    for (size_t i = 0; i < COUNT_OF(pins); i++) {
        host_sql(&host, "%s", pins[i].opens);
        assert_int_equal(forget(id, 0), ERR_OK);
        assert_string_equal(rows_of(id), "1|5|2|1|1|1\n");
        assert_int_equal(host_number(&host,
                                     "select count(*) from sagad.due where shard = 47 and what = 'forget' and at >"
                                     " now() + interval '59 minutes' and at < now() + interval '61 minutes'"),
                         1);
        host_sql(&host, "%s", pins[i].closes);
    }
    assert_int_equal(forget(id, 0), ERR_OK);
    assert_string_equal(rows_of(id), "0|0|0|0|0|0\n");
    assert_int_equal(host_number(&host, "select count(*) from sagad.case_remark where shard = 47"), 0);
    host_sql(&host, "delete from sagad.bulk");
}

/* The first who settles a debt holds, and the last debt of a saga lets it go. */
TEST(a_debt_is_settled_once_and_the_last_one_lets_its_saga_go)
{
    struct saga_id id = whole_saga(48, 1, NULL);
    struct debt_settle settle = {.saga = id,
                                 .namespace = SLICE("default"),
                                 .key = {uuid_v7(1)},
                                 .body = SLICE("{\"n\":1}"),
                                 .debt_count = 2,
                                 .forget_ms = 2000};
    struct debt_settled settled = {.sagas = &id, .saga_count = 1};

    host_sql(&host, "delete from sagad.due where shard = 48");
    assert_int_equal(HOST_ASK(&host, store, &arena, store_debt_settle, &settle), ERR_OK);
    settle.body = SLICE("{\"n\":2}");
    assert_int_equal(HOST_ASK(&host, store, &arena, store_debt_settle, &settle), ERR_OK);
    assert_true(slice_is(settle.body, "{\"n\":1}"));
    assert_int_equal(host_number(&host, "select count(*) from sagad.due where shard = 48"), 0);
    settle.key.uuid = uuid_v7(1);
    assert_int_equal(HOST_ASK(&host, store, &arena, store_debt_settle, &settle), ERR_OK);
    assert_int_equal(host_number(&host, "select count(*) from sagad.due where shard = 48 and what = 'forget'"), 1);
    assert_int_equal(HOST_ASK(&host, store, &arena, store_debt_settled, &settled), ERR_OK);
    assert_int_equal(settled.count, 2);
    settle.namespace = SLICE("other");
    assert_int_equal(HOST_ASK(&host, store, &arena, store_debt_settle, &settle), ERR_NOT_FOUND);
    assert_int_equal(forget(id, 0), ERR_OK);
    assert_int_equal(HOST_ASK(&host, store, &arena, store_debt_settled, &settled), ERR_OK);
    assert_int_equal(settled.count, 0);
}

/* The row in due is from when the run went to rest. Repeats of its calls came later, and are only in the log. */
TEST(a_run_is_forgotten_only_when_its_last_turn_is_old_and_is_due_then_otherwise)
{
    struct saga_id id = whole_saga(46, 7, NULL), saga = whole_saga(46, 8, NULL);
    struct forget some[] = {{.saga = id}, {.saga = saga}};
    int64_t hour_ms = 3600000,
            now_ms = host_number(&host, "select (extract(epoch from clock_timestamp()) * 1000)::int8");

    host_sql(&host, "update sagad.saga set name = '~run' where id = '%s'", id_text(id));
    forgets_done = 0;
    for (size_t i = 0; i < COUNT_OF(some); i++) { /* in one batch; the saga has as young a turn, and goes */
        some[i].shard = 46;
        some[i].now_ms = now_ms;
        some[i].kept_ms = hour_ms;
        some[i].done = on_some_forgotten;
        store_forget(store, &some[i]);
    }
    host_run_until(&host, all_forgotten, &(int){COUNT_OF(some)});
    assert_int_equal(some[0].code, ERR_CONFLICT);
    assert_int_equal(some[1].code, ERR_OK);
    assert_string_equal(rows_of(saga), "0|0|0|0|0|0\n");
    assert_int_equal(host_number(&host,
                                 "select count(*) from sagad.due d where d.saga = '%s' and d.at = interval '1 hour' +"
                                 " (select max(l.at) from sagad.log l where l.saga = d.saga)",
                                 id_text(id)),
                     1);
    some[0].kept_ms = 0; /* for ever */
    forgets_done = 1;
    store_forget(store, &some[0]);
    host_run_until(&host, all_forgotten, &(int){COUNT_OF(some)});
    assert_int_equal(some[0].code, ERR_CONFLICT);
    assert_int_equal(
        host_number(&host, "select count(*) from sagad.due where saga = '%s' and at = 'infinity'", id_text(id)), 1);
    some[0].kept_ms = hour_ms;
    some[0].now_ms += 2 * hour_ms;
    forgets_done = 1;
    store_forget(store, &some[0]);
    host_run_until(&host, all_forgotten, &(int){COUNT_OF(some)});
    assert_int_equal(some[0].code, ERR_OK);
    assert_string_equal(rows_of(id), "0|0|0|0|0|0\n");
}

TEST(a_saga_that_has_not_ended_is_not_forgotten)
{
    struct saga_id id = start(46);

    host_sql(&host, "insert into sagad.due (shard, saga, what, at) values (46, '%s', 'parked', now())", id_text(id));
    assert_int_equal(forget(id, 0), ERR_OK);
    assert_string_equal(rows_of(id), "1|1|0|0|0|1\n"); /* and the saga stays parked */
}

/* Each saga of a batch goes or stays on its own, whatever the others do. */
TEST(a_batch_removes_of_each_saga_what_it_may)
{
    struct saga_id ended = whole_saga(51, 1, NULL), other = whole_saga(52, 2, NULL), stays = whole_saga(53, 3, NULL),
                   fenced = whole_saga(54, 4, NULL);
    struct saga_id runs = start(51), gone = whole_saga(52, 5, NULL);
    struct forget forgets[] = {
        {.saga = fenced, .shard = 54, .epoch = 1},
        {.saga = other, .shard = 52},
        {.saga = runs, .shard = 51},
        {.saga = gone, .shard = 52},
        {.saga = ended, .shard = 51},
    };
    int count = COUNT_OF(forgets);

    assert_int_equal(forget(gone, 0), ERR_OK);
    forgets_done = 0;
    for (size_t i = 0; i < COUNT_OF(forgets); i++) {
        forgets[i].done = on_some_forgotten;
        store_forget(store, &forgets[i]);
    }
    host_run_until(&host, all_forgotten, &count);
    for (size_t i = 0; i < COUNT_OF(forgets); i++) {
        assert_int_equal(forgets[i].code, i == 0 ? ERR_FENCED : ERR_OK);
    }
    assert_string_equal(rows_of(ended), "0|0|0|0|0|0\n");
    assert_string_equal(rows_of(other), "0|0|0|0|0|0\n");
    assert_string_equal(rows_of(gone), "0|0|0|0|0|0\n");
    assert_string_equal(rows_of(runs), "1|1|0|0|0|0\n");
    assert_string_equal(rows_of(stays), "1|5|2|1|1|1\n");
    assert_string_equal(rows_of(fenced), "1|5|2|1|1|1\n");
    assert_int_equal(load(51).approval_number_max, 64 + 51); /* each shard keeps its own numbers */
    assert_int_equal(load(52).escalation_number_max, 5 * 64 + 52);
}

static void on_one_forgotten(struct forget *forget)
{
    assert_int_equal(forget->code, ERR_OK);
    forgets_done++;
}

TEST(many_are_forgotten_some_at_a_time)
{
    enum { COUNT = 620 }; /* in two transactions */
    struct forget *forgets = calloc(COUNT, sizeof(*forgets));
    int count = COUNT;
    long transactions;

    for (int i = 0; i < COUNT; i++) {
        struct turn turn = {0};

        turn_start(&turn, host_saga(47 + (uint32_t)i % 3), 0, NULL);
        turn.append.ended = true;
        turn.append.status = SAGA_COMPLETED;
        turn.append.forget_ms = 1;
        assert_int_equal(host_append(&host, store, &turn), ERR_OK);
        forgets[i] = (struct forget){.saga = turn.append.saga, .shard = turn.append.shard, .done = on_one_forgotten};
    }
    assert_int_equal(
        host_number(&host, "select count(*) from sagad.due where shard between 47 and 49 and what = 'forget'"), COUNT);
    forgets_done = 0;
    transactions = host_number(&host, WRITERS);
    for (int i = 0; i < COUNT; i++) {
        store_forget(store, &forgets[i]);
    }
    host_run_until(&host, all_forgotten, &count);
    assert_in_range(host_number(&host, WRITERS) - transactions, 2, 6); /* the database also writes for itself */
    assert_int_equal(host_number(&host, "select (select count(*) from sagad.saga where shard between 47 and 49) + "
                                        "(select count(*) from sagad.log where shard between 47 and 49)"
                                        " + (select count(*) from sagad.due where shard between 47 and 49)"),
                     0);
    free(forgets);
}

/* --- what the database does not want to remove --- */

/* Makes the removal of the log of each saga in `refused` fail with its SQLSTATE. */
static void damage(void)
{
    host_sql(&host, "create table refused (saga uuid primary key, code text not null);"
                    "create table tried (at int8 generated always as identity);" /* also counts what is rolled back */
                    "create or replace function refuse() returns trigger language plpgsql as $$ declare why text; begin"
                    " perform nextval('public.tried_at_seq');"
                    " select code into why from public.refused r where r.saga = old.saga;"
                    " if why is not null then raise exception 'it is damaged' using errcode = why; end if;"
                    " return old; end $$;"
                    "create trigger refuse before delete on sagad.log for each row execute function refuse()");
}

static void mend(void)
{
    host_sql(&host, "drop trigger refuse on sagad.log; drop function refuse(); drop table refused; drop table tried");
}

/* Makes `count` due sagas, each with one record. */
static void make_due(struct forget *forgets, int count, uint32_t shard)
{
    for (int i = 0; i < count; i++) {
        struct turn turn = {0};

        turn_start(&turn, host_saga(shard), 0, NULL);
        turn.append.ended = true;
        turn.append.status = SAGA_COMPLETED;
        turn.append.forget_ms = 1;
        assert_int_equal(host_append(&host, store, &turn), ERR_OK);
        forgets[i] = (struct forget){.saga = turn.append.saga, .shard = turn.append.shard, .done = on_some_forgotten};
    }
}

/* Returns how often the log said `text` while `forgets` were removed. */
static int forget_all(struct forget *forgets, int count, const char *text)
{
    FILE *said = tmpfile();
    char line[4096];
    int before = dup(2), times = 0;

    assert_true(said && before >= 0 && dup2(fileno(said), 2) == 2);
    forgets_done = 0;
    for (int i = 0; i < count; i++) {
        store_forget(store, &forgets[i]);
    }
    host_run_until(&host, all_forgotten, &count);
    assert_true(dup2(before, 2) == 2);
    (void)close(before);
    rewind(said);
    while (fgets(line, sizeof(line), said)) {
        times += strstr(line, text) != NULL && strstr(line, "in an hour") != NULL;
    }
    (void)fclose(said);
    return times;
}

TEST(a_saga_that_cannot_be_removed_keeps_no_other_and_comes_again_in_an_hour)
{
    enum { COUNT = 40 };
    static const char *const codes[] = {"XX001", "22021",
                                        "57014"}; /* damaged rows, and one that always takes too long */
    struct forget forgets[COUNT];

    make_due(forgets, COUNT, 56);
    damage();
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        struct saga_id id = forgets[i == 0 ? 0 : 16 + i].saga;

        host_sql(&host, "insert into refused values ('%s', '%s')", id_text(id), codes[i]);
    }
    assert_int_equal(forget_all(forgets, COUNT, id_text(forgets[17].saga)), 1); /* once */
    for (int i = 0; i < COUNT; i++) {
        bool refused = i == 0 || i == 17 || i == 18;

        assert_int_equal(forgets[i].code, refused ? ERR_STORE : ERR_OK);
        assert_string_equal(rows_of(forgets[i].saga), refused ? "1|1|0|0|0|1\n" : "0|0|0|0|0|0\n");
    }
    assert_int_equal(host_number(&host, "select count(*) from sagad.due where shard = 56 and what = 'forget' and"
                                        " at between now() + interval '55 min' and now() + interval '61 min'"),
                     3);
    mend();
    assert_int_equal(forget(forgets[0].saga, 0), ERR_OK);
    assert_string_equal(rows_of(forgets[0].saga), "0|0|0|0|0|0\n");
}

/* The rows are not at fault. A saga that waits for its answer hears nothing meanwhile. */
TEST(when_one_removal_after_the_other_is_refused_all_are_told)
{
    enum { COUNT = 200 };
    struct forget forgets[COUNT];
    int64_t began = loop_boot_ms_now();

    make_due(forgets, COUNT, 55);
    damage();
    host_sql(&host, "create or replace function refuse() returns trigger language plpgsql as $$ begin"
                    " raise exception 'never' using errcode = '22023'; end $$");
    assert_int_equal(forget_all(forgets, COUNT, ""), 4); /* put off, so each is in the log */
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(forgets[i].code, ERR_STORE);
    }
    assert_true(loop_boot_ms_now() - began < COUNT * 1000 / 2); /* faster than one a second */
    mend();
    assert_int_equal(forget_all(forgets, COUNT, ""), 0);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(forgets[i].code, ERR_OK);
    }
}

/* A temporary obstacle is no row's fault, and no saga is put off. */
TEST(a_refusal_of_the_moment_is_only_waited_for)
{
    enum { COUNT = 10 };
    struct forget forgets[COUNT];

    make_due(forgets, COUNT, 57);
    damage();
    host_sql(&host,
             "create or replace function refuse() returns trigger language plpgsql as $$ begin"
             " if nextval('public.tried_at_seq') = 4 then raise exception 'not now' using errcode = '40P01'; end if;"
             " return old; end $$");
    assert_int_equal(forget_all(forgets, COUNT, ""), 0);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(forgets[i].code, ERR_OK);
    }
    assert_int_equal(host_number(&host, "select last_value from tried_at_seq"), 4 + COUNT); /* in one transaction */
    mend();
}

/* The missing right would refuse every row. That counts as one refusal, and no row is at fault. */
TEST(a_right_that_is_missing_is_told_to_all_at_once)
{
    enum { COUNT = 10 };
    struct forget forgets[COUNT];

    make_due(forgets, COUNT, 58);
    damage();
    host_sql(&host, "insert into refused values ('%s', '42501')", id_text(forgets[4].saga));
    assert_int_equal(forget_all(forgets, COUNT, ""), 0);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(forgets[i].code, ERR_STORE);
    }
    assert_int_equal(host_number(&host, "select count(*) from sagad.due where shard = 58 and at < now()"), COUNT);
    mend();
}

/* --- SQL for people --- */

TEST(waits_and_groups_can_be_read_in_sql)
{
    struct saga_id id = start(50);
    struct turn turn = {0};

    turn_next(&turn, id, 0, 2, "");
    turn.append.payload =
        SLICE("[{\"type\":\"step.opened\",\"step\":\"each\"},{\"type\":\"step.waiting\",\"step\":\"each#0\"},"
              "{\"type\":\"step.opened\",\"step\":\"child\"},{\"type\":\"step.failing\",\"step\":\"child\"}]");
    turn.append.record_count = 4;
    host_append(&host, store, &turn);
    assert_string_equal(
        host_text(&host, "select step, status from sagad.saga_step where shard = 50 and saga = '%s' order by step",
                  id_text(id)),
        "child|compensating\neach|running\neach#0|waiting\n");
    assert_int_equal(
        host_number(&host, "select count(*) from sagad.operation where shard = 50 and saga = '%s'", id_text(id)), 0);
}

/* --- */

/* The transactions of autovacuum would count as ours. */
static const char *const settings[] = {"autovacuum=off", NULL};

HOST_PROGRAM(settings)
