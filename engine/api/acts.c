/*
 * Acts: what persons and tokens changed. A request that changes something is marked here before its handler runs, and
 * the engine writes the act down with the change. A refusal is counted.
 *
 * Making and revoking a grant is an act, also of an agent: it hands its rights on.
 *
 * The work of programs is no act: starts, calls, and what an agent does to its own sagas with `signal` and `complete`.
 * Each saga says who started it, and its log says the rest.
 */
#include "api/acts.h"

#include "api/request.h"

static bool is_work_of_agent(const struct api_request *request, const struct verb *verb)
{
    bool is_person = request->has_token && request->role >= ROLE_OPERATOR;

    return (verb == &verbs[VERB_SIGNAL] || verb == &verbs[VERB_COMPLETE]) && !is_person;
}

static bool is_act(const struct api_request *request)
{
    const struct route *route = request->route;

    return route->verb ? !is_work_of_agent(request, route->verb) : route->act != NULL;
}

static struct act_by by_of(const struct api_request *request)
{
    return (struct act_by){.role = request->role,
                           .via = request->has_session ? "session"
                                  : request->has_token ? "token"
                                                       : "local",
                           .address = http_exchange_client(request->exchange)};
}

void request_mark_act(struct api_request *request)
{
    if (is_act(request)) {
        request->asked.by = by_of(request);
    }
}

void request_mark_act_of(struct api_request *request, const struct verb *verb)
{
    if (!is_work_of_agent(request, verb)) {
        request->asked.by = by_of(request);
    }
}

/* --- refusals --- */

/* Overload and a database that is away refuse nobody. The console reads by itself, again and again, also what its
 * person may not see. */
static bool is_refusal(const struct api_request *request, enum err_code code)
{
    bool reads_by_itself = request->has_session && slice_is(request->exchange->method, "GET");
    int status = err_http_status(code);

    return (code == ERR_FORBIDDEN && !reads_by_itself) || (is_act(request) && status >= 400 && status < 500);
}

static const char *kind_of(const struct route *route)
{
    static const char *const kinds[] = {
        [ON_SAGA] = "saga", [ON_OPERATION] = "operation", [ON_ESCALATION] = "escalation", [ON_APPROVAL] = "approval"};

    return route->verb ? kinds[route->verb->on] : route->act_on;
}

void request_count_refusal(struct api_request *request, enum err_code code)
{
    const struct route *route = request->route;

    if (!route || !request->asked.namespace.ptr || request->batch || !is_refusal(request, code)) {
        return;
    }
    const char *kind = kind_of(route);
    struct engine_refusal refusal = {.namespace = request->asked.namespace,
                                     .actor = request->asked.actor,
                                     .by = by_of(request),
                                     .verb = route->verb ? slice_of(route->verb->name)
                                             : route->act
                                                 ? slice_of(route->act)
                                                 : arena_printf(request->arena, "%s %s", route->method, route->pattern),
                                     .kind = kind ? slice_of(kind) : SLICE_NONE,
                                     .target = kind ? request->params[0] : SLICE_NONE,
                                     .code = code};

    engine_count_refusal(request->api->engine, &refusal);
}

/* --- the list --- */

void handle_list_acts(struct api_request *request)
{
    struct engine_acts *in = &request->asked.in.acts;
    const struct query_text texts[] = {
        {"actor", &in->actor}, {"verb", &in->verb}, {"saga", &in->saga}, {"tool", &in->tool}};
    struct slice outcome = request_query(request, "outcome");

    if (!request_read_limit(request) || !request_read_texts(request, texts, COUNT_OF(texts)) ||
        !request_read_instant(request, "since", &in->since_ms) ||
        !request_read_instant(request, "until", &in->until_ms)) {
        return;
    }
    if (outcome.ptr && !slice_is(outcome, "done") && !slice_is(outcome, "refused")) {
        request_problem(request, ERR_MALFORMED, "the query parameter \"outcome\" is done or refused");
        return;
    }
    in->outcome = outcome;
    in->limit = request->limit;
    in->cursor = request_query(request, "cursor");
    request_ask(request, engine_list_acts, request_on_items);
}
