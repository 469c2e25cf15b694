/*
 * A person makes a running saga go on with another version of a tool, from its next attempt or probe on. Keys do not
 * change, because they hold no version. What a call may have done already restricts the change. An operation that has
 * begun keeps its class, key, compensator and `terminal`. While nobody knows what its receiver did, it also keeps the
 * receiver, unless a person accepts that the call may happen twice.
 *
 * A call or a probe that is out is awaited, and the version that made it reads its answer.
 */
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "core/definition/definition.h"
#include "core/saga/machine.h"

#define MEND (m->input->mend)

/* --- the receiver --- */

static bool is_same(struct slice a, struct slice b)
{
    return slice_equal(json_trim(a), json_trim(b));
}

static size_t until(struct slice text, size_t from, const char *any)
{
    while (from < text.len && !strchr(any, text.ptr[from])) {
        from++;
    }
    return from;
}

struct url_origin { /* the origin of a URL; a URL that begins with a secret has that secret, with what follows it, in
                   place of all three */
    struct slice scheme, host, port;
};

static struct slice part(struct slice text, size_t from, size_t to)
{
    return (struct slice){text.ptr + from, to - from};
}

static struct url_origin origin_of(struct slice url)
{
    struct url_origin origin = {0};
    size_t scheme = 0, host, end, port;

    if (slice_starts_with(url, "${")) {
        end = until(url, until(url, 0, "}"), "/?#");
        origin.host = part(url, 0, end);
        return origin;
    }
    while (scheme < url.len && url.ptr[scheme] != ':') {
        scheme++;
    }
    origin.scheme = part(url, 0, scheme);
    host = scheme + 3 < url.len ? scheme + 3 : url.len; /* behind "://" */
    end = until(url, host, "/?#");
    for (size_t i = host; i < end; i++) {
        host = url.ptr[i] == '@' ? i + 1 : host; /* a user is not part of the receiver */
    }
    port = host < end && url.ptr[host] == '[' ? until(url, host, "]") : host;
    port = until(part(url, 0, end), port, ":");
    origin.host = part(url, host, port);
    origin.port = port < end ? part(url, port + 1, end) : SLICE_NONE;
    if (!origin.port.len) {
        origin.port = origin.scheme.len == 4 ? SLICE("80") : SLICE("443");
    }
    return origin;
}

static bool is_same_word(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || strncasecmp(a.ptr, b.ptr, a.len) == 0);
}

static bool is_same_url(struct slice a, struct slice b, struct arena *arena)
{
    struct url_origin x, y;

    if (json_type(a) != JSON_STRING || json_type(b) != JSON_STRING) {
        return is_same(a, b);
    }
    x = origin_of(json_string(a, arena));
    y = origin_of(json_string(b, arena));
    return is_same_word(x.scheme, y.scheme) && is_same_word(x.host, y.host) && slice_equal(x.port, y.port);
}

static bool is_same_program(struct slice a, struct slice b)
{
    return json_type(a) != JSON_ARRAY ? is_same(a, b) : is_same(json_element(a, 0), json_element(b, 0));
}

/* Do both settings lead to the same receiver? It is scheme, host and port for HTTP, a database, or a program. */
static bool is_same_receiver(struct slice adapter, struct slice a, struct slice b, struct arena *arena)
{
    if (slice_is(adapter, "mcp")) {
        a = json_member(a, "server");
        b = json_member(b, "server");
        return is_same_url(json_member(a, "url"), json_member(b, "url"), arena) &&
               is_same_program(json_member(a, "argv"), json_member(b, "argv"));
    }
    if (slice_is(adapter, "http")) {
        return is_same_url(json_member(a, "url"), json_member(b, "url"), arena);
    }
    if (slice_is(adapter, "sql")) {
        return is_same(json_member(a, "database"), json_member(b, "database"));
    }
    return !slice_is(adapter, "exec") || is_same_program(json_member(a, "argv"), json_member(b, "argv"));
}

/* Have both tools one receiver, for calls and for probes? A probe of another receiver would say that nothing happened.
 * The first probe asks the receiver of the call. */
static bool tools_have_one_receiver(const struct tool *a, const struct tool *b, struct arena *arena)
{
    struct slice adapter = a->has_probe ? a->probe.adapter : a->adapter,
                 asked = a->has_probe ? a->probe.settings.json : a->settings.json;

    if (!slice_equal(a->adapter, b->adapter) ||
        !is_same_receiver(a->adapter, a->settings.json, b->settings.json, arena)) {
        return false;
    }
    return !b->has_probe ||
           (slice_equal(adapter, b->probe.adapter) && is_same_receiver(adapter, asked, b->probe.settings.json, arena));
}

/* --- what binds --- */

static bool is_same_template(const struct template *a, const struct template *b)
{
    return a->json.ptr && b->json.ptr ? is_same(a->json, b->json) : !a->json.ptr && !b->json.ptr;
}

static bool is_same_class(const struct tool *a, const struct tool *b)
{
    return a->effect == b->effect && a->conditional == b->conditional &&
           (!a->conditional || (a->effect_then == b->effect_then && a->effect_else == b->effect_else &&
                                is_same_template(&a->effect_if, &b->effect_if)));
}

static bool is_same_key(const struct tool *a, const struct tool *b)
{
    return a->key_place == b->key_place && slice_equal(a->key_name, b->key_name) &&
           a->key_window_ms == b->key_window_ms && a->settles_count == b->settles_count &&
           memcmp(a->settles, b->settles, a->settles_count * sizeof(*a->settles)) == 0;
}

static bool is_undone_alike(const struct step_definition *a, const struct step_definition *b)
{
    const struct compensator *x = &a->compensate, *y = &b->compensate;

    return a->terminal == b->terminal && x->is_set == y->is_set &&
           (!x->is_set || (slice_equal(x->tool_name, y->tool_name) && is_same_template(&x->with, &y->with) &&
                           x->tolerates_absent == y->tolerates_absent && x->voids_key == y->voids_key));
}

/* Is the operation undecided? Nobody knows what it did, or it is to be called again. */
static bool is_undecided(const struct operation *op)
{
    return operation_calls(op) > 0 && op->state != OP_COMPLETED && op->state != OP_SKIPPED &&
           (op->state != OP_FAILED || op->took_effect == TOOK_EFFECT_MAYBE);
}

struct mending {
    const struct saga *saga;
    const struct definition *next;
    bool accept_double;
    struct arena *arena;
    struct err *err;
};

static bool refuse(const struct mending *mending, uint32_t step, const char *what)
{
    (void)err_set(mending->err, ERR_CONFLICT, "this version has another %s, and %.*s has begun under the one before",
                  what, SLICE_ARG(mending->saga->definition->steps[step].id));
    return false;
}

static bool operation_goes_on(const struct mending *mending, uint32_t step, enum direction direction)
{
    const struct operation *op = operation_of(mending->saga, step, direction);
    const struct step_definition *before = &mending->saga->definition->steps[step],
                                 *after = &mending->next->steps[step];
    const struct tool *old = direction == DIRECTION_DO ? before->tool : before->compensate.tool,
                      *new = direction == DIRECTION_DO ? after->tool : after->compensate.tool;

    if (op->state == OP_NONE || old == new) {
        return true;
    }
    if (!is_same_class(old, new)) {
        return refuse(mending, step, "class");
    }
    if (!is_same_key(old, new)) {
        return refuse(mending, step, "rule for its key");
    }
    if (!is_same_template(&old->scope, &new->scope)) {
        return refuse(mending, step, "scope");
    }
    if (direction == DIRECTION_DO && !is_undone_alike(before, after)) {
        return refuse(mending, step, before->terminal == after->terminal ? "compensator" : "`terminal`");
    }
    if (op->state == OP_PROBING && !new->has_probe) {
        (void)err_set(mending->err, ERR_CONFLICT, "this version has no probe, and %.*s is being probed",
                      SLICE_ARG(before->id));
        return false;
    }
    if (is_undecided(op) && !mending->accept_double && !tools_have_one_receiver(old, new, mending->arena)) {
        (void)refuse(mending, step, "receiver");
        err_detail(mending->err, "what the receiver before may have done, another one does not know");
        err_hint(mending->err, "Set \"accept_double\": true to take that upon yourself");
        return false;
    }
    return true;
}

/* Can the step go on? A step that is about to begin may already be judged by the class of the version before. */
static bool step_goes_on(const struct mending *mending, uint32_t step)
{
    const struct saga *saga = mending->saga;
    const struct tool *old = saga->definition->steps[step].tool, *new = mending->next->steps[step].tool;

    if (old && old != new &&step_is_ready(saga, step) && step_needs_evaluation(saga, step) &&
        !is_same_class(old, new)) {
        return refuse(mending, step, "class");
    }
    return operation_goes_on(mending, step, DIRECTION_DO) && operation_goes_on(mending, step, DIRECTION_UNDO);
}

static bool saga_goes_on(const struct mending *mending)
{
    for (uint32_t i = 0; i < mending->saga->definition->step_count; i++) {
        if (!step_goes_on(mending, i)) {
            return false;
        }
    }
    return true;
}

/* --- the verb --- */

static bool is_about(const struct saga *saga, uint32_t step, enum direction direction, struct slice tool)
{
    const struct step_definition *definition = &saga->definition->steps[step];
    const struct tool *called = direction == DIRECTION_DO ? definition->tool : definition->compensate.tool;

    return called && slice_equal(called->name, tool);
}

static enum err_code check_nothing_is_out(struct machine *m)
{
    for (uint32_t i = 0; i < m->saga->definition->step_count; i++) {
        for (unsigned d = 0; d < DIRECTION_COUNT; d++) {
            const struct operation *op = operation_of(m->saga, i, (enum direction)d);

            if (!is_about(m->saga, i, (enum direction)d, MEND.tool)) {
                continue;
            }
            if (op->state == OP_IN_FLIGHT) {
                (void)err_set(m->err, ERR_CALL_OUT, "a call of this tool is under way");
                err_hint(m->err, "Say it again when the call has ended, or pause the saga first.");
                return ERR_CALL_OUT;
            }
            if (operation_is_asked_now(m->saga, op, m->input->now_ms)) {
                (void)err_set(m->err, ERR_PROBE_OUT, "a probe of this tool is under way");
                err_hint(m->err, "Say it again when the probe has answered, or pause the saga first.");
                return ERR_PROBE_OUT;
            }
        }
    }
    return ERR_OK;
}

static enum err_code check_request(struct machine *m)
{
    const struct saga *saga = m->saga;

    if (saga->seq == 0) {
        return err_set(m->err, ERR_CONFLICT, "the saga has not started");
    }
    if (saga->phase == PHASE_ENDED) {
        return err_set(m->err, ERR_ENDED, "the saga has ended %s", saga_status_name(saga->end));
    }
    if (!MEND.actor.len || !MEND.note.len) {
        return err_set(m->err, ERR_INVALID, "who mends a tool says why");
    }
    if (definition_tool_version(saga->definition, MEND.tool) == 0) {
        (void)err_set(m->err, ERR_INVALID, "this saga calls no registered tool %.*s", SLICE_ARG(MEND.tool));
        err_hint(m->err, "A tool that is written in its step is mended with its saga, by a rerun.");
        return ERR_INVALID;
    }
    return ERR_OK;
}

static bool has_it(const struct definition *definition, struct slice tool, uint32_t version)
{
    for (uint32_t i = 0; i < definition->step_count && definition->kind != SAGA_DEFINED; i++) {
        const struct step_definition *step = &definition->steps[i];

        if ((step->tool && slice_equal(step->tool->name, tool) && step->tool->version != version) ||
            (step->compensate.tool && slice_equal(step->compensate.tool->name, tool) &&
             step->compensate.tool->version != version)) {
            return false;
        }
    }
    return definition->kind != SAGA_DEFINED || definition_tool_version(definition, tool) == version;
}

enum err_code mend_decide(struct machine *m)
{
    struct record record = {.type = RECORD_TOOL_MENDED, .step = STEP_NONE};
    struct mending mending = {.saga = m->saga, .accept_double = MEND.accept_double, .arena = m->turn, .err = m->err};
    enum err_code code = check_request(m);

    if (code != ERR_OK || has_it(m->saga->definition, MEND.tool, MEND.version)) {
        return code; /* a repeat */
    }
    code = check_nothing_is_out(m);
    if (code != ERR_OK) {
        return code;
    }
    if (!definition_mendable(m->saga->definition, m->saga->namespace, MEND.tool, MEND.version, m->err)) {
        return m->err->code;
    }
    mending.next = definition_mend(m->saga->definition, m->saga->namespace, MEND.tool, MEND.version, m->turn);
    if (!saga_goes_on(&mending)) {
        return m->err->code;
    }
    record.tool_name = MEND.tool;
    record.tool_version = MEND.version;
    record.accept_double = MEND.accept_double;
    record.actor = MEND.actor;
    record.note = MEND.note;
    machine_emit(m, &record);
    return ERR_OK;
}

/* --- checking and folding --- */

bool check_mended(const struct saga *saga, const struct record *record, struct err *err)
{
    struct arena arena;
    struct err why = {0};
    struct mending mending = {.saga = saga, .accept_double = record->accept_double, .arena = &arena, .err = &why};
    bool fits = definition_mendable(saga->definition, saga->namespace, record->tool_name, record->tool_version, &why);

    arena_init(&arena, 4096);
    if (fits) {
        mending.next =
            definition_mend(saga->definition, saga->namespace, record->tool_name, record->tool_version, &arena);
        fits = saga_goes_on(&mending);
    }
    arena_fini(&arena);
    return fits || check_refuse(record, err, "%s", why.message);
}

void apply_mended(struct saga *saga, const struct record *record)
{
    saga->definition =
        definition_mend(saga->definition, saga->namespace, record->tool_name, record->tool_version, saga_memory(saga));
}
