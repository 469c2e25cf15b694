/*
 * Who may do what: each route, each method of MCP and each verb of bulk jobs, with each credential. The rows are made
 * of schema/openapi.json and of the tables in the code, and every cell is asked. What was answered is held against the
 * role that openapi.json names, and against engine/rights.md, so that a new route fails here until the page has it.
 * WRITE_RIGHTS=1 writes the page anew.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api/grant.h"
#include "api/mcp/mcp.h"
#include "api/openapi.h"
#include "base/json.h"
#include "tests/api/api_host.h"
#include "tests/api/raw_client.h"
#include "tests/api/token_file.h"
#include "tests/lib/test.h"

#define OURS "ours-in-default" /* is in the name of each thing that the test makes; no stranger ever reads it */
#define PATIENCE_MS 60000

/* --- who asks --- */

enum kind {
    IS_STRANGER, /* shows nothing that holds */
    IS_OWN,      /* may act in the namespace of the things */
    IS_OTHER,    /* acts in another one */
    IS_OUTSIDE,  /* names a namespace in which it may not act */
    IS_ALL,      /* an admin of the namespace "*" */
    IS_BOUND,    /* to one tool */
    IS_GRANT
};

static const struct who {
    const char *token; /* NULL: none; a grant is made by the test */
    const char *named; /* the namespace of the header; NULL: none */
    enum kind kind;
    enum role role;
} who[] = {
    {NULL, NULL, IS_STRANGER, ROLE_NONE},
    {"nobodys", NULL, IS_STRANGER, ROLE_NONE},
    {"expired", NULL, IS_STRANGER, ROLE_NONE},
    {"revoked", NULL, IS_STRANGER, ROLE_NONE},
    {"a-reader", NULL, IS_OWN, ROLE_READER},
    {"an-agent", NULL, IS_OWN, ROLE_AGENT},
    {"an-operator", NULL, IS_OWN, ROLE_OPERATOR},
    {"an-admin", NULL, IS_OWN, ROLE_ADMIN},
    {"both-reader", "default", IS_OWN, ROLE_READER},
    {"both-agent", "default", IS_OWN, ROLE_AGENT},
    {"both-operator", "default", IS_OWN, ROLE_OPERATOR},
    {"both-admin", "default", IS_OWN, ROLE_ADMIN},
    {"everywhere", "default", IS_OWN, ROLE_ADMIN},
    {"both-reader", NULL, IS_OTHER, ROLE_READER}, /* its first namespace is the other one */
    {"both-agent", NULL, IS_OTHER, ROLE_AGENT},
    {"both-operator", "other", IS_OTHER, ROLE_OPERATOR},
    {"both-admin", "other", IS_OTHER, ROLE_ADMIN},
    {"other-reader", NULL, IS_OTHER, ROLE_READER},
    {"other-agent", NULL, IS_OTHER, ROLE_AGENT},
    {"other-operator", NULL, IS_OTHER, ROLE_OPERATOR},
    {"other-admin", NULL, IS_OTHER, ROLE_ADMIN},
    {"other-admin", "default", IS_OUTSIDE, ROLE_ADMIN},
    {"an-admin", "nowhere", IS_OUTSIDE, ROLE_ADMIN},
    {"reads-all", "default", IS_OUTSIDE, ROLE_OPERATOR}, /* only an admin of "*" is above all namespaces */
    {"everywhere", NULL, IS_ALL, ROLE_ADMIN},
    {"bound", NULL, IS_BOUND, ROLE_OPERATOR},
    {"grant", NULL, IS_GRANT, ROLE_AGENT},
};

static const struct test_token tokens[] = {
    {"a-reader", "default", "reader", NULL},
    {"an-agent", "default", "agent", NULL},
    {"an-operator", "default", "operator", NULL},
    {"an-admin", "default", "admin", NULL},
    {"both-reader", "other,default", "reader", NULL},
    {"both-agent", "other,default", "agent", NULL},
    {"both-operator", "default,other", "operator", NULL},
    {"both-admin", "default,other", "admin", NULL},
    {"other-reader", "other", "reader", NULL},
    {"other-agent", "other", "agent", NULL},
    {"other-operator", "other", "operator", NULL},
    {"other-admin", "other", "admin", NULL},
    {"everywhere", "*", "admin", NULL},
    {"reads-all", "*", "operator", NULL},
    {"expired", "default", "admin", "2026-01-01T00:00:00Z"},
    {"bound", "default", "operator", NULL, "t.one"},
    {"reads-one", "default", "agent", NULL, "t.read,t.re*"},
    {"revoked", "default", "admin", NULL}, /* the last one: setup() takes it out */
};

static struct api_host host;
static char tokens_path[] = "/tmp/sagad-test-rights-XXXXXX", grant[GRANT_TOKEN_BYTES];
static struct raw_answer answer;
static struct arena arena;
static int connection = -1;

/* On one connection, as long as the service keeps it. */
static const struct raw_answer *ask(const char *method, const char *path, const char *head, const char *body)
{
    char text[8192];
    int len = snprintf(text, sizeof(text),
                       "%s %s HTTP/1.1\r\nHost: localhost\r\nSagad-Console: 1\r\n%sContent-Length: %zu\r\n\r\n%s",
                       method, path, head, body ? strlen(body) : 0, body ? body : "");

    assert_true(len > 0 && (size_t)len < sizeof(text));
    for (int tries = 0; tries < 2; tries++) { /* the service may have closed it meanwhile */
        connection = connection < 0 ? raw_connect(host.port) : connection;
        raw_send(connection, text, (size_t)len);
        raw_read(connection, PATIENCE_MS, &answer);
        if (answer.closed) {
            (void)close(connection);
            connection = -1;
        }
        if (answer.status) {
            return &answer;
        }
    }
    fail_msg("%s %s: no answer", method, path);
    return &answer;
}

static const struct raw_answer *ask_as(const char *token, const char *named, const char *method, const char *path,
                                       const char *body)
{
    char head[512] = "";

    if (token) {
        (void)snprintf(head, sizeof(head), "Authorization: Bearer %s\r\n", token);
    }
    if (named) {
        (void)snprintf(head + strlen(head), sizeof(head) - strlen(head), "Sagad-Namespace: %s\r\n", named);
    }
    return ask(method, path, head, body);
}

static void wait_until_revoked(const char *token)
{
    time_t until = time(NULL) + PATIENCE_MS / 1000;
    const struct timespec pause = {.tv_nsec = 20000000};

    expect(ask_as(token, NULL, "GET", "/v1/me", NULL), 200);
    token_file_write(tokens_path, tokens, COUNT_OF(tokens) - 1);
    while (answer.status == 200 && time(NULL) < until) {
        (void)nanosleep(&pause, NULL);
        ask_as(token, NULL, "GET", "/v1/me", NULL);
    }
    expect(&answer, 401);
}

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, 1 << 16);
    token_file_new(tokens_path, tokens, COUNT_OF(tokens));
    host = api_host_start(&(struct api_options){.tokens_file = tokens_path});
    wait_until_revoked("revoked");
    ask_as("an-agent", NULL, "POST", "/v1/grants", "{\"run\":\"" OURS "\"}");
    answer_take(&answer, "\"token\":\"", GRANT_TOKEN_BYTES - 1, grant);
    return 0;
}

static int teardown(void **state)
{
    (void)close(connection);
    arena_fini(&arena);
    return api_host_teardown(state);
}

/* --- the rows --- */

#define ROWS_MAX 200
#define THING "THING" /* stands for the id of what the row is about */

struct row {
    const char *method, *pattern, *more; /* of the pattern: which verb or method; NULL: none */
    const char *head, *body;
    enum role least;
    bool thing; /* it is about something that belongs to a namespace */
};

static struct row rows[ROWS_MAX];
static size_t row_count;

static void add(struct row row)
{
    assert_true(row_count < ROWS_MAX);
    rows[row_count++] = row;
}

/* Bodies that the engine of paper takes, where the examples of openapi.json are about things that it has not. */
static const struct {
    const char *end; /* of the path */
    const char *body;
} bodies[] = {
    {"/calls", "{\"tool\":\"t.one\"}"},
    {"/tools", "{\"tool\":\"quick\",\"version\":1,\"note\":\"x\"}"},
    {"/rerun", "{\"note\":\"x\",\"accept_standing\":[\"b\"]}"},
    {"/v1/operations", "{\"run\":\"rights\",\"tool\":\"t.one\"}"},
    {"/v1/sagas", "{\"open\":true}"},
    {"/v1/sagas/batch", "[{\"open\":true}]"},
    {"/v1/approvals/{n}", "{\"decision\":\"approve\",\"note\":\"x\"}"},
    {"/v1/escalations/{n}/resolve", "{\"action\":\"probe\",\"note\":\"x\"}"},
    {"/v1/escalations/{n}/acknowledge", "{\"note\":\"x\"}"},
    {"/v1/schedules", "{\"name\":\"nightly\",\"saga\":\"quick\",\"every\":\"1m\"}"},
    {"/v1/grants", "{\"run\":\"rights\"}"},
    {"/console/session", "{\"token\":\"a-reader\"}"},
    {"/mcp/t/{set}", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"},
    {"/mcp/g/{secret}", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"},
};

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);

    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static const char *body_of(const char *path, struct slice operation, struct slice examples)
{
    struct slice content = json_member(json_member(operation, "requestBody"), "content"), media, name, example;
    struct json_walk walk = json_walk(content);

    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        if (ends_with(path, bodies[i].end)) {
            return bodies[i].body;
        }
    }
    if (!json_next_member(&walk, &name, &media)) {
        return "{}";
    }
    walk = json_walk(json_member(media, "examples"));
    assert_true(json_next_member(&walk, &name, &example));
    const char *ref = arena_text(&arena, json_string(json_member(example, "$ref"), &arena));

    return arena_text(&arena, json_member(json_member(examples, strrchr(ref, '/') + 1), "value"));
}

/* Everything in braces names something of a namespace, but what is public or says who asks. */
static bool names_a_thing(const char *path)
{
    return strchr(path, '{') && strncmp(path, "/console/", 9) != 0 && !strstr(path, "/mcp/g/");
}

static void add_bulk(struct row row)
{
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (verbs[i].note == NOTE_NONE || (i > 0 && strcmp(verbs[i].name, verbs[i - 1].name) == 0)) {
            continue; /* one name stands for a verb on operations and for that on escalations */
        }
        row.more = verbs[i].name;
        row.body = arena_text(
            &arena,
            arena_printf(&arena, "{\"action\":\"%s\",\"filter\":{\"saga\":\"quick\"},\"note\":\"x\"}", row.more));
        add(row);
    }
}

static void add_mcp_method(struct row row, const char *method, bool is_stateless, const char *name, const char *params)
{
    const char *meta = is_stateless ? ",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"" MCP_VERSION_STATELESS
                                      "\",\"io.modelcontextprotocol/clientCapabilities\":{\"extensions\":{"
                                      "\"io.modelcontextprotocol/tasks\":{}}}}"
                                    : "";

    row.more = arena_text(&arena, arena_printf(&arena, "%s%s%s", method, name ? " " : "", name ? name : ""));
    row.thing = strstr(params, THING) != NULL;
    row.body = arena_text(&arena, arena_printf(&arena,
                                               "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{\"name\":"
                                               "\"%s\"%s%s}}",
                                               method, name ? name : "x", params, meta));
    row.head =
        is_stateless
            ? arena_text(&arena,
                         arena_printf(&arena, "MCP-Protocol-Version: " MCP_VERSION_STATELESS "\r\nMcp-Method: %s\r\n%s",
                                      method, strncmp(method, "tasks/", 6) == 0 ? "Mcp-Name: none\r\n" : ""))
            : "";
    add(row);
}

static void add_mcp(struct row row)
{
    bool is_stateless;
    const char *method;

    for (size_t i = 0; (method = mcp_method(i, &is_stateless)); i++) {
        if (strcmp(method, "tools/call") != 0) {
            add_mcp_method(row, method, is_stateless, NULL, ",\"taskId\":\"none\"");
            continue;
        }
        add_mcp_method(row, method, false, "t_one", ",\"arguments\":{\"run\":\"rights\"}");
        for (size_t k = 0; k < saga_tool_count; k++) {
            const char *about = saga_tools[k].begins                               ? "\"name\":\"rights\""
                                : strstr(saga_tools[k].name, "operation_") != NULL ? "\"operation\":\"" THING "\""
                                : strstr(saga_tools[k].name, "_abort") != NULL ? "\"saga\":\"" THING "\",\"note\":\"x\""
                                                                               : "\"saga\":\"" THING "\"";

            add_mcp_method(row, method, false, saga_tools[k].name,
                           arena_text(&arena, arena_printf(&arena, ",\"arguments\":{%s}", about)));
        }
    }
}

static void add_operation(const char *path, struct slice method, struct slice operation, struct slice examples)
{
    struct row row = {.pattern = path, .head = "", .thing = names_a_thing(path)};
    char *upper = arena_text(&arena, method);

    for (char *c = upper; *c; c++) {
        *c = (char)toupper(*c);
    }
    row.method = upper;
    row.body = *upper == 'P' ? body_of(path, operation, examples) : NULL;
    struct slice role = json_string(json_member(operation, "x-role"), &arena);

    if (!slice_is(role, "none") && !role_parse(role, &row.least)) {
        fail_msg("%s %s: openapi.json names no x-role", row.method, path);
    }
    if (strcmp(path, "/mcp") == 0) {
        add_mcp(row);
    } else {
        add(row);
    }
    if (strcmp(path, "/v1/bulk") == 0 && row.body) {
        row_count--;
        add_bulk(row);
    }
}

static void read_rows(void)
{
    struct slice text = {api_openapi, (size_t)(api_openapi_end - api_openapi)};
    struct slice examples = json_member(json_member(text, "components"), "examples"), path, methods, method, operation;
    struct json_walk walk = json_walk(json_member(text, "paths"));

    row_count = 0;
    while (json_next_member(&walk, &path, &methods)) {
        struct json_walk inner = json_walk(methods);

        while (json_next_member(&inner, &method, &operation)) {
            add_operation(arena_text(&arena, path), method, operation, examples);
        }
    }
}

/* --- the thing that a row is about, made anew in the namespace "default" --- */

struct thing {
    char id[37], name[64];
};

static const char *fixed_name(const char *pattern)
{
    static const struct {
        const char *begin, *name;
    } fixed[] = {{"/v1/schedules/", "nightly"}, {"/v1/bulk/", "01890a5d-ac96-774b-bcce-b302099a0007"},
                 {"/v1/escalations/", "1"},     {"/v1/approvals/", "1"},
                 {"/v1/holds/", "1"},           {"/mcp/t/", "a_set"}};

    for (size_t i = 0; i < COUNT_OF(fixed); i++) {
        if (strncmp(pattern, fixed[i].begin, strlen(fixed[i].begin)) == 0) {
            return fixed[i].name;
        }
    }
    return "quick";
}

static struct thing make(const struct row *row)
{
    static unsigned made;
    struct thing thing = {0};
    char body[128];

    (void)snprintf(thing.name, sizeof(thing.name), OURS "-%u", ++made);
    if (strstr(row->pattern, "{key}") || (row->more && strstr(row->more, "operation_"))) {
        (void)snprintf(body, sizeof(body), "{\"run\":\"%s\",\"tool\":\"t.one\"}", thing.name);
        ask_as("an-agent", NULL, "POST", "/v1/operations", body);
        answer_take(&answer, "{\"key\":\"", 36, thing.id);
    } else if (strncmp(row->pattern, "/v1/grants/", 11) == 0) {
        ask_as("an-agent", NULL, "POST", "/v1/grants", "{\"run\":\"" OURS "\"}");
        answer_take(&answer, "{\"id\":\"", 36, thing.id);
    } else if (strstr(row->pattern, "/v1/sagas/") || strncmp(row->pattern, "/mcp", 4) == 0) {
        (void)snprintf(body, sizeof(body), "{\"open\":true,\"id\":\"%s\"}", thing.name);
        ask_as("an-agent", NULL, "POST", "/v1/sagas", body);
        answer_take(&answer, "{\"id\":\"", 36, thing.id);
    }
    return thing;
}

static void fill(const struct row *row, const struct thing *thing, char *out, size_t size)
{
    struct buffer text;
    const char *at = row->pattern;

    buffer_init(&text, size);
    while (*at) {
        if (*at != '{') {
            buffer_put_char(&text, *at++);
            continue;
        }
        bool is_named = strncmp(row->pattern, "/v1/sagas/by-business-id/", 25) == 0;
        struct slice part = {at + 1, strcspn(at, "}") - 1};

        buffer_put_text(&text, slice_is(part, "business_id")                   ? thing->name
                               : is_named && slice_is(part, "name")            ? "~open"
                               : slice_is(part, "id") || slice_is(part, "key") ? thing->id
                               : strncmp(row->pattern, "/v1/sagas/", 10) == 0  ? "paid"
                                                                               : fixed_name(row->pattern));
        at += part.len + 2;
    }
    (void)snprintf(out, size, "%s", buffer_c(&text));
    buffer_fini(&text);
}

/* `text` with the id of the thing where it says so. */
static const char *about(const char *text, const struct thing *thing, char *out, size_t size)
{
    const char *at = text ? strstr(text, THING) : NULL;

    if (!at) {
        return text;
    }
    (void)snprintf(out, size, "%.*s%s%s", (int)(at - text), text, thing->id, at + strlen(THING));
    return out;
}

/* --- the cells --- */

enum cell { CELL_DOES, CELL_STRANGER, CELL_FORBIDDEN, CELL_NOT_FOUND, CELL_REFUSED, CELL_OTHER };

static bool says(const char *text)
{
    return strstr(answer.body, text) != NULL;
}

static enum cell cell_of(const struct row *row)
{
    bool is_mcp = strncmp(row->pattern, "/mcp", 4) == 0;

    if (is_mcp && answer.status == 200 && row->thing && says("problem:not-found")) {
        return CELL_NOT_FOUND;
    }
    if (is_mcp && answer.status == 200 && says("there is no tool of this name")) {
        return CELL_REFUSED;
    }
    if (is_mcp && answer.status == 200 && row->thing && says("\"isError\":true") && !says("problem:conflict")) {
        return CELL_REFUSED;
    }
    if (answer.status == 401 && says("problem:unauthenticated")) {
        return CELL_STRANGER;
    }
    if (answer.status == 403 && says("problem:forbidden")) {
        return CELL_FORBIDDEN;
    }
    if (answer.status == 404 && says("problem:not-found") && row->thing) {
        return CELL_NOT_FOUND;
    }
    return answer.status < 400 || answer.status == 409 || row->least == ROLE_NONE ? CELL_DOES : CELL_OTHER;
}

/* What a token that is bound to a tool may, beside /mcp. */
static bool is_for_bound(const struct row *row)
{
    return strncmp(row->pattern, "/v1/operations", 14) == 0
               ? strcmp(row->pattern + 14, "") == 0 || strcmp(row->pattern + 14, "/{key}") == 0
               : ends_with(row->pattern, "/calls") || strcmp(row->pattern, "/v1/me") == 0;
}

static enum cell expected(const struct row *row, const struct who *one)
{
    bool is_mcp = strncmp(row->pattern, "/mcp", 4) == 0, is_public = row->least == ROLE_NONE;

    if (strstr(row->pattern, "/mcp/g/")) { /* who may is said by the path alone */
        return one->kind == IS_GRANT ? CELL_DOES : one->token ? CELL_OTHER : CELL_STRANGER;
    }
    if (row->more && ends_with(row->more, " t_one") && row->least <= one->role &&
        (one->kind == IS_OTHER || one->kind == IS_ALL)) { /* other namespaces have no tools */
        return CELL_REFUSED;
    }
    switch (one->kind) {
    case IS_STRANGER:
        return is_public ? CELL_DOES : CELL_STRANGER;
    case IS_GRANT:
        return is_mcp && row->thing && row->more ? CELL_REFUSED : is_mcp || is_public ? CELL_DOES : CELL_FORBIDDEN;
    case IS_OUTSIDE:
        return CELL_FORBIDDEN;
    case IS_BOUND:
        if (is_mcp && strcmp(row->pattern, "/mcp/t/{set}") != 0) {
            return row->more && strstr(row->more, "saga_") ? CELL_REFUSED : CELL_DOES;
        }
        return is_public || is_mcp || is_for_bound(row) ? CELL_DOES : CELL_FORBIDDEN;
    case IS_ALL:
        return row->thing ? CELL_NOT_FOUND : CELL_DOES;
    case IS_OWN:
    case IS_OTHER:
        break;
    }
    if (one->role < row->least || strcmp(row->pattern, "/v1/engines") == 0) { /* that is for admins of "*" */
        return CELL_FORBIDDEN;
    }
    if (strcmp(row->pattern, "/v1/grants/{id}") == 0 && one->role == ROLE_AGENT &&
        strcmp(one->token, "an-agent") != 0) { /* an agent takes back what it gave itself */
        return CELL_NOT_FOUND;
    }
    return row->thing && one->kind == IS_OTHER ? CELL_NOT_FOUND : CELL_DOES;
}

static enum cell ask_cell(const struct row *row, const struct thing *thing, const struct who *one)
{
    char path[512], head[512], body[1024], some[1024];
    const char *token = one->kind == IS_GRANT ? grant : one->token;

    fill(row, thing, path, sizeof(path));
    if (one->kind == IS_GRANT && strstr(row->pattern, "/mcp/g/")) {
        (void)snprintf(path, sizeof(path), "/mcp/g/%s", grant);
        token = NULL;
    }
    (void)snprintf(head, sizeof(head), "%s%s%s%s%s%s%s", token ? "Authorization: Bearer " : "", token ? token : "",
                   token ? "\r\n" : "", one->named ? "Sagad-Namespace: " : "", one->named ? one->named : "",
                   one->named ? "\r\n" : "", about(row->head, thing, some, sizeof(some)));
    ask(row->method, path, head, about(row->body, thing, body, sizeof(body)));
    return cell_of(row);
}

static void check_cell(const struct row *row, const struct who *one, enum cell cell)
{
    bool is_foreign = one->kind == IS_STRANGER || one->kind == IS_OTHER || one->kind == IS_OUTSIDE;

    if (cell != expected(row, one)) {
        fail_msg("%s %s %s as %s in %s: got %d %s", row->method, row->pattern, row->more ? row->more : "",
                 one->token ? one->token : "nobody", one->named ? one->named : "its namespace", answer.status,
                 answer.body);
    }
    if (is_foreign && says(OURS)) {
        fail_msg("%s %s tells %s of another namespace: %s", row->method, row->pattern,
                 one->token ? one->token : "nobody", answer.body);
    }
}

/* --- the page --- */

static const char head[] =
    "# Rights, route by route\n\n"
    "Each route, each method of MCP and each verb of bulk jobs, by what is shown with a request. The test "
    "`api_rights`\n"
    "makes the rows of `schema/openapi.json` and of the code, asks each cell, and holds this page against the "
    "answers;\n"
    "`WRITE_RIGHTS=1` writes it anew.\n\n"
    "- *others*: a token of another namespace, with any role that would do. `404`: it is told what it would be told "
    "if\n"
    "  the thing did not exist. `own`: it sees and does this in its own namespace only.\n"
    "- *shared*: a token of a namespace that definitions were shared with, by what it asks for of the namespace that\n"
    "  shares. `copy`: it has a copy of each shared definition, uses it as its own, and sees in `shared_by` where it "
    "is\n"
    "  from; it is `read-only`. The rest is as for others. The test `share_rights` asks these cells of each role.\n"
    "- *tools*: a token of an operator that its row binds to tools. It calls these, and sees their operations; those "
    "of\n"
    "  other tools are `404`, and `tools/list` has none of them.\n"
    "- *grant*: one for a run. It is good at `/mcp`, for that run: what is of other runs is refused.\n"
    "- No, an unknown, an expired and a revoked token are 401 wherever a role is needed. A request that names a\n"
    "  namespace in which its token may not act is 403, whether or not that namespace exists.\n"
    "- A token of several namespaces has in each of them the rights of its role, and in others none.\n"
    "- An admin of the namespace `*` has the rights of an admin in the namespace that it names. `/v1/engines` answers\n"
    "  such an admin only, where it names none.\n"
    "- An agent revokes the grants that it made, and decides an approval only where the approval lets agents. A task "
    "of\n"
    "  MCP is answered to the token that made it.\n\n"
    "| what | nobody | reader | agent | operator | admin | others | shared | tools | grant |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";

/* What a namespace finds that definitions were shared with: its own copies of them, and nothing else of the namespace
 * that shares. The engine of paper shares nothing; the test `share_rights` asks these cells on a real one. */
static const char *of_shared(const struct row *row, const char *of_others)
{
    if (strcmp(row->pattern, "/v1/definitions") == 0 && strcmp(row->method, "POST") == 0) {
        return "read-only";
    }
    return strncmp(row->pattern, "/v1/definitions/", 16) == 0 || strncmp(row->pattern, "/v1/tools/", 10) == 0 ||
                   strcmp(row->pattern, "/mcp/t/{set}") == 0 || (row->more && ends_with(row->more, " t_one"))
               ? "copy"
               : of_others;
}

static const char *word(enum cell cell)
{
    return cell == CELL_DOES ? "yes" : cell == CELL_NOT_FOUND ? "404" : "";
}

static void check_row(const struct row *row, struct buffer *page)
{
    enum cell cells[COUNT_OF(who)];
    struct thing thing = make(row);
    const char *of_others = "";

    for (size_t i = 0; i < COUNT_OF(who); i++) {
        cells[i] = ask_cell(row, &thing, &who[i]);
        check_cell(row, &who[i], cells[i]);
        if (who[i].token && strcmp(who[i].token, "other-admin") == 0 && who[i].kind == IS_OTHER) {
            of_others = row->least == ROLE_NONE      ? "yes"
                        : cells[i] == CELL_DOES      ? "own"
                        : cells[i] == CELL_NOT_FOUND ? "404"
                                                     : "";
        }
    }
    buffer_printf(page, "| `%s %s`%s%s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", row->method, row->pattern,
                  row->more ? " " : "", row->more ? row->more : "", word(cells[0]), word(cells[4]), word(cells[5]),
                  word(cells[6]), word(cells[7]), of_others, of_shared(row, of_others), word(cells[COUNT_OF(who) - 2]),
                  word(cells[COUNT_OF(who) - 1]));
}

static void check_page(struct buffer *page)
{
    const char *folder = getenv("SCHEMA_DIR");
    char path[512], *text = calloc(1, page->len + 2);
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/../engine/rights.md", folder ? folder : "schema");
    if (getenv("WRITE_RIGHTS")) {
        file = fopen(path, "we");
        assert_non_null(file);
        assert_int_equal(fwrite(page->ptr, 1, page->len, file), page->len);
        assert_int_equal(fclose(file), 0);
    }
    file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(text);
    (void)fread(text, 1, page->len + 1, file);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(buffer_c(page), text);
    free(text);
}

TEST(each_cell_is_what_the_page_says)
{
    struct buffer page;

    read_rows();
    assert_true(row_count > 100);
    buffer_init(&page, 1 << 17);
    buffer_put_text(&page, head);
    for (size_t i = 0; i < row_count; i++) {
        check_row(&rows[i], &page);
    }
    check_page(&page);
    buffer_fini(&page);
}

/* --- what the cells do not show --- */

TEST(lists_show_what_belongs_to_the_namespace)
{
    static const char *const lists[] = {"/v1/sagas", "/v1/operations", "/v1/grants"};

    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        ask_as("an-agent", NULL, "GET", lists[i], NULL);
        assert_true(says(OURS));
    }
}

/* The same names in two namespaces are two operations, and neither learns of the other. */
TEST(the_same_call_in_another_namespace_is_another_operation)
{
    static const char body[] = "{\"run\":\"shared\",\"tool\":\"t.one\",\"args\":{\"n\":1}}";
    char first[37], second[37];

    ask_as("an-agent", NULL, "POST", "/v1/operations", body);
    answer_take(&answer, "{\"key\":\"", 36, first);
    expect(ask_as("other-agent", NULL, "POST", "/v1/operations", body), 200);
    assert_false(raw_head_has(&answer, "Idempotent-Replayed"));
    answer_take(&answer, "{\"key\":\"", 36, second);
    assert_string_not_equal(first, second);
}

TEST(a_token_that_is_bound_to_tools_knows_of_no_others)
{
    char key[37];

    ask_as("an-agent", NULL, "POST", "/v1/operations", "{\"run\":\"" OURS "\",\"tool\":\"t.one\"}");
    answer_take(&answer, "{\"key\":\"", 36, key);
    expect(ask_as("reads-one", NULL, "GET", text_of("/v1/operations/%s", key), NULL), 404);
    expect(ask_as("reads-one", NULL, "POST", "/v1/operations", "{\"run\":\"r\",\"tool\":\"t.one\"}"), 403);
    assert_true(says("bound to other tools than \\\"t.one\\\""));
    /* Whether or not there is such a tool. */
    expect(ask_as("reads-one", NULL, "POST", "/v1/operations", "{\"run\":\"r\",\"tool\":\"t.nothing\"}"), 403);
    expect(ask_as("reads-one", NULL, "POST", "/v1/operations", "{\"run\":\"r\",\"tool\":\"t.read\"}"), 200);
    expect(ask_as("reads-one", NULL, "GET", "/v1/operations", NULL), 403); /* a beginning names no tool */
    expect(ask_as("reads-one", NULL, "GET", "/v1/operations?tool=t.read", NULL), 200);
    expect(ask_as("reads-one", NULL, "GET", "/v1/operations?tool=t.read,t.one", NULL), 403);
    ask_as("reads-one", NULL, "POST", "/mcp", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    assert_true(says("\"name\":\"t_read\"") && !says("t_one") && !says("saga_"));
}

TEST(a_namespace_that_is_there_is_refused_as_one_that_is_not)
{
    static char refused[sizeof(answer.body)];

    ask_as("both-operator", "other", "GET", "/v1/me", NULL);
    assert_true(says("\"namespace\":\"other\",\"namespaces\":[\"default\",\"other\"]"));
    expect(ask_as("an-agent", "nowhere", "GET", "/v1/sagas", NULL), 403);
    (void)memcpy(refused, answer.body, sizeof(refused));
    expect(ask_as("an-agent", "other", "GET", "/v1/sagas", NULL), 403);
    assert_string_equal(answer.body, refused);
    expect(ask_as("both-operator", "*", "GET", "/v1/sagas", NULL), 403);
    expect(ask_as("both-operator", "", "GET", "/v1/sagas", NULL), 403);
}

TEST_PROGRAM(setup, teardown)
