/* Paths find their routes, roles are as the contract has them, and schema/openapi.json describes the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/routes.h"
#include "base/json.h"
#include "tests/lib/test.h"

static const struct {
    const char *method, *path, *pattern; /* a NULL pattern means no route */
    const char *param, *allow;
} cases[] = {
    {"POST", "/v1/sagas", "/v1/sagas", NULL, NULL},
    {"GET", "/v1/sagas", "/v1/sagas", NULL, NULL},
    {"HEAD", "/v1/sagas", "/v1/sagas", NULL, NULL},
    {"POST", "/v1/sagas/batch", "/v1/sagas/batch", NULL, NULL},
    {"GET", "/v1/sagas/x", "/v1/sagas/{id}", "x", NULL},
    {"GET", "/v1/sagas/x/log", "/v1/sagas/{id}/log", "x", NULL},
    {"POST", "/v1/sagas/x/signals/paid", "/v1/sagas/{id}/signals/{name}", "x", NULL},
    {"POST", "/v1/sagas/x/calls", "/v1/sagas/{id}/calls", "x", NULL},
    {"POST", "/v1/sagas/x/complete", "/v1/sagas/{id}/complete", "x", NULL},
    {"POST", "/v1/sagas/x/resume", "/v1/sagas/{id}/resume", "x", NULL},
    {"POST", "/v1/sagas/x/pause", "/v1/sagas/{id}/pause", "x", NULL},
    {"GET", "/v1/approvals", "/v1/approvals", NULL, NULL},
    {"GET", "/v1/approvals/7", "/v1/approvals/{n}", "7", NULL},
    {"POST", "/v1/approvals/7", "/v1/approvals/{n}", "7", NULL},
    {"POST", "/v1/operations", "/v1/operations", NULL, NULL},
    {"GET", "/v1/operations/k", "/v1/operations/{key}", "k", NULL},
    {"POST", "/v1/operations/k/bypass", "/v1/operations/{key}/bypass", "k", NULL},
    {"GET", "/", "/", NULL, NULL},
    {"GET", "/console", "/console", NULL, NULL},
    {"GET", "/console/", "/console/", NULL, NULL},
    {"GET", "/console/app.js", "/console/{file}", "app.js", NULL},
    {"DELETE", "/console/session", "/console/session", NULL, NULL},
    {"GET", "/v1/openapi.json", "/v1/openapi.json", NULL, NULL},
    {"GET", "/v1/sagas/", NULL, NULL, ""},
    {"GET", "/v1/sagas//log", NULL, NULL, ""},
    {"GET", "/v1", NULL, NULL, ""},
    {"GET", "", NULL, NULL, ""},
    {"GET", "v1/sagas", NULL, NULL, ""},
    {"GET", "//", NULL, NULL, ""},
    {"GET", "/V1/sagas", NULL, NULL, ""},
    {"POST", "/v1/sagas/by-business-id/order/o-1/signals/paid",
     "/v1/sagas/by-business-id/{name}/{business_id}/signals/{signal}", "order", NULL},
    {"GET", "/v1/sagas/by-business-id/signals/o-1", "/v1/sagas/by-business-id/{name}/{business_id}", "signals", NULL},
    {"DELETE", "/v1/sagas", NULL, NULL, "POST, GET, HEAD"},
    {"GET", "/v1/sagas/x/abort", NULL, NULL, "POST"},
    {"GET", "/v1/sagas/x/calls", NULL, NULL, "POST"},
    {"POST", "/v1/operations/k", NULL, NULL, "GET, HEAD"},
    {"DELETE", "/v1/operations", NULL, NULL, "POST, GET, HEAD"},
    {"POST", "/v1/operations//bypass", NULL, NULL, ""},
    {"get", "/v1/sagas", NULL, NULL, "POST, GET, HEAD"},
};

TEST(paths_find_their_routes)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct route_match match;

        route_find(slice_of(cases[i].method), slice_of(cases[i].path), &match);
        if (cases[i].pattern) {
            assert_non_null(match.route);
            assert_string_equal(match.route->pattern, cases[i].pattern);
            assert_true(!cases[i].param || slice_is(match.params[0], cases[i].param));
        } else {
            assert_null(match.route);
            assert_string_equal(match.allow, cases[i].allow);
            assert_int_equal(match.path_known, cases[i].allow[0] != '\0');
        }
    }
}

TEST(a_route_knows_its_query_parameters)
{
    struct route_match match;

    route_find(SLICE("GET"), SLICE("/v1/sagas"), &match);
    assert_true(route_allows_query(match.route, SLICE("limit")));
    assert_true(route_allows_query(match.route, SLICE("tag.city")));
    assert_false(route_allows_query(match.route, SLICE("tag.")));
    assert_false(route_allows_query(match.route, SLICE("tag")));
    assert_false(route_allows_query(match.route, SLICE("lim")));
    assert_false(route_allows_query(match.route, SLICE("")));
    route_find(SLICE("POST"), SLICE("/v1/operations"), &match);
    assert_true(route_allows_query(match.route, SLICE("wait")));
    assert_false(route_allows_query(match.route, SLICE("limit")));
    route_find(SLICE("POST"), SLICE("/v1/sagas/x/complete"), &match);
    assert_true(route_allows_query(match.route, SLICE("wait")));
    route_find(SLICE("GET"), SLICE("/livez"), &match);
    assert_false(route_allows_query(match.route, SLICE("limit")));
}

TEST(changes_need_more_than_a_reader)
{
    for (size_t i = 0; i < route_count; i++) {
        if (strncmp(routes[i].pattern, "/console/", 9) == 0) {
            continue; /* a session, and a link to one, is no more than its token */
        }
        if (strcmp(routes[i].method, "GET") != 0) {
            assert_true(route_least(&routes[i]) >= ROLE_AGENT);
        } else {
            assert_true(route_least(&routes[i]) <= ROLE_READER);
        }
    }
}

/* An agent's role must never be enough for a verb that signs off, decides or lets a saga go on. (An approval names the
 * roles that may give it, operator by default; the saga machine refuses all others.) */
TEST(an_agent_has_no_route_for_decisions_of_people)
{
    static const char *const signed_off[] = {"resolve", "bypass", "resume", "pause", "bulk"};

    for (size_t i = 0; i < route_count; i++) {
        for (size_t k = 0; k < COUNT_OF(signed_off); k++) {
            if (strcmp(routes[i].method, "POST") == 0 && strstr(routes[i].pattern, signed_off[k])) {
                assert_true(route_least(&routes[i]) > ROLE_AGENT);
            }
        }
    }
}

static struct slice read_openapi(struct arena *arena)
{
    char path[512];
    const char *folder = getenv("SCHEMA_DIR");
    char *text = arena_alloc(arena, 1 << 20);

    (void)snprintf(path, sizeof(path), "%s/openapi.json", folder ? folder : "schema");
    FILE *file = fopen(path, "re");

    assert_non_null(file);
    size_t len = fread(text, 1, 1 << 20, file);

    assert_int_equal(fclose(file), 0);
    return (struct slice){text, len};
}

static struct slice lower(struct arena *arena, const char *text)
{
    char *copy = arena_text(arena, slice_of(text));

    for (char *c = copy; *c; c++) {
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c + 'a' - 'A') : *c;
    }
    return slice_of(copy);
}

TEST(openapi_describes_the_same_routes)
{
    struct arena arena;
    struct slice paths, path, methods, method, operation;
    struct err err = {0};
    size_t described = 0, served = 0;

    arena_init(&arena, 4096);
    struct slice text = read_openapi(&arena);

    assert_int_equal(json_check(text, &json_limits_default, &err), ERR_OK);
    paths = json_member(text, "paths");
    for (size_t i = 0; i < route_count; i++) {
        assert_non_null(routes[i].handle);
        served++;
        operation =
            json_member(json_member(paths, routes[i].pattern), arena_text(&arena, lower(&arena, routes[i].method)));
        if (!json_string_is(json_member(operation, "x-role"), role_name(route_least(&routes[i])))) {
            fail_msg("%s %s is not described, or with another role", routes[i].method, routes[i].pattern);
        }
    }
    struct json_walk walk = json_walk(paths);

    while (json_next_member(&walk, &path, &methods)) {
        struct json_walk inner = json_walk(methods);

        while (json_next_member(&inner, &method, &operation)) {
            described++;
        }
    }
    assert_int_equal(described, served);
    arena_fini(&arena);
}

TEST_PROGRAM(NULL, NULL)
