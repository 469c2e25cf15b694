/*
 * Approvals: what a person is shown, who may decide, and what they decided. An approval has a number and the hash of
 * what it shows, so that a decision is only about what was seen. decide/wait.c decides that a step waits for an
 * approval, and until when.
 */
#include "base/json.h"
#include "core/saga/machine.h"

uint64_t approval_number(struct machine *m)
{
    uint64_t number = m->input->approval_number + m->approvals * m->input->number_stride;

    CHECK(m->input->approval_number != 0 && m->input->number_stride != 0);
    m->approvals++;
    return number;
}

/* --- deciding --- */

static const char *role_least(unsigned roles)
{
    unsigned role = ROLE_READER;

    while (role < ROLE_ADMIN && !(roles & BIT(role))) {
        role++;
    }
    return role_name((enum role)role);
}

static bool role_may(unsigned roles, enum role role)
{
    for (unsigned i = ROLE_READER; i <= (unsigned)role && i < ROLE_COUNT; i++) {
        if (roles & BIT(i)) { /* each role may do what the roles before it may */
            return true;
        }
    }
    return false;
}

uint32_t approval_step(const struct saga *saga, uint64_t approval)
{
    for (uint32_t i = 0; i < saga->definition->step_count && approval; i++) {
        if (saga->steps[i].approval == approval) {
            return i;
        }
    }
    return STEP_NONE;
}

static enum err_code refuse_decided(struct machine *m, uint32_t step)
{
    const struct operation *op = &m->saga->steps[step].forward;

    if (op->state == OP_COMPLETED || (op->state == OP_FAILED && slice_is(op->error, "refused"))) {
        (void)err_set(m->err, ERR_DECIDED, "it was %s by %.*s already",
                      op->state == OP_COMPLETED ? "approved" : "refused", SLICE_ARG(m->saga->steps[step].decided_by));
    } else if (op->state == OP_FAILED && slice_is(op->error, "timeout")) {
        (void)err_set(m->err, ERR_DECIDED, "its time is over: nobody decided in time");
    } else {
        (void)err_set(m->err, ERR_DECIDED, "the saga does not wait for it any more");
    }
    return ERR_DECIDED;
}

/*
 * Checks that the starter of a saga does not approve it ("four eyes"). The starter may refuse, because the starter may
 * also abort the saga. When nobody knows the starter, nobody can be shown to be another person, and only an admin may
 * approve.
 */
static enum err_code starter_check(struct machine *m, uint32_t step)
{
    const struct saga_input *input = m->input;

    if (!m->saga->definition->steps[step].not_by_starter || !input->decision.approve) {
        return ERR_OK;
    }
    if (!input->decision.started_by.ptr && input->decision.role != ROLE_ADMIN) {
        (void)err_set(m->err, ERR_FORBIDDEN,
                      "nobody knows who started this saga, and whoever did may not approve this");
        err_hint(m->err, "Have somebody with the role admin approve it.");
        return ERR_FORBIDDEN;
    }
    if (slice_equal(input->decision.started_by, input->decision.actor)) {
        (void)err_set(m->err, ERR_FORBIDDEN, "%.*s started this saga, and so may not approve this",
                      SLICE_ARG(input->decision.actor));
        err_hint(m->err, "Have another person approve it.");
        return ERR_FORBIDDEN;
    }
    return ERR_OK;
}

static enum err_code decision_check(struct machine *m, uint32_t step)
{
    const struct saga_input *input = m->input;
    const struct saga *saga = m->saga;
    unsigned roles = saga->definition->steps[step].roles;
    struct digest hash;

    if (!input->decision.actor.len) {
        return err_set(m->err, ERR_INVALID, "a decision needs an actor");
    }
    if (!role_may(roles, input->decision.role)) {
        (void)err_set(m->err, ERR_FORBIDDEN, "this takes the role %s at least", role_least(roles));
        return ERR_FORBIDDEN;
    }
    if (saga->phase == PHASE_ENDED || saga->steps[step].forward.state != OP_WAITING) {
        return refuse_decided(m, step);
    }
    if (saga->steps[step].forward.due_ms && input->now_ms >= saga->steps[step].forward.due_ms && !pause_holds(saga) &&
        !saga->held_ms) {
        return err_set(m->err, ERR_DECIDED, "its time is over: nobody decided in time");
    }
    if (input->decision.hash.ptr && (!digest_from_hex(input->decision.hash, &hash) ||
                                     !digest_equal(&hash, &saga->steps[step].forward.fingerprint))) {
        (void)err_set(m->err, ERR_CONFLICT, "what is to be approved is not what this \"hash\" is of");
        err_hint(m->err, "Look at the approval again and decide on what it shows.");
        return ERR_CONFLICT;
    }
    return starter_check(m, step);
}

static struct slice decision_result(struct machine *m)
{
    struct buffer out;
    struct json_writer w;
    struct slice text;

    buffer_init(&out, (size_t)1 << 20);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_write_text(&w, "decision", "approve");
    json_write_slice(&w, "actor", m->input->decision.actor);
    json_write_slice(&w, "note", m->input->decision.note.len ? m->input->decision.note : SLICE_NONE);
    json_object_end(&w);
    CHECK(!out.overflow); /* names and notes were bounded */
    text = arena_slice(m->turn, buffer_slice(&out));
    buffer_fini(&out);
    return text;
}

enum err_code wait_decide(struct machine *m)
{
    const struct saga_input *input = m->input;
    uint32_t step = approval_step(m->saga, input->decision.approval);
    struct record record = {.type = RECORD_APPROVAL_DECIDED, .step = step};
    enum err_code code;

    if (step == STEP_NONE) {
        return err_set(m->err, ERR_NOT_FOUND, "there is no approval %llu in this saga",
                       (unsigned long long)input->decision.approval);
    }
    code = decision_check(m, step);
    if (code != ERR_OK) {
        return code;
    }
    record.approval = input->decision.approval;
    record.fingerprint = m->saga->steps[step].forward.fingerprint;
    record.verdict = input->decision.approve ? SLICE("approve") : SLICE("refuse");
    record.actor = input->decision.actor;
    record.note = input->decision.note;
    machine_emit(m, &record);
    if (input->decision.approve) {
        wait_complete(m, step, decision_result(m));
    } else {
        struct slice who = input->decision.actor, note = input->decision.note;

        wait_fail(m, step,
                  (struct why){SLICE("refused"),
                               note.len ? arena_printf(m->turn, "%.*s refused: %.*s", SLICE_ARG(who), SLICE_ARG(note))
                                        : arena_printf(m->turn, "%.*s refused", SLICE_ARG(who))});
    }
    return ERR_OK;
}

/* --- checking and folding --- */

bool check_decided(const struct saga *saga, const struct record *record, struct err *err)
{
    const struct step *step = &saga->steps[record->step];

    if (step->forward.state != OP_WAITING || step->approval != record->approval) {
        return check_refuse(record, err, "this is not to be approved now");
    }
    if (!digest_equal(&record->fingerprint, &step->forward.fingerprint)) {
        return check_refuse(record, err, "what was decided is not what was shown");
    }
    return slice_is(record->verdict, "approve") || slice_is(record->verdict, "refuse") ||
           check_refuse(record, err, "it neither approves nor refuses");
}

void apply_decided(struct saga *saga, const struct record *record)
{
    saga->steps[record->step].decided_by = apply_keep(saga, record->actor);
    saga->steps[record->step].decided_note = apply_keep(saga, record->note);
}

/* --- for people --- */

static const char *approval_status(const struct saga *saga, uint32_t step)
{
    const struct operation *op = &saga->steps[step].forward;

    if (op->state == OP_COMPLETED) {
        return "approved";
    }
    if (op->state == OP_WAITING && saga->phase != PHASE_ENDED) {
        return "open";
    }
    return op->state == OP_FAILED && slice_is(op->error, "refused")   ? "refused"
           : op->state == OP_FAILED && slice_is(op->error, "timeout") ? "expired"
                                                                      : "cancelled";
}

/* Writes the member `roles` of an approval: the roles named in the definition. */
static void write_roles(struct json_writer *w, unsigned roles)
{
    json_array_begin(w, "roles");
    for (unsigned i = ROLE_READER; i < ROLE_COUNT; i++) {
        if (roles & BIT(i)) {
            json_write_text(w, NULL, role_name((enum role)i));
        }
    }
    json_array_end(w);
}

void saga_write_approval(const struct saga *saga, uint32_t step, struct buffer *out)
{
    const struct step *s = &saga->steps[step];
    const struct operation *op = &s->forward;
    char text[UUID_TEXT_BYTES], hash[65];
    struct json_writer w;

    CHECK(s->approval != 0);
    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    json_write_i64(&w, "n", (int64_t)s->approval);
    uuid_text(&saga->id.uuid, text);
    json_write_text(&w, "saga", text);
    json_write_slice(&w, "step", saga->definition->steps[step].id);
    json_write_raw(&w, "show", op->args);
    digest_hex(&op->fingerprint, hash);
    json_write_text(&w, "hash", hash);
    json_write_instant(&w, "expires_at", op->due_ms);
    json_write_text(&w, "status", approval_status(saga, step));
    json_write_instant(&w, "opened_at", s->started_ms);
    write_roles(&w, saga->definition->steps[step].roles);
    if (saga->definition->steps[step].not_by_starter) {
        json_write_text(&w, "not_by", "starter");
    }
    json_write_instant(&w, "decided_at", s->decided_by.ptr ? op->ended_ms : 0);
    json_write_slice(&w, "actor", s->decided_by);
    json_write_slice(&w, "note", s->decided_note.len ? s->decided_note : SLICE_NONE);
    json_object_end(&w);
}
