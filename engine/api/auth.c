/* Reads the file of tokens as strictly as a definition: a misspelt role must not quietly become a right. */
#include "api/auth.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/instant.h"
#include "base/json.h"

#define TOKENS_MAX 1000
#define NAMESPACES_MAX 100 /* the most that one token may have */
#define TOOLS_MAX 100
#define TOOL_BYTES_MAX 128
#define CERTIFICATE_NAME_BYTES_MAX 256

static bool token_bytes_are_good(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];

        if (c <= 0x20 || c >= 0x7f) {
            return false;
        }
    }
    return name.len > 0;
}

bool token_name_is_good(struct slice name)
{
    return token_bytes_are_good(name) && name.len <= 128;
}

bool token_namespace_is_good(struct slice name)
{
    return token_name_is_good(name) && !slice_is(name, "*");
}

static void read_namespaces(struct slice value, struct slice place, struct arena *arena, struct token *token,
                            struct faults *faults)
{
    struct slice *names = arena_array(arena, json_count(value) + 1, sizeof(*names)), item;
    struct json_walk walk = json_walk(value);
    bool good = json_type(value) == JSON_ARRAY && json_count(value) > 0 && json_count(value) <= NAMESPACES_MAX;

    while (good && json_next_element(&walk, &item)) {
        struct slice name = json_string(item, arena);

        good = name.ptr && token_namespace_is_good(name);
        for (size_t i = 0; i < token->namespace_count; i++) {
            good = good && !slice_equal(names[i], name);
        }
        names[token->namespace_count++] = name;
    }
    if (!good) {
        faults_add(faults, place, "not an array of 1 to %d different namespaces, none of them \"*\"", NAMESPACES_MAX);
        return;
    }
    token->namespaces = names;
    token->namespace = names[0];
}

/* --- tools --- */

static bool is_beginning(struct slice tool)
{
    return tool.len > 1 && tool.ptr[tool.len - 1] == '*';
}

bool token_tools_have(const struct token_tools *tools, struct slice name)
{
    for (size_t i = 0; i < tools->count; i++) {
        struct slice tool = tools->items[i];

        if (is_beginning(tool) ? name.len >= tool.len - 1 && memcmp(name.ptr, tool.ptr, tool.len - 1) == 0
                               : slice_equal(name, tool)) {
            return true;
        }
    }
    return tools->count == 0;
}

bool token_tools_equal(const struct token_tools *a, const struct token_tools *b)
{
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        if (!slice_equal(a->items[i], b->items[i])) {
            return false;
        }
    }
    return a->count == b->count;
}

struct token_tools token_tools_copy(const struct token_tools *tools, struct arena *arena)
{
    struct slice *items = arena_array(arena, tools->count + 1, sizeof(*items));

    for (size_t i = 0; i < tools->count; i++) {
        items[i] = arena_slice(arena, tools->items[i]);
    }
    return (struct token_tools){items, tools->count};
}

static bool tool_is_good(struct slice tool)
{
    for (size_t i = 0; i < tool.len; i++) {
        if (tool.ptr[i] == ',' || (tool.ptr[i] == '*' && !(i > 0 && i == tool.len - 1))) {
            return false;
        }
    }
    return tool.ptr && token_bytes_are_good(tool) && tool.len <= TOOL_BYTES_MAX;
}

static void read_tools(struct slice value, struct slice place, struct arena *arena, struct token *token,
                       struct faults *faults)
{
    struct slice *tools = arena_array(arena, json_count(value) + 1, sizeof(*tools)), item;
    struct json_walk walk = json_walk(value);
    bool good = json_type(value) == JSON_ARRAY && json_count(value) > 0 && json_count(value) <= TOOLS_MAX;

    while (good && json_next_element(&walk, &item)) {
        tools[token->tools.count] = json_string(item, arena);
        good = tool_is_good(tools[token->tools.count++]);
    }
    if (!good) {
        faults_add(faults, place,
                   "not an array of 1 to %d names of tools, or of beginnings of names with * behind them", TOOLS_MAX);
        return;
    }
    token->tools.items = tools;
}

/* Exactly one of `namespace` and `namespaces` is there. */
static void check_namespaces(struct slice row, struct slice at, struct arena *arena, struct token *token,
                             struct faults *faults)
{
    if (json_member(row, "namespaces").ptr) {
        if (json_member(row, "namespace").ptr) {
            faults_add(faults, at, "a token has either namespace or namespaces");
        }
        return;
    }
    if (!token->namespace.ptr || !token_name_is_good(token->namespace)) {
        faults_add(faults, at, "namespace is missing, or not 1 to 128 printable characters without spaces");
        return;
    }
    token->namespaces = arena_dup(arena, &token->namespace, sizeof(token->namespace));
    token->namespace_count = 1;
}

struct digest token_certificate_digest(struct slice name)
{
    return digest_fields("sagad client certificate", &name, 1);
}

/* The name as GnuTLS gives it, so that equal bytes are the same name. */
static bool certificate_name_is_good(struct slice name)
{
    static const char *const kinds[] = {"DNS:", "URI:", "email:"};

    for (size_t i = 0; name.ptr && i < COUNT_OF(kinds); i++) {
        size_t len = strlen(kinds[i]);

        if (slice_starts_with(name, kinds[i]) && name.len > len && name.len <= CERTIFICATE_NAME_BYTES_MAX) {
            return token_bytes_are_good(name);
        }
    }
    return false;
}

static void read_certificate(struct slice text, struct slice place, struct token *token, struct faults *faults)
{
    if (!certificate_name_is_good(text)) {
        faults_add(faults, place,
                   "not DNS:NAME, URI:URI or email:ADDRESS, a subject alternative name without spaces and of at most "
                   "%d bytes",
                   CERTIFICATE_NAME_BYTES_MAX);
        return;
    }
    token->is_certificate = true;
    token->digest = token_certificate_digest(text);
}

static void token_read(struct slice row, struct slice at, struct tokens *tokens, struct faults *faults)
{
    struct token token = {0};
    struct arena *arena = &tokens->arena;
    struct json_walk walk = json_walk(row);
    struct slice member, value;
    bool has_digest = false, has_sha256 = false;

    if (json_type(row) != JSON_OBJECT) {
        faults_add(faults, at, "a token is an object");
        return;
    }
    while (json_next_member(&walk, &member, &value)) {
        struct slice place = json_pointer_join(arena, at, member), text = json_string(value, arena);

        if (slice_is(member, "name")) {
            token.name = text;
        } else if (slice_is(member, "namespace")) {
            token.namespace = text;
        } else if (slice_is(member, "namespaces")) {
            read_namespaces(value, place, arena, &token, faults);
        } else if (slice_is(member, "sha256")) {
            has_sha256 = true;
            has_digest = text.ptr && text.len == 64 && digest_from_hex(text, &token.digest);
        } else if (slice_is(member, "tools")) {
            read_tools(value, place, arena, &token, faults);
        } else if (slice_is(member, "certificate")) {
            read_certificate(text, place, &token, faults);
        } else if (slice_is(member, "role")) {
            if (!text.ptr || !role_parse(text, &token.role)) {
                faults_add(faults, place, "a role is one of reader, agent, operator, admin");
            }
        } else if (slice_is(member, "expires_at")) {
            if (!text.ptr || !instant_parse(text, &token.expires_ms)) {
                faults_add(faults, place, "not an RFC 3339 instant such as 2027-01-31T00:00:00Z");
            }
        } else {
            faults_add(faults, place,
                       "unknown member; a token has name, sha256 or certificate, namespace or namespaces, role, "
                       "tools and expires_at");
        }
    }
    if (!token.name.ptr || !token_name_is_good(token.name)) {
        faults_add(faults, at, "name is missing, or not 1 to 128 printable characters without spaces");
    }
    check_namespaces(row, at, arena, &token, faults);
    if (has_sha256 && json_member(row, "certificate").ptr) {
        faults_add(faults, at, "a token has either sha256 or certificate");
    } else if (!has_digest && !json_member(row, "certificate").ptr) {
        faults_add(faults, at, "sha256 is missing, or not 64 hexadecimal digits (`sagactl token new` prints a row)");
    }
    has_digest = has_digest || token.is_certificate;
    if (token.role == ROLE_NONE && !json_member(row, "role").ptr) {
        faults_add(faults, at, "role is missing");
    }
    for (size_t i = 0; has_digest && i < tokens->count; i++) {
        if (digest_equal(&tokens->items[i].digest, &token.digest)) {
            faults_add(faults, at, "the same %s stands in the file twice",
                       token.is_certificate ? "certificate" : "token");
        }
    }
    tokens->items[tokens->count++] = token;
}

static enum err_code refuse(const struct faults *faults, struct err *err)
{
    enum err_code code = err_set(err, ERR_CONFIG, "the tokens file is wrong");
    char text[400];
    size_t len = 0;

    for (size_t i = 0; i < faults->count && len < sizeof(text) - 1; i++) {
        int n = snprintf(text + len, sizeof(text) - len, "%s%.*s: %.*s", i ? "; " : "",
                         SLICE_ARG(faults->items[i].pointer), SLICE_ARG(faults->items[i].detail));

        len += n > 0 ? (size_t)n : 0;
    }
    err_detail(err, "%s", text);
    err_hint(err,
             "it is {\"tokens\": [{\"name\", \"sha256\" | \"certificate\", \"namespace\" | \"namespaces\", \"role\", "
             "\"tools\"?, \"expires_at\"?}]}");
    return code;
}

enum err_code tokens_parse(struct slice text, struct tokens *out, struct err *err)
{
    struct tokens tokens = {0};
    struct faults faults;

    arena_init(&tokens.arena, 4096);
    faults_init(&faults, &tokens.arena);
    if (json_check(text, &json_limits_default, err) != ERR_OK) {
        arena_fini(&tokens.arena);
        if (err) {
            err->code = ERR_CONFIG;
        }
        return err_context(err, "the tokens file");
    }
    text = arena_slice(&tokens.arena, text);
    struct slice rows = json_member(text, "tokens");

    if (json_type(text) != JSON_OBJECT || json_type(rows) != JSON_ARRAY || json_count(text) != 1) {
        faults_add(&faults, SLICE(""), "must be an object with the one member \"tokens\", an array");
    } else if (json_count(rows) > TOKENS_MAX) {
        faults_add(&faults, SLICE("/tokens"), "more than %d tokens", TOKENS_MAX);
    } else {
        struct json_walk walk = json_walk(rows);
        struct slice row;

        tokens.items = arena_array(&tokens.arena, json_count(rows) + 1, sizeof(*tokens.items));
        for (size_t i = 0; json_next_element(&walk, &row); i++) {
            token_read(row, arena_printf(&tokens.arena, "/tokens/%zu", i), &tokens, &faults);
        }
    }
    if (faults.count > 0) {
        enum err_code code = refuse(&faults, err);

        arena_fini(&tokens.arena);
        return code;
    }
    tokens_fini(out);
    *out = tokens;
    return ERR_OK;
}

enum err_code tokens_load(const char *path, struct tokens *out, struct err *err)
{
    struct arena scratch;
    struct slice text;

    arena_init(&scratch, 4096);
    enum err_code code = file_read(path, "tokens", 1024, FILE_OF_ITS_OWNER, &scratch, &text, err);

    if (code == ERR_OK) {
        code = tokens_parse(text, out, err);
        if (code != ERR_OK) {
            code = err_context(err, "%s", path);
        }
    }
    arena_fini(&scratch);
    return code;
}

void tokens_fini(struct tokens *tokens)
{
    arena_fini(&tokens->arena);
    *tokens = (struct tokens){0};
}

bool token_has_namespace(const struct token *token, struct slice namespace)
{
    for (size_t i = 0; i < token->namespace_count; i++) {
        if (slice_equal(token->namespaces[i], namespace)) {
            return true;
        }
    }
    return token->role == ROLE_ADMIN && slice_is(token->namespace, "*") && token_name_is_good(namespace);
}

const struct token *tokens_find(const struct tokens *tokens, const struct digest *digest, int64_t now_ms)
{
    const struct token *found = NULL;

    for (size_t i = 0; i < tokens->count; i++) {
        if (digest_equal(&tokens->items[i].digest, digest)) {
            found = &tokens->items[i];
        }
    }
    return found && found->expires_ms && found->expires_ms <= now_ms ? NULL : found;
}
