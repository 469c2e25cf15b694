/* The act that a request is, in words of the table of acts. */
#include "run/request/act.h"

#include "base/json.h"

struct person_act *act_new(struct work *work, const char *verb, const char *kind, struct slice target,
                           struct slice note)
{
    const struct act_by *by = &work->by;
    int64_t now_ms = loop_wall_ms(work->engine->loop);
    struct person_act *act;

    if (!by->via) {
        return NULL;
    }
    act = arena_alloc(&work->arena, sizeof(*act));
    *act = (struct person_act){.id = uuid_v7(now_ms),
                               .at_ms = now_ms,
                               .role = by->role,
                               .via = by->via,
                               .namespace = work->namespace,
                               .actor = work->actor,
                               .address = by->address,
                               .verb = slice_of(verb),
                               .kind = slice_of(kind),
                               .target = target,
                               .note = note};
    work->act = act;
    return act;
}

struct slice act_of_work(struct work *work)
{
    return work->act ? act_text(work->act, &work->arena) : SLICE_NONE;
}

/* --- verbs --- */

static struct slice uuid_slice(const struct uuid *uuid, struct arena *arena)
{
    char text[UUID_TEXT_BYTES];

    uuid_text(uuid, text);
    return arena_slice(arena, slice_of(text));
}

static const char *kind_of(const struct verb *verb)
{
    static const char *const kinds[] = {
        [ON_SAGA] = "saga", [ON_OPERATION] = "operation", [ON_ESCALATION] = "escalation", [ON_APPROVAL] = "approval"};

    return kinds[verb->on];
}

static struct slice target_of(struct work *work)
{
    struct saga_input *input = &work->mail.input;

    switch (work->verb->on) {
    case ON_SAGA:
        return uuid_slice(&work->saga.uuid, &work->arena);
    case ON_OPERATION:
        return uuid_slice(&verb_key(work->verb, input)->uuid, &work->arena);
    case ON_ESCALATION:
    case ON_APPROVAL:
        return arena_printf(&work->arena, "%llu", (unsigned long long)*verb_number(work->verb, input));
    }
    UNREACHABLE();
}

static struct slice note_of(const struct verb *verb, const struct saga_input *input)
{
    for (size_t i = 0; i < verb->member_count; i++) {
        if (verb->members[i].kind == MEMBER_NOTE) {
            const struct slice *note = (const void *)((const char *)input + verb->members[i].at);

            return note->len ? *note : SLICE_NONE;
        }
    }
    return SLICE_NONE;
}

/* What an operator answers a case with is the verb; the verdict is its detail. */
static const char *verb_of(const struct work *work)
{
    return work->verb->input == SAGA_INPUT_OPERATOR ? operator_action_name(work->mail.input.verdict.action)
                                                    : work->verb->name;
}

static struct slice verdict_detail(const struct saga_input *input)
{
    if (input->verdict.action != OPERATOR_RESOLVE) {
        return SLICE_NONE;
    }
    return input->verdict.happened ? SLICE("happened")
           : input->verdict.undone ? SLICE("undone")
           : input->verdict.again  ? SLICE("not happened, retry")
                                   : SLICE("not happened");
}

static struct slice detail_of(struct work *work)
{
    const struct saga_input *input = &work->mail.input;

    switch ((enum verb_id)(work->verb - verbs)) {
    case VERB_RESOLVE:
    case VERB_RESOLVE_OPERATION:
        return verdict_detail(input);
    case VERB_DECIDE:
        return input->decision.approve ? SLICE("approve") : SLICE("refuse");
    case VERB_ASSIGN:
        return input->remark.to.len ? input->remark.to : SLICE("nobody");
    case VERB_SIGNAL:
        return input->signal.name;
    case VERB_MEND:
        return arena_printf(&work->arena, "%.*s %u", SLICE_ARG(input->mend.tool), (unsigned)input->mend.version);
    case VERB_COST:
        return arena_printf(&work->arena, "%lld", (long long)input->cost.micros);
    case VERB_PAUSE:
    case VERB_RESUME:
    case VERB_RERUN:
    case VERB_ABORT:
    case VERB_ESCALATE:
    case VERB_COMPLETE:
    case VERB_ACKNOWLEDGE:
    case VERB_COMMENT:
    case VERB_BYPASS:
        return SLICE_NONE;
    case VERB_COUNT:
        break;
    }
    UNREACHABLE();
}

void act_of_change(struct work *work)
{
    struct person_act *act =
        act_new(work, verb_of(work), kind_of(work->verb), target_of(work), note_of(work->verb, &work->mail.input));

    if (act) {
        act->detail = detail_of(work);
        act->saga = work->saga;
        act->tool = work->verb == &verbs[VERB_MEND] ? work->mail.input.mend.tool : SLICE_NONE;
        work->mail.act = act;
    }
}
