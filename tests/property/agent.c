/* See run.h. The agent repeats itself, changes arguments, goes round in circles and never looks back. The shelf holds
 * the tools that it calls; newer versions of them may arrive. */
#include "tests/property/run.h"

#include <string.h>

#include "base/json.h"

/* --- the shelf --- */

#define ECHO "'builtin':{'do':'echo'}"
#define UNDONE ",'compensate':{'tool':'undo','with':{'id':'${ .result.id }'}}"
#define WINDOW ",'key':{'window':'60s'}"
#define READS ECHO ",'effect':'read'"
#define KEYED ECHO ",'effect':'keyed'" WINDOW UNDONE
#define SENDS(then, otherwise) ECHO ",'effect':{'if':'${ .args.send }','then':'" then "','else':'" otherwise "'}"
#define PROBED                                                                                                         \
    ",'probe':{" ECHO ",'outcome':{'completed':'${ .response.ok }','absent':'${ .response.no }'},'visibility':'5s',"   \
    "'give_up_after':'1h'}"

#define KIT(tool, class, ...) .kit = {.name = tool, .effect = class, .undo_effect = EFFECT_IDEMPOTENT, __VA_ARGS__}
#define UNDO .undo = "undo"

static const struct ware wares[] = {
    {1, "{'name':'look'," READS "}", KIT("look", EFFECT_READ, .undo = NULL)},
    {1, "{'name':'coalesce'," KEYED ",'material':['/amount']}", KIT("coalesce", EFFECT_KEYED, UNDO)},
    {1, "{'name':'strict'," KEYED "}", KIT("strict", EFFECT_KEYED, UNDO)},
    {1, "{'name':'refuse'," KEYED ",'on_duplicate':'refuse'}", KIT("refuse", EFFECT_KEYED, UNDO)},
    {1, "{'name':'escalate'," KEYED ",'on_duplicate':'escalate'}", KIT("escalate", EFFECT_KEYED, UNDO)},
    {1, "{'name':'allow'," KEYED ",'on_duplicate':'allow'}", KIT("allow", EFFECT_KEYED, UNDO), .allows = true},
    {1, "{'name':'again'," KEYED ",'ttl':'1h','on_expired':'again'}", KIT("again", EFFECT_KEYED, UNDO),
     .comes_back = true},
    {1, "{'name':'mail'," ECHO ",'effect':'once','terminal':true}", KIT("mail", EFFECT_ONCE, .terminal = true)},
    {1, "{'name':'announce'," SENDS("once", "read") ",'terminal':true}",
     KIT("announce", EFFECT_ONCE, .conditional = true, .terminal = true), EFFECT_READ},
    {1, "{'name':'fetch'," SENDS("keyed", "read") WINDOW UNDONE "}",
     KIT("fetch", EFFECT_KEYED, .conditional = true, UNDO), EFFECT_READ},
    {1, "{'name':'once'," ECHO ",'effect':'once'" UNDONE "}", KIT("once", EFFECT_ONCE, UNDO)},
    {1, "{'name':'checked'," ECHO ",'effect':'checked'" UNDONE PROBED "}",
     KIT("checked", EFFECT_CHECKED, .probed = true, UNDO)},
    {1, "{'name':'idempotent'," ECHO ",'effect':'idempotent'" UNDONE "}", KIT("idempotent", EFFECT_IDEMPOTENT, UNDO)},
    {1, "{'name':'paid'," KEYED ",'cost':100}", KIT("paid", EFFECT_KEYED, .costs = true, UNDO)},
    {1, "{'name':'limited'," KEYED ",'rate':{'limit':1,'per':'1s'}}",
     KIT("limited", EFFECT_KEYED, .guarded = true, UNDO)},
    /* Later versions of the tools, which an owner may change in any way. */
    {2, "{'name':'look'," KEYED "}", KIT("look", EFFECT_KEYED, UNDO)},
    {3, "{'name':'look'," READS "}", KIT("look", EFFECT_READ, .undo = NULL)},
    {2, "{'name':'coalesce'," READS "}", KIT("coalesce", EFFECT_READ, .undo = NULL)},
    {3, "{'name':'coalesce'," KEYED ",'volatile':['/memo']}", KIT("coalesce", EFFECT_KEYED, UNDO)},
    {2, "{'name':'strict'," KEYED ",'on_duplicate':'escalate'}", KIT("strict", EFFECT_KEYED, UNDO)},
    {2, "{'name':'once'," READS "}", KIT("once", EFFECT_READ, .undo = NULL)},
    {2, "{'name':'fetch'," READS "}", KIT("fetch", EFFECT_READ, .undo = NULL)},
    {3, "{'name':'fetch'," SENDS("read", "keyed") WINDOW UNDONE "}",
     KIT("fetch", EFFECT_READ, .conditional = true, UNDO), EFFECT_KEYED},
};
#define WARES_AT_FIRST 15
#define WARES_LATER (COUNT_OF(wares) - WARES_AT_FIRST)

static const struct tool *tools[COUNT_OF(wares)], *undo_tool; /* each tool is compiled once */

static struct slice plain(struct arena *arena, const char *text)
{
    char *copy = text ? arena_text(arena, slice_of(text)) : NULL;

    for (char *c = copy; c && *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    return slice_of(copy);
}

static const struct tool *compile(struct arena *arena, const char *text, uint32_t version)
{
    struct faults faults;
    const struct tool *tool;

    faults_init(&faults, arena);
    tool = tool_compile(plain(arena, text), version, SLICE(""), arena, &faults);
    CHECK(faults.count == 0);
    return tool;
}

static void compile_all(void)
{
    static struct arena arena; /* lives as long as the program */

    if (undo_tool) {
        return;
    }
    arena_init(&arena, (size_t)64 << 10);
    for (size_t i = 0; i < COUNT_OF(wares); i++) {
        tools[i] = compile(&arena, wares[i].text, wares[i].version);
    }
    undo_tool = compile(&arena, "{'name':'undo'," ECHO ",'effect':'idempotent'}", 1);
}

static bool is_there(const struct agent *agent, size_t ware)
{
    return ware < WARES_AT_FIRST || (agent->registered & BIT(ware - WARES_AT_FIRST));
}

/* Finds a version of a ware; version 0 is the newest. */
static size_t find_ware(const struct agent *agent, struct slice name, uint32_t version)
{
    for (size_t i = COUNT_OF(wares); i-- > 0;) {
        if (slice_is(name, wares[i].kit.name) && is_there(agent, i) && (!version || version == wares[i].version)) {
            return i;
        }
    }
    return COUNT_OF(wares);
}

static const struct tool *find_tool(const struct tool_shelf *shelf, struct slice namespace, struct slice name,
                                    uint32_t version)
{
    size_t ware = find_ware((const struct agent *)shelf, name, version);

    (void)namespace;
    return slice_is(name, "undo") ? undo_tool : ware < COUNT_OF(wares) ? tools[ware] : NULL;
}

const struct ware *agent_ware(struct slice name, uint32_t version)
{
    for (size_t i = 0; i < COUNT_OF(wares); i++) {
        if (slice_is(name, wares[i].kit.name) && version == wares[i].version) {
            return &wares[i];
        }
    }
    return NULL;
}

const struct definition *agent_definition(struct run *run, enum saga_kind kind, struct arena *arena)
{
    compile_all();
    run->agent.shelf.find = find_tool;
    return definition_open(kind, &run->agent.shelf, arena);
}

/* Registers new versions one after the other. */
void agent_registers(struct run *run, struct chance *chance)
{
    uint32_t from = chance_below(chance, WARES_LATER);

    for (uint32_t i = 0; i < WARES_LATER; i++) {
        uint32_t later = (from + i) % WARES_LATER;
        const struct ware *ware = &wares[WARES_AT_FIRST + later];

        if (!(run->agent.registered & BIT(later)) &&
            find_ware(&run->agent, slice_of(ware->kit.name), ware->version - 1) < COUNT_OF(wares)) {
            run->agent.registered |= BIT(later);
            return;
        }
    }
}

struct saga_input agent_start(struct run *run)
{
    struct saga_input start = {.type = SAGA_INPUT_START};
    const struct sketch *sketch = &run->script->sketch;

    start.start.deadline_ms = run->now_ms + INT64_C(3600) * 1000;
    start.start.budget = plain(&run->kept, sketch->budget);
    start.start.loop = plain(&run->kept, sketch->loop);
    start.start.on_timeout = slice_of(sketch->on_timeout);
    return start;
}

/* --- calling --- */

#define DRAW(chance, array) ((array)[chance_below(chance, COUNT_OF(array))])

static struct request draw_request(struct run *run, struct chance *chance)
{
    static const struct {
        const char *text;
        uint32_t amount;
        bool sends;
    } args[] = {{"{\"amount\":1}", 1, false},
                {"{\"amount\":1,\"memo\":\"x\"}", 1, false},
                {"{\"amount\":2}", 2, false},
                {"{\"amount\":1,\"send\":true}", 1, true}};
    static const char *const steps[] = {"a", "b", "c", NULL}, *const scopes[] = {NULL, NULL, "x"},
                             *const turns[] = {NULL, NULL, "1", "2", "3"};
    struct request request = {0};
    bool stubborn = run->script->sketch.is_stubborn;
    size_t ware = stubborn ? chance_below(chance, 2) * 2 : chance_below(chance, WARES_AT_FIRST);
    size_t which = stubborn || chance_percent(chance, 50) ? 0 : chance_below(chance, COUNT_OF(args));

    if (wares[ware].kit.terminal && chance_percent(chance, 60)) {
        ware = 2; /* wares that end the work come seldom */
    }
    ware = find_ware(&run->agent, slice_of(wares[ware].kit.name), 0);
    request.ware = &wares[ware];
    request.step = slice_of(stubborn ? "a" : DRAW(chance, steps));
    request.args = slice_of(args[which].text);
    request.amount = args[which].amount;
    request.effect =
        !request.ware->kit.conditional || args[which].sends ? request.ware->kit.effect : request.ware->otherwise;
    if (!stubborn) {
        request.scope = slice_of(DRAW(chance, scopes));
        request.turn = slice_of(DRAW(chance, turns));
        request.emission = chance_percent(chance, 40) ? SLICE_NONE
                           : chance_percent(chance, 15)
                               ? arena_printf(&run->kept, "e%u", (unsigned)chance_below(chance, CALLS_MAX))
                               : arena_printf(&run->kept, "e%u", (unsigned)run->agent.calls);
        request.unfit = chance_percent(chance, 5);
    }
    return request;
}

/* Repeats an earlier call, as agents and networks do. */
static struct request say_again(struct run *run, struct chance *chance)
{
    struct request request = run->agent.request;
    size_t ware = find_ware(&run->agent, slice_of(request.ware->kit.name), 0);
    bool sends = false;

    if (chance_percent(chance, 50)) {
        request.emission = SLICE_NONE;
    }
    (void)json_bool(json_member(request.args, "send"), &sends);
    request.ware = &wares[ware];
    request.effect = !request.ware->kit.conditional || sends ? request.ware->kit.effect : request.ware->otherwise;
    return request;
}

void agent_calls(struct run *run, struct chance *chance)
{
    struct saga_input input = {.type = SAGA_INPUT_CALL};
    struct agent *agent = &run->agent;
    struct request *request = &agent->request;

    if (run->judge.count + 1 >= NODES_MAX || run->judge.alias_count + 1 >= ALIASES_MAX) {
        return;
    }
    *request = request->ware && chance_percent(chance, 25) ? say_again(run, chance) : draw_request(run, chance);
    agent->calls++;
    input.call.namespace = SLICE("default");
    input.call.run = SLICE("run-1");
    input.call.tool = tools[request->ware - wares];
    input.call.undo = input.call.tool->compensate.is_set ? undo_tool : NULL;
    input.call.step = request->step;
    input.call.args = request->args;
    input.call.effect = request->effect;
    input.call.scope = request->scope;
    input.call.emission = request->emission;
    input.call.conversation_turn = request->turn;
    input.call.actor = SLICE("agent");
    if (request->unfit) {
        input.call.unfit = ERR_INVALID;
        input.call.unfit_message = SLICE("the arguments do not fit");
    }
    agent->is_calling = true;
    (void)run_feed(run, input);
    agent->is_calling = false;
    run->tally->answers[agent->answer.code]++;
    judge_answer(run, request, &agent->answer);
}

void agent_ends(struct run *run, struct chance *chance)
{
    struct saga_input input = {.type = SAGA_INPUT_COMPLETE};

    if (run->judge.kind == SAGA_OPEN && chance_percent(chance, run->is_kind ? 95 : 70)) {
        input.complete.actor = SLICE("agent");
        (void)run_feed(run, input);
    } else {
        person_says(run, SAGA_INPUT_ABORT);
    }
}

void person_signs(struct run *run, uint32_t node, struct chance *chance)
{
    struct saga_input input = {.type = SAGA_INPUT_BYPASS};

    input.bypass.key = run->judge.nodes[node].things[DIRECTION_DO].key;
    input.bypass.actor = SLICE("ann");
    input.bypass.note = SLICE("once more");
    run->now_ms += chance_below(chance, 1000);
    world_land(run);
    (void)run_feed(run, input);
}
