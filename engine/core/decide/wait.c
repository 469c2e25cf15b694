/*
 * Waits for a time, for a signal or for a person. A waiting step has no call: it begins, and it is over when its time
 * has come, its signal was received or its approval was decided. Nothing of it leaves the engine, so there is nothing
 * to undo.
 *
 * Signals are kept. A signal that comes before a step awaits it stays in the saga until a step does. A step that waits
 * for a signal takes the oldest kept one of that name; only a pause keeps the two apart.
 */
#include <string.h>

#include "base/canon.h"
#include "base/hmac.h"
#include "base/instant.h"
#include "base/json.h"
#include "core/saga/machine.h"
#include "core/saga/sensitive.h"

/* --- reading the state --- */

bool step_is_wait(const struct saga *saga, uint32_t step)
{
    const struct step_definition *definition = &saga->definition->steps[step];

    return !step_is_group(definition) &&
           (definition->kind == STEP_SLEEP || definition->kind == STEP_SIGNAL || definition->kind == STEP_APPROVE);
}

static bool step_awaits(const struct saga *saga, uint32_t step, struct slice name)
{
    const struct step_definition *definition = &saga->definition->steps[step];

    return saga->steps[step].forward.state == OP_WAITING && definition->kind == STEP_SIGNAL &&
           slice_equal(definition->signal_name, name);
}

/* Returns the oldest signal of this name that no step has taken, or NULL. */
static struct kept_signal *signal_kept(const struct saga *saga, struct slice name)
{
    struct kept_signal *signal = saga->signal_kept ? saga->signals : NULL;

    while (signal && (signal->taken || !slice_equal(signal->name, name))) {
        signal = signal->next;
    }
    return signal;
}

/* Returns the step that takes this signal now: the first one that began to wait for it. */
static uint32_t signal_taker(const struct saga *saga, struct slice name)
{
    uint32_t taker = STEP_NONE;

    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (step_awaits(saga, i, name) &&
            (taker == STEP_NONE || saga->steps[i].start_order < saga->steps[taker].start_order)) {
            taker = i;
        }
    }
    return taker;
}

/* --- beginning to wait --- */

static bool sleep_until(struct slice value, int64_t now_ms, struct arena *arena, int64_t *due_ms)
{
    struct slice text = json_type(value) == JSON_STRING ? json_string(value, arena) : SLICE_NONE;
    int64_t ms;

    if (!text.ptr) {
        return false;
    }
    if (duration_parse(text, &ms)) {
        *due_ms = now_ms + ms;
        return true;
    }
    if (!instant_parse(text, &ms)) {
        return false;
    }
    *due_ms = ms > now_ms ? ms : now_ms; /* a time that is over by then ends the wait at once */
    return true;
}

/* Who is shown it with sensitive members masked could try these out against a plain digest. */
static struct digest hash_of(const struct machine *m, struct slice shown)
{
    struct digest digest = canon_digest(shown, m->turn);

    if (!m->input->digest_key || !saga_has_sensitive(m->saga)) {
        return digest;
    }
    return hmac_sha256((struct slice){(const char *)m->input->digest_key->bytes, sizeof(m->input->digest_key->bytes)},
                       (struct slice){(const char *)digest.bytes, sizeof(digest.bytes)});
}

void wait_begin(struct machine *m, uint32_t step, struct slice value)
{
    const struct step_definition *definition = &m->saga->definition->steps[step];
    struct record record = {.type = RECORD_STEP_WAITING, .step = step};

    CHECK(step_is_wait(m->saga, step));
    if (definition->kind == STEP_SLEEP) {
        if (!sleep_until(value, m->input->now_ms, m->turn, &record.due_ms)) {
            forward_refuse_arguments(m, step,
                                     SLICE("what it sleeps is neither a duration like \"30m\" nor an instant like "
                                           "\"2030-01-31T09:00:00Z\", as text"));
            return;
        }
    } else {
        record.due_ms = definition->wait_timeout_ms ? m->input->now_ms + definition->wait_timeout_ms : 0;
    }
    if (definition->kind == STEP_APPROVE) {
        record.args = template_is_set(&definition->show) ? value : SLICE("null");
        record.fingerprint = hash_of(m, record.args);
        record.approval = approval_number(m);
    }
    machine_emit(m, &record);
}

/* --- the end of a wait --- */

void wait_complete(struct machine *m, uint32_t step, struct slice result)
{
    struct record record = {.type = RECORD_STEP_COMPLETED, .step = step, .result = result};

    machine_emit(m, &record);
}

void wait_fail(struct machine *m, uint32_t step, struct why why)
{
    struct record record = {.type = RECORD_STEP_FAILED, .step = step, .error = why.error, .detail = why.detail};

    machine_emit(m, &record);
}

void wait_over(struct machine *m, uint32_t step)
{
    const struct operation *op = &m->saga->steps[step].forward;

    if (op->state != OP_WAITING || !op->due_ms || m->input->now_ms < op->due_ms) {
        return;
    }
    if (m->saga->definition->steps[step].kind == STEP_SLEEP) {
        wait_complete(m, step, SLICE("null"));
    } else if (m->saga->definition->steps[step].kind == STEP_SIGNAL) {
        wait_fail(m, step, WHY("timeout", "the signal did not come in time"));
    } else if (!m->saga->held_ms) {
        wait_fail(m, step, WHY("timeout", "nobody decided in time"));
    }
}

bool wait_advance(struct machine *m)
{
    const struct saga *saga = m->saga;

    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        const struct operation *op = &saga->steps[i].forward;
        const struct step_definition *definition = &saga->definition->steps[i];
        const struct kept_signal *signal;

        if (op->state != OP_WAITING) {
            continue;
        }
        if (definition->kind == STEP_SLEEP && op->due_ms <= m->input->now_ms) {
            wait_complete(m, i, SLICE("null"));
            return true;
        }
        signal = definition->kind == STEP_SIGNAL ? signal_kept(saga, definition->signal_name) : NULL;
        if (signal && signal_taker(saga, definition->signal_name) == i) {
            wait_complete(m, i, signal->payload);
            return true;
        }
    }
    return false;
}

/* --- signals --- */

static void signal_names(const struct definition *definition, struct buffer *out)
{
    for (uint32_t i = 0; i < definition->step_count; i++) {
        const struct step_definition *step = &definition->steps[i];

        /* Signals of children are written there, and those of elements once for all. */
        if (step->kind == STEP_SIGNAL && !step->written_in && step->element == ELEMENT_NONE) {
            buffer_printf(out, "%s%.*s", out->len ? ", " : "", SLICE_ARG(step->signal_name));
        }
    }
}

static enum err_code refuse_signal_name(struct machine *m)
{
    struct slice name = m->input->signal.name;
    struct buffer names;

    (void)err_set(m->err, ERR_INVALID, "no step of the saga waits for a signal %.*s", SLICE_ARG(name));
    buffer_init(&names, 400);
    signal_names(m->saga->definition, &names);
    for (uint32_t i = 0; i < m->saga->definition->child_count; i++) {
        signal_names(m->saga->definition->children[i], &names);
    }
    if (names.len > 0) {
        err_hint(m->err, "Awaited are: %.*s%s.", SLICE_ARG(buffer_slice(&names)), names.overflow ? " and more" : "");
    } else {
        err_hint(m->err, "Its definition has no step that waits for a signal.");
    }
    buffer_fini(&names);
    return ERR_INVALID;
}

static enum err_code signal_check(struct machine *m)
{
    const struct saga *saga = m->saga;

    if (saga_is_open(saga)) {
        (void)err_set(m->err, ERR_CONFLICT, "the steps of this saga are calls: none waits for a signal");
        err_hint(m->err, "Signals are for sagas with a definition.");
        return ERR_CONFLICT;
    }
    if (saga->seq == 0) {
        return err_set(m->err, ERR_CONFLICT, "the saga has not started");
    }
    if (!definition_awaits(saga->definition, m->input->signal.name)) {
        return refuse_signal_name(m);
    }
    return ERR_OK;
}

/* Returns the signal that came under this id before, or NULL. */
static const struct kept_signal *signal_find(const struct saga *saga, struct slice id)
{
    const struct kept_signal *signal = id.ptr ? saga->signals : NULL;

    while (signal && !(signal->id.ptr && slice_equal(signal->id, id))) {
        signal = signal->next;
    }
    return signal;
}

static size_t signal_bytes(const struct saga *saga)
{
    size_t bytes = 0;

    for (const struct kept_signal *signal = saga->signals; signal; signal = signal->next) {
        bytes += signal->payload.len; /* a taken signal has no payload */
    }
    return bytes;
}

static enum err_code signal_check_state(struct machine *m)
{
    const struct saga *saga = m->saga;
    bool is_full = saga->signal_kept >= SIGNALS_MAX || saga->signal_count >= SIGNAL_IDS_MAX ||
                   (saga->signal_kept > 0 && signal_bytes(saga) + m->input->signal.payload.len > SIGNAL_BYTES_MAX);

    if (saga->phase == PHASE_ENDED) {
        return err_set(m->err, ERR_ENDED, "the saga has ended %s", saga_status_name(saga->end));
    }
    if (saga->phase != PHASE_FORWARD) {
        return err_set(m->err, ERR_CLOSED, "the saga is being undone: nothing of it waits any more");
    }
    if (is_full) {
        (void)err_set(m->err, ERR_BUSY, "the saga takes no more signals now");
        err_detail(
            m->err,
            "%u are kept for steps that do not wait yet, of %u and 16 MiB at most; %u have come in all, of %u at most",
            saga->signal_kept, SIGNALS_MAX, saga->signal_count, SIGNAL_IDS_MAX);
        return ERR_BUSY;
    }
    return ERR_OK;
}

enum err_code wait_signal(struct machine *m)
{
    const struct saga_input *input = m->input;
    struct saga *saga = m->saga;
    struct slice payload = input->signal.payload.len ? input->signal.payload : SLICE("null");
    const struct kept_signal *earlier;
    struct record record = {.type = RECORD_SIGNAL_RECEIVED, .step = STEP_NONE};
    enum err_code code = signal_check(m);

    if (code != ERR_OK) {
        return code;
    }
    earlier = signal_find(saga, input->signal.id);
    if (earlier) { /* a repeat, even after the saga has ended */
        struct digest digest = canon_digest(payload, m->turn);

        if (slice_equal(earlier->name, input->signal.name) && digest_equal(&earlier->digest, &digest)) {
            return ERR_OK;
        }
        (void)err_set(m->err, ERR_OTHER_INPUT,
                      "a signal %.*s came under this Idempotency-Key before, and it was another one",
                      SLICE_ARG(earlier->name));
        err_hint(m->err, "Give each signal an Idempotency-Key of its own.");
        return ERR_OTHER_INPUT;
    }
    code = signal_check_state(m);
    if (code != ERR_OK) {
        return code;
    }
    record.signal = input->signal.name;
    record.args = payload;
    record.emission = input->signal.id;
    record.actor = input->signal.actor;
    record.step = pause_holds(saga) ? STEP_NONE : signal_taker(saga, record.signal);
    machine_emit(m, &record);
    if (record.step != STEP_NONE) {
        wait_complete(m, record.step, payload);
    }
    return ERR_OK;
}

/* --- checking --- */

static bool check_waiting(const struct saga *saga, const struct record *record, struct err *err)
{
    const struct step_definition *definition = &saga->definition->steps[record->step];
    bool approve = definition->kind == STEP_APPROVE;
    static const struct digest none;

    if (!step_is_wait(saga, record->step)) {
        return check_refuse(record, err, "this step has nothing to wait for");
    }
    if (!step_is_ready(saga, record->step)) {
        return check_refuse(record, err, "its turn has not come");
    }
    if (approve != (record->approval != 0) || approve != (record->args.ptr != NULL) ||
        approve != (memcmp(&record->fingerprint, &none, sizeof(none)) != 0)) {
        return check_refuse(record, err, "only what a person is to approve has a number and shows something");
    }
    if (approve && approval_step(saga, record->approval) != STEP_NONE) {
        return check_refuse(record, err, "there is an approval %llu", (unsigned long long)record->approval);
    }
    if (definition->kind == STEP_SLEEP ? record->due_ms == 0
                                       : (record->due_ms != 0) != (definition->wait_timeout_ms != 0)) {
        return check_refuse(record, err, "the end of the wait is not as it is defined");
    }
    return true;
}

/*
 * Was the id rewritten? Earlier releases accepted ids that were not UTF-8, and wrote U+FFFD for each wrong byte. Two
 * different ids may then read alike, and both were signals. The rest of such a log relies on both.
 */
static bool was_rewritten(struct slice id)
{
    return memmem(id.ptr, id.len, "\xef\xbf\xbd", 3) != NULL;
}

static bool check_signal(const struct saga *saga, const struct record *record, struct err *err)
{
    if (saga_is_open(saga) || !definition_awaits(saga->definition, record->signal)) {
        return check_refuse(record, err, "no step waits for this signal");
    }
    if (signal_find(saga, record->emission) && !was_rewritten(record->emission)) {
        return check_refuse(record, err, "it was received before");
    }
    if (saga->signal_kept >= SIGNALS_MAX || saga->signal_count >= SIGNAL_IDS_MAX) {
        return check_refuse(record, err, "there are too many signals");
    }
    if (record->step != STEP_NONE &&
        (pause_holds(saga) || !step_awaits(saga, record->step, record->signal) || signal_kept(saga, record->signal))) {
        return check_refuse(record, err,
                            "the step that is to take it does not wait for it, or an earlier one comes first");
    }
    return true;
}

static bool check_ended(const struct saga *saga, const struct record *record, struct err *err)
{
    const struct step_definition *definition = &saga->definition->steps[record->step];
    const struct step *step = &saga->steps[record->step];
    const struct kept_signal *signal;

    if (!uuid_is_nil(&record->key.uuid) || record->attempt) {
        return check_refuse(record, err, "a wait has no key and no attempts");
    }
    if (record->type == RECORD_STEP_FAILED && step->forward.state == OP_NONE) {
        return step_is_ready(saga, record->step) || check_refuse(record, err, "its turn has not come");
    }
    if (step->forward.state != OP_WAITING) {
        return check_refuse(record, err, "it does not wait");
    }
    if (record->type == RECORD_STEP_FAILED) {
        return true;
    }
    if (definition->kind == STEP_SLEEP) {
        return (slice_is(record->result, "null") && record->at_ms >= step->forward.due_ms) ||
               check_refuse(record, err, "its time has not come");
    }
    if (definition->kind == STEP_SIGNAL) {
        signal = signal_kept(saga, definition->signal_name);
        return (signal && slice_equal(signal->payload, record->result)) ||
               check_refuse(record, err, "no such signal was received");
    }
    return step->decided_by.ptr || check_refuse(record, err, "nobody has approved it");
}

bool check_wait(const struct saga *saga, const struct record *record, struct err *err)
{
    if (record->type == RECORD_STEP_WAITING) {
        return check_waiting(saga, record, err);
    }
    if (record->type == RECORD_SIGNAL_RECEIVED) {
        return check_signal(saga, record, err);
    }
    return record->type == RECORD_APPROVAL_DECIDED ? check_decided(saga, record, err) : check_ended(saga, record, err);
}

/* --- folding --- */

void apply_waiting(struct saga *saga, const struct record *record)
{
    struct step *step = &saga->steps[record->step];
    struct operation *op = &step->forward;

    CHECK(operation_may_move(op->state, OP_WAITING));
    op->state = OP_WAITING;
    op->effect = EFFECT_READ;
    op->created_ms = record->at_ms;
    op->changed_ms = record->at_ms;
    op->due_ms = record->due_ms;
    op->args = apply_keep(saga, record->args);
    op->fingerprint = record->fingerprint;
    step->approval = record->approval;
    step->start_order = ++saga->started_count;
    step->started_ms = record->at_ms;
    step->begun_seq = record->seq;
}

/* Makes the list of signals this state's own. A copy borrows the list until it changes it, because a trial must not
 * show in the state. */
static void own_signals(struct saga *saga)
{
    struct kept_signal **at = &saga->signals;

    while (saga->signals_borrowed && *at) {
        *at = arena_dup(saga_memory(saga), *at, sizeof(**at));
        at = &(*at)->next;
    }
    saga->signals_borrowed = false;
}

void apply_signal(struct saga *saga, const struct record *record)
{
    struct kept_signal *signal = arena_alloc(saga_memory(saga), sizeof(*signal)), **end = &saga->signals;
    struct arena scratch;

    own_signals(saga);
    while (*end) {
        end = &(*end)->next;
    }
    *end = signal;
    signal->name = apply_keep(saga, record->signal);
    signal->payload = apply_keep(saga, record->args);
    signal->id = apply_keep(saga, record->emission);
    arena_init(&scratch, 4096);
    signal->digest = canon_digest(record->args, &scratch);
    arena_fini(&scratch);
    saga->signal_count++;
    saga->signal_kept++;
}

static void take_signal(struct saga *saga, struct slice name)
{
    struct kept_signal *signal;

    own_signals(saga);
    signal = signal_kept(saga, name);
    CHECK(signal);
    signal->taken = true;
    signal->payload = SLICE_NONE;
    saga->signal_kept--;
}

void apply_ended_wait(struct saga *saga, const struct record *record)
{
    struct step *step = &saga->steps[record->step];
    struct operation *op = &step->forward;
    bool completed = record->type == RECORD_STEP_COMPLETED;

    CHECK(operation_may_move(op->state, completed ? OP_COMPLETED : OP_FAILED));
    op->state = completed ? OP_COMPLETED : OP_FAILED;
    op->effect = EFFECT_READ;
    op->created_ms = op->created_ms ? op->created_ms : record->at_ms;
    op->ended_ms = op->changed_ms = record->at_ms;
    op->error = apply_keep(saga, record->error);
    op->detail = apply_keep(saga, record->detail);
    step->settled_seq = record->seq;
    if (completed) {
        op->result = apply_keep(saga, record->result);
        if (saga->definition->steps[record->step].kind == STEP_SIGNAL) {
            take_signal(saga, saga->definition->steps[record->step].signal_name);
        }
    }
}
