/* See operation.h. */
#include "tools/sagactl/hammer/operation.h"

#include <string.h>

#include "base/json.h"

#define RESULTS_MAX 128
#define FINISH_TRIES 8
#define FINISH_WAIT_MS 25       /* before the second try; twice that before the third, and so on */
#define RETRY_AFTER_MAX_MS 5000 /* what a receiver asks for is heeded up to that */
#define POLL_MS 20
#define COUNTER_TRIES 3
#define UNIQUE "{unique}"

/* --- keys and arguments --- */

/* Makes a text that no other operation has, neither of this run nor of another. */
static struct slice unique_text(struct hammer *hammer)
{
    char run[UUID_TEXT_BYTES];

    uuid_text(&hammer->run, run);
    return arena_printf(&hammer->ctl->arena, "%.18s-%u", run, hammer->operation_count);
}

static struct slice new_key(struct hammer *hammer)
{
    char text[UUID_TEXT_BYTES];

    hammer->operation_count++;
    struct slice name = unique_text(hammer);
    struct digest digest = digest_fields("hammer", &name, 1);
    struct uuid key = uuid_v8(&digest);

    uuid_text(&key, text);
    return arena_slice(&hammer->ctl->arena, slice_of(text));
}

static struct slice args_of(struct hammer *hammer, struct slice args)
{
    struct slice unique = unique_text(hammer);
    struct slice text = args;
    struct buffer out;
    const char *at;

    buffer_init(&out, (size_t)16 << 20);
    while ((at = memmem(text.ptr, text.len, UNIQUE, strlen(UNIQUE)))) {
        size_t before = (size_t)(at - text.ptr);

        buffer_put(&out, text.ptr, before);
        buffer_put_slice(&out, unique);
        text = (struct slice){at + strlen(UNIQUE), text.len - before - strlen(UNIQUE)};
    }
    buffer_put_slice(&out, text);
    CHECK(!out.overflow);
    struct slice result = arena_slice(&hammer->ctl->arena, buffer_slice(&out));

    buffer_fini(&out);
    return result;
}

static bool broken(struct hammer *hammer, struct slice why)
{
    hammer->broken = why;
    return false;
}

/* --- counting --- */

static struct strike strike_of(const struct operation *operation)
{
    return (struct strike){.tool = operation->tool,
                           .effect = operation->effect,
                           .args = operation->args,
                           .key = operation->key,
                           .undoes = operation->undoes,
                           .attempt = (int)operation->calls + 1,
                           .cut_ms = STRIKE_WHOLE};
}

static struct slice sentence_of(const struct strike *strike)
{
    const struct outcome *outcome = &strike->outcome;

    return outcome->detail.len > 0 ? outcome->detail : outcome->error.len > 0 ? outcome->error : SLICE("no answer");
}

/* Reads the counter. */
static bool counter_read(const struct operation *operation, int64_t *value)
{
    struct hammer *hammer = operation->hammer;

    if (hammer->evidence.counter == COUNTER_ANSWERS) {
        *value = (int64_t)operation->result_count;
        return true;
    }
    bool own = hammer->evidence.counter == COUNTER_PROBE;
    struct strike strike;

    /* It only reads, so it may be asked again: a receiver may have closed the connection that was kept for it. */
    for (int asked = 0; asked < COUNTER_TRIES; asked++) {
        strike = strike_of(operation);
        strike.tool = own ? hammer->tool : hammer->counter;
        strike.is_probe = own;
        strike.effect = EFFECT_READ;
        strike_all(&hammer->target, &strike, 1, &hammer->ctl->arena);
        hammer->target.sent -= !own;
        if (strike.outcome.kind != OUTCOME_UNKNOWN && strike.outcome.kind != OUTCOME_RETRY) {
            break;
        }
    }
    if (own && (strike.outcome.kind == OUTCOME_ABSENT || strike.outcome.kind == OUTCOME_RUNNING)) {
        *value = 0;
        return true;
    }
    if (strike.outcome.kind != OUTCOME_COMPLETED) {
        return broken(hammer, arena_printf(&hammer->ctl->arena, "the counter does not answer: %.*s",
                                           SLICE_ARG(sentence_of(&strike))));
    }
    if (!json_i64(strike.outcome.result, value)) {
        return broken(hammer, SLICE("the result of the counter is no whole number; give it a `result` that is one"));
    }
    return true;
}

bool operation_effects(struct operation *operation, int64_t *effects)
{
    int64_t value = 0;

    target_wait(&operation->hammer->target, operation->hammer->settle_ms);
    if (!counter_read(operation, &value)) {
        return false;
    }
    *effects = value - operation->base;
    return true;
}

bool operation_rebase(struct operation *operation)
{
    return counter_read(operation, &operation->base);
}

static void operation_init(struct hammer *hammer, struct operation *out)
{
    *out = (struct operation){.hammer = hammer,
                              .tool = hammer->tool,
                              .effect = hammer->effect,
                              .results = arena_array(&hammer->ctl->arena, RESULTS_MAX, sizeof(struct digest)),
                              .undoes = SLICE_NONE,
                              .result = SLICE_NONE};
}

bool operation_new(struct hammer *hammer, struct operation *out)
{
    operation_init(hammer, out);
    out->key = new_key(hammer);
    out->args = args_of(hammer, hammer->args);
    return operation_rebase(out);
}

/* Counts the answers of both operations together. */
static void operation_join(const struct operation *first, struct operation *out)
{
    operation_init(first->hammer, out);
    memcpy(out->results, first->results, first->result_count * sizeof(struct digest));
    out->result_count = first->result_count;
}

bool operation_with_key(struct operation *first, struct operation *out)
{
    operation_join(first, out);
    out->key = new_key(first->hammer);
    out->args = first->args;
    return operation_rebase(out);
}

bool operation_with_args(struct operation *first, struct operation *out)
{
    struct hammer *hammer = first->hammer;

    operation_join(first, out);
    hammer->operation_count++;
    out->key = first->key;
    out->args = args_of(hammer, hammer->other_args.ptr ? hammer->other_args : hammer->args);
    return operation_rebase(out);
}

/* --- sending --- */

static bool is_settled_by(const struct tool *tool, int status)
{
    for (size_t i = 0; i < tool->settles_count; i++) {
        if (tool->settles[i] == status) {
            return true;
        }
    }
    return false;
}

static void take_result(struct operation *operation, struct slice result)
{
    struct digest digest;

    operation->result = result.ptr ? result : SLICE("null");
    digest = digest_sha256(operation->result);
    for (size_t i = 0; i < operation->result_count; i++) {
        if (digest_equal(&operation->results[i], &digest)) {
            return;
        }
    }
    if (operation->result_count < RESULTS_MAX) {
        operation->results[operation->result_count++] = digest;
    }
}

static void take_answer(struct operation *operation, const struct strike *strike)
{
    switch (strike->outcome.kind) {
    case OUTCOME_COMPLETED:
        operation->completed++;
        take_result(operation, strike->outcome.result);
        break;
    case OUTCOME_RUNNING:
        operation->completed++;
        break;
    case OUTCOME_FAILED:
        operation->failed++;
        operation->settled += is_settled_by(operation->tool, strike_status(strike));
        break;
    case OUTCOME_RETRY:
    case OUTCOME_UNKNOWN:
    case OUTCOME_ABSENT:
    case OUTCOME_KIND_COUNT:
        break;
    }
    operation->trouble = strike->outcome.kind == OUTCOME_COMPLETED ? SLICE_NONE : sentence_of(strike);
}

static struct outcome send_some(struct operation *operation, size_t count, int64_t cut_ms)
{
    struct hammer *hammer = operation->hammer;
    struct strike *strikes = arena_array(&hammer->ctl->arena, count, sizeof(*strikes));

    for (size_t i = 0; i < count; i++) {
        strikes[i] = strike_of(operation);
        strikes[i].cut_ms = cut_ms;
        operation->calls++;
    }
    strike_all(&hammer->target, strikes, count, &hammer->ctl->arena);
    for (size_t i = 0; i < count; i++) {
        take_answer(operation, &strikes[i]);
    }
    return strikes[count - 1].outcome;
}

void operation_send(struct operation *operation, size_t count, int64_t cut_ms)
{
    (void)send_some(operation, count, cut_ms); /* the answers are kept in the operation */
}

bool operation_finish(struct operation *operation)
{
    int64_t wait_ms = FINISH_WAIT_MS;

    for (int tries = 0; tries < FINISH_TRIES; tries++) {
        struct outcome outcome = send_some(operation, 1, STRIKE_WHOLE);
        int64_t asked_ms = outcome.retry_after_ms > RETRY_AFTER_MAX_MS ? RETRY_AFTER_MAX_MS : outcome.retry_after_ms;

        if (outcome.kind != OUTCOME_RETRY && outcome.kind != OUTCOME_UNKNOWN) {
            return true;
        }
        target_wait(&operation->hammer->target, asked_ms > wait_ms ? asked_ms : wait_ms);
        wait_ms *= 2;
    }
    return false;
}

enum outcome_kind operation_probe(struct operation *operation, int64_t patience_ms, int64_t *unseen_ms)
{
    struct hammer *hammer = operation->hammer;
    int64_t began_ms = loop_boot_ms_now();

    *unseen_ms = 0;
    for (;;) {
        struct strike strike = strike_of(operation);
        int64_t asked_ms = loop_boot_ms_now() - began_ms;

        strike.is_probe = true;
        strike.attempt = (int)operation->calls;
        strike_all(&hammer->target, &strike, 1, &hammer->ctl->arena);
        if (strike.outcome.kind == OUTCOME_COMPLETED) {
            operation->probe_result = strike.outcome.result;
            return OUTCOME_COMPLETED;
        }
        *unseen_ms = asked_ms;
        if (asked_ms >= patience_ms) {
            return strike.outcome.kind;
        }
        target_wait(&hammer->target, POLL_MS);
    }
}

/* --- undo --- */

struct undo_rendering {
    struct rendering rendering;
    struct loop *loop;
    bool is_done;
};

static void on_undo_args(struct rendering *rendering)
{
    struct undo_rendering *undo = container_of(rendering, struct undo_rendering, rendering);

    undo->is_done = true;
    loop_stop(undo->loop);
}

/* The undo key as the engine has it: a compensator gets the key that it undoes where it uses the same memory of
 * keys. */
static bool shares_keys(const struct hammer *hammer)
{
    const struct adapter *adapter = adapter_find(hammer->undo->adapter);

    return slice_equal(hammer->tool->adapter, hammer->undo->adapter) && adapter->shares_keys &&
           adapter->shares_keys(hammer->tool->settings.json, hammer->undo->settings.json);
}

bool operation_undo(struct operation *operation, struct operation *out)
{
    struct hammer *hammer = operation->hammer;
    struct undo_rendering undo = {.loop = hammer->target.loop};
    const struct rendering_item *item = &undo.rendering.items[0];

    undo.rendering = (struct rendering){
        .count = 1,
        .context = {.args = operation->args,
                    .key = operation->key,
                    .result = operation->result.ptr ? operation->result : SLICE("null"),
                    .saga_id = operation->key,
                    .saga_name = SLICE("hammer")},
        .arena = &hammer->ctl->arena,
        .namespace = hammer->target.namespace,
        .done = on_undo_args,
    };
    undo.rendering.items[0].template = &hammer->tool->compensate.with;
    undo.is_done = rendering_start(hammer->target.loop, &undo.rendering);
    while (!undo.is_done) {
        loop_run(hammer->target.loop);
    }
    operation_init(hammer, out);
    out->tool = hammer->undo;
    out->effect = hammer->undo->effect;
    out->key = new_key(hammer);
    out->undoes = shares_keys(hammer) ? operation->key : SLICE_NONE;
    out->args = item->value.ptr ? item->value : SLICE("{}");
    return item->code == ERR_OK;
}
