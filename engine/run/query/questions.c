/*
 * What people are asked, as the API shows it: lists of escalations and approvals, newest first, and one by its number.
 *
 * The body of a question was made by the turn that asked it. What finds the case in a list stands beside it: of its
 * saga from the row of the saga, which has that for old questions, too; tool and error from the evidence.
 */
#include <string.h>

#include "base/instant.h"
#include "base/json.h"
#include "run/query/walk.h"

#define LIMIT_DEFAULT 50
#define CURSOR_MS_MAX INT64_C(253402300799999) /* the end of the year 9999 */

static void put_question(struct work *work, const struct question_row *row)
{
    struct slice evidence = json_member(row->body, "evidence"), name, value;
    struct json_walk walk = json_walk(row->body);
    struct json_writer w;

    json_writer_init(&w, &work->out);
    json_object_begin(&w, NULL);
    while (json_next_member(&walk, &name, &value)) {
        json_write_raw(&w, arena_text(&work->arena, name), value); /* names of ours: nothing in them is escaped */
    }
    json_write_slice(&w, "saga_name", row->saga_name);
    json_write_slice(&w, "business_id", row->business_id.len ? row->business_id : SLICE_NONE);
    json_write_raw(&w, "tags", row->tags.len ? row->tags : SLICE("{}"));
    if (evidence.ptr) {
        json_write_raw(&w, "tool", json_member(evidence, "tool"));
        json_write_raw(&w, "error", json_member(evidence, "last_error"));
    }
    json_object_end(&w);
}

void work_show_question(struct work *work, const struct question_row *row)
{
    put_question(work, row);
    work_done(work, ERR_OK, NULL);
}

void work_show_questions(struct work *work, const struct list_questions *list)
{
    size_t limit = list->limit - 1;

    if (list->read.code != ERR_OK) {
        work_done(work, list->read.code, &list->read.err);
        return;
    }
    buffer_put_char(&work->out, '[');
    for (size_t i = 0; i < list->count && i < limit; i++) {
        if (i > 0) {
            buffer_put_char(&work->out, ',');
        }
        put_question(work, &list->rows[i]);
    }
    buffer_put_char(&work->out, ']');
    if (list->count > limit) {
        const struct question_row *last = &list->rows[limit - 1];

        work_next_cursor(work, arena_printf(&work->arena, "%lld.%llu", (long long)last->opened_ms,
                                            (unsigned long long)last->number));
    }
    work_done(work, ERR_OK, NULL);
}

bool question_of_turn(const struct live *live, enum question_kind kind, uint64_t number, struct question_row *row)
{
    const struct append *append = turn_append(live);
    const struct saga *saga = &live->saga;
    bool is_run = saga->definition->kind == SAGA_RUN;

    *row = (struct question_row){.number = number,
                                 .saga = saga->id,
                                 .saga_name = saga->definition->name,
                                 .business_id = is_run ? saga->run : saga->business_id,
                                 .tags = saga->tags};
    for (uint32_t i = 0; append && kind == QUESTION_ESCALATION && i < append->escalation_count; i++) {
        if (append->escalations[i].number == number) {
            row->body = append->escalations[i].body;
        }
    }
    for (uint32_t i = 0; append && kind == QUESTION_APPROVAL && i < append->approval_count; i++) {
        if (append->approvals[i].number == number) {
            row->body = append->approvals[i].body;
        }
    }
    return row->body.ptr != NULL;
}

bool work_read_question_cursor(struct work *work, struct slice cursor, struct list_questions *list)
{
    const char *dot = cursor.len ? memchr(cursor.ptr, '.', cursor.len) : NULL;
    int64_t ms = 0, number = 0;

    if (cursor.len == 0) {
        return true;
    }
    if (!dot || !slice_to_i64((struct slice){cursor.ptr, (size_t)(dot - cursor.ptr)}, &ms) || ms < 0 ||
        ms > CURSOR_MS_MAX ||
        !slice_to_i64((struct slice){dot + 1, cursor.len - (size_t)(dot + 1 - cursor.ptr)}, &number) || number < 1) {
        work_bad_cursor(work);
        return false;
    }
    list->before_ms = ms;
    list->before = (uint64_t)number;
    return true;
}

/* --- questions --- */

void work_no_question(struct work *work, enum question_kind kind)
{
    bool approval = kind == QUESTION_APPROVAL;

    work_fail(work, ERR_NOT_FOUND,
              approval ? "there is no approval with this number" : "there is no escalation with this number",
              approval ? "`sagactl approvals` lists the open ones" : "`sagactl escalations` lists the open ones");
}

const struct question_row *work_question(struct work *work)
{
    const struct list_questions *list = &work->store.questions;

    if (list->read.code == ERR_NOT_FOUND) {
        work_no_question(work, list->kind);
        return NULL;
    }
    if (list->read.code != ERR_OK) {
        work_done(work, list->read.code, &list->read.err);
        return NULL;
    }
    CHECK(list->count > 0); /* the store says so where there is none with this number */
    return &list->rows[0];
}

static void on_question(struct store_read *read)
{
    const struct question_row *row = work_question(read->context);

    if (row) {
        work_show_question(read->context, row);
    }
}

void work_read_question(struct work *work, enum question_kind kind, uint64_t number,
                        void (*done)(struct store_read *read))
{
    work->store.questions = (struct list_questions){.read = {.arena = &work->arena, .done = done, .context = work},
                                                    .kind = kind,
                                                    .namespace = work->namespace,
                                                    .number = number,
                                                    .limit = 1};
    store_list_questions(work->engine->store, &work->store.questions);
}

void work_answer_question(struct work *work, enum question_kind kind, uint64_t number)
{
    work_read_question(work, kind, number, on_question);
}

static void on_questions(struct store_read *read)
{
    struct work *work = read->context;

    work_show_questions(work, &work->store.questions);
}

static void get_questions(struct engine *engine, struct engine_request *request, enum question_kind kind,
                          const struct engine_questions *wanted)
{
    struct work *work = work_new(engine, request);
    struct list_questions *list = &work->store.questions;

    if (work_refused(work)) {
        return;
    }
    if (wanted->number) {
        work_answer_question(work, kind, wanted->number);
        return;
    }
    *list = (struct list_questions){.read = {.arena = &work->arena, .done = on_questions, .context = work},
                                    .kind = kind,
                                    .namespace = work->namespace,
                                    .open_only = wanted->open_only,
                                    .status = arena_slice(&work->arena, wanted->status),
                                    .limit = (wanted->limit ? wanted->limit : LIMIT_DEFAULT) + 1};
    if (work_read_question_cursor(work, wanted->cursor, list)) {
        store_list_questions(engine->store, list);
    }
}

void engine_get_escalations(struct engine *engine, struct engine_request *request)
{
    get_questions(engine, request, QUESTION_ESCALATION, &request->in.escalations);
}

void engine_get_approvals(struct engine *engine, struct engine_request *request)
{
    get_questions(engine, request, QUESTION_APPROVAL, &request->in.approvals);
}
