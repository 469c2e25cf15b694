/* The table that schema/openapi.json describes; a test compares the two. */
#include "api/routes.h"

#include <stdio.h>
#include <string.h>

#include "api/request.h"

#define LIST "limit cursor"
#define QUESTIONS LIST " status saga step tag.* since until group_by"
#define BY_BUSINESS_ID "/v1/sagas/by-business-id/{name}/{business_id}"

/* A verb; its row has the role, and whether it takes `wait`. */
#define DOES(id) .handle = handle_change, .verb = &verbs[VERB_##id]

const struct route routes[] = {
    {"POST", "/v1/operations", ROLE_AGENT, "wait", handle_call,
     .for_tools = true}, /* the most frequent ones come first */
    {"POST", "/v1/sagas/{id}/calls", ROLE_AGENT, "wait", handle_call_in_saga, .for_tools = true},
    {"POST", "/v1/sagas", ROLE_AGENT, "wait", handle_start_saga},
    {"POST", "/v1/sagas/batch", ROLE_AGENT, "", handle_start_batch, .takes_any_body = true},
    {"GET", "/v1/sagas/{id}", ROLE_READER, "wait", handle_get_saga},
    {"GET", "/v1/sagas", ROLE_READER,
     LIST " status id saga version tag.* business_id business_id_prefix since until step error waits_for group_by",
     handle_list_sagas},
    {"GET", "/v1/sagas/{id}/preview", ROLE_READER, "", handle_preview_saga},
    {"GET", "/v1/sagas/{id}/log", ROLE_READER, LIST " follow", handle_get_log},
    {"POST", "/v1/sagas/{id}/complete", DOES(COMPLETE)},
    {"POST", "/v1/sagas/{id}/abort", DOES(ABORT)},
    {"POST", "/v1/sagas/{id}/escalate", DOES(ESCALATE)},
    {"POST", "/v1/sagas/{id}/signals/{name}", DOES(SIGNAL)},
    {"POST", "/v1/sagas/{id}/pause", DOES(PAUSE)},
    {"POST", "/v1/sagas/{id}/resume", DOES(RESUME)},
    {"GET", BY_BUSINESS_ID "", ROLE_READER, "wait", handle_get_saga},
    {"GET", BY_BUSINESS_ID "/preview", ROLE_READER, "", handle_preview_saga},
    {"GET", BY_BUSINESS_ID "/log", ROLE_READER, LIST " follow", handle_get_log},
    {"POST", BY_BUSINESS_ID "/calls", ROLE_AGENT, "wait", handle_call_in_saga, .for_tools = true},
    {"POST", BY_BUSINESS_ID "/complete", DOES(COMPLETE)},
    {"POST", BY_BUSINESS_ID "/abort", DOES(ABORT)},
    {"POST", BY_BUSINESS_ID "/escalate", DOES(ESCALATE)},
    {"POST", BY_BUSINESS_ID "/signals/{signal}", DOES(SIGNAL)},
    {"POST", BY_BUSINESS_ID "/pause", DOES(PAUSE)},
    {"POST", BY_BUSINESS_ID "/resume", DOES(RESUME)},
    {"POST", "/v1/sagas/{id}/tools", DOES(MEND)},
    {"POST", BY_BUSINESS_ID "/tools", DOES(MEND)},
    {"POST", "/v1/sagas/{id}/rerun", DOES(RERUN)},
    {"POST", BY_BUSINESS_ID "/rerun", DOES(RERUN)},
    {"POST", "/v1/definitions", ROLE_ADMIN, "dry_run", handle_define, .act = "apply", .act_on = "definition"},
    {"GET", "/v1/definitions", ROLE_READER, LIST, handle_get_definitions},
    {"GET", "/v1/definitions/{name}", ROLE_READER, "version", handle_get_definitions},
    {"GET", "/v1/definitions/{name}/proof", ROLE_READER, "version", handle_get_proof},
    {"GET", "/v1/tools", ROLE_READER, LIST, handle_get_tools},
    {"GET", "/v1/tools/{name}", ROLE_READER, "version", handle_get_tools},
    {"GET", "/v1/operations", ROLE_READER, LIST " tool state run", handle_list_operations, .for_tools = true},
    {"GET", "/v1/operations/{key}", ROLE_READER, "", handle_get_operation, .for_tools = true},
    {"GET", "/v1/operations/{key}/preview", ROLE_READER, "", handle_preview_operation},
    {"POST", "/v1/operations/{key}/bypass", DOES(BYPASS)},
    {"POST", "/v1/operations/{key}/cost", DOES(COST)},
    {"POST", "/v1/operations/{key}/resolve", DOES(RESOLVE_OPERATION)},
    {"GET", "/v1/escalations", ROLE_READER, QUESTIONS " tool reason error cost_above acknowledged assigned",
     handle_list_escalations},
    {"GET", "/v1/escalations/{n}", ROLE_READER, "", handle_get_escalation},
    {"GET", "/v1/escalations/{n}/preview", ROLE_READER, "", handle_preview_escalation},
    {"POST", "/v1/escalations/{n}/resolve", DOES(RESOLVE)},
    {"POST", "/v1/escalations/{n}/acknowledge", DOES(ACKNOWLEDGE)},
    {"POST", "/v1/escalations/{n}/assign", DOES(ASSIGN)},
    {"POST", "/v1/escalations/{n}/comment", DOES(COMMENT)},
    {"GET", "/v1/approvals", ROLE_READER, QUESTIONS, handle_list_approvals},
    {"GET", "/v1/approvals/{n}", ROLE_READER, "", handle_get_approval},
    {"POST", "/v1/approvals/{n}", DOES(DECIDE)},
    {"GET", "/v1/debts", ROLE_READER, LIST " saga tool settled group_by format", handle_list_debts},
    {"GET", "/v1/acts", ROLE_READER, LIST " actor verb saga tool since until outcome", handle_list_acts},
    {"GET", "/v1/me", ROLE_READER, "", handle_me, .for_tools = true},
    {"POST", "/v1/holds", ROLE_OPERATOR, "", handle_put_hold, .act = "hold", .act_on = "hold"},
    {"GET", "/v1/holds", ROLE_READER, LIST " all", handle_list_holds},
    {"GET", "/v1/holds/{n}", ROLE_READER, "", handle_get_hold},
    {"POST", "/v1/holds/{n}/release", ROLE_OPERATOR, "", handle_release_hold, .act = "release", .act_on = "hold"},
    {"POST", "/v1/tools/{name}/breaker", ROLE_OPERATOR, "", handle_set_breaker, .act = "breaker", .act_on = "tool"},
    {"POST", "/v1/schedules", ROLE_OPERATOR, "", handle_put_schedule, .act = "schedule", .act_on = "schedule"},
    {"POST", "/v1/grants", ROLE_AGENT, "", handle_put_grant, .act = "grant", .act_on = "grant"},
    {"GET", "/v1/grants", ROLE_READER, LIST " all", handle_list_grants},
    {"DELETE", "/v1/grants/{id}", ROLE_AGENT, "", handle_revoke_grant, .act = "revoke", .act_on = "grant"},
    {"GET", "/v1/schedules", ROLE_READER, LIST, handle_list_schedules},
    {"GET", "/v1/schedules/{name}", ROLE_READER, "", handle_get_schedule},
    {"DELETE", "/v1/schedules/{name}", ROLE_OPERATOR, "", handle_delete_schedule, .act = "delete",
     .act_on = "schedule"},
    {"GET", "/v1/schedules/{name}/next", ROLE_READER, "count", handle_get_schedule_next},
    {"POST", "/v1/schedules/{name}/hold", ROLE_OPERATOR, "", handle_hold_schedule, .act = "hold", .act_on = "schedule"},
    {"POST", "/v1/schedules/{name}/release", ROLE_OPERATOR, "", handle_release_schedule, .act = "release",
     .act_on = "schedule"},
    {"POST", "/v1/bulk", ROLE_OPERATOR, "", handle_freeze_bulk},
    {"GET", "/v1/bulk", ROLE_READER, LIST, handle_list_bulk},
    {"GET", "/v1/bulk/{bulk}", ROLE_READER, "", handle_get_bulk},
    {"GET", "/v1/bulk/{bulk}/items", ROLE_READER, "limit outcome after", handle_list_bulk_items},
    {"POST", "/v1/bulk/{bulk}/run", ROLE_OPERATOR, "", handle_run_bulk, .act = "run", .act_on = "bulk"},
    {"POST", "/v1/bulk/{bulk}/stop", ROLE_OPERATOR, "", handle_stop_bulk, .act = "stop", .act_on = "bulk"},
    {"GET", "/v1/events", ROLE_READER, LIST " type wait follow", handle_get_events},
    {"GET", "/v1/notifications", ROLE_READER, LIST " receiver state", handle_list_notifications},
    {"POST", "/v1/notifications/replay", ROLE_OPERATOR, "", handle_replay_notifications, .act = "replay",
     .act_on = "receiver"},
    {"GET", "/v1/stats", ROLE_READER, "", handle_get_stats},
    {"GET", "/v1/stats/series", ROLE_READER, "from to by name", handle_get_series},
    {"GET", "/v1/clock", ROLE_READER, "", handle_get_clock},
    {"POST", "/v1/clock", ROLE_ADMIN, "", handle_move_clock, .act = "move", .act_on = "clock"},
    {"GET", "/v1/engines", ROLE_READER, "", handle_get_engines},
    {"GET", "/metrics", ROLE_READER, "", handle_metrics},
    {"GET", "/livez", ROLE_NONE, "", handle_livez},
    {"GET", "/readyz", ROLE_NONE, "verbose", handle_readyz},
    {"GET", "/healthz", ROLE_NONE, "verbose", handle_readyz},
    {"GET", "/v1/openapi.json", ROLE_NONE, "", handle_openapi},
    {"GET", "/", ROLE_NONE, "", handle_root},
    {"GET", "/console", ROLE_NONE, "", handle_console_slash},
    {"GET", "/console/", ROLE_NONE, "", handle_console},
    {"GET", "/console/{file}", ROLE_NONE, "", handle_console_file},
    {"POST", "/console/session", ROLE_NONE, "", handle_sign_in},
    {"DELETE", "/console/session", ROLE_NONE, "", handle_sign_out},
    {"POST", "/console/links", ROLE_READER, "", handle_console_link},
    {"POST", "/mcp", ROLE_AGENT, "", handle_mcp, .takes_any_body = true, .for_tools = true},
    {"POST", "/mcp/t/{set}", ROLE_AGENT, "", handle_mcp, .takes_any_body = true, .for_tools = true},
    {"GET", "/.well-known/oauth-protected-resource", ROLE_NONE, "", handle_protected_resource},
    {"GET", "/.well-known/oauth-protected-resource/mcp", ROLE_NONE, "", handle_protected_resource},
    {"POST", "/mcp/g/{secret}", ROLE_AGENT, "", handle_mcp, .takes_any_body = true, .for_tools = true},
};
const size_t route_count = COUNT_OF(routes);

static struct slice part(const char **at, const char *end)
{
    const char *slash = memchr(*at, '/', (size_t)(end - *at));
    struct slice found = {*at, (size_t)((slash ? slash : end) - *at)};

    *at = slash ? slash + 1 : NULL;
    return found;
}

static bool path_matches(const char *pattern, struct slice path, struct slice params[ROUTE_PARAMS_MAX])
{
    const char *p = pattern + 1, *p_end = pattern + strlen(pattern), *t = path.ptr + 1, *t_end = path.ptr + path.len;
    size_t count = 0;

    if (path.len == 0 || path.ptr[0] != '/') {
        return false;
    }
    while (p && t) {
        struct slice want = part(&p, p_end), have = part(&t, t_end);

        if (want.len > 0 && want.ptr[0] == '{') {
            if (have.len == 0) {
                return false;
            }
            CHECK(count < ROUTE_PARAMS_MAX);
            params[count++] = have;
        } else if (!slice_equal(want, have)) {
            return false;
        }
    }
    return !p && !t;
}

static void allow(struct route_match *match, const char *method)
{
    size_t len = strlen(match->allow);

    (void)snprintf(match->allow + len, sizeof(match->allow) - len, "%s%s", len ? ", " : "", method);
    if (strcmp(method, "GET") == 0) {
        allow(match, "HEAD");
    }
}

void route_find(struct slice method, struct slice path, struct route_match *out)
{
    if (slice_is(method, "HEAD")) {
        method = SLICE("GET");
    }
    *out = (struct route_match){0};
    for (size_t i = 0; i < route_count; i++) {
        struct slice params[ROUTE_PARAMS_MAX] = {{0}};

        if (!path_matches(routes[i].pattern, path, params)) {
            continue;
        }
        if (slice_is(method, routes[i].method)) {
            out->route = &routes[i];
            memcpy(out->params, params, sizeof(params));
            out->path_known = true;
            return;
        }
        out->path_known = true;
        allow(out, routes[i].method);
    }
}

bool route_is_by_business_id(const struct route *route)
{
    return strncmp(route->pattern, BY_BUSINESS_ID, sizeof(BY_BUSINESS_ID) - 1) == 0;
}

enum role route_least(const struct route *route)
{
    return route->verb ? route->verb->least : route->least;
}

const char *route_query(const struct route *route)
{
    return !route->verb ? route->query : route->verb->wait_ms ? "wait" : "";
}

bool route_allows_query(const struct route *route, struct slice name)
{
    const char *at = route_query(route);

    while (*at) {
        size_t len = strcspn(at, " ");

        if (len > 1 && at[len - 1] == '*' ? name.len > len - 1 && memcmp(name.ptr, at, len - 1) == 0
                                          : name.len == len && memcmp(name.ptr, at, len) == 0) {
            return true;
        }
        at += len + (at[len] == ' ');
    }
    return false;
}
