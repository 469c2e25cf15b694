/*
 * Remarks about a case: somebody looks at it, somebody is to answer it, a comment. A remark stands beside the log, so
 * any engine takes it, even after the end of the saga.
 */
#include <string.h>

#include "base/digest.h"
#include "base/instant.h"
#include "base/json.h"
#include "run/query/walk.h"
#include "run/request/act.h"
#include "run/request/calling.h"
#include "store/cases.h"

struct remark { /* lies in the arena of its work */
    struct work *work;
    struct case_remark put;
};

static struct slice remark_text(struct work *work, const struct case_remark *put)
{
    const struct saga_input *input = &work->mail.input;
    struct buffer out;
    struct json_writer w;
    struct slice text;

    buffer_init(&out, 1 << 20);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_write_text(&w, "kind", remark_kind_name(put->kind));
    json_write_instant(&w, "at", loop_wall_ms(work->engine->loop));
    json_write_slice(&w, "actor", input->remark.actor);
    json_write_slice(&w, "note", input->remark.note);
    if (put->kind == REMARK_ACKNOWLEDGE) {
        json_write_instant(&w, "until", put->until_ms);
    } else if (put->kind == REMARK_ASSIGN) {
        json_write_slice(&w, "to", put->to.len ? put->to : SLICE_NONE);
    }
    json_object_end(&w);
    CHECK(!out.overflow); /* a note and a name are bounded */
    text = arena_slice(&work->arena, buffer_slice(&out));
    buffer_fini(&out);
    return text;
}

/* A remark that is repeated under its Idempotency-Key is stored once. */
static struct uuid remark_id(const struct work *work)
{
    struct slice fields[] = {work->namespace, work->actor, work->mail.input.remark.id};
    struct digest digest;
    struct uuid id;

    if (!fields[2].ptr) {
        return uuid_v7(loop_wall_ms(work->engine->loop));
    }
    digest = digest_fields("remark", fields, COUNT_OF(fields));
    memcpy(&id, &digest, sizeof(id));
    return id;
}

static void on_written(struct store_read *read)
{
    struct remark *remark = read->context;
    struct work *work = remark->work;

    if (read->code == ERR_NOT_FOUND) {
        work_no_question(work, QUESTION_ESCALATION);
    } else if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
    } else if (remark->put.full) {
        work_fail(work, ERR_CONFLICT, "the case has as many remarks as may be", "answer it");
    } else {
        work_answer_question(work, QUESTION_ESCALATION, remark->put.number);
    }
}

void remark_found(struct work *work)
{
    const struct saga_input *input = &work->mail.input;
    enum verb_id verb = (enum verb_id)(work->verb - verbs);
    struct remark *remark = arena_alloc(&work->arena, sizeof(*remark));

    remark->work = work;
    remark->put = (struct case_remark){
        .read = {.arena = &work->arena, .done = on_written, .context = remark},
        .number = input->remark.escalation,
        .namespace = work->namespace,
        .id = remark_id(work),
        .kind = verb == VERB_ACKNOWLEDGE ? REMARK_ACKNOWLEDGE
                : verb == VERB_ASSIGN    ? REMARK_ASSIGN
                                         : REMARK_COMMENT,
        .by = input->remark.actor,
        .until_ms = input->remark.until_ms,
        .to = input->remark.to,
    };
    remark->put.act = act_of_work(work);
    remark->put.text = remark_text(work, &remark->put);
    store_case_remark(work->engine->store, &remark->put);
}
