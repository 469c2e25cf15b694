/*
 * Questions to people as the API shows them: lists of escalations and approvals with the newest first, counts, and one
 * question by its number.
 *
 * The turn that asked a question made its body. What finds the case in a list is beside it: the saga's part comes from
 * the row of the saga, which has it for old questions, too; tool and error come from the evidence.
 */
#include <string.h>

#include "base/json.h"
#include "core/saga/sensitive.h"
#include "run/query/walk.h"
#include "run/saga/live.h"
#include "run/saga/turn.h"

/* Returns a member of a case as it was answered in an earlier round. */
static struct slice member_then(struct slice then, struct slice name, struct slice now, struct arena *arena)
{
    struct slice value = then.ptr ? json_member(then, arena_text(arena, name)) : SLICE_NONE;

    return !then.ptr                    ? now
           : value.ptr                  ? value
           : slice_is(name, "status")   ? SLICE("\"resolved\"")
           : slice_is(name, "actions")  ? SLICE("[]")
           : slice_is(name, "evidence") ? SLICE("null")
                                        : now;
}

/* Writes who has the case and the remarks about it. An acknowledgement ends by time. */
static void put_remarks(struct work *work, const struct question_row *row, struct json_writer *w)
{
    bool holds = row->acknowledged_by.ptr &&
                 (row->acknowledged_until_ms == 0 || row->acknowledged_until_ms > loop_wall_ms(work->engine->loop));

    json_write_slice(w, "acknowledged_by", holds ? row->acknowledged_by : SLICE_NONE);
    json_write_instant(w, "acknowledged_until", holds ? row->acknowledged_until_ms : 0);
    json_write_slice(w, "assigned_to", row->assigned_to);
    json_write_i64(w, "remark_count", row->remark_count);
    if (row->remarks.ptr) {
        json_write_raw(w, "remarks", arena_printf(&work->arena, "[%.*s]", SLICE_ARG(row->remarks)));
    }
}

/* Returns the evidence as whoever asked may see it. The case of a refused follower has the input of a saga that there
 * is not; a person may have it started again, so the row has it whole. */
static struct slice evidence_shown(struct work *work, const struct question_row *row, struct slice evidence)
{
    struct slice asked = json_member(evidence, "follower"), input = json_member(asked, "input");

    if (!input.ptr || (!work_hides(work, row->saga_name) &&
                       !work_hides(work, json_string(json_member(asked, "saga"), &work->arena)))) {
        return evidence;
    }
    return arena_printf(&work->arena, "%.*s" SENSITIVE_MASK_JSON "%.*s", (int)(input.ptr - evidence.ptr), evidence.ptr,
                        (int)(evidence.ptr + evidence.len - input.ptr - input.len), input.ptr + input.len);
}

/* Puts a question. `then` is the earlier round to be shown; SLICE_NONE for the present one. */
static void put_question(struct work *work, const struct question_row *row, struct slice then)
{
    struct slice evidence = evidence_shown(work, row, json_member(row->body, "evidence")), name, value;
    struct json_walk walk = json_walk(row->body);
    struct json_writer w;

    json_writer_init(&w, &work->out);
    json_object_begin(&w, NULL);
    while (json_next_member(&walk, &name, &value)) {
        if (!slice_is(name, CASE_REQUESTS)) {
            json_write_raw(&w, arena_text(&work->arena, name), /* our own names need no escapes */
                           member_then(then, name, slice_is(name, "evidence") ? evidence : value, &work->arena));
        }
    }
    if (evidence.ptr && !json_member(row->body, "round").ptr) { /* engines of an earlier release wrote this body */
        json_write_i64(&w, "round", 1);
    }
    if (row->is_read) {
        put_remarks(work, row, &w);
    }
    json_write_slice(&w, "saga_name", row->saga_name);
    json_write_slice(&w, "business_id", row->business_id.len ? row->business_id : SLICE_NONE);
    json_write_raw(&w, "tags", row->tags.len ? row->tags : SLICE("{}"));
    if (evidence.ptr) {
        json_write_raw(&w, "tool", json_member(evidence, "tool"));
        json_write_raw(&w, "error", json_member(evidence, "last_error"));
        json_write_raw(&w, "detail", json_member(evidence, "detail"));
    }
    json_object_end(&w);
}

void work_show_question(struct work *work, const struct question_row *row)
{
    put_question(work, row, SLICE_NONE);
    work_done(work, ERR_OK, NULL);
}

/* --- the first answer, to whoever gives it again --- */

static struct slice element_of_round(struct slice list, int64_t round)
{
    struct json_walk walk = json_walk(list);
    struct slice item;
    int64_t at = 0;

    while (json_next_element(&walk, &item)) {
        if (json_i64(json_member(item, "round"), &at) && at == round) {
            return item;
        }
    }
    return SLICE_NONE;
}

/* Returns the round that was answered under this Idempotency-Key; 0 for none. */
static int64_t round_of_request(struct slice body, struct slice request, struct arena *arena)
{
    struct json_walk walk = json_walk(json_member(body, CASE_REQUESTS));
    struct slice item;
    int64_t round = 0;

    while (request.ptr && json_next_element(&walk, &item)) {
        if (slice_equal(json_string(json_member(item, "request"), arena), request) &&
            json_i64(json_member(item, "round"), &round)) {
            return round;
        }
    }
    return 0;
}

bool work_answered_before(struct work *work, const struct question_row *row)
{
    const struct saga_input *input = &work->mail.input;
    const char *as;
    int64_t round = 0, now = 0;
    struct slice then = SLICE_NONE, answer;

    if (work->verb->input == SAGA_INPUT_OPERATOR && work->verb->on == ON_ESCALATION) {
        round = round_of_request(row->body, input->verdict.request, &work->arena);
    }
    if (round == 0) {
        return false;
    }
    as = input->verdict.undone ? "undone" : input->verdict.happened ? "happened" : "not_happened";
    if (json_i64(json_member(row->body, "round"), &now) && now != round) {
        then = element_of_round(json_member(row->body, "earlier"), round);
    }
    answer = then.ptr ? then : row->body;
    if (!json_string_is(json_member(answer, "action"), operator_action_name(input->verdict.action)) ||
        (input->verdict.action == OPERATOR_RESOLVE && !json_string_is(json_member(answer, "as"), as))) {
        work_fail(work, ERR_OTHER_INPUT, "another answer was given under this key",
                  "`sagactl escalations N` shows which");
        return true;
    }
    put_question(work, row, then);
    work_done(work, ERR_OK, NULL);
    return true;
}

/* --- groups --- */

/* Writes the keys of a group; null when the questions have none. */
static void put_keys(struct json_writer *w, const struct question_grouping *by, const struct question_group *group,
                     struct arena *arena)
{
    const struct {
        const char *name;
        bool is_key;
        struct slice value;
    } keys[] = {{"tool", by->tool, group->tool},
                {"saga", by->saga, group->saga},
                {"step", by->step, group->step},
                {"reason", by->reason, group->reason},
                {"error", by->error, group->error}};
    struct json_walk walk = json_walk(group->tags);
    struct slice value;

    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        if (keys[i].is_key) {
            json_write_slice(w, keys[i].name, keys[i].value);
        }
    }
    for (size_t i = 0; i < by->tag_count && json_next_element(&walk, &value); i++) {
        json_write_raw(w, arena_printf(arena, "tag.%.*s", SLICE_ARG(by->tags[i])).ptr, value);
    }
}

static void put_group(struct work *work, const struct question_grouping *by, const struct question_group *group)
{
    struct json_writer w;

    json_writer_init(&w, &work->out);
    json_object_begin(&w, NULL);
    json_object_begin(&w, "group");
    put_keys(&w, by, group, &work->arena);
    json_object_end(&w);
    json_write_i64(&w, "count", (int64_t)group->count);
    json_write_instant(&w, "oldest", group->oldest_ms);
    json_write_instant(&w, "newest", group->newest_ms);
    json_write_raw(&w, "costs", arena_printf(&work->arena, "[%.*s]", SLICE_ARG(group->costs)));
    json_write_i64(&w, "without_cost", (int64_t)group->costless);
    json_object_end(&w);
}

/* --- lists --- */

static void cursor_after(struct work *work, int64_t ms, uint64_t number)
{
    work_next_cursor(work, arena_printf(&work->arena, "%lld.%llu", (long long)ms, (unsigned long long)number));
}

/* Says where the list ends. The page is full, or all questions were looked at. Otherwise the list goes on behind the
 * last one that was. */
static void say_where_it_ends(struct work *work, const struct list_questions *list)
{
    size_t limit = list->limit - 1;

    if (list->count > limit && !list->by) {
        cursor_after(work, list->rows[limit - 1].opened_ms, list->rows[limit - 1].number);
    } else if (list->has_edge) {
        work_looked(work, list->edge_ms, (int64_t)list->looked);
        if (!list->by) {
            cursor_after(work, list->edge_ms, list->edge);
        }
    }
}

/* Ends the work with what was read, of which the last is only asked for to know whether there are more. */
static void work_show_questions(struct work *work, const struct list_questions *list)
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
        if (list->by) {
            put_group(work, list->by, &list->groups[i]);
        } else {
            put_question(work, &list->rows[i], SLICE_NONE);
        }
    }
    buffer_put_char(&work->out, ']');
    say_where_it_ends(work, list);
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
    CHECK(list->count > 0); /* the store reports a number without a question */
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
                                    .namespace = work->namespace};
    if (work_read_questions(work, wanted, list)) {
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
