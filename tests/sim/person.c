/*
 * People on call. They look at open questions, find out what truly happened, and decide. Some are slow, and sometimes
 * two decide the same question at once. A person says that something has not happened only when the question is so old
 * that no request can still be under way. Hasty people do not wait before they have a call repeated; the engine has to
 * wait for them.
 */
#include "tests/sim/drive.h"

#include <string.h>

#include "base/json.h"
#include "base/role.h"

#define PEOPLE_MAX 2
#define QUESTIONS_MAX 128
#define OLD_US 15000000 /* longer than any request is under way */
#define PATIENT_TRIES 6
#define HASTY_PERCENT 80

struct question { /* an open escalation as a person knows it */
    uint64_t number;
    int64_t first_seen_us;
    uint32_t tries;
    bool retries; /* the person retries instead of finding out what happened */
    bool plainly; /* the operation cannot be called again */
    bool hasty;   /* the operation is called again at once, although a request may be under way */
};

struct person {
    uint32_t index;
    struct inquiry inquiry;
    struct event look;
    enum person_state { PERSON_READS_QUESTIONS, PERSON_RESOLVES, PERSON_READS_APPROVALS, PERSON_DECIDES } state;
    bool found;    /* the person found something to decide in this round */
    bool was_free; /* nothing was open at the last look */
    /* the decision that is being made */
    struct question *question;
    uint64_t number, round;
    enum operator_action action;
    bool happened, has_result, approves;
    bool again; /* the operation did not happen, and is to be called once more */
    char key[UUID_TEXT_BYTES], hash[65];
};

static struct {
    struct person persons[PEOPLE_MAX];
    uint32_t count;
    struct question questions[QUESTIONS_MAX];
    uint32_t question_count;
} people;

static bool are(enum swarm_bit what)
{
    return scenario_now->swarm >> what & 1;
}

static int64_t pause_us(void)
{
    return are(SWARM_SLOW_PEOPLE) && !world->is_healed ? world_between(STREAM_PERSON, 2000000, 20000000)
                                                       : world_between(STREAM_PERSON, 300000, 2000000);
}

/* --- what is asked --- */

static void person_send(struct inquiry *inquiry, struct engine *engine, struct engine_request *request)
{
    struct person *person = container_of(inquiry, struct person, inquiry);
    struct arena *arena = request->arena;

    request->actor = person->index ? SLICE("bob") : SLICE("ada");
    switch (person->state) {
    case PERSON_READS_QUESTIONS:
        request->in.escalations.open_only = true;
        engine_get_escalations(engine, request);
        return;
    case PERSON_RESOLVES:
        request->in.change.verb = VERB_RESOLVE;
        request->in.change.input.verdict.escalation = person->number;
        request->in.change.input.verdict.round = person->round;
        request->in.change.input.verdict.action = person->action;
        request->in.change.input.verdict.happened = person->happened;
        request->in.change.input.verdict.again = person->again;
        request->in.change.input.verdict.result =
            person->has_result && person->happened ? arena_printf(arena, "{\"id\":\"%s\"}", person->key) : SLICE_NONE;
        request->in.change.input.verdict.note = SLICE("looked it up");
        engine_change(engine, request);
        return;
    case PERSON_READS_APPROVALS:
        request->in.approvals.open_only = true;
        engine_get_approvals(engine, request);
        return;
    case PERSON_DECIDES:
        request->in.change.verb = VERB_DECIDE;
        request->in.change.input.decision.approval = person->number;
        request->in.change.input.decision.approve = person->approves;
        request->in.change.input.decision.role = ROLE_ADMIN;
        request->in.change.input.decision.hash = arena_slice(arena, slice_of(person->hash));
        request->in.change.input.decision.note = SLICE("read it");
        engine_change(engine, request);
        return;
    }
    UNREACHABLE();
}

static void person_asks(struct person *person, enum person_state what, int64_t delay_us)
{
    person->state = what;
    person->inquiry.node = world_below(STREAM_PERSON, NODES_MAX);
    inquiry_go(&person->inquiry, delay_us);
}

/* --- escalations --- */

static struct question *question_of(uint64_t number)
{
    for (uint32_t i = 0; i < people.question_count && i < QUESTIONS_MAX; i++) {
        if (people.questions[i].number == number) {
            return &people.questions[i];
        }
    }
    struct question *question =
        &people.questions[people.question_count++ % QUESTIONS_MAX]; /* forgets the oldest question */

    struct chance haste =
        chance_of(world->seed, number, 0); /* a stream of its own, so that older scenarios stay the same */

    *question = (struct question){.number = number,
                                  .first_seen_us = world->now_us,
                                  .retries = world_percent(STREAM_PERSON, 30),
                                  .hasty = chance_percent(&haste, HASTY_PERCENT)};
    return question;
}

static unsigned actions_of(struct slice escalation)
{
    static const char *const names[OPERATOR_ACTION_COUNT] = {
        [OPERATOR_RETRY] = "retry",     [OPERATOR_PROBE] = "probe", [OPERATOR_RESOLVE] = "resolve",
        [OPERATOR_WAIVE] = "waive",     [OPERATOR_SKIP] = "skip",   [OPERATOR_COMPENSATE] = "compensate",
        [OPERATOR_ABANDON] = "abandon",
    };
    struct json_walk walk = json_walk(json_member(escalation, "actions"));
    struct slice item;
    unsigned actions = 0;

    while (json_next_element(&walk, &item)) {
        for (unsigned i = 0; i < OPERATOR_ACTION_COUNT; i++) {
            if (json_string_is(json_member(item, "action"), names[i])) {
                actions |= BIT(i);
            }
        }
    }
    return actions;
}

static bool takes(struct person *person, unsigned actions, enum operator_action action)
{
    person->action = action;
    return (actions & BIT(action)) != 0;
}

/* Takes a rare choice, when it is allowed. */
static bool rather(struct person *person, unsigned actions, enum operator_action action, uint32_t percent)
{
    return (actions & BIT(action)) && world_percent(STREAM_PERSON, percent) && takes(person, actions, action);
}

/* Decides what a person says of an operation whose outcome is unknown. */
static bool says(struct person *person, unsigned actions, bool happened, bool is_old)
{
    person->happened = happened;
    person->again = !happened && !person->question->plainly && world_percent(STREAM_PERSON, 30);
    return (happened || is_old) && takes(person, actions, OPERATOR_RESOLVE);
}

/* Decides the question. Returns false when the person does not decide now. */
static bool decide(struct person *person, struct slice escalation)
{
    struct question *question = person->question;
    unsigned actions = actions_of(escalation);
    bool undo = json_string_is(json_member(json_member(escalation, "evidence"), "direction"), "undo");
    bool is_old = world->now_us - question->first_seen_us > OLD_US, is_undone = false, happened = false,
         has_key = false;
    struct slice operation = json_member(escalation, "operation");
    struct op_key key;

    person->happened = false;
    person->has_result = false;
    person->again = false;
    if (json_type(operation) == JSON_STRING && operation.len == UUID_TEXT_BYTES + 1) {
        has_key =
            uuid_parse((struct slice){operation.ptr + 1, operation.len - 2}, &key.uuid) && !uuid_is_nil(&key.uuid);
    }
    if (has_key) {
        uuid_text(&key.uuid, person->key);
        happened = tool_has_happened(key, &is_undone);
        person->has_result = happened && !undo;
    }
    if (question->tries > PATIENT_TRIES * 3 && takes(person, actions, OPERATOR_ABANDON)) {
        return true;
    }
    if (rather(person, actions, OPERATOR_PROBE, 25) || rather(person, actions, OPERATOR_COMPENSATE, 10) ||
        rather(person, actions, OPERATOR_ABANDON, 3) || rather(person, actions, OPERATOR_SKIP, 40) ||
        (is_old && rather(person, actions, OPERATOR_WAIVE, 5))) {
        return true;
    }
    if (says(person, actions, happened, is_old && !undo)) {
        return true;
    }
    if (question->hasty && !question->plainly && !undo && takes(person, actions, OPERATOR_RESOLVE)) {
        person->again = true;
        return true;
    }
    if ((question->retries || undo || !(actions & BIT(OPERATOR_RESOLVE))) && (undo || !happened) &&
        takes(person, actions, OPERATOR_RETRY)) {
        return true;
    }
    return is_old && (says(person, actions, happened, true) || takes(person, actions, OPERATOR_SKIP) ||
                      takes(person, actions, OPERATOR_COMPENSATE) || takes(person, actions, OPERATOR_WAIVE) ||
                      takes(person, actions, OPERATOR_ABANDON));
}

static void person_rests(struct person *person)
{
    person->was_free = !person->found;
    world_at(&person->look, pause_us(), person->look.run);
}

static void on_questions(struct person *person, struct slice list)
{
    struct json_walk walk = json_walk(list);
    struct slice item;
    int64_t number;

    while (json_next_element(&walk, &item)) {
        CHECK(json_i64(json_member(item, "n"), &number));
        person->found = true;
        person->question = question_of((uint64_t)number);
        if (world_percent(STREAM_PERSON, 70) && decide(person, item)) {
            person->number = (uint64_t)number;
            CHECK(json_i64(json_member(item, "round"), &number));
            person->round = (uint64_t)number;
            person_asks(person, PERSON_RESOLVES,
                        are(SWARM_SLOW_PEOPLE) && !(person->again && person->question->hasty)
                            ? pause_us()
                            : world_between(STREAM_PERSON, 1000, 500000));
            return;
        }
    }
    person_asks(person, PERSON_READS_APPROVALS, 1000);
}

static void on_resolved(struct person *person, const struct engine_request *request)
{
    enum err_code code = request ? request->code : ERR_TIMEOUT;

    person->question->tries++;
    world_trace("%s resolves %llu by action %d: %s %s", person->index ? "bob" : "ada",
                (unsigned long long)person->number, (int)person->action, request ? err_name(code) : "no answer",
                request && code != ERR_OK ? request->err.message : "");
    if (code == ERR_OK) {
        see(SEEN_RESOLVED);
        check_acknowledged_resolution(person->number);
        outcome_so_far->escalations++;
    } else if (code == ERR_DECIDED) {
        see(SEEN_RESOLVED_LATE);
    } else if (code == ERR_CONFLICT && person->action == OPERATOR_RESOLVE) {
        person->question->plainly = true;
    } else if (code == ERR_CONFLICT && person->action == OPERATOR_RETRY) {
        person->question->retries = false;
    } else if (person->question->tries < 100 && err_may_pass(code)) { /* the person repeats the same decision */
        person_asks(person, PERSON_RESOLVES, world_between(STREAM_PERSON, 100000, 1000000));
        return;
    }
    person_asks(person, PERSON_READS_APPROVALS, 1000);
}

/* --- approvals --- */

static void on_approvals(struct person *person, struct slice list)
{
    struct json_walk walk = json_walk(list);
    struct slice item, hash;
    int64_t number;

    while (json_next_element(&walk, &item)) {
        CHECK(json_i64(json_member(item, "n"), &number));
        person->found = true;
        hash = json_member(item, "hash");
        if (hash.len == 66 && world_percent(STREAM_PERSON, 60)) {
            memcpy(person->hash, hash.ptr + 1, 64);
            person->hash[64] = '\0';
            person->number = (uint64_t)number;
            person->approves = world_percent(STREAM_PERSON, 75);
            person_asks(person, PERSON_DECIDES,
                        are(SWARM_SLOW_PEOPLE) ? pause_us() : world_between(STREAM_PERSON, 1000, 500000));
            return;
        }
    }
    person_rests(person);
}

static void on_decided(struct person *person, const struct engine_request *request)
{
    world_trace("%s decides %llu: %s", person->index ? "bob" : "ada", (unsigned long long)person->number,
                request ? err_name(request->code) : "no answer");
    if (request && request->code == ERR_OK) {
        see(SEEN_DECIDED);
        check_acknowledged_decision(person->number, person->approves);
    }
    person_rests(person);
}

/* --- in time --- */

static void person_answered(struct inquiry *inquiry, const struct engine_request *request)
{
    struct person *person = container_of(inquiry, struct person, inquiry);
    bool read = request && request->code == ERR_OK;

    switch (person->state) {
    case PERSON_READS_QUESTIONS:
        if (read) {
            on_questions(person, request->answer);
        } else {
            person->found = true; /* the outcome is unknown */
            person_rests(person);
        }
        return;
    case PERSON_RESOLVES:
        on_resolved(person, request);
        return;
    case PERSON_READS_APPROVALS:
        if (read) {
            on_approvals(person, request->answer);
        } else {
            person->found = true;
            person_rests(person);
        }
        return;
    case PERSON_DECIDES:
        on_decided(person, request);
        return;
    }
    UNREACHABLE();
}

static void on_look(struct event *event)
{
    struct person *person = container_of(event, struct person, look);

    person->found = false;
    person_asks(person, PERSON_READS_QUESTIONS, 0);
}

void people_begin(void)
{
    people.question_count = 0;
    people.count = are(SWARM_TWO_PEOPLE) ? 2 : 1;
    for (uint32_t i = 0; i < people.count; i++) {
        struct person *person = &people.persons[i];

        *person = (struct person){
            .index = i, .inquiry = {.patience_us = 5000000, .send = person_send, .answered = person_answered}};
        world_at(&person->look, pause_us(), on_look);
    }
}

bool people_are_done(void)
{
    bool done = true;

    for (uint32_t i = 0; i < people.count; i++) {
        done = done && people.persons[i].was_free;
    }
    return done;
}
